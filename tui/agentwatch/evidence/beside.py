"""A second process that reads files while this one does: both sides of it.

It begins with the last file, this one with the first, until they meet. So neither waits for the other, and where there
is no second process, or it ends early, or is held up, this one has read what is missing before anybody asks. It ends
when it is told to, or as soon as nobody reads what it writes.

It is a copy of this one, which begins at once; where threads run, a program of its own, which takes a while to load.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from struct import Struct
from typing import IO, Final

from agentwatch.contracts.reading import read_and_open
from agentwatch.evidence.claims import told_by
from agentwatch.evidence.one_look import KINDS as TOLD_KINDS
from agentwatch.forked import Forked, may_fork
from agentwatch.kept import looks
from agentwatch.kept.answers import LARGEST
from agentwatch.kept.index import packed, unpacked
from agentwatch.kept.keeping import is_young
from agentwatch.sources.files.names import to_path
from agentwatch.sources.files.read import FileRefusedError, read_file
from agentwatch.sources.files.readings import KINDS, Known, ReadBeside

_MAIN: Final = "import sys; sys.path[:] = sys.argv[2:]; from agentwatch.evidence.beside import main; main()"
_NAME: Final = "agentwatch reading files"
"""What lists of processes show."""
_LENGTH: Final = Struct("<Q")
_CHUNK: Final = 100
"""Files that are told at once: at most as many are read twice where the two meet."""
_ALL_KINDS: Final = (*KINDS, Known, ReadBeside, *TOLD_KINDS)
_ENDED_SECONDS: Final = 1.0

_Job = tuple[str, int, str, list[str], bool]
"""What both sides call the arguments of `Beside`."""

_at_once: Final = threading.Lock()
"""Is held while there is one: the workspaces of one screen do not begin one each."""


class Beside:
    """Reads files of one workspace in a process of its own; see `Readings`."""

    def __init__(self, root: str, max_bytes: int, beginning: str, paths: Sequence[str], *, tells: bool = False) -> None:
        """`tells`: also what evidence needs of the documents. Raises OSError where no process can be started, or one
        runs."""
        if not _at_once.acquire(blocking=False):
            raise BlockingIOError
        job: _Job = root, max_bytes, beginning, list(paths), tells
        try:
            with looks.unnoted():
                self._process = Forked(partial(_tell, job)) if may_fork() else _program()
        except OSError:
            _at_once.release()
            raise
        self._has_ended = False
        self._arrived: deque[bytes] = deque()
        self._thread = threading.Thread(target=self._exchange, args=(job,), name="agentwatch-beside", daemon=True)
        self._thread.start()

    def arrived(self) -> list[ReadBeside]:
        """What has been read since the last call."""
        found: list[ReadBeside] = []
        while self._arrived:
            with suppress(ValueError):
                found += unpacked(self._arrived.popleft(), _ALL_KINDS)
        return found

    def end(self) -> None:
        """No more is wanted."""
        if self._has_ended:
            return
        self._has_ended = True
        _at_once.release()
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDED_SECONDS)
        self._thread.join(_ENDED_SECONDS)

    def _exchange(self, job: _Job) -> None:
        given, got = self._process.stdin, self._process.stdout
        if got is None:
            return
        with got:
            if given is not None:
                with suppress(OSError), given:
                    given.write(packed(job, ()))
            with suppress(OSError, ValueError):
                while data := _next(got):
                    self._arrived.append(data)


def _program() -> subprocess.Popen[bytes]:
    words = [sys.executable, "-I", "-S", "-c", _MAIN, _NAME, *filter(None, sys.path)]
    return subprocess.Popen(  # noqa: S603  our own program
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def _next(stream: IO[bytes]) -> bytes:
    """The next chunk, nothing at the end, or where it ends in the middle."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return b""
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length) if length <= LARGEST else b""
    return data if len(data) == length else b""


def main() -> None:
    """Read the files that standard input names, and write to standard output what was in them."""
    # An interrupt is for the other one, which then ends this one.
    with suppress(KeyboardInterrupt, OSError):
        _tell(unpacked(sys.stdin.buffer.read(), ()), sys.stdout.buffer)
    # Nothing is left to say, and nobody to say it to.
    os._exit(0)


def _tell(job: _Job, stream: IO[bytes]) -> None:
    root, max_bytes, beginning, paths, tells = job
    read = partial(_read, root, max_bytes, beginning, tells)
    paths.reverse()
    for start in range(0, len(paths), _CHUNK):
        found = [one for path in paths[start : start + _CHUNK] if (one := read(path)) is not None]
        data = packed(found, _ALL_KINDS)
        stream.write(_LENGTH.pack(len(data)) + data)
        stream.flush()


def _read(root: str, max_bytes: int, beginning: str, tells: bool, path: str) -> ReadBeside | None:
    """What is in a file; None where it is better read again."""
    looked_at = time.time()
    name = to_path(f"{beginning}{path}")
    try:
        file = read_file(root, path, max_bytes)
        if is_young(file.changed_ns, file.mtime_ns, looked_at):
            return None
        opened = read_and_open(file.text, name)
        told = told_by(opened) if tells and opened is not None else None
    except (FileRefusedError, FileNotFoundError):
        return None
    except Exception:  # noqa: BLE001  the other process says what is to be said of that
        return None
    if opened is None:
        return ReadBeside(path, Known(file.fingerprint, file.digest, file.findings, None))
    return ReadBeside(path, Known(file.fingerprint, file.digest, file.findings, opened.reading), file.text, told)
