"""The reader of Claude Code's sessions: follows the files of one workspace and tells which runs have changed."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agentwatch.sources.claude_code.group import Group
from agentwatch.sources.claude_code.processes import UNKNOWN, Processes
from agentwatch.sources.claude_code.session import NAME
from agentwatch.sources.claude_code.store import Interest, Store
from agentwatch.sources.claude_code.texts import Texts
from agentwatch.sources.sessions.reader import Change, Found, Progress

_QUIET: Final = 15.0
"""Seconds without a change after which a missing process is believed to be gone."""

_COLD: Final = 900.0
"""Seconds without a change after which a session is looked at less often."""

_OWN: Final = 2.0
_ALL: Final = 30.0
"""Seconds between two looks at the own files of such sessions, and at all of theirs."""

_SLACK: Final = 3_600.0
"""Seconds by which the time of a file may lie before those that stand in it."""

_WATCHED: Final = 24
"""Sessions, the newest, whose own directories are worth watching."""


class ClaudeCodeReader:
    """The sessions that were begun in `workspace` or below it, out of `home`: `$CLAUDE_CONFIG_DIR`, else `~/.claude`.

    Sessions of which no file was written `since` a time (epoch seconds) are not read.
    It fulfils `SessionReader`. The runs are a function of what the files hold, however they grew.
    """

    def __init__(self, workspace: Path, home: Path, since: float | None = None) -> None:
        self._home = home
        self._since = -math.inf if since is None else since - _SLACK
        self._store = Store(workspace, home)
        self._processes = Processes(home)
        self._texts = Texts()
        self._groups: dict[tuple[str, str], Group] = {}
        self._sweep = 0
        self._next_own = 0.0
        self._next_all = 0.0
        self._progress = Progress(0, 0)
        self._trouble: str | None = None

    @property
    def name(self) -> str:
        return NAME

    @property
    def trouble(self) -> str | None:
        """What could not be read, in one sentence without foreign text; None where there is nothing."""
        return self._trouble

    @property
    def progress(self) -> Progress:
        return self._progress

    def read(self, seconds: float) -> Sequence[Change]:
        until = time.monotonic() + seconds
        moved = self._look()
        groups = sorted(self._wanted(), key=lambda group: -group.newest)
        moved |= self._advance(groups, until)
        changes: list[Change] = []
        for group in groups:
            program = self._processes.of(group.session.session_id)
            if program.gone and time.time() - group.newest <= _QUIET:
                program = UNKNOWN
            changes += group.changes(program)
        self._groups = {key: group for key, group in self._groups.items() if not group.empty}
        if moved:
            self._take_stock()
        return changes

    def places(self) -> Sequence[Path]:
        projects = self._store.projects
        places = [place for place in (self._home, projects, self._processes.directory) if os.path.isdir(place)]
        places += [Path(project) for project in self._store.candidates()]
        newest = sorted(
            (group.newest, project, session) for (project, session), group in self._groups.items() if group.belongs
        )
        below = tuple(os.path.join(*key, "") for _, *key in newest[-_WATCHED:])  # noqa: PTH118
        places += [Path(place) for place in self._store.directories() if f"{place}{os.sep}".startswith(below)]
        return places

    def text(self, digest: str) -> str | None:
        return self._texts.get(digest)

    def found(self) -> Sequence[Found]:
        projects = self._store.candidates()
        if not projects and os.path.isdir(self._store.projects):
            said = self._trouble or "no session of this workspace is there"
            return [Found(NAME, os.fspath(self._store.projects), 0, said)]
        found = []
        for project in projects:
            groups = [group for (place, _), group in self._groups.items() if place == project]
            other = sum(group.belongs is False for group in groups)
            lines = sum(group.not_understood for group in groups)
            metas = sum(group.bad_metas for group in groups)
            reasons = [self._trouble] if self._store.unreadable and self._trouble else []
            reasons += [f"{_count(other, 'session')} of other directories"] if other else []
            reasons += [f"{_count(lines, 'line')} not understood"] if lines else []
            reasons += [f"{_count(metas, 'description')} of agents not understood"] if metas else []
            mine = sum(group.belongs is True for group in groups)
            found.append(Found(NAME, project, mine, "; ".join(reasons), sum(group.agents for group in groups)))
        return found

    def close(self) -> None:
        """Nothing is held open between calls."""

    def _look(self) -> bool:
        """Take notice of what lies in the store now; True where something of it has changed."""
        self._processes.look()
        refused = set(self._store.unreadable)
        self._sweep += 1
        now = time.monotonic()
        own, everything = now >= self._next_own, now >= self._next_all
        if own:
            self._next_own = now + _OWN
        if everything:
            self._next_all = now + _ALL
        old = time.time() - _COLD
        partly: set[tuple[str, str]] = set()

        def interest(project: str, session: str) -> Interest:
            group = self._groups.get((project, session))
            if everything or group is None or group.newest > old:
                return Interest.ALL
            if group.newest >= self._since and not group.is_settled:
                return Interest.ALL
            partly.add((project, session))
            return Interest.OWN if own else Interest.NONE

        moved = False
        for entry, status in self._store.entries(interest):
            key = (entry.project, entry.session or "")
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = Group(key[1], self._store.workspace, self._texts.message)
            moved |= group.look(entry, status, self._sweep)
        for key, group in self._groups.items():
            if key not in partly and not self._store.unreadable:
                moved |= group.forget(self._sweep)
        return moved or refused != self._store.unreadable

    def _advance(self, groups: list[Group], until: float) -> bool:
        moved = False
        for group in groups:
            for path in group.pending():
                moved, more = True, True
                while more:
                    more = group.advance(path)
                    if time.monotonic() >= until:
                        return moved
        return moved

    def _wanted(self) -> list[Group]:
        return [group for group in self._groups.values() if group.newest >= self._since]

    def _take_stock(self) -> None:
        groups = self._wanted()
        total = sum(group.total for group in groups)
        self._progress = Progress(total - sum(group.left for group in groups), total)
        mine = [group for group in groups if group.belongs is not False]
        files = sum(group.unreadable for group in mine) + len(self._store.unreadable)
        lines = sum(group.not_understood for group in mine)
        metas = sum(group.bad_metas for group in mine)
        parts = []
        if files:
            parts.append(f"{_count(files, 'file')} cannot be read")
        if lines:
            parts.append(f"{_count(lines, 'line')} not understood and left out")
        if metas:
            parts.append(f"{_count(metas, 'description')} of agents not understood")
        self._trouble = " and ".join(parts) or None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
