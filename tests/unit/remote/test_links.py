"""The promises of every link, whatever carries its messages: the code that uses a link need not know its kind."""

import asyncio
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import Queue

import pytest

from agentwatch.composition import build_desk
from agentwatch.config import Settings
from agentwatch.monitor import Monitor
from agentwatch.remote.address import Address
from agentwatch.remote.nats import Login, NatsEnd, NatsHub
from agentwatch.remote.pipe import Change, Link, LinkState, ProcessLink, Receive, StdioEnd, stay_connected
from agentwatch.remote.protocol import Outcome
from agentwatch.remote.relay import Relay, RelayedWorkspace
from agentwatch.sources import Batch, CombinedSource
from agentwatch.sources.files.source import FilesSource
from tests.broker import Broker, Wire, new_key, running
from tests.unit.remote.between import KEY, Heard, MemoryEnd, Seen, Start, document_of, starting, until

PACKET = '{"task_id": "%s", "objective": "count the seeds", "acceptance_criteria": ["done"], "scope": {"in": ["a"]}}'
LARGE = bytes(range(256)) * 3072
started = pytest.fixture(starting)

BRIDGE = """
import os, socket, sys, threading
there = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def say():
    while data := os.read(0, 65536):
        there.sendall(data)
    there.shutdown(socket.SHUT_WR)
threading.Thread(target=say, daemon=True).start()
while data := there.recv(65536):
    while data:
        data = data[os.write(1, data):]
"""
"""A program that runs instead of ssh, and leads to the end of a relay that the test holds."""


class Ends(Link):
    """All ends on the connections to a port, one after the other, as one end: with pipes each screen has a relay."""

    def __init__(self):
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._end: StdioEnd | None = None

    def start(self, receive: Receive, change: Change):
        self._thread = threading.Thread(target=self._accept, args=[receive], daemon=True)
        self._thread.start()

    def send(self, message: bytes, to: str = ""):
        if self._end:
            self._end.send(message, to)

    def cut(self):
        with suppress(OSError):
            if self._end:
                self._socket.shutdown(socket.SHUT_RDWR)

    def stop(self):
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()
        self._thread.join(10)

    def _accept(self, receive: Receive):
        with suppress(OSError):
            while True:
                self._socket, _ = self._listening.accept()
                states = Queue[LinkState]()
                end = StdioEnd(self._socket.fileno(), self._socket.fileno())
                end.start(receive, states.put)
                self._end = end
                # When the screen goes, it may come again.
                assert states.get().fatal
                self._end = None
                end.stop()
                self._socket.close()


class Pipes:
    """A way through the pipes of a process."""

    def __init__(self):
        self.end = Ends()

    def link(self) -> Link:
        bridge = (sys.executable, "-ISEc", BRIDGE, str(self.end.port))
        return ProcessLink(Address("build1", "run", "build1", run=bridge), [""])

    def cut(self):
        self.end.cut()

    def stop(self):
        self.end.stop()


class Nats:
    """A way over a server that others use, too."""

    def __init__(self, broker: Broker):
        self._key = new_key()
        self._there, self._here = Wire(broker), Wire(broker)
        self.end = NatsEnd(self._there.url, self._key, login=Login())

    def link(self) -> Link:
        return NatsHub(self._here.url, Login()).link(self._key.public)

    def cut(self):
        self._here.cut()

    def stop(self):
        self.end.stop()
        self._there.stop()
        self._here.stop()


