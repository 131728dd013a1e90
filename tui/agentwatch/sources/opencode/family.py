"""The sessions of a workspace together: brought up to date from the tables, and judged, parents before children."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.opencode.runs import Maker
from agentwatch.sources.opencode.session import Dialogue
from agentwatch.sources.opencode.standing import OVER, Standing, judge, judge_call, waits_for
from agentwatch.sources.opencode.tables import SessionRow, Tables
from agentwatch.sources.sessions.reader import Change, changes_between

_NOTHING_YET: Final = Standing(RunState.SUBMITTED)
_UNREAD: Final = Standing(RunState.SUBMITTED, "its messages are kept as OpenCode 2 does, which is not read yet")


class Family:
    """Knows what was last given of each session, so that only what differs from it is given again.
    Whatever raises sqlite3.Error may be called again, and goes on where it was. `places` are the spellings of the
    workspace."""

    def __init__(self, places: Sequence[str] = ()) -> None:
        self._places = places
        self.sessions: dict[str, Dialogue] = {}
        self.rows: dict[tuple[object, ...], SessionRow] = {}
        """As they were when they were last compared, by version."""
        self.elsewhere: set[str] = set()
        """Sessions whose messages are kept in a way that is not read."""
        self._is_abandoned: bool | None = None
        self._children: defaultdict[str, list[str]] = defaultdict(list)
        self._asked: dict[str, frozenset[str]] = {}
        """By session: those that its task calls name."""
        self._askers: defaultdict[str, set[str]] = defaultdict(set)
        """By session: those whose task calls name it."""
        self._given: dict[str, dict[str, Run]] = {}
        """By session: its run, and those of its calls that have no session, by key."""
        self._changes: dict[str, Change] = {}
        self._touched: set[str] = set()
        self.behind: set[str] = set()
        """Sessions of which something is still to be read."""
        self.unfinished: set[str] = set()
        """Sessions with runs that need a process."""
        self._due: dict[str, float] = {}

    def due(self, now: float) -> bool:
        """Whether time alone changes a run by now."""
        return any(now >= at for at in self._due.values())

    def parent_id(self, row: SessionRow) -> str | None:
        """Who asked for a session: what it names itself, else the first whose task call names it."""
        if row.parent_id is not None:
            return row.parent_id
        return min((name for name in self._askers.get(row.id, ()) if name != row.id), default=None)

    def take(self) -> list[Change]:
        """The last changes of runs since they were last taken."""
        changes, self._changes = self._changes, {}
        return list(changes.values())

    def forget(self) -> None:
        """The database is another one: read everything again. What was given stays known."""
        for known in (self.sessions, self.rows, self.elsewhere, self._touched, self.behind, self._asked, self._askers):
            known.clear()

    def compare(self, rows: Sequence[SessionRow]) -> None:
        """Take in which sessions there are."""
        before, self.rows = self.rows, {row.version: row for row in rows}
        there = {row.id for row in rows}
        for name in self._given.keys() - there:
            self._give(name, {})
            del self._given[name]
            self._due.pop(name, None)
        for name in self.sessions.keys() - there:
            # Its parent, and its children, are otherwise without it.
            self._touched |= {self.parent_id(self.sessions[name].row) or "", *self._askers.get(name, ())}
            self._touched.update(self._children.get(name, ()))
            self._take_in_calls(name, frozenset())
            del self.sessions[name]
            self.behind.discard(name)
            self.elsewhere.discard(name)
        for row in rows:
            if row.version not in before or row.id not in self.sessions:
                self.sessions.setdefault(row.id, Dialogue(row, self._places)).row = row
                self.behind.add(row.id)
        if self.rows.keys() != before.keys():
            self._link()

    def load(self, tables: Tables) -> Iterator[None]:
        """Read what is not known yet, the youngest families first and parents before their children."""
        for name in self._in_order():
            session = self.sessions[name]
            self._touched.add(name)
            if session.version != session.row.version:
                session = self._compare(tables, session)
                yield
            while session.waiting:
                kind, record = session.waiting[-1]
                session.put(kind, record, tables.record(kind, record))
                session.waiting.pop()
                yield
            self._take_in_calls(name, session.asked)
            self.behind.discard(name)

    def judge(self, maker: Maker, now: float) -> None:
        """Make the runs of the sessions that were touched, and of those that depend on them."""
        self._touched |= {name for name, at in self._due.items() if now >= at}
        heap = [(self._depth(name), name) for name in self._touched if name in self.sessions]
        heapq.heapify(heap)
        queued = {name for _, name in heap}
        self._touched &= queued
        while heap:
            depth, name = heapq.heappop(heap)
            session = self.sessions[name]
            parent = self.sessions.get(self.parent_id(session.row) or "")
            if not session.is_loaded or (parent is not None and not parent.is_loaded):
                continue
            self._give(name, self._runs(maker, session, parent, now))
            for child in self._dependent(session):
                if child not in queued and self._depth(child) > depth:
                    queued.add(child)
                    self._touched.add(child)
                    heapq.heappush(heap, (self._depth(child), child))
            self._touched.discard(name)

    def abandon(self, is_abandoned: bool | None) -> None:
        """Take in whether no process has the database open any more, None where that cannot be told."""
        if is_abandoned == self._is_abandoned:
            return
        self._is_abandoned = is_abandoned
        for name in list(self.unfinished):
            self._due[name] = 0.0  # what it waits for has to be asked for again
            self._give(name, {key: self._with_process(run) for key, run in self._given[name].items()})

    def _link(self) -> None:
        self._children.clear()
        for row in self.rows.values():
            if (parent := self.parent_id(row)) is not None:
                self._children[parent].append(row.id)

    def _take_in_calls(self, name: str, asked: frozenset[str]) -> None:
        """The task calls of a session name these now: those that name no parent themselves may have another one."""
        before = self._asked.pop(name, frozenset())
        if asked:
            self._asked[name] = asked
        for child in asked - before:
            self._askers[child].add(name)
        for child in before - asked:
            self._askers[child].discard(name)
        nameless = {one for one in asked ^ before if one in self.sessions and self.sessions[one].row.parent_id is None}
        if nameless:
            self._touched |= nameless
            self._link()

    def _compare(self, tables: Tables, session: Dialogue) -> Dialogue:
        """Find out which records of a session are to be read: all of them where the changes do not tell."""
        row = session.row
        checklist = tables.todos(row.id)
        changes = None
        if session.seq is not None and row.seq is not None:
            changes = tables.changed(row.id, session.seq, row.seq)
        elif session.version is not None and session.seq is None and row.seq is None:
            listed = tables.listing(row.id)
            changes = [record for record, _ in session.listed.items() ^ listed.items()]
            session.listed = listed
        if changes is None:
            session = self.sessions[row.id] = Dialogue(row, self._places)
            listed = tables.listing(row.id)
            session.listed = listed if row.seq is None else {}
            changes = list(listed)
        session.seq, session.version = row.seq, row.version
        session.checklist = checklist
        # From its end it is taken in the order of the program's ids, which is that of time.
        session.waiting = sorted({*session.waiting, *changes}, reverse=True)
        return session

    def _runs(self, maker: Maker, session: Dialogue, parent: Dialogue | None, now: float) -> dict[str, Run]:
        name = session.row.id
        parent_id = self.parent_id(session.row)
        parent_state = self._state(parent_id) if parent is not None else None
        standing = judge(session, parent, parent_state, maker.tables.calls_a_tool)
        self.elsewhere.discard(name)
        if standing == _NOTHING_YET and not session.turns and maker.tables.has_later_messages(name):
            self.elsewhere.add(name)
            standing = _UNREAD
        waiting, due = waits_for(session, now) if standing.state not in OVER else ("", None)
        self._due.pop(name, None)
        if due is not None and not self._is_abandoned:
            self._due[name] = due
        runs = {name: self._with_process(maker.of_session(session, parent_id, parent, standing, waiting))}
        for call in session.last_calls():
            if call.child in self.sessions:
                continue
            told = judge_call(call, session, standing.state)
            if told is not None and (call.child is None or not maker.tables.has_session(call.child)):
                runs[call.id] = self._with_process(maker.of_call(session, call, told))
        return runs

    def _with_process(self, run: Run) -> Run:
        """The run, with what is known of its process: nobody asks any more where there is none."""
        if run.state in OVER or not self._is_abandoned:
            return replace(run, process_gone=None)
        return replace(run, process_gone=True, waiting="")

    def _dependent(self, session: Dialogue) -> Iterable[str]:
        """Children whose state may follow from what has changed in their parent."""
        moved, session.moved = session.moved, set()
        # What is over is so whatever its parent does, unless that has left it behind: then its call is still open.
        moved |= {call.child for call in session.calls.values() if call.is_open and call.child is not None}
        children = self._children.get(session.row.id, ())
        return [child for child in children if child in moved or self._state(child) not in OVER]

    def _give(self, name: str, runs: dict[str, Run]) -> None:
        before = self._given.get(name, {})
        self._given[name] = runs
        self.unfinished.discard(name)
        if any(run.state not in OVER for run in runs.values()):
            self.unfinished.add(name)
        self._changes |= {change.key: change for change in changes_between(before, runs)}

    def _state(self, name: str | None) -> RunState | None:
        run = self._given.get(name or "", {}).get(name or "")
        return run.state if run is not None else None

    def _depth(self, name: str) -> int:
        return len(self._ancestors(name))

    def _ancestors(self, name: str) -> list[str]:
        """Parents, grandparents and so on; a circle ends where it closes."""
        above: list[str] = []
        session = self.sessions.get(name)
        while session is not None and (parent := self.parent_id(session.row)) is not None and parent not in above:
            above.append(parent)
            session = self.sessions.get(parent)
        return above

    def _in_order(self) -> list[str]:
        """The sessions that are behind: the youngest families first, and parents before their children."""
        lines = {name: [name, *self._ancestors(name)] for name in self.behind}
        youngest: defaultdict[str, int] = defaultdict(int)
        for name, line in lines.items():
            youngest[line[-1]] = max(youngest[line[-1]], self.sessions[name].row.updated)

        def order(name: str) -> tuple[int, str, int, int, str]:
            root = lines[name][-1]
            return -youngest[root], root, len(lines[name]), self.sessions[name].row.created, name

        return sorted(lines, key=order)
