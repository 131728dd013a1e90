"""The sources and the tree running together: the one object that the faces hold."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from agentwatch.config import Settings
from agentwatch.delegation.observation import Observation, Ran, Requested, Tick
from agentwatch.delegation.problems import missing_artifacts
from agentwatch.delegation.rules import Limits, Rules
from agentwatch.delegation.run import Message, Run
from agentwatch.delegation.task import State, Task, Version
from agentwatch.delegation.tree import DelegationTree
from agentwatch.evidence.inspector import Checks, Inspector
from agentwatch.place import state_directory
from agentwatch.sources.files.names import to_name
from agentwatch.sources.health import Batch, Health, Problem
from agentwatch.sources.source import Source
from agentwatch.view.words import older_words

if TYPE_CHECKING:
    import asyncio

    # These take a while to load, and the first frame needs none of them.
    from agentwatch.aside.shelf import Shelf
    from agentwatch.decisions.clerk import Clerk
    from agentwatch.decisions.face import OperatorDesk
    from agentwatch.decisions.herald import Herald
    from agentwatch.decisions.ledger import DecisionMade
    from agentwatch.decisions.record import Params, Subject
    from agentwatch.delegation.decision import Action
    from agentwatch.delegation.request import Request
    from agentwatch.evidence.one_look import OneLook
    from agentwatch.history.keeper import Keeper
    from agentwatch.requests.codex import CodexClient
    from agentwatch.requests.source import Inbox
    from agentwatch.sources.sessions.following import RunTranscript

T = TypeVar("T")

SLICE_SECONDS: Final = 0.006
"""How long observations are applied at a stretch: a key pressed meanwhile waits no longer than this."""

_TICK_SECONDS: Final = 1.0
_IDLE_TICK_SECONDS: Final = 5.0
"""Between two looks at the clock while time changes something in the tree, and while it does not, as far as known."""

_TAKEN_SECONDS: Final = 1.0
"""How long the end waits until the event loop has taken what the parts handed over last."""


class Update(NamedTuple):
    """What has changed since the update before: task ids, and whether tasks came, went or moved."""

    changed: frozenset[str]
    structure: bool


class _Turn(Enum):
    """Between observations that wait: a tree is made anew of what follows, up to the end."""

    BEGIN = auto()
    END = auto()


class Monitor:
    """A workspace being watched: its tree, its health, the texts of its documents.

    With `inspects`, the claims of the returns are held against the disk and git; `one_look` may know what files say.
    With `remembers`, the history of the workspace, which lies in the user's state directory, comes first: `updates`
    records in it, `scan` only reads it.
    With `keeps_deleted`, tasks outlive their files all the same.
    What is silent since `history_before` (epoch seconds) is past; what is silent since `since` is left out.
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
        one_look: OneLook | None = None,
        remembers: bool = False,
        keeps_deleted: bool = False,
        open_desk: Callable[[], OperatorDesk] | None = None,
        open_shelf: Callable[[], Shelf] | None = None,
        open_inbox: Callable[[], Inbox] | None = None,
        open_codex: Callable[[], CodexClient] | None = None,
        history_before: float = float("-inf"),
        since: float | None = None,
        host: str = "",
    ) -> None:
        self.workspace = workspace
        self.directory = str(workspace)
        """Its path on the machine that it is on, as far as that is known."""
        self.written = str(workspace)
        """By what a command line names it."""
        self.host = host
        self.settings = settings
        rules, keeps = rules_of(settings, history_before), remembers or keeps_deleted
        self._new_tree = partial(DelegationTree, rules, remembers=keeps, host=host)
        self.tree = self._new_tree()
        self.health = Health("starting", f"{host} has not answered yet" if host else "reading the workspace")
        self.complaints: list[str] = []
        """What a face has to say of itself, a sentence each."""
        self.tap: Callable[[Observation], None] | None = None
        """Is called with every observation that the tree has taken."""
        self.turn: AbstractAsyncContextManager[object] = nullcontext()
        """Is held while observations are applied: of several monitors that share it, one at a time does, and a key
        waits for one slice instead of one of each."""
        self._source = source
        self._clock = clock
        self._inspector: Inspector | None = None
        if inspects:
            self._inspector = Inspector(workspace, self.content, one_look, self.transcript, self._holds)
        self._remembers = remembers
        self._keeper: Keeper | None = None
        self._has_recalled = False
        self._open_desk = open_desk
        self._open_shelf = open_shelf
        self._open_inbox = open_inbox
        self._open_codex = open_codex
        self.shelf: Shelf | None = None
        """What the operator has put aside, once `updates` runs; None where nothing can be."""
        self._since = self._left_out_since = since
        """None once that is done, and where nothing is left out."""
        self.clerk: Clerk | None = None
        """Keeps the tree told of the decisions, once `updates` runs; None where nothing can be decided."""
        self.inbox: Inbox | None = None
        """Keeps the tree told of what programs ask, once `updates` runs; None where nothing can be answered."""
        self._codex: CodexClient | None = None
        self._herald: Herald | None = None
        self._forgotten: str | None = None
        """Why the history could not be read; told by `scan` only, for the keeper has it in its notice."""
        self._pending: deque[Observation | _Turn] = deque()
        self._next: DelegationTree | None = None
        """The tree that is being made anew, to take the place of the other."""
        self._latest_seq = 0
        self._unchecked: set[str] = set()
        """The tasks whose returns may have to be checked."""

    @property
    def title(self) -> str:
        """What is watched, in a few words; foreign."""
        return (self.workspace.name or str(self.workspace)) + "/"

    @property
    def watched(self) -> str:
        """Where tasks are looked for; foreign."""
        return f"{self.workspace} and everything below"

    def of(self, task_id: str) -> tuple[Monitor, str]:
        """The monitor of the workspace that a task of the tree belongs to, and the task's id there."""
        return self, task_id

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What cannot be read: of the files and sessions, of the history and of the decisions."""
        own = {
            "history": self._forgotten,
            "decisions": self.clerk and self.clerk.notice,
            "put aside": self.shelf and self.shelf.notice,
            "requests": self.inbox and self.inbox.notice,
        }
        place = str(state_directory(self.workspace))
        return (*self.health.problems, *(Problem(kind, place, notice) for kind, notice in own.items() if notice))

    @property
    def shelves(self) -> list[Shelf]:
        """All in which something can be put aside."""
        return [] if self.shelf is None else [self.shelf]

    @property
    def notices(self) -> list[str]:
        """What the operator must know of what agentwatch itself keeps, a sentence each. May quote foreign text."""
        parts = (self._keeper, self.clerk, self._herald, self.shelf, self.inbox, self._codex)
        own = [part.notice for part in parts if part is not None and part.notice]
        return [*own, *self.health.notices, *self.complaints]

    @property
    def is_settled(self) -> bool:
        """Whether everything that there was at first has been looked at, and checked, and taken in."""
        parts = (self.clerk, self.inbox, self._inspector)
        return (
            not (self._pending or self._unchecked)
            and self.health.mode != "starting"
            and all(part is None or part.idle for part in parts)
        )

    @property
    def said(self) -> list[str]:
        """The notices, and a sentence for each thing that its source cannot read."""
        return [*self.notices, *map(str, self.health.problems)]

    def absolute(self, relative: str) -> Path:
        """Where a file of the workspace is on disk; a path of an observation spells names that are no text."""
        return self.workspace / to_name(relative)

    def content(self, version: Version | Message) -> str | None:
        """The text that this version of a file had, or that a session's message has; it may read a file.

        None where it is not kept any more.
        """
        text = self._source.content(version.digest)
        if text is not None or not self._remembers:
            return text
        if self._keeper is not None:
            return self._keeper.text(version.digest)
        from agentwatch.history.keeper import recall_text

        return recall_text(self.workspace, version.digest)

    def _holds(self, version: Version) -> bool:
        return self._source.holds(version.path, version.digest)

    def transcript(self, run: Run) -> RunTranscript | None:
        """What stands in the transcript of a run, None where there is none to be had. Any thread may call it."""
        return self._source.transcript(run)

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
        shown_at = partial(self.clerk.answer, task_id=task_id, attempt=attempt, gone=gone, note=note)
        return await asyncio.to_thread(shown_at, request, action, params)

    async def updates(self) -> AsyncIterator[Update]:
        """Run the source and apply what it observes, until the iteration is closed.

        The first update comes with the first batch. Observations are applied in slices, so that the event loop
        stays free; an update is given out after each slice, and for every change of health.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        arrived = asyncio.Event()

        def queue(observations: Iterable[Observation | _Turn]) -> None:
            self._pending.extend(observations)
            arrived.set()

        def take(batch: Batch) -> None:
            self.health = batch.health
            # Sessions are not kept, and they go on all the time.
            kept = [one for one in batch.observations if not isinstance(one, Ran)]
            if self._keeper is not None and (kept or (batch.observations and self._keeper.notice)):
                self._keeper.keep(kept)
            queue((_Turn.BEGIN, *batch.observations, _Turn.END) if batch.anew else batch.observations)

        def on_loop(taker: Callable[[T], None]) -> Callable[[T], None]:
            """What the threads call: the event loop takes it."""

            def hand_over(given: T) -> None:
                loop.call_soon_threadsafe(taker, given)

            return hand_over

        try:
            if self._open_shelf is not None:
                # Before anything is there to ask: what is put aside never does so for a moment.
                self.shelf = await asyncio.to_thread(self._open_shelf)
                queue(await asyncio.to_thread(self.shelf.begin))
                self.shelf.start(on_loop(queue))
            if self._remembers:
                self._keeper = await asyncio.to_thread(self._make_keeper)
                recalled = await asyncio.wrap_future(self._keeper.start())
                self._source.remember(recalled.files, recalled.looked_at)
                self._has_recalled = True
                queue(recalled.observations)
            self._source.start(on_loop(take))
            if self._inspector is not None:
                self._inspector.start(on_loop(lambda checks: queue(self._checked(checks))))
            self.clerk = await asyncio.to_thread(self._make_clerk)
            if self.clerk is not None:
                self.clerk.start(on_loop(queue))
                if self.settings.opencode_url:
                    # Most have no such server.
                    from agentwatch.decisions.herald import Announcer, Herald

                    state = state_directory(self.workspace)
                    announcer = Announcer(self.settings.opencode_url, self.workspace, state)
                    self._herald = Herald(announcer, self.clerk.note_announced)
            if self._open_inbox is not None:
                self.inbox = await asyncio.to_thread(self._open_inbox)
                self.inbox.start(on_loop(queue))
            if self._open_codex is not None:
                self._codex = await asyncio.to_thread(self._open_codex)
                self._codex.start(on_loop(queue))
            async for update in self._apply_all(arrived):
                yield update
        finally:
            # The end of an event loop cancels once more what still ends: the thread goes on all the same.
            await asyncio.shield(loop.run_in_executor(None, self._stop, loop))

    def _stop(self, loop: asyncio.AbstractEventLoop) -> None:
        for part in (self._codex, self.clerk, self.inbox, self._inspector, self._source, self.shelf):
            if part is not None:
                part.stop()
        if self._keeper is not None:
            # What they handed over last is kept before it counts as known.
            taken = threading.Event()
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(taken.set)
                taken.wait(_TAKEN_SECONDS)
            if self._has_recalled and (known := self._source.known()):
                # Else the source knows nothing yet of what the history has.
                self._keeper.keep_files(known)
            self._keeper.stop()

    async def _apply_all(self, arrived: asyncio.Event) -> AsyncIterator[Update]:
        import asyncio

        while True:
            has_news = True
            try:
                # Not `wait_for`: before Python 3.12 it loses a cancellation that comes together with the event.
                rests = self.tree.asides.is_watching and self.tree.holds_until == math.inf
                async with asyncio.timeout(_IDLE_TICK_SECONDS if rests else _TICK_SECONDS):
                    await arrived.wait()
            except TimeoutError:
                has_news = False
            arrived.clear()
            while True:
                async with self.turn:
                    update = self._apply_slice() if has_news or self._pending else self._tick()
                    if has_news or update.changed:
                        yield update
                        # The event loop goes round before anybody else has a turn.
                        await asyncio.sleep(0)
                if not self._pending:
                    break

    def _tick(self) -> Update:
        """Time has passed."""
        structure = self.tree.structure
        changed = self.tree.apply(Tick(self._latest_seq, self._clock()))
        if self.health.mode != "starting":
            self.tree.asides.watch(self.tree.now)
        self._put_back()
        if self._herald is not None:
            self._herald.look(self.tree, changed)
        return Update(frozenset(changed), self.tree.structure != structure)

    def scan(self) -> None:
        """Look at everything once, for faces that show one moment. Blocks, and writes nothing."""
        self.clerk = self._make_clerk()
        self.inbox = None if self._open_inbox is None else self._open_inbox()
        if self._open_shelf is not None:
            self.shelf = self._open_shelf()
            self._take_all(self.shelf.look())
        if self._remembers:
            from agentwatch.history.keeper import recall

            recalled = recall(self.workspace)
            self._forgotten = recalled.notice
            self._source.remember(recalled.files, recalled.looked_at)
            # Who is not to know of requests is not told of those that were, either.
            is_told = self._open_inbox is not None
            self._take_all(one for one in recalled.observations if is_told or not isinstance(one, Requested))
        self.load(self._source.scan())

    def load(self, batch: Batch) -> None:
        """Apply a whole batch at once, and check the claims in it. Blocks."""
        self.health = batch.health
        decisions = self.clerk.look(writes=False) if self.clerk is not None else []
        requests = self.inbox.look() if self.inbox is not None else []
        self._take_all((*batch.observations, *decisions, *requests))
        self._leave_out()
        if self._inspector is not None:
            self._take_all(self._checked(self._inspector.check(self._inspector.news_of(self.tree, self.tree.tasks))))
        self.tree.apply(Tick(len(batch.observations), self._clock()))

    def _take_all(self, observations: Iterable[Observation]) -> None:
        observations = tuple(observations)
        self.tree.take_all(observations)
        if self.tap is not None:
            for observation in observations:
                self.tap(observation)

    def _apply(self, observation: Observation) -> None:
        (self._next or self.tree).take(observation)
        if self.tap is not None:
            self.tap(observation)

    def _turn(self, turn: _Turn) -> set[str]:
        """Begin a tree anew, or let it take the place of the other. Returns the tasks that may be different then."""
        if turn is _Turn.BEGIN or self._next is None:
            self._next = self._new_tree()
            return set()
        before, self.tree, self._next = self.tree, self._next, None
        self.tree.take_over(before)
        if self._left_out_since is not None and self._since is None:
            self.tree.leave_out(self._left_out_since)
        self.tree.settle()
        return {*before.tasks, *self.tree.tasks}

    def _leave_out(self) -> set[str]:
        """Once all is known that is there, leave out what is too old for the operator. Returns the tasks changed."""
        if self._since is None:
            return set()
        changed, self._since = self.tree.leave_out(self._since), None
        if words := older_words(len(self.tree.left_out)):
            self.complaints.append(f"{words}, as --since asks.")
        return changed

    def _make_keeper(self) -> Keeper:
        from agentwatch.history.keeper import Keeper

        return Keeper(self.workspace, self._source.content, read_only=self.settings.read_only)

    def _make_clerk(self) -> Clerk | None:
        if self._open_desk is None:
            return None
        from agentwatch.decisions.clerk import Clerk

        return Clerk(self._open_desk(), self._clock)

    def _apply_slice(self) -> Update:
        structure, end = self.tree.structure, time.monotonic() + SLICE_SECONDS
        other = set[str]()
        while self._pending:
            observation = self._pending.popleft()
            if isinstance(observation, _Turn):
                other |= self._turn(observation)
            else:
                self._latest_seq = max(self._latest_seq, observation.seq)
                self._apply(observation)
            if time.monotonic() >= end:
                break
        changed = other | self.tree.apply(Tick(self._latest_seq, self._clock()))
        if self.health.mode != "starting" and not self._pending:
            changed |= self._leave_out()
        self._have_checked(changed)
        tasks = [task for task_id in changed if (task := self.tree.tasks.get(task_id)) is not None]
        if self.clerk is not None:
            if self._herald is not None:
                self._herald.look(self.tree, changed)
            self.clerk.note_acted(tasks)
        if self._keeper is not None:
            self._keeper.report(task for task in tasks if _has_new_fault(task))
            # A task that only a request spoke of has gone with its end.
            asked = (one for task_id in changed for one in self.tree.requests_of(task_id))
            self._keeper.keep_requests(asked, self.tree.now)
        self._put_back()
        return Update(frozenset(changed), bool(other) or self.tree.structure != structure)

    def _have_checked(self, changed: Iterable[str]) -> None:
        """Have the claims of new returns checked; not before the first look is over, which that would delay."""
        if self._inspector is None:
            return
        self._unchecked.update(changed)
        if self.health.mode != "starting":
            if targets := self._inspector.news_of(self.tree, self._unchecked):
                self._inspector.want(targets)
            self._unchecked.clear()

    def _put_back(self) -> None:
        """Have written down what is aside no more."""
        over, self.tree.asides.over = self.tree.asides.over, {}
        if over and self.shelf is not None:
            self.shelf.end(over)

    def _checked(self, checks: Sequence[Checks]) -> list[Observation]:
        return [one.observed(self._latest_seq, self._clock()) for one in checks]


def rules_of(settings: Settings, history_before: float = float("-inf")) -> Rules:
    """The rules by which a tree judges, as the settings say."""
    limits = settings.alarms_minutes, settings.alarms_tokens, settings.alarms_subtree_tokens, settings.alarms_repeats
    return Rules(
        strict=settings.strict,
        stale_after=settings.stale_after,
        max_retries=settings.max_retries,
        low_confidence=settings.low_confidence,
        demands=settings.require_contract,
        history_before=history_before,
        limits=Limits(*limits),
    )


def _has_new_fault(task: Task) -> bool:
    """The return breaks its contract and was seen in this run: what the history recalls was reported before. That an
    artifact is missing may have come out only now."""
    latest = task.latest
    is_new = latest is not None and latest.returned is not None and latest.returned.seq >= 0
    return (is_new and task.own_state is State.INVALID) or bool(missing_artifacts(task))
