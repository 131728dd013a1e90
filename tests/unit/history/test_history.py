"""All recorded versions come back in order, whatever happens to the files of the workspace and to the history."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.delegation.events import Checked, Claim, Event, Tick, Unreadable, Verdict
from agentwatch.delegation.links import MAX_VERSIONS
from agentwatch.history.recording import pack_text
from agentwatch.history.store import APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION, History
from agentwatch.sources.files.source import HistorySnapshot
from agentwatch.state import HISTORY
from tests.unit.delegation.events import tree_of
from tests.unit.history.recorded import META, Workspace, facts, meta, opened, packet, seen_in


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def recorded(state: Path, *events: Event, workspace: Workspace | None = None) -> History:
    history = opened(state)
    assert history.record(events, (workspace or Workspace()).text_of), history.notice
    return history


def written(state: Path, count: int = 3) -> Workspace:
    workspace = Workspace()
    recorded(state, *[workspace.seen(META, meta("partial", f"sess_{number}")) for number in range(count)])
    return workspace


def run_sql(state: Path, *statements: str):
    with closing(sqlite3.connect(state / HISTORY)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def is_usable(history: History) -> bool:
    """Return whether the history records a version and returns it."""
    workspace = Workspace()
    last = workspace.seen("after.json", meta("blocked", "sess_after"))
    return history.record([last], workspace.text_of) and facts(seen_in(history))[-1] == ("after.json", last.digest)


def test_versions_come_back_in_order_with_their_texts(state):
    workspace = Workspace()
    finding = Finding("SRC006", Severity.WARNING, "not UTF-8", 3)
    text = meta("implemented", summary="größer \u2028 \x1b[31m 漢字 \U0001f600" * 50)
    seen = [
        workspace.seen(META, meta("in_progress", "sess_1")),
        workspace.seen("b.handoff.json", packet("b"), finding),
        workspace.seen(META, text),
        workspace.seen(META, meta("blocked", "sess_2")),
    ]
    history = recorded(state, *seen[:2], workspace=workspace)
    assert history.record([*seen[2:], Tick(1, 5.0), Unreadable(2, 5.0, META, finding)], workspace.text_of)
    assert seen_in(opened(state)) == [one._replace(seq=seq) for seq, one in enumerate(seen, -4)]
    assert (history.text(seen[2].digest), history.text("0" * 64)) == (text, None)


def test_attempts_survive_a_restart_without_texts(state):
    workspace = Workspace()
    words = [(word, session) for session in ("sess_1", "sess_2", "sess_3") for word in ("in_progress", "made_up_word")]
    events = [workspace.seen(META, meta(*each)) for each in words]
    events.append(workspace.seen("a.handoff.json", packet("a", attempt=2)))
    assert opened(state).record([*events, workspace.gone(META)], lambda _: None)
    stored, lived = (
        [
            (one.number, one.state, one.session_id, one.started_at)
            for task in tree_of([*some]).tasks.values()
            for one in task.attempts
        ]
        for some in (seen_in(opened(state)), events)
    )
    assert stored == lived


def test_a_returned_file_is_a_version_and_a_repeat_is_none(state):
    workspace = Workspace()
    seen = [workspace.seen(META, meta(status)) for status in ("partial", "blocked", "partial")]
    again = [workspace.gone("never.json"), *seen, workspace.gone(META), workspace.seen(META, meta("partial"))]
    kinds = ["Seen", "Seen", "Seen", "Gone", "Seen"]
    for one in [*again, again[-1]]:
        history = recorded(state, one, workspace=workspace)
    assert [type(one).__name__ for one in history.recall().events] == kinds
    assert history.record([workspace.gone(META), workspace.gone(META)], workspace.text_of)
    assert [type(one).__name__ for one in history.recall().events] == [*kinds, "Gone"]


def test_two_processes_on_one_workspace_record_each_version_once(state):
    workspace = Workspace()
    seen = [
        workspace.seen(META, meta("in_progress")),
        workspace.seen(META, meta("partial")),
        workspace.gone(META),
        workspace.seen(META, meta("in_progress", "sess_2")),
        workspace.seen("a.handoff.json", packet("a")),
    ]
    one, other = opened(state), opened(state)
    # The other history first lags behind, and is then ahead.
    for history, some in ((one, seen[:4]), (other, seen), (one, seen[4:])):
        assert history.record(some, workspace.text_of)
    assert [type(event) for event in one.recall().events] == [type(event) for event in seen]


def test_a_file_keeps_its_first_and_its_last_versions(state):
    workspace = Workspace()
    seen = [workspace.seen(META, meta("partial", f"sess_{number}")) for number in range(MAX_VERSIONS + 20)]
    stored = seen_in(recorded(state, *seen, workspace=workspace))
    assert [version.digest for version in stored] == [seen[0].digest, *(one.digest for one in seen[21:])]


def test_a_start_drops_the_oldest_texts_and_no_attempt(state):
    workspace = Workspace()
    versions = [workspace.seen(META, meta("blocked", f"sess_{number}", "word " * number)) for number in range(60)]
    waiting = workspace.seen("w/.return-meta.json", meta("blocked", "sess_w"))
    recorded(state, waiting, *versions, workspace=workspace)
    history = opened(state, limit=3_000)
    kept = [seen.digest for seen in versions if history.text(seen.digest) is not None]
    assert kept == [seen.digest for seen in versions[-len(kept) :]]
    assert 0 < len(kept) < 30
    assert history.text(waiting.digest) is not None, "the last one of its file"
    assert facts(seen_in(history)) == facts([waiting, *versions])


def test_a_verdict_comes_back_with_the_times_at_which_it_turned(state):
    true, false = (Claim("created", "a\ud800", verdict, "said") for verdict in (Verdict.VERIFIED, Verdict.CONTRADICTED))
    found = [(true,), (true, false), (false, false), (true,)]
    checks = [Checked(0, float(at), "agents:s\ud800", "digest", claims) for at, claims in enumerate(found)]
    assert recorded(state, *checks, checks[-1]).recall().events == [
        checks[0]._replace(claims=()),
        checks[1]._replace(claims=(false._replace(path="a?"),)),
        checks[3]._replace(claims=()),
    ]


def test_only_the_user_may_read_what_is_kept(state):
    before = os.umask(0)
    written(state)
    os.umask(before)
    assert [stat.S_IMODE(file.stat().st_mode) for file in (state, *state.iterdir())] == [0o700, 0o600, 0o600]


def test_a_history_that_cannot_be_written_says_so_and_goes_on(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("no directory")
    history, workspace = opened(blocked / "state"), Workspace()
    seen = workspace.seen(META, meta("partial"))
    assert "remembered only until" in (history.notice or "")
    assert not history.record([seen], workspace.text_of)
    assert (history.recall(), history.text(seen.digest)) == (HistorySnapshot(), None)
    blocked.unlink()
    assert history.record([], workspace.text_of)
    assert (history.notice, facts(seen_in(history))) == (None, [(META, seen.digest)])
    shutil.rmtree(tmp_path / "file")
    assert is_usable(history)


# Damage, other versions


@pytest.mark.parametrize("content", [b"not a database", b"\x00" * 8192])
def test_a_file_that_is_no_history_is_set_aside_with_a_notice(state, content):
    state.mkdir()
    (state / HISTORY).write_bytes(content)
    assert seen_in(History(state)) == []
    assert (state / HISTORY).read_bytes() == content
    history = opened(state)
    (aside,) = state.glob("history.corrupt-*.db")
    assert f"set aside as {aside.name}" in (history.notice or "")
    assert aside.read_bytes() == content
    assert is_usable(history)


@pytest.mark.parametrize(("version", "mode"), [(1, "WAL"), (SCHEMA_VERSION - 1, "DELETE")])
def test_an_older_schema_is_read_and_migrated(state, version, mode):
    seen = Workspace().seen(META, meta("partial"))
    state.mkdir()
    run_sql(
        state,
        f"PRAGMA journal_mode = {mode}",
        *"".join(MIGRATIONS[:version]).split(";"),
        f"PRAGMA application_id = {APPLICATION_ID}",
        f"PRAGMA user_version = {version}",
        "INSERT INTO observations (run, ordinal, at, path, digest, outline)"
        f" VALUES ('r', 1, {seen.at}, '{META}', '{seen.digest}', '{{}}')",
        f"INSERT INTO texts (digest, packed) VALUES ('{seen.digest}', x'{pack_text(meta('partial')).hex()}')",
    )
    before = (state / HISTORY).read_bytes()
    for open_ in (History, opened):
        assert (state / HISTORY).read_bytes() == before
        history = open_(state)
        assert (facts(seen_in(history)), history.notice) == ([(META, seen.digest)], None)
    assert is_usable(history)


def test_the_history_of_a_newer_agentwatch_is_left_alone(state):
    written(state)
    run_sql(state, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = (state / HISTORY).read_bytes()
    for history in (History(state), opened(state)):
        assert seen_in(history) == []
        assert "newer agentwatch" in (history.notice or "")
        assert not history.record([Workspace().seen(META, meta("partial"))], lambda _: None)
    assert (state / HISTORY).read_bytes() == before


def test_damage_that_shows_while_it_runs_is_set_aside(state):
    written(state)
    history = opened(state)
    run_sql(state, "DROP TABLE observations")
    assert seen_in(history) == []
    assert "cannot be read" in (history.notice or "")
    assert history.record([], lambda _: None)
    assert is_usable(history)
    assert "set aside" in (history.notice or "")


@pytest.mark.parametrize(
    "damage",
    [
        "texts SET packed = x'00'",
        "observations SET outline = x'ff', digest = x'00'",
        "observations SET at = 'never', outline = '[1'",
        "observations SET path = x'ff'",
    ],
)
def test_a_damaged_value_costs_no_more_than_its_version(state, damage):
    written(state)
    run_sql(state, f"UPDATE {damage}")
    history = opened(state)
    assert isinstance(history.recall().files, dict)
    assert is_usable(history)


# Reading writes nothing

READER = """
import sys
from pathlib import Path
from agentwatch.history.store import History
history = History(Path(sys.argv[1]))
assert history.recall().files and history.notice is None, history.notice
print(*[one.digest for one in history.recall().events])
"""


def test_a_reader_leaves_nothing_while_it_is_recorded(state):
    def listing():
        return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in state.iterdir()}

    history, workspace = opened(state), Workspace()
    seen = [workspace.seen(META, meta("partial", f"sess_{number}")) for number in range(10)]
    assert history.record(seen, workspace.text_of)
    before = listing()
    # A process of its own is needed, as SQLite shares its knowledge of the file within one process.
    printed = subprocess.check_output([sys.executable, "-c", READER, str(state)], text=True)
    assert printed.split() == [one.digest for one in seen]
    assert listing() == before
