"""The state of a task and of its parent, since when it holds, and its words, by their sessions and requests."""

from dataclasses import replace

import pytest

from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.delegation.decision import Action
from agentwatch.delegation.events import (
    Activity,
    ActivityKind,
    Aside,
    Decided,
    Event,
    Looked,
    Noted,
    Put,
    Requested,
    Run,
    RunState,
    Tick,
    Turn,
    Unreadable,
)
from agentwatch.delegation.standing import mark_of
from agentwatch.delegation.task import Task
from agentwatch.delegation.tree import Tree
from agentwatch.view.words import a2a_state, delay_of, span_of
from tests.unit.delegation.asking import request
from tests.unit.delegation.events import ROOT, Recorder, child, decided, handoff, message, ran, returned, tree_of

NOW = 1_000.0
CALL = Activity(105.0, ActivityKind.TOOL, "Task", "build")
BASH = Activity(990.0, ActivityKind.TOOL, "Bash", "make")
HANDS_ON = replace(ROOT, doing=CALL, updated_at=105.0)
TYPES = replace(ROOT, doing=BASH, updated_at=990.0)
ENDED = replace(ROOT, state=RunState.ENDED, said=message(None), ended_at=900.0, updated_at=900.0)
AT_WORK = child("b", updated_at=990.0)
QUIET = child("b", updated_at=280.0)
KILLED = replace(QUIET, process_gone=True)
FAILED = child("b", RunState.FAILED, ended_at=500.0, reason="refused")
DONE = child("b", RunState.ENDED, said=message(returned("completed")), ended_at=600.0)
TURNED = replace(TYPES, rounds=(Turn(100.0), Turn(950.0)))


def asking(asked_at: float, ended_at: float | None = None, **more: object) -> Requested:
    one = request(asked_at=asked_at, source="agents", session_id="b", **more)
    return Requested(9, asked_at, one.request_id, replace(one, ended_at=ended_at))


@pytest.mark.parametrize(
    ("top", "below", "requests", "stands", "words"),
    [
        (ROOT, [], [], ("silent", 100), ""),
        (TYPES, [], [], ("working", 100), ""),
        (TURNED, [], [], ("working", 950), ""),
        (replace(ROOT, process_gone=True), [], [], ("gone", 100), ""),
        (ENDED, [], [], ("idle", 900), ""),
        (replace(ENDED, process_gone=True), [], [], ("completed", 900), ""),
        (replace(ENDED, one_shot=True), [], [], ("completed", 900), ""),
        (HANDS_ON, [AT_WORK], [], ("working", 100), ""),
        (HANDS_ON, [QUIET], [], ("waiting", 280), "waits for title of b, silent 12m"),
        (replace(HANDS_ON, process_gone=True), [KILLED], [], ("gone", 280), ""),
        (HANDS_ON, [KILLED], [], ("waiting", 280), "waits for you: title of b"),
        (HANDS_ON, [AT_WORK], [asking(700.0)], ("waiting", 700), "waits for you: title of b"),
        (HANDS_ON, [AT_WORK], [asking(700.0, 800.0, stage="acted")], ("working", 800), ""),
        (HANDS_ON, [FAILED], [], ("waiting", 500), "waits for you: title of b"),
        (HANDS_ON, [FAILED, child("c", updated_at=990.0)], [], ("working", 100), ""),
        (TYPES, [FAILED], [], ("working", 100), ""),
        (HANDS_ON, [child("b", RunState.SUBMITTED)], [], ("waiting", 110), "waits for title of b, not started for 14m"),
        # Another child was handed out meanwhile, and the parent goes on waiting.
        (
            HANDS_ON,
            [KILLED, child("c", RunState.SUBMITTED, started_at=900.0)],
            [],
            ("waiting", 280),
            "waits for you: title of b",
        ),
        (HANDS_ON, [DONE], [], ("silent", 120), ""),
        (ENDED, [AT_WORK], [], ("working", 110), ""),
        (ENDED, [QUIET], [], ("waiting", 900), "waits for title of b, silent 12m"),
        (ENDED, [DONE], [], ("idle", 900), ""),
    ],
)
def test_the_shown_state_of_a_session_and_its_time(top, below, requests, stands, words):
    tree = tree_of([*ran(top, *below), *requests, Tick(20, NOW)])
    task = tree.tasks["root"]
    assert (str(task.shown), task.since) == stands
    assert delay_of(task, tree.tasks, NOW) == words
    assert tree.totals.shown[task.shown] >= 1


