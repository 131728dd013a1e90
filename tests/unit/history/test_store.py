"""What is recorded comes back, in order, whatever happens to the files of the workspace."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.delegation.events import Tick, Unreadable
from agentwatch.delegation.files import MAX_VERSIONS
from agentwatch.history.store import History
from tests.unit.history.recorded import META, Workspace, facts, meta, packet, seen_in, tree_of


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def opened(state: Path, **more: int) -> History:
    return History.open(state.parent, state, **more)


def test_versions_come_back_in_the_order_recorded_with_negative_seq(state: Path) -> None:
    workspace = Workspace()
    seen = [
        workspace.seen(META, meta("in_progress", "sess_1")),
        workspace.seen("b.handoff.json", packet("b")),
        workspace.seen(META, meta("implemented", "sess_1")),
        workspace.seen("a.handoff.json", packet("a")),
        workspace.seen(META, meta("blocked", "sess_2")),
    ]
    with_history = opened(state)
    assert with_history.record(seen[:2], workspace.text_of)
    assert with_history.record(seen[2:], workspace.text_of)
    with_history.close()

    stored = seen_in(opened(state))
    assert facts(stored) == [(one.path, one.digest) for one in seen]
    assert [version.seq for version in stored] == [-5, -4, -3, -2, -1]
    assert [(one.document, one.findings, one.at) for one in seen] == [
        (version.document, version.findings, version.at) for version in stored
    ]


def test_texts_come_back_whole(state: Path) -> None:
    workspace = Workspace()
    text = meta("implemented", summary="größer \u2028 \x1b[31m 漢字 \U0001f600" * 50)
    seen = workspace.seen(META, text)
    history = opened(state)
    assert history.record([seen], workspace.text_of)
    assert history.text(seen.digest) == text
    assert history.text("0" * 64) is None


def test_the_attempts_of_a_rewritten_file_survive_a_restart(state: Path) -> None:
    workspace = Workspace()
    events = [
        workspace.seen(META, meta(status, session))
        for session in ("sess_1", "sess_2", "sess_3")
        for status in ("in_progress", "partial")
    ]
    history = opened(state)
    assert history.record([*events, workspace.gone(META)], workspace.text_of)
    history.close()

    before = next(iter(tree_of(list(events)).tasks.values())).attempts
    loaded = seen_in(opened(state))
    after = next(iter(tree_of(list(loaded)).tasks.values())).attempts
    assert len(after) == 3
    assert [(one.number, one.state, one.session_id, one.started_at) for one in before] == [
        (one.number, one.state, one.session_id, one.started_at) for one in after
    ]


def test_the_same_content_written_again_after_a_deletion_is_a_version_of_its_own(state: Path) -> None:
    workspace = Workspace()
    history = opened(state)
    events = [
        workspace.seen(META, meta("partial")),
        workspace.gone(META),
        workspace.seen(META, meta("partial")),
    ]
    assert history.record(events, workspace.text_of)
    assert len(seen_in(history)) == 2


def test_a_content_that_comes_back_by_a_rewrite_is_a_version_of_its_own_even_with_its_old_time(state: Path) -> None:
    workspace = Workspace()
    history = opened(state)
    texts = meta("partial"), meta("blocked"), meta("partial")
    seen = [workspace.seen(META, text, at=at) for text, at in zip(texts, (1.0, 2.0, 1.0), strict=True)]
    assert history.record(seen, workspace.text_of)
    assert facts(seen_in(history)) == [(one.path, one.digest) for one in seen]


def test_what_is_seen_again_after_a_restart_is_not_recorded_twice(state: Path) -> None:
    workspace = Workspace()
    seen = [workspace.seen(META, meta("partial")), workspace.seen("a.handoff.json", packet("a"))]
    for _ in range(3):
        history = opened(state)
        assert history.record(seen, workspace.text_of)
        history.close()
    assert facts(seen_in(opened(state))) == [(one.path, one.digest) for one in seen]


def test_two_processes_on_one_workspace_record_each_version_once(state: Path) -> None:
    workspace = Workspace()
    seen = [
        workspace.seen(META, meta("in_progress")),
        workspace.seen(META, meta("partial")),
        workspace.gone(META),
        workspace.seen(META, meta("in_progress", "sess_2")),
        workspace.seen("a.handoff.json", packet("a")),
    ]
    one, other = opened(state), opened(state)
    # The other one lags behind, then is ahead.
    assert one.record(seen[:4], workspace.text_of)
    assert other.record(seen, workspace.text_of)
    assert one.record(seen[4:], workspace.text_of)
    recorded = one.events()
    assert [type(event) for event in recorded] == [type(event) for event in seen]
    assert recorded == other.events()


def test_two_processes_that_see_different_things_keep_both(state: Path) -> None:
    workspace = Workspace()
    one, other = opened(state), opened(state)
    assert one.record([workspace.seen("a.handoff.json", packet("a"))], workspace.text_of)
    assert other.record([workspace.seen("b.handoff.json", packet("b"))], workspace.text_of)
    assert one.record([workspace.seen("c.handoff.json", packet("c"))], workspace.text_of)
    assert [version.path for version in seen_in(other)] == ["a.handoff.json", "b.handoff.json", "c.handoff.json"]


def test_a_file_gone_is_recorded_once_and_only_if_it_was_there(state: Path) -> None:
    workspace = Workspace()
    history = opened(state)
    seen = workspace.seen(META, meta("partial"))
    assert history.record([workspace.gone("never.json"), seen, workspace.gone(META)], workspace.text_of)
    history.close()
    history = opened(state)
    assert history.record([workspace.gone(META)], workspace.text_of)
    assert [type(one).__name__ for one in history.events()] == ["Seen", "Gone"]


def test_a_content_seen_again_in_a_later_batch_is_one_version_and_its_end_is_known(state: Path) -> None:
    workspace = Workspace()
    seen, gone = workspace.seen(META, meta("partial")), workspace.gone(META)
    history = opened(state)
    for batch in ([seen], [seen], [gone], [gone]):
        assert history.record(batch, workspace.text_of)
    assert [type(one).__name__ for one in history.events()] == ["Seen", "Gone"]


def test_what_says_nothing_of_a_content_is_not_recorded(state: Path) -> None:
    finding = Finding("SRC005", Severity.ERROR, "cannot be read")
    history = opened(state)
    assert history.record([Tick(1, 5.0), Unreadable(2, 5.0, META, finding)], lambda _: None)
    assert history.events() == []


def test_a_version_without_text_keeps_what_its_attempt_is_counted_by(state: Path) -> None:
    workspace = Workspace()
    seen = workspace.seen(META, meta("made_up_word", "sess_9"))
    history = opened(state)
    assert history.record([seen, workspace.seen("a.handoff.json", packet("a", attempt=2))], lambda _: None)
    loaded = seen_in(history)
    tree, whole = tree_of(list(loaded)), tree_of([seen])
    (task,) = whole.tasks.values()
    again = tree.tasks[task.task_id]
    assert [(one.number, one.state, one.session_id) for one in again.attempts] == [
        (one.number, one.state, one.session_id) for one in task.attempts
    ]
    assert tree.tasks["a"].attempt == 2


def test_a_finding_of_the_source_comes_back_beside_those_of_the_text(state: Path) -> None:
    finding = Finding("SRC006", Severity.WARNING, "not UTF-8", 3)
    workspace = Workspace()
    seen = workspace.seen(META, meta("partial"), finding)
    history = opened(state)
    assert history.record([seen], workspace.text_of)
    assert seen_in(history)[0].findings == seen.findings


def test_one_file_rewritten_without_end_keeps_its_first_and_its_last_versions(state: Path) -> None:
    workspace = Workspace()
    seen = [workspace.seen(META, meta("partial", f"sess_{number}")) for number in range(MAX_VERSIONS + 20)]
    history = opened(state)
    assert history.record(seen, workspace.text_of)
    stored = seen_in(history)
    assert len(stored) == MAX_VERSIONS
    assert [version.digest for version in stored] == [seen[0].digest, *(one.digest for one in seen[21:])]
    assert history.text(seen[1].digest) is None
    assert history.text(seen[-1].digest) is not None


def test_only_the_user_may_read_what_is_kept(state: Path) -> None:
    before = os.umask(0)
    try:
        history = opened(state)
        workspace = Workspace()
        assert history.record([workspace.seen(META, meta("partial"))], workspace.text_of)
        assert stat.S_IMODE(state.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in state.iterdir()} == {0o600}
    finally:
        os.umask(before)


def test_nothing_is_acknowledged_while_the_disk_refuses_and_all_is_written_later(state: Path) -> None:
    workspace = Workspace()
    history = opened(state)
    pages = sqlite3.connect(state / "history.db", isolation_level=None)
    blocker = pages.execute("BEGIN IMMEDIATE")
    history._source.writer.execute("PRAGMA busy_timeout = 1")  # type: ignore[union-attr]
    assert not history.record([workspace.seen(META, meta("in_progress"))], workspace.text_of)
    assert history.notice is not None
    assert "not saved" in history.notice
    assert history.waiting == 1
    blocker.execute("ROLLBACK")
    pages.close()
    assert history.record([workspace.seen(META, meta("partial"))], lambda _: None)
    assert (history.notice, history.waiting) == (None, 0)
    assert len(seen_in(history)) == 2


def test_where_nothing_can_be_kept_it_says_so_and_goes_on(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no directory")
    history = History.open(tmp_path, blocked / "state")
    workspace = Workspace()
    seen = workspace.seen(META, meta("partial"))
    assert history.notice is not None
    assert "remembered only until" in history.notice
    assert not history.record([seen], workspace.text_of)
    assert (seen_in(history), history.text(seen.digest), history.files()) == ([], None, {})
    blocked.unlink()
    assert history.record([], workspace.text_of)
    assert history.notice is None
    assert facts(seen_in(history)) == [(META, seen.digest)]


def test_a_state_directory_removed_while_it_runs_is_made_again(state: Path) -> None:
    workspace = Workspace()
    history = opened(state)
    assert history.record([workspace.seen(META, meta("in_progress"))], workspace.text_of)
    for file in state.iterdir():
        file.unlink()
    state.rmdir()
    last = workspace.seen(META, meta("partial"))
    assert history.record([last], workspace.text_of)
    history.close()
    assert facts(seen_in(opened(state))) == [(META, last.digest)]


def test_after_it_was_closed_nothing_breaks(state: Path) -> None:
    workspace = Workspace()
    history = opened(state)
    history.close()
    assert not history.record([workspace.seen(META, meta("partial"))], workspace.text_of)
    assert seen_in(history) == []
