"""The readers of the session stores of one workspace: those of this package, and what others ship by entry point.

A reader is loaded once its program has a store: few machines have all of them, and loading takes longer than looking.
An entry point of the group `agentwatch.sources` names a callable that takes the workspace, a `pathlib.Path`, and
returns a `SessionReader`, or None where it has nothing to read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.state import is_there, user_home

if TYPE_CHECKING:
    from agentwatch.sources.sessions.reader import Broken, SessionReader

GROUP: Final = "agentwatch.sources"
CLAUDE_CODE: Final = "claude-code"


class _Home(NamedTuple):
    """A program that keeps its sessions in a directory of the user's home, or where one of its variables says.

    `reader` of `package` is called with the workspace and that directory.
    """

    package: str
    reader: str
    variables: tuple[str, ...]
    directory: str
    sessions: str
    is_home: bool = False
    """The variables name another home, with that directory in it."""


_HOMES: Final = {
    CLAUDE_CODE: _Home("claude_code", "ClaudeCodeReader", ("CLAUDE_CONFIG_DIR",), ".claude", "projects"),
    "codex": _Home("codex", "CodexReader", ("CODEX_HOME",), ".codex", "sessions"),
    "qwen-code": _Home("qwen", "QwenReader", ("QWEN_RUNTIME_DIR", "QWEN_HOME"), ".qwen", "projects"),
    "copilot": _Home("copilot", "CopilotReader", ("COPILOT_HOME",), ".copilot", "session-state"),
    "gemini": _Home("gemini", "GeminiReader", ("GEMINI_CLI_HOME",), ".gemini", "tmp", is_home=True),
}
"""By the name of the reader."""
_DATABASES: Final = {"opencode": ("OPENCODE_DB", ("opencode",)), "kilo": ("KILO_DB", ("kilo", "opencode"))}
"""By program: the variable that names another database, and the stems of the names in the program's directory."""


_CLINE: Final = "saoudrizwan.claude-dev"
"""Cline, of which Roo Code was made: its tasks hand nothing to each other."""
_ROO_COMMAND_LINE: Final = ".vscode-mock/global-storage"


class Registry:
    """Opens the readers of one workspace."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._asks_others = True
        """Those that others ship, once."""

    def open(self, known: Collection[str], broken: Broken) -> Iterator[SessionReader]:
        """The readers whose names are not `known` yet: stores may appear while agentwatch runs."""
        for name, (package, reader, arguments) in _stores().items():
            if name not in known:
                module = import_module(f"agentwatch.sources.{package}.{package}_reader")
                yield getattr(module, reader)(self._workspace, *arguments)
        if self._asks_others and any(map(_may_name_one, sys.path)):
            yield from self._shipped_by_others(broken)
        self._asks_others = False

    @staticmethod
    def is_empty() -> bool:
        """Whether there is nothing to open."""
        return not _stores() and not any(map(_may_name_one, sys.path))

    def _shipped_by_others(self, broken: Broken) -> Iterator[SessionReader]:
        """Those whose names nobody else has."""
        from importlib.metadata import entry_points

        from agentwatch.sources.sessions.reader import SessionReader

        taken = {*looked_in()}
        for entry in entry_points(group=GROUP):
            try:
                reader = entry.load()(self._workspace)
                if reader is None:
                    continue
                if not isinstance(reader, SessionReader):
                    raise TypeError("it gives no SessionReader")  # noqa: TRY301
                if reader.name in taken:
                    raise ValueError(f"another source has its name, {reader.name}")  # noqa: TRY301
            except (Exception, SystemExit) as error:  # noqa: BLE001
                broken(entry.name, error)
            else:
                taken.add(reader.name)
                yield reader


def _stores() -> dict[str, tuple[str, str, tuple[object, ...]]]:
    """The package of each program that has a store, its reader and the arguments of that, by the reader's name."""
    stores: dict[str, tuple[str, str, tuple[object, ...]]] = {
        name: (home.package, home.reader, (home_of(name),)) for name, home in _HOMES.items() if is_there(home_of(name))
    }
    if any(True for _ in storages(user_home())):
        stores["roo"] = "roo", "RooReader", ()
    return stores | {name: ("opencode", "OpenCodeReader", (path, name)) for name, path in databases().items()}


def _may_name_one(place: str) -> bool:
    """Whether a package that is installed in a place names the group: it takes a twentieth of `entry_points`."""
    for described in Path(place).glob("*.dist-info/entry_points.txt"):
        with suppress(OSError):
            if GROUP.encode() in described.read_bytes():
                return True
    return False


def home_of(name: str) -> Path:
    """Where the program of a reader keeps its sessions, there or not."""
    home = _HOMES[name]
    named = next(filter(None, map(os.environ.get, home.variables)), None)
    if named is None or home.is_home:
        return Path(named or user_home(), home.directory)
    return Path(named)


def looked_in() -> dict[str, Sequence[Path]]:
    """Where the sessions of each program that is supported lie, there or not, by the name of its reader."""
    return {
        **{name: [home_of(name) / home.sessions] for name, home in _HOMES.items()},
        **{name: [_share() / name / f"{stems[0]}.db"] for name, (_, stems) in _DATABASES.items()},
        "roo": _searched(user_home()),
    }


def databases() -> dict[str, Path]:
    """The databases of OpenCode and Kilo Code that are there, the usual one of a program first, by their source.

    A source is called `opencode`, `kilo`, or `opencode-<channel>` for one beside the usual one; a variable may name
    another one. Both programs use `~/.local/share` on every system.
    """
    stores: dict[str, Path] = {}
    for program, (variable, stems) in _DATABASES.items():
        directory, chosen = _share() / program, os.environ.get(variable, "")
        paths = [directory / f"{stems[0]}.db"]
        for stem in stems:
            with suppress(OSError):
                paths += sorted(directory.glob(f"{stem}-*.db"))
        paths += [directory / chosen] if chosen not in ("", ":memory:") else []
        # Also what is no file, or cannot be looked at: its reader says so.
        for path in filter(is_there, paths):
            if path not in stores.values():
                name = path.stem if path.stem.startswith(program) else f"{program}-{path.stem}"
                stores[f"{name}-2" if name in stores else name] = path
    return stores


def _share() -> Path:
    data = os.environ.get("XDG_DATA_HOME", "")
    return Path(data) if data.startswith("/") else user_home() / ".local" / "share"


def storages(home: Path) -> Iterator[Path]:
    """The directories that hold `tasks/` of Roo Code and its relatives, whichever editor and extension made them; each
    once."""
    # An editor keeps its own on a machine that is worked on from elsewhere: `.vscode-server`, `.cursor-server`.
    patterns = (
        ".*-server*/data/User/globalStorage/*",
        ".local/share/code-server/User/globalStorage/*",
        _ROO_COMMAND_LINE,
    )
    found: list[Path] = []
    for above, pattern in ((_editor_settings(home), "*/User/globalStorage/*"), *((home, one) for one in patterns)):
        # A broken mount beside them must hide none but those behind it.
        with suppress(OSError):
            found += above.glob(pattern)
    yield from sorted(path for path in found if path.name != _CLINE and is_there(path / "tasks"))


def _searched(home: Path) -> list[Path]:
    """Where the usual ones lie; a `*` stands for an editor, and for an extension."""
    above = (_editor_settings(home) / "*" / "User" / "globalStorage" / "*", home / _ROO_COMMAND_LINE)
    return [path / "tasks" for path in above]


def _editor_settings(home: Path) -> Path:
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    return Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