@pytest.mark.parametrize(
    ("gone", "at", "shown"), [(None, 4_499, "idle"), (None, 4_500, "completed"), (False, 9e6, "idle")]
)
def test_a_turn_is_the_operators_while_somebody_may_sit_there(gone, at, shown):
    tree = tree_of([*ran(replace(ENDED, process_gone=gone)), Tick(20, NOW)])
    tree.apply(Tick(21, at))
    task = tree.tasks["root"]
    assert (str(task.shown), task.needs_operator, str(task.state)) == (shown, False, "completed")


def task_of(run: Run) -> Task:
    return tree_of([*ran(run), Tick(20, NOW)]).tasks["root"]


def test_a_killed_session_took_as_long_as_it_lived():
    task = task_of(replace(ROOT, process_gone=True, updated_at=103.0))
    lasted = span_of(task, task.latest, 90_000.0)
    assert lasted is not None
    assert (lasted.seconds, lasted.so_far) == (3.0, False)


def test_other_programs_hear_the_shown_state_in_their_words():
    runs = [HANDS_ON, ENDED, replace(ROOT, process_gone=True)]
    assert [a2a_state(task_of(run)) for run in runs] == ["working", "input-required", "unknown"]


SAID = returned("failed", task_id="a")
ASKS, ACKNOWLEDGED, SNOOZED = (True, False, False), (False, True, False), (False, False, True)
UNREADABLE = Unreadable(9, 2_000.0, "a.return.md", Finding("SRC001", Severity.ERROR, "cannot be read", 1))


def note(tree: Tree, task_id: str = "a", **snooze: object) -> Noted:
    """Acknowledge a task in its present state, or snooze it `until` a time."""
    put = Put(mark_of(tree.tasks[task_id]), 2_000.0)._replace(snoozed=bool(snooze), **snooze)
    return Noted(0, 2_000.0, task_id, Aside(put))


def failure(record: Recorder) -> list[Event]:
    """Return the events of a task `a` below `lead` that has failed and asks."""
    return [
        record.seen("lead.handoff.json", handoff("lead")),
        record.seen("a.handoff.json", handoff("a", parent_task_id="lead")),
        record.seen("a.return.md", SAID),
    ]


def failing(*more: Event) -> tuple[Recorder, Tree]:
    record = Recorder()
    return record, tree_of([*failure(record), Tick(5, 2_000.0), *more])


def stands(tree: Tree, task_id: str = "a") -> tuple[bool, bool, bool]:
    task = tree.tasks[task_id]
    assert task.question is not None
    assert (task_id in tree.queue) == task.needs_operator
    return task.needs_operator, task.acknowledged, task.snoozed


def test_an_acknowledged_task_asks_nothing_until_it_is_undone():
    _, tree = failing()
    acknowledged, since = note(tree), tree.tasks["a"].since
    for event, expected, below in ((acknowledged, ACKNOWLEDGED, 0), (Noted(0, 2_001.0, "a", Aside()), ASKS, 1)):
        assert tree.apply(event) >= {"a", "lead"}
        assert (stands(tree), tree.totals.needs_operator, tree.tasks["a"].since) == (expected, below, since)
        assert tree.tasks_aside() == ([] if below else [tree.tasks["a"]])
    early = tree_of([acknowledged, *failure(Recorder())])
    assert stands(early) == ACKNOWLEDGED, "before the task is seen"


@pytest.mark.parametrize("snooze", [{}, {"until": None}, {"until": 9_000.0}])
@pytest.mark.parametrize(
    ("change", "asks"),
    [
        (lambda record: record.seen("a.return.md", replace(SAID, error_message="once more")), True),
        (lambda _: failure(Recorder())[-1]._replace(seq=90, at=9_000.0), False),
        (lambda _: UNREADABLE, True),
    ],
)
def test_a_change_of_the_question_or_its_return_asks_again(change, asks, snooze):
    record, tree = failing()
    tree.apply(note(tree, **snooze))
    tree.apply(Tick(6, 8_999.0), change(record))
    assert stands(tree) == (ASKS if asks else SNOOZED if snooze else ACKNOWLEDGED)


