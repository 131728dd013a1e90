"""A second process that reads files while this one does: both sides of it.

It begins with the last file, this one with the first, until they meet. So neither waits for the other, and where there
is no second process, or it ends early, or is held up, this one has read what is missing before anybody asks. It ends
when it is told to, or as soon as nobody reads what it writes.

It is a copy of this one, which begins at once; where threads run, a program of its own, which takes a while to load.
One that began before it was known what to read has the models of the contracts already, which take this one as long as
a screen to appear: it reads the first files, too, and this one waits for those, not for long.
"""

from __future__ import annotations

import errno
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from struct import Struct
from typing import IO, Final

from agentwatch.evidence.second import begin, end
from agentwatch.forked import Forked, may_fork
from agentwatch.kept import looks
from agentwatch.kept.answers import LARGEST
from agentwatch.kept.index import packed, unpacked
from agentwatch.sources.files.readings import FIRST, KINDS, Known, ReadBeside

LENGTH: Final = Struct("<Q")
"""Before each chunk."""
_ENDED_SECONDS: Final = 1.0
_FIRST_SECONDS: Final = 0.5
"""How long the first files are waited for, all in all."""

Job = tuple[str, int, str, list[str], bool, int]
"""What both sides call the arguments of `Beside`, and how many files come before the last one."""

_at_once: Final = threading.Lock()
"""Is held while there is one: the workspaces of one screen do not begin one each."""


class Beside:
    """Reads files of one workspace in a process of its own; see `Readings`."""

    def __init__(
        self,
        root: str,
        max_bytes: int,
        beginning: str,
        paths: Sequence[str],
        *,
        tells: bool = False,
        begun: subprocess.Popen[bytes] | None = None,
    ) -> None:
        """`tells`: also what evidence needs of the documents. `begun` is the process, where it has begun, else there is
        a new one. Raises OSError where none can be started, or no thread that hears it, or one runs."""
        if not _at_once.acquire(blocking=False):
            if begun is not None:
                end(begun)
            raise BlockingIOError
        job: Job = root, max_bytes, beginning, list(paths), tells, FIRST if begun else 0
        try:
            with looks.unnoted():
                self._process = begun or _begun(job)
        except OSError:
            _at_once.release()
            raise
        self._has_ended = False
        self._kinds = kinds(tells=tells)
        self._arrived: deque[bytes] = deque()
        self._patience = _FIRST_SECONDS
        self._came = threading.Event()
        self._thread = threading.Thread(target=self._exchange, args=(job,), name="agentwatch-beside", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._give_up()
            for stream in filter(None, (self._process.stdin, self._process.stdout)):
                stream.close()
            raise OSError(errno.EAGAIN, str(error)) from error

    def arrived(self, *, waits: bool) -> list[ReadBeside]:
        """What has been read since the last call. `waits`: not nothing, if it comes soon."""
        if waits and self._patience > 0:
            began = time.monotonic()
            self._came.wait(self._patience)
            self._patience -= time.monotonic() - began
        self._came.clear()
        found: list[ReadBeside] = []
        while self._arrived:
            with suppress(ValueError):
                found += unpacked(self._arrived.popleft(), self._kinds)
        return found

    def end(self) -> None:
        """No more is wanted."""
        if self._has_ended:
            return
        self._give_up()
        self._thread.join(_ENDED_SECONDS)

    def _give_up(self) -> None:
        self._has_ended = True
        _at_once.release()
        end(self._process)

    def _exchange(self, job: Job) -> None:
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
                    self._came.set()
        self._patience = 0.0
        self._came.set()


def _begun(job: Job) -> Forked | subprocess.Popen[bytes]:
    if not may_fork():
        return begin()
    from agentwatch.evidence.read_beside import tell  # the contracts: the copy has what this one has

    return Forked(partial(tell, job))


def kinds(*, tells: bool) -> Sequence[type]:
    """All that what is told is made of."""
    if not tells:
        return (*KINDS, Known, ReadBeside)
    from agentwatch.evidence.one_look import KINDS as TOLD_KINDS  # it loads the contracts

    return (*KINDS, Known, ReadBeside, *TOLD_KINDS)


def _next(stream: IO[bytes]) -> bytes:
    """The next chunk, nothing at the end, or where it ends in the middle."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return b""
    (length,) = LENGTH.unpack(head)
    data = stream.read(length) if length <= LARGEST else b""
    return data if len(data) == length else b""
