"""Finds the session stores of all supported programs, and opens their readers.

Other packages can add a reader with an entry point of the group `agentwatch.sources`. The entry point names a callable.
The callable takes the workspace (a `pathlib.Path`), and returns a `SessionReader`, or None if there is no store."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from operator import itemgetter
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, NamedTuple

from agentwatch.state import may_exist, user_home

if TYPE_CHECKING:
    from agentwatch.sources.sessions.reader import Broken, SessionReader

GROUP = "agentwatch.sources"
CLAUDE_CODE = "claude-code"
_NOT_READ = "saoudrizwan.claude-dev"  # Cline, from which Roo Code is derived; Cline's tasks have no child tasks
_COMMAND_LINE = ".vscode-mock/global-storage"
_LINES = 20  # so many lines of a transcript are searched for the session's directory
_MOST_BYTES = 256 * 1024


class _Home(NamedTuple):
    """The place where a program keeps its sessions: `directory` in the user's home. One of the environment `variables`
    may name another place, or another home if `is_home`. Transcripts match `pattern` in the subdirectory `sessions`."""

    reader: str
    variables: tuple[str, ...]
    directory: str
    sessions: str
    pattern: str
    is_home: bool = False


_HOMES = {
    CLAUDE_CODE: _Home(
        "claude_code.claude_code_reader:ClaudeCodeReader", ("CLAUDE_CONFIG_DIR",), ".claude", "projects", "*/*.jsonl"
    ),
    "codex": _Home("codex:CodexReader", ("CODEX_HOME",), ".codex", "sessions", "*/*/*/rollout-*.jsonl"),
    "qwen-code": _Home("qwen:QwenReader", ("QWEN_RUNTIME_DIR", "QWEN_HOME"), ".qwen", "projects", "*/chats/*.jsonl"),
    "copilot": _Home("copilot:CopilotReader", ("COPILOT_HOME",), ".copilot", "session-state", "*/events.jsonl"),
    "gemini": _Home("gemini:GeminiReader", ("GEMINI_CLI_HOME",), ".gemini", "tmp", "*/chats/*.jsonl", is_home=True),
}  # by the name of the reader
# By program: the environment variable that names another database, and the stems of the database's file name.
_DATABASES = {"opencode": ("OPENCODE_DB", ("opencode",)), "kilo": ("KILO_DB", ("kilo", "opencode"))}


def open_readers(workspace: Path, known: Collection[str], broken: Broken) -> Iterator[SessionReader]:
    """Yield a reader for each store whose reader's name is not in `known`. If a reader fails, call `broken`."""
    for name, (reader, *arguments) in _find_programs().items():
        if name not in known:
            yield resolve_name(f"agentwatch.sources.{reader}")(workspace, *arguments)
    # Readers of other packages are opened only the first time.
    if not known and any(map(_may_have_reader, sys.path)):
        yield from _open_other_readers(workspace, broken)


def has_stores() -> bool:
    """Tell whether there may be a store to read."""
    return bool(_find_programs()) or any(map(_may_have_reader, sys.path))


def _find_programs() -> dict[str, tuple[object, ...]]:
    """For each program that has a store, return its reader's class and arguments, by the name of the reader."""
    stores: dict[str, tuple[object, ...]] = {
        name: (home.reader, home_of(name)) for name, home in _HOMES.items() if may_exist(home_of(name))
    }
    if find_roo_storages(user_home()):
        stores["roo"] = ("roo:RooReader",)
    for name, path in find_databases().items():
        stores[name] = "opencode:OpenCodeReader", path, name
    return stores


def _open_other_readers(workspace: Path, broken: Broken) -> Iterator[SessionReader]:
    """Yield the readers of other packages. If two readers have the same name, report the second as broken."""
    from importlib.metadata import entry_points

    from agentwatch.sources.sessions.reader import SessionReader

    taken = {*session_paths()}
    for entry in entry_points(group=GROUP):
        try:
            reader = entry.load()(workspace)
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


def _may_have_reader(place: str) -> bool:
    """Tell whether a package that is installed in `place` names our group. This is much faster than `entry_points`."""
    with suppress(OSError):
        return _names_group(place, Path(place).stat().st_mtime_ns)
    return False


@cache
def _names_group(place: str, _changed_at: int) -> bool:
    # A directory that has not changed since is not read again, as there may be hundreds of packages.
    for described in Path(place).glob("*.dist-info/entry_points.txt"):
        with suppress(OSError):
            if GROUP.encode() in described.read_bytes():
                return True
    return False


def home_of(name: str) -> Path:
    """Return the directory in which a program keeps its sessions. It may be missing. `name` is the reader's name."""
    home = _HOMES[name]
    named = next(filter(None, map(os.environ.get, home.variables)), None)
    if named is None or home.is_home:
        return Path(named or user_home(), home.directory)
    return Path(named)


