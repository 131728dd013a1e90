"""Builds command lines that mean the same in each shell and are safe to show. Finds trusted programs."""

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

# The arguments of `require_extra` for the client of NATS.
FLEET = ("fleet", "NATS needs its client for Python", ("nats", "nkeys", "nacl"))

_LONGEST = 100_000
_WORDS = 5  # the number of words that `launch_words` returns


# Directories of installed programs. They are trusted even if they are git work trees.
_HOMEBREW = frozenset({"/opt/homebrew", "/usr/local", "/home/linuxbrew/.linuxbrew"})

_watched: set[str] = set()


def launch_words() -> tuple[str, ...]:
    """Return the words of a command that starts this installation safely, in any directory and environment."""
    if sys.flags.no_site:
        return tuple(sys.orig_argv[:_WORDS])
    package = Path(__file__).absolute().parent
    foreign = {os.path.realpath(place) for place in ("", *os.environ.get("PYTHONPATH", "").split(os.pathsep))}
    # -I keeps Python from loading modules of the current directory and PYTHONPATH. -S keeps `site` from running code
    # that a .pth file names. Both options hide installed packages, so the last word lists the packages' directories.
    kept = [
        place for place in sys.path if os.path.realpath(place) not in foreign and any(Path(place).glob("*.dist-info"))
    ]
    places = dict.fromkeys((str(package.parent), *kept))
    return (sys.executable, "-I", "-S", str(package / "__main__.py"), os.pathsep.join(places))


def call_words() -> tuple[str, ...]:
    """Return the words that call agentwatch in a shell: `agentwatch` if PATH has it, else a longer command."""
    if _is_on_path(os.environ.get("PATH")):
        return ("agentwatch",)
    script = Path(sys.argv[0]).absolute()
    return (str(script),) if script.name == "agentwatch" and os.access(script, os.X_OK) else launch_words()


@cache
def _is_on_path(path: str | None) -> bool:
    """Tell whether PATH has agentwatch. Cached, because some commands call this for each task."""
    import shutil

    return shutil.which("agentwatch", path=path) is not None


def install_command(extra: str) -> str:
    """Return the command that installs an extra such as `mcp` from a clone of agentwatch."""
    return command_line([sys.executable, "-m", "pip", "install", f".[{extra}]"]) + " (in your clone of agentwatch)"


@contextmanager
def require_extra(extra: str, what: str, packages: Collection[str]) -> Iterator[None]:
    """Wrap the imports of an extra's packages. If a package is missing, raise UsageError with the install command."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in packages:
            raise
        raise UsageError(f"{what}: install it with {install_command(extra)}") from error


def command_line(words: Sequence[str]) -> str:
    """Return the words as one line for any POSIX shell. Raise ValueError if a word has a NUL character."""
    if any("\0" in word for word in words):
        # A shell drops NUL characters, and without them the word may be the id of another task.
        raise ValueError("no argument of a command can hold a NUL character")
    import shlex

    line: list[str] = []
    before: list[str] = []
    for word in words:
        plain = shlex.quote(word)
        if plain.startswith("="):
            # zsh replaces an unquoted `=name` by the path of the program `name`.
            plain = f"'{plain}'"
        if clean_name(plain, _LONGEST) != plain:
            plain = f'"$(printf {_printf_format(word)})"'
            if word.endswith("\n"):
                # `$(...)` drops line breaks at the end, so add a dot and remove it again.
                before.append(f"w{len(line)}=$(printf {_printf_format(word + '.')}) && ")
                plain = f'"${{w{len(line)}%.}}"'
        line.append(plain)
    return "".join(before) + " ".join(line)


def _printf_format(word: str) -> str:
    """Return a quoted format for `printf` that prints the word. The format is safe for any shell and terminal."""
    plain = re.compile(rb"[A-Za-z0-9 _./:,@]").match
    return "'" + "".join(chr(byte) if plain(bytes([byte])) else f"\\{byte:03o}" for byte in os.fsencode(word)) + "'"


def distrust_workspace(workspace: Path) -> None:
    """From now on trust no program in this workspace."""
    with suppress(ValueError):  # a path with a NUL cannot exist, so it has no programs
        _watched.add(os.path.realpath(workspace))


def find_program(name: str, path: str | None = None) -> str | None:
    """Return the absolute path of a trusted program, or None if there is no such program. An absolute `name` is
    trusted. A plain name is looked up in the trusted directories of `path`, which is PATH by default."""
    if "/" in name:
        return name if name.startswith("/") else None
    import shutil  # imported late, because hooks do not need it

    for entry in trusted_path(path).split(os.pathsep):
        found = shutil.which(name, path=entry)
        if found and _is_trusted(os.path.dirname(os.path.realpath(found))):  # noqa: PTH120
            return found
    return None


def resolve_command(command: Sequence[str]) -> list[str]:
    """Return a command with its program's absolute path. Raise FileNotFoundError if no trusted program is found."""
    program = find_program(command[0])
    if program is None:
        why = "it is in no directory of PATH outside of workspaces and git work trees"
        raise FileNotFoundError(errno.ENOENT, why, command[0])
    return [program, *command[1:]]


def trusted_path(path: str | None = None) -> str:
    """Return only the trusted directories of a search path. `path` is PATH by default."""
    path = os.environ.get("PATH", os.defpath) if path is None else path
    entries = (entry for entry in path.split(os.pathsep) if entry.startswith("/"))
    return os.pathsep.join(entry for entry in entries if _is_trusted(os.path.realpath(entry)))


def _is_trusted(directory: str) -> bool:
    """Tell whether the programs in a directory are safe from agents and other users. `directory` is a real path."""
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
