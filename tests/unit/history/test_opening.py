"""A history that is broken, older, newer or somebody else's: it is dealt with and said, and it never ends a start."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from agentwatch.history import database
from agentwatch.history.outline import pack
from agentwatch.history.schema import APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION
from agentwatch.history.store import History
from tests.unit.history.recorded import META, Workspace, facts, meta, seen_in


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def written(state: Path, count: int = 3) -> Workspace:
    workspace = Workspace()
    history = History.open(state.parent, state)
    assert history.record(
        [workspace.seen(META, meta("partial", f"sess_{number}")) for number in range(count)], workspace.text_of
    )
    history.close()
    return workspace


def is_usable(history: History) -> bool:
    """It takes a version in and gives it back."""
    workspace = Workspace()
    last = workspace.seen("after.json", meta("blocked", "sess_after"))
    return history.record([last], workspace.text_of) and facts(seen_in(history))[-1] == ("after.json", last.digest)


@pytest.mark.parametrize(
    "content",
    [b"not a database", b"SQLite format 3\x00" + b"\xff" * 4096, b"\x00" * 8192, b"x"],
    ids=["text", "header only", "zeros", "one byte"],
)
def test_a_file_that_is_no_history_is_set_aside_and_said(state: Path, content: bytes) -> None:
    state.mkdir()
    (state / "history.db").write_bytes(content)
    history = History.open(state.parent, state)
    assert history.notice is not None
    assert "set aside as history.corrupt-1.db" in history.notice
    assert (state / "history.corrupt-1.db").read_bytes() == content
    assert is_usable(history)


def test_the_database_of_another_program_is_set_aside(state: Path) -> None:
    state.mkdir()
    other = sqlite3.connect(state / "history.db")
    other.execute("CREATE TABLE observations (id INTEGER)")
    other.commit()
    other.close()
    history = History.open(state.parent, state)
    assert "not a history of agentwatch" in (history.notice or "")
    assert is_usable(history)


def test_each_damaged_history_is_set_aside_under_a_name_of_its_own(state: Path) -> None:
    state.mkdir()
    for number in (1, 2, 3):
        (state / "history.db").write_bytes(b"broken")
        history = History.open(state.parent, state)
        assert f"history.corrupt-{number}.db" in (history.notice or "")
        history.close()


def test_damaged_histories_do_not_pile_up_without_end(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_MOST_ASIDE", 2)
    state.mkdir()
    for _ in range(3):
        (state / "history.db").write_bytes(b"broken")
        history = History.open(state.parent, state)
        history.close()
    assert "set aside already" in (history.notice or "")
    assert (state / "history.db").read_bytes() == b"broken"


@pytest.mark.parametrize("content", [b"broken", b"broken" * 1000], ids=["short", "long"])
def test_a_log_left_beside_a_damaged_file_is_not_played_into_the_new_one(state: Path, content: bytes) -> None:
    state.mkdir()
    (state / "history.db").write_bytes(content)
    (state / "history.db-wal").write_bytes(b"a log")
    history = History.open(state.parent, state)
    assert (state / "history.corrupt-1.db-wal").read_bytes() == b"a log"
    assert is_usable(history)


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_an_older_schema_is_migrated_and_keeps_its_versions(state: Path, version: int) -> None:
    workspace = Workspace()
    seen = workspace.seen(META, meta("partial"))
    state.mkdir()
    old = sqlite3.connect(state / "history.db")
    for migration in MIGRATIONS[:version]:
        for statement in migration:
            old.execute(statement)
    old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    old.execute(f"PRAGMA user_version = {version}")
    old.execute(
        "INSERT INTO observations (run, ordinal, at, path, digest, outline) VALUES ('r', 1, ?, ?, ?, ?)",
        (seen.at, META, seen.digest, '{"kind":"return","contract":"return-meta","outcome":"partial"}'),
    )
    old.execute("INSERT INTO texts (digest, packed) VALUES (?, ?)", (seen.digest, pack(meta("partial"))))
    old.commit()
    old.close()

    history = History.open(state.parent, state)
    assert history.notice is None
    assert facts(seen_in(history)) == [(META, seen.digest)]
    assert [file.fingerprint for file in history.files().values()] == [None]
    assert is_usable(history)
    history.close()
    now = sqlite3.connect(state / "history.db")
    assert now.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    now.close()


def test_the_history_of_a_newer_agentwatch_is_left_alone(state: Path) -> None:
    written(state)
    newer = sqlite3.connect(state / "history.db")
    newer.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    newer.commit()
    newer.close()
    before = (state / "history.db").read_bytes()

    history = History.open(state.parent, state)
    assert "newer agentwatch" in (history.notice or "")
    assert is_usable(history)
    history.close()
    assert (state / "history.db").read_bytes() == before
    again = History.open(state.parent, state)
    assert [version.path for version in seen_in(again)] == ["after.json"]


def test_damage_that_shows_only_while_it_runs_is_set_aside_then(state: Path) -> None:
    written(state)
    history = History.open(state.parent, state)
    swapped = sqlite3.connect(state / "history.db")
    swapped.execute("DROP TABLE texts")
    swapped.commit()
    swapped.close()
    assert is_usable(history)
    assert "set aside" in (history.notice or "")


def test_damage_that_a_reader_meets_is_set_aside_by_the_next_record(state: Path) -> None:
    written(state)
    history = History.open(state.parent, state)
    swapped = sqlite3.connect(state / "history.db")
    swapped.execute("DROP TABLE observations")
    swapped.commit()
    swapped.close()
    assert seen_in(history) == []
    assert "cannot be read" in (history.notice or "")
    assert history.record([], lambda _: None)
    assert "set aside" in (history.notice or "")
    assert is_usable(history)


def test_another_process_keeps_what_it_records_after_this_one_has_set_the_file_aside(state: Path) -> None:
    workspace = written(state)
    other = History.open(state.parent, state)
    (state / "history.db").rename(state / "history.corrupt-1.db")
    for suffix in ("-wal", "-shm"):
        (state / f"history.db{suffix}").rename(state / f"history.corrupt-1.db{suffix}")
    this = History.open(state.parent, state)
    last = workspace.seen("b.json", meta("blocked"))
    assert other.record([last], workspace.text_of)
    assert facts(seen_in(this)) == [("b.json", last.digest)]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE texts SET packed = x'00'",
        "UPDATE texts SET packed = 'text'",
        "UPDATE observations SET outline = '[1'",
        "UPDATE observations SET outline = x'ff', digest = x'00'",
        "UPDATE observations SET at = 'never'",
        "UPDATE observations SET path = x'ff'",
        "UPDATE files SET inode = 'x'",
    ],
)
def test_a_damaged_value_costs_no_more_than_its_version(state: Path, damage: str) -> None:
    written(state)
    other = sqlite3.connect(state / "history.db")
    other.execute(damage)
    other.commit()
    other.close()
    history = History.open(state.parent, state)
    seen_in(history)
    history.events()
    history.files()
    assert is_usable(history)


@pytest.mark.parametrize(("safe", "mode"), [(True, "wal"), (False, "delete")])
def test_the_journal_is_a_log_only_where_that_is_safe(
    state: Path, monkeypatch: pytest.MonkeyPatch, safe: bool, mode: str
) -> None:
    written(state)
    monkeypatch.setattr(database, "has_safe_log", lambda _directory: safe)
    history = History.open(state.parent, state)
    assert is_usable(history)
    other = sqlite3.connect(state / "history.db")
    assert other.execute("PRAGMA journal_mode").fetchone() == (mode,)
    other.close()
    assert history._source.writer.execute("PRAGMA synchronous").fetchone() == (2,)  # type: ignore[union-attr]


def test_one_that_another_has_open_in_the_other_mode_is_used_as_it_is(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(state)
    other = History.open(state.parent, state)
    seen_in(other)
    monkeypatch.setattr(database, "has_safe_log", lambda _directory: False)
    monkeypatch.setattr(database, "_BUSY_MS", 1)
    history = History.open(state.parent, state)
    assert history.notice is None
    assert is_usable(history)
    assert is_usable(other)
