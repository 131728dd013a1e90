"""Databases of other versions, and what no version writes: fewer fields and a word about it, never an error."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwatch.delegation.run import RunState
from agentwatch.sources.opencode.database import LARGEST_COPY, ForeignDatabase
from agentwatch.sources.opencode.tables import LARGEST_RECORD, RecordRow, Tables
from tests.unit.opencode.program import NOW, Program, framed
from tests.unit.opencode.reading import Reading, fresh, reading


def test_a_version_that_does_not_number_its_changes_is_read_by_their_times(database: Path, workspace: Path) -> None:
    program = Program(database, workspace, events=False)
    watched = reading(workspace, database)
    root = program.session()
    child, _ = program.delegate(root, program.begin(root), "Please.")
    assert watched.read()[child].state is RunState.SUBMITTED
    program.answer(child, "Done.")
    assert watched.read()[child].state is RunState.ENDED
    part = program.say(root, program.begin(root), "x")
    assert watched.read() == fresh(workspace, database)
    program.remove_part(root, part)
    assert watched.read() == fresh(workspace, database)
    program.close()
    watched.reader.close()


@pytest.mark.parametrize("table", ["message", "part", "todo", "event", "event_sequence"])
def test_a_table_that_is_missing_costs_only_what_was_in_it(program: Program, watched: Reading, table: str) -> None:
    root = program.session(title="still here")
    program.answer(root, "Done.")
    program.connection.execute(f"DROP TABLE {table}")
    assert watched.read()[root].title == "still here"
    known = watched.reader.trouble
    assert (known is not None) == (table in {"message", "part"})
    assert known is None or known == f"opencode.db is of a version that is not known, without {table}."


def test_a_child_whose_words_cannot_be_read_has_not_failed(program: Program, watched: Reading) -> None:
    root = program.session()
    message = program.begin(root)
    child, call = program.delegate(root, message, "Please.")
    program.answer(child, "Done.")
    program.hand_out(root, message, child, "Please.", call, status="completed", output=framed(child, "Done."))
    program.connection.execute("ALTER TABLE part RENAME TO piece")
    run = watched.read()[child]
    assert (run.state, run.parent_session, run.ended_at) == (RunState.SUBMITTED, root, None)
    assert run.reason == "ended, but what it said cannot be read"
    program.connection.execute("ALTER TABLE piece RENAME TO part")
    program.connection.execute("ALTER TABLE message RENAME TO piece")
    assert (watched.read()[child].state, watched.said(child)) == (RunState.ENDED, "Done.")


def test_a_child_whose_last_words_are_damaged_has_not_failed(program: Program, watched: Reading) -> None:
    root = program.session()
    message = program.begin(root)
    child, call = program.delegate(root, message, "Please.")
    answer = program.answer(child, "Done.")
    program.connection.execute("UPDATE part SET data = '{' WHERE message_id = ?", (answer,))
    run = watched.read()[child]
    assert (run.state, run.reason) == (RunState.SUBMITTED, "ended, but what it said cannot be read")
    # Its parent has the same words.
    program.hand_out(root, message, child, "Please.", call, status="completed", output=framed(child, "Done."))
    assert (watched.read()[child].state, watched.said(child)) == (RunState.ENDED, "Done.")


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("session", "title"),
        ("session", "agent"),
        ("session", "time_created"),
        ("session", "time_updated"),
        ("message", "time_created"),
        ("message", "time_updated"),
        ("part", "time_created"),
        ("part", "time_updated"),
        ("todo", "position"),
        ("todo", "time_updated"),
    ],
)
@pytest.mark.parametrize("events", [True, False])
def test_a_column_that_is_missing_costs_only_what_was_in_it(
    database: Path, workspace: Path, table: str, column: str, events: bool
) -> None:
    program = Program(database, workspace, events=events)
    root = program.session()
    program.answer(root, "Done.")
    program.todos(root, ("one", "pending"))
    program.connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    watched = reading(workspace, database)
    assert (watched.read()[root].state, watched.said(root)) == (RunState.ENDED, "Done.")
    assert watched.runs[root].todos is not None
    told = f"opencode.db is of a version that is not known, without {table}.{column}."
    assert watched.reader.trouble == (told if table != "todo" else None)
    program.close()
    watched.reader.close()


@pytest.mark.parametrize(
    "forget",
    [
        "ALTER TABLE session RENAME COLUMN parent_id TO parent",
        "UPDATE session SET parent_id = NULL, time_updated = time_updated + 1",
    ],
)
def test_a_child_that_names_no_parent_has_the_one_whose_task_call_names_it(
    program: Program, watched: Reading, workspace: Path, database: Path, forget: str
) -> None:
    root = program.session()
    message = program.begin(root)
    child, call = program.delegate(root, message, "Please.")
    unasked = program.session(root)
    grandchild, _ = program.delegate(child, program.begin(child), "You, please.")
    program.connection.execute(forget)
    runs = watched.read()
    known = {root: None, child: root, grandchild: child, unasked: None}
    assert {name: run.parent_session for name, run in runs.items()} == known
    assert watched.reader.found()[0].children == 2
    assert (runs[child].title, runs[child].link) == ("A task", "the parent's task call names the session")
    trouble = "opencode.db is of a version that is not known, without session.parent_id."
    assert watched.reader.trouble == (trouble if forget.startswith("ALTER") else None)
    program.remove_part(root, call)
    assert watched.read()[child].parent_session is None
    assert watched.runs == fresh(workspace, database)
    program.delete(child)
    assert watched.read()[grandchild].parent_session is None
    assert watched.runs == fresh(workspace, database)


def test_a_database_without_sessions_is_told(database: Path, watched: Reading) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE other (id)")
    connection.close()
    assert not watched.read()
    assert watched.reader.trouble is not None
    assert "session" in watched.reader.trouble


def test_sessions_of_the_next_version_are_counted_where_they_are_of_the_workspace(
    program: Program, watched: Reading, workspace: Path
) -> None:
    program.connection.execute("CREATE TABLE session_v2 (id text, directory text)")
    watched.read()
    assert watched.reader.trouble is None
    add = "INSERT INTO session_v2 VALUES (?, ?)"
    program.connection.execute(add, ("ses_0", "/elsewhere"))
    watched.read()
    assert watched.reader.trouble is None
    program.connection.execute(add, ("ses_1", str(workspace / "below")))
    watched.read()
    assert watched.reader.trouble == "opencode.db has 1 session of OpenCode 2 that agentwatch does not read."
    for table in ("session", "message", "part"):
        program.connection.execute(f"DROP TABLE {table}")
    watched.read()
    assert watched.reader.trouble == "opencode.db has 1 session of OpenCode 2 that agentwatch does not read."


def test_a_session_whose_messages_are_kept_in_the_next_way_is_shown_without_them(
    program: Program, watched: Reading
) -> None:
    program.connection.execute(
        "CREATE TABLE session_message (id text PRIMARY KEY, session_id text, type text, seq integer, data text)"
    )
    root, old = program.session(title="through the newer API"), program.session()
    program.answer(old, "Done.")
    assert watched.read()[root].reason == ""
    add = "INSERT INTO session_message VALUES (?, ?, 'user', 1, ?)"
    program.connection.execute(add, ("msg_1", root, '{"text": "Build."}'))
    program.connection.execute(add, ("msg_2", old, '{"text": "a copy"}'))
    program.rename(root, "still the same")
    run = watched.read()[root]
    assert (run.state, run.title, run.prompt) == (RunState.SUBMITTED, "still the same", None)
    assert run.reason == "its messages are kept as OpenCode 2 does, which is not read yet"
    assert watched.runs[old].state is RunState.ENDED
    said = "opencode.db has 1 session with messages as OpenCode 2 keeps them: not read."
    assert watched.reader.trouble == said
    program.delete(root)
    watched.read()
    assert watched.reader.trouble is None


@pytest.mark.parametrize("content", [b"", b"x", b"no database at all" * 100, bytes(4096)])
def test_a_file_that_is_no_database_is_told(database: Path, watched: Reading, content: bytes) -> None:
    database.write_bytes(content)
    assert not watched.read()
    assert watched.reader.trouble is not None
    assert watched.reader.found()[0].skipped == watched.reader.trouble


def test_a_pipe_in_the_place_of_a_database_is_not_waited_for(database: Path, watched: Reading) -> None:
    os.mkfifo(database)
    assert not watched.read()
    assert watched.reader.trouble == "opencode.db cannot be read: it is no regular file."


def test_what_could_be_read_stays_when_the_database_breaks(program: Program, watched: Reading, database: Path) -> None:
    root = program.session()
    assert set(watched.read()) == {root}
    program.close()
    database.write_bytes(b"no database at all" * 100)
    assert set(watched.read()) == {root}
    assert watched.reader.trouble is not None


@pytest.mark.parametrize("data", ["", "{", "[]", "null", '"text"', "[" * 5000, "{}", '{"type": "text"', "\x00"])
def test_records_that_are_no_objects_are_counted_and_the_others_read(
    program: Program, watched: Reading, data: str
) -> None:
    root = program.session()
    message = program.answer(root, "Done.")
    part = program.say(root, message, "x")
    program.connection.execute("UPDATE part SET data = ? WHERE id = ?", (data, part))
    other = program.session()
    program.answer(other, "Here.")
    assert watched.read()[other].state is RunState.ENDED
    assert watched.said(root) == "Done."
    assert watched.reader.trouble == (None if data == "{}" else "opencode.db has 1 record that cannot be read.")


def test_a_call_whose_state_is_not_understood_has_not_failed(program: Program, watched: Reading) -> None:
    root = program.session()
    asking = program.begin(root)
    state = {"input": {"prompt": "Please."}}
    calls: list[dict[str, object]] = [{"tool": "task"}, {"tool": "task", "state": state}, {"tool": {"name": "task"}}]
    for call in calls:
        program.part(root, asking, {"type": "tool", "callID": "call_0", **call})
    program.finish(root, asking, "tool-calls")
    program.answer(root, "On we go.")
    assert set(watched.read()) == {root}
    assert watched.reader.trouble == "opencode.db has 2 records that cannot be read."


@pytest.mark.parametrize(
    "changed", [{"type": "text", "content": "Done."}, {"type": "text", "text": {"value": "Done."}}]
)
def test_a_text_that_is_not_written_as_is_known_is_not_read_as_silence(
    program: Program, watched: Reading, changed: dict[str, object]
) -> None:
    root = program.session()
    child, _ = program.delegate(root, program.begin(root), "Please.")
    answer = program.begin(child)
    program.part(child, answer, changed)
    program.finish(child, answer)
    run = watched.read()[child]
    assert (run.state, run.reason) == (RunState.SUBMITTED, "ended, but what it said cannot be read")
    assert watched.reader.trouble == "opencode.db has 1 record that cannot be read."


def test_a_record_that_is_too_large_is_not_read(program: Program, watched: Reading) -> None:
    root = program.session()
    message = program.begin(root)
    program.call(root, message, "read", status="completed", input={}, output="x" * LARGEST_RECORD)
    program.finish(root, message)
    assert watched.read()[root].state is RunState.ENDED
    assert watched.reader.trouble is None  # nothing of it would have been used
    program.say(root, message, "x" * LARGEST_RECORD)
    assert watched.read()[root].reason == "ended, but what it said cannot be read"
    assert watched.reader.trouble == "opencode.db has 1 record that cannot be read."


def test_text_that_is_no_unicode_is_read_as_far_as_it_goes(program: Program, watched: Reading) -> None:
    root = program.session()
    message = program.answer(root, "x")
    raw = b'{"type": "text", "text": "a \xff b"}'
    program.connection.execute("UPDATE part SET data = CAST(? AS TEXT) WHERE message_id = ?", (raw, message))
    watched.read()
    assert watched.said(root) == "a \ufffd b"


def test_a_child_whose_name_no_encoding_can_write_is_no_trouble(program: Program, watched: Reading) -> None:
    root = program.session()
    program.hand_out(root, program.begin(root), "ses_\ud800", "x", status="error", error="No.")
    assert {run.session_id for run in watched.read().values()} == {root, "ses_\ud800"}


@pytest.mark.parametrize("at", [-1, 2**70, 1e300, float("nan"), "soon", None, True])
def test_times_that_are_none_are_left_out(program: Program, watched: Reading, at: object) -> None:
    root = program.session()
    answer = {"role": "assistant", "finish": "stop", "time": {"created": at, "completed": at}}
    program.say(root, program.message(root, answer), "x")
    run = watched.read()[root]
    assert (run.state, run.ended_at) == (RunState.WORKING, None)
    assert run.updated_at < NOW / 1000 + 60


def test_a_look_that_breaks_off_loses_nothing(
    program: Program, watched: Reading, workspace: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        root = program.session()
        program.delegate(root, program.begin(root), "Please.")
    looks = 0

    def sometimes(self: Tables, kind: str, name: str) -> RecordRow | None:
        nonlocal looks
        looks += 1
        if looks % 4 == 0:
            raise sqlite3.OperationalError("disk I/O error")
        return record(self, "message" if kind == "message" else "part", name)

    record = Tables.record
    monkeypatch.setattr(Tables, "record", sometimes)
    for _ in range(60):
        watched.read()
    monkeypatch.undo()
    assert watched.read() == fresh(workspace, database)


def test_parents_in_a_circle_are_no_trouble(program: Program, watched: Reading) -> None:
    first = program.session()
    second = program.session(first)
    alone = program.session()
    program.connection.execute("UPDATE session SET parent_id = ? WHERE id = ?", (second, first))
    program.connection.execute("UPDATE session SET parent_id = id WHERE id = ?", (alone,))
    program.rename(first, "x")
    runs = watched.read()
    assert [runs[one].parent_session for one in (first, second, alone)] == [second, first, alone]


def test_a_database_that_never_answers_is_given_up(database: Path, tmp_path: Path) -> None:
    Program(database, tmp_path, journal="delete").close()
    looking = ForeignDatabase(database, LARGEST_COPY, longest_look=0.05)
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    with looking.look() as connection, pytest.raises(sqlite3.OperationalError, match="interrupted"):
        connection.execute(endless)
    looking.close()


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "text", "x"]), inner, max_size=3)
    ),
    max_leaves=5,
)
_KEYS = (
    "type", "text", "tool", "state", "status", "input", "output", "metadata", "sessionId", "role", "time", "created",
    "completed", "finish", "error", "data", "message", "tokens", "cache", "summary", "todos", "questions", "synthetic",
)  # fmt: skip
_WORDS = (
    "text",
    "tool",
    "task",
    "question",
    "todowrite",
    "invalid",
    "running",
    "completed",
    "error",
    "user",
    "assistant",
)
_OBJECTS = st.recursive(
    st.dictionaries(st.sampled_from(_KEYS), _VALUES | st.sampled_from(_WORDS), max_size=6),
    lambda inner: st.dictionaries(st.sampled_from(_KEYS), inner | _VALUES | st.sampled_from(_WORDS), max_size=6),
    max_leaves=10,
)


@settings(max_examples=int(os.environ.get("AGENTWATCH_EXAMPLES", "100")), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["message", "part"]), _OBJECTS), min_size=1, max_size=8))
@pytest.mark.slow
def test_records_of_any_shape_are_read_without_an_error(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[str, dict[str, object]]]
) -> None:
    directory = tmp_path_factory.mktemp("any")
    database = directory / "opencode.db"
    program = Program(database, directory, journal="memory")
    root = program.session()
    message = program.begin(root)
    for number, (table, data) in enumerate(records):
        owners = (root,) if table == "message" else (message, root)
        marks = ", ".join("?" * (len(owners) + 4))
        row = (f"{number}", *owners, NOW, NOW, json.dumps(data))
        program.connection.execute(f"INSERT INTO {table} VALUES ({marks})", row)
    program.close()
    assert root in fresh(directory, database)
