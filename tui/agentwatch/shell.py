"""Builds command lines that any shell reads exactly and any terminal shows safely, and finds trusted programs."""

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
from agentwatch.text import clean_name

# Arguments of `needing` for NATS, which reaches hosts that only dial out.
FLEET = ("fleet", "NATS needs its client for Python", ("nats", "nkeys", "nacl"))

_LONGEST = 100_000
_WORDS = 5  # the number of words that `launcher` returns


# Places where programs are installed although they may be git work trees.
_HOMEBREW = frozenset({"/opt/homebrew", "/usr/local", "/home/linuxbrew/.linuxbrew"})

_watched: set[str] = set()


def launch_words() -> tuple[str, ...]:
    """Return the words that start this same agentwatch, independent of the current directory and PYTHON* variables."""
    if sys.flags.no_site:
        return tuple(sys.orig_argv[:_WORDS])
    package = Path(__file__).absolute().parent
    foreign = {os.path.realpath(place) for place in ("", *os.environ.get("PYTHONPATH", "").split(os.pathsep))}
    # Without -I, Python would first look into the current directory and PYTHONPATH; with it, it skips the user's own
    # packages. `site` would run a sitecustomize of the workspace if a .pth file names that: so -S, and instead of
    # `site` a list of those present places that hold installed packages.
    kept = [
        place for place in sys.path if os.path.realpath(place) not in foreign and any(Path(place).glob("*.dist-info"))
    ]
    places = dict.fromkeys((str(package.parent), *kept))
    return (sys.executable, "-I", "-S", str(package / "__main__.py"), os.pathsep.join(places))


def call_words() -> tuple[str, ...]:
    """Return the words that call agentwatch in a shell: its name if it is on the PATH, else as it was called now."""
    if _is_on_path(os.environ.get("PATH")):
        return ("agentwatch",)
    script = Path(sys.argv[0]).absolute()
    return (str(script),) if script.name == "agentwatch" and os.access(script, os.X_OK) else launch_words()


@cache
def _is_on_path(path: str | None) -> bool:
    """Whether agentwatch is on a PATH; cached, because some commands ask for each task."""
    import shutil

    return shutil.which("agentwatch", path=path) is not None


def install_command(extra: str) -> str:
    """Return the command that installs an extra from a clone, because no package index has agentwatch."""
    return command_line([sys.executable, "-m", "pip", "install", f".[{extra}]"]) + " (in your clone of agentwatch)"


@contextmanager
def require_extra(extra: str, what: str, packages: Collection[str]) -> Iterator[None]:
    """Wrap imports that need the packages of an extra: if one is missing, raise UsageError with the install command."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in packages:
            raise
        raise UsageError(f"{what}: install it with {install_command(extra)}") from error


def command_line(words: Sequence[str]) -> str:
    """Return the words as one line for any POSIX shell. Raises ValueError if a word holds a NUL character."""
    if any("\0" in word for word in words):
        # A shell drops NUL characters, and the remaining word may be another task's id.
        raise ValueError("no argument of a command can hold a NUL character")
    import shlex

    line: list[str] = []
    before: list[str] = []
    for word in words:
        plain = shlex.quote(word)
        if plain.startswith("="):
            # zsh would replace an unquoted `=name` by the path of the program `name`.
            plain = f"'{plain}'"
        if clean_name(plain, _LONGEST) != plain:
            plain = f'"$(printf {_printf_format(word)})"'
            if word.endswith("\n"):
                # `$(...)` drops trailing line breaks, so a dot is added and removed again.
                before.append(f"w{len(line)}=$(printf {_printf_format(word + '.')}) && ")
                plain = f'"${{w{len(line)}%.}}"'
        line.append(plain)
    return "".join(before) + " ".join(line)


def _printf_format(word: str) -> str:
    """Return a quoted `printf` format that prints the word and holds nothing special to a shell or a terminal."""
    plain = re.compile(rb"[A-Za-z0-9 _./:,@]").match
    return "'" + "".join(chr(byte) if plain(bytes([byte])) else f"\\{byte:03o}" for byte in os.fsencode(word)) + "'"


def distrust_workspace(workspace: Path) -> None:
    """Trust no program in this workspace from now on."""
    with suppress(ValueError):  # an impossible path holds no programs
        _watched.add(os.path.realpath(workspace))


def find_program(name: str, path: str | None = None) -> str | None:
    """Return the absolute path of a program, None if none may be started. An absolute `name` is trusted; others are
    looked up in those absolute directories of PATH (or `path`) where neither agents nor everybody may write."""
    if "/" in name:
        return name if name.startswith("/") else None
    import shutil  # not needed by a hook

    for entry in trusted_path(path).split(os.pathsep):
        found = shutil.which(name, path=entry)
        if found and _is_trusted(os.path.dirname(os.path.realpath(found))):  # noqa: PTH120
            return found
    return None


def resolve_command(command: Sequence[str]) -> list[str]:
    """Return a command with the absolute path of its program. Raises FileNotFoundError if `find_program` finds none."""
    program = find_program(command[0])
    if program is None:
        why = "it is in no directory of PATH outside of workspaces and git work trees"
        raise FileNotFoundError(errno.ENOENT, why, command[0])
    return [program, *command[1:]]


def trusted_path(path: str | None = None) -> str:
    """Return the trusted directories of PATH (or `path`) as one string."""
    path = os.environ.get("PATH", os.defpath) if path is None else path
    entries = (entry for entry in path.split(os.pathsep) if entry.startswith("/"))
    return os.pathsep.join(entry for entry in entries if _is_trusted(os.path.realpath(entry)))


def _is_trusted(directory: str) -> bool:
    """Whether agents and other users probably cannot write to a directory, given by its real path."""
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
