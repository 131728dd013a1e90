"""The relay: monitors without a screen, which tell what they see to whoever watches from another machine."""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from types import MappingProxyType
from typing import Any, Final

from agentwatch import __version__
from agentwatch.delegation.events import Checked, Decided, Event, Gone, Ran, Requested
from agentwatch.monitor import Monitor, rules_of
from agentwatch.remote.answers import Answers, parts
from agentwatch.remote.book import Book, key_of
from agentwatch.remote.frames import (
    PROTOCOL,
    Ask,
    Beat,
    Decide,
    Frame,
    Hello,
    Item,
    Mark,
    Observed,
    Reset,
    Result,
    Standing,
    Watch,
    Workspace,
    frame_of,
    in_pieces,
    to_bytes,
)
from agentwatch.remote.link import LinkState, RelayEnd
from agentwatch.remote.observed import Told, fields_of, is_told, observation_of
from agentwatch.remote.outcomes import Outcome
from agentwatch.remote.wire import Signer, unpack
from agentwatch.sources import Problem, health_of
from agentwatch.state import shown, state_directory, workspace_id
from agentwatch.text import words_of

Deciding = Callable[[Monitor, Decide], Awaitable[Result]]

BEAT_SECONDS: Final = 5.0
SEEN_SECONDS: Final = 15.0
"""For so long after a screen has said so, somebody sees a workspace."""
_LOOK_SECONDS: Final = 0.25
"""Between two looks at how well a monitor sees."""
_MOST_SCREENS: Final = 1_000


class Relayed:
    """A workspace that is relayed, and what has been told of it."""

    def __init__(self, name: str, monitor: Monitor, asked: Sequence[str] = ()) -> None:
        self.monitor = monitor
        rules = rules_of(monitor.settings, monitor.tree.rules.history_before)
        self.workspace = Workspace(workspace_id(monitor.workspace), str(monitor.workspace), name, rules, tuple(asked))
        self.answers = Answers(monitor)
        self.book = Book()
        self.new: list[Item] = []
        """What is in the book and was not told yet."""
        self.standing: Standing | None = None
        self.ended = ""
        """Why it is not watched any more."""
        self.untold = 0
        """What could not be told."""
        self._slots: dict[str, dict[int, int]] = {}
        self._presence = ExitStack()
        self._seen_until = 0.0
        self._settled = 0
        """How many looks have found it settled."""
        monitor.tap = self._take

    def _take(self, event: Event) -> None:
        if is_told(event):
            told: Told | None = event  # type: ignore[assignment]
            try:
                # A screen would refuse the whole message.
                observation_of(fields_of(event))  # type: ignore[arg-type]
            except ValueError:
                self.untold += 1
                told = _taken_back(event)  # type: ignore[arg-type]
            if told is not None and (item := self.book.take(told)) is not None:
                self.new.append(item)

    def look(self, epoch: str) -> bool:
        """Look how well it is seen now; whether that is something else than before. It counts as settled at the second
        look that finds it so: what a thread has told between the two has been taken in."""
        monitor = self.monitor
        problems = list(monitor.problems)
        if self.ended:
            problems.append(Problem("relay", "", self.ended))
        if self.untold:
            problems.append(
                Problem("relay", "", f"{self.untold:,} observations cannot be told: update agentwatch there")
            )
        known = monitor.health
        health = health_of(known.mode, known.detail, problems)
        if self._settled < 2:
            self._settled = self._settled + 1 if monitor.is_settled else 0
        health = health._replace(notices=tuple(monitor.notices))
        number = self.standing.number if self.standing else 0
        standing = Standing(self.workspace.id, epoch, number, health, self._settled == 2)
        if standing == self.standing:
            return False
        self.standing = standing._replace(number=number + 1)
        return True

    def slot(self, item: Item) -> str:
        """What an entry is kept as for later screens, instead of one that is void."""
        key = key_of(item.event)
        known = self._slots.get(key, {})
        taken = {seq: known[seq] for seq in self.book.chain(key) if seq in known}
        used = set(taken.values())
        taken[item.seq] = next(number for number in count() if number not in used)
        self._slots[key] = taken
        return f"{key}#{taken[item.seq]}"

    @property
    def mark(self) -> Mark:
        return Mark(self.book.seq, self.book.mark, self.standing.number if self.standing else 0)

    def see(self, now: float) -> None:
        """Somebody sees it now, by a clock that nobody sets."""
        if not self._seen_until:
            # Hooks hold a request only where somebody can see it.
            self._presence.enter_context(shown(state_directory(self.monitor.workspace)))
        self._seen_until = now + SEEN_SECONDS

    def unsee(self, now: float) -> None:
        """Nobody has said for a while that it is seen."""
        if now >= self._seen_until:
            self._presence.close()
            self._seen_until = 0.0


