"""What a command has looked at: each path with what tells that it has changed, and whatever else no path tells."""

from __future__ import annotations

import errno
import io
import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any, Final

from agentwatch.kept.answers import THROUGH

if TYPE_CHECKING:
    pass

Sign = tuple[int, int, int, int]
"""ctime and mtime in nanoseconds, size and inode; of what cannot be looked at, the number of the error and zeros. Of a
directory that was only passed, THROUGH, zeros and the inode: what else comes and goes in it changes nothing."""

_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
TELLING: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENXIO})
"""Errors that say something of the path, and not of how the system is just now."""
SYSTEM: Final = ("/proc/", "/sys/")
"""What lies there changes without its attributes telling: what it holds is noted, where it is read."""
_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_LONGEST: Final = 4 * 1024 * 1024

_PASSED: Final[Sign] = (THROUGH, 0, 0, 0)
_MISSING: Final[Sign] = (errno.ENOENT, 0, 0, 0)

_lstat, _stat, _fstat, _open = os.lstat, os.stat, os.fstat, os.open
_close, _kill, _read = os.close, os.kill, io.open


def sign_of(status: os.stat_result) -> Sign:
    """What tells that a path has changed; also for `st_mode`, which does not change without the ctime."""
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino


def passed(status: os.stat_result) -> Sign | None:
    """The sign of a directory that is only passed, None for anything else."""
    return (THROUGH, 0, 0, status.st_ino) if S_ISDIR(status.st_mode) else None


def sign_at(path: str, *, follows: bool) -> Sign:
    """The sign of a path as it is now."""
    try:
        return sign_of((_stat if follows else _lstat)(path))
    except (OSError, ValueError) as error:
        return getattr(error, "errno", None) or errno.EINVAL, 0, 0, 0


def bytes_at(path: str) -> bytes | None:
    """What a file of the system holds, None where it cannot be read."""
    try:
        descriptor = _open(path, _OPEN)
    except OSError:
        return None
    try:
        # Who reads a pipe waits for whoever writes into it.
        if not S_ISREG(_fstat(descriptor).st_mode):
            return None
        with _read(descriptor, "rb", closefd=False) as file:
            return file.read(_LONGEST)
    except OSError:
        return None
    finally:
        _close(descriptor)


def is_alive(pid: int) -> int:
    """What the system says to a signal that does nothing: 0, or the number of the error."""
    try:
        _kill(pid, 0)
    except OSError as error:
        return error.errno or errno.EINVAL
    except OverflowError:
        return errno.ERANGE
    return 0


