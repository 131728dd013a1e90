"""The sources and the tree running together: the one object that the faces hold."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from agentwatch.background import keys_first
from agentwatch.config import Settings
from agentwatch.delegation.events import Event, Requested, Tick
from agentwatch.delegation.tree import Tree
from agentwatch.evidence.inspector import Checks, Inspector
from agentwatch.place import state_directory
from agentwatch.sources.health import Batch, Health
from agentwatch.sources.source import Source
from agentwatch.view.words import older_words
from agentwatch.watched import Watched, rules_of

if TYPE_CHECKING:
    import asyncio

    from agentwatch.decisions.face import OperatorDesk
    from agentwatch.evidence.claims import ParsedClaims

    # These take a while to load, and the first frame needs none of them.
    from agentwatch.history.acknowledgements import Acknowledgements
    from agentwatch.requests.codex import CodexClient
    from agentwatch.requests.source import Inbox

T = TypeVar("T")

SLICE_SECONDS: Final = 0.006
"""How long observations are applied at a stretch: a key pressed meanwhile waits no longer than this."""

_SETTLE_SHARE: Final = 5.0
"""While events wait, a fifth of the time at most goes into what follows from them for all tasks."""
_FEW: Final = 20
"""Observations that are taken in together: a task whose handoff and return are among them is made once."""
_TICK_SECONDS: Final = (1.0, 5.0)
"""Between two looks at the clock while time changes something in the tree, and while it does not, as far as known."""


class Update(NamedTuple):
    """What has changed since the update before: task ids, and whether tasks came, went or moved."""

    changed: frozenset[str]
    structure: bool


class _Turn(Enum):
    """Between observations that wait: a tree is made anew of what follows, up to the end, where it takes its place."""

    BEGIN = auto()
    END = auto()


class Monitor(Watched):
    """A workspace being watched: its tree, its health, the texts of its documents.

    With `inspects`, the claims of the returns are held against the disk and git; `parsed` may know what files say.
    With `remembers`, the history of the workspace, which lies in the user's state directory, comes first: `updates`
    records in it, `scan` only reads it. With `keeps_deleted`, tasks outlive their files all the same.
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
        parsed: ParsedClaims | None = None,
        remembers: bool = False,
        keeps_deleted: bool = False,
        open_desk: Callable[[], OperatorDesk] | None = None,
        open_shelf: Callable[[], Acknowledgements] | None = None,
        open_inbox: Callable[[], Inbox] | None = None,
        open_codex: Callable[[], CodexClient] | None = None,
        history_before: float = float("-inf"),
        since: float | None = None,
        host: str = "",
    ) -> None:
        rules, keeps = rules_of(settings, history_before), remembers or keeps_deleted
        self._new_tree = partial(Tree, rules, remembers=keeps, host=host)
        super().__init__(
            workspace,
            settings,
            source,
            clock,
            self._new_tree(),
            remembers=remembers,
            open_desk=open_desk,
            host=host,
        )
        self.tap: Callable[[Event], None] | None = None
        """Is called with every observation that the tree has taken."""
        self.tick_seconds = _TICK_SECONDS
        self.turn: AbstractAsyncContextManager[object] = nullcontext()
        """Is held while observations are applied: of several monitors that share it, one at a time does, and a key
        waits for one slice instead of one of each."""
        self._inspector: Inspector | None = None
        if inspects:
            asked = (self.content, parsed, self.transcript)
            self._inspector = Inspector(workspace, *asked, pruned=settings.pruned, in_sight=self._seen)
            source.hear(self._inspector.wake)
        self._open_shelf = open_shelf
        self._open_inbox = open_inbox
        self._open_codex = open_codex
        self._since = self._left_out_since = since
        """None once that is done, and where nothing is left out."""
        self._pending: deque[Sequence[Event] | _Turn | Health] = deque()
        self._next: Tree | None = None
        """The tree that is being made anew, to take the place of the other."""
        self._latest_seq = 0
        self._settle_at = 0.0
        """When what follows for all tasks is worked out again, while events wait (monotonic seconds)."""
        self._unchecked: set[str] = set()
        """The tasks whose returns may have to be checked."""

    @property
    def checks(self) -> bool:
        """Whether what returns claim is checked here."""
        return self._inspector is not None

    @property
    def is_settled(self) -> bool:
        """Whether everything that there was at first has been looked at, and checked, and taken in."""
        parts = (self.clerk, self.inbox, self._inspector)
        return (
            not (self._pending or self._unchecked)
            and self.health.mode != "starting"
            and all(part is None or part.idle for part in parts)
        )

    def of(self, task_id: str) -> tuple[Monitor, str]:
        """The monitor of the workspace that a task of the tree belongs to, and the task's id there."""
        return self, task_id

    async def updates(self) -> AsyncIterator[Update]:
        """Run the source and apply what it observes, until the iteration is closed.

        The first update comes with the first batch. Observations are applied in slices, so that the event loop
        stays free; an update is given out after each slice, and for every change of health.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        arrived = asyncio.Event()

        def queue(given: Sequence[Event]) -> None:
            self._pending.extend(given[at : at + _FEW] for at in range(0, len(given), _FEW))
            arrived.set()

        def take(batch: Batch) -> None:
            self._pending.extend((_Turn.BEGIN,) if batch.anew else ())
            queue(batch.events)  # it is not live before that is in the tree
            self._pending.extend((_Turn.END, batch.health) if batch.anew else (batch.health,))

        def observed(batch: Batch) -> None:
            # In the source's thread: what it has told counts as known, whether the loop still takes it or not.
            self._keep(batch.events)
            loop.call_soon_threadsafe(take, batch)

        def on_loop(taker: Callable[[T], None]) -> Callable[[T], None]:
            """What the threads call: the event loop takes it."""

            def hand_over(given: T) -> None:
                loop.call_soon_threadsafe(taker, given)

            return hand_over

        try:
            if self._open_shelf is not None:
                # Before anything is there to ask: what is put aside never does so for a moment.
                self.shelf = await asyncio.to_thread(self._open_shelf)
                self._take_all(await asyncio.to_thread(self.shelf.begin))
                self.shelf.start(on_loop(queue))
            if self._remembers:
                await self._recall()
            self._source.start(observed)
            if self._inspector is not None:
                self._inspector.start(on_loop(lambda checks: queue(self._checked(checks))))
            self.clerk = await asyncio.to_thread(self._make_clerk)
            if self.clerk is not None:
                self.clerk.start(on_loop(queue))
                if self.settings.opencode_url:
                    from agentwatch.decisions.herald import Announcer, Herald  # most have no such server

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
            await asyncio.shield(loop.run_in_executor(None, self._stop))

    async def _recall(self) -> None:
        """Make a tree of the history. Nothing of it is shown before all is known: the past would look like now."""
        import asyncio

        past, self.health = self._new_tree(), self.health._replace(detail="reading the history")
        if recalled := await self._remember(past):
            if (tap := self.tap) is not None:
                for event in recalled:
                    tap(event)
                    await asyncio.sleep(0)
            self._next = past
            self._pending.appendleft(_Turn.END)  # what was put aside meanwhile comes behind it

    def _stop(self) -> None:
        for part in (self._codex, self.clerk, self.inbox, self._inspector, self._source, self.shelf):
            if part is not None:
                part.stop()
        if self._keeper is not None:
            if self._has_recalled and (known := self._source.known()):
                # Else the source knows nothing yet of what the history has.
                self._keeper.record_files(known)
            self._keeper.stop()

    async def _apply_all(self, arrived: asyncio.Event) -> AsyncIterator[Update]:
        import asyncio

        while True:
            with suppress(TimeoutError):
                # Not `wait_for`: before Python 3.12 it loses a cancellation that comes together with the event.
                rests = self.tree.asides.is_watching and self.tree.holds_until == math.inf
                async with asyncio.timeout(self.tick_seconds[rests]):
                    await arrived.wait()
            has_news = arrived.is_set()
            arrived.clear()
            while True:
                async with self.turn:
                    update = self._apply_slice() if has_news or self._pending else self._tick()
                    if has_news or update.changed:
                        yield update
                        await keys_first.pass_by()
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
        if self._open_inbox is not None:
            self.inbox = self._open_inbox()
        if self._open_shelf is not None:
            self.shelf = self._open_shelf()
            self._take_all(self.shelf.read_changes())
        if self._remembers:
            from agentwatch.history.store import recall

            recalled = recall(self.workspace)
            self._forgotten = recalled.notice
            self._source.remember(recalled.files, recalled.watched_at)
            # Who is not to know of requests is not told of those that were, either.
            is_told = self._open_inbox is not None
            self._take_all(one for one in recalled.events if is_told or not isinstance(one, Requested))
        self.load(self._source.scan())

    def load(self, batch: Batch) -> None:
        """Apply a whole batch at once, and check the claims in it. Blocks."""
        self.health = batch.health
        decisions = self.clerk.look(writes=False) if self.clerk is not None else []
        requests = self.inbox.look() if self.inbox is not None else []
        self._take_all((*batch.events, *decisions, *requests))
        self._leave_out()
        if self._inspector is not None:
            self._take_all(self._checked(self._inspector.check(self._inspector.news_of(self.tree, self.tree.tasks))))
        self.tree.apply(Tick(len(batch.events), self._clock()))

    def _take_all(self, events: Iterable[Event]) -> None:
        events = tuple(events)
        (self._next or self.tree).add(events)
        if self.tap is not None:
            for event in events:
                self.tap(event)

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

    def _apply_slice(self) -> Update:
        structure, other, end = self.tree.structure, set[str](), time.monotonic() + SLICE_SECONDS
        while self._pending:
            given = self._pending.popleft()
            if isinstance(given, Health):
                self.health = given
            elif isinstance(given, _Turn):
                other |= self._turn(given)
            else:
                self._latest_seq = max(self._latest_seq, *(one.seq for one in given))
                self._take_all(given)
            if time.monotonic() >= end:
                break
        began = time.monotonic()
        if self._pending and began < self._settle_at and not other:
            return Update(frozenset(), structure=False)
        changed = other | self.tree.apply(Tick(self._latest_seq, self._clock()))
        self._settle_at = began + _SETTLE_SHARE * (time.monotonic() - began)
        if self.health.mode != "starting" and not self._pending:
            changed |= self._leave_out()
        self._have_checked(changed)
        self._note(changed)
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

    def _checked(self, checks: Sequence[Checks]) -> list[Event]:
        return [one.observed(self._latest_seq, self._clock()) for one in checks]
