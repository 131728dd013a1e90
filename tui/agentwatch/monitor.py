"""Watches one workspace: runs its sources, tree, history and checks together, and records decisions about it."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence, Set
from contextlib import suppress
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentwatch.background import Worker
from agentwatch.config import Settings
from agentwatch.delegation.events import Checked, Event, Looked, Message, Noted, Ran, Rules, Run, Seen, Tick
from agentwatch.delegation.links import missing_artifacts
from agentwatch.delegation.task import State, Task
from agentwatch.delegation.tree import Tree
from agentwatch.disk import spellings
from agentwatch.shell import distrust_workspace
from agentwatch.sources import Batch, Health, Problem, Source
from agentwatch.state import may_exist, state_directory

if TYPE_CHECKING:
    import asyncio

    from agentwatch.decisions.ledger import DecisionMade
    from agentwatch.decisions.record import Params, Subject

    # Slow to load, and not needed for the first frame.
    from agentwatch.decisions.service import DecisionService, DecisionWatcher
    from agentwatch.delegation.decision import Action, Request
    from agentwatch.evidence.inspector import Inspector
    from agentwatch.history.acknowledgements import Acknowledgements
    from agentwatch.history.store import History, Recorder
    from agentwatch.requests.codex import CodexClient
    from agentwatch.requests.inbox import Inbox
    from agentwatch.sources.files.source import ParsedDocuments
    from agentwatch.sources.sessions.entries import RunTranscript

_CHUNK = 50  # events applied without a pause: a key pressed meanwhile has to wait for them
_REST_SECONDS = 0.01  # the longest pause between two chunks
_PASS_SHARE = 5.0  # while events wait, at most a fifth of the time goes into passes over all tasks
# Seconds between two ticks: while time alone changes something in the tree, and while it is known not to.
_TICK_SECONDS = (1.0, 5.0)


class Monitor:
    """A workspace being watched: its tree, its health, the texts of its documents, and decisions about it.

    `parsed` shares parsed documents. With `remembers`, the history is read first; `updates` also records in it, `scan`
    does not. Each `open_…` is called in a thread. `host` is the operator's name of the other machine, "" for this one.
    """

    def __init__(
        self,
        workspace: Path,
        settings: Settings,
        source: Source,
        clock: Callable[[], float],
        *,
        inspects: bool = False,
        parsed: ParsedDocuments | None = None,
        remembers: bool = False,
        open_desk: Callable[[], DecisionService] | None = None,
        open_shelf: Callable[[], Acknowledgements] | None = None,
        open_inbox: Callable[[], Inbox] | None = None,
        open_codex: Callable[[], CodexClient] | None = None,
        history_before: float = -math.inf,
        host: str = "",
    ):
        self.workspace, self.settings, self.host = workspace, settings, host
        self.spellings = () if host else spellings(workspace)
        if not host:
            distrust_workspace(workspace)
        # The path on the workspace's own machine, as far as known, and the name by which a command line takes it.
        self.directory = self.written = str(workspace)
        self._new_tree = partial(Tree, tree_rules(settings, history_before), host=host)
        self.tree = self._new_tree()
        self.health = Health("starting", f"connecting to {host}" if host else "reading the workspace")
        self.complaints: list[str] = []
        self.shelf: Acknowledgements | None = None
        self.clerk: DecisionWatcher | None = None
        self.inbox: Inbox | None = None
        self.tap: Callable[[Event], None] = lambda _: None  # called with every event after the tree has taken it
        self._source, self._clock, self._remembers = source, clock, remembers
        self._open_desk, self._open_shelf = open_desk, open_shelf
        self._open_inbox, self._open_codex = open_inbox, open_codex
        self.checks = inspects  # whether the claims of returns are checked on this machine
        self._inspector: Inspector | None = None
        if inspects:
            from agentwatch.evidence.inspector import Inspector

            self._inspector = Inspector(workspace, self.content, self.transcript, parsed)
        self._worker: Worker | None = None
        self._history: History | None = None
        self._recorder: Recorder | None = None
        self._codex: CodexClient | None = None
        # Batches to apply: the remaining events, the health after them, whether they replace the tree (`starts_over`).
        self._pending: deque[tuple[Iterator[Event], Health | None, bool]] = deque()
        self._is_stopped = False
        self._pass_at = 0.0  # when to pass over all tasks again, while events wait (monotonic seconds)
        self._unchecked: set[str] = set()

    # For screens and commands

    @property
    def title(self) -> str:
        """The name of the watched workspace; foreign."""
        return (self.workspace.name or str(self.workspace)) + "/"

    @property
    def watched(self) -> str:
        """The place in which tasks are looked for; foreign."""
        return f"{self.workspace} and everything below"

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems of reading files, sessions, the history, decisions and requests."""
        return (*self.health.problems, *self._own_problems())

    @property
    def shelves(self) -> list[Acknowledgements]:
        """The stores of acknowledged and snoozed tasks, one for each workspace."""
        return [] if self.shelf is None else [self.shelf]

    @property
    def connecting(self) -> int:
        """The number of hosts that have reported nothing so far and are not known to be unreachable."""
        return 0

    @property
    def notices(self) -> list[str]:
        """Messages about the files of agentwatch itself, a sentence each. May quote foreign text."""
        own = [problem.message for problem in self._own_problems()]
        return [*own, *self.health.notices, *self.complaints]

    @property
    def messages(self) -> list[str]:
        """The notices, and a sentence for each thing that the source cannot read."""
        return [*self.notices, *map(str, self.health.problems)]

    @property
    def is_settled(self) -> bool:
        """Whether everything present at the start has been read, applied and checked."""
        if self._pending or self.health.mode == "starting" or self._unchecked:
            return False
        return all(worker is None or worker.idle for worker in (self._worker, self._inspector))

    @property
    def connection_facts(self) -> Sequence[tuple[str, str]]:
        """The connection to the workspace's machine, for people, as pairs of label and text; foreign."""
        return self._source.connection_facts

    def behind(self, task_id: str) -> Monitor:  # noqa: ARG002 - used by the monitor of several workspaces
        """Return the monitor of the workspace to which this row or task belongs."""
        return self

    def reconnect(self) -> list[str]:
        """Try at once to reach the unreachable hosts, and return their names. Blocks for a moment."""
        if self.tree.lost_since is None:
            return []
        self._source.reconnect()
        return [self.host]

    def of(self, task_id: str) -> tuple[Monitor, str]:
        """Return the monitor of the workspace to which a task of the tree belongs, and the task's id there."""
        return self, task_id

    def content(self, version: Seen | Message) -> str | None:
        """Do as `text`, but return None if a host does not answer."""
        from agentwatch.decisions.errors import NoAnswerError

        with suppress(NoAnswerError):
            return self.text(version)
        return None

    def text(self, version: Seen | Message) -> str | None:
        """Return the text of a version or a message, None if it is not kept. May read. Raises NoAnswerError."""
        text = self._source.content(version.digest)
        return self._history.text(version.digest) if text is None and self._history else text

    def transcript(self, run: Run) -> RunTranscript | None:
        """Return the transcript of a run, None if there is none. Any thread may call it."""
        return self._source.transcript(run)

    def _own_problems(self) -> list[Problem]:
        parts = {
            "history": self._history,
            "decisions": self.clerk,
            "put aside": self.shelf,
            "requests": self.inbox,
            "codex": self._codex,
        }
        told = [(name, part.notice) for name, part in parts.items() if part and part.notice]
        return [Problem(name, str(state_directory(self.workspace)), notice) for name, notice in told]

    # Decisions of the operator

    async def decide(self, subject: Subject, action: Action, params: Params, note: str) -> DecisionMade:
        """Record a decision about an attempt as it was seen, and deliver it. Raises DecisionError."""
        now = self.returned_now(subject.task_id)
        return await self._record(lambda desk: desk.decide(subject, action, params, returned=now, note=note))

    def returned_now(self, task_id: str) -> Callable[[], str | None]:
        """Return a function for any thread that gives the sha256 of a task's current return. May raise
        ReturnChangedError."""
        from agentwatch.decisions.service import return_digest

        task = self.tree.tasks.get(task_id)
        returned = task.latest.returned if task else None
        if returned is None:
            return lambda: None
        if returned.stored:
            # A session's return is in no file of the workspace, so the tree has its latest state.
            return lambda: returned.digest
        return partial(return_digest, self.workspace, returned.path, self.settings.max_bytes)

    async def answer(self, request: Request, action: Action, params: Params | None, note: str) -> DecisionMade:
        """Record the answer to a request as it was shown, for the process that holds it. Raises DecisionError."""
        # For a request on a host, the host's own desk checks whether somebody still waits.
        gone = partial(self.inbox.gone, request) if self.inbox else lambda: None
        asked = self.tree.find_request(request.request_id)
        task_id, attempt = (asked[0].task_id, max(asked[0].attempt, 1)) if asked else (request.session_id, 1)
        return await self._record(
            lambda desk: desk.answer(request, action, params, task_id=task_id, attempt=attempt, gone=gone, note=note)
        )

    async def _record(self, record: Callable[[DecisionService], DecisionMade]) -> DecisionMade:
        import asyncio

        from agentwatch.decisions.errors import DecisionError

        if self.clerk is None:
            raise DecisionError("nothing can be decided here: this workspace is not being watched")
        try:
            return await asyncio.to_thread(record, self.clerk.desk)
        finally:
            # Even after an error, only the disk tells whether the decision was recorded.
            self.clerk.look_soon()

    # Once, for a command

    def scan(self, about: str | None = None) -> None:
        """Read everything once; with `about`, only one task's history and what is new. Blocks, and writes nothing."""
        self._open_parts()
        if self._open_shelf is not None:
            self.shelf = self._open_shelf()
            self._add(self.shelf.read_changes())
        if self._remembers:
            from agentwatch.history.store import History

            self._history = History(state_directory(self.workspace))
            recalled = self._history.recall(about)
            self._source.remember(recalled)
            self._add(recalled.events)
        self.load(self._source.scan())

    def load(self, batch: Batch) -> None:
        """Apply a whole batch at once, and check the claims in it. Blocks."""
        self.health = batch.health
        decisions = self.clerk.look(writes=False) if self.clerk else []
        requests = self.inbox.look() if self.inbox else []
        self._add((*batch.events, *decisions, *requests))
        if self._inspector and (targets := self._inspector.news_of(self.tree, self.tree.tasks)):
            self._add(self._inspector.check(targets))
        self.tree.apply(Tick(0, self._clock()))

    # As long as the screen lives

    async def updates(self) -> AsyncIterator[Set[str]]:
        """Run the source and apply its events until closed. Yields the ids of changed tasks, sometimes none."""
        import asyncio

        loop, arrived = asyncio.get_running_loop(), asyncio.Event()

        def put(events: Sequence[Event], health: Health | None = None, starts_over: bool = False) -> None:
            self._pending.append((iter(events), health, starts_over))
            arrived.set()

        def hand_over(*news: Any) -> None:
            loop.call_soon_threadsafe(put, *news)

        def observed(batch: Batch) -> None:
            # Runs in the source's thread, so events are recorded even if the event loop no longer accepts them.
            if self._recorder:
                self._recorder.is_complete |= batch.health.mode != "starting"
                # Sessions change all the time, and their stores keep them, so they are not recorded.
                self._recorder.note(one for one in batch.events if not isinstance(one, Ran))
            hand_over(*batch)

        worker = self._worker = Worker()
        try:
            if self._open_shelf is not None:
                # Load this before any task, so that an acknowledged task never asks, not even for a moment.
                self.shelf = await asyncio.to_thread(self._open_shelf)
                self._add(await asyncio.to_thread(self.shelf.begin))
                worker.add(self.shelf)
            if self._remembers:
                decided = await asyncio.to_thread(self._read_ledger)
                recalled = await self._recall(worker)
                if known := recalled | (self._apply(decided) if decided else frozenset()):
                    yield known
            self._source.start(observed)
            if self._inspector:
                self._inspector.start(hand_over)
            worker.start(hand_over)
            if self.clerk is None:
                await asyncio.to_thread(self._open_parts)
            for part in filter(None, (self.clerk, self.inbox)):
                worker.add(part)
            if self._open_codex is not None:
                self._codex = await asyncio.to_thread(self._open_codex)
                self._codex.start(hand_over)
            async for changed in self._apply_all(arrived):
                yield changed
        finally:
            # An event loop that ends cancels this task a second time; the shield lets the thread finish.
            await asyncio.shield(loop.run_in_executor(None, self._stop))

    def _read_ledger(self) -> Sequence[Event]:
        """Read the decisions before any task is there, so that a decided task never asks, not even for a moment."""
        if not may_exist(state_directory(self.workspace) / "decisions"):
            return ()
        self._open_parts()
        return self.clerk.poll() if self.clerk else ()

    def _open_parts(self) -> None:
        if self._open_desk is not None:
            from agentwatch.decisions.service import DecisionWatcher

            self.clerk = DecisionWatcher(self._open_desk(), self._clock)
        if self._open_inbox is not None:
            self.inbox = self._open_inbox()

    async def _recall(self, worker: Worker) -> Set[str]:
        """Replace the tree by the whole history at once, as a part would look like the present. Return changed ids."""
        import asyncio

        from agentwatch.history.store import Recorder

        self.health = self.health._replace(detail="reading the history")
        recorder = Recorder(self.workspace, self._source.content, read_only=self.settings.read_only)
        self._recorder = self._history = recorder
        recalled = await asyncio.to_thread(recorder.open)
        await asyncio.to_thread(self._source.remember, recalled)
        worker.add(recorder)
        events = recalled.events
        return self._replace(await asyncio.to_thread(self._tree_of, events), events) if events else frozenset()

    def _tree_of(self, events: Sequence[Event]) -> Tree:
        tree = self._new_tree()
        # Stop early if the user quits meanwhile.
        tree.apply(*takewhile(lambda _: not self._is_stopped, events))
        return tree

    def _replace(self, tree: Tree, events: Sequence[Event]) -> Set[str]:
        """Replace the tree by `tree`, which was built from `events`. Return the ids of tasks that may have changed."""
        # In a replay, going back also undoes later acknowledgements; otherwise they are kept.
        asides = {} if self.health.mode == "replay" else self.tree.asides
        tree.apply(Looked(0, self.tree.looked_at), *(Noted(0, 0.0, one, aside) for one, aside in asides.items()))
        others = {*self.tree.tasks, *tree.tasks}
        # Keep the same tree object, because others refer to it.
        vars(self.tree).update(vars(tree))
        for event in events:
            self.tap(event)
        return self._apply((), others)

    def _stop(self) -> None:
        self._is_stopped = True
        for part in (self._codex, self._source, self._inspector, self._worker):
            if part:
                part.stop()

    async def _apply_all(self, arrived: asyncio.Event) -> AsyncIterator[Set[str]]:
        import asyncio

        while True:
            with suppress(TimeoutError):
                # `asyncio.wait_for` would lose a cancellation that comes with the event, before Python 3.12.
                rests = self.health.mode != "starting" and self.tree.next_change_at == math.inf
                async with asyncio.timeout(_TICK_SECONDS[rests]):
                    await arrived.wait()
            arrived.clear()
            is_idle = not self._pending
            while self._pending or is_idle:
                began = time.monotonic()
                changed = await self._apply_next()
                if changed or not is_idle:
                    yield changed
                is_idle = False
                # A key takes a dozen rounds of the event loop, so half of the time is left to them.
                await asyncio.sleep(min(time.monotonic() - began, _REST_SECONDS) if self._pending else 0)

    async def _apply_next(self) -> Set[str]:
        """Apply the next waiting events or, without any, only the current time. Return the ids of changed tasks."""
        import asyncio

        if not self._pending:
            return self._apply(())
        waiting, health, starts_over = self._pending[0]
        events = tuple(islice(waiting, None if starts_over else _CHUNK))
        tree = await asyncio.to_thread(self._tree_of, events) if starts_over else None
        if starts_over or len(events) < _CHUNK:
            # The health changes only once the whole batch is in the tree.
            self._pending.popleft()
            self.health = health or self.health
        return self._apply(events) if tree is None else self._replace(tree, events)

    def _apply(self, events: Sequence[Event], others: Set[str] = frozenset()) -> Set[str]:
        """Apply events and the current time, then queue the checks and recordings that follow. Return changed ids."""
        self._add(events)
        began = time.monotonic()
        if self._pending and not others and began < self._pass_at:
            return frozenset()
        changed = others | self.tree.apply(Tick(0, self._clock()))
        self._pass_at = began + _PASS_SHARE * (time.monotonic() - began)
        if self._inspector:
            self._unchecked |= changed
            # Checks would delay the first look, so they begin after it.
            if self.health.mode != "starting":
                if targets := self._inspector.news_of(self.tree, self._unchecked):
                    self._inspector.want(targets)
                self._unchecked.clear()
        tasks = [task for task_id in changed if (task := self.tree.tasks.get(task_id)) is not None]
        if self.clerk:
            self.clerk.note_acted(tasks)
        if self._recorder:
            self._recorder.note(one for one in events if isinstance(one, Checked))
            self._recorder.report(task for task in tasks if _has_new_fault(task))
        return changed

    def _add(self, events: Sequence[Event]) -> None:
        self.tree.add_events(events)
        for event in events:
            self.tap(event)


def tree_rules(settings: Settings, history_before: float = -math.inf) -> Rules:
    """Return the rules by which a tree judges, from the settings."""
    return Rules(
        strict=settings.strict,
        stale_after=settings.stale_after,
        max_retries=settings.retry_max_retries,
        low_confidence=settings.low_confidence,
        demands=settings.require_contract,
        history_before=history_before,
    )


def _has_new_fault(task: Task) -> bool:
    """Whether a task that is not past has a fault to report: an invalid return that was first seen in this run, or a
    missing artifact, which may be noticed only now."""
    returned = task.latest.returned
    if returned is None or task.past:
        return False
    return (returned.seq >= 0 and task.own_state is State.INVALID) or bool(missing_artifacts(task))