class Looks:
    """What was looked at, each with its sign at the first look; by absolute path."""

    def __init__(self) -> None:
        self.themselves: dict[str, Sign] = {}
        """Links are looked at as links."""
        self.followed: dict[str, Sign] = {}
        """What links lead to."""
        self.held: dict[str, bytes | None] = {}
        """What files of the system held."""
        self.variables: dict[str, str | None] = {}
        """What variables of the environment were read, and what they held; None: they are not set."""
        self.processes: dict[int, int] = {}
        """What the system said of a process, by its number."""
        self.questions: list[tuple[str, bool, list[str], str]] = []
        """What git was asked and what it said; see `asked`."""
        self.until = math.inf
        """When the answer holds no more at the latest, in epoch seconds."""
        self.is_told = False
        """Whether those who made it have said all about that."""
        self.conditions: list[Callable[[], bool]] = []
        """Are asked when everything has been said: the answer may be kept only if all are true."""
        self.spoilt = ""
        """Why the answer must not be kept, "" where it may be."""
        self.passed_over: list[Sequence[object]] = []
        """Each tells which files were looked through, and what of them matters."""
        self.needed: set[str] = set()
        """What was looked at otherwise, too: any change of it matters."""
        self.is_partial = self.is_passing = False
        """Whether `passed_over` will tell of the files that are scanned, and whether they just are."""
        self._here = os.getcwd()  # noqa: PTH109
        self._directories: dict[int, tuple[str, bool]] = {}
        """By descriptor, the path that was opened, and whether links were followed."""
        self._listed: set[str] = set()
        """Directories, and no links to any, that were listed."""
        self._own: set[str] = set()
        """What this process has made itself."""

    def spoil(self, why: str) -> None:
        self.spoilt = self.spoilt or why

    def anew(self) -> Looks:
        """Nothing yet, for a copy of this process."""
        made = Looks()
        made._directories, made._own = self._directories, self._own
        return made

    def told(self) -> tuple[object, ...]:
        """All that a copy has looked at, for `take`."""
        spoilt = self.spoilt or ("what is asked later was not told" if self.conditions or self.is_told else "")
        files = self.themselves, self.followed, self.held
        return *files, self.variables, self.processes, self.questions, self.until, spoilt

    def take(self, told: tuple[Any, ...]) -> None:
        """What a copy of this process has told was looked at here, too."""
        themselves, followed, held, variables, processes, questions, until, spoilt = told
        for known, follows in ((themselves, False), (followed, True)):
            for where, sign in known.items():
                self.note(where, sign, follows=follows)
        self.held = held | self.held
        self.variables = variables | self.variables
        self.processes = processes | self.processes
        self.questions += questions
        self.until = min(self.until, until)
        self.spoil(spoilt)

    def path_of(self, path: Any, directory: int | None = None) -> str:
        """The absolute path of what a function was given, "" where it is not known."""
        name = path if type(path) is str else os.fsdecode(path)
        if name.startswith("/") or not name:
            # Without a name there is nothing, ever.
            return name
        above, _ = (self._here, True) if directory is None else self._directories.get(directory, ("", True))
        if not above:
            self.spoil("a directory was opened that nobody noted")
            return ""
        return f"{above}/{name}" if above != "/" else f"/{name}"

    def note(self, where: str, sign: Sign, *, follows: bool) -> None:
        """A path had this sign. The first time counts."""
        if not self.is_passing and sign[0] != THROUGH:
            self.needed.add(where)
        known = self.followed if follows else self.themselves
        before = known.get(where)
        if not where or (before is not None and before[0] != THROUGH) or (before is None and self._is_own(where)):
            return
        if before is not None and before[3] != sign[3]:
            self.spoil(f"{where} was replaced meanwhile")
        if not where.startswith(SYSTEM) or not any(sign[1:]):
            known[where] = sign
        elif where not in self.held:
            self.spoil(f"{where} has no attributes that tell what it is")

    def note_now(self, where: str, *, follows: bool) -> None:
        """The same, of a path that is about to be opened or listed."""
        if not self.is_passing:
            self.needed.add(where)
        known = self.followed if follows else self.themselves
        if where and known.get(where, _PASSED)[0] == THROUGH:
            self.note(where, sign_at(where, follows=follows), follows=follows)

    def note_link(self, where: str) -> None:
        """It is asked whether a path is a link, and where it leads."""
        try:
            status = _lstat(where)
        except (OSError, ValueError):
            self.note_now(where, follows=False)
        else:
            self.note(where, passed(status) or sign_of(status), follows=False)

    def note_held(self, where: str) -> None:
        """The same, of a file of the system."""
        if where not in self.held:
            self.held[where] = bytes_at(where)

    def note_listed(self, path: Any) -> None:
        """A directory is about to be listed, by its path or its descriptor."""
        if not isinstance(path, int):
            self.note_now(self.path_of(path), follows=True)
        elif path in self._directories:
            where, follows = self._directories[path]
            self.note(where, sign_of(_fstat(path)), follows=follows)
            if not follows:
                self._listed.add(where)
        else:
            self.spoil("a directory was opened that nobody noted")

    def note_opened(self, where: str, descriptor: int, flags: int) -> None:
        follows = not flags & os.O_NOFOLLOW
        self._directories[descriptor] = where, follows
        if flags & _WRITES:
            if flags & os.O_CREAT:
                self._own.add(where)
            return
        if not (self.is_passing or flags & os.O_DIRECTORY):
            self.needed.add(where)
        if where not in (self.followed if follows else self.themselves):
            status = _fstat(descriptor)
            self.note(where, passed(status) or sign_of(status), follows=follows)

    def note_refused(self, where: str, error: OSError, flags: int) -> None:
        if error.errno not in TELLING:
            self.spoil(f"{where}: {error.strerror}")
        if not flags & _WRITES:
            self.note_now(where, follows=False)
            if not flags & os.O_NOFOLLOW:
                self.note_now(where, follows=True)

    def note_own(self, where: str) -> None:
        self._own.add(where)

    def leave_out_implied(self) -> None:
        """Leave out what is not there in a directory that was listed: should it come, the directory changes."""
        for known in (self.themselves, self.followed):
            for path in [path for path, sign in known.items() if sign == _MISSING]:
                # That a directory changes may not matter.
                is_needed = bool(self.passed_over) and path in self.needed
                if not is_needed and self._is_listed(path.rpartition("/")[0]):
                    del known[path]

    def _is_listed(self, directory: str) -> bool:
        """Whether the sign of a directory is known. That of a link to it tells nothing of what comes and goes in it."""
        if directory in self._listed or self.followed.get(directory, _PASSED)[1]:
            return True
        with suppress(OSError):
            return self.themselves.get(directory, _PASSED)[1] != 0 and S_ISDIR(_lstat(directory).st_mode)
        return False

    def forget(self, descriptor: int) -> None:
        self._directories.pop(descriptor, None)

    def _is_own(self, where: str) -> bool:
        while len(where) > 1 and self._own:
            if where in self._own:
                return True
            where = where.rpartition("/")[0]
        return False
