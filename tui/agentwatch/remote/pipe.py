"""The ways between a screen and a relay: whole messages or none, which may be lost, doubled and late, and nothing else.

Through a pair of pipes each message has its length before it. Text before the first line of ours is from the shell
there, which may greet on every login. Everything here is called from threads; a link connects again by itself.
"""

from __future__ import annotations

import os
import random
import shlex
import struct
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from io import BufferedReader
from typing import Final, NamedTuple

from agentwatch.remote.address import Address
from agentwatch.remote.protocol import LARGEST_MESSAGE
from agentwatch.shell import resolve_command
from agentwatch.text import clean

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
"""Seconds between two attempts to connect."""
GREETING: Final = b"agentwatch-relay\n"
"""Is the first line, in both directions."""
_MOST_NOISE: Final = 256 * 1024
_MOST_WAITING: Final = 64 * 1024 * 1024
"""Bytes that wait to be written: who does not read so much for so long asks again for what is dropped."""
_CHUNK: Final = 1024 * 1024
_JOIN_SECONDS: Final = 0.8

_SSH_OPTIONS: Final = ["-T", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"]
_ASKS_NOBODY: Final = ("-o", "BatchMode=yes")
_SCRIPT: Final = 'PATH="$PATH:$HOME/.local/bin:$HOME/bin:/usr/local/bin:/opt/homebrew/bin"; exec agentwatch "$@"'
"""Is run there. A shell that nobody logs in to often has no other way to know where programs of the user are."""
_LASTS_SECONDS: Final = 10.0
"""A connection that has lasted for so long works: the next attempt after it is a first one."""
_STOP_SECONDS: Final = 0.3
_NOT_FOUND: Final = 127
_SSH_FAILED: Final = 255
_WRONG_USAGE: Final = 2
_LONGEST: Final = 300
"""Characters of a reason that come from there."""
_NO_NEWS: Final = ("Warning: Permanently added", "Connection to ", "Killed by signal", "Pseudo-terminal")
"""How lines of ssh begin that are no reason."""

Receive = Callable[[bytes], None]
"""Is called with every message, in a thread of the link."""


class LinkState(NamedTuple):
    """Whether a link is up. `words` say in a plain sentence why it is not, and what to do; they may quote foreign text.
    `fatal`: trying again does not help, and is not tried."""

    up: bool
    words: str = ""
    fatal: bool = False


Change = Callable[[LinkState], None]


class Link(ABC):
    """The end of a screen, to one host."""

    screen: str = ""
    """The random id by which a relay speaks to this screen. Whoever uses the link gives it one, if it has none."""
    answers_in: float = 10.0
    """Seconds that a host may take to answer at first, since the link is up."""

    @abstractmethod
    def start(self, receive: Receive, change: Change) -> None:
        """Connect, and stay so. `receive` is called with every message; `change` with every other state, each time that
        the link is up again, too. Both in threads of the link, one call at a time."""

    @abstractmethod
    def send(self, message: bytes) -> None:
        """Send a message to the relay. Any thread may call it. It never blocks, and drops what cannot be sent now: who
        needs it sends it again."""

    @abstractmethod
    def stop(self) -> None:
        """End within a second. Nothing is called afterwards."""


class RelayEnd(ABC):
    """The end of a relay, to as many screens as there are."""

    @abstractmethod
    def start(self, receive: Receive, change: Change) -> None:
        """Connect, and stay so, as in `Link`. Where all screens are gone for good, the state is fatal."""

    @abstractmethod
    def send(self, message: bytes, to: str) -> None:
        """Send a message to the screen with this id. Any thread may call it. It never blocks, and may drop."""

    def keep(self, message: bytes) -> None:  # noqa: B027  most keep nothing
        """Keep a hello for screens that come later."""

    @abstractmethod
    def stop(self) -> None:
        """End within a second, with what was sent. Nothing is called afterwards."""


def pauses() -> Iterator[float]:
    """Seconds to wait before each next attempt: twice as long each time, and never in step with others."""
    pause = FIRST_PAUSE
    while True:
        yield pause * random.uniform(0.75, 1.25)  # noqa: S311  not for secrets
        pause = min(pause * 2, LONGEST_PAUSE)


class CutError(Exception):
    """The other side has gone, or says what nobody of ours can say."""


def framed(message: bytes) -> bytes:
    """A message with its length before it."""
    return struct.pack(">I", len(message)) + message


def messages(descriptor: int, begun: Callable[[], None] = lambda: None) -> Iterator[bytes]:
    """The messages that come, from behind the greeting, at which `begun` is called. Raises CutError at the end, and
    OSError."""
    data = bytearray()

    def read() -> None:
        some = os.read(descriptor, _CHUNK)
        if not some:
            raise CutError("the connection has ended")
        data.extend(some)

    while (at := data.find(GREETING)) < 0:
        if len(data) > _MOST_NOISE:
            raise CutError("something else than a relay answers there")
        read()
    del data[: at + len(GREETING)]
    begun()
    while True:
        while len(data) < 4:
            read()
        end = 4 + struct.unpack_from(">I", data)[0]
        if end > 4 + LARGEST_MESSAGE:
            raise CutError("something else than a relay speaks there")
        while len(data) < end:
            read()
        yield bytes(data[4:end])
        del data[:end]


class Writer:
    """Writes messages in a thread of its own. Who sends never waits; what has no room is dropped."""

    def __init__(self, descriptor: int) -> None:
        # One of its own: who closes the other may have its number taken by another file before the thread has ended.
        self._descriptor = os.dup(descriptor)
        self._news = threading.Condition()
        self._waiting: deque[bytes] = deque([GREETING])
        self._size = 0
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="agentwatch-write", daemon=True)
        self._thread.start()

    def send(self, message: bytes) -> None:
        """Write a message, as soon as those before are written."""
        with self._news:
            if not self._is_over and self._size + len(message) <= _MOST_WAITING:
                self._waiting.append(framed(message))
                self._size += len(message)
                self._news.notify()

    def stop(self, seconds: float = _JOIN_SECONDS) -> None:
        """Write what waits, for as long at most, and no more."""
        with self._news:
            self._is_over = True
            self._news.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            while True:
                with self._news:
                    while not self._waiting and not self._is_over:
                        self._news.wait()
                    if not self._waiting:
                        return
                    view = memoryview(b"".join(self._waiting))
                    self._waiting.clear()
                    self._size = 0
                while view:
                    view = view[os.write(self._descriptor, view) :]
        except OSError:
            with self._news:
                self._is_over = True
        finally:
            os.close(self._descriptor)


