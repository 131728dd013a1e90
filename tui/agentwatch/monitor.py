"""One workspace being watched: its sources, its tree and its history running together, and what is decided about it."""

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
from agentwatch.shell import watch_workspace
from agentwatch.sources import Batch, Health, Problem, Source
from agentwatch.state import is_there, state_directory

if TYPE_CHECKING:
    import asyncio

    from agentwatch.decisions.ledger import DecisionMade
    from agentwatch.decisions.record import Params, Subject

    # These take a while to load, and the first frame needs none of them.
    from agentwatch.decisions.service import DecisionService, DecisionWatcher
    from agentwatch.delegation.decision import Action, Request
    from agentwatch.evidence.inspector import Inspector
    from agentwatch.history.acknowledgements import Acknowledgements
    from agentwatch.history.store import History, Recorder
    from agentwatch.requests.codex import CodexClient
    from agentwatch.requests.inbox import Inbox
    from agentwatch.sources.files.source import ParsedDocuments
    from agentwatch.sources.sessions.entries import RunTranscript

_CHUNK = 50  # events that are applied at a stretch: a key pressed meanwhile waits no longer than that takes
_REST_SECONDS = 0.01  # between two chunks at most
_PASS_SHARE = 5.0  # while events wait, a fifth of the time at most goes into the pass over all tasks
# Between two looks at the clock while time changes something in the tree, and while it does not, as far as known.
_TICK_SECONDS = (1.0, 5.0)


