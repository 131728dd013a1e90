"""Connects screens with relays over the pipes of a program such as ssh. A message may be lost, be late or come twice.

On a pipe the length of a message comes before the message. Both sides begin with a greeting. Text before the greeting
is skipped, because a shell may print text at a login. A link runs in threads, and connects again by itself.
"""

import os
import random
import shlex
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import IO, NamedTuple, cast

from agentwatch.remote.address import Address
from agentwatch.remote.protocol import LARGEST_MESSAGE
from agentwatch.shell import resolve_command
from agentwatch.text import clean

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0  # the most seconds between two attempts to connect
GREETING = b"agentwatch-relay\n"  # the first line in both directions
_MOST_NOISE = 256 * 1024
# The most bytes that wait to be written. Further messages are dropped. The receiver requests dropped messages again.
MOST_WAITING = 64 * 1024 * 1024
_ENDED = "the connection has ended"
_JOIN_SECONDS = 0.8

_SSH_OPTIONS = ["-T", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"]
_ASKS_NOBODY = ("-o", "BatchMode=yes")
# This script runs on the host. It extends PATH, because a non-interactive shell often does not find agentwatch.
_SCRIPT = 'PATH="$PATH:$HOME/.local/bin:$HOME/bin:/usr/local/bin:/opt/homebrew/bin"; exec agentwatch "$@"'
_LASTS_SECONDS = 10.0  # if a connection has lasted so long, the next pause is short again
_STOP_SECONDS = 0.3
_NOT_FOUND = 127
_SSH_FAILED = 255
_LONGEST = 300  # the most characters that are quoted from the output of ssh

Receive = Callable[[bytes], None]  # called with each message, in a thread of the link


class LinkState(NamedTuple):
    """The state of a link. `words` say why the link does not work, and the remedy. `words` may quote untrusted text.
    If `fatal`, the other side is gone for good."""

    up: bool
    words: str = ""
    fatal: bool = False


Change = Callable[[LinkState], None]


class Link(ABC):
    """One end of a connection. The link of a screen leads to one host. The link of a relay leads to its screens."""

    # The random id of this screen. The caller sets it if it is blank.
    screen: str = ""
    answer_seconds: float = 20.0  # the most seconds from the connection to the first answer

    @abstractmethod
    def start(self, receive: Receive, change: Change) -> None:
        """Connect, and stay connected. Call `receive` with each message, and `change` with each new state.
        Both are called in threads of the link, one call at a time."""

    @abstractmethod
    def send(self, message: bytes, to: str = "") -> None:
        """Send a message to the relay, or to the screen with the id `to`. Never blocks. Any thread may call this.
        A message that cannot be sent now is dropped. The receiver requests a dropped message again."""

    def connect_again(self) -> None:  # noqa: B027  a relay does nothing here
        """Close the current connection, and connect again at once. Blocks for a moment."""

    def keep_hello(self, message: bytes) -> None:  # noqa: B027  most links have no store
        """Store a hello (the host's list of workspaces) for screens that connect later."""

    @abstractmethod
    def stop(self) -> None:
        """End the link within a second. Afterwards neither `receive` nor `change` is called."""


def stay_connected(
    connect: Callable[[], LinkState], change: Change, stopped: threading.Event, again: threading.Event
) -> None:
    """Connect again and again until `stopped` is set, with growing pauses. If `again` is set, connect at once.
    `connect` returns the last state when the connection has ended."""
    pause = FIRST_PAUSE
    while not stopped.is_set():
        began = time.monotonic()
        state = connect()
        if stopped.is_set():
            return
        change(state)
        if time.monotonic() >= began + _LASTS_SECONDS:
            pause = FIRST_PAUSE
        is_hurried = again.wait(pause * random.uniform(0.75, 1.25))  # noqa: S311  not for secrets
        again.clear()
        pause = FIRST_PAUSE if is_hurried else min(pause * 2, LONGEST_PAUSE)


def read_messages(descriptor: int, on_greeting: Callable[[], None] = lambda: None) -> Iterator[bytes]:
    """Yield the messages after the greeting. Call `on_greeting` at the greeting. Raise OSError when the pipe ends."""
    noise = bytearray()
    while not noise.endswith(GREETING):
        if len(noise) > _MOST_NOISE:
            raise ConnectionError("something else than a relay answers there")
        if not (letter := os.read(descriptor, 1)):
            raise ConnectionError(_ENDED)
        noise += letter
    on_greeting()
    with Connection(os.dup(descriptor), writable=False) as pipe:
        while True:
            try:
                yield pipe.recv_bytes(LARGEST_MESSAGE)
            except (EOFError, OSError) as error:
                raise ConnectionError(_ENDED) from error


class Writer:
    """Writes messages in a thread. The sender never waits. If too much waits to be written, messages are dropped."""

    def __init__(self, descriptor: int):
        # Duplicate the descriptor. When the original is closed, its number may become the number of another file.
        self._descriptor = os.dup(descriptor)
        os.set_blocking(self._descriptor, True)
        self._news = threading.Condition()
        self._waiting: list[bytes] = []
        self._size = 0
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="agentwatch-write", daemon=True)
        self._thread.start()

    def send(self, message: bytes) -> None:
        """Write a message soon."""
        with self._news:
            if not self._is_over and self._size + len(message) <= MOST_WAITING:
                self._waiting.append(message)
                self._size += len(message)
                self._news.notify()

    def stop(self, seconds: float = _JOIN_SECONDS) -> None:
        """Write the waiting messages, and end. Takes at most `seconds`."""
        with self._news:
            self._is_over = True
            self._news.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        with suppress(OSError), Connection(self._descriptor, readable=False) as pipe:
            os.write(self._descriptor, GREETING)
            while True:
                with self._news:
                    self._news.wait_for(lambda: self._waiting or self._is_over)
                    if not self._waiting:
                        return
                    waiting, self._waiting, self._size = self._waiting, [], 0
                for message in waiting:
                    pipe.send_bytes(message)
        with self._news:
            self._is_over = True


