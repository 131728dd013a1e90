"""Watches workspaces without a screen, and sends their events to screens on other machines."""

import asyncio
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import Any

from agentwatch import __version__
from agentwatch.decisions.envelope import SigningKey
from agentwatch.delegation.events import Event
from agentwatch.monitor import Monitor, tree_rules
from agentwatch.remote.desk import record_signed
from agentwatch.remote.log import Log
from agentwatch.remote.pipe import Link, LinkState
from agentwatch.remote.protocol import (
    PROTOCOL,
    Ask,
    Beat,
    Decide,
    Entry,
    Frame,
    Hello,
    Observed,
    Standing,
    Watch,
    Workspace,
    entry_of,
    group_entries,
    sign_frame,
    unpack_frame,
)
from agentwatch.remote.texts import Answers, split_answer
from agentwatch.sources import Problem, health_of
from agentwatch.state import mark_shown, read_first_watch, state_directory, workspace_id
from agentwatch.text import describe_error
from agentwatch.view.words import plural

BEAT_SECONDS = 5.0
SEEN_SECONDS = 15.0  # after a `Watch`, its workspaces count as shown for so long
_FIND_SECONDS = 10.0
_LOOK_SECONDS = 0.25  # seconds between two checks of the health of a monitor


class RelayedWorkspace:
    """A workspace that is relayed: its monitor, and the log of its events."""

    def __init__(self, name: str, monitor: Monitor, asked: Sequence[str] = ()):
        self.monitor = monitor
        self.id = workspace_id(monitor.workspace)
        self.answers = Answers(monitor)
        self.log = Log()
        self._new: list[Entry] = []  # the entries of the log that are not sent yet
        self._problems: list[Problem] = []
        self._name, self._asked = name, tuple(asked)
        self._watched_at = read_first_watch(state_directory(monitor.workspace)) or time.time()
        self._presence = ExitStack()
        self._seen_until = 0.0
        self._settled = 0  # how many checks in a row found that everything is read, at most 2
        monitor.on_event = self._log_event

    @property
    def workspace(self) -> Workspace:
        monitor, tree = self.monitor, self.monitor.tree
        rules = tree_rules(monitor.settings, tree.rules.history_before)
        summary = f"{plural(len(tree.tasks), 'task')}, {len(tree.queue)} of them asked you" if tree.tasks else ""
        return Workspace(
            id=self.id,
            path=str(monitor.workspace),
            name=self._name,
            rules=rules,
            asked=self._asked,
            summary=summary,
            watched_at=self._watched_at,
        )

    def _log_event(self, event: Event | Standing) -> None:
        try:
            entry = entry_of(event)
            observed = entry.event if entry else None
            if observed is not None and (added := self.log.add(observed)) is not None:
                self.log.seq += 1
                self._new += filter(None, [entry if added is observed else entry_of(added)])
        except ValueError as error:
            self._problems = [Problem("relay", "", f"not all can be told: {describe_error(error)}")]

    def note_health(self) -> None:
        """Add the health of the monitor to the log if it changed."""
        monitor, known = self.monitor, self.monitor.health
        health = health_of(known.mode, known.detail, [*monitor.problems, *self._problems])
        health = health._replace(notices=tuple(monitor.notices))
        # Check twice. Events that a thread sent before the first check are handled before the second check.
        if self._settled < 2:
            self._settled = self._settled + 1 if monitor.is_settled else 0
        standing = Standing(health, self.is_settled)
        if standing != self.log.standing:
            self._log_event(standing)

    @property
    def is_settled(self) -> bool:
        """Whether the whole workspace was read, and all its events are in the log."""
        return self._settled == 2

    def mark_seen(self, now: float) -> None:
        """Record that a screen shows the workspace at this monotonic time."""
        if not self._seen_until:
            # The hooks on this host hold a request only if a screen shows the workspace.
            self._presence.enter_context(mark_shown(state_directory(self.monitor.workspace)))
        self._seen_until = now + SEEN_SECONDS

    def mark_unseen(self, now: float) -> None:
        """If no screen has shown the workspace for a while, record that it is not shown."""
        if now >= self._seen_until:
            self._presence.close()
            self._seen_until = 0.0

    def take_unsent(self, epoch: str) -> Iterator[Observed]:
        """Yield the entries that are not sent yet. From now on they count as sent."""
        new, self._new = self._new, []
        after = self.log.seq - len(new)
        for some in group_entries(new):
            upto = after + len(some)
            yield Observed(workspace=self.id, epoch=epoch, after=after, upto=upto, entries=some)
            after = upto

    def all_entries(self, epoch: str) -> Iterator[Observed]:
        """Yield all entries of the log. The caller must have sent the unsent entries before."""
        entries = [entry for event in self.log.events() if (entry := entry_of(event)) is not None]
        groups, upto = list(group_entries(entries)) or [()], self.log.seq
        news = Observed(workspace=self.id, epoch=epoch, after=0, upto=upto, parts=len(groups))
        for number, some in enumerate(groups):
            yield news.model_copy(update={"part": number, "entries": some})


