"""A real pseudo-terminal with a command in it, and an emulator that shows what a person would see."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import pyte

DEADLINE = 30.0
"""Seconds that a busy machine may take; this measures nothing."""

_ENVIRONMENT = {
    "TERM": "xterm-256color",
    "COLORTERM": "truecolor",
    "LANG": "C.UTF-8",
    **{name: os.environ[name] for name in ("PATH", "PYTHONPATH", "TMPDIR") if name in os.environ},
}


class Terminal:
    """Runs a command in a pty of a given size for the length of a `with` block."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        columns: int = 80,
        lines: int = 24,
        environment: Mapping[str, str] | None = None,
    ):
        self.command = list(command)
        self.size = (columns, lines)
        # The state of the command stays out of the home directory of the person who runs the tests.
        self._state = tempfile.TemporaryDirectory(prefix="agentwatch-state-", ignore_cleanup_errors=True)
        self.environment = {**_ENVIRONMENT, "XDG_STATE_HOME": self._state.name, **(environment or {})}
        self.screen = pyte.Screen(columns, lines)
        self.written = bytearray()
        """Every byte that the command wrote to the terminal."""
        self._stream = pyte.ByteStream(self.screen)
        self._status: int | None = None

    def __enter__(self) -> Terminal:
        executed, executing = os.pipe()
        self.pid, self._descriptor = pty.fork()
        if self.pid == 0:
            # Python ignores SIGPIPE, and a command in a terminal does not; `conftest` is about the other signals.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.execvpe(self.command[0], self.command, self.environment)
        # Wait until the command has replaced this process: a hang-up before that may be lost.
        os.close(executing)
        os.read(executed, 1)
        os.close(executed)
        columns, lines = self.size
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.hang_up()
        self._state.cleanup()

    def press(self, keys: str):
        """Type `keys`; `\\x1b` is escape, `\\t` tab, `\\r` enter, and `\\udcff` the byte ff, which is no UTF-8."""
        os.write(self._descriptor, keys.encode("utf-8", "surrogateescape"))

    def text(self) -> str:
        """Return the screen as lines of text."""
        buffer, (columns, lines) = self.screen.buffer, self.size
        # The cell behind a wide character is empty. `screen.display` measures each character, and takes most of a test.
        rows = ("".join(buffer[line][column].data for column in range(columns)) for line in range(lines))
        return "\n".join(row.rstrip() for row in rows)

    def wait_for(self, pattern: str) -> str:
        """Read until the screen matches a regular expression, and return the screen. Fails at the deadline."""
        end = time.monotonic() + DEADLINE
        while not re.search(pattern, self.text(), re.MULTILINE):
            assert time.monotonic() < end, f"never saw {pattern!r} on:\n{self.text()}"
            self._read(0.05)
        return self.text()

    def wait_until_written(self, pattern: bytes):
        """Read until the bytes written so far match a regular expression. Fails at the deadline."""
        self.wait_until(lambda: re.search(pattern, self.written), f"never wrote {pattern!r}")

    def wait_until(self, holds: Callable[[], object], otherwise: str = "did not come true"):
        """Read until a condition holds. Fails at the deadline."""
        end = time.monotonic() + DEADLINE
        while not holds():
            assert time.monotonic() < end, f"{otherwise}; the screen:\n{self.text()}"
            self._read(0.05)

    def rest(self):
        """Read until no more output comes for a moment."""
        while self._read(0.1):
            pass

    def wait_until_exit(self) -> int:
        """Read until the command has ended, and return its exit code, negative for a signal."""
        end = time.monotonic() + DEADLINE
        while self._status is None:
            assert time.monotonic() < end, f"did not end; the screen:\n{self.text()}"
            self._read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = status
        while self._read(0.05):
            pass
        return os.waitstatus_to_exitcode(self._status)

    def wait_until_gone(self):
        """Wait until the command has ended, without reading. Fails at the deadline."""
        end = time.monotonic() + DEADLINE
        while not os.waitpid(self.pid, os.WNOHANG)[0]:
            assert time.monotonic() < end, "did not end"
            time.sleep(0.02)
        self._status = 0

    def signal(self, number: signal.Signals):
        os.kill(self.pid, number)

    def hang_up(self):
        """Close the terminal, as a closed window does."""
        with contextlib.suppress(OSError):
            os.close(self._descriptor)

    def _read(self, timeout: float) -> bool:
        """Read all that is there, and wait for it at most this long."""
        read = len(self.written)
        while select.select([self._descriptor], [], [], timeout)[0]:
            try:
                data = os.read(self._descriptor, 65_536)
            except OSError as error:
                if error.errno == errno.EIO:
                    # The other end is closed because the command has ended.
                    break
                raise
            if not data:
                break
            self.written += data
            self._stream.feed(data)
            timeout = 0
        return len(self.written) > read


def agentwatch(*arguments: str | Path) -> list[str]:
    """Return the command line that runs this package's command."""
    return [sys.executable, "-m", "agentwatch", *map(str, arguments)]
