"""What is put aside asks nothing for as long as it stays as it is, and what is looked at is not new."""

from dataclasses import replace

import pytest

from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.delegation.decision import Action
from agentwatch.delegation.events import Aside, Decided, Event, Looked, Noted, Put, RunState, Tick, Unreadable
from agentwatch.delegation.standing import mark_of
from agentwatch.delegation.tree import Tree
from tests.unit.delegation.events import Recorder, child, decided, handoff, ran, returned, tree_of

FAILED = returned("failed", task_id="a")
ASKS, ACKNOWLEDGED, SNOOZED = (True, False, False), (False, True, False), (False, False, True)
UNREADABLE = Unreadable(9, 2_000.0, "a.return.md", Finding("SRC001", Severity.ERROR, "cannot be read", 1))


def note(tree: Tree, task_id: str = "a", **snooze: object) -> Noted:
    """Acknowledge a task as it is, or snooze it `until` a time."""
    put = Put(mark_of(tree.tasks[task_id]), 2_000.0)._replace(snoozed=bool(snooze), **snooze)
    return Noted(0, 2_000.0, task_id, Aside(put))


def failure(record: Recorder) -> list[Event]:
    """A task `a` that has failed and asks, below `lead`."""
    return [
        record.seen("lead.handoff.json", handoff("lead")),
        record.seen("a.handoff.json", handoff("a", parent_task_id="lead")),
        record.seen("a.return.md", FAILED),
    ]


def failing(*more: Event) -> tuple[Recorder, Tree]:
    record = Recorder()
    return record, tree_of([*failure(record), Tick(5, 2_000.0), *more])


def stands(tree: Tree, task_id: str = "a") -> tuple[bool, bool, bool]:
    task = tree.tasks[task_id]
    assert task.question is not None
    assert (task_id in tree.queue) == task.needs_operator
    return task.needs_operator, task.acknowledged, task.snoozed


def test_what_is_acknowledged_asks_nothing_and_keeps_its_question():
    _, tree = failing()
    lead = tree.tasks["lead"]
    assert lead.below is not None
    assert (stands(tree), lead.below.needs_operator) == (ASKS, 1)
    acknowledged = note(tree)
    assert tree.apply(acknowledged) >= {"a", "lead"}
    assert (stands(tree), lead.below.needs_operator, tree.totals.needs_operator) == (ACKNOWLEDGED, 0, 0)
    assert tree.put_aside() == [tree.tasks["a"]]
    tree.apply(Noted(0, 2_001.0, "a", Aside()))
    assert (stands(tree), lead.below.needs_operator, tree.put_aside()) == (ASKS, 1, [])
    early = tree_of([acknowledged, *failure(Recorder())])
    assert stands(early) == ACKNOWLEDGED, "before the task is seen"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda record: record.seen("a.return.md", replace(FAILED, error_message="once more")), ASKS),
        (lambda _: failure(Recorder())[-1]._replace(seq=90, at=9_000.0), ACKNOWLEDGED),
        (lambda _: UNREADABLE, ASKS),
    ],
)
def test_a_change_of_the_question_or_its_return_asks_again(change, expected):
    record, tree = failing()
    tree.apply(note(tree))
    tree.apply(change(record))
    assert stands(tree) == expected


def test_that_a_claim_is_false_is_a_change_and_which_one_is_none():
    record = Recorder()
    done = record.seen("a.return.md", replace(returned("completed", task_id="a"), review_reason="look"))
    tree = tree_of([record.seen("a.handoff.json", handoff("a")), done])
    tree.apply(note(tree))
    tree.apply(record.checked("a.return.md", done.digest, "verified", "contradicted"))
    assert stands(tree) == ASKS
    tree.apply(note(tree))
    since = tree.tasks["a"].since
    again = record.checked("a.return.md", done.digest, "contradicted", "contradicted", "contradicted")
    tree.apply(again._replace(at=tree.checked_at(done, again.claims, again.at)))
    assert (stands(tree), tree.tasks["a"].since) == (ACKNOWLEDGED, since)
    # That it is true again is a change, too: it is new, and as old as that.
    last = record.checked("a.return.md", done.digest, "verified")
    tree.apply(Looked(0, 0.0), last)
    assert (stands(tree), tree.tasks["a"].since, tree.tasks["a"].seen) == (ASKS, last.at, False)