def test_a_false_claim_asks_again_and_another_one_does_not():
    record = Recorder()
    done = record.seen("a.return.md", replace(returned("completed", task_id="a"), review_reason="look"))
    tree = tree_of([record.seen("a.handoff.json", handoff("a")), done])
    tree.apply(note(tree))
    tree.apply(record.checked("a.return.md", done.digest, "verified", "contradicted"))
    assert stands(tree) == ASKS
    tree.apply(note(tree))
    since = tree.tasks["a"].since
    again = record.checked("a.return.md", done.digest, "contradicted", "contradicted", "contradicted")
    tree.apply(again._replace(at=tree.verdict_since(done, again.claims, again.at)))
    assert (stands(tree), tree.tasks["a"].since) == (ACKNOWLEDGED, since)
    # When the claim is true again, that is a change, too: it is new, and `since` is its time.
    last = record.checked("a.return.md", done.digest, "verified")
    tree.apply(Looked(0, 0.0), last)
    assert (stands(tree), tree.tasks["a"].since, tree.tasks["a"].seen) == (ASKS, last.at, False)


def test_a_snooze_goes_on_when_the_clock_goes_back():
    _, tree = failing()
    tree.apply(note(tree, until=3_800.0))
    assert (stands(tree), tree.tasks["a"].snoozed_until) == (SNOOZED, 3_800.0)
    for at, changes, expected in ((3_799.0, False, SNOOZED), (3_800.0, True, ASKS), (3_000.0, True, SNOOZED)):
        assert ("a" in tree.apply(Tick(6, at))) == changes
        assert stands(tree) == expected
    tree.apply(Tick(9, 3_900.0), note(tree, until=3_850.0))
    assert stands(tree) == ASKS


def decide(record: Recorder, action: Action, **more: object) -> Decided:
    """Return a decision about the return of `a`, which was the last event."""
    return decided("a", action, 1_900.0, return_sha256=f"{record.seq:064x}", **more)


def test_an_expired_decision_asks_though_it_was_acknowledged():
    record, tree = failing()
    tree.apply(note(tree))
    tree.apply(decide(record, Action.RETRY, expires_at=2_100.0))
    assert tree.tasks["a"].question is None
    tree.apply(Tick(7, 2_100.0))
    assert stands(tree) == ASKS


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (child("s1", waiting="a permission: Bash"), [{"waiting": "", "updated_at": 130.0}, {"updated_at": 140.0}]),
        (child("s1", RunState.FAILED, ended_at=120.0), [{"ended_at": 140.0, "updated_at": 140.0}]),
    ],
    ids=["waits", "fails"],
)
def test_a_session_that_asks_the_same_once_more_asks_again(first, then):
    tree = tree_of(ran(first))
    tree.apply(note(tree, "s1"))
    assert stands(tree, "s1") == ACKNOWLEDGED
    for changes in then:
        tree.apply(*ran(replace(first, **changes)))
    assert stands(tree, "s1") == ASKS


# New tasks


def test_tasks_that_were_there_at_the_first_look_are_not_new():
    record, tree = failing()
    assert (tree.tasks["a"].seen, tree.unseen) == (True, []), "where nobody looks, nothing is new"
    assert tree.apply(Looked(0, 1_003.0)) == {"lead", "a"}
    assert tree.unseen == []
    for name, document in (("b", returned("completed")), ("c", SAID), ("d", handoff("d"))):
        tree.apply(record.seen(f"{name}.md", replace(document, task_id=name)))
    assert tree.unseen == ["c", "b"]


def test_a_task_that_was_looked_at_is_new_again_when_it_changes():
    record, tree = failing(Looked(0, 1_000.0))
    assert tree.unseen == ["a"]
    tree.apply(Noted(0, 2_000.0, "a", Aside(seen=mark_of(tree.tasks["a"]))))
    assert tree.unseen == []
    for outcome, unseen in (("blocked", ["a"]), ("working", []), ("failed", ["a"])):
        tree.apply(record.seen("a.return.md", returned(outcome, task_id="a")))
        assert tree.unseen == unseen


def test_a_task_put_aside_or_decided_is_not_new():
    for put in ({}, {"until": 1.0}, None):
        record, tree = failing(Looked(0, 1_000.0))
        tree.apply(decide(record, Action.ABORT) if put is None else note(tree, **put))
        assert tree.unseen == []


def test_a_mark_is_short_text_whatever_the_task_says():
    said = replace(SAID, error_message="\ud800" * 10_000)
    assert len(mark_of(tree_of([Recorder().seen("a.return.md", said)]).tasks["a"])) < 40