class StdioEnd(RelayEnd):
    """The end of a relay on pipes: for one screen, and the relay ends with it."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._writer: Writer | None = None
        self._is_stopped = False

    def start(self, receive: Receive, change: Change) -> None:
        self._writer = Writer(self._outgoing)
        threading.Thread(target=self._read, args=(receive, change), name="agentwatch-read", daemon=True).start()

    def send(self, message: bytes, to: str) -> None:  # noqa: ARG002
        if self._writer is not None:
            self._writer.send(message)

    def stop(self) -> None:
        self._is_stopped = True
        if self._writer is not None:
            self._writer.stop()

    def _read(self, receive: Receive, change: Change) -> None:
        words = "the screen has gone"
        try:
            for message in messages(self._incoming):
                if self._is_stopped:
                    return
                receive(message)
        except CutError as error:
            words = str(error)
        except OSError as error:
            words = f"the screen cannot be heard ({error.strerror})"
        if not self._is_stopped:
            change(LinkState(up=False, words=words, fatal=True))


class ProcessLink(Link):
    """The link through the pipes of a program that runs a relay elsewhere, which ends with the connection: the system's
    ssh with its configuration, agent, jump hosts and multiplexing, or such as `docker exec`. The relay is told to watch
    these paths there: absolute, or below `~`."""

    def __init__(self, address: Address, paths: Sequence[str], *, program: Sequence[str] = ("ssh",)) -> None:
        self._target = address.target
        self._command = command(address, ["relay", "--stdio", "--", *paths], (*program, *_ASKS_NOBODY))
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._writer: Writer | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None

    def start(self, receive: Receive, change: Change) -> None:
        self._thread = threading.Thread(target=self._run, args=(receive, change), name="agentwatch-ssh", daemon=True)
        self._thread.start()

    def send(self, message: bytes) -> None:
        with self._lock:
            writer = self._writer
        if writer is not None:
            writer.send(message)

    def stop(self) -> None:
        self._stopped.set()
        with self._lock:
            process = self._process
        if process is not None:
            _end(process)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_STOP_SECONDS)

    def _run(self, receive: Receive, change: Change) -> None:
        waits = pauses()
        while not self._stopped.is_set():
            began = time.monotonic()
            state = self._connect(receive, change)
            if self._stopped.is_set():
                return
            change(state)
            if state.fatal:
                return
            if time.monotonic() >= began + _LASTS_SECONDS:
                waits = pauses()
            self._stopped.wait(next(waits))

    def _connect(self, receive: Receive, change: Change) -> LinkState:
        """Connect, and hand over what comes until the connection ends. Returns why."""
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(  # noqa: S603  a list, and no shell here
                resolve_command(self._command), stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
            )
        except OSError as error:
            words = f"{self._command[0]} cannot be started here ({error.strerror}): install it"
            return LinkState(up=False, words=words, fatal=True)
        with process:
            with self._lock:
                self._process = process
            lines: deque[str] = deque(maxlen=20)
            reads = threading.Thread(target=_read_lines, args=(process, lines), name="agentwatch-ssh-said", daemon=True)
            reads.start()
            try:
                why = self._exchange(process, receive, change)
            finally:
                with self._lock:
                    writer, self._writer, self._process = self._writer, None, None
                if writer is not None:
                    writer.stop(0)
                _end(process)
                reads.join(_STOP_SECONDS)
        return LinkState(up=False, words=reason(process.returncode, lines, self._target, why))

    def _exchange(self, process: subprocess.Popen[bytes], receive: Receive, change: Change) -> str:
        if process.stdin is None or process.stdout is None or self._stopped.is_set():
            return ""
        with self._lock:
            self._writer = Writer(process.stdin.fileno())
        try:
            for message in messages(process.stdout.fileno(), lambda: change(LinkState(up=True))):
                if self._stopped.is_set():
                    return ""
                receive(message)
        except CutError as error:
            return str(error)
        except OSError as error:
            return f"the connection was cut ({error.strerror})"
        return ""


def _read_lines(process: subprocess.Popen[bytes], lines: deque[str]) -> None:
    """Keep the last lines that ssh, and the relay there, say to people."""
    if process.stderr is not None:
        with suppress(OSError, ValueError), BufferedReader(process.stderr) as stderr:  # type: ignore[type-var]
            # Unbuffered, each byte would be a system call, and a flood of words outlives the connection.
            for line in iter(lambda: stderr.readline(4096), b""):
                lines.append(line.decode("utf-8", "replace").strip())


def command(address: Address, words: Sequence[str], program: Sequence[str] = ("ssh",)) -> list[str]:
    """The command that runs agentwatch there with these words, which the shell behind ssh gets quoted."""
    if address.kind == "run":
        return [*address.run, "sh", "-c", _SCRIPT, "agentwatch", *words]
    port = ["-p", str(address.port)] if address.port is not None else []
    user = ["-l", address.user] if address.user else []
    there = ["exec", "sh", "-c", shlex.quote(_SCRIPT), "agentwatch", *map(shlex.quote, words)]
    return [*program, *_SSH_OPTIONS, *port, *user, "--", address.host.strip("[]"), " ".join(there)]


def reason(code: int, lines: Sequence[str], target: str, cut: str = "") -> str:
    """Why a connection has ended, and what to do, in a sentence; foreign text in it is short and safe."""
    said = [line for line in lines if line and not line.startswith(_NO_NEWS)]
    last, all_said = clean(said[-1] if said else "", _LONGEST), " ".join(said)
    if code == _NOT_FOUND or "agentwatch: not found" in last:
        install = "`pipx install .` in a clone of it there"
        return f"agentwatch is not installed on {target}, or not where ssh finds it: {install}"
    if code == _WRONG_USAGE and ("--stdio" in all_said or "relay: no such" in all_said):
        return f"agentwatch on {target} is too old to be watched from here: update it there"
    if code == _SSH_FAILED:
        words = last or "ssh could not connect"
        return f"{words.removeprefix('ssh: ').rstrip('.')}: `ssh {target}` in a terminal says more"
    if last:
        return last.removeprefix("agentwatch: ").rstrip(".")
    return cut or f"ssh has ended with code {code}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End ssh: it closes the connection, and the relay ends with it."""
    with suppress(OSError):
        process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(OSError):
            process.kill()
        process.wait()
