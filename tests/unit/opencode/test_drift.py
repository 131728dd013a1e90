"""Databases of other versions, and what no version writes: fewer fields and a word about it, never an error."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwatch.sources.opencode.database import ForeignDatabase
from tests.unit.opencode.program import NOW, Program
from tests.unit.opencode.reading import Reading, fresh


def test_a_pipe_in_the_place_of_a_database_is_not_waited_for(database: Path, watched: Reading) -> None:
    os.mkfifo(database)
    assert not watched.read()
    assert watched.reader.trouble == "opencode.db cannot be read: it is no regular file."


def test_a_record_that_is_too_large_is_not_read(
    program: Program, watched: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentwatch.sources.opencode.database.LARGEST_RECORD", 10_000)
    root = program.session()
    message = program.begin(root)
    program.say(root, message, "x" * 10_000)
    program.finish(root, message)
    assert watched.read()[root].reason == "ended, but what it said cannot be read"
    assert watched.reader.trouble == "opencode.db has 1 record that cannot be read."


def test_a_database_that_never_answers_is_given_up(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentwatch.sources.opencode.database._LONGEST_LOOK", 0.05)
    Program(database, tmp_path, journal="delete").close()
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    with ForeignDatabase(database).look() as connection, pytest.raises(sqlite3.OperationalError, match="interrupted"):
        connection.execute(endless)


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
