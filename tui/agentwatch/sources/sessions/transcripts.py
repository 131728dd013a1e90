"""The reader of programs that keep a transcript for each session, and one for each of its agents beside a description.

It follows the files of one workspace and tells which runs have changed. The runs are a function of what the files hold,
however they grew.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, Generic

from agentwatch.delegation.run import Message, Run
from agentwatch.sources.sessions.following import LinesTranscript, Placed, RunTranscript
from agentwatch.sources.sessions.group import LARGE, Group, Kind, Stock, T
from agentwatch.sources.sessions.processes import UNKNOWN
from agentwatch.sources.sessions.projects import SESSION, Interest, Projects
from agentwatch.sources.sessions.reader import Change, Found, Progress, StoreReader, Texts, in_lines, several

_QUIET: Final = 15.0
"""Seconds without a change after which a missing process is believed to be gone."""

_COLD: Final = 900.0
"""Seconds without a change after which a session is looked at less often."""

_RECENT: Final = 86_400.0
"""Seconds in which a session has changed that is read before those that have not."""

_READING: Final = 0.25
"""Seconds between two looks at the store while there is more to read than one call has time for."""

_OWN: Final = 2.0
_ALL: Final = 30.0
"""Seconds between two looks at the own files of such sessions, and at all of theirs."""

_SLACK: Final = 3_600.0
"""Seconds by which the time of a file may lie before those that stand in it."""


class TranscriptsReader(StoreReader, Generic[T]):
    """The sessions that were begun in `workspace` or below it, out of `home`, the directory of the program.

    Implements SessionReader. Sessions of which no file was written `since` a time (epoch seconds) are not read.
    """

    def __init__(self, kind: Kind[T], workspace: Path, home: Path, since: float | None = None) -> None:
        super().__init__(kind.name, Texts(in_lines(kind.texts_in)))
        self.trouble: str | None = None
        self.progress = Progress(0, 0)
        self._kind = kind
        self._since = -math.inf if since is None else since - _SLACK
        self._projects = Projects(workspace, home, kind.layout)
        self._processes = kind.processes(self._projects)
        self._groups: dict[tuple[str, str], Group[T]] = {}
        self._others: dict[tuple[str, str], Group[T]] = {}
        """Those of other directories: where one place has the sessions of all, most of them are."""
        self._sweep = 0
        self._next_look = 0.0
        self._next_own = 0.0
        self._next_all = 0.0

    def transcript(self, run: Run) -> RunTranscript | None:
        """What stands in the file of a session, or of an agent that has one of its own."""
        for group in list(self._groups.values()):
            session = group.session
            agent = SESSION if run.session_id == session.session_id else run.session_id
            if session.places.get(agent) == run.place:
                kind = self._kind
                own = partial(Placed, kind.entries_in, kind.directory_in) if kind.directory_in is not None else None
                return LinesTranscript(Path(run.place), kind.entries_in, kind.once, own)
        return None

    def read(self, seconds: float) -> Sequence[Change]:
        until, moved, is_behind = time.monotonic() + seconds, False, time.monotonic() < self._next_look
        if is_behind:
            is_behind = self._advance(until)
        if not is_behind:
            moved = self._look()
            is_behind = self._advance(until)
            self._next_look = time.monotonic() + _READING if is_behind else 0.0
        groups = self._wanted()
        changes: list[Change] = []
        for group in groups:
            program = self._processes.of(group.session.session_id) if group.belongs else UNKNOWN
            if program.gone and time.time() - group.newest <= _QUIET:
                program = UNKNOWN
            changes += group.changes(program)
        for key, group in list(self._groups.items()):
            if group.empty:
                del self._groups[key]
            elif group.is_elsewhere:
                self._others[key] = self._groups.pop(key)
        if moved or not is_behind:
            self._take_stock()
        return changes

    def found(self) -> Sequence[Found]:
        projects = self._projects.candidates()
        if not projects and os.path.isdir(self._projects.root):
            said = self.trouble or "no session of this workspace is there"
            return [Found(self.name, os.fspath(self._projects.root), 0, said)]
        rows = []
        for project in projects:
            groups = [group for (place, _), group in self._groups.items() if place == project]
            other = sum(group.belongs is False for group in groups)
            other += sum(place == project for place, _ in self._others)
            reasons = [self.trouble] if self._projects.unreadable and self.trouble else []
            reasons += [f"{several(other, 'session')} of other directories"] if other else []
            stock = _stock_of(groups)
            reasons += _left_out(stock, "not understood")
            mine = sum(group.belongs is True and SESSION in group.session.transcripts for group in groups)
            rows.append(Found(self.name, project, mine, "; ".join(reasons), stock.agents))
        return rows

    def _look(self) -> bool:
        """Take notice of what lies in the store now; True where something of it has changed."""
        self._processes.look()
        refused = self._projects.unreadable
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
            key = project, session
            group = self._groups.get(key) or self._others.get(key)
            if everything or group is None or group.newest > old:
                return "all"
            if key in self._others:
                return "none"
            if group.newest >= self._since and not group.is_settled:
                return "all"
            partly.add(key)
            return "own" if own else "none"

        moved = False
        for stored, status in self._projects.files(interest):
            key = (stored.project, stored.session or "")
            group = self._groups.get(key) or self._others.get(key)
            if group is None:
                group = self._groups[key] = Group(
                    key[1], self._projects.workspace, self._kind, self._message, is_ours=self._projects.are_ours
                )
            moved |= group.look(stored, status, self._sweep)
            if group.belongs is not False and key in self._others:
                self._groups[key] = self._others.pop(key)
        unreadable = self._projects.unreadable
        for key, group in self._groups.items() if not unreadable else ():
            if key not in partly:
                moved |= group.forget(self._sweep)
        if everything and not unreadable:
            self._others = {key: group for key, group in self._others.items() if group.sweep == self._sweep}
        return moved or refused != unreadable

    def _advance(self, until: float) -> bool:
        """Read on, what is recent and the newest first, but what is large last. True where the time was over before all
        was read."""
        recent = time.time() - _RECENT
        groups = sorted(self._wanted(), key=lambda group: (group.newest < recent, group.left > LARGE, -group.newest))
        for takes_large in (False, True):
            for group in groups:
                for path in group.pending():
                    if not takes_large and group.comes_last(path):
                        break
                    more = True
                    while more:
                        more = group.advance(path)
                        if time.monotonic() >= until:
                            return True
        return False

    def _message(self, path: str, text: str, at: float, offset: int) -> Message:
        return self._texts.message(text, at, Path(path), offset, key=self.name)

    def _wanted(self) -> list[Group[T]]:
        return [group for group in self._groups.values() if group.newest >= self._since]

    def _take_stock(self) -> None:
        groups = self._wanted()
        every, mine = _stock_of(groups), _stock_of([group for group in groups if group.belongs is not False])
        self.progress = Progress(every.total - every.left, every.total)
        refused = sorted(self._projects.unreadable)
        parts = [f"{place} cannot be read" for place in refused[:1]]
        if files := mine.unreadable + len(refused[1:]):
            parts.append(f"{several(files, 'file')} cannot be read")
        self.trouble = " and ".join([*parts, *_left_out(mine, "not understood and left out")]) or None


def _stock_of(groups: Sequence[Group[T]]) -> Stock:
    return Stock(*map(sum, zip(Stock(0, 0, 0, 0, 0, 0), *(group.stock() for group in groups), strict=True)))


def _left_out(stock: Stock, why: str) -> list[str]:
    said = [f"{several(stock.lines, 'line')} {why}"] if stock.lines else []
    return said + ([f"{several(stock.metas, 'description')} of agents not understood"] if stock.metas else [])
