"""In which directories sessions of agents were alive of late. The stores say so, and no session is read for it."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.sources.sessions.fields import inner, mapping, text
from agentwatch.sources.sessions.registry import CLAUDE_CODE, databases, home_of
from agentwatch.sources.sessions.tail import document, line_at, record
from agentwatch.state import user_home

_SESSION: Final = {
    CLAUDE_CODE: re.compile(r"(?P<session>[0-9a-zA-Z_-]{1,128})(?:\.jsonl|/(?:subagents/)?.+\.jsonl)"),
    "qwen-code": re.compile(r"(?:chats/|subagents/)(?P<session>[0-9a-zA-Z_-]{1,128})(?:\.jsonl|/.+\.jsonl)"),
}
"""By program: the files below the directory of a project, and whose they are."""
_OWN: Final = {CLAUDE_CODE: "{}.jsonl", "qwen-code": "chats/{}.jsonl"}
_LINES: Final = 20
"""Lines of a transcript up to which one says in which directory it was begun."""
_MOST_BYTES: Final = 256 * 1024
_DEEPEST: Final = 5


class Alive(NamedTuple):
    """A directory, as the store spells it, in which a session was begun that was alive at a time (epoch seconds).

    `with_below`: from a directory above it is seen as well.
    """

    directory: str
    at: float
    with_below: bool


class AliveSessions:
    """Asks all stores, again and again: what has not changed costs a look at its time. One thread at a time."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int], str | None]] = {}
        """By the path of a file: the directory that it tells, and of which state of the file."""
        self._rows: dict[Path, tuple[object, list[Alive]]] = {}

    def since(self, at: float) -> list[Alive]:
        """Where a session was alive then (epoch seconds) or later, the latest first."""
        found: list[Alive] = []
        places = (
            self._in_projects,
            self._in_rollouts,
            self._in_events,
            self._in_chats,
            self._in_databases,
            self._in_tasks,
        )
        for ask in places:
            # What cannot be read is told by its reader, in the workspaces that it is about.
            with suppress(OSError, ValueError, sqlite3.Error):
                found += ask(at)
        return sorted(found, key=lambda one: -one.at)

    def _in_projects(self, since: float) -> Iterator[Alive]:
        """Claude Code and Qwen Code."""
        for name, pattern in _SESSION.items():
            root = home_of(name) / "projects"
            for project in _directories(root):
                sessions: dict[str, float] = {}
                for path, status in _files(project, _DEEPEST):
                    match = pattern.fullmatch(os.path.relpath(path, project)) if status.st_mtime >= since else None
                    if match is not None:
                        session = match["session"]
                        sessions[session] = max(sessions.get(session, 0.0), status.st_mtime)
                for session, at in sessions.items():
                    directory = self._directory(Path(project, _OWN[name].format(session)), _begun_in)
                    if directory is not None:
                        yield Alive(directory, at, with_below=True)

    def _in_rollouts(self, since: float) -> Iterator[Alive]:
        """Codex."""
        for root in ("sessions", "archived_sessions"):
            for path, status in _files(str(home_of("codex") / root), _DEEPEST):
                if status.st_mtime >= since and os.path.basename(path).startswith("rollout-"):  # noqa: PTH119
                    directory = self._directory(Path(path), _rolled_out_in)
                    if directory is not None:
                        yield Alive(directory, status.st_mtime, with_below=False)

    def _in_events(self, since: float) -> Iterator[Alive]:
        """Copilot CLI."""
        for session in _directories(home_of("copilot") / "session-state"):
            path = Path(session, "events.jsonl")
            with suppress(FileNotFoundError):
                at = path.stat(follow_symlinks=False).st_mtime
                if at >= since and (directory := self._directory(path, _begun_in)) is not None:
                    yield Alive(directory, at, with_below=True)

    def _in_chats(self, since: float) -> Iterator[Alive]:
        """Gemini CLI."""
        from agentwatch.sources.gemini.gemini_reader import root_of

        for project in _directories(home_of("gemini") / "tmp"):
            written = [status.st_mtime for path, status in _files(f"{project}/chats", 1) if path.endswith(".jsonl")]
            at = max(written, default=-1.0)
            with suppress(OSError):
                if at >= since and (directory := root_of(project)) is not None:
                    yield Alive(directory, at, with_below=True)

    def _in_databases(self, since: float) -> Iterator[Alive]:
        """OpenCode and Kilo Code."""
        for path in databases().values():
            from agentwatch.sources.opencode.database import ForeignDatabase, directories_in

            database = ForeignDatabase(path)
            signature = database.signature()
            if self._rows.get(path, (None, []))[0] != signature:
                with database.look() as connection:
                    told = directories_in(connection)
                self._rows[path] = signature, [Alive(one, at, with_below=True) for one, at in told]
            yield from (one for one in self._rows[path][1] if one.at >= since)

    def _in_tasks(self, since: float) -> Iterator[Alive]:
        """Roo Code: the files of a task are replaced, so the time of its directory is that of the last one."""
        from agentwatch.sources.roo.storages import storages

        for storage in storages(user_home()):
            for task in _directories(storage / "tasks"):
                at = os.stat(task).st_mtime  # noqa: PTH116
                if at >= since:
                    directory = self._directory(Path(task, "history_item.json"), _workspace_in)
                    if directory is not None:
                        yield Alive(directory, at, with_below=False)

    def _directory(self, path: Path, read: Callable[[Path], str | None]) -> str | None:
        try:
            status = path.stat(follow_symlinks=False)
        except OSError:
            return None
        known = self._known.get(str(path))
        # What a file says at its beginning stays.
        if known is not None and known[0][0] == status.st_ino and (known[1] or known[0][1] == status.st_size):
            return known[1]
        directory = None
        with suppress(OSError, ValueError):
            directory = read(path)
        self._known[str(path)] = (status.st_ino, status.st_size), directory
        return directory