class Relay:
    """Relays the workspaces of these monitors, by their names, until all screens are gone for good.

    `asked` are, by name, the paths by which somebody asked for it. `decide` records what was asked for in the ledger of
    a workspace.
    """

    def __init__(
        self,
        monitors: Mapping[str, Monitor],
        end: RelayEnd,
        signer: Signer,
        *,
        host: str = "",
        asked: Mapping[str, Sequence[str]] = MappingProxyType({}),
        decide: Deciding | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.epoch: Final = secrets.token_hex(8)
        parts = [Relayed(name, one, asked.get(name, ())) for name, one in monitors.items()]
        self._parts = {part.workspace.id: part for part in parts}
        self._end = end
        self._signer = signer
        self._host = host or socket.gethostname()
        self._decide = decide
        self._clock = clock
        self._began_at = clock()
        self._screens: dict[str, tuple[float, float]] = {}
        """By id: what it has said last as `Watch.sent`, and when, by a clock that nobody sets."""
        self._asked = ThreadPoolExecutor(2, "agentwatch-asked")
        self._over = asyncio.Event()
        self._why = ""
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self) -> str:
        """Relay. Returns why it has ended: what the end says in its last state."""
        self._loop = asyncio.get_running_loop()
        self._end.start(self._take, self._change)
        self._say_hello()
        for part in self._parts.values():
            # Where messages are kept, those of an epoch before count no more.
            self._say(Reset(part.workspace.id, self.epoch, 0), f"{part.workspace.id} reset", keep=True)
        working = [asyncio.create_task(self._watch(part)) for part in self._parts.values()]
        working += [asyncio.create_task(self._look()), asyncio.create_task(self._beat_again())]
        try:
            await self._over.wait()
        finally:
            for one in working:
                one.cancel()
            await asyncio.gather(*working, return_exceptions=True)
            await asyncio.to_thread(self._end.stop)
            self._asked.shutdown(wait=False, cancel_futures=True)
            for part in self._parts.values():
                part.unsee(float("inf"))
        return self._why

    def end(self) -> None:
        """End it soon."""
        self._over.set()

    # What is told

    async def _watch(self, part: Relayed) -> None:
        try:
            async for _ in part.monitor.updates():
                self._tell(part)
        except Exception as error:  # noqa: BLE001  nobody waits for this task, and the others go on
            part.ended = f"watching has ended ({words_of(error)}): start the relay again"

    async def _look(self) -> None:
        while True:
            for part in self._parts.values():
                if part.look(self.epoch):
                    self._tell(part)
                    self._say_standing(part)
                part.unsee(time.monotonic())
            await asyncio.sleep(_LOOK_SECONDS)

    async def _beat_again(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self._beat()

    def _tell(self, part: Relayed) -> None:
        """Tell what is new. Whoever has all of what was told before has everything then."""
        items, part.new = part.new, []
        for key, some in self._by_key(part, items):
            frame = Observed(part.workspace.id, self.epoch, some[0].seq - 1, some[-1].seq, self._clock(), tuple(some))
            for piece in in_pieces(frame):
                self._end.send(self._signer.wrap(piece), f"{part.workspace.id} {key}", keep=True)

    def _by_key(self, part: Relayed, items: Sequence[Item]) -> Iterator[tuple[str, Sequence[Item]]]:
        if self._end.by_key:
            yield from ((part.slot(item), [item]) for item in items)
        elif items:
            yield "", items

    def _beat(self) -> None:
        for part in self._parts.values():
            self._tell(part)
        marks = {part.workspace.id: part.mark for part in self._parts.values()}
        since = time.monotonic() - SEEN_SECONDS
        self._screens = {screen: one for screen, one in self._screens.items() if one[1] >= since}
        self._say(Beat(self.epoch, self._clock(), marks, {screen: sent for screen, (sent, _) in self._screens.items()}))

    def _say_hello(self, to: str = "") -> None:
        workspaces = tuple(part.workspace for part in self._parts.values())
        key = self._signer.public.text
        hello = Hello(PROTOCOL, __version__, self._host, key, self.epoch, self._began_at, self._clock(), workspaces)
        self._say(hello, "hello", keep=not to, to=to)

    def _say_standing(self, part: Relayed, to: str = "") -> None:
        if part.standing is not None:
            self._say(part.standing, f"{part.workspace.id} standing", keep=not to, to=to)

    def _say(self, frame: Frame, key: str = "", *, keep: bool = False, to: str = "") -> None:
        self._end.send(self._signer.wrap(to_bytes(frame)), key, keep=keep, to=to)

    # What is asked

    def _change(self, state: LinkState) -> None:
        if state.fatal:
            self._why = state.words
            self._soon(self._over.set)

    def _soon(self, call: Callable[..., Any], *arguments: object) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *arguments)

    def _take(self, message: bytes) -> None:
        """A message of a screen, in the thread of the end. What nobody can have said is passed over."""
        try:
            frame = frame_of(unpack(message))
        except ValueError:
            return
        if isinstance(frame, Watch):
            self._soon(self._heed, frame)
        elif isinstance(frame, Ask):
            self._soon(self._ask, frame)
        elif isinstance(frame, Decide) and self._decide is not None and self._loop is not None:
            part = self._parts.get(frame.workspace)
            if part is not None:
                deciding = asyncio.run_coroutine_threadsafe(self._record(part, frame, self._decide), self._loop)
                if self._end.by_key:
                    # That it returns is the receipt.
                    deciding.result()

    async def _record(self, part: Relayed, frame: Decide, decide: Deciding) -> None:
        """Record a decision, and tell what became of it. Raises RuntimeError where that is not final."""
        result = await decide(part.monitor, frame)
        self._say(result, f"{result.workspace} result {result.request_sha256}", keep=True)
        if not Outcome(result.outcome).is_final:
            raise RuntimeError(result.words)

    def _heed(self, watch: Watch) -> None:
        """A screen says what it has and what it lacks."""
        now = time.monotonic()
        if watch.screen not in self._screens and len(self._screens) >= _MOST_SCREENS:
            return
        if watch.greets:
            self._say_hello(to=watch.screen)
        self._screens[watch.screen] = watch.sent, now
        for name in watch.shown:
            if name in self._parts:
                self._parts[name].see(now)
        for name in {*watch.cursors, *watch.resync} & self._parts.keys():
            self._catch_up(self._parts[name], watch)
        # Behind what it asked for, so that it can tell whether it has all.
        self._beat()

    def _catch_up(self, part: Relayed, watch: Watch) -> None:
        """Tell a screen what it lacks."""
        self._tell(part)
        self._say_standing(part, to=watch.screen)
        name, book, cursor = part.workspace.id, part.book, watch.cursors.get(part.workspace.id)
        after, items = 0, None
        if name not in watch.resync and cursor is not None and cursor.epoch == self.epoch:
            after, items = cursor.seq, book.since(cursor.seq)
        if items is None:
            after, items = 0, book.everything()
            self._say(Reset(name, self.epoch, book.seq), to=watch.screen)
        for piece in in_pieces(Observed(name, self.epoch, after, book.seq, self._clock(), tuple(items))):
            self._end.send(self._signer.wrap(piece), to=watch.screen)

    def _ask(self, ask: Ask) -> None:
        part = self._parts.get(ask.workspace)
        # What a workspace that is still being read has to say of a task is not known: it is asked again.
        if part is not None and (ask.what != "wait" or (part.standing is not None and part.standing.settled)):
            self._asked.submit(self._answer, ask, part.answers.find(ask))

    def _answer(self, ask: Ask, find: Callable[[], str | None]) -> None:
        for reply in parts(ask, find()):
            self._say(reply, to=ask.screen)


def _taken_back(told: Told) -> Told | None:
    """What takes the place of an observation that cannot be told: rather nothing than what was before."""
    match told:
        case Checked() | Decided():
            return None
        case Ran():
            return told._replace(run=None)
        case Requested():
            return told._replace(request=None)
    return Gone(told.seq, told.at, told.path, undone=True)
