"""The reader of Codex on a home that grows, moves, breaks and lies."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import sqlite3
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.delegation.run import RunState
from agentwatch.sources.codex.codex_reader import CodexReader
from agentwatch.sources.sessions import tail
from tests.unit.codex.home import PACKET, RETURN, Home, Session, thread

LONG_AGO = 1_700_000_000.0


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def family(home: Home) -> list[Session]:
    """A root with a child that ended and was sent on, one that was closed, a refused one, and a grandchild."""
    root = home.root(1).call("spawn_agent", "c1", message=PACKET).spawned("c1", thread(2))
    root.output("c1", f'{{"agent_id": "{thread(2)}"}}').call("spawn_agent", "c2", message="too deep")
    closed = {"type": "CollabAgentToolCall", "tool": "close_agent", "receiver_thread_ids": [thread(3)]}
    root.output("c2", "refused").event("item_completed", item=closed | {"agents_states": {thread(3): "running"}})
    first = home.child(2, root).complete("A part.").begin().asked("Go on.").complete(RETURN)
    second = home.child(3, root).said("Half").event("turn_aborted", reason="interrupted")
    third = home.child(4, first).call("update_plan", "p", plan=[{"step": "Look.", "status": "completed"}])
    return [root.complete("Done."), first, second, third]


@given(steps=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4000)), max_size=25))
@pytest.mark.slow
def test_however_the_files_grow_the_runs_are_those_of_a_reader_that_comes_late(
    steps: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = Home(tmp_path_factory.mktemp("codex"))
    sessions = family(home)
    whole = [b"".join(session.lines) for session in sessions]
    written = [0] * len(whole)
    for number, size in [*steps, *((number, 1_000_000) for number in range(len(whole)))]:
        path = home.place(sessions[number])
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(whole[number][written[number] : written[number] + size])
        written[number] += size
        for change in home.reader.read(0.0):
            if change.run is None:
                del home.runs[change.key]
            else:
                home.runs[change.key] = change.run
    home.read()
    late = {change.key: change.run for change in CodexReader(home.workspace, home.path).read(10)}
    assert home.runs == late
    assert len(late) == 5


HOSTILE = [
    {"type": "task_complete", "last_agent_message": [1], "error": {"message": {}}},
    {"type": "item_completed", "item": {"type": "CollabAgentToolCall", "tool": [], "receiver_thread_ids": [1, {}]}},
    {"type": "item_completed", "item": {"type": "CollabAgentToolCall", "tool": "close_agent", "agents_states": 7}},
    {"type": "item_completed", "item": {"type": "UserMessage", "content": [None, {"text": 3}]}},
    {"type": "function_call", "name": "spawn_agent", "call_id": "x", "arguments": "["},
    {"type": "function_call", "name": "spawn_agent", "call_id": "y", "arguments": "[]"},
    {"type": "function_call", "name": "spawn_agent", "call_id": "\ud800", "arguments": '{"message": "\ud800 x"}'},
    {"type": "function_call", "name": "request_user_input", "call_id": "\udfff", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "y", "output": [{"text": 5}, "\ud800"]},
    {"type": "function_call", "name": "update_plan", "arguments": '{"plan": [1, {"step": 2, "status": []}]}'},
    {"type": ["token_count"], "info": {"total_token_usage": {"total_tokens": True}}},
    {"type": "token_count", "info": {"total_token_usage": {"total_tokens": 10**400}}},
    {"type": "user_message", "message": "\ud800"},
    {"type": "task_started", "turn_id": {}},
    [[]],
]
TIMES = ["9999999-01-01", "0001-01-01T00:00:00+23:59", 5, None, "2027-01-15T08:00:00"]


def hostile_lines() -> st.SearchStrategy[bytes]:
    kinds = st.sampled_from(["event_msg", "response_item", "turn_context", "session_meta", {}, 7])
    known = st.builds(
        lambda time, kind, payload: json.dumps(
            {"timestamp": time, "type": kind, "payload": payload}, separators=(",", ":")
        ).encode(),
        st.sampled_from(TIMES),
        kinds,
        st.sampled_from(HOSTILE),
    )
    return st.one_of(st.binary(max_size=80), known, st.just(b"[" * 5000))


@given(junk=st.lists(hostile_lines(), max_size=12))
def test_hostile_lines_neither_break_the_reader_nor_hide_the_others(
    junk: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = Home(tmp_path_factory.mktemp("codex"))
    root = home.root()
    for line in junk:
        root.lines.append(line + b"\n")
    home.write(root.begin().complete("Done."))
    home.read()
    run = home.run(root)
    assert run.said is not None
    assert (run.state, run.said.opening) == (RunState.ENDED, "Done.")
    for message in (run.prompt, run.said, *run.earlier):
        assert message is not None
        assert home.reader.text(message.digest) is not None


def test_nothing_new_is_no_change(home: Home) -> None:
    home.write(*family(home))
    assert set(home.read()) == {*map(thread, (1, 2, 3, 4)), f"{thread(1)}:c2"}
    assert home.read() == []


def test_a_rollout_that_is_deleted_takes_its_runs_with_it(home: Home) -> None:
    sessions = family(home)
    home.write(*sessions)
    home.read()
    home.place(sessions[0]).unlink()
    home.read()
    assert home.runs.keys() == {thread(2), thread(3), thread(4)}


def test_an_archived_rollout_stays_the_same_run(home: Home) -> None:
    root = home.root().complete("Done.")
    home.write(root)
    home.read()
    archive = home.path / "archived_sessions"
    archive.mkdir()
    path = home.place(root)
    path.rename(archive / path.name)
    home.read()
    run = home.run(root)
    assert run.place == str(archive / path.name)
    assert run.said is not None
    assert home.reader.text(run.said.digest) == "Done."


def test_a_rollout_that_was_cut_short_or_replaced_is_read_again(home: Home) -> None:
    root = home.root().complete("The first answer.").begin().complete("The second answer.")
    home.write(root)
    home.read()
    said = home.run(root).said
    assert said is not None
    home.write(home.root().begin())
    home.read()
    assert (home.run(root).state, home.run(root).earlier) == (RunState.WORKING, ())
    assert home.reader.text(said.digest) is None


def test_a_header_that_is_still_being_written_is_waited_for(home: Home) -> None:
    root = home.root()
    home.write(root)
    path = home.place(root)
    whole = path.read_bytes()
    path.write_bytes(whole[:40])
    home.reader.read(1)
    path.write_bytes(whole)
    home.read()
    assert home.runs.keys() == {root.id}


@pytest.mark.parametrize(
    "header", [{"type": "session", "id": "x"}, {"type": "session_meta", "payload": {"id": "x"}}, {"payload": None}]
)
def test_a_rollout_that_does_not_say_whose_it_is_is_told_where_it_is_the_youngest(
    home: Home, header: dict[str, object]
) -> None:
    strange = home.place(home.root(3))
    home.write(home.root(1), home.root(3))
    strange.write_text(json.dumps(header) + "\n", encoding="utf-8")
    home.read()
    said = "1 rollout does not say whose session it is, and in which directory: not read."
    assert home.reader.trouble == said
    home.write(home.root(4))
    home.read()
    assert home.reader.trouble is None
    assert home.reader.found()[0].skipped == said
    assert home.runs.keys() == {home.root(1).id, home.root(4).id}
    strange.unlink()
    home.read()
    assert home.reader.found()[0].skipped == ""


def test_what_is_no_rollout_is_not_opened(home: Home, tmp_path: Path) -> None:
    root = home.root()
    home.write(root)
    directory = home.place(root).parent
    os.mkfifo(directory / "rollout-2027-pipe.jsonl")
    (directory / "rollout-2027-link.jsonl").symlink_to(tmp_path)
    (directory / "rollout-2027-directory.jsonl").mkdir()
    (directory / "notes.jsonl").write_text("{}")
    home.read()
    assert home.runs.keys() == {root.id}
    assert home.reader.trouble is None


def test_a_rollout_that_may_not_be_read_is_told_and_keeps_nobody_waiting(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    home.write(home.root(), home.root(2))
    home.read()
    monkeypatch.setattr(tail, "open_regular", refuse)
    home.write(home.root().complete("Done."))
    home.read()
    assert home.reader.trouble == "1 sessions cannot be read: Permission denied."


def test_a_file_that_is_added_as_its_directory_is_listed_is_found_the_next_time(home: Home) -> None:
    home.write(home.root(1))
    directory = home.place(home.root(1)).parent
    now = time.time() + 1.9
    os.utime(directory, (now, now))
    home.read()
    home.write(home.root(2))
    os.utime(directory, (now, now))
    home.read()
    assert home.runs.keys() == {thread(1), thread(2)}


def test_a_child_whose_rollout_is_deleted_is_what_its_parent_asked_for(home: Home) -> None:
    root = home.root().call("spawn_agent", "c1", message=PACKET).spawned("c1", thread(2))
    child = home.child(2, root)
    home.write(root, child)
    home.read()
    home.place(child).unlink()
    home.read()
    assert home.run(child).state is RunState.SUBMITTED


def test_progress_counts_every_byte_and_comes_to_its_end(home: Home) -> None:
    sessions = [home.root(number).said("x" * 700_000).said("y" * 700_000) for number in range(1, 5)]
    home.write(*sessions)
    home.reader.read(0.0)
    progress = home.reader.progress
    assert 0 < progress.done < progress.total
    home.read()
    assert home.reader.progress.done == sum(home.place(session).stat().st_size for session in sessions)


def test_a_home_that_is_not_there_is_no_trouble(tmp_path: Path) -> None:
    reader = CodexReader(tmp_path, tmp_path / "nowhere")
    assert list(reader.read(1)) == []
    assert (reader.trouble, list(reader.found())) == (None, [])
    assert reader.progress.done == reader.progress.total


def database(path: Path, *statements: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    for statement in statements:
        connection.execute(statement)
    return connection


def test_the_databases_add_names_links_and_states(home: Home) -> None:
    root = home.root()
    child = home.session(2).meta(home.workspace)
    home.write(root, child)
    home.place(child, "_odd").write_bytes(b"".join(Session("\ud800").meta(home.workspace).lines))
    state = database(
        home.path / "state_7.sqlite",
        "CREATE TABLE thread_spawn_edges (parent_thread_id TEXT, child_thread_id TEXT, status TEXT)",
        "CREATE TABLE threads (id TEXT, name TEXT)",
        f"INSERT INTO thread_spawn_edges VALUES ('{root.id}', '{child.id}', 'open')",
        f"INSERT INTO threads VALUES ('{root.id}', 'The shop'), ('{child.id}', NULL)",
    )
    history = database(
        home.path / "thread_history_2.sqlite",
        "CREATE TABLE thread_turns (thread_id TEXT, status TEXT, rollout_ordinal INTEGER)",
        f"INSERT INTO thread_turns VALUES ('{child.id}', 'interrupted', 9), ('{child.id}', 'completed', 3)",
    )
    home.read()
    assert home.run(root).title == "The shop"
    assert home.run(child).parent_session == root.id
    assert home.run(child).state is RunState.CANCELED
    state.close()
    history.close()


def test_a_database_of_another_schema_is_left_alone_and_told(home: Home) -> None:
    root = home.root()
    home.write(root)
    connection = database(home.path / "state_99.sqlite", "CREATE TABLE other (id TEXT)")
    home.read()
    assert home.runs.keys() == {root.id}
    assert home.reader.trouble is None
    assert "no such table" in home.reader.found()[1].skipped
    connection.close()


def test_a_database_that_nobody_writes_is_not_opened_because_that_would_write_beside_it(home: Home) -> None:
    home.write(home.root())
    database(home.path / "state_5.sqlite", "CREATE TABLE threads (id TEXT, name TEXT)").close()
    before = sorted(home.path.iterdir())
    home.read()
    assert sorted(home.path.iterdir()) == before


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")
def test_a_writer_that_holds_its_lock_is_not_gone(home: Home) -> None:
    root = Session(thread(1), clock=LONG_AGO).meta(home.workspace).begin()
    home.write(root)
    locks = home.path / "thread-writer-locks"
    locks.mkdir()
    with (locks / f"{root.id}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        home.read()
        assert home.run(root).process_gone is False
    # From inside of a container not every process is seen.
    (late,) = CodexReader(home.workspace, home.path).read(10)
    assert late.run is not None
    assert late.run.process_gone in (True, None)


def test_of_a_version_without_locks_it_is_not_known_whether_its_writer_is_gone(home: Home) -> None:
    root = Session(thread(1), clock=LONG_AGO).meta(home.workspace, cli_version="0.150.2").begin()
    home.write(root)
    (home.path / "thread-writer-locks").mkdir()
    home.read()
    assert home.run(root).process_gone is None
