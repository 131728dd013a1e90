"""A workspace, and a program that works in it."""

import pytest

from tests.unit.opencode.program import Program, reading


@pytest.fixture
def workspace(tmp_path):
    directory = tmp_path / "ws"
    directory.mkdir()
    return directory


@pytest.fixture
def database(tmp_path):
    directory = tmp_path / "share" / "opencode"
    directory.mkdir(parents=True)
    return directory / "opencode.db"


@pytest.fixture
def program(database, workspace):
    program = Program(database, workspace)
    yield program
    program.close()


@pytest.fixture
def watched(database, workspace):
    watched = reading(workspace, database)
    yield watched
    watched.reader.close()
