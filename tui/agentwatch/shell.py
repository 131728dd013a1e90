"""Command lines: what starts this agentwatch from any shell, and lines to copy that are exact for the shell and
harmless to the terminal that shows them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from agentwatch.errors import UsageError
from agentwatch.text import exact

FLEET: Final = ("fleet", "NATS needs its client for Python", ("nats", "nkeys", "nacl"))
"""For `needing`: what reaches hosts that only dial out."""

_LONGEST: Final = 100_000
_WORDS: Final = 5
"""Those that `launcher` gives."""


def launcher() -> tuple[str, ...]:
    """The words that start the agentwatch that runs now, whatever lies in the directory or stands in PYTHON* variables.

    All are plain words where the paths are: they stand in agents' rules about commands, too.
    """
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
    return _called(os.environ.get("PATH"), sys.argv[0])


@lru_cache(maxsize=1)
def _called(path: str | None, program: str) -> tuple[str, ...]:
    """Found once: a list of what waits asks for each of its lines."""
    if shutil.which("agentwatch", path=path):
        return ("agentwatch",)
    script = Path(program).absolute()
    return (str(script),) if script.name == "agentwatch" and os.access(script, os.X_OK) else launcher()


def install_line(extra: str) -> str:
    """The command that installs an extra where this agentwatch is: from the clone that it was installed from, if it is
    known. No index has agentwatch."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    clone = "."
    with suppress(PackageNotFoundError, OSError, ValueError, KeyError, TypeError):
        source = urlsplit(json.loads(distribution("agentwatch").read_text("direct_url.json") or "{}")["url"])
        if source.scheme == "file" and Path(unquote(source.path), "pyproject.toml").is_file():
            clone = unquote(source.path)
    line = command_line([sys.executable, "-m", "pip", "install", f"{clone}[{extra}]"])
    return line if clone != "." else f"{line} (in your clone of agentwatch)"


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
