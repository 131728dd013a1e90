"""A link through the system's ssh: with its configuration, agent, jump hosts and multiplexing. It runs a relay there.

The relay ends when the connection does, so nothing of ours stays on the host.
"""

from __future__ import annotations

import shlex
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from io import BufferedReader
from typing import Final

from agentwatch.remote.address import Address
from agentwatch.remote.link import Change, Link, LinkState, Pauses, Take
from agentwatch.remote.stdio import CutError, Writer, messages
from agentwatch.shell import resolve_command
from agentwatch.text import clean

_OPTIONS: Final = (
    "-T",
    *("-o", "ConnectTimeout=15"),
    *("-o", "ServerAliveInterval=5"),
    *("-o", "ServerAliveCountMax=3"),
)
_ASKS_NOBODY: Final = ("-o", "BatchMode=yes")
_SCRIPT: Final = 'PATH="$PATH:$HOME/.local/bin:$HOME/bin:/usr/local/bin:/opt/homebrew/bin"; exec agentwatch "$@"'
"""What is run there. A shell that nobody logs in to often has no other way to know where programs of the user are."""
_SILENT_SECONDS: Final = 30.0
"""A relay says something every five seconds: one that has not for so long hangs."""
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


class SshLink(Link):
    """The link to a host by ssh, whose relay is told to watch these paths there: absolute, or below `~`."""

    def __init__(self, address: Address, paths: Sequence[str], *, program: Sequence[str] = ("ssh",)) -> None:
        self._target = address.target
        self._command = command(address, ["relay", "--stdio", "--", *paths], (*program, *_ASKS_NOBODY))
        self._pauses = Pauses()
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._writer: Writer | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._heard = 0.0
        self._thread: threading.Thread | None = None

    def start(self, take: Take, change: Change) -> None:
        self._thread = threading.Thread(target=self._run, args=(take, change), name="agentwatch-ssh", daemon=True)
        self._thread.start()

    def send(self, message: bytes, *, keep: bool = False) -> None:  # noqa: ARG002
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

    def _run(self, take: Take, change: Change) -> None:
        while not self._stopped.is_set():
            began = time.monotonic()
            state = self._connect(take, change)
            if self._stopped.is_set():
                return
            change(state)
            if state.fatal:
                return
            if time.monotonic() >= began + _LASTS_SECONDS:
                self._pauses.reset()
            self._stopped.wait(self._pauses.again())

    def _connect(self, take: Take, change: Change) -> LinkState:
        """Connect, and hand over what comes until the connection ends. Returns why."""
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(  # noqa: S603  a list, and no shell here
                resolve_command(self._command), stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
            )
        except OSError as error:
            words = f"{self._command[0]} cannot be started here ({error.strerror}): install OpenSSH"
            return LinkState(up=False, words=words, fatal=True)
        with process:
            with self._lock:
                self._process = process
            said = _Said(process)
            hears = threading.Thread(target=self._watch, args=(process,), name="agentwatch-ssh-alive", daemon=True)
            hears.start()
            try:
                why = self._exchange(process, take, change)
            finally:
                with self._lock:
                    writer, self._writer, self._process = self._writer, None, None
                if writer is not None:
                    writer.stop(0)
                _end(process)
                said.thread.join(_STOP_SECONDS)
        return LinkState(up=False, words=reason(process.returncode, said.lines, self._target, why))

    def _exchange(self, process: subprocess.Popen[bytes], take: Take, change: Change) -> str:
        if process.stdin is None or process.stdout is None or self._stopped.is_set():
            return ""
        with self._lock:
            self._heard = time.monotonic()
            self._writer = Writer(process.stdin.fileno())
        is_up = False
        try:
            for message in messages(process.stdout.fileno()):
                self._heard = time.monotonic()
                if self._stopped.is_set():
                    return ""
                if not is_up:
                    is_up = True
                    change(LinkState(up=True))
                take(message)
        except CutError as error:
            return str(error)
        except OSError as error:
            return f"the connection was cut ({error.strerror})"
        return ""

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """End a connection on which nothing is heard any more."""
        while process.poll() is None and not self._stopped.wait(1.0):
            if time.monotonic() >= self._heard + _SILENT_SECONDS:
                _end(process)
                return


class _Said:
    """The last lines of what ssh, and the relay there, say to people."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.lines: deque[str] = deque(maxlen=20)
        self.thread = threading.Thread(target=self._read, args=(process,), name="agentwatch-ssh-said", daemon=True)
        self.thread.start()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        if process.stderr is not None:
            with suppress(OSError, ValueError), BufferedReader(process.stderr) as stderr:  # type: ignore[type-var]
                # Unbuffered, each byte would be a system call, and a flood of words outlives the connection.
                for line in iter(lambda: stderr.readline(4096), b""):
                    self.lines.append(line.decode("utf-8", "replace").strip())


def command(address: Address, words: Sequence[str], program: Sequence[str] = ("ssh",)) -> list[str]:
    """What is started here to run agentwatch there with these words, which the shell there gets quoted."""
    port = ["-p", str(address.port)] if address.port is not None else []
    user = ["-l", address.user] if address.user else []
    there = ["exec", "sh", "-c", shlex.quote(_SCRIPT), "agentwatch", *map(shlex.quote, words)]
    return [*program, *_OPTIONS, *port, *user, "--", address.host.strip("[]"), " ".join(there)]


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