def test_a_snooze_ends_by_time_and_goes_on_when_the_clock_goes_back():
    _, tree = failing()
    tree.apply(note(tree, until=3_800.0))
    assert (stands(tree), tree.tasks["a"].snoozed_until) == (SNOOZED, 3_800.0)
    for at, changes, expected in ((3_799.0, False, SNOOZED), (3_800.0, True, ASKS), (3_000.0, True, SNOOZED)):
        assert ("a" in tree.apply(Tick(6, at))) == changes
        assert stands(tree) == expected
    tree.apply(Tick(9, 3_900.0), note(tree, until=3_850.0))
    assert stands(tree) == ASKS


@pytest.mark.parametrize("until", [None, 9_000.0])
def test_a_snooze_ends_with_a_change(until):
    record, tree = failing()
    tree.apply(note(tree, until=until))
    tree.apply(Tick(6, 8_999.0))
    assert stands(tree) == SNOOZED
    tree.apply(record.seen("a.return.md", returned("blocked", task_id="a")))
    assert stands(tree) == ASKS


def decide(tree: Tree, action: Action, **more: object) -> Decided:
    """A decision about the latest attempt of `a`."""
    latest = tree.tasks["a"].latest
    digest = latest.returned.digest if latest and latest.returned else None
    return decided("a", action, 1_900.0, return_sha256=digest, **more)


def test_an_expired_decision_asks_again_whatever_was_acknowledged():
    _, tree = failing()
    tree.apply(note(tree))
    tree.apply(decide(tree, Action.RETRY, expires_at=2_100.0))
    assert tree.tasks["a"].question is None
    tree.apply(Tick(7, 2_100.0))
    assert stands(tree) == ASKS


def test_a_session_that_waits_once_more_for_the_same_asks_again():
    waits = child("s1", waiting="a permission: Bash")
    tree = tree_of(ran(waits))
    tree.apply(note(tree, "s1"))
    assert stands(tree, "s1") == ACKNOWLEDGED
    tree.apply(*ran(replace(waits, waiting="", updated_at=130.0)))
    tree.apply(*ran(replace(waits, updated_at=140.0)))
    assert stands(tree, "s1") == ASKS


def test_a_child_that_fails_once_more_in_the_same_way_asks_again():
    failed = child("s1", RunState.FAILED, ended_at=120.0, reason="timeout")
    tree = tree_of(ran(failed))
    tree.apply(note(tree, "s1"))
    assert stands(tree, "s1") == ACKNOWLEDGED
    tree.apply(*ran(replace(failed, ended_at=140.0, updated_at=140.0)))
    assert stands(tree, "s1") == ASKS


def test_the_history_counts_what_was_never_acknowledged():
    tree = tree_of(failure(Recorder()), history_before=5_000.0)
    task = tree.tasks["a"]
    assert (task.past, tree.past_questions()) == (True, [task])
    tree.apply(note(tree))
    assert (task.past, task.acknowledged, tree.past_questions()) == (True, True, [])


# What is new


def test_what_was_there_at_the_first_look_is_not_new():
    record, tree = failing()
    assert (tree.tasks["a"].seen, tree.unseen) == (True, []), "where nobody looks, nothing is new"
    assert tree.apply(Looked(0, 1_003.0)) == {"lead", "a"}
    assert tree.unseen == []
    for name, document in (("b", returned("completed")), ("c", FAILED), ("d", handoff("d"))):
        tree.apply(record.seen(f"{name}.md", replace(document, task_id=name)))
    assert tree.unseen == ["c", "b"]


def test_what_was_looked_at_is_new_again_when_it_changes():
    record, tree = failing(Looked(0, 1_000.0))
    assert tree.unseen == ["a"]
    tree.apply(Noted(0, 2_000.0, "a", Aside(seen=mark_of(tree.tasks["a"]))))
    assert tree.unseen == []
    for outcome, unseen in (("blocked", ["a"]), ("working", []), ("failed", ["a"])):
        tree.apply(record.seen("a.return.md", returned(outcome, task_id="a")))
        assert tree.unseen == unseen


def test_what_was_put_aside_or_decided_is_not_new():
    for make in (note, lambda tree: note(tree, until=1.0), lambda tree: decide(tree, Action.ABORT)):
        _, tree = failing(Looked(0, 1_000.0))
        tree.apply(make(tree))
        assert tree.unseen == []


def test_a_mark_is_short_text_whatever_the_task_says():
    said = replace(FAILED, error_message="\ud800" * 10_000)
    assert len(mark_of(tree_of([Recorder().seen("a.return.md", said)]).tasks["a"])) < 40
