"""What is put aside asks nothing for as long as it stays as it is, and what is looked at is not new."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.delegation.events import Recorder, handoff, returned, tree_of
from tests.unit.delegation.test_interleaving import Deciding, Step, decided, drawn_steps, interleaved, record

from agentwatch.contracts.shapes import Finding, Outcome, Severity
from agentwatch.delegation.asks import mark_of
from agentwatch.delegation.decision import Action
from agentwatch.delegation.events import Aside, Decided, Event, Looked, Noted, Put, Ran, Tick, Unreadable
from agentwatch.delegation.run import Run, RunState
from agentwatch.delegation.tree import Tree
from agentwatch.view.document import tree_document

FAILED = returned("failed", task_id="a")


def acknowledged(tree: Tree, task_id: str = "a") -> Noted:
    return Noted(0, 2_000.0, task_id, Aside(Put(mark_of(tree.tasks[task_id]), 2_000.0)))


def snoozed(tree: Tree, until: float | None, task_id: str = "a") -> Noted:
    return Noted(0, 2_000.0, task_id, Aside(Put(mark_of(tree.tasks[task_id]), 2_000.0, snoozed=True, until=until)))


def failing() -> tuple[Recorder, Tree]:
    """A task `a` that has failed and asks, below `lead`."""
    record = Recorder()
    return record, tree_of(failure(record))


def failure(record: Recorder) -> list[Event]:
    return [
        record.seen("lead.handoff.json", handoff("lead")),
        record.seen("a.handoff.json", handoff("a", parent_task_id="lead")),
        record.seen("a.return.md", FAILED),
    ]


def stands(tree: Tree, task_id: str = "a") -> tuple[bool, bool, bool]:
    task = tree.tasks[task_id]
    assert task.question is not None
    assert (task_id in tree.queue) == task.needs_operator
    return task.needs_operator, task.acknowledged, task.snoozed


def test_what_is_acknowledged_asks_nothing_and_keeps_its_question() -> None:
    _, tree = failing()
    assert stands(tree) == (True, False, False)
    lead = tree.tasks["lead"]
    assert lead.below is not None
    assert lead.below.needs_operator == 1
    assert tree.apply(acknowledged(tree)) >= {"a", "lead"}
    assert stands(tree) == (False, True, False)
    assert (lead.below.needs_operator, tree.totals.needs_operator) == (0, 0)
    assert tree.put_aside() == [tree.tasks["a"]]
    tree.apply(Noted(0, 2_001.0, "a", Aside()))
    assert stands(tree) == (True, False, False)
    assert (lead.below.needs_operator, tree.put_aside()) == (1, [])


def test_it_does_so_before_the_task_is_seen() -> None:
    _, tree = failing()
    early = tree_of([acknowledged(tree), *failure(Recorder())])
    assert stands(early) == (False, True, False)


def test_a_new_failure_asks_again() -> None:
    record, tree = failing()
    tree.apply(acknowledged(tree))
    tree.apply(record.seen("a.return.md", returned("failed", task_id="a", error_message="once more")))
    assert stands(tree) == (True, False, False)
    tree.apply(acknowledged(tree))
    tree.apply(record.seen("a.handoff.json", handoff("a", parent_task_id="lead", attempt=2)))
    assert not tree.tasks["a"].acknowledged
    tree.apply(record.seen("a.return.md", returned("failed", task_id="a", attempt=2)))
    assert stands(tree) == (True, False, False)


def test_a_mere_touch_is_no_change() -> None:
    _, tree = failing()
    tree.apply(acknowledged(tree))
    again = failure(Recorder())[-1]
    tree.apply(again._replace(seq=90, at=9_000.0))
    assert stands(tree) == (False, True, False)


def test_another_question_about_the_same_return_asks_again() -> None:
    _, tree = failing()
    tree.apply(acknowledged(tree))
    tree.apply(Unreadable(9, 2_000.0, "a.return.md", Finding("SRC001", Severity.ERROR, "cannot be read", 1)))
    assert stands(tree) == (True, False, False)


def test_which_claims_are_false_is_no_change_and_that_one_is_false_is_one() -> None:
    record = Recorder()
    done = record.seen("a.return.md", replace(returned("completed", task_id="a"), review_reason="look"))
    tree = tree_of([record.seen("a.handoff.json", handoff("a")), done])
    tree.apply(acknowledged(tree))
    assert stands(tree) == (False, True, False)
    tree.apply(record.checked("a.return.md", done.digest, "verified", "contradicted"))
    assert stands(tree) == (True, False, False)
    tree.apply(acknowledged(tree))
    tree.apply(record.checked("a.return.md", done.digest, "contradicted", "contradicted", "contradicted"))
    assert stands(tree) == (False, True, False)


def test_a_snooze_ends_by_time_and_with_a_clock_that_goes_back_it_goes_on() -> None:
    _, tree = failing()
    tree.apply(Tick(5, 2_000.0))
    tree.apply(snoozed(tree, 3_800.0))
    assert stands(tree) == (False, False, True)
    assert tree.tasks["a"].snoozed_until == 3_800.0
    assert "a" not in tree.apply(Tick(6, 3_799.0))
    assert "a" in tree.apply(Tick(7, 3_800.0))
    assert stands(tree) == (True, False, False)
    tree.apply(Tick(8, 3_000.0))
    assert stands(tree) == (False, False, True)
    tree.apply(Tick(9, 3_900.0))
    assert stands(tree) == (True, False, False)
    tree.apply(snoozed(tree, 3_850.0))
    assert stands(tree) == (True, False, False)


def test_a_snooze_ends_with_a_change() -> None:
    for until in (None, 9_000.0):
        record, tree = failing()
        tree.apply(Tick(5, 2_000.0))
        tree.apply(snoozed(tree, until))
        tree.apply(Tick(6, 8_999.0))
        assert stands(tree) == (False, False, True)
        tree.apply(record.seen("a.return.md", returned("blocked", task_id="a")))
        assert stands(tree) == (True, False, False)


def decide(tree: Tree, action: Action) -> Decided:
    """A decision about the latest attempt of `a`."""
    latest = tree.tasks["a"].latest
    assert latest is not None
    assert latest.handoff is not None
    assert latest.returned is not None
    return decided(900, Deciding("a", action), latest.returned.digest, latest.handoff.digest, is_read=False)


def test_a_decision_that_has_expired_asks_again_whatever_was_acknowledged_before() -> None:
    _, tree = failing()
    tree.apply(Tick(5, 2_000.0))
    tree.apply(acknowledged(tree))
    event = decide(tree, Action.RETRY)
    tree.apply(event._replace(decision=replace(event.decision, expires_at=2_100.0)))
    assert tree.tasks["a"].question is None
    tree.apply(Tick(7, 2_100.0))
    assert stands(tree) == (True, False, False)


def waiting(at: float, **more: object) -> Ran:
    run = Run(
        source="claude-code",
        session_id="s1",
        parent_session="s0",
        state=RunState.WORKING,
        place="/s1.jsonl",
        started_at=1_000.0,
        updated_at=at,
        waiting="a permission: Bash",
    )
    return Ran(1, at, "claude-code:s1", replace(run, **more))  # type: ignore[arg-type]


def test_a_session_that_waits_once_more_for_the_same_thing_asks_again() -> None:
    tree = tree_of([waiting(1_500.0)])
    (task_id,) = (task.task_id for task in tree.tasks.values() if task.question)
    tree.apply(acknowledged(tree, task_id))
    assert stands(tree, task_id) == (False, True, False)
    tree.apply(waiting(1_600.0, waiting=""))
    tree.apply(waiting(1_700.0))
    assert stands(tree, task_id) == (True, False, False)


def test_the_history_counts_what_was_never_acknowledged() -> None:
    tree = tree_of(failure(Recorder()), history_before=5_000.0)
    task = tree.tasks["a"]
    assert (task.past, tree.past_questions()) == (True, [task])
    tree.apply(acknowledged(tree))
    assert (task.past, task.acknowledged, tree.past_questions()) == (True, True, [])


# What is new


def test_where_nobody_looks_nothing_is_new() -> None:
    _, tree = failing()
    assert tree.tasks["a"].seen
    assert not tree.unseen


def test_what_was_there_at_the_first_look_is_not_new_and_what_comes_later_is() -> None:
    record, tree = failing()
    assert tree.apply(Looked(0, 1_003.0)) == {"lead", "a"}
    assert list(tree.unseen) == []
    tree.apply(record.seen("b.return.md", returned("completed", task_id="b")))
    tree.apply(record.seen("c.return.md", returned("failed", task_id="c")))
    tree.apply(record.seen("d.handoff.json", handoff("d")))
    assert list(tree.unseen) == ["c", "b"]
    assert [task.task_id for task in tree.tasks.values() if not task.seen] == ["b", "c"]


def test_what_was_looked_at_is_new_again_when_it_changes() -> None:
    record, tree = failing()
    tree.apply(Looked(0, 1_000.0))
    assert list(tree.unseen) == ["a"]
    tree.apply(Noted(0, 2_000.0, "a", Aside(seen=mark_of(tree.tasks["a"]))))
    assert list(tree.unseen) == []
    tree.apply(record.seen("a.return.md", returned("blocked", task_id="a")))
    assert list(tree.unseen) == ["a"]
    tree.apply(record.seen("a.return.md", returned("working", task_id="a")))
    assert list(tree.unseen) == []
    tree.apply(record.seen("a.return.md", FAILED))
    assert list(tree.unseen) == ["a"]
    tree.apply(record.gone("a.handoff.json"))
    tree.apply(record.gone("a.return.md"))
    assert ("a" in tree.tasks, list(tree.unseen)) == (True, ["a"])


def test_what_was_put_aside_is_known() -> None:
    for note in (acknowledged, lambda tree: snoozed(tree, 1.0)):
        _, tree = failing()
        tree.apply(Tick(5, 2_000.0))
        tree.apply(Looked(0, 1_000.0))
        tree.apply(note(tree))
        assert tree.tasks["a"].seen


def test_what_the_operator_decided_is_not_new() -> None:
    _, tree = failing()
    tree.apply(Looked(0, 1_000.0))
    tree.apply(decide(tree, Action.ABORT))
    assert list(tree.unseen) == []


@given(st.lists(drawn_steps, max_size=14), st.lists(st.integers(0, 12), max_size=14), st.data())
def test_any_interleaving_gives_the_same_tree(steps: list[Step], order: list[int], data: st.DataObject) -> None:
    events = record(steps)
    end = tree_of(events)
    ids = sorted(end.tasks)
    notes: list[Event] = [
        Noted(0, 2_000.0, task_id, Aside(data.draw(puts(mark_of(end.tasks[task_id]))), data.draw(looks(end, task_id))))
        for task_id in data.draw(st.lists(st.sampled_from(ids), unique=True) if ids else st.just([]))
    ]
    if data.draw(st.booleans()):
        notes.append(Looked(0, 1_004.0))
    expected = tree_of([*events, *notes])
    assert tree_document(tree_of(interleaved([*notes, *events], order)), "/w") == tree_document(expected, "/w")
    assert list(expected.unseen) == sorted(
        (name for name, task in expected.tasks.items() if not task.seen),
        key=lambda name: (-max(expected.tasks[name].updated_at, expected.tasks[name].ended_at or 0.0), name),
    )
    for task in expected.tasks.values():
        assert task.ask == (None if task.acknowledged or task.snoozed else task.question)


def puts(mark: str) -> st.SearchStrategy[Put | None]:
    until = st.sampled_from([None, 500.0, 5_000.0])
    put = st.builds(Put, st.sampled_from([mark, "another"]), st.just(2_000.0), st.booleans(), until)
    return st.one_of(st.none(), put.map(lambda one: one if one.snoozed else one._replace(until=None)))


def looks(tree: Tree, task_id: str) -> st.SearchStrategy[str | None]:
    return st.sampled_from([None, mark_of(tree.tasks[task_id]), "another"])


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.FAILED])
def test_a_mark_is_short_text_whatever_the_task_says(outcome: Outcome) -> None:
    tree = tree_of([Recorder().seen("a.return.md", returned(outcome, task_id="a", error_message="\ud800" * 10_000))])
    assert len(mark_of(tree.tasks["a"])) < 40
