"""What is left out of the tree for being old, and what brings it back."""

from __future__ import annotations

from tests.unit.delegation.events import Recorder, handoff, meta, outline, returned, tree_of
from tests.unit.delegation.test_runs import child, message

from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.delegation.events import Ran, Tick, Unreadable
from agentwatch.delegation.tree import Tree

SINCE = 2_000.0


def late(record: Recorder) -> Recorder:
    """What is recorded from now on is from after the line."""
    record.seq += 1_500
    return record


def old_and_new() -> tuple[Recorder, Tree]:
    record = Recorder()
    events = [
        record.seen("a.handoff.json", handoff("a")),
        record.seen("a.return.md", returned("failed", task_id="a")),
        record.seen("b.handoff.json", handoff("b")),
        record.seen("b.one.handoff.json", handoff("b.one", parent_task_id="b")),
        record.seen("b.two.handoff.json", handoff("b.two", parent_task_id="b")),
    ]
    late(record)
    events.append(record.seen("b.one.return.md", returned("failed", task_id="b.one")))
    return record, tree_of([*events, Tick(record.seq, 3_000.0)])


def test_what_is_old_is_left_out_and_what_is_above_a_sign_of_life_stays() -> None:
    _, tree = old_and_new()
    assert [task.task_id for task in tree.asking()] == ["b.one", "a"]
    assert tree.leave_out(SINCE) >= {"a", "b.two"}
    assert outline(tree) == ["b working", "  b.one failed"]
    assert tree.left_out == {"a", "b.two"}
    assert (tree.totals.tasks, tree.totals.needs_operator) == (2, 1)
    assert [task.task_id for task in tree.asking()] == ["b.one"]
    assert [task.task_id for task in tree.past_questions()] == []


def test_time_alone_brings_nothing_back() -> None:
    _, tree = old_and_new()
    tree.leave_out(SINCE)
    tree.apply(Tick(9_999, 1e6))
    assert tree.left_out == {"a", "b.two"}
    assert tree.totals.tasks == 2


def test_a_new_file_brings_a_task_back_whole() -> None:
    record, tree = old_and_new()
    tree.leave_out(SINCE)
    assert "a" in tree.apply(record.seen("a.return.md", returned("completed", task_id="a")))
    assert tree.left_out == {"b.two"}
    task = tree.tasks["a"]
    assert task.packet is not None
    assert task.packet.objective == "objective of a"
    assert task.state == "completed"


def test_a_child_brings_back_its_parent_and_what_is_above_it() -> None:
    record = Recorder()
    tree = tree_of(
        [
            record.seen("a.handoff.json", handoff("a")),
            record.seen("m.handoff.json", handoff("m", parent_task_id="a")),
            record.seen("z.handoff.json", handoff("z")),
        ]
    )
    tree.leave_out(SINCE)
    assert not tree.tasks
    late(record)
    tree.apply(record.seen("new.handoff.json", handoff("new", parent_task_id="m")))
    assert outline(tree) == ["a working", "  m working", "    new submitted"]
    assert tree.left_out == {"z"}
    assert not tree.tasks["new"].findings


def test_what_is_only_named_comes_back_with_what_names_it() -> None:
    record = Recorder()
    tree = tree_of([record.seen("one/.return-meta.json", meta("completed", "orchestrator", "research", session="s"))])
    tree.leave_out(SINCE)
    assert not tree.tasks
    late(record)
    tree.apply(record.seen("two/.return-meta.json", meta("completed", "orchestrator", "research", session="s")))
    assert tree.tasks
    assert all(task.parent_id is None or task.parent_id in tree.tasks for task in tree.tasks.values())


def test_a_file_that_cannot_be_read_now_is_a_sign_of_life() -> None:
    record = Recorder()
    tree = tree_of([record.seen("a.handoff.json", handoff("a"))])
    finding = Finding("SRC004", Severity.ERROR, "cannot be opened", None)
    tree.apply(Unreadable(2, SINCE + 1, "a.return.md", finding))
    assert "a.return.md is not read" in str(tree.tasks["a"].question)
    tree.leave_out(SINCE)
    assert not tree.left_out


def test_leaving_out_and_all_of_it_again_is_the_tree_as_it_was() -> None:
    record, tree = old_and_new()
    before = outline(tree)
    tree.leave_out(SINCE)
    tree.apply(record.seen("b.two.handoff.json", handoff("b.two", parent_task_id="b")))
    tree.apply(record.seen("a.return.md", returned("failed", task_id="a")))
    assert sorted(outline(tree)) == sorted(before)
    assert tree.totals.tasks == 4


def test_what_sessions_did_stays_however_old_and_what_is_above_it() -> None:
    record = Recorder()
    tree = tree_of([record.seen("a.handoff.json", handoff("a")), record.seen("c.handoff.json", handoff("c"))])
    asked = message(handoff("a.b", parent_task_id="a"), at=110.0)
    tree.apply(Ran(9, 120.0, "agents:s", child("s", prompt=asked)))
    assert tree.tasks["a.b"].parent_id == "a"
    tree.leave_out(SINCE)
    assert tree.tasks.keys() == {"a", "a.b"}