Way = Pipes | Nats
"""A way between one relay, which holds `end`, and its screens. A cut may come in the middle of a message."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    yield from running(tmp_path_factory.mktemp("broker"))


@pytest.fixture(params=["pipes", "nats"])
def way(request):
    made = Pipes() if request.param == "pipes" else Nats(request.getfixturevalue("broker"))
    yield made
    made.stop()


def connected(way: Way, started: Start) -> tuple[Heard, Link, Heard]:
    """Return the messages that the relay heard, a link, and those its screen heard, once each has heard the other."""
    hears, link = started(way.end), way.link()
    shown = started(link)
    meet(way, hears, link, shown, b"0")
    shown.is_up()
    return hears, link, shown


def meet(way: Way, hears: Heard, link: Link, shown: Heard, name: bytes):
    """Send messages until both sides have heard one: messages right after a cut may be lost."""

    def have_met() -> bool:
        link.send(b"a screen " + name)
        way.end.send(b"a relay " + name, link.screen)
        return b"a screen " + name in hears.messages and b"a relay " + name in shown.messages

    until(have_met, lambda: (hears.states, shown.states))


def said(heard: Heard) -> list[bytes]:
    return [one for one in heard.messages if not one.startswith((b"a screen", b"a relay"))]


def test_messages_of_any_size_arrive_whole_and_in_their_order(way, started):
    hears, link, shown = connected(way, started)
    messages = [*(b"%d" % number for number in range(50)), LARGE, os.urandom(200_000), b"the end"]
    for message in messages:
        link.send(message)
        way.end.send(message, link.screen)
    hears.has(b"the end")
    shown.has(b"the end")
    assert said(hears) == said(shown) == messages


def test_a_cut_is_reported_and_the_link_comes_up_by_itself(way, started):
    hears, link, shown = connected(way, started)
    for number in (b"1", b"2"):
        count = len(shown.states)
        way.cut()
        shown.until(lambda count=count: any(not one.up for one in shown.states[count:]))  # type: ignore[misc]
        down = next(one for one in shown.states[count:] if not one.up)
        assert down.words
        assert not down.fatal
        meet(way, hears, link, shown, number)
        shown.is_up()
    # A message that was cut in the middle does not arrive.
    assert not said(hears)
    assert not said(shown)


def test_messages_to_an_absent_end_do_not_block(way, started):
    link = way.link()
    link.send(b"before it began")
    hears = started(way.end)
    for _ in range(100):
        way.end.send(LARGE[:10_000], link.screen)
    shown = started(link)
    for _ in range(100):
        link.send(LARGE[:10_000])
    meet(way, hears, link, shown, b"1")
    link.stop()
    link.send(b"when it has ended")
    way.end.stop()
    way.end.send(b"when it has ended", link.screen)


@contextmanager
def relaying(way: Way, workspace: Path) -> Iterator[Monitor]:
    """Run a relay that sends the events of a workspace."""
    desk = partial(build_desk, workspace, Settings())
    monitor = Monitor(workspace, Settings(), FilesSource(workspace), time.time, open_desk=desk)
    relay = Relay([RelayedWorkspace("shop", monitor)], way.end, KEY, host="build1")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(relay.run()))
    thread.start()
    try:
        yield monitor
    finally:
        loop.call_soon_threadsafe(relay.end)
        thread.join()
        loop.close()


def test_after_any_cut_the_screen_shows_what_the_host_does(way, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    workspace = tmp_path / "shop"
    workspace.mkdir()
    link = way.link()
    seen = Seen(link)
    with relaying(way, workspace) as monitor:
        seen.look()
        for number in range(3):
            (workspace / f"{number}.handoff.json").write_text(PACKET % f"a.{number}")
            if number:
                way.cut()
                link.connect_again()
            (workspace / f"more-{number}.handoff.json").write_text(PACKET % f"b.{number}")
            seen.until(lambda number=number: len(seen.tree.tasks) == 2 * number + 2 and seen.is_live)  # type: ignore[misc]
        seen.until(lambda: document_of(monitor.tree, time.time())["tasks"] == seen.document()["tasks"])
        way.cut()
        digest = seen.tree.tasks["a.0"].attempts[0].handoff
        assert digest is not None
        seen.until(lambda: seen.source.fetch("text", digest.digest) == PACKET % "a.0")
        assert seen.source.content(digest.digest) == PACKET % "a.0"
        result = seen.host.decide(seen.source.workspace_id, "request" + "x" * 300_000)
        assert result is not None
        assert result.outcome is Outcome.REFUSED
    seen.source.stop()


class Broken(CombinedSource):
    def start(self, emit: Callable[[Batch], None]):
        raise OSError("no more memory")


class Closed(MemoryEnd):
    def start(self, receive: Receive, change: Change):
        change(LinkState(up=False, words="the pipe is closed", fatal=True))


def test_a_relay_that_an_error_or_its_link_ends_says_why(tmp_path):
    shop = RelayedWorkspace("shop", Monitor(tmp_path, Settings(), Broken([]), time.time))
    for relay, why in (
        (Relay([shop], MemoryEnd(), KEY, host="build1"), "OSError: no more memory"),
        (Relay([], Closed(), KEY, host="build1"), "the pipe is closed"),
    ):
        assert asyncio.run(asyncio.wait_for(relay.run(), 60)) == why


class Again(threading.Event):
    """An event that does not wait; it is set in the third pause."""

    def __init__(self, stopped: threading.Event):
        super().__init__()
        self.stopped, self.pauses = stopped, list[float]()

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses.append(timeout or 0.0)
        if len(self.pauses) == 5:
            self.stopped.set()
        return len(self.pauses) == 3


def test_pauses_grow_until_somebody_asks():
    again = Again(threading.Event())
    stay_connected(lambda: LinkState(up=False), lambda _: None, again.stopped, again)
    first, second, third, asked, after = again.pauses
    assert first < second < third
    assert asked < second
    assert asked < after
