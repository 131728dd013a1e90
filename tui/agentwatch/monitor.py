"""The sources and the tree running together: the one object that the faces hold."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from agentwatch.config import Settings
from agentwatch.delegation.observation import Checked, Observation, Tick
from agentwatch.delegation.task import State, Version
from agentwatch.delegation.tree import DelegationTree
from agentwatch.evidence.inspector import Checks, Inspector, Target
from agentwatch.history.keeper import Keeper
from agentwatch.sources.files.names import to_name
from agentwatch.sources.health import Batch, Health

SLICE_SECONDS: Final = 0.006
"""How long observations are applied at a stretch: a key pressed meanwhile waits no longer than this."""

TICK_SECONDS: Final = 1.0


class Source(Protocol):
    """Where observations come from. It runs on its own thread and never blocks the caller."""

    def start(self, emit: Callable[[Batch], None]) -> None:
        """Begin to observe; `emit` is called on the source's thread, with what was there first."""

    def scan(self) -> Batch:
        """What is there now, looked at once; for a source that was not started."""

    def stop(self) -> None:
        """End within a second. Nothing is emitted afterwards."""

    def content(self, digest: str) -> str | None:
        """The text of a document that was observed, None where it is not kept any more."""


@dataclass(frozen=True, slots=True)
class Update:
    """What has changed since the update before: task ids, and whether tasks came, went or moved."""

    changed: frozenset[str]
    structure: bool


class Monitor:
    """A workspace being watched: its tree, its health, the texts of its documents.

    With `inspects`, the claims of the returns are held against the disk and git. With `keeps`, everything observed is
    recorded in the history of the workspace, which lies in the user's state directory.
    """

    def __init__(
        self,
        workspace: Path,
        settings: Settings,
        source: Source,
        clock: Callable[[], float],
        *,
        inspects: bool = False,
        keeps: bool = False,
    ) -> None:
        self.workspace = workspace
        self.settings = settings
        self.tree = DelegationTree(
            strict=settings.strict,
            stale_after=settings.stale_after,
            max_retries=settings.max_retries,
            low_confidence=settings.low_confidence,
        )
        self.health = Health("starting", "reading the workspace")
        self._source = source
        self._clock = clock
        self._inspector = Inspector(workspace, self.content) if inspects else None
        self._keeper = Keeper(workspace, source.content, read_only=settings.read_only) if keeps else None
        self._inspected: dict[str, tuple[str, str | None]] = {}
        self._pending: deque[Observation] = deque()
        self._latest_seq = 0

    def absolute(self, relative: str) -> Path:
        """Where a file of the workspace is on disk; a path of an observation spells names that are no text."""
        return self.workspace / to_name(relative)

    def content(self, version: Version) -> str | None:
        """The text that this version of a file had, None where it is not kept any more."""
        return self._source.content(version.digest)

    async def updates(self) -> AsyncIterator[Update]:
        """Run the source and apply what it observes, until the iteration is closed.

        The first update comes with the first batch. Observations are applied in slices, so that the event loop
        stays free; an update is given out after each slice, and for every change of health.
        """
        loop = asyncio.get_running_loop()
        arrived = asyncio.Event()

        def take(batch: Batch) -> None:
            self._pending.extend(batch.observations)
            self.health = batch.health
            if self._keeper is not None:
                if batch.observations:
                    self._keeper.keep(batch.observations)
                if notice := self._keeper.notice:
                    self.health = replace(batch.health, detail=f"{batch.health.detail}; {notice}")
            arrived.set()

        def take_checks(checks: Sequence[Checks]) -> None:
            self._pending.extend(self._checked(checks))
            arrived.set()

        def emit(batch: Batch) -> None:
            loop.call_soon_threadsafe(take, batch)

        def emit_checks(checks: Sequence[Checks]) -> None:
            loop.call_soon_threadsafe(take_checks, checks)

        if self._keeper is not None:
            self._keeper.start()
        self._source.start(emit)
        if self._inspector is not None:
            self._inspector.start(emit_checks)
        try:
            while True:
                try:
                    await asyncio.wait_for(arrived.wait(), TICK_SECONDS)
                    arrived.clear()
                    yield self._apply_slice()
                    while self._pending:
                        await asyncio.sleep(0)
                        yield self._apply_slice()
                except TimeoutError:
                    update = self._apply(Tick(self._latest_seq, self._clock()))
                    if update.changed:
                        yield update
        finally:
            if self._inspector is not None:
                await asyncio.to_thread(self._inspector.stop)
            await asyncio.to_thread(self._source.stop)
            if self._keeper is not None:
                await asyncio.to_thread(self._keeper.stop)

    def scan(self) -> None:
        """Look at everything once, for faces that show one moment. Blocks."""
        self.load(self._source.scan())

    def load(self, batch: Batch) -> None:
        """Apply a whole batch at once, and check the claims in it. Blocks."""
        self.health = batch.health
        for observation in batch.observations:
            self.tree.apply(observation)
        if self._inspector is not None:
            for checked in self._checked(self._inspector.check(self._targets(self.tree.tasks))):
                self.tree.apply(checked)
        self.tree.apply(Tick(len(batch.observations), self._clock()))

    def _apply_slice(self) -> Update:
        structure = self.tree.structure
        changed: set[str] = set()
        end = self._clock_precise() + SLICE_SECONDS
        while self._pending:
            observation = self._pending.popleft()
            self._latest_seq = max(self._latest_seq, observation.seq)
            changed |= self.tree.apply(observation)
            if self._clock_precise() >= end:
                break
        changed |= self.tree.apply(Tick(self._latest_seq, self._clock()))
        if self._inspector is not None and (targets := self._targets(changed)):
            self._inspector.want(targets)
        if self._keeper is not None:
            tasks = (self.tree.tasks.get(task_id) for task_id in changed)
            self._keeper.report(task for task in tasks if task is not None and task.own_state is State.INVALID)
        return Update(frozenset(changed), self.tree.structure != structure)

    def _apply(self, observation: Observation) -> Update:
        structure = self.tree.structure
        return Update(frozenset(self.tree.apply(observation)), self.tree.structure != structure)

    def _targets(self, task_ids: Iterable[str]) -> list[Target]:
        """The returns of these tasks that were not given to the inspector yet, with this handoff."""
        targets = []
        for task_id in task_ids:
            task = self.tree.tasks.get(task_id)
            attempt = task.latest if task else None
            if attempt is None or attempt.returned is None:
                continue
            returned, handoff = attempt.returned, attempt.handoff
            key = (returned.digest, handoff.digest if handoff else None)
            if self._inspected.get(returned.path) != key:
                self._inspected[returned.path] = key
                targets.append(Target(returned, handoff, attempt.started_at if handoff else None))
        return targets

    def _checked(self, checks: Sequence[Checks]) -> list[Observation]:
        now = self._clock()
        return [Checked(self._latest_seq, now, check.path, check.digest, check.claims) for check in checks]

    @staticmethod
    def _clock_precise() -> float:
        return asyncio.get_running_loop().time()
