"""Finds the state directories of agentwatch, which lie outside of workspaces. Marks workspaces that a screen shows."""

import fcntl
import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from agentwatch.disk import OPEN_HELD, UNSYNCED, Directory
from agentwatch.errors import UsageError

_NAME_LENGTH = 40
_ID = re.compile(rf"[a-z0-9_-]{{1,{_NAME_LENGTH}}}-[0-9a-f]{{16}}")
_MAX_LINKS = 40  # the most links in one path, as in Linux
_SCRATCH = "temporary"

HISTORY = "history.db"  # the file of the history in the state directory of a workspace
_SHOWN = "watched.lock"
_FIRST = "first-watched"  # a file with one ISO 8601 time, apart from the history, because the history may get damaged
_TRIES = 5
# `is_shown` tries again after this pause, because another `is_shown` may hold the lock for microseconds.
_PAUSE_SECONDS = 0.01

_screens: set[int] = set()  # descriptors of the locks of this process's screens
_is_attended = True  # false while the user is away from the screens

_scratch_directories: set[Path] = set()  # the scratch directories of this process


def user_home() -> Path:
    """Return the user's home directory. Raise UsageError if the system knows no home directory."""
    try:
        return Path.home()
    except RuntimeError as error:
        raise UsageError(
            "you have no home directory that the system knows of; set HOME to a directory of yours"
        ) from error


def abbreviate_home(path: str) -> str:
    """Return a path with `~` in place of the user's home directory."""
    home = os.path.expanduser("~")  # noqa: PTH111 - compared as text
    return "~" + path[len(home) :] if path.startswith(home + os.sep) else path


def may_exist(path: Path | str) -> bool:
    """Tell whether a path exists. Return True also if the system refuses to tell."""
    try:
        os.stat(path)  # noqa: PTH116  faster, and called often
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def leads_through(path: Path, directory: Path) -> bool:
    """Follow a path link by link. Tell whether it leads through `directory`, so that agents there could redirect it."""
    root, here, links = Path(os.path.realpath(directory)), Path(os.sep), 0
    rest = [*(Path.cwd() / path).parts][::-1]
    while rest and here != root:
        name = rest.pop()
        if name == os.pardir:
            here = here.parent
            continue
        place = here / name
        try:
            link = place.readlink()
        except OSError:
            here = place
            continue
        links += 1
        if links > _MAX_LINKS:
            return True
        rest += link.parts[::-1]
    return here == root


def workspace_id(workspace: Path) -> str:
    """Return the id of a workspace: its name and a digest of its real path, for example `shop-3f9ac04e11d25b60`."""
    real = os.path.realpath(workspace)
    name = re.sub("[^a-z0-9_]+", "-", os.path.basename(real).lower())[:_NAME_LENGTH].strip("-")  # noqa: PTH119  a path may be invalid text
    return f"{name or 'workspace'}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:16]}"


def is_workspace_id(text: str) -> bool:
    """Tell whether a text has the form of a workspace id, which is safe in a path."""
    return _ID.fullmatch(text) is not None


def state_directory(workspace: Path) -> Path:
    """Return the state directory of a workspace: `$XDG_STATE_HOME/agentwatch/<workspace id>`."""
    return state_directories() / workspace_id(workspace)


def state_directories() -> Path:
    """Return the directory that holds the state directories of all workspaces."""
    return xdg_directory("XDG_STATE_HOME", ".local/state")


def xdg_directory(variable: str, default: str) -> Path:
    """Return the directory of agentwatch in an XDG base directory. A relative path in the variable is ignored."""
    base = os.environ.get(variable) or ""
    return (Path(base) if Path(base).is_absolute() else user_home() / default) / "agentwatch"


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """Yield a temporary directory that only the user can enter. Remove it after the block. May raise OSError."""
    from tempfile import TemporaryDirectory

    top = state_directories() / _SCRATCH
    Directory.open_or_make(top, UNSYNCED).close()
    with TemporaryDirectory(dir=top, ignore_cleanup_errors=True) as path:
        _scratch_directories.add(Path(path))
        try:
            yield Path(path).resolve()
        finally:
            _scratch_directories.discard(Path(path))


def remove_scratch_directories() -> None:
    """Remove all scratch directories of this process. Call this before the process ends abruptly."""
    import shutil

    for path in tuple(_scratch_directories):
        for _ in range(_TRIES):  # another thread may still write into it
            shutil.rmtree(path, ignore_errors=True)
            if not path.exists():
                break
            time.sleep(_PAUSE_SECONDS)


# Screens


@contextmanager
def mark_shown(state: Path) -> Iterator[None]:
    """Mark a workspace as shown during the block. The mark is a lock, which ends with the process."""
    with ExitStack() as stack:
        with suppress(OSError), Directory.open_or_make(state) as directory:
            descriptor = os.open(_SHOWN, OPEN_HELD | os.O_CREAT, 0o600, dir_fd=directory.descriptor)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            _screens.add(descriptor)
            stack.callback(_screens.discard, descriptor)
        yield


def set_attended(*, attended: bool) -> None:
    """Record whether the user is at this process's screens. If not, the screens' workspaces do not count as shown."""
    global _is_attended  # noqa: PLW0603
    _is_attended = attended
    for descriptor in _screens:
        fcntl.flock(descriptor, fcntl.LOCK_SH if attended else fcntl.LOCK_UN)


def is_attended() -> bool:
    """Tell whether the user is at the screens of this process."""
    return _is_attended


def is_shown(state: Path) -> bool:
    """Tell whether a screen of this user shows a workspace. `state` is the workspace's state directory."""
    with (
        suppress(OSError),
        Directory.open(state) as directory,
        open(os.open(_SHOWN, OPEN_HELD, dir_fd=directory.descriptor), "rb", 0) as lock,  # noqa: PTH123
    ):
        for _ in range(_TRIES):
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return False
            time.sleep(_PAUSE_SECONDS)
        return True
    return False


def read_first_watch(state: Path) -> float | None:
    """Return the time (epoch seconds) when a screen first showed the workspace. Return None if it is unknown."""
    from datetime import datetime

    with suppress(OSError, ValueError, OverflowError), Directory.open(state) as directory:
        return datetime.fromisoformat(directory.read(_FIRST, 1_000).decode("ascii").strip()).timestamp()
    return None


def record_first_watch(state: Path, at: float) -> None:
    """Record the time of the first watch (epoch seconds), unless a time is already recorded. Blocks."""
    from datetime import UTC, datetime

    with suppress(OSError), Directory.open_or_make(state) as directory:
        directory.publish(_FIRST, f"{datetime.fromtimestamp(at, UTC).isoformat()}\n".encode())