def workspaces_in(alive: Iterable[Alive], is_part: Callable[[str, str], bool]) -> dict[Path, float]:
    """The directories that are there, by their real paths, and when something was last alive in each.

    One that `is_part` of another (that one, and this) is seen there.
    """
    places: dict[str, float] = {}
    exact: set[str] = set()
    for one in alive:
        # As it was written, a relative one is relative to something that nobody knows.
        if os.path.isabs(one.directory) and "\0" not in one.directory and os.path.isdir(one.directory):  # noqa: PTH117
            place = os.path.realpath(one.directory)
            places[place] = max(places.get(place, 0.0), one.at)
            if not one.with_below:
                exact.add(place)
    parts = {part for part in places for whole in places if part != whole and is_part(whole, part)}
    return {Path(place): at for place, at in places.items() if place in exact or place not in parts}


def _begun_in(path: Path) -> str | None:
    offset = 0
    for _ in range(_LINES):
        line = line_at(path, offset, _MOST_BYTES)
        if line is None:
            return None
        fields = record(line) or {}
        directory = text(fields, "cwd") or text(inner(fields, "data", "context"), "cwd")
        if directory is not None:
            return directory
        offset += len(line) + 1
    return None


def _rolled_out_in(path: Path) -> str | None:
    from agentwatch.sources.codex import codex_reader
    from agentwatch.sources.codex.rollout import header_of

    first = record(codex_reader.line_at(path, 0) or b"")
    header = header_of(first) if first is not None else None
    # An agent belongs to the session that asked for it, wherever it works.
    return header.directory or None if header is not None and header.parent is None else None


def _workspace_in(path: Path) -> str | None:
    return text(mapping(document(path, _MOST_BYTES)), "workspace")


def _directories(root: Path) -> list[str]:
    try:
        with os.scandir(root) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _files(root: str, depth: int) -> Iterator[tuple[str, os.stat_result]]:
    """Every file below, with its status."""
    below: list[str] = []
    with suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                below.append(entry.path)
            elif entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    yield entry.path, entry.stat(follow_symlinks=False)
    for directory in below if depth else ():
        yield from _files(directory, depth - 1)
