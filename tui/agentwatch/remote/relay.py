"""The relay: monitors without a screen, which tell what they see to whoever watches from another machine."""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any, Final

from agentwatch import __version__
from agentwatch.decisions.envelope import SigningKey
from agentwatch.delegation.events import Event
from agentwatch.monitor import Monitor, rules_of
from agentwatch.remote.answers import Answers, parts
from agentwatch.remote.log import Log
from agentwatch.remote.pipe import LinkState, RelayEnd
from agentwatch.remote.protocol import (
    PROTOCOL,
    Ask,
    Beat,
    Decide,
    Entry,
    Frame,
    Hello,
    Observed,
    Result,
    Standing,
    Watch,
    Workspace,
    entry_of,
    pieces,
    signed,
    unpack,
)
from agentwatch.sources import Problem, health_of
from agentwatch.state import shown, state_directory, workspace_id
from agentwatch.text import words_of
from agentwatch.view.words import plural

Deciding = Callable[[Monitor, str], Awaitable[Result]]

BEAT_SECONDS: Final = 5.0
SEEN_SECONDS: Final = 15.0
"""For so long after a screen has said so, somebody sees a workspace."""
_LOOK_SECONDS: Final = 0.25
"""Between two looks at how well a monitor sees."""
_MOST_SCREENS: Final = 1_000


