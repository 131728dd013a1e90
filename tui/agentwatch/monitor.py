"""Watches one workspace: applies events to its tree of tasks, records the events, and starts checks of claims."""

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

    # These modules are slow to load, and not needed for the first frame.
    from agentwatch.decisions.service import DecisionService, DecisionWatcher
    from agentwatch.delegation.decision import Action, Request
    from agentwatch.evidence.inspector import Inspector
    from agentwatch.history.acknowledgements import Acknowledgements
    from agentwatch.history.store import History, Recorder
    from agentwatch.requests.codex import CodexClient
    from agentwatch.requests.inbox import Inbox
    from agentwatch.sources.files.source import ParsedDocuments
    from agentwatch.sources.sessions.entries import RunTranscript

_CHUNK = 50  # the most events that are applied before a pause; the user's keys are handled only in pauses
_REST_SECONDS = 0.01  # the longest pause between two chunks
_PASS_SHARE = 5.0  # while events wait, passes over all tasks take at most a fifth of the time
# Seconds between two ticks. The second value is used while only new events can change the tree.
_TICK_SECONDS = (1.0, 5.0)


class Monitor:
    """A watched workspace: the tree of its tasks, its health, the texts of its documents, and its decisions.

    `parsed` is a cache of parsed documents. With `remembers`, the history is read first, and `updates` adds to it.
    Each function `open_…` may block. `host` is the name of another machine, or "" for this machine.
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
        open_acknowledgements: Callable[[], Acknowledgements] | None = None,
        open_inbox: Callable[[], Inbox] | None = None,
        open_codex: Callable[[], CodexClient] | None = None,
        history_before: float = -math.inf,
        host: str = "",
    ):
        self.workspace, self.settings, self.host = workspace, settings, host
        self.spellings = () if host else spellings(workspace)
        if not host:
            distrust_workspace(workspace)
        # `directory` is the workspace's path on its own machine. `written` is its path or address on a command line.
        self.directory = self.written = str(workspace)
        self._new_tree = partial(Tree, tree_rules(settings, history_before), host=host)
        self.tree = self._new_tree()
        self.health = Health("starting", f"connecting to {host}" if host else "reading the workspace")
        self.complaints: list[str] = []
        self.acknowledgements: Acknowledgements | None = None
        self.decision_watcher: DecisionWatcher | None = None
        self.inbox: Inbox | None = None
        self.on_event: Callable[[Event], None] = lambda _: None  # called with each event after it was added to the tree
        self._source, self._clock, self._remembers = source, clock, remembers
        self._open_desk, self._open_acknowledgements = open_desk, open_acknowledgements
        self._open_inbox, self._open_codex = open_inbox, open_codex
        self.checks = inspects  # whether this machine checks the claims of returns
        self._inspector: Inspector | None = None
        if inspects:
            from agentwatch.evidence.inspector import Inspector

            self._inspector = Inspector(workspace, self.content, self.transcript, parsed)
        self._worker: Worker | None = None
        self._history: History | None = None
        self._recorder: Recorder | None = None
        self._codex: CodexClient | None = None
        # The batches to apply: the remaining events, the health after the batch, and whether it replaces the tree.
        self._pending: deque[tuple[Iterator[Event], Health | None, bool]] = deque()
        self._is_stopped = False
        self._next_pass_at = 0.0  # while events wait, no pass over all tasks begins before this (monotonic) time
        self._unchecked: set[str] = set()

    # For screens and commands

    @property
    def title(self) -> str:
        """The name of the watched workspace (untrusted)."""
        return (self.workspace.name or str(self.workspace)) + "/"

    @property
    def watched(self) -> str:
        """A description of the directories that are searched for tasks (untrusted)."""
        return f"{self.workspace} and everything below"

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems in reading files, sessions, the history, decisions and requests."""
        return (*self.health.problems, *self._problems_of_parts())

    @property
    def all_acknowledgements(self) -> list[Acknowledgements]:
        """The stores of acknowledged and snoozed tasks, one for each workspace."""
        return [] if self.acknowledgements is None else [self.acknowledgements]

    @property
    def connecting(self) -> int:
        """The number of hosts to which a connection is still being made."""
        return 0

    @property
    def notices(self) -> list[str]:
        """Messages for the operator, a sentence each. The messages may quote untrusted text."""
        own = [problem.message for problem in self._problems_of_parts()]
        return [*own, *self.health.notices, *self.complaints]

    @property
    def messages(self) -> list[str]:
        """The notices, and a sentence for each file or session that cannot be read."""
        return [*self.notices, *map(str, self.health.problems)]

    @property
    def is_settled(self) -> bool:
        """Whether everything was read, applied and checked, so that nothing is left to do."""
        if self._pending or self.health.mode == "starting" or self._unchecked:
            return False
        return all(worker is None or worker.is_idle for worker in (self._worker, self._inspector))

    @property
    def connection_facts(self) -> Sequence[tuple[str, str]]:
        """Pairs of a label and an untrusted text, which describe the connection to the workspace's machine."""
        return self._source.connection_facts

    def monitor_of_row(self, task_id: str) -> Monitor:  # noqa: ARG002 - used by the monitor of several workspaces
        """Return the monitor of the workspace to which a row of the screen belongs."""
        return self

    def reconnect(self) -> list[str]:
        """Try now to connect to all unreachable hosts, and return their names. Blocks for a moment."""
        if self.tree.lost_since is None:
            return []
        self._source.reconnect()
        return [self.host]

    def resolve_task(self, task_id: str) -> tuple[Monitor, str]:
        """Return the monitor of the workspace to which a task belongs, and the id of the task in that workspace."""
        return self, task_id

    def content(self, version: Seen | Message) -> str | None:
        """Return the text of a message or a file's version. Return None if it is lost, or its host does not answer."""
        from agentwatch.decisions.errors import NoAnswerError

        with suppress(NoAnswerError):
            return self.text(version)
        return None

    def text(self, version: Seen | Message) -> str | None:
        """Return the text as `content` does, but raise NoAnswerError if the host does not answer. May block."""
        text = self._source.content(version.digest)
        return self._history.text(version.digest) if text is None and self._history else text

    def transcript(self, run: Run) -> RunTranscript | None:
        """Return the transcript of a run, or None if there is none. Any thread may call this."""
        return self._source.transcript(run)

    def _problems_of_parts(self) -> list[Problem]:
        parts = {
            "history": self._history,
            "decisions": self.decision_watcher,
            "put aside": self.acknowledgements,
            "requests": self.inbox,
            "codex": self._codex,
        }
        notices = [(name, part.notice) for name, part in parts.items() if part and part.notice]
        return [Problem(name, str(state_directory(self.workspace)), notice) for name, notice in notices]

    # Decisions of the operator

    async def decide(self, subject: Subject, action: Action, params: Params, note: str) -> DecisionMade:
        """Record a decision about the attempt that the operator saw, and deliver it. May raise DecisionError."""
        now = self.digest_reader(subject.task_id)
        return await self._record(lambda desk: desk.decide(subject, action, params, find_digest=now, note=note))

    def digest_reader(self, task_id: str) -> Callable[[], str | None]:
        """Return a function that reads the sha256 of a task's current return. Any thread may call the function.
        The function raises ReturnChangedError if the file cannot be read."""
        from agentwatch.decisions.service import return_digest

        task = self.tree.tasks.get(task_id)
        returned = task.latest.returned if task else None
        if returned is None:
            return lambda: None
        if returned.stored:
            # The return is part of a session, so the tree always has the current digest.
            return lambda: returned.digest
        return partial(return_digest, self.workspace, returned.path, self.settings.max_bytes)

    async def answer(self, request: Request, action: Action, params: Params | None, note: str) -> DecisionMade:
        """Record the operator's answer to a program's request. May raise DecisionError."""
        # If the request is on a host, the host itself checks whether the program still waits.
        why = partial(self.inbox.why_gone, request) if self.inbox else lambda: None
        asked = self.tree.find_request(request.request_id)
        task_id, attempt = (asked[0].task_id, max(asked[0].attempt, 1)) if asked else (request.session_id, 1)
        return await self._record(
            lambda desk: desk.answer(request, action, params, task_id=task_id, attempt=attempt, why_gone=why, note=note)
        )

    async def _record(self, record: Callable[[DecisionService], DecisionMade]) -> DecisionMade:
        import asyncio

        from agentwatch.decisions.errors import DecisionError

        if self.decision_watcher is None:
            raise DecisionError("nothing can be decided here: this workspace is not being watched")
        try:
            return await asyncio.to_thread(record, self.decision_watcher.desk)
        finally:
            # Read the ledger again even after an error: the decision may have been recorded.
            self.decision_watcher.poll_soon()

    # For a command, which reads once

    def scan(self, about: str | None = None) -> None:
        """Read the workspace once. If `about` is a task id, read only this task's history. Blocks. Writes nothing."""
        self._open_watchers()
        if self._open_acknowledgements is not None:
            self.acknowledgements = self._open_acknowledgements()
            self._add(self.acknowledgements.read_changes())
        if self._remembers:
            from agentwatch.history.store import History

            self._history = History(state_directory(self.workspace))
            recalled = self._history.recall(about)
            self._source.remember(recalled)
            self._add(recalled.events)
        self.apply_batch(self._source.scan())

    def apply_batch(self, batch: Batch) -> None:
        """Apply a batch of events, and all decisions and requests. Then check the claims of all tasks. Blocks."""
        self.health = batch.health
        decisions = self.decision_watcher.read_changes(writes=False) if self.decision_watcher else []
        requests = self.inbox.read_changes() if self.inbox else []
        self._add((*batch.events, *decisions, *requests))
        if self._inspector and (targets := self._inspector.find_new_targets(self.tree, self.tree.tasks)):
            self._add(self._inspector.check(targets))
        self.tree.apply(Tick(0, self._clock()))

    # For a screen, which stays open

    async def updates(self) -> AsyncIterator[Set[str]]:
        """Watch the workspace until the iterator is closed. When the tree changes, yield the ids of changed tasks."""
        import asyncio

        loop, arrived = asyncio.get_running_loop(), asyncio.Event()

        def enqueue(events: Sequence[Event], health: Health | None = None, starts_over: bool = False) -> None:
            self._pending.append((iter(events), health, starts_over))
            arrived.set()

        def hand_over(*news: Any) -> None:
            loop.call_soon_threadsafe(enqueue, *news)

        def take_batch(batch: Batch) -> None:
            # This runs in the source's thread, so it can record events even after the event loop has ended.
            if self._recorder:
                self._recorder.is_complete |= batch.health.mode != "starting"
                # Runs are not recorded: a run changes all the time, and its agent program stores it.
                self._recorder.queue_events(one for one in batch.events if not isinstance(one, Ran))
            hand_over(*batch)

        worker = self._worker = Worker()
        try:
            if self._open_acknowledgements is not None:
                # Load acknowledgements first. Otherwise, an acknowledged task would need the operator for a moment.
                self.acknowledgements = await asyncio.to_thread(self._open_acknowledgements)
                self._add(await asyncio.to_thread(self.acknowledgements.read_first))
                worker.add(self.acknowledgements)
            if self._remembers:
                decided = await asyncio.to_thread(self._read_ledger)
                recalled = await self._recall(worker)
                if known := recalled | (self._apply(decided) if decided else frozenset()):
                    yield known
            self._source.start(take_batch)
            if self._inspector:
                self._inspector.start(hand_over)
            worker.start(hand_over)
            if self.decision_watcher is None:
                await asyncio.to_thread(self._open_watchers)
            for part in filter(None, (self.decision_watcher, self.inbox)):
                worker.add(part)
            if self._open_codex is not None:
                self._codex = await asyncio.to_thread(self._open_codex)
                self._codex.start(hand_over)
            async for changed in self._apply_all(arrived):
                yield changed
        finally:
            # The shield lets the thread finish even if the ending event loop cancels this task again.
            await asyncio.shield(loop.run_in_executor(None, self._stop))

    def _read_ledger(self) -> Sequence[Event]:
        """Return the recorded decisions. Without them, decided tasks would need the operator for a moment."""
        if not may_exist(state_directory(self.workspace) / "decisions"):
            return ()
        self._open_watchers()
        return self.decision_watcher.poll() if self.decision_watcher else ()

    def _open_watchers(self) -> None:
        if self._open_desk is not None:
            from agentwatch.decisions.service import DecisionWatcher

            self.decision_watcher = DecisionWatcher(self._open_desk(), self._clock)
        if self._open_inbox is not None:
            self.inbox = self._open_inbox()

    async def _recall(self, worker: Worker) -> Set[str]:
        """Read the whole history, and build the tree from it. Return the ids of changed tasks."""
        import asyncio

        from agentwatch.history.store import Recorder

        self.health = self.health._replace(detail="reading the history")
        recorder = Recorder(self.workspace, self._source.content, read_only=self.settings.read_only)
        self._recorder = self._history = recorder
        recalled = await asyncio.to_thread(recorder.open)
        await asyncio.to_thread(self._source.remember, recalled)
        worker.add(recorder)
        events = recalled.events
        return self._replace(await asyncio.to_thread(self._build_tree, events), events) if events else frozenset()

    def _build_tree(self, events: Sequence[Event]) -> Tree:
        tree = self._new_tree()
        # Stop early if the user quits.
        tree.apply(*takewhile(lambda _: not self._is_stopped, events))
        return tree

    def _replace(self, tree: Tree, events: Sequence[Event]) -> Set[str]:
        """Replace the tree by `tree`, which was built from `events`. Return the ids of all tasks of both trees."""
        # Keep the acknowledgements, but not in a replay: if it goes back in time, later acknowledgements are undone.
        asides = {} if self.health.mode == "replay" else self.tree.asides
        tree.apply(Looked(0, self.tree.looked_at), *(Noted(0, 0.0, one, aside) for one, aside in asides.items()))
        others = {*self.tree.tasks, *tree.tasks}
        # Change the tree in place, because other objects refer to it.
        vars(self.tree).update(vars(tree))
        for event in events:
            self.on_event(event)
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
                # Before Python 3.12 `asyncio.wait_for` may lose a cancellation, so `asyncio.timeout` is used.
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
                # Pause as long as the work took, but not too long. Meanwhile the event loop handles keys.
                await asyncio.sleep(min(time.monotonic() - began, _REST_SECONDS) if self._pending else 0)

    async def _apply_next(self) -> Set[str]:
        """Apply the next waiting events. If no event waits, apply only the time. Return the ids of changed tasks."""
        import asyncio

        if not self._pending:
            return self._apply(())
        waiting, health, starts_over = self._pending[0]
        events = tuple(islice(waiting, None if starts_over else _CHUNK))
        tree = await asyncio.to_thread(self._build_tree, events) if starts_over else None
        if starts_over or len(events) < _CHUNK:
            # The new health is shown only after the whole batch is in the tree.
            self._pending.popleft()
            self.health = health or self.health
        return self._apply(events) if tree is None else self._replace(tree, events)

    def _apply(self, events: Sequence[Event], others: Set[str] = frozenset()) -> Set[str]:
        """Apply events and the current time, then queue checks and recordings. Return the ids of changed tasks."""
        self._add(events)
        began = time.monotonic()
        if self._pending and not others and began < self._next_pass_at:
            return frozenset()
        changed = others | self.tree.apply(Tick(0, self._clock()))
        self._next_pass_at = began + _PASS_SHARE * (time.monotonic() - began)
        if self._inspector:
            self._unchecked |= changed
            # Begin no check before the first reading has ended, because checks would delay it.
            if self.health.mode != "starting":
                if targets := self._inspector.find_new_targets(self.tree, self._unchecked):
                    self._inspector.request_checks(targets)
                self._unchecked.clear()
        tasks = [task for task_id in changed if (task := self.tree.tasks.get(task_id)) is not None]
        if self.decision_watcher:
            self.decision_watcher.queue_acted(tasks)
        if self._recorder:
            self._recorder.queue_events(one for one in events if isinstance(one, Checked))
            self._recorder.queue_faults(task for task in tasks if _has_new_fault(task))
        return changed

    def _add(self, events: Sequence[Event]) -> None:
        self.tree.add_events(events)
        for event in events:
            self.on_event(event)


def tree_rules(settings: Settings, history_before: float = -math.inf) -> Rules:
    """Convert settings to the rules by which a tree judges tasks."""
    return Rules(
        strict=settings.strict,
        stale_after=settings.stale_after,
        max_retries=settings.retry_max_retries,
        low_confidence=settings.low_confidence,
        demands=settings.require_contract,
        history_before=history_before,
    )


def _has_new_fault(task: Task) -> bool:
    """Tell whether a task lacks an artifact, or got an invalid return since the start. Ignore tasks of the history."""
    returned = task.latest.returned
    if returned is None or task.past:
        return False
    return (returned.seq >= 0 and task.own_state is State.INVALID) or bool(missing_artifacts(task))
