"""One workspace being watched: its sources, its tree and its history running together, and what is decided about it."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence, Set
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentwatch.config import Settings
from agentwatch.delegation.events import Event, Ran, Requested, Rules, Tick
from agentwatch.delegation.links import missing_artifacts
from agentwatch.delegation.run import Message, Run
from agentwatch.delegation.task import State, Task, Version
from agentwatch.delegation.tree import Tree
from agentwatch.evidence.inspector import Checks, Inspector
from agentwatch.shell import watch_workspace
from agentwatch.sources import Batch, Health, Problem, Source
from agentwatch.sources.files.walk import to_name
from agentwatch.state import state_directory

if TYPE_CHECKING:
    import asyncio

    # These take a while to load, and the first frame needs none of them.
    from agentwatch.decisions.clerk import Clerk
    from agentwatch.decisions.face import OperatorDesk
    from agentwatch.decisions.herald import Herald
    from agentwatch.decisions.ledger import DecisionMade
    from agentwatch.decisions.record import Params, Subject
    from agentwatch.delegation.decision import Action
    from agentwatch.delegation.request import Request
    from agentwatch.evidence.claims import ParsedClaims
    from agentwatch.history.acknowledgements import Acknowledgements
    from agentwatch.history.store import HistoryWorker
    from agentwatch.requests.codex import CodexClient
    from agentwatch.requests.source import Inbox
    from agentwatch.sources.sessions.following import RunTranscript

_CHUNK: Final = 50
"""Events that are applied at a stretch: a key pressed meanwhile waits no longer than that takes."""
_REST_SECONDS: Final = 0.01
"""Between two chunks at most."""
_PASS_SHARE: Final = 5.0
"""While events wait, a fifth of the time at most goes into the pass over all tasks."""
_TICK_SECONDS: Final = (1.0, 5.0)
"""Between two looks at the clock while time changes something in the tree, and while it does not, as far as known."""


class _Chunk(NamedTuple):
    """Events that are to be applied at a stretch, and the health with the last of a batch; `anew` as in `Batch`."""

    events: Sequence[Event]
    health: Health | None
    anew: bool


class Monitor:
    """A workspace being watched: its tree, its health, the texts of its documents, what may be decided.

    With `inspects`, the claims of the returns are held against the disk and git; `parsed` may know what files say.
    With `remembers`, the history of the workspace, which lies in the user's state directory, comes first: `updates`
    records in it, `scan` only reads it. With `keeps_deleted`, tasks outlive their files all the same.
    What is silent since `history_before` (epoch seconds) is past.
    With `open_desk`, which is called in a thread, the tree knows the operator's decisions, and `decide` makes one. With
    `open_shelf`, which is called there, too, it knows what the operator has looked at and put aside; with `open_inbox`
    what programs ask, and `answer` answers that. With `open_codex`, `updates` holds what Codex asks.
    `host` is what the operator calls the machine that the workspace is on, "" for this one.
    """

    def __init__(
        self,
        workspace: Path,
        settings: Settings,
        source: Source,
        clock: Callable[[], float],
        *,
        inspects: bool = False,
        parsed: ParsedClaims | None = None,
        remembers: bool = False,
        keeps_deleted: bool = False,
        open_desk: Callable[[], OperatorDesk] | None = None,
        open_shelf: Callable[[], Acknowledgements] | None = None,
        open_inbox: Callable[[], Inbox] | None = None,
        open_codex: Callable[[], CodexClient] | None = None,
        history_before: float = -math.inf,
        host: str = "",
    ) -> None:
        self.workspace, self.settings, self.host = workspace, settings, host
        if not host:
            watch_workspace(workspace)
        self.directory = str(workspace)
        """Its path on the machine that it is on, as far as that is known."""
        self.written = str(workspace)
        """By what a command line names it."""
        rules, keeps = rules_of(settings, history_before), remembers or keeps_deleted
        self._new_tree = partial(Tree, rules, remembers=keeps, host=host)
        self.tree = self._new_tree()
        self.health = Health("starting", f"{host} has not answered yet" if host else "reading the workspace")
        self.in_sight: Callable[[], Collection[str]] = tuple
        """Tells the ids of the tasks that somebody sees now: they are judged first. Any thread may call it."""
        self.complaints: list[str] = []
        """Messages of the screen or command itself, a sentence each."""
        self.shelf: Acknowledgements | None = None
        """Acknowledgements, once `updates` runs; None where nothing can be."""
        self.clerk: Clerk | None = None
        """Keeps the tree told of the decisions, once `updates` runs; None where nothing can be decided."""
        self.inbox: Inbox | None = None
        """Keeps the tree told of what programs ask, once `updates` runs; None where nothing can be answered."""
        self.tap: Callable[[Event], None] = lambda _: None
        """Is called with every event that the tree has taken."""
        self.tick_seconds = _TICK_SECONDS
        self.turn: AbstractAsyncContextManager[object] = nullcontext()
        """Is held while events are applied: of several monitors that share it, one at a time does, and a key waits for
        one chunk instead of one of each."""
        self._source, self._clock, self._remembers = source, clock, remembers
        self._open_desk, self._open_shelf = open_desk, open_shelf
        self._open_inbox, self._open_codex = open_inbox, open_codex
        self._inspector: Inspector | None = None
        if inspects:
            self._inspector = Inspector(
                workspace,
                self.content,
                parsed,
                self.transcript,
                in_sight=lambda: self.in_sight(),  # noqa: PLW0108  it is another one later
            )
        self._keeper: HistoryWorker | None = None
        self._codex: CodexClient | None = None
        self._herald: Herald | None = None
        self._history_problem: str | None = None
        """Why `scan` could not read the history; else the keeper has it in its notice."""
        self._pending: deque[_Chunk] = deque()
        self._pass_at = 0.0
        """When to pass over all tasks again, while events wait (monotonic seconds)."""
        self._latest_seq = 0
        self._unchecked: set[str] = set()
        """The tasks whose returns may have to be checked."""

    # What faces ask

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
        own = {
            "history": self._history_problem,
            "decisions": self.clerk and self.clerk.notice,
            "put aside": self.shelf and self.shelf.notice,
            "requests": self.inbox and self.inbox.notice,
        }
        place = str(state_directory(self.workspace))
        return (*self.health.problems, *(Problem(kind, place, notice) for kind, notice in own.items() if notice))

    @property
    def shelves(self) -> list[Acknowledgements]:
        """All in which something can be put aside."""
        return [] if self.shelf is None else [self.shelf]

    @property
    def notices(self) -> list[str]:
        """Messages about the files of agentwatch itself, a sentence each. May quote foreign text."""
        parts = (self._keeper, self.clerk, self._herald, self.shelf, self.inbox, self._codex)
        own = [part.notice for part in parts if part is not None and part.notice]
        return [*own, *self.health.notices, *self.complaints]

    @property
    def messages(self) -> list[str]:
        """The notices, and a sentence for each thing that its source cannot read."""
        return [*self.notices, *map(str, self.health.problems)]

    @property
    def checks(self) -> bool:
        """Whether what returns claim is checked here."""
        return self._inspector is not None

    @property
    def is_settled(self) -> bool:
        """Whether everything that there was at first has been looked at, and checked, and taken in."""
        workers = (self.clerk, self.inbox, self._inspector)
        is_done = not (self._pending or (self._inspector and self._unchecked)) and self.health.mode != "starting"
        return is_done and all(worker is None or worker.idle for worker in workers)

    def of(self, task_id: str) -> tuple[Monitor, str]:
        """The monitor of the workspace that a task of the tree belongs to, and the task's id there."""
        return self, task_id

    def absolute(self, relative: str) -> Path:
        """Where a file of the workspace is on disk; a path of an event spells names that are no text."""
        return self.workspace / to_name(relative)

    def content(self, version: Version | Message) -> str | None:
        """The same as `text`; None where a host does not give it now, too."""
        from agentwatch.decisions.errors import NoAnswerError

        with suppress(NoAnswerError):
            return self.text(version)
        return None

    def text(self, version: Version | Message) -> str | None:
        """The text that this version of a file had, or that a session's message has; it may read a file.

        None where it is not kept any more. Raises NoAnswerError.
        """
        text = self._source.content(version.digest)
        if text is not None or not self._remembers:
            return text
        if self._keeper is not None:
            return self._keeper.text(version.digest)
        from agentwatch.history.store import History

        return History(state_directory(self.workspace)).text(version.digest)

    def transcript(self, run: Run) -> RunTranscript | None:
        """The transcript of a run, None where there is none to be had. Any thread may call it."""
        return self._source.transcript(run)

    # What the operator decides

    async def decide(self, subject: Subject, action: Action, params: Params, note: str) -> DecisionMade:
        """Record a decision about an attempt as it was seen, and deliver it. Raises DecisionError.

        Whether the policy allows it is asked before. The return is read again: one that has changed since is refused.
        """
        import asyncio

        from agentwatch.decisions.errors import DecisionError

        if self.clerk is None:
            raise DecisionError("nothing can be decided here: this workspace is not being watched")
        now = self.returned_now(subject.task_id)
        return await asyncio.to_thread(self.clerk.decide, subject, action, params, returned=now, note=note)

    def returned_now(self, task_id: str) -> Callable[[], str | None]:
        """How to look once more at the return of a task as it is seen: gives its sha256 in hex, None where there is
        none. Any thread may call that; it raises ReturnChangedError."""
        from agentwatch.decisions.desk import return_digest

        task = self.tree.tasks.get(task_id)
        returned = task.latest.returned if task is not None and task.latest is not None else None
        if returned is None or returned.stored:
            # What a session gave back lies in no file of the workspace: the tree has its latest state.
            digest = returned.digest if returned is not None else None
            return lambda: digest
        return partial(return_digest, self.workspace, returned.path, self.settings.max_bytes)

    async def answer(self, request: Request, action: Action, params: Params | None, note: str) -> DecisionMade:
        """Record the answer to a request as it was shown, for whoever holds it. Raises DecisionError.

        Whether it takes this answer, and is still open, is asked once more.
        """
        import asyncio

        from agentwatch.decisions.errors import DecisionError

        if self.clerk is None or (self.inbox is None and not self.host):
            raise DecisionError("nothing can be answered here: this workspace is not being watched")
        # Of a host, its own desk looks whether somebody still waits for it.
        gone = partial(self.inbox.gone, request) if self.inbox is not None else lambda: None
        asked = self.tree.request(request.request_id)
        task_id = asked.task_id if asked is not None else request.session_id
        attempt = max(self.tree.tasks[task_id].attempt, 1) if asked is not None else 1
        record = partial(self.clerk.answer, task_id=task_id, attempt=attempt, gone=gone, note=note)
        return await asyncio.to_thread(record, request, action, params)

    # Once, for a command

    def scan(self) -> None:
        """Look at everything once, for faces that show one moment. Blocks, and writes nothing."""
        self.clerk = self._make_clerk()
        if self._open_inbox is not None:
            self.inbox = self._open_inbox()
        if self._open_shelf is not None:
            self.shelf = self._open_shelf()
            self._add(self.shelf.read_changes())
        if self._remembers:
            from agentwatch.history.store import recall

            recalled = recall(self.workspace)
            self._history_problem = recalled.notice
            self._source.remember(recalled.files, recalled.watched_at)
            # Who is not to know of requests is not told of those that were, either.
            knows = self._open_inbox is not None
            self._add(one for one in recalled.events if knows or not isinstance(one, Requested))
        self.load(self._source.scan())

    def load(self, batch: Batch) -> None:
        """Apply a whole batch at once, and check the claims in it. Blocks."""
        self.health = batch.health
        decisions = self.clerk.look(writes=False) if self.clerk is not None else []
        requests = self.inbox.look() if self.inbox is not None else []
        self._add((*batch.events, *decisions, *requests))
        if self._inspector is not None:
            self._add(self._checked(self._inspector.check(self._inspector.news_of(self.tree, self.tree.tasks))))
        self.tree.apply(Tick(len(batch.events), self._clock()))

    # As long as the screen lives

    async def updates(self) -> AsyncIterator[Set[str]]:
        """Run the source and apply what it observes, until the iteration is closed.

        Gives the ids of the tasks that have changed, after each chunk of events and for every change of health: the
        event loop stays free in between.
        """
        import asyncio

        loop, arrived = asyncio.get_running_loop(), asyncio.Event()

        def put(events: Sequence[Event], health: Health | None = None, anew: bool = False) -> None:
            size = max(len(events), 1) if anew else _CHUNK
            for at in range(0, max(len(events), 1), size):
                # It is not live before all of it is in the tree.
                last = health if at + size >= len(events) else None
                self._pending.append(_Chunk(events[at : at + size], last, anew))
            arrived.set()

        def hand_over(*news: Any) -> None:
            loop.call_soon_threadsafe(put, *news)

        def observed(batch: Batch) -> None:
            # In the source's thread: what it has told counts as known, whether the loop still takes it or not.
            if self._keeper is not None:
                # Sessions are not kept, and they go on all the time.
                kept = [one for one in batch.events if not isinstance(one, Ran)]
                if kept or (batch.events and self._keeper.notice):
                    self._keeper.record(kept)
            hand_over(*batch)

        try:
            if self._open_shelf is not None:
                # Before anything is there to ask: what is put aside never does so for a moment.
                self.shelf = await asyncio.to_thread(self._open_shelf)
                self._add(await asyncio.to_thread(self.shelf.begin))
                self.shelf.start(hand_over)
            if self._remembers and (recalled := await self._recall()):
                yield recalled
            self._source.start(observed)
            if self._inspector is not None:
                self._inspector.start(lambda checks: hand_over(self._checked(checks)))
            self.clerk = await asyncio.to_thread(self._make_clerk)
            if self.clerk is not None:
                self.clerk.start(hand_over)
                if self.settings.opencode_url:
                    from agentwatch.decisions.herald import Announcer, Herald  # most have no such server

                    state = state_directory(self.workspace)
                    announcer = Announcer(self.settings.opencode_url, self.workspace, state)
                    self._herald = Herald(announcer, self.clerk.note_announced)
            if self._open_inbox is not None:
                self.inbox = await asyncio.to_thread(self._open_inbox)
                self.inbox.start(hand_over)
            if self._open_codex is not None:
                self._codex = await asyncio.to_thread(self._open_codex)
                self._codex.start(hand_over)
            async for changed in self._apply_all(arrived):
                yield changed
        finally:
            # The end of an event loop cancels once more what still ends: the thread goes on all the same.
            await asyncio.shield(loop.run_in_executor(None, self._stop))

    def _make_clerk(self) -> Clerk | None:
        if self._open_desk is None:
            return None
        from agentwatch.decisions.clerk import Clerk

        return Clerk(self._open_desk(), self._clock)

    async def _recall(self) -> Set[str]:
        """Make a tree of the history. Nothing of it is shown before all is known: the past would look like now."""
        import asyncio

        from agentwatch.history.store import HistoryWorker

        self.health = self.health._replace(detail="reading the history")
        make = partial(HistoryWorker, self.workspace, self._source.content, read_only=self.settings.read_only)
        self._keeper = await asyncio.to_thread(make)
        tree = self._new_tree()
        recalled = await asyncio.wrap_future(self._keeper.start(tree))
        self._source.remember(recalled.files, recalled.watched_at)
        for event in recalled.events:
            self.tap(event)
        return self._apply((), self._replace(tree)) if recalled.events else frozenset()

    def _stop(self) -> None:
        for part in (self._codex, self.clerk, self.inbox, self._inspector, self._source, self.shelf):
            if part is not None:
                part.stop()
        if self._keeper is not None:
            self._keeper.stop()

    async def _apply_all(self, arrived: asyncio.Event) -> AsyncIterator[Set[str]]:
        import asyncio

        while True:
            with suppress(TimeoutError):
                # Not `wait_for`: before Python 3.12 it loses a cancellation that comes together with the event.
                rests = self.tree.asides.is_watching and self.tree.holds_until == math.inf
                async with asyncio.timeout(self.tick_seconds[rests]):
                    await arrived.wait()
            arrived.clear()
            if not self._pending:
                async with self.turn:
                    if changed := self._apply(()):
                        yield changed
            while self._pending:
                async with self.turn:
                    began = time.monotonic()
                    yield await self._apply_next()
                    # A key takes a dozen rounds of the event loop: half of the time is theirs.
                    await asyncio.sleep(min(time.monotonic() - began, _REST_SECONDS) if self._pending else 0)

    async def _apply_next(self) -> Set[str]:
        """Apply the next chunk that waits. Returns the tasks that have changed."""
        import asyncio

        events, health, anew = self._pending[0]
        tree = self._new_tree() if anew else self.tree
        for at in range(0, len(events) if anew else 0, _CHUNK):
            self._add(events[at : at + _CHUNK], tree)
            await asyncio.sleep(0)
        self._pending.popleft()
        self.health = health or self.health
        return self._apply((), self._replace(tree)) if anew else self._apply(events)

    def _apply(self, events: Sequence[Event], others: Set[str] = frozenset()) -> Set[str]:
        """Apply events, and that time has passed, and have recorded, checked and answered what that and `others` ask
        for. Returns the tasks that have changed, with the others."""
        self._latest_seq = max([self._latest_seq, *(one.seq for one in events)])
        self._add(events)
        began = time.monotonic()
        if self._pending and not others and began < self._pass_at:
            return frozenset()
        changed = others | self.tree.apply(Tick(self._latest_seq, self._clock()))
        self._pass_at = began + _PASS_SHARE * (time.monotonic() - began)
        if self.health.mode != "starting" and not self._pending and not (events or others):
            # Nothing has come for a while: all that was there at first has been taken in.
            self.tree.asides.watch(self.tree.now)
        self._unchecked |= changed
        if self._inspector is not None and self.health.mode != "starting":
            # Not before the first look is over, which that would delay.
            if targets := self._inspector.news_of(self.tree, self._unchecked):
                self._inspector.want(targets)
            self._unchecked.clear()
        tasks = [task for task_id in changed if (task := self.tree.tasks.get(task_id)) is not None]
        if self._herald is not None:
            self._herald.look(self.tree, changed)
        if self.clerk is not None:
            self.clerk.note_acted(tasks)
        if self._keeper is not None:
            self._keeper.report(task for task in tasks if _has_new_fault(task))
            # A task that only a request spoke of has gone with its end.
            asked = (one for task_id in changed for one in self.tree.requests_of(task_id))
            self._keeper.record_requests(asked, self.tree.now)
        over, self.tree.asides.over = self.tree.asides.over, {}
        if over and self.shelf is not None:
            self.shelf.mark_over(over)
        return changed

    def _add(self, events: Iterable[Event], tree: Tree | None = None) -> None:
        events = tuple(events)
        (tree or self.tree).add(events)
        for event in events:
            self.tap(event)

    def _replace(self, tree: Tree) -> Set[str]:
        """Have a tree that was made anew take the place of the other. Returns the tasks that may be different then."""
        before, self.tree = self.tree, tree
        tree.take_over(before)
        tree.settle()
        return {*before.tasks, *tree.tasks}

    def _checked(self, checks: Sequence[Checks]) -> list[Event]:
        return [one.observed(self._latest_seq, self._clock()) for one in checks]


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
    """The return breaks its contract and was seen in this run: what the history recalls was reported before. That an
    artifact is missing may have come out only now."""
    latest = task.latest
    is_new = latest is not None and latest.returned is not None and latest.returned.seq >= 0
    return (is_new and task.own_state is State.INVALID) or bool(missing_artifacts(task))