class Monitor:
    """A workspace being watched: its tree, its health, the texts of its documents, what may be decided.

    `parsed` may know what files say. With `remembers`, the history comes first: `updates` records in it, `scan` only
    reads it. Each `open_…` is called in a thread. `host` is the operator's name of another machine that it is on.
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
            watch_workspace(workspace)
        # Its path on its own machine, as far as that is known, and what a command line calls it.
        self.directory = self.written = str(workspace)
        self._new_tree = partial(Tree, rules_of(settings, history_before), host=host)
        self.tree = self._new_tree()
        self.health = Health("starting", f"connecting to {host}" if host else "reading the workspace")
        self.complaints: list[str] = []
        self.shelf: Acknowledgements | None = None
        self.clerk: DecisionWatcher | None = None
        self.inbox: Inbox | None = None
        self.tap: Callable[[Event], None] = lambda _: None  # is called with every event that the tree has taken
        self._source, self._clock, self._remembers = source, clock, remembers
        self._open_desk, self._open_shelf = open_desk, open_shelf
        self._open_inbox, self._open_codex = open_inbox, open_codex
        self.checks = inspects  # whether what returns claim is checked here
        self._inspector: Inspector | None = None
        if inspects:
            from agentwatch.evidence.inspector import Inspector

            self._inspector = Inspector(workspace, self.content, self.transcript, parsed)
        self._worker: Worker | None = None
        self._history: History | None = None
        self._recorder: Recorder | None = None
        self._codex: CodexClient | None = None
        # Batches that are being applied: the rest of their events, the health behind them, whether it is `anew`.
        self._pending: deque[tuple[Iterator[Event], Health | None, bool]] = deque()
        self._is_stopped = False
        self._pass_at = 0.0  # when to pass over all tasks again, while events wait (monotonic seconds)
        self._unchecked: set[str] = set()

    # Questions of the faces

    @property
    def title(self) -> str:
        """The name of the watched workspace; foreign."""
        return (self.workspace.name or str(self.workspace)) + "/"

    @property
    def watched(self) -> str:
        """Where tasks are looked for; foreign."""
        return f"{self.workspace} and everything below"

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Problems of reading: of the files and sessions, of the history and of the decisions."""
        return (*self.health.problems, *self._own_problems())

    @property
    def shelves(self) -> list[Acknowledgements]:
        """All in which something can be put aside."""
        return [] if self.shelf is None else [self.shelf]

    @property
    def connecting(self) -> int:
        """How many hosts have said nothing so far, though it is not known that they are off."""
        return 0

    @property
    def notices(self) -> list[str]:
        """Messages about the files of agentwatch itself, a sentence each. May quote foreign text."""
        own = [problem.message for problem in self._own_problems()]
        return [*own, *self.health.notices, *self.complaints]

    @property
    def messages(self) -> list[str]:
        """The notices, and a sentence for each thing that its source cannot read."""
        return [*self.notices, *map(str, self.health.problems)]

    @property
    def is_settled(self) -> bool:
        """Whether everything that there was at first has been looked at, and checked, and taken in."""
        if self._pending or self.health.mode == "starting" or self._unchecked:
            return False
        return all(worker is None or worker.idle for worker in (self._worker, self._inspector))

    @property
    def about(self) -> Sequence[tuple[str, str]]:
        """The way to the machine that it is on, for people, by labels; foreign."""
        return self._source.about

    def behind(self, task_id: str) -> Monitor:  # noqa: ARG002 - of several each has a row
        """The monitor of the workspace whose row, or one of whose tasks, this is."""
        return self

    def reconnect(self) -> list[str]:
        """Try at once to reach the hosts that cannot be. Returns their names. Blocks for a moment."""
        if self.tree.lost_since is None:
            return []
        self._source.reconnect()
        return [self.host]

    def of(self, task_id: str) -> tuple[Monitor, str]:
        """The monitor of the workspace that a task of the tree belongs to, and the task's id there."""
        return self, task_id

    def content(self, version: Seen | Message) -> str | None:
        """The same as `text`; None where a host does not give it now, too."""
        from agentwatch.decisions.errors import NoAnswerError

        with suppress(NoAnswerError):
            return self.text(version)
        return None

    def text(self, version: Seen | Message) -> str | None:
        """The text that a version or a message had, None where it is not kept; may read. Raises NoAnswerError."""
        text = self._source.content(version.digest)
        return self._history.text(version.digest) if text is None and self._history else text

    def transcript(self, run: Run) -> RunTranscript | None:
        """The transcript of a run, None where there is none to be had. Any thread may call it."""
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
        """How to get the sha256 of the return of a task as it is now, from any thread. May raise ReturnChangedError."""
        from agentwatch.decisions.service import return_digest

        task = self.tree.tasks.get(task_id)
        returned = task.latest.returned if task else None
        if returned is None:
            return lambda: None
        if returned.stored:
            # No file of the workspace holds the return of a session: the tree has its latest state.
            return lambda: returned.digest
        return partial(return_digest, self.workspace, returned.path, self.settings.max_bytes)

    async def answer(self, request: Request, action: Action, params: Params | None, note: str) -> DecisionMade:
        """Record the answer to a request as it was shown, for whoever holds it. Raises DecisionError."""
        # Of a host, its own desk looks whether somebody still waits for it.
        gone = partial(self.inbox.gone, request) if self.inbox else lambda: None
        asked = self.tree.request(request.request_id)
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
            # Also where it failed: the truth is on disk, whatever was said.
            self.clerk.look_soon()

    # Once, for a command

    def scan(self, about: str | None = None) -> None:
        """Look once: at everything, or at the directories of one task and what is new. Blocks, and writes nothing."""
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
        """Run the source and apply what it observes until closed. Gives ids of tasks that have changed, or none."""
        import asyncio

        loop, arrived = asyncio.get_running_loop(), asyncio.Event()

        def put(events: Sequence[Event], health: Health | None = None, anew: bool = False) -> None:
            self._pending.append((iter(events), health, anew))
            arrived.set()

        def hand_over(*news: Any) -> None:
            loop.call_soon_threadsafe(put, *news)

        def observed(batch: Batch) -> None:
            # In the source's thread: it counts as known, whether the loop still takes it or not.
            if self._recorder:
                self._recorder.is_complete |= batch.health.mode != "starting"
                # Sessions are not recorded, and they go on all the time.
                self._recorder.note(one for one in batch.events if not isinstance(one, Ran))
            hand_over(*batch)

        worker = self._worker = Worker()
        try:
            if self._open_shelf is not None:
                # Before anything is there to ask: what is put aside never does so for a moment.
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
            # The end of an event loop cancels once more what still ends: the thread goes on all the same.
            await asyncio.shield(loop.run_in_executor(None, self._stop))

    def _read_ledger(self) -> Sequence[Event]:
        """The decisions, before anything is there to ask: what is decided never does so for a moment."""
        if not is_there(state_directory(self.workspace) / "decisions"):
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
        """Make a tree of the history. Nothing of it is shown before all is known: the past would look like now."""
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
        # Whoever leaves meanwhile does not wait for it.
        tree.apply(*takewhile(lambda _: not self._is_stopped, events))
        return tree

    def _replace(self, tree: Tree, events: Sequence[Event]) -> Set[str]:
        """Have a tree of these events take the place of the other. Returns the tasks that may be different then."""
        # To go back in a recording undoes what was put aside later.
        asides = {} if self.health.mode == "replay" else self.tree.asides
        tree.apply(Looked(0, self.tree.looked_at), *(Noted(0, 0.0, one, aside) for one, aside in asides.items()))
        others = {*self.tree.tasks, *tree.tasks}
        # It stays the same object for all who show it.
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
                # Not `wait_for`: before Python 3.12 it loses a cancellation that comes together with the event.
                rests = self.health.mode != "starting" and self.tree.holds_until == math.inf
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
                # A key takes a dozen rounds of the event loop: half of the time is theirs.
                await asyncio.sleep(min(time.monotonic() - began, _REST_SECONDS) if self._pending else 0)

    async def _apply_next(self) -> Set[str]:
        """Apply the next events that wait, or that time has passed. Returns the tasks that have changed."""
        import asyncio

        if not self._pending:
            return self._apply(())
        waiting, health, anew = self._pending[0]
        events = tuple(islice(waiting, None if anew else _CHUNK))
        tree = await asyncio.to_thread(self._tree_of, events) if anew else None
        if anew or len(events) < _CHUNK:
            # It is not live before all of it is in the tree.
            self._pending.popleft()
            self.health = health or self.health
        return self._apply(events) if tree is None else self._replace(tree, events)

    def _apply(self, events: Sequence[Event], others: Set[str] = frozenset()) -> Set[str]:
        """Apply events and the time, have checked and recorded what follows. Returns tasks changed, and the others."""
        self._add(events)
        began = time.monotonic()
        if self._pending and not others and began < self._pass_at:
            return frozenset()
        changed = others | self.tree.apply(Tick(0, self._clock()))
        self._pass_at = began + _PASS_SHARE * (time.monotonic() - began)
        if self._inspector:
            self._unchecked |= changed
            # Not before the first look is over, which that would delay.
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
        self.tree.add(events)
        for event in events:
            self.tap(event)


def rules_of(settings: Settings, history_before: float = -math.inf) -> Rules:
    """The rules by which a tree judges, as the settings say."""
    return Rules(
        strict=settings.strict,
        stale_after=settings.stale_after,
        max_retries=settings.retry_max_retries,
        low_confidence=settings.low_confidence,
        demands=settings.require_contract,
        history_before=history_before,
    )


def _has_new_fault(task: Task) -> bool:
    """The return breaks its contract, is no history, and was seen in this run: what is recalled was reported before.
    That an artifact is missing may have come out only now."""
    returned = task.latest.returned
    if returned is None or task.past:
        return False
    return (returned.seq >= 0 and task.own_state is State.INVALID) or bool(missing_artifacts(task))
