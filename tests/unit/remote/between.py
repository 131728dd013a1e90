"""Both ends of a link in the hands of a test: the messages of each, and a host and a screen with nothing between."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from agentwatch.config import Settings
from agentwatch.decisions.envelope import PublicKey, SigningKey
from agentwatch.delegation.events import Event, Lost, Reached, Tick
from agentwatch.delegation.tree import Tree
from agentwatch.monitor import Monitor
from agentwatch.remote.host import RemoteHost, RemoteSource
from agentwatch.remote.pipe import Change, Link, LinkState, Receive
from agentwatch.remote.protocol import Hello
from agentwatch.remote.relay import Relay, RelayedWorkspace
from agentwatch.sources import Batch, CombinedSource, Health
from agentwatch.view.document import tree_document
from tests.broker import new_key

KEY = new_key()
NOON = 1_700_000_000.0


def until(is_so: Callable[[], bool], what: Callable[[], object] = lambda: None):
    """Wait until `is_so` holds; a failure shows the result of `what`."""
    end = time.monotonic() + 90.0
    while not is_so():
        assert time.monotonic() < end, what()
        time.sleep(0.02)


def document_of(tree: Tree, now: float) -> dict[str, Any]:
    """Return the document of `tree --json`, as printed at the time `now`."""
    tree.apply(Tick(0, now))
    return json.loads(json.dumps(tree_document(tree, "/w")))  # type: ignore[no-any-return]


class Heard:
    """The messages that one end has received, and the states of its link."""

    def __init__(self):
        self.messages: list[bytes] = []
        self.states: list[LinkState] = []

    def until(self, is_so: Callable[[], bool]):
        until(is_so, lambda: ([one[:80] for one in self.messages[-5:]], self.states))

    def has(self, message: bytes):
        self.until(lambda: message in self.messages)

    def is_up(self):
        self.until(lambda: bool(self.states) and self.states[-1].up)


Start = Callable[[Link], Heard]


def starting() -> Iterator[Start]:
    """Yield a function that starts ends, and stop them when the test is over."""
    ends: list[Link] = []

    def start(end: Link) -> Heard:
        heard = Heard()
        end.start(heard.messages.append, heard.states.append)
        ends.append(end)
        return heard

    yield start
    for end in ends:
        end.stop()


class Seen:
    """The view that a screen has of one workspace, over any link."""

    host_of: ClassVar = RemoteHost

    def __init__(self, link: Link, key: PublicKey | None = None, clock: Callable[[], float] = time.time, **more: Any):
        self.tree = Tree()
        self.health = Health("starting", "")
        self.told: list[str] = []
        """The events about losing and reaching the host."""
        self.lock = threading.Lock()
        self.clock = clock
        self.host: RemoteHost = self.host_of(link, "build1", key=key, clock=clock, **more)
        # Decisions made on the host itself count as the operator's own, so that both sides show the same.
        self.source = RemoteSource(self.host, own_keys=lambda: [""])

    def look(self):
        self.source.start(self.receive)

    def receive(self, batch: Batch):
        with self.lock:
            tree = Tree() if batch.starts_over else self.tree
            tree.apply(*batch.events, Tick(0, self.clock()))
            self.told += [type(one).__name__ for one in batch.events if isinstance(one, Lost | Reached)]
            self.tree, self.health = tree, batch.health

    def until(self, is_so: Callable[[], bool]):
        until(is_so, lambda: (self.health, [*self.tree.tasks], self.told))

    @property
    def is_live(self) -> bool:
        return self.health.mode == "live" and self.tree.lost_since is None

    def document(self) -> dict[str, Any]:
        with self.lock:
            return document_of(self.tree, self.clock())


class MemoryEnd(Link):
    """The end of a relay; the messages for each screen wait in that screen's link."""

    def __init__(self):
        self.links: list[MemoryLink] = []

    def start(self, receive: Receive, change: Change):
        self.receive = receive

    def send(self, message: bytes, to: str = ""):
        for link in self.links:
            if link.is_up and to in ("", link.screen):
                link.waiting.append(message)

    def stop(self):
        pass


