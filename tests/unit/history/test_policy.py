"""What is given up when the history is too large: superseded versions, oldest first; never a latest attempt."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agentwatch.delegation.events import Seen
from agentwatch.delegation.task import State, Task
from agentwatch.history.outline import content_of, outline_of
from agentwatch.history.room import superseded
from agentwatch.history.store import History
from tests.unit.delegation.events import Recorder, returned
from tests.unit.history.recorded import META, Workspace, meta, packet, seen_in, tree_of

_UNDECIDED = {State.FAILED, State.INVALID, State.BLOCKED}


def sizes_of(versions: list[Seen]) -> dict[str, int]:
    return {seen.digest: 100 for seen in versions}


def attempts_of(task: Task) -> list[tuple[object, ...]]:
    return [(one.number, one.state, one.session_id, one.started_at) for one in task.attempts]


@st.composite
def sessions(draw: st.DrawFn) -> list[Seen]:
    """Handoffs and returns of a few tasks, rewritten in place and in files of their own."""
    workspace = Workspace()
    versions = []
    for _ in range(draw(st.integers(1, 30))):
        task = draw(st.sampled_from("abc"))
        kind = draw(st.sampled_from(("handoff", "return", "numbered", "meta")))
        number = draw(st.integers(1, 4))
        if kind == "handoff":
            versions.append(workspace.seen(f"{task}.handoff.json", packet(task, f"try {number}")))
        elif kind == "numbered":
            path = f"n{task}-{number}.handoff.json"
            versions.append(workspace.seen(path, packet(f"n{task}", "build", number)))
        elif kind == "return":
            state = draw(st.sampled_from(("SUCCESS", "ERROR", "PARTIAL")))
            text = f"## Status\nstate: {state}\nsummary: {number}\n"
            versions.append(workspace.seen(f"{task}.return.md", text))
        else:
            status = draw(st.sampled_from(("in_progress", "implemented", "blocked", "nonsense")))
            versions.append(workspace.seen(f"{task}/.return-meta.json", meta(status, f"sess_{number}")))
    return versions


@given(sessions(), st.floats(0, 1.2))
def test_no_latest_attempt_loses_a_text(versions: list[Seen], share: float) -> None:
    sizes = sizes_of(versions)
    limit = int(sum(sizes.values()) * share)
    dropped = set(superseded(versions, sizes, limit))
    for task in tree_of(list(versions)).tasks.values():
        undecided = [one for one in task.attempts if one.state in _UNDECIDED and one is task.latest]
        for attempt in [task.latest, *undecided]:
            assert attempt is not None
            parts = [part.digest for part in (attempt.handoff, attempt.returned) if part]
            assert not dropped.intersection(parts)


@given(sessions(), st.floats(0, 1.2))
def test_no_more_is_dropped_than_is_too_much_and_the_oldest_goes_first(versions: list[Seen], share: float) -> None:
    sizes = sizes_of(versions)
    limit = int(sum(sizes.values()) * share)
    dropped = superseded(versions, sizes, limit)
    left = sum(sizes.values()) - sum(sizes[digest] for digest in dropped)
    assert not dropped or left + sizes[dropped[-1]] > limit
    all_that_could_go = superseded(versions, sizes, 0)
    assert dropped == all_that_could_go[: len(dropped)]
    assert left <= limit or dropped == all_that_could_go
    ages = {seen.digest: age for age, seen in enumerate(versions)}
    assert [ages[digest] for digest in dropped] == sorted(ages[digest] for digest in dropped)


@given(sessions())
def test_without_any_text_the_attempts_are_counted_and_judged_as_before(versions: list[Seen]) -> None:
    again = []
    for seen in versions:
        content = content_of(seen.path, None, outline_of(seen))
        assert content is not None
        again.append(
            Seen(seen.seq, seen.at, seen.path, seen.digest, content.document, content.findings, content.incomplete)
        )
    before, after = tree_of(list(versions)), tree_of(list(again))
    assert list(before.tasks) == list(after.tasks)
    for task_id, task in before.tasks.items():
        assert attempts_of(task) == attempts_of(after.tasks[task_id])
        assert (task.state, task.parent_id, task.agent, task.retry.remaining) == (
            after.tasks[task_id].state,
            after.tasks[task_id].parent_id,
            after.tasks[task_id].agent,
            after.tasks[task_id].retry.remaining,
        )


def test_a_text_that_nothing_speaks_of_any_more_goes_first() -> None:
    workspace = Workspace()
    versions = [workspace.seen(META, meta("partial", f"sess_{number}")) for number in range(3)]
    sizes = {**sizes_of(versions), "f" * 64: 100}
    assert superseded(versions, sizes, 300) == ["f" * 64]


def test_the_last_content_of_a_checklist_and_of_a_second_return_stay() -> None:
    workspace = Workspace()
    versions = [
        workspace.seen("x.handoff.json", packet("x")),
        workspace.seen("x.todos.md", "# Todos\n\n- [ ] one\n"),
        workspace.seen("x.todos.md", "# Todos\n\n- [x] one\n"),
        workspace.seen("x.return.md", "## Status\nstate: SUCCESS\nsummary: first\n"),
        workspace.seen("returns/x.md", "## Status\nstate: SUCCESS\nsummary: a duplicate\n"),
    ]
    assert superseded(versions, sizes_of(versions), 0) == [versions[1].digest]


def test_a_content_that_came_back_is_as_young_as_its_last_appearance() -> None:
    workspace = Workspace()
    texts = [meta("partial", session) for session in ("sess_1", "sess_2", "sess_1", "sess_3")]
    versions = [workspace.seen(META, text) for text in texts]
    assert superseded(versions, sizes_of(versions), 200)[0] == versions[1].digest


def test_above_the_bound_old_texts_go_and_all_attempts_stay_counted(tmp_path: Path) -> None:
    workspace = Workspace()
    versions = [workspace.seen(META, meta("blocked", f"sess_{number}", "word " * number)) for number in range(60)]
    waiting = workspace.seen("w/.return-meta.json", meta("blocked", "sess_w"))
    history = History.open(tmp_path, tmp_path / "state", limit=3_000)
    assert history.record([waiting], workspace.text_of)
    for seen in versions:
        assert history.record([seen], workspace.text_of)
    kept = [seen.digest for seen in versions if history.text(seen.digest) is not None]
    assert kept == [seen.digest for seen in versions[-len(kept) :]]
    assert 0 < len(kept) < 30
    assert history.text(waiting.digest) is not None
    stored = seen_in(history)
    assert [seen.digest for seen in stored] == [waiting.digest, *(seen.digest for seen in versions)]
    tree = tree_of(list(stored))
    assert max(task.attempt for task in tree.tasks.values()) == 60
    assert history.notice is None


def test_latest_attempts_stay_even_above_the_bound_and_that_is_said(tmp_path: Path) -> None:
    workspace = Workspace()
    history = History.open(tmp_path, tmp_path / "state", limit=1_000)
    seen = [workspace.seen(f"{number}/.return-meta.json", meta("blocked", agent=f"a{number}")) for number in range(40)]
    assert history.record(seen, workspace.text_of)
    assert all(history.text(one.digest) is not None for one in seen)
    assert "never dropped" in (history.notice or "")


def test_a_version_that_is_nothing_of_its_name_today_stays_what_it_was() -> None:
    seen = Recorder().seen("a.handoff.json", returned("completed"))
    content = content_of(seen.path, '{"ok": true}', outline_of(seen))
    assert content is not None
    assert content.document == seen.document
