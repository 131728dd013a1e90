"""Notes what a command looks at and says, and keeps that for the next one that is called alike."""

from __future__ import annotations

import os
import sys
import time
from array import array
from codecs import getincrementalencoder
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeVar

from agentwatch.kept import looks
from agentwatch.kept.answers import CODES, HEAD, LARGEST, MAGIC, SECRET_BYTES, seal, secret_of, secret_place
from agentwatch.kept.noted import Looks

if TYPE_CHECKING:
    from agentwatch.kept.answers import Answer

_MOST_FILES: Final = 512
"""An orchestrator waits for many tasks in turn, each of which has its own."""
_MOST_BYTES: Final = 256 * 1024 * 1024
_COARSE_NS: Final = 2_500_000_000
_FINE_NS: Final = 50_000_000
"""Two changes within so many nanoseconds may look like one: on file systems that count in seconds, and on others."""
_SECOND: Final = 1_000_000_000
ZONE: Final = "/etc/localtime"

_Result = TypeVar("_Result")


def noted(place: str, key: bytes, run: Callable[[], int]) -> int:
    """Run, and keep what is said. Returns the exit code."""
    looks.install()
    prepare(place)
    noted, began = Looks(), time.time()
    looks.begin(noted)
    out, errors = _Noted(sys.stdout), _Noted(sys.stderr)
    sys.stdout, sys.stderr = out, errors
    try:
        code = run()
    finally:
        looks.begin(None)
        sys.stdout, sys.stderr = out.stream, errors.stream
    if code in CODES and out.is_whole and errors.is_whole:
        keep(place, key, (code, out.written(), errors.written()), noted, began)
    return code


def remember(place: str, key: bytes, look: Callable[[], bytes]) -> None:
    """Look, and keep what that gives."""
    prepare(place)
    noted, began = Looks(), time.time()
    looks.begin(noted)
    try:
        found = look()
    finally:
        looks.begin(None)
    keep(place, key, (0, found, b""), noted, began)


def keep(place: str, key: bytes, answer: Answer, noted: Looks, began: float) -> None:
    """Keep an answer, if it will hold. `began` is when it was begun, in epoch seconds. Never raises for the disk."""
    now = time.time()
    if noted.spoilt or not noted.is_told or not began <= now < noted.until:
        return
    if not all(may_be_kept() for may_be_kept in noted.conditions):
        return
    for module in list(sys.modules.values()):
        code = getattr(module, "__file__", None)
        if code:
            noted.note_now(noted.path_of(code), follows=True)
    # The library of C reads this one itself, as it does the variable TZ.
    noted.note_now(ZONE, follows=True)
    noted.leave_out_implied()
    signs = [sign for known in (noted.themselves, noted.followed) for sign in known.values()]
    old = int(began * _SECOND) - _COARSE_NS
    if any(is_young(*sign[:2], began) for sign in signs if (sign[0] > old or sign[1] > old) and any(sign[1:])):
        return
    import json

    held = [[path, None if one is None else one.hex()] for path, one in noted.held.items()]
    told = json.dumps([held, list(noted.processes.items()), noted.questions]).encode()
    known = (noted.themselves, noted.followed)
    if any("\n" in path or "\0" in path for paths in known for path in paths):
        return
    names = "\0".join("\n".join(paths) for paths in known)
    variables = {"TZ": os.environ.get("TZ")} | noted.variables
    pairs = (name if value is None else f"{name}={value}" for name, value in variables.items())
    numbers = array("q", chain.from_iterable(signs))
    matters = _mattering(noted)
    parts = [key, os.fsencode("\0".join(pairs)), os.fsencode(names), numbers.tobytes(), told, matters, *answer[1:]]
    lengths, secret = [len(part) for part in parts], secret_of(place)
    if sum(lengths) > LARGEST or len(secret) != SECRET_BYTES:
        return
    head = HEAD.pack(MAGIC, now, noted.until, answer[0], *lengths)
    try:
        put(place, b"".join([seal(secret, head, *parts), head, *parts]))
    except OSError:
        # It is only slower then.
        return


def _mattering(noted: Looks) -> bytes:
    """What matters of all files, where not every change of one does."""
    if not noted.passed_over:
        return b""
    import json

    return json.dumps([noted.passed_over, sorted(noted.needed)]).encode()


def is_young(ctime_ns: int, mtime_ns: int, began: float) -> bool:
    """Whether a path changed so shortly before it was looked at, or after, that the next change may not show; or says
    that it will be changed only later."""
    now = int(began * _SECOND)
    grain = _COARSE_NS if ctime_ns % _SECOND == 0 else _FINE_NS
    return max(ctime_ns, mtime_ns) > now - grain


def prepare(place: str) -> None:
    """Make the directory of the answers and the secret that seals them, before anything is looked at: that they were
    made would be a change."""
    # Not before: it holds on to the functions of `os` as they are when it is loaded.
    from pathlib import Path

    from agentwatch.disk import UNSYNCED, Directory

    path = Path(secret_place(place))
    with suppress(OSError):
        Directory.make(Path(place).parent, UNSYNCED).close()
        if len(secret_of(place)) != SECRET_BYTES:
            with Directory.open(path.parent, UNSYNCED) as directory:
                directory.replace(path.name, os.urandom(SECRET_BYTES))


def put(place: str, data: bytes) -> None:
    """Put a file there, whole, and take away those that nobody has asked for longest, where they are too many."""
    from pathlib import Path

    from agentwatch.disk import UNSYNCED, Directory

    path = Path(place)
    with Directory.make(path.parent, UNSYNCED) as directory:
        directory.replace(path.name, data)
        directory.sweep()
        found = []
        for name in directory.names():
            with suppress(OSError):
                found.append((directory.look(name), name))
        room, left = _MOST_BYTES, _MOST_FILES
        for status, name in sorted(found, key=lambda one: -one[0].st_mtime_ns):
            room, left = room - status.st_size, left - 1
            if room < 0 or left < 0:
                with suppress(OSError):
                    os.unlink(name, dir_fd=directory.descriptor)


class _Noted:
    """A stream, and what is written to it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.is_whole = True
        self._parts: list[str] = []

    def write(self, text: str) -> int:
        self._parts.append(text)
        return self._tried(lambda: self.stream.write(text))

    def flush(self) -> None:
        self._tried(self.stream.flush)

    def written(self) -> bytes:
        encoder = getincrementalencoder(self.stream.encoding or "utf-8")(self.stream.errors or "strict")
        return b"".join(map(encoder.encode, self._parts))

    def __getattr__(self, name: str) -> Any:
        # Who looks for more than these may write unseen.
        self.is_whole = self.is_whole and name not in ("buffer", "fileno", "detach", "writelines")
        return getattr(self.stream, name)

    def _tried(self, action: Callable[[], _Result]) -> _Result:
        try:
            return action()
        except BaseException:
            self.is_whole = False
            raise