class MemoryLink(Link):
    """The end of a screen. `waiting` are the messages to it, `said` those from it."""

    def __init__(self, end: MemoryEnd):
        self.is_up = False
        self.waiting: list[bytes] = []
        self.said: list[bytes] = []
        self._end = end
        end.links.append(self)

    def start(self, receive: Receive, change: Change):
        self.receive, self.change = receive, change

    def stop(self):
        self.cut()

    def connect(self):
        if not self.is_up:
            self.is_up = True
            self.change(LinkState(up=True))

    def cut(self):
        """Lose all messages on their way."""
        if self.is_up:
            self.is_up = False
            self.waiting.clear()
            self.said.clear()
            self.change(LinkState(up=False, words="the cable was cut"))

    def reach(self, end: MemoryEnd):
        """Lead to another relay from now on."""
        self.cut()
        self._end.links.remove(self)
        self._end = end
        end.links.append(self)

    def send(self, message: bytes, to: str = ""):
        if self.is_up:
            self.said.append(message)

    def hear(self, index: int = 0):
        """Let the relay receive a message."""
        self._end.receive(self.said.pop(index))

    def deliver(self):
        """Let the screen receive a message."""
        self.receive(self.waiting.pop(0))


class Time:
    """A clock that moves only when the test moves it."""

    def __init__(self, at: float = NOON):
        self.at = at

    def __call__(self) -> float:
        return self.at


class Host(Relay):
    """A relay that acts at once, on a monitor whose events come from the test."""

    def __init__(self, time: Time, key: SigningKey = KEY):
        self.monitor = Monitor(Path("/w/shop"), Settings(), CombinedSource([]), time)
        self.part = RelayedWorkspace("shop", self.monitor)
        self.end, self.time = MemoryEnd(), time
        super().__init__([self.part], self.end, key, host="build1", clock=time)
        self.end.start(self._take_message, self._take_state)

    def _call_soon(self, call: Callable[..., Any], *arguments: object):
        call(*arguments)

    def see(self, events: Iterable[Event], *, settled: bool = True):
        """Let the host observe these events."""
        self.monitor.apply_batch(Batch(tuple(events), Health("live", "")))
        if settled:
            self.part.note_health()
        self.tell()

    def tell(self):
        self.part.note_health()
        self._send_unsent(self.part)

    def beat(self, *deciders: str):
        """Send a beat; these keys may decide here."""
        self._deciders = deciders
        self._send_beat()

    def hello(self) -> Hello:
        return self._build_hello()

    def drop(self):
        """Stop relaying the workspace."""
        self._parts.clear()

    def document(self) -> dict[str, Any]:
        return document_of(self.monitor.tree, self.time())


class Ticked(RemoteHost):
    """A host for which time passes only when the test says so."""

    def _run(self):
        pass


class Screen(Seen):
    """The view of a host; the test delivers its messages."""

    host_of = Ticked

    def __init__(self, link: MemoryLink, time: Time, **more: Any):
        super().__init__(link, clock=time, steady=lambda: time.at - NOON + 100.0, **more)
        self.time, self.link = time, link
        self.batches: list[Batch] = []
        self.look()

    def receive(self, batch: Batch):
        self.batches.append(batch)
        super().receive(batch)

    def exchange(self):
        """Deliver all messages in order, until no more are sent."""
        for _ in range(50):
            while self.link.said:
                self.link.hear()
            while self.link.waiting:
                self.link.deliver()

    def move(self, host: Host):
        """Reach another relay in place of the one before."""
        self.link.reach(host.end)
        self.link.connect()


def pair(**more: Any) -> tuple[Host, Screen]:
    """Return a host, and a screen that has just reached it."""
    host = Host(Time())
    screen = Screen(MemoryLink(host.end), host.time, **more)
    screen.link.connect()
    screen.exchange()
    return host, screen
