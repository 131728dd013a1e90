"""Databases of OpenCode are read as they are, whatever befalls them, and the program never notices that."""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentwatch.delegation.events import RunState
from agentwatch.sources.opencode import ForeignDatabase
from agentwatch.sources.sessions.processes import is_of_this_system
from tests.unit.opencode.program import Program, Reading, fresh

ROOT = Path(__file__).parents[3]


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
    watched = Reading(workspace, database)
    yield watched
    watched.reader.close()


def test_a_message_that_is_taken_back_leaves_nothing_behind(program, watched, workspace, database):
    root = program.session()
    child, _ = program.delegate(root, program.begin(root))
    later = program.begin(root)
    todos = [{"content": "Sweep.", "status": "pending"}]
    program.call(root, later, "todowrite", status="completed", input={"todos": todos}, output="x")
    program.part(root, later, {})
    before = watched.read()[root]
    assert (watched.runs[child].state, before.todos is not None) == (RunState.FAILED, True)
    assert watched.reader.trouble == "opencode.db has 1 record that cannot be read."
    program.remove_message(root, later)
    assert watched.read() == fresh(workspace, database)
    assert (watched.runs[child].state, watched.runs[root].todos) == (RunState.SUBMITTED, None)
    assert watched.runs[root].updated_at < before.updated_at
    assert watched.reader.trouble is None


def test_a_database_that_is_replaced_is_read_anew_and_what_was_in_the_first_is_gone(
    program, watched, workspace, database
):
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


def test_a_pipe_in_the_place_of_a_database_is_not_waited_for(database, watched):
    os.mkfifo(database)
    assert not watched.read()
    assert watched.reader.trouble == "opencode.db cannot be read: it is no regular file."


def test_a_database_that_never_answers_is_given_up(database, tmp_path, monkeypatch):
    Program(database, tmp_path, journal="delete").close()
    clock = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: clock() * 100)
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    with ForeignDatabase(database).look() as connection, pytest.raises(sqlite3.OperationalError, match="interrupted"):
        connection.execute(endless)


def state_of(directory: Path) -> dict[str, tuple[bytes, int]]:
    """Every file with its bytes and the time of its last change."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.iterdir()}


@contextmanager
def running(database: Path, workspace: Path, seconds: float) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "tests.unit.opencode.program", str(database), str(workspace), str(seconds)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_a_program_that_writes_all_the_time_is_never_kept_waiting(watched, database, workspace):
    with running(database, workspace, 3) as process:
        reads = 0
        os.set_blocking(process.stdout.fileno(), False)
        while not (line := process.stdout.readline()):
            watched.read(0.05)
            reads += 1
        assert (line, reads > 20) == ("0\n", True)
        assert watched.read() == fresh(workspace, database)
        assert watched.reader.trouble is None


def test_a_program_that_ends_beside_us_takes_its_log_with_it(program, watched, database):
    program.session()
    assert len(watched.read()) == 1
    program.close()
    for _ in range(2):
        assert [path.name for path in database.parent.iterdir()] == ["opencode.db"]
        assert len(watched.read()) == 1


@pytest.mark.parametrize(("journal", "left"), [("wal", ()), ("wal", ("-wal", "-shm")), ("delete", ())])
def test_what_no_program_has_open_is_read_without_a_trace(tmp_path, watched, database, journal, left):
    program = Program(tmp_path / "running.db", tmp_path / "ws", journal=journal)
    root = program.session()
    program.answer(root, "Done.")
    if not left:
        program.close()
    for suffix in ("", *left):
        shutil.copyfile(tmp_path / f"running.db{suffix}", f"{database}{suffix}")
    program.close()
    before = state_of(database.parent)
    assert watched.read()[root].state is RunState.ENDED
    assert watched.said(root) == "Done."
    watched.reader.close()
    assert watched.reader.trouble is None
    assert state_of(database.parent) == before


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")
def test_a_killed_program_is_gone_unless_another_machine_runs_it(watched, database, workspace, monkeypatch):
    with running(database, workspace, 0.1) as process:
        process.stdout.readline()
        working = [key for key, run in watched.read().items() if run.state is RunState.WORKING]
        assert working == [key for key, run in watched.runs.items() if run.parent_session is None]
        assert {watched.runs[key].process_gone for key in working} == {None}
        process.kill()
        process.wait()
        watched.read()
        assert {watched.runs[key].process_gone for key in working} == {True}
        assert {watched.runs[key].state for key in working} == {RunState.WORKING}
        device = database.stat().st_dev
        mount = f"1 1 {os.major(device)}:{os.minor(device)} / / rw - nfs4 host:/ rw"
        monkeypatch.setattr(Path, "read_text", lambda *_: mount)
        is_of_this_system.cache_clear()
        watched.read()
        is_of_this_system.cache_clear()
        assert {watched.runs[key].process_gone for key in working} == {None}
