"""In which directories sessions of agents were alive of late. The stores say so, and no session is read for it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.sources.sessions.fields import inner, mapping, text
from agentwatch.sources.sessions.registry import databases, home_of
from agentwatch.sources.sessions.tail import document, line_at, record
from agentwatch.state import user_home

_LINES: Final = 20
"""Lines of a transcript up to which one says in which directory it was begun."""
_MOST_BYTES: Final = 256 * 1024


class Alive(NamedTuple):
    """A directory, as the store spells it, in which a session was begun that was alive at a time (epoch seconds).

    `with_below`: from a directory above it is seen as well.
    """

    directory: str
    at: float
    with_below: bool = True


def sessions_alive(since: float) -> list[Alive]:
    """Where a session was alive then (epoch seconds) or later, the latest first."""
    found = [one for one in (*_in_files(since), *_in_databases()) if one.at >= since]
    return sorted(found, key=lambda one: -one.at)


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
            exact |= set() if one.with_below else {place}
    parts = {part for part in places for whole in places if part != whole and is_part(whole, part)}
    return {Path(place): at for place, at in places.items() if place in exact or place not in parts}


def _in_files(since: float) -> Iterator[Alive]:
    """Of the programs that keep files: a pattern for those of their sessions, who reads the directory out of one, and
    whether it is seen from a directory above."""
    from agentwatch.sources.gemini.gemini_reader import root_of
    from agentwatch.sources.sessions.registry import storages

    programs: list[tuple[Path, str, Callable[[Path], str | None], bool]] = [
        (home_of("claude-code"), "projects/*/*.jsonl", _begun_in, True),
        (home_of("qwen-code"), "projects/*/chats/*.jsonl", _begun_in, True),
        (home_of("codex"), "sessions/*/*/*/rollout-*.jsonl", _begun_in, False),
        (home_of("copilot"), "session-state/*/events.jsonl", _begun_in, True),
        (home_of("gemini"), "tmp/*/chats/*.jsonl", lambda path: root_of(os.fspath(path.parent.parent)), True),
        # The files of a task are replaced, so the time of its directory is that of the last one.
        *((storage, "tasks/*", _workspace_in, False) for storage in storages(user_home())),
    ]
    for home, pattern, read, with_below in programs:
        for path in home.glob(pattern):
            with suppress(OSError, ValueError):
                at = path.lstat().st_mtime
                if at >= since and (directory := read(path)) is not None:
                    yield Alive(directory, at, with_below)


def _begun_in(path: Path) -> str | None:
    """The directory that stands in one of the first records of a transcript."""
    offset = 0
    for _ in range(_LINES):
        line = line_at(path, offset, _MOST_BYTES)
        if line is None:
            break
        fields = record(line) or {}
        # Qwen Code, as Claude Code, has it in the record, Codex in what it holds, Copilot deeper.
        places = (fields, inner(fields, "payload"), inner(fields, "data", "context"))
        if (directory := next(filter(None, (text(place, "cwd") for place in places)), None)) is not None:
            return directory
        offset += len(line) + 1
    return None


def _workspace_in(path: Path) -> str | None:
    return text(mapping(document(path / "history_item.json", _MOST_BYTES)), "workspace")


def _in_databases() -> Iterator[Alive]:
    """OpenCode and Kilo Code. What cannot be read is told by its reader, in the workspaces that it is about."""
    for path in databases().values():
        from agentwatch.sources.opencode.database import ForeignDatabase, directories_in

        with suppress(OSError, sqlite3.Error), ForeignDatabase(path).look() as connection:
            yield from [Alive(directory, at) for directory, at in directories_in(connection)]
