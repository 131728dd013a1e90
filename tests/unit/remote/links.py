"""Every way between a relay and its screens, in the hand of a test: in the memory, through pipes, ssh and NATS."""

import os
import signal
import socket
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from agentwatch.decisions.envelope import SigningKey
from agentwatch.remote.address import parse
from agentwatch.remote.nats import Login, NatsEnd, NatsHub
from agentwatch.remote.pipe import Change, Link, LinkState, ProcessLink, Receive, StdioEnd
from tests.broker import Broker, Wire, new_key
from tests.unit.remote.sshd import Sshd

SECONDS = 60.0

_BRIDGE = """#!{python} -ISE
import os, socket, sys, threading
there = socket.create_connection(("127.0.0.1", int(sys.argv[-1].strip("/"))))
def say():
    while data := os.read(0, 65536):
        there.sendall(data)
    there.shutdown(socket.SHUT_WR)
threading.Thread(target=say, daemon=True).start()
while data := there.recv(65536):
    while data:
        data = data[os.write(1, data):]
"""
"""Is found under the name `agentwatch`, and leads to the end of a relay that the test holds."""

_NO_SSH = """#!/bin/sh
for last; do :; done
PATH={bin}:/usr/bin:/bin exec sh -c "$last"
"""
"""Is run instead of ssh, and runs here what ssh would run there."""


class Heard:
    """The messages that one end has heard, and the states of its link."""

    def __init__(self):
        self.messages: list[bytes] = []
        self.states: list[LinkState] = []
        self._news = threading.Condition()

    def receive(self, message: bytes):
        with self._news:
            self.messages.append(message)
            self._news.notify_all()

    def change(self, state: LinkState):
        with self._news:
            self.states.append(state)
            self._news.notify_all()

    def until(self, true: Callable[[], bool]):
        with self._news:
            assert self._news.wait_for(true, SECONDS), ([one[:80] for one in self.messages[-5:]], self.states)

    def has(self, *messages: bytes):
        self.until(lambda: all(message in self.messages for message in messages))

    def is_up(self):
        self.until(lambda: bool(self.states) and self.states[-1].up)


Start = Callable[[Link], Heard]


def starting() -> Iterator[Start]:
    """Starts ends, and stops them when the test is over."""
    ends: list[Link] = []

    def start(end: Link) -> Heard:
        heard = Heard()
        end.start(heard.receive, heard.change)
        ends.append(end)
        return heard

    yield start
    for end in ends:
        began = time.monotonic()
        end.stop()
        assert time.monotonic() - began < 2  # a second, on a busy machine


class Way(ABC):
    """The way between one relay, which has this end, and its screens."""

    end: Link

    @abstractmethod
    def link(self) -> Link:
        """The end of another screen."""

    @abstractmethod
    def cut(self):
        """Break all that is connected, in the middle of whatever it carries. Who connects again can."""

    def stop(self):
        self.end.stop()


class Ends(Link):
    """The ends on all connections to a port, as one: on pipes each screen has a relay of its own."""

    def __init__(self):
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._open: list[tuple[StdioEnd, socket.socket]] = []
        self._lock = threading.Lock()
        self._said: list[bytes] = []

    def start(self, receive: Receive, change: Change):
        self._receive, self._change = receive, change
        threading.Thread(target=self._accept, daemon=True).start()

    def send(self, message: bytes, to: str = ""):
        with self._lock:
            ends = [end for end, _ in self._open]
        for end in ends:
            end.send(message, to)

    def cut(self):
        with self._lock:
            for _, one in self._open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def stop(self):
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()
        with self._lock:
            ends, self._open = self._open, []
        for end, one in ends:
            end.stop()
            one.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                one, _ = self._listening.accept()
                end = StdioEnd(one.fileno(), one.fileno())
                with self._lock:
                    # Who is heard is told what is said from then on.
                    end.start(self._receive, lambda state, end=end: self._ended(end, state))  # type: ignore[misc]
                    self._open.append((end, one))

    def _ended(self, end: StdioEnd, state: LinkState):
        """A screen has gone; others may come."""
        assert state.fatal
        with self._lock:
            gone = [one for known, one in self._open if known is end]
            self._open = [(known, one) for known, one in self._open if known is not end]
        for one in gone:
            one.close()


class Pipes(Way):
    """Through the pipes of a process, which `program` starts instead of ssh. `bin` is where it finds `agentwatch`."""

    def __init__(self, place: Path, program: tuple[str, ...] = (), port: int = 22):
        self.end: Ends = Ends()
        self._links: list[ProcessLink] = []
        self._program, self._port = program, port
        if not program:
            no_ssh = place / "no-ssh"
            no_ssh.write_text(_NO_SSH.format(bin=bridge_in(place)))
            no_ssh.chmod(0o755)
            self._program = (str(no_ssh),)

    def link(self) -> Link:
        address = parse(f"ssh://127.0.0.1:{self._port}/{self.end.port}")
        self._links.append(ProcessLink(address, [address.path], program=self._program))
        return self._links[-1]

    def cut(self):
        for link in self._links:
            if (process := link._process) is not None:
                with suppress(OSError):
                    os.kill(process.pid, signal.SIGKILL)


def bridge_in(place: Path) -> Path:
    """A directory with an `agentwatch` that leads to the test."""
    (bin_ := place / "bin").mkdir(exist_ok=True)
    (bin_ / "agentwatch").write_text(_BRIDGE.format(python=sys.executable))
    (bin_ / "agentwatch").chmod(0o755)
    return bin_


def through_ssh(sshd: Sshd, place: Path) -> Way:
    return Pipes(place, sshd.program, sshd.port)


class Nats(Way):
    """Over a server that others use, too: this host has a key of its own."""

    def __init__(self, broker: Broker, key: SigningKey | None = None):
        self._key = key or new_key()
        self._there, self._here = Wire(broker), Wire(broker)
        self.end = NatsEnd(self._there.url, self._key, login=Login())

    def link(self) -> Link:
        return NatsHub(self._here.url, Login()).link(self._key.public)

    def cut(self):
        self._here.cut()

    def stop(self):
        super().stop()
        self._there.stop()
        self._here.stop()
