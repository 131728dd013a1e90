"""A host and a screen in one process, and nothing between them but what the test lets pass."""

import json
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentwatch.config import Settings
from agentwatch.decisions.envelope import PublicKey, SigningKey
from agentwatch.delegation.events import Event, Lost, Reached, Tick
from agentwatch.delegation.tree import Tree
from agentwatch.monitor import Monitor
from agentwatch.remote.host import RemoteHost, RemoteSource
from agentwatch.remote.pipe import Change, Link, LinkState, Receive
from agentwatch.remote.relay import Relay, Relayed
from agentwatch.sources import Batch, CombinedSource, Health
from agentwatch.view.document import tree_document

KEY = SigningKey(Ed25519PrivateKey.generate())
NOON = 1_700_000_000.0


class MemoryEnd(Link):
    """The end of a relay; the messages for each screen wait in that screen's link."""

    def __init__(self):
        self.links: list[MemoryLink] = []
        self.receive: Receive = lambda _message: None
        self.change: Change = lambda _state: None

    def start(self, receive: Receive, change: Change):
        self.receive, self.change = receive, change

    def send(self, message: bytes, to: str = ""):
        for link in self.links:
            if link.is_up and to in ("", link.screen):
                link.waiting.append(message)

    def stop(self):
        pass


class MemoryLink(Link):
    """The end of a screen. `waiting` is what it will be told, `said` what it has said."""

    def __init__(self, end: MemoryEnd):
        self.is_up = False
        self.waiting: list[bytes] = []
        self.said: list[bytes] = []
        self.receive: Receive = lambda _message: None
        self.change: Change = lambda _state: None
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
        """All that is on its way is lost."""
        if self.is_up:
            self.is_up = False
            self.waiting.clear()
            self.said.clear()
            self.change(LinkState(up=False, words="the cable was cut"))

    def reach(self, end: MemoryEnd):
        """From now on it leads to another relay."""
        self.cut()
        self._end.links.remove(self)
        self._end = end
        end.links.append(self)

    def send(self, message: bytes, to: str = ""):
        if self.is_up:
            self.said.append(message)

    def hear(self, index: int = 0):
        """The relay hears what was said."""
        self._end.receive(self.said.pop(index))

    def deliver(self, index: int = 0):
        """The screen hears what it was told."""
        self.receive(self.waiting.pop(index))


class Time:
    """A clock that goes on when it is told to."""

    def __init__(self, at: float = NOON):
        self.at = at

    def __call__(self) -> float:
        return self.at


class Host(Relay):
    """A relay that does at once what it is asked, of a monitor that is told what it sees."""

    def __init__(self, end: MemoryEnd, time: Time, workspace: Path = Path("/w/shop"), key: SigningKey = KEY):
        self.monitor = Monitor(workspace, Settings(), CombinedSource([]), time)
        self.part = Relayed("shop", self.monitor)
        super().__init__([self.part], end, key, host="build1", clock=time)
        self.end = end
        self.time = time
        end.start(self._receive, self._change)

    def _soon(self, call: Callable[..., Any], *arguments: object):
        call(*arguments)

    def see(self, events: Iterable[Event], *, settled: bool = True):
        """These are observed."""
        self.monitor.health = Health("live", "")
        for one in events:
            self.monitor._add([one])
        self.monitor.tree.settle()
        if settled:
            self.part._settled = 2
        self.tell()

    def tell(self):
        self.part.look()
        self._tell(self.part)

    def beat(self):
        self._beat()

    def document(self) -> dict[str, Any]:
        self.monitor.tree.apply(Tick(0, self.time()))
        return tree_document(self.monitor.tree, "/w")


class Screen(Seen):
    """The view of a host, without a thread: `tick` is called by the test."""

    def __init__(self, link: MemoryLink, time: Time, **more: Any):
        super().__init__(link, clock=time, steady=lambda: time.at - NOON + 100.0, **more)
        self.time, self.link = time, link
        self.batches: list[Batch] = []
        self.host._holders = [self]
        link.start(self.host._receive, self.host._change)
        self.look()

    def receive(self, batch: Batch):
        self.batches.append(batch)
        super().receive(batch)

    @property
    def events(self) -> list[Event]:
        return [one for batch in self.batches for one in batch.events]

    def document(self, workspace: str = "/w") -> dict[str, Any]:
        self.tree.apply(Tick(0, self.time()))
        return tree_document(self.tree, workspace)

    def exchange(self, rounds: int = 50):
        """Let everything pass, in order, until nobody says anything any more."""
        for _ in range(rounds):
            if not (self.link.said or self.link.waiting):
                return
            while self.link.said:
                self.link.hear()
            while self.link.waiting:
                self.link.deliver()


def pair(**more: Any) -> tuple[Host, Screen]:
    """A host and a screen that has just reached it."""
    time = Time()
    host = Host(MemoryEnd(), time)
    screen = Screen(MemoryLink(host.end), time, **more)
    screen.link.connect()
    screen.exchange()
    return host, screen


def until(is_so: Callable[[], bool], what: Callable[[], object] = lambda: None, seconds: float = 90.0):
    """Wait until something is so, and say `what` there is instead."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, what()
        time.sleep(0.02)


class Seen:
    """A tree that takes what is told through a link."""

    def __init__(self, link: Link, key: PublicKey | None = None, clock: Callable[[], float] = time.time, **more: Any):
        self.tree = Tree()
        self.health = Health("starting", "")
        self.told: list[str] = []
        """The news of the way to the host."""
        self.lock = threading.Lock()
        self.clock = clock
        self.host = RemoteHost(link, "build1", key=key, clock=clock, **more)
        # Whoever decides on the host itself is the operator here, so that both sides say the same.
        self.source = RemoteSource(self.host, own_keys=lambda: [""])

    def look(self):
        self.source.start(self.receive)

    def receive(self, batch: Batch):
        with self.lock:
            tree = Tree() if batch.anew else self.tree
            for one in batch.events:
                tree.add([one])
                if isinstance(one, Lost | Reached):
                    self.told.append(type(one).__name__)
            tree.apply(Tick(0, self.clock()))
            self.tree, self.health = tree, batch.health

    def until(self, is_so: Callable[[], bool]):
        until(is_so, lambda: (self.health, [*self.tree.tasks], self.told))

    @property
    def is_live(self) -> bool:
        return self.health.mode == "live" and self.tree.lost_since is None

    def document(self, workspace: str) -> dict[str, Any]:
        """The document of `tree --json`, as it is seen here."""
        with self.lock:
            self.tree.apply(Tick(0, self.clock()))
            problems = [tuple(one) for one in self.health.problems]
            return json.loads(json.dumps(tree_document(self.tree, workspace, problems)))  # type: ignore[no-any-return]
