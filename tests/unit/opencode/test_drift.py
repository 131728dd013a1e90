"""Databases of other versions, and what no version writes: fewer fields and a word about it, never an error."""

import os
import sqlite3

import pytest

from agentwatch.sources.opencode import ForeignDatabase
from tests.unit.opencode.program import Program


def test_a_pipe_in_the_place_of_a_database_is_not_waited_for(database, watched):
    os.mkfifo(database)
    assert not watched.read()
    assert watched.reader.trouble == "opencode.db cannot be read: it is no regular file."


def test_a_database_that_never_answers_is_given_up(database, tmp_path, monkeypatch):
    monkeypatch.setattr("agentwatch.sources.opencode._LONGEST_LOOK", 0.05)
    Program(database, tmp_path, journal="delete").close()
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    with ForeignDatabase(database).look() as connection, pytest.raises(sqlite3.OperationalError, match="interrupted"):
        connection.execute(endless)
