"""Databases of OpenCode are read in any condition, and the program never notices that they are read."""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from agentwatch.delegation.events import RunState
from agentwatch.sources.opencode import ForeignDatabase, OpenCodeReader
from agentwatch.sources.sessions.processes import is_on_local_disk
from tests.unit.sessions.store import NOW, Store, Watch, begin_session, change, open_database


@pytest.fixture
def store(tmp_path):
    made = Store("opencode", tmp_path)
    made.finish()
    yield made
    made.close()


def test_a_message_that_is_taken_back_leaves_nothing_behind(store):
    watch, database = store.watch(), store.database
    messages = database.execute("SELECT id, session_id FROM message ORDER BY id DESC").fetchall()
    change(database, messages[0][1], f"UPDATE part SET data = '{{}}' WHERE message_id = '{messages[0][0]}'")
    watch.look()
    assert "cannot be read" in watch.source.problems[0].message
    for message, session in messages:
        statements = f"DELETE FROM part WHERE message_id = '{message}'; DELETE FROM message WHERE id = '{message}'"
        change(database, session, statements)
        watch.look()
        assert watch.document == store.seen_at_once(), message
        assert watch.source.problems == ()


def test_a_database_that_is_replaced_is_read_anew(store):
    watch = store.watch()
    watch.look()
    store.end()
    for path in store.place.glob("opencode.db*"):
        path.unlink()
    watch.look()
    assert not watch.runs
    store.database = open_database(store.place / "opencode.db")
    begin_session(store.database, "ses_new", store.workspace, NOW)
    watch.look()
    assert list(watch.runs) == ["opencode:ses_new"]


def test_a_pipe_in_the_place_of_a_database_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "opencode.db")
    reader = OpenCodeReader(tmp_path, tmp_path / "opencode.db")
    assert not reader.read(10.0)
    assert reader.trouble == "opencode.db cannot be read: it is no regular file."


def test_a_database_that_never_answers_is_given_up(tmp_path, monkeypatch):
    open_database(tmp_path / "opencode.db", "delete").close()
    clock = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: clock() * 100)
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    database = ForeignDatabase(tmp_path / "opencode.db")
    with database.connect() as connection, pytest.raises(sqlite3.OperationalError, match="interrupted"):
        connection.execute(endless)


@contextmanager
def running(root: Path, seconds: float) -> Iterator[tuple[subprocess.Popen[str], Watch]]:
    """Run the program in a process of its own, with a watch on its database."""
    words = [sys.executable, "-m", "tests.unit.sessions.store", str(root), str(seconds)]
    top, pipe = Path(__file__).parents[3], subprocess.PIPE
    with subprocess.Popen(words, cwd=top, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        watch = Watch(OpenCodeReader(root / "work", root / "store" / "opencode.db"))
        try:
            with closing(watch.source):
                yield process, watch
        finally:
            process.kill()


@pytest.mark.slow
def test_a_program_that_writes_without_end_is_not_kept_waiting(tmp_path):
    with running(tmp_path, 1.5) as (process, watch):
        looks = 0
        os.set_blocking(process.stdout.fileno(), False)
        while not (line := process.stdout.readline()):
            watch.look()
            looks += 1
        assert (line, looks > 10, watch.source.problems) == ("0\n", True, ())
        watch.look()
        fresh = Watch(OpenCodeReader(tmp_path / "work", tmp_path / "store" / "opencode.db"))
        with closing(fresh.source):
            fresh.look()
            assert watch.document == fresh.document


def test_a_program_that_ends_beside_us_takes_its_log_with_it(store):
    watch = store.watch()
    watch.look()
    known = watch.tasks.keys()
    store.end()
    for _ in range(2):
        assert [path.name for path in store.place.iterdir()] == ["opencode.db"]
        watch.look()
        assert (watch.tasks.keys(), watch.source.problems) == (known, ())


def state_of(directory: Path) -> dict[str, tuple[bytes, int]]:
    """Return every file with its bytes and the time of its last change."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.iterdir()}


@pytest.mark.parametrize(("journal", "left"), [("wal", ()), ("wal", ("-wal", "-shm")), ("delete", ())])
def test_a_closed_database_is_read_without_a_trace(store, tmp_path, journal, left):
    states = {task["task_id"]: task["state"] for task in store.seen_at_once()["tasks"]}
    if not left:
        store.end()
        open_database(store.place / "opencode.db", journal).close()
    (tmp_path / "copy").mkdir()
    for suffix in ("", *left):
        shutil.copyfile(store.place / f"opencode.db{suffix}", tmp_path / "copy" / f"opencode.db{suffix}")
    before = state_of(tmp_path / "copy")
    watch = Watch(OpenCodeReader(store.workspace, tmp_path / "copy" / "opencode.db"))
    with closing(watch.source):
        watch.look()
    assert {name: task["state"] for name, task in watch.tasks.items()} == states
    assert (watch.source.problems, state_of(tmp_path / "copy")) == ((), before)


def gone(watch: Watch) -> set[bool | None]:
    """Look, and return what is known of the process of each session at work."""
    watch.look()
    runs = [ran.run for ran in watch.runs.values() if ran.run is not None]
    return {run.process_gone for run in runs if run.state is RunState.WORKING}


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")


@on_linux
def test_a_program_that_is_started_again_is_not_gone(store):
    watch = store.watch()
    assert gone(watch) == {None}
    store.end()
    assert gone(watch) == {True}
    store.database = open_database(store.place / "opencode.db")
    assert gone(watch) == {None}


@on_linux
def test_a_killed_program_is_gone_unless_another_machine_runs_it(tmp_path, monkeypatch):
    with running(tmp_path, 0.1) as (process, watch):
        process.stdout.readline()
        assert gone(watch) == {None}
        process.kill()
        process.wait()
        assert gone(watch) == {True}
        device = tmp_path.stat().st_dev
        mount = f"1 1 {os.major(device)}:{os.minor(device)} / / rw - nfs4 host:/ rw"
        monkeypatch.setattr(Path, "read_text", lambda *_: mount)
        is_on_local_disk.cache_clear()
        assert gone(watch) == {None}
        is_on_local_disk.cache_clear()
