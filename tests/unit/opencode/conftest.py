"""A workspace, and a program that works in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.opencode.program import Program, Reading, reading


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "ws"
    directory.mkdir()
    return directory


@pytest.fixture
def database(tmp_path: Path) -> Path:
    directory = tmp_path / "share" / "opencode"
    directory.mkdir(parents=True)
    return directory / "opencode.db"


@pytest.fixture
def program(database: Path, workspace: Path) -> Iterator[Program]:
    program = Program(database, workspace)
    yield program
    program.close()


@pytest.fixture
def watched(database: Path, workspace: Path) -> Iterator[Reading]:
    watched = reading(workspace, database)
    yield watched
    watched.reader.close()
