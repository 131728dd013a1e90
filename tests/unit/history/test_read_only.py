"""Reading for `agentwatch tree`: everything is seen, and not one byte is written beside the history."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from agentwatch.delegation.events import Seen
from agentwatch.history import database, read_only
from agentwatch.history.schema import MIGRATIONS, NAME, SCHEMA_VERSION
from agentwatch.history.store import History
from tests.unit.history.recorded import META, Workspace, facts, meta, seen_in


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture(params=[True, False], ids=["write-ahead log", "rollback journal"])
def _journal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "has_safe_log", lambda _directory: request.param)


def listing(state: Path) -> dict[str, tuple[bytes, int]]:
    """Every file with its bytes and its time."""
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in state.iterdir()}


_READER = """
import json, sys
from pathlib import Path
from agentwatch.history.store import History
state = Path(sys.argv[1])
history = History.open_read_only(state.parent, state)
found = [(seen.path, seen.digest) for seen in history.observations()]
assert history.text(found[-1][1]) is not None
history.files(), history.observations()
history.close()
print(json.dumps(found))
"""


def read(state: Path) -> list[tuple[str, str]]:
    """What another process finds that reads; checks that it left no trace."""
    before, changed = listing(state), state.stat().st_mtime_ns
    # In one process SQLite shares its memory between a reader and a writer, so that the reader could write after all.
    reader = subprocess.run([sys.executable, "-c", _READER, str(state)], stdout=subprocess.PIPE, check=True)
    assert (listing(state), state.stat().st_mtime_ns) == (before, changed)
    return [(path, digest) for path, digest in json.loads(reader.stdout)]


def recorded(state: Path) -> tuple[History, Workspace, list[tuple[str, str]]]:
    workspace = Workspace()
    history = History.open(state.parent, state)
    seen = [workspace.seen(META, meta("partial", f"sess_{number}")) for number in range(30)]
    assert history.record(seen, workspace.text_of)
    return history, workspace, [(one.path, one.digest) for one in seen]


@pytest.mark.usefixtures("_journal")
def test_one_that_nobody_has_open(state: Path) -> None:
    history, _, expected = recorded(state)
    history.close()
    assert read(state) == expected


@pytest.mark.usefixtures("_journal")
def test_one_that_is_being_recorded(state: Path) -> None:
    history, workspace, expected = recorded(state)
    assert read(state) == expected
    last = workspace.seen(META, meta("blocked"))
    assert history.record([last], workspace.text_of)
    assert read(state) == [*expected, (META, last.digest)]


def test_one_whose_writer_ends_between_the_look_at_its_files_and_the_opening(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history, _, expected = recorded(state)
    assert (state / f"{NAME}-shm").exists()
    connect = read_only._connect

    def connect_late(path: Path, options: str) -> sqlite3.Connection:
        history.close()
        return connect(path, options)

    monkeypatch.setattr(read_only, "_connect", connect_late)
    reading = History.open_read_only(state.parent, state)
    assert reading.notice is None
    assert [(seen.path, seen.digest) for seen in reading.events() if isinstance(seen, Seen)] == expected
    reading.close()


@pytest.mark.parametrize("left", ["-shm and -wal", "-wal"])
def test_one_whose_writer_was_killed(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str) -> None:
    history, _, expected = recorded(state)
    # What a kill leaves is what is there while it runs.
    copy = tmp_path / "killed"
    copy.mkdir()
    for suffix in ("", "-wal", *(["-shm"] if "shm" in left else [])):
        shutil.copyfile(f"{state / NAME}{suffix}", f"{copy / NAME}{suffix}")
    history.close()
    monkeypatch.setattr("tempfile.tempdir", "/dev/null")  # nothing is copied into a directory that is shared
    assert read(copy) == expected


def test_one_whose_writer_was_killed_in_the_middle_of_a_transaction(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "has_safe_log", lambda _directory: False)
    history, _, expected = recorded(state)
    history.close()
    writer = sqlite3.connect(state / NAME, isolation_level=None)
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("PRAGMA cache_spill = 1")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE observations SET path = path || hex(randomblob(2000))")
    copy = tmp_path / "killed"
    copy.mkdir()
    for suffix in ("", "-journal"):
        shutil.copyfile(f"{state / NAME}{suffix}", f"{copy / NAME}{suffix}")
    writer.close()
    assert b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" in (copy / f"{NAME}-journal").read_bytes()
    assert read(copy) == expected


def test_one_that_is_written_while_it_is_read_without_a_lock(state: Path) -> None:
    history, workspace, expected = recorded(state)
    history.close()
    reading = History.open_read_only(state.parent, state)
    writing = History.open(state.parent, state)
    last = workspace.seen(META, meta("blocked"))
    assert writing.record([last], workspace.text_of)
    assert reading is not None
    assert facts(seen_in(reading)) == [*expected, (META, last.digest)]


def test_one_of_an_older_schema(state: Path) -> None:
    history, _, expected = recorded(state)
    history.close()
    older = sqlite3.connect(state / NAME)
    older.execute("DROP TABLE files")
    older.execute("PRAGMA user_version = 1")
    older.commit()
    older.close()
    assert len(MIGRATIONS) == SCHEMA_VERSION
    assert read(state) == expected


def test_where_there_is_none(state: Path) -> None:
    history = History.open_read_only(state.parent, state)
    assert (seen_in(history), history.notice) == ([], None)
    assert not state.exists()


@pytest.mark.parametrize("content", [b"", b"broken", b"broken" * 1000, b"SQLite format 3\x00" + b"\x02" * 5000])
def test_one_that_is_broken_is_said_and_left_as_it_is(state: Path, content: bytes) -> None:
    state.mkdir()
    (state / NAME).write_bytes(content)
    history = History.open_read_only(state.parent, state)
    assert seen_in(history) == []
    if content:
        assert "cannot be read" in (history.notice or "")
    assert listing(state).keys() == {NAME}
    assert (state / NAME).read_bytes() == content


def test_one_of_a_newer_agentwatch_is_said(state: Path) -> None:
    history, _, _ = recorded(state)
    history.close()
    newer = sqlite3.connect(state / NAME)
    newer.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    newer.commit()
    newer.close()
    history = History.open_read_only(state.parent, state)
    assert history is not None
    assert "newer agentwatch" in (history.notice or "")
    assert seen_in(history) == []


def test_it_refuses_to_record(state: Path) -> None:
    history, workspace, _ = recorded(state)
    history.close()
    reading = History.open_read_only(state.parent, state)
    assert reading is not None
    with pytest.raises(RuntimeError, match="reading only"):
        reading.record([], workspace.text_of)