class StdioEnd(Link):
    """A relay's link to one screen, over standard input and output. When the screen ends, the relay ends, too."""

    def __init__(self, incoming: int, outgoing: int):
        self._incoming, self._outgoing = incoming, outgoing
        self._writer: Writer | None = None
        self._is_stopped = False

    def start(self, receive: Receive, change: Change) -> None:
        self._writer = Writer(self._outgoing)
        threading.Thread(target=self._read, args=(receive, change), name="agentwatch-read", daemon=True).start()

    def send(self, message: bytes, to: str = "") -> None:  # noqa: ARG002
        if self._writer:
            self._writer.send(message)

    def stop(self) -> None:
        self._is_stopped = True
        if self._writer:
            self._writer.stop()

    def _read(self, receive: Receive, change: Change) -> None:
        try:
            for message in read_messages(self._incoming):
                if self._is_stopped:
                    return
                receive(message)
        except OSError as error:
            if not self._is_stopped:
                change(LinkState(up=False, words=error.strerror or str(error), fatal=True))


class ProcessLink(Link):
    """A screen's link to a relay. The relay watches `paths`, or all workspaces if the paths are "". A program starts
    the relay on the host: ssh with the user's configuration, or a program such as `docker exec`."""

    def __init__(self, address: Address, paths: Sequence[str], *, program: Sequence[str] = ("ssh",)):
        self._target = address.target
        words = ["--", *paths] if any(paths) else ["--all"]
        self._command = relay_command(address, ["relay", "--stdio", *words], (*program, *_ASKS_NOBODY))
        self._stopped, self._again = threading.Event(), threading.Event()
        self._writer: Writer | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None

    def start(self, receive: Receive, change: Change) -> None:
        connect = partial(self._connect, receive, change)
        arguments = connect, change, self._stopped, self._again
        self._thread = threading.Thread(target=stay_connected, args=arguments, name="agentwatch-ssh", daemon=True)
        self._thread.start()

    def send(self, message: bytes, to: str = "") -> None:  # noqa: ARG002
        if (writer := self._writer) is not None:
            writer.send(message)

    def connect_again(self) -> None:
        self._end_process()
        self._again.set()

    def _end_process(self) -> None:
        if (process := self._process) is not None:
            _end_program(process)

    def stop(self) -> None:
        self._stopped.set()
        self._again.set()
        self._end_process()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join(_STOP_SECONDS)

    def _connect(self, receive: Receive, change: Change) -> LinkState:
        """Connect, pass on messages until the connection ends, and return the reason."""
        pipe, why = subprocess.PIPE, ""
        try:
            words = resolve_command(self._command)
            process = subprocess.Popen(  # noqa: S603  no shell
                words, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except OSError as error:
            return LinkState(
                up=False, words=f"{self._command[0]} cannot be started here ({error.strerror}): install it"
            )
        with process:
            writer = Writer(process.stdin.fileno())  # type: ignore[union-attr]
            self._process, self._writer = process, writer
            if self._stopped.is_set():
                _end_program(process)
            lines: deque[str] = deque(maxlen=20)
            reads = threading.Thread(target=_read_lines, args=(process, lines), name="agentwatch-ssh-said", daemon=True)
            reads.start()
            try:
                for message in read_messages(process.stdout.fileno(), lambda: change(LinkState(up=True))):  # type: ignore[union-attr]
                    if self._stopped.is_set():
                        break
                    receive(message)
            except OSError as error:
                why = error.strerror or str(error)
            finally:
                self._writer = self._process = None
                writer.stop(0)
                _end_program(process)
                reads.join(_STOP_SECONDS)
        return LinkState(up=False, words=explain_end(process.returncode, lines, self._target, why))


def _read_lines(process: subprocess.Popen[bytes], lines: deque[str]) -> None:
    with suppress(OSError, ValueError), cast("IO[bytes]", process.stderr) as stderr:
        for line in iter(lambda: stderr.readline(4096), b""):
            lines.append(line.decode("utf-8", "replace").strip())


def relay_command(address: Address, words: Sequence[str], program: Sequence[str] = ("ssh",)) -> list[str]:
    """Return a command that runs agentwatch on the host of an address. `words` are agentwatch's arguments."""
    if address.kind == "run":
        return [*address.run, "sh", "-c", _SCRIPT, "agentwatch", *words]
    port = ["-p", str(address.port)] if address.port is not None else []
    user = ["-l", address.user] if address.user else []
    there = ["exec", "sh", "-c", shlex.quote(_SCRIPT), "agentwatch", *map(shlex.quote, words)]
    return [*program, *_SSH_OPTIONS, *port, *user, "--", address.host.strip("[]"), " ".join(there)]


def explain_end(code: int, lines: Sequence[str], target: str, cut: str = "") -> str:
    """Return a sentence that says why a connection has ended, and gives the remedy. Text from the host is made safe."""
    said = clean(next(filter(None, reversed(lines)), ""), _LONGEST)
    last = said.removeprefix("agentwatch: ").removeprefix("ssh: ").rstrip(".")
    if code == _NOT_FOUND or "agentwatch: not found" in last:
        install = "`pipx install .` in a clone of it there"
        return f"agentwatch is not installed on {target}, or not where ssh finds it: {install}"
    if code == _SSH_FAILED:
        # ssh takes a port behind a colon only in an address with `ssh://`.
        there = f"ssh://{target}" if target.rpartition(":")[2].isdecimal() else target
        return f"{last or 'ssh could not connect'}: `ssh {there}` in a terminal says more"
    return last or cut or f"ssh has ended with code {code}"


def _end_program(process: subprocess.Popen[bytes]) -> None:
    """End the program of a link. Then the relay on the host ends, too."""
    with suppress(OSError):
        process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(OSError):
            process.kill()
        process.wait()