class Relay:
    """Relays workspaces to all screens of a link. `missing` gives the reason for each path that is not relayed."""

    def __init__(
        self,
        parts: Iterable[RelayedWorkspace],
        end: Link,
        key: SigningKey,
        *,
        host: str = "",
        missing: dict[str, str] | None = None,
        clock: Callable[[], float] = time.time,
        deciders: Callable[[], Sequence[str]] | None = None,
        find: Callable[[], Sequence[RelayedWorkspace]] = tuple,
    ):
        self._find, self._finding = find, set[asyncio.Task[None]]()
        self._read_deciders = deciders
        self._deciders: tuple[str, ...] | None = None
        self.epoch = secrets.token_hex(8)
        self._parts = {part.id: part for part in parts}
        self._end = end
        self._key = key
        self._host = host or socket.gethostname()
        self._missing = missing or {}
        self._clock, self._began_at = clock, clock()
        self._echo: dict[str, float] = {}  # by screen: its last `Watch.sent`
        self._heard: dict[str, float] = {}  # by screen: the monotonic time at which its last `Watch` came
        self._kept: tuple[Workspace, ...] | None = None
        self._answering = ThreadPoolExecutor(2, "agentwatch-asked")
        self._over = asyncio.Event()
        self._why = ""
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self) -> str:
        """Relay until the link ends, or until `end` is called. Return the reason, or "" if it is unknown."""
        self._loop = asyncio.get_running_loop()
        await self._learn_deciders()
        self._end.start(self._take_message, self._take_state)
        # Say hello at once, so that a screen soon learns if it uses another version of the protocol.
        self._send(self._build_hello(), [""])
        doing = [self._check_all(), self._send_beats(), self._find_others(), *map(self._watch, self._parts.values())]
        working = [asyncio.create_task(one) for one in doing]
        over = asyncio.create_task(self._over.wait())
        try:
            await asyncio.wait([over, *working], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in (over, *working, *self._finding):
                one.cancel()
            ended = await asyncio.gather(*working, return_exceptions=True)
            await asyncio.to_thread(self._end.stop)
            self._answering.shutdown(wait=False, cancel_futures=True)
            for part in self._parts.values():
                part.mark_unseen(float("inf"))
        return self._why or next((describe_error(one) for one in ended if isinstance(one, Exception)), "")

    def end(self) -> None:
        """End the relay soon. Call it on the event loop."""
        self._over.set()

    # Messages to screens

    async def _watch(self, part: RelayedWorkspace) -> None:
        async for _ in part.monitor.updates():
            self._send_unsent(part)

    async def _find_others(self) -> None:
        """Search for more workspaces, and relay them, too. A new `epoch` makes the screens request all logs again."""
        while True:
            await asyncio.sleep(_FIND_SECONDS)
            others = await asyncio.to_thread(self._find)
            for part in others:
                self._parts[part.id], self._missing = part, {}
                self._finding.add(asyncio.create_task(self._watch(part)))
            if others:
                self.epoch, self._began_at = secrets.token_hex(8), self._clock()
                self._send(self._build_hello())

    async def _check_all(self) -> None:
        while True:
            for part in [*self._parts.values()]:
                part.note_health()
                self._send_unsent(part)
                part.mark_unseen(time.monotonic())
            await asyncio.sleep(_LOOK_SECONDS)

    async def _send_beats(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            await self._learn_deciders()
            self._send_beat()
            hello = self._build_hello()
            if hello.workspaces != self._kept:
                # Store the hello for screens that connect while this host is off.
                self._kept = hello.workspaces
                self._end.keep_hello(sign_frame(hello, self._key))

    async def _learn_deciders(self) -> None:
        if self._read_deciders is not None:
            self._deciders = tuple(await asyncio.to_thread(self._read_deciders))

    def _send_unsent(self, part: RelayedWorkspace) -> None:
        for news in part.take_unsent(self.epoch):
            self._send(news)

    def _send_beat(self, to: Iterable[str] | None = None) -> None:
        for part in self._parts.values():
            self._send_unsent(part)
        since = time.monotonic() - SEEN_SECONDS
        for screen in [screen for screen, heard in self._heard.items() if heard < since]:
            del self._heard[screen], self._echo[screen]
        seqs = {part.id: part.log.seq for part in self._parts.values()}
        echo, deciders = dict(self._echo), self._deciders
        self._send(Beat(epoch=self.epoch, now=self._clock(), seqs=seqs, echo=echo, deciders=deciders), to)

    def _build_hello(self) -> Hello:
        return Hello(
            protocol=PROTOCOL,
            agentwatch=__version__,
            host=self._host,
            host_key=self._key.public.text,
            epoch=self.epoch,
            began_at=self._began_at,
            now=self._clock(),
            echo=dict(self._echo),
            workspaces=tuple(part.workspace for part in self._parts.values()),
            missing=self._missing,
        )

    def _send(self, frame: Frame, to: Iterable[str] | None = None) -> None:
        if screens := list(self._echo if to is None else to):
            message = sign_frame(frame, self._key)
            for screen in screens:
                self._end.send(message, screen)

    # Messages of screens

    def _take_state(self, state: LinkState) -> None:
        if state.fatal:
            self._why = state.words
            self._call_soon(self._over.set)
        elif state.up:
            self._kept = None

    def _call_soon(self, call: Callable[..., Any], *arguments: object) -> None:
        if self._loop and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *arguments)

    def _take_message(self, message: bytes) -> None:
        with suppress(ValueError):
            self._call_soon(self._handle_frame, unpack_frame(message))

    def _handle_frame(self, frame: Frame) -> None:
        match frame:
            case Watch():
                self._answer_watch(frame)
            case Ask() if part := self._parts.get(frame.workspace):
                self._answering.submit(self._send_answer, frame, part.answers.prepare(frame))
            case Decide() if (part := self._parts.get(frame.workspace)) and part.is_settled and self._loop:
                asyncio.run_coroutine_threadsafe(self._record_decision(part, frame), self._loop)

    async def _record_decision(self, part: RelayedWorkspace, frame: Decide) -> None:
        self._send(await record_signed(part.monitor, frame.request, datetime.now(UTC)), [frame.screen])

    def _answer_watch(self, watch: Watch) -> None:
        """Answer a screen's `Watch`. Send a `Hello`, or the logs that the screen lacks. Then send a `Beat`."""
        now = time.monotonic()
        self._echo[watch.screen], self._heard[watch.screen] = watch.sent, now
        for name in self._parts.keys() & watch.shown:
            self._parts[name].mark_seen(now)
        if watch.epoch != self.epoch:
            self._send(self._build_hello(), [watch.screen])
        else:
            for name in self._parts.keys() & watch.lacks:
                self._send_unsent(self._parts[name])
                for part in self._parts[name].all_entries(self.epoch):
                    self._send(part, [watch.screen])
        # The beat comes last, so that the screen can tell whether it has all entries.
        self._send_beat([watch.screen])

    def _send_answer(self, ask: Ask, find: Callable[[], str | None]) -> None:
        for reply in split_answer(ask, find()):
            self._send(reply, [ask.screen])