def session_paths() -> dict[str, Sequence[Path]]:
    """Return the paths where each supported program keeps its sessions, by the reader's name. Paths may be missing."""
    return {
        **{name: [home_of(name) / home.sessions] for name, home in _HOMES.items()},
        **{name: [_data_directory() / name / f"{stems[0]}.db"] for name, (_, stems) in _DATABASES.items()},
        "roo": [_editor_settings(user_home()) / "*/User/globalStorage/*/tasks", user_home() / _COMMAND_LINE / "tasks"],
    }


def find_databases() -> dict[str, Path]:
    """Return the existing databases of OpenCode and Kilo Code, by the reader's name: `opencode`, `kilo` or a longer
    name such as `opencode-<channel>`. The usual database of a program comes before its other databases."""
    stores: dict[str, Path] = {}
    for program, (variable, stems) in _DATABASES.items():
        directory, chosen = _data_directory() / program, os.environ.get(variable, "")
        paths = [directory / f"{stems[0]}.db"]
        for stem in stems:
            with suppress(OSError):
                paths += sorted(directory.glob(f"{stem}-*.db"))
        paths += [directory / chosen] if chosen not in ("", ":memory:") else []
        # A path that is no file, or is unreadable, is included too, so that its reader reports the fault.
        for path in filter(may_exist, paths):
            if path not in stores.values():
                name = path.stem if path.stem.startswith(program) else f"{program}-{path.stem}"
                stores[f"{name}-2" if name in stores else name] = path
    return stores


def find_roo_storages(home: Path) -> list[Path]:
    """Return the storage directories of Roo Code and its derived extensions in all editors. Each has `tasks/`."""
    # A remote editor keeps its storage on the remote machine, in `.vscode-server` or `.cursor-server`.
    patterns = (".*-server*/data/User/globalStorage/*", ".local/share/code-server/User/globalStorage/*", _COMMAND_LINE)
    found: list[Path] = []
    for above, pattern in ((_editor_settings(home), "*/User/globalStorage/*"), *((home, one) for one in patterns)):
        # After an error, such as a broken mount, search on with the next pattern.
        with suppress(OSError):
            found += above.glob(pattern)
    return sorted(path for path in found if path.name != _NOT_READ and may_exist(path / "tasks"))


def _editor_settings(home: Path) -> Path:
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    return Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")


def _data_directory() -> Path:
    data = os.environ.get("XDG_DATA_HOME", "")
    return Path(data) if data.startswith("/") else user_home() / ".local" / "share"


# Directories with recent sessions


def find_live_directories(since: float) -> dict[str, float]:
    """Return the working directories of sessions that wrote something at `since` or later, each with the time of the
    last write. Times are in epoch seconds. The directories are spelled as in the stores."""
    import sqlite3

    from agentwatch.sources.opencode import ForeignDatabase, find_directories

    places = [(home_of(name) / home.sessions, home.pattern) for name, home in _HOMES.items()]
    # Roo Code replaces the files of a task, so the mtime of the task's directory shows the last change.
    places += [(storage, "tasks/*") for storage in find_roo_storages(user_home())]
    found: list[tuple[str, float]] = []
    for path in (path for place, pattern in places for path in place.glob(pattern)):
        with suppress(OSError, ValueError):
            at = path.lstat().st_mtime
            if at >= since and (directory := _directory_of_session(path)) is not None:
                found.append((directory, at))
    for path in find_databases().values():
        # An unreadable database is left out here. Its reader reports it when a workspace is watched.
        with suppress(OSError, sqlite3.Error), ForeignDatabase(path).connect() as connection:
            found += [one for one in find_directories(connection) if one[1] >= since]
    return dict(sorted(found, key=itemgetter(1)))


def find_workspaces(alive: Mapping[str, float], is_part: Callable[[str, str], bool]) -> dict[Path, float]:
    """Return the real paths of the directories in `alive` that exist, each with its latest time. A directory is left
    out if it is part of another directory: then `is_part(other, directory)` is true."""
    places: dict[str, float] = {}
    for directory, at in alive.items():
        # Nobody knows to which directory a relative path belongs.
        if os.path.isabs(directory) and "\0" not in directory and os.path.isdir(directory):  # noqa: PTH117
            place = os.path.realpath(directory)
            places[place] = max(places.get(place, 0.0), at)
    parts = {part for part in places for whole in places if part != whole and is_part(whole, part)}
    return {Path(place): at for place, at in places.items() if place not in parts}


def _directory_of_session(path: Path) -> str | None:
    """Return the session's working directory from the first lines of its transcript. Roo Code names the directory in a
    file of the task, and Gemini CLI in a file of the project."""
    from agentwatch.sources.gemini import read_project_root
    from agentwatch.sources.sessions.fields import Tail, as_object, directory_in, read_json, text

    if path.is_dir():
        return text(as_object(read_json(path / "history_item.json", _MOST_BYTES)), "workspace")
    named = (directory_in(line.record or {}) for line in Tail(path).read(_MOST_BYTES).lines[:_LINES])
    return next(filter(None, named), None) or read_project_root(os.fspath(path.parent.parent))
