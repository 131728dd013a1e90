"""However a history is cut into reads, and whoever reads it anew, the runs come out the same."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from agentwatch.delegation.run import Run, RunState
from tests.unit.opencode.program import Program, framed
from tests.unit.opencode.reading import Reading, fresh, reading

EXAMPLES = int(os.environ.get("AGENTWATCH_EXAMPLES", "25"))


class History:
    """A random life of a program: sessions that delegate, answer, fail, are resumed, shortened and deleted."""

    def __init__(self, program: Program, random: Random) -> None:
        self._program = program
        self._random = random
        self._sessions: list[str] = []
        self._open: list[tuple[str, str]] = []
        self._calls: list[tuple[str, str, str | None, str]] = []
        self._parts: list[tuple[str, str, str]] = []

    def step(self) -> None:
        steps = [
            self._root,
            self._delegate,
            self._delegate,
            self._answer,
            self._answer,
            self._say,
            self._say,
            self._use,
        ]
        steps += [self._return, self._return, self._fail, self._resume, self._notice, self._rewrite, self._remove]
        steps += [self._todos, self._ask, self._rename, self._delete, self._remove_message]
        self._random.choice(steps if self._sessions else [self._root])()

    def _root(self) -> None:
        self._sessions.append(self._program.session(title=f"root {len(self._sessions)}"))

    def _ask(self) -> None:
        self._program.ask(self._session(), self._text())

    def _delegate(self) -> None:
        session = self._session()
        message = self._program.begin(session)
        if self._random.random() < 0.2:
            self._calls.append((session, message, None, self._program.hand_out(session, message, None, self._text())))
            return
        child, call = self._program.delegate(session, message, self._text())
        self._sessions.append(child)
        self._calls.append((session, message, child, call))

    def _answer(self) -> None:
        session = self._session()
        self._open.append((session, self._program.begin(session)))

    def _say(self) -> None:
        if self._open:
            session, message = self._random.choice(self._open)
            part = self._program.say(session, message, self._text())
            self._parts.append((session, message, part))
            if self._random.random() < 0.5:
                self._program.finish(session, message, self._random.choice(["stop", "tool-calls", "length"]))

    def _use(self) -> None:
        if self._open:
            session, message = self._random.choice(self._open)
            tool = self._random.choice(["bash", "question", "todowrite", "read", "invalid"])
            given = {"tool": "task", "error": "No.", "todos": [{"content": self._text(), "status": "pending"}]}
            part = self._program.call(session, message, tool, input=given)
            if self._random.random() < 0.5:
                self._program.call(session, message, tool, part, status="completed", input=given, output="x")
            self._parts.append((session, message, part))

    def _fail(self) -> None:
        if self._open:
            name = self._random.choice(["APIError", "MessageAbortedError"])
            self._program.fail(*self._random.choice(self._open), name, self._text())

    def _return(self) -> None:
        if self._calls:
            session, message, child, call = self._random.choice(self._calls)
            ways = [
                {"status": "completed", "output": framed(child or "ses_none", self._text())},
                {"status": "completed", "output": framed(child or "ses_none", "Later.", "running")},
                {"status": "error", "error": "Task cancelled"},
                {"status": "error", "error": self._text()},
            ]
            self._program.hand_out(session, message, child, self._text(), call, **self._random.choice(ways))

    def _resume(self) -> None:
        if self._calls:
            session, _, child, _ = self._random.choice(self._calls)
            if child is not None:
                message = self._program.begin(session)
                call = self._program.hand_out(session, message, child, self._text())
                self._calls.append((session, message, child, call))
                self._program.ask(child, self._text())

    def _notice(self) -> None:
        if self._calls:
            session, _, child, _ = self._random.choice(self._calls)
            state = self._random.choice(["completed", "error"])
            self._program.ask(session, framed(child or "ses_none", self._text(), state), synthetic=True)

    def _rewrite(self) -> None:
        if self._parts:
            session, message, part = self._random.choice(self._parts)
            self._program.part(session, message, {"type": "text", "text": self._text()}, part)

    def _remove(self) -> None:
        if self._parts:
            session, _, part = self._parts.pop(self._random.randrange(len(self._parts)))
            self._program.remove_part(session, part)

    def _remove_message(self) -> None:
        if self._open:
            session, message = self._open.pop(self._random.randrange(len(self._open)))
            self._parts = [one for one in self._parts if one[1] != message]
            self._program.remove_message(session, message)

    def _todos(self) -> None:
        self._program.todos(self._session(), (self._text(), self._random.choice(["pending", "completed"])))

    def _rename(self) -> None:
        self._program.rename(self._session(), self._text())

    def _delete(self) -> None:
        if self._random.random() < 0.3:
            session = self._session()
            self._program.delete(session)
            self._sessions.remove(session)
            self._open = [one for one in self._open if one[0] != session]
            self._parts = [one for one in self._parts if one[0] != session]
            self._calls = [one for one in self._calls if session not in (one[0], one[2])]

    def _session(self) -> str:
        return self._random.choice(self._sessions or [self._program.session()])

    def _text(self) -> str:
        return self._random.choice(["a", "b", "## Status\nstate: SUCCESS\nsummary: Done.\n", "", " "])


@contextmanager
def _place(random: Random, *, journal: str) -> Iterator[tuple[Path, Path, Program]]:
    with tempfile.TemporaryDirectory() as directory:
        database, workspace = Path(directory, "opencode.db"), Path(directory, "ws")
        program = Program(database, workspace, journal=journal)
        try:
            yield workspace, database, program
        finally:
            program.close()


def _settled(watched: Reading) -> dict[str, Run]:
    while True:
        runs = watched.read()
        if watched.reader.progress.done == watched.reader.progress.total:
            return runs


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(["wal", "delete"]), st.integers(1, 60))
def test_runs_do_not_depend_on_when_they_were_read(random: Random, journal: str, steps: int) -> None:
    with _place(random, journal=journal) as (workspace, database, program):
        history = History(program, random)
        watched = reading(workspace, database)
        for _ in range(steps):
            history.step()
            if random.random() < 0.4:
                watched.read(random.choice([0, 1]))
            if random.random() < 0.05:
                watched.reader.close()
                watched = reading(workspace, database)
            if random.random() < 0.03:
                program.connection.execute("VACUUM")
        assert _settled(watched) == fresh(workspace, database)
        watched.reader.close()


def test_a_message_that_is_taken_back_leaves_nothing_behind(
    program: Program, watched: Reading, workspace: Path, database: Path
) -> None:
    root = program.session()
    child, _ = program.delegate(root, program.begin(root), "Please.")
    later = program.begin(root)
    todos = [{"content": "Sweep.", "status": "pending"}]
    program.call(root, later, "todowrite", status="completed", input={"todos": todos}, output="x")
    program.part(root, later, {"type": "text", "text": 7})
    before = watched.read()[root]
    assert (watched.runs[child].state, before.todos is not None) == (RunState.FAILED, True)
    assert watched.reader.trouble == "opencode.db has 1 record that cannot be read."
    program.remove_message(root, later)
    assert watched.read() == fresh(workspace, database)
    assert (watched.runs[child].state, watched.runs[root].todos) == (RunState.SUBMITTED, None)
    assert watched.runs[root].updated_at < before.updated_at
    assert watched.reader.trouble is None


def test_events_that_are_missing_are_made_up_for_by_reading_all_again(
    program: Program, watched: Reading, workspace: Path, database: Path
) -> None:
    root = program.session()
    program.answer(root, "first")
    watched.read()
    program.answer(root, "second")
    program.connection.execute("DELETE FROM event WHERE seq % 2 = 0")
    assert watched.read() == fresh(workspace, database)
    assert watched.said(root) == "second"
    program.connection.execute("DELETE FROM event")
    program.connection.execute("DELETE FROM event_sequence")
    program.answer(root, "third")
    assert watched.read() == fresh(workspace, database)
    assert watched.said(root) == "third"


def test_a_database_that_is_replaced_is_read_anew_and_what_was_in_the_first_is_gone(
    program: Program, watched: Reading, workspace: Path, database: Path
) -> None:
    root = program.session()
    assert set(watched.read()) == {root}
    program.close()
    for path in database.parent.glob("opencode.db*"):
        path.unlink()
    assert not watched.read()
    other = Program(database, workspace)
    other.now += 1000
    new = other.session()
    other.answer(new, "Here.")
    assert set(watched.read()) == {new}
    assert watched.said(new) == "Here."
    other.close()


def test_a_database_that_is_put_in_the_place_of_another_is_noticed(
    program: Program, watched: Reading, workspace: Path, database: Path
) -> None:
    root = program.session()
    watched.read()
    program.close()
    older = database.with_name("older.db")
    with sqlite3.connect(older) as connection:
        connection.execute("PRAGMA journal_mode = delete")
    connection.close()
    Program(older, workspace, journal="delete").close()
    older.replace(database)
    for suffix in ("-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
    assert root not in watched.read()
