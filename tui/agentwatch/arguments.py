"""How every command reads its arguments: one parser, one way to name a workspace, one way to be wrong."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from agentwatch.errors import UsageError, WorkspaceError

if TYPE_CHECKING:
    from pathlib import Path


_NO_TERMINAL: Final = 80
_DATA: Final = "\0"
"""Before a word that is no option, whatever it looks like; no argument that a system hands over holds it."""

_END: Final = "-\0"
"""In the place of `--`: an option, so that no other takes a word behind it for its value."""


def _columns() -> int:
    """The width of the terminal, as `shutil` finds it, which takes 3 ms to load."""
    text = os.environ.get("COLUMNS", "")
    try:
        return (int(text) if text.isdecimal() else 0) or os.get_terminal_size().columns or _NO_TERMINAL
    except OSError:
        return _NO_TERMINAL


class Parser(argparse.ArgumentParser):
    """Wrong arguments end like every other usage error, and nothing behind `--` is an option, on any Python."""

    known: Sequence[str] = ()
    """The options there are, for who has nearly written one of them."""

    def add_argument(self, *names: str, **wishes: Any) -> argparse.Action:
        """The same; a positional argument may stand behind `--`."""
        if not names[0].startswith("-"):
            wishes.setdefault("type", plain)
        return super().add_argument(*names, **wishes)

    def parse_intermixed_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> argparse.Namespace:  # type: ignore[override]
        """Options and positional arguments in any order. Raises UsageError."""
        # argparse parses them twice, and before Python 3.12 forgets `--` in between.
        words = list(args or ())
        if "--" in words:
            at = words.index("--")
            words[at:] = [_END, *(_DATA + word for word in words[at + 1 :])]
        for word in words:
            name = word.partition("=")[0]
            # As argparse tells options apart, and before it misses what this one stands for.
            if word.startswith("--") and name not in self.known and " " not in word:
                meant = did_you_mean(name, self.known)
                if meant:
                    self.error(f"unrecognized arguments: {word}; {meant}")
        options: argparse.Namespace = super().parse_intermixed_args(words, namespace)
        return options

    def error(self, message: str) -> NoReturn:
        message = message.replace(_DATA, "")
        raise UsageError(f"{message}\n{self.format_usage().strip()}\ntry: {self.prog} --help")


def plain(word: str) -> str:
    """A word as it was written, also one from behind `--`."""
    return word.removeprefix(_DATA)


def did_you_mean(word: str, known: Iterable[str], meant: Mapping[str, str] | None = None, most: int = 1) -> str:
    """A question where a word is nearly one of those that are known, else "". `meant` are other names for some."""
    from difflib import get_close_matches

    # The dashes of options are alike in all.
    names = {name.lstrip("-"): (meant or {}).get(name, name) for name in (*known, *(meant or ()))}
    near = get_close_matches(word.lstrip("-"), names, most, cutoff=0.7)
    return f"did you mean {', '.join(names[one] for one in near)}?" if near else ""


def parser(name: str, description: str, exit_codes: str, *, raw: bool = False) -> Parser:
    """The parser of a command; `raw` keeps the lines of the description as they are."""
    formatter = argparse.RawDescriptionHelpFormatter if raw else argparse.HelpFormatter
    made = Parser(
        prog=f"agentwatch {name}".strip(),
        description=description,
        epilog=exit_codes,
        formatter_class=partial(formatter, width=_columns() - 2),
        allow_abbrev=False,
    )
    made.add_argument(_END, action="store_true", dest="end", help=argparse.SUPPRESS)
    return made


def workspaces_at(paths: Sequence[str]) -> list[Path]:
    """The real paths of directories, each once; of none, where we are. Raises WorkspaceError."""
    return list(dict.fromkeys(workspace_at(path) for path in paths or ["."]))


def workspace_at(path: str) -> Path:
    """The real path of a directory. Raises WorkspaceError."""
    from pathlib import Path  # not needed for --help

    from agentwatch.shell import watch_workspace

    if "://" in path:
        raise WorkspaceError(f"{path}: this command is about a directory of this machine; run it where that is")
    try:
        # Its dot is looked up in it: that takes the right to enter it, besides the right to list it.
        os.scandir(os.path.join(path, ".")).close()  # noqa: PTH118  pathlib would drop the dot
    except (OSError, ValueError) as error:
        reasons: dict[type[Exception], str] = {
            FileNotFoundError: "no such directory",
            NotADirectoryError: "not a directory",
        }
        reason = reasons.get(type(error)) or getattr(error, "strerror", None) or str(error)
        is_wrong = type(error) in reasons or isinstance(error, ValueError)
        give = "the directory that the agents work in" if is_wrong else "a directory that you can read and enter"
        raise WorkspaceError(f"{path}: {reason}; give {give}") from error
    workspace = Path(os.path.realpath(path))
    watch_workspace(workspace)
    return workspace
