"""Command lines that are exact for any shell and harmless to the terminal that shows them, and programs to start."""

import errno
import os
import re
import stat
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from agentwatch.errors import UsageError
from agentwatch.text import exact

# For `needing`: what reaches hosts that only dial out.
FLEET = ("fleet", "NATS needs its client for Python", ("nats", "nkeys", "nacl"))

_LONGEST = 100_000
_WORDS = 5  # those that `launcher` gives


# Places where programs are installed although they may be git work trees.
_HOMEBREW = frozenset({"/opt/homebrew", "/usr/local", "/home/linuxbrew/.linuxbrew"})

_watched: set[str] = set()


def launcher() -> tuple[str, ...]:
    """The words that start the agentwatch that runs now, whatever lies in the directory or stands in PYTHON*."""
    if sys.flags.no_site:
        return tuple(sys.orig_argv[:_WORDS])
    package = Path(__file__).absolute().parent
    foreign = {os.path.realpath(place) for place in ("", *os.environ.get("PYTHONPATH", "").split(os.pathsep))}
    # Not isolated, Python would look into the current directory and PYTHONPATH first; isolated, not into the user's
    # own packages. And a .pth file may name the workspace, where `site` would run its sitecustomize: so no `site`, and
    # of the places that are known now those into which packages were installed.
    kept = [
        place for place in sys.path if os.path.realpath(place) not in foreign and any(Path(place).glob("*.dist-info"))
    ]
    places = dict.fromkeys((str(package.parent), *kept))
    return (sys.executable, "-I", "-S", str(package / "__main__.py"), os.pathsep.join(places))


def called() -> tuple[str, ...]:
    """How the operator calls agentwatch in a shell: by name where that is on the PATH, else as it was called now."""
    if _is_on(os.environ.get("PATH")):
        return ("agentwatch",)
    script = Path(sys.argv[0]).absolute()
    return (str(script),) if script.name == "agentwatch" and os.access(script, os.X_OK) else launcher()


@cache
def _is_on(path: str | None) -> bool:
    """Whether agentwatch lies on a PATH: looked up once, for a command that prints a line a task."""
    import shutil

    return shutil.which("agentwatch", path=path) is not None


def install_line(extra: str) -> str:
    """The command that installs an extra where this agentwatch is. No index has agentwatch."""
    return command_line([sys.executable, "-m", "pip", "install", f".[{extra}]"]) + " (in your clone of agentwatch)"


@contextmanager
def needing(extra: str, what: str, packages: Collection[str]) -> Iterator[None]:
    """Around imports that need the packages of an extra. Raises UsageError that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in packages:
            raise
        raise UsageError(f"{what}: install it with {install_line(extra)}") from error


def command_line(words: Sequence[str]) -> str:
    """The words as one line for any POSIX shell. Raises ValueError for what no argument can hold."""
    if any("\0" in word for word in words):
        # A shell drops it: what is left may be another task's id.
        raise ValueError("no argument of a command can hold a NUL character")
    import shlex

    line: list[str] = []
    before: list[str] = []
    for word in words:
        plain = shlex.quote(word)
        if plain.startswith("="):
            # zsh would look for a program of that name.
            plain = f"'{plain}'"
        if exact(plain, _LONGEST) != plain:
            plain = f'"$(printf {_bytes(word)})"'
            if word.endswith("\n"):
                # A shell drops the last line breaks of what a command prints.
                before.append(f"w{len(line)}=$(printf {_bytes(word + '.')}) && ")
                plain = f'"${{w{len(line)}%.}}"'
        line.append(plain)
    return "".join(before) + " ".join(line)


def _bytes(word: str) -> str:
    """A format for `printf` in which nothing is special to it, to a shell or to a terminal."""
    plain = re.compile(rb"[A-Za-z0-9 _./:,@]").match
    return "'" + "".join(chr(byte) if plain(bytes([byte])) else f"\\{byte:03o}" for byte in os.fsencode(word)) + "'"


def watch_workspace(workspace: Path) -> None:
    """Take no program from this workspace from now on."""
    with suppress(ValueError):  # no path that can be, so no place of programs
        _watched.add(os.path.realpath(workspace))


def find_program(name: str, path: str | None = None) -> str | None:
    """The absolute path of a program, None if none may be started. An absolute path is the operator's own word; a name
    counts in an absolute directory of PATH (or `path`) in which neither agents nor everybody may write."""
    if "/" in name:
        return name if name.startswith("/") else None
    import shutil  # a hook needs none of it

    for entry in trusted_path(path).split(os.pathsep):
        found = shutil.which(name, path=entry)
        if found and _is_trusted(os.path.dirname(os.path.realpath(found))):  # noqa: PTH120
            return found
    return None


def resolve_command(command: Sequence[str]) -> list[str]:
    """A command with the absolute path of its program. Raises FileNotFoundError where `find_program` finds none."""
    program = find_program(command[0])
    if program is None:
        why = "it is in no directory of PATH outside of workspaces and git work trees"
        raise FileNotFoundError(errno.ENOENT, why, command[0])
    return [program, *command[1:]]


def trusted_path(path: str | None = None) -> str:
    """The directories of PATH (or `path`) from which a program may be taken."""
    path = os.environ.get("PATH", os.defpath) if path is None else path
    entries = (entry for entry in path.split(os.pathsep) if entry.startswith("/"))
    return os.pathsep.join(entry for entry in entries if _is_trusted(os.path.realpath(entry)))


def _is_trusted(directory: str) -> bool:
    """Whether agents and other users cannot write there, as far as this shows; the path is real."""
    for place in (Path(directory), *Path(directory).parents):
        try:
            mode = place.stat().st_mode
        except OSError:
            return False
        is_open = mode & stat.S_IWOTH and (str(place) == directory or not mode & stat.S_ISVTX)
        is_worktree = str(place) not in _HOMEBREW and os.path.lexists(place / ".git")
        if is_open or is_worktree or str(place) in _watched:
            return False
    return True