class Relayed:
    """A workspace that is relayed, and the log of it."""

    def __init__(self, name: str, monitor: Monitor, asked: Sequence[str] = ()) -> None:
        self.monitor = monitor
        self.id = workspace_id(monitor.workspace)
        self.answers = Answers(monitor)
        self.log = Log()
        self.new: list[Entry] = []
        """The entries of the log that were not told yet."""
        self.ended = ""
        """Why it is not watched any more."""
        self.untold = 0
        """How many observations could not be told."""
        self._name, self._asked = name, tuple(asked)
        self._presence = ExitStack()
        self._seen_until = 0.0
        self._settled = 0
        """How many looks have found it settled."""
        monitor.tap = self._note

    @property
    def workspace(self) -> Workspace:
        monitor, tree = self.monitor, self.monitor.tree
        rules = rules_of(monitor.settings, tree.rules.history_before)
        summary = f"{plural(len(tree.tasks), 'task')}, {len(tree.queue)} of them asked you" if tree.tasks else ""
        return Workspace(
            id=self.id,
            path=str(monitor.workspace),
            name=self._name,
            rules=rules,
            asked=self._asked,
            summary=summary,
        )

    def _note(self, event: Event | Standing) -> None:
        entry = None
        try:
            entry = entry_of(event)
        except ValueError:
            self.untold += 1
        told = entry.event if entry is not None else None
        if told is not None and (counts := self.log.add(told)) is not None:
            self.log.seq += 1
            self.new += filter(None, [entry if counts is told else entry_of(counts)])

    def look(self) -> bool:
        """Note how well it is seen; whether that is something else than before. It counts as settled at the second look
        that finds it so: what a thread has told between the two has been taken in."""
        monitor = self.monitor
        problems = list(monitor.problems)
        if self.ended:
            problems.append(Problem("relay", "", self.ended))
        if self.untold:
            problems.append(
                Problem("relay", "", f"{self.untold:,} observations cannot be told: update agentwatch there")
            )
        known = monitor.health
        health = health_of(known.mode, known.detail, problems)._replace(notices=tuple(monitor.notices))
        if self._settled < 2:
            self._settled = self._settled + 1 if monitor.is_settled else 0
        standing = Standing(health, self.is_settled)
        if standing == self.log.standing:
            return False
        self._note(standing)
        return True

    @property
    def is_settled(self) -> bool:
        """Whether all that was there at first is in the log."""
        return self._settled == 2

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

    `asked` are, by name, the paths by which somebody asked for it, `missing` those that are none, with the reasons.
    `decide` records what was asked for in the ledger of a workspace.
    """

    def __init__(
        self,
        monitors: Mapping[str, Monitor],
        end: RelayEnd,
        key: SigningKey,
        *,
        host: str = "",
        asked: Mapping[str, Sequence[str]] = MappingProxyType({}),
        missing: Mapping[str, str] = MappingProxyType({}),
        decide: Deciding | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.epoch: Final = secrets.token_hex(8)
        self._parts = {
            part.id: part for part in (Relayed(name, one, asked.get(name, ())) for name, one in monitors.items())
        }
        self._end = end
        self._key = key
        self._host = host or socket.gethostname()
        self._missing = dict(missing)
        self._decide = decide
        self._clock = clock
        self._began_at = clock()
        self._screens: dict[str, tuple[float, float]] = {}
        """By id: what it has said last as `Watch.sent`, and when, by a clock that nobody sets."""
        self._kept: tuple[Workspace, ...] | None = None
        self._asked = ThreadPoolExecutor(2, "agentwatch-asked")
        self._over = asyncio.Event()
        self._why = ""
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self) -> str:
        """Relay. Returns why it has ended: what the end says in its last state."""
        self._loop = asyncio.get_running_loop()
        self._end.start(self._receive, self._change)
        # Who speaks another protocol is told so before anybody asks.
        self._say(self._hello(), [""])
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
                if part.look():
                    self._tell(part)
                part.unsee(time.monotonic())
            await asyncio.sleep(_LOOK_SECONDS)

    async def _beat_again(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self._beat()
            self._keep()

    def _keep(self) -> None:
        """Have the end keep a hello with what there is now, for screens that come when this host is off."""
        hello = self._hello()
        if hello.workspaces != self._kept:
            self._kept = hello.workspaces
            self._end.keep(signed(hello, self._key))

    def _tell(self, part: Relayed) -> None:
        """Tell all screens what is new. Whoever has all of what was told before has everything then."""
        new, part.new = part.new, []
        after = part.log.seq - len(new)
        for some in pieces(new):
            upto = after + len(some)
            self._say(Observed(workspace=part.id, epoch=self.epoch, after=after, upto=upto, entries=some))
            after = upto

    def _beat(self, to: Iterable[str] | None = None) -> None:
        for part in self._parts.values():
            self._tell(part)
        since = time.monotonic() - SEEN_SECONDS
        self._screens = {screen: one for screen, one in self._screens.items() if one[1] >= since}
        seqs = {part.id: part.log.seq for part in self._parts.values()}
        self._say(Beat(epoch=self.epoch, now=self._clock(), seqs=seqs, echo=self._echo()), to)

    def _echo(self) -> dict[str, float]:
        return {screen: sent for screen, (sent, _) in self._screens.items()}

    def _hello(self) -> Hello:
        return Hello(
            protocol=PROTOCOL,
            agentwatch=__version__,
            host=self._host,
            host_key=self._key.public.text,
            epoch=self.epoch,
            began_at=self._began_at,
            now=self._clock(),
            echo=self._echo(),
            workspaces=tuple(part.workspace for part in self._parts.values()),
            missing=self._missing,
        )

    def _say(self, frame: Frame, to: Iterable[str] | None = None) -> None:
        screens = list(self._screens if to is None else to)
        if screens:
            message = signed(frame, self._key)
            for screen in screens:
                self._end.send(message, screen)

    # What is asked

    def _change(self, state: LinkState) -> None:
        if state.fatal:
            self._why = state.words
            self._soon(self._over.set)
        elif state.up:
            self._kept = None

    def _soon(self, call: Callable[..., Any], *arguments: object) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *arguments)

    def _receive(self, message: bytes) -> None:
        """A message of a screen, in the thread of the end. What nobody can have said is passed over."""
        try:
            frame = unpack(message)
        except ValueError:
            return
        if isinstance(frame, Watch):
            self._soon(self._handle, frame)
        elif isinstance(frame, Ask):
            self._soon(self._ask, frame)
        elif isinstance(frame, Decide) and self._loop is not None:
            part = self._parts.get(frame.workspace)
            if part is not None and self._decide is not None:
                asyncio.run_coroutine_threadsafe(self._record(part, frame, self._decide), self._loop)

    async def _record(self, part: Relayed, frame: Decide, decide: Deciding) -> None:
        """Record a decision, and tell its outcome."""
        self._say(await decide(part.monitor, frame.request), [frame.screen])

    def _handle(self, watch: Watch) -> None:
        """A screen says that it is there, and what it lacks."""
        now = time.monotonic()
        if watch.screen not in self._screens and len(self._screens) >= _MOST_SCREENS:
            return
        self._screens[watch.screen] = watch.sent, now
        for name in watch.shown:
            if name in self._parts:
                self._parts[name].see(now)
        if watch.epoch != self.epoch:
            self._say(self._hello(), [watch.screen])
        else:
            for name in set(watch.lacks) & self._parts.keys():
                self._tell_all(self._parts[name], watch.screen)
        # Behind what it asked for, so that it can tell whether it has all.
        self._beat([watch.screen])

    def _tell_all(self, part: Relayed, screen: str) -> None:
        """Tell a screen everything that counts."""
        self._tell(part)
        entries = [entry for event in part.log.events() if (entry := entry_of(event)) is not None]
        groups = list(pieces(entries)) or [()]
        for number, some in enumerate(groups):
            of_all = Observed(
                workspace=part.id,
                epoch=self.epoch,
                after=0,
                upto=part.log.seq,
                part=number,
                parts=len(groups),
                entries=some,
            )
            self._say(of_all, [screen])

    def _ask(self, ask: Ask) -> None:
        part = self._parts.get(ask.workspace)
        # What a workspace that is still being read has to say of a task is not known: it is asked again.
        if part is not None and (ask.what != "wait" or part.is_settled):
            self._asked.submit(self._answer, ask, part.answers.find(ask))

    def _answer(self, ask: Ask, find: Callable[[], str | None]) -> None:
        for reply in parts(ask, find()):
            self._say(reply, [ask.screen])
