"""Notes everything that a command looks at, by standing between it and the functions of `os` that look.

To be installed before anything else of agentwatch is loaded: a module may hold on to a function of `os`.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import posixpath
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agentwatch.kept.noted import SYSTEM, TELLING, Looks, is_alive, passed, sign_of

if TYPE_CHECKING:
    from agentwatch.kept.answers import Question

_noting: Looks | None = None
_is_installed = False


def spoil(why: str) -> None:
    """What is just being answered depends on something that cannot be noted."""
    if _noting is not None:
        _noting.spoil(why)


def until(moment: float) -> None:
    """What is just being answered is another answer from this moment on, at the earliest; epoch seconds."""
    if _noting is not None:
        _noting.until = min(_noting.until, moment)


def only_if(condition: Callable[[], bool]) -> None:
    """What is just being answered may be kept only if this is true; it is asked later, and nothing of that is noted."""
    if _noting is not None:
        _noting.conditions.append(condition)


def holds(moment: float) -> None:
    """What is just being answered has been said, and nothing but `until` has to be added to this: from this moment on
    it may be another answer; epoch seconds."""
    until(moment)
    if _noting is not None:
        _noting.is_told = True


def asked(workspace: str, question: Question, answer: str) -> None:
    """git was asked about a workspace what no file tells, and this is the digest of what it said."""
    if _noting is not None:
        _noting.questions.append((workspace, *question, answer))


def database(path: str) -> None:
    """A database is about to be opened, with the logs beside it."""
    if _noting is not None:
        for name in (path, f"{path}-wal", f"{path}-journal"):
            _noting.note_now(_noting.path_of(name), follows=True)


def is_installed() -> bool:
    """Whether what is looked at can be noted."""
    return _is_installed


def is_noting() -> bool:
    """Whether what is looked at is noted."""
    return _noting is not None


@contextmanager
def scanning() -> Iterator[None]:
    """All files of a workspace are looked at meanwhile; see `passing`."""
    noting = _noting
    if noting is None:
        yield
        return
    before, noting.is_passing = noting.is_passing, noting.is_partial
    try:
        yield
    finally:
        noting.is_passing = before


@contextmanager
def passing() -> Iterator[None]:
    """Of all files that are scanned meanwhile, most do not matter; which those are is told by `passed_over`."""
    if _noting is not None:
        _noting.is_partial = True
    try:
        yield
    finally:
        if _noting is not None:
            _noting.is_partial = False


def passed_over(told: Sequence[object]) -> None:
    """Of what was scanned while `passing`, this matters to what is just being answered, as JSON."""
    if _noting is not None:
        _noting.passed_over.append(told)


def all_matter() -> None:
    """Of what is just being scanned, each change may matter."""
    if _noting is not None and _noting.is_passing:
        _noting.passed_over.append([])


@contextmanager
def unnoted() -> Iterator[None]:
    """What is looked at meanwhile changes no answer."""
    global _noting  # noqa: PLW0603
    before, _noting = _noting, None
    try:
        yield
    finally:
        _noting = before


def told_by(look: Callable[[], None]) -> tuple[object, ...] | None:
    """In a copy of this process: look, and say for `take` what was looked at; None where nothing is noted."""
    if _noting is None:
        look()
        return None
    begin(_noting.anew())
    look()
    return _noting.told()


def take(told: tuple[object, ...] | None) -> None:
    """A copy of this process has looked at this."""
    if _noting is not None and told is not None:
        _noting.take(told)


def begin(looks: Looks | None) -> None:
    """Note everything there from now on; None: nothing any more."""
    global _noting  # noqa: PLW0603  the functions of `os` are there once, too
    _noting = looks


def install() -> None:
    """Have the functions that look note what they are asked. They go on to do what they do."""
    global _is_installed  # noqa: PLW0603
    if _is_installed:
        return
    _is_installed = True
    for name, made in (_looking() | _listing()).items():
        real = getattr(os, name)
        # What asks whether a function takes a descriptor is told the same of the one in its place.
        for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
            if real in able:
                able.add(made)
        setattr(os, name, made)
    io.open = builtins.open = _noting_open(io.open)
    _note_variables()


def _looking() -> dict[str, Callable[..., Any]]:
    """By name, what takes the place of a function of `os` that looks at a path or opens it."""
    stat, open_, close = os.stat, os.open, os.close

    def looked_at(path: Any, directory: int | None, *, follows: bool) -> os.stat_result:
        looks = _noting
        try:
            status = stat(path, dir_fd=directory, follow_symlinks=follows)
        except (OSError, ValueError) as error:
            if looks is not None and not isinstance(path, int):
                refused = getattr(error, "errno", None) or errno.EINVAL
                if refused not in TELLING and isinstance(error, OSError) and refused != errno.ENAMETOOLONG:
                    looks.spoil(str(error))
                looks.note(looks.path_of(path, directory), (refused, 0, 0, 0), follows=follows)
            raise
        if looks is not None and not isinstance(path, int):
            # To resolve a path, it is asked of each directory on the way only whether it is a link.
            resolves = not follows and sys._getframe(2).f_globals is vars(posixpath)  # noqa: SLF001
            sign = (passed(status) if resolves else None) or sign_of(status)
            looks.note(looks.path_of(path, directory), sign, follows=follows)
        return status

    def noting_stat(path: Any, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        return looked_at(path, dir_fd, follows=follow_symlinks)

    def noting_lstat(path: Any, *, dir_fd: int | None = None) -> os.stat_result:
        return looked_at(path, dir_fd, follows=False)

    def noting_os_open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        looks = _noting
        if looks is None:
            return open_(path, flags, mode, dir_fd=dir_fd)
        where = looks.path_of(path, dir_fd)
        try:
            descriptor = open_(path, flags, mode, dir_fd=dir_fd)
        except OSError as error:
            looks.note_refused(where, error, flags)
            raise
        looks.note_opened(where, descriptor, flags)
        return descriptor

    def noting_close(fd: int) -> None:
        if _noting is not None:
            _noting.forget(fd)
        close(fd)

    return {"stat": noting_stat, "lstat": noting_lstat, "open": noting_os_open, "close": noting_close}


def _listing() -> dict[str, Callable[..., Any]]:
    """The others, too."""
    scandir, listdir, readlink, access = os.scandir, os.listdir, os.readlink, os.access
    mkdir, kill = os.mkdir, os.kill

    def noting_scandir(path: Any = ".") -> Any:
        if _noting is not None:
            _noting.note_listed(path)
        return scandir(path)

    def noting_listdir(path: Any = ".") -> list[Any]:
        if _noting is not None:
            _noting.note_listed(path)
        return listdir(path)

    def noting_readlink(path: Any, *, dir_fd: int | None = None) -> Any:
        if _noting is not None:
            _noting.note_link(_noting.path_of(path, dir_fd))
        return readlink(path, dir_fd=dir_fd)

    def noting_access(path: Any, mode: int, **how: Any) -> bool:
        if _noting is not None:
            _noting.note_now(_noting.path_of(path, how.get("dir_fd")), follows=True)
        return access(path, mode, **how)

    def noting_mkdir(path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        mkdir(path, mode, dir_fd=dir_fd)
        if _noting is not None:
            _noting.note_own(_noting.path_of(path, dir_fd))

    def noting_kill(pid: int, signal: int, /) -> None:
        if _noting is not None and signal == 0:
            _noting.processes[pid] = is_alive(pid)
        kill(pid, signal)

    return {
        "scandir": noting_scandir,
        "listdir": noting_listdir,
        "readlink": noting_readlink,
        "access": noting_access,
        "mkdir": noting_mkdir,
        "kill": noting_kill,
    }


def _note_variables() -> None:
    kind = type(os.environ)
    # Whatever else reads one comes here.
    get, names = kind.__getitem__, kind.__iter__

    def noting_get(self: Any, name: Any) -> Any:
        value = None
        try:
            value = get(self, name)
        finally:
            if _noting is not None:
                _noting.variables[os.fsdecode(name)] = None if value is None else os.fsdecode(value)
        return value

    def noting_names(self: Any) -> Any:
        spoil("every variable of the environment was read")
        return names(self)

    setattr(kind, "__getitem__", noting_get)  # noqa: B010  mypy takes a method for fixed
    setattr(kind, "__iter__", noting_names)  # noqa: B010


def _noting_open(real: Callable[..., Any]) -> Callable[..., Any]:
    def noting_open(file: Any, mode: str = "r", *others: Any, **more: Any) -> Any:
        looks = _noting
        if looks is not None and not isinstance(file, int):
            where = looks.path_of(file)
            if where.startswith(SYSTEM):
                looks.note_held(where)
            elif {"w", "a", "x", "+"}.isdisjoint(mode):
                looks.note_now(where, follows=True)
            else:
                looks.note_own(where)
        return real(file, mode, *others, **more)

    return noting_open
