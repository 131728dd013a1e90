"""What asks because of how it works: a process that is gone, and limits that the operator set."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.delegation.events import handoff, returned, tree_of
from tests.unit.delegation.test_interleaving import interleaved
from tests.unit.delegation.test_runs import ROOT, child, message, ran

from agentwatch.contracts.shapes import Outcome, Return
from agentwatch.decisions import policy
from agentwatch.delegation.asks import mark_of
from agentwatch.delegation.decision import Action, Decision, Receipt, Stage
from agentwatch.delegation.events import Decided, Event, Limits, Ran, Rules, Seen, Tick
from agentwatch.delegation.run import Activity, ActivityKind, Run, RunState, Turn
from agentwatch.delegation.task import Alarm, Aside, Put, Task
from agentwatch.delegation.tree import Tree
from agentwatch.view.document import tree_document
from agentwatch.view.times import stands_since
from agentwatch.view.words import question_at

GONE = "process gone: retry or abort?"


def test_a_child_whose_process_is_gone_asks_until_the_process_or_a_sign_of_life_comes_back() -> None:
    tree = tree_of([*ran(ROOT, child("one")), Tick(9, 130.0)])
    assert tree.asking() == []
    tree.apply(again("one", process_gone=True))
    one = tree.tasks["one"]
    assert (one.ask, one.alarms, tree.asking()) == (GONE, (Alarm.GONE,), [one])
    assert question_at(one, one.updated_at + 720.0) == "process gone 12m ago: retry or abort?"
    assert tree.tasks["root"].below is not None
    assert tree.tasks["root"].below.needs_operator == tree.totals.needs_operator == 1
    for back in (False, None):
        tree.apply(again("one", process_gone=back))
        assert (one.ask, one.alarms, tree.asking(), tree.totals.needs_operator) == (None, (), [], 0)
        tree.apply(again("one", process_gone=True))
        assert one.ask == GONE
    tree.apply(again("one", RunState.ENDED, said=message(Return("return-format", "SUCCESS", Outcome.COMPLETED))))  # type: ignore[arg-type]
    assert tree.asking() == []


@pytest.mark.parametrize("gone", [False, None])
def test_a_long_quiet_test_run_asks_nothing(gone: bool | None) -> None:
    """Whether its process is known to run, or nothing is known of it."""
    testing = Activity(120.0, ActivityKind.TOOL, "Bash", "npm test")
    tree = tree_of([*ran(ROOT, child("one", process_gone=gone, doing=testing)), Tick(9, 120.0 + 86_400.0)])
    assert tree.tasks["one"].stale
    assert tree.asking() == []


def test_a_file_that_is_written_long_after_the_last_sign_of_the_process_is_a_sign_of_life() -> None:
    for at, asks in ((170.0, True), (181.0, False)):
        note = Seen(5, at, "one.md", "f", returned("working", task_id="one"))
        tree = tree_of([*ran(ROOT, child("one", process_gone=True)), note, Tick(9, 190.0)])
        assert tree.tasks["one"].needs_operator == asks


def test_a_session_that_its_human_closed_asks_only_if_something_below_has_not_ended_and_asks_for_it() -> None:
    tree = tree_of([*ran(replace(ROOT, process_gone=True), child("one", RunState.ENDED)), Tick(9, 130.0)])
    assert tree.tasks["root"].stale
    assert tree.tasks["root"].ask is None
    tree.apply(again("one", process_gone=True))
    tree.apply(again("two", process_gone=True))
    asked = "process gone, and 2 tasks below had not ended: resume the session in its own program, or abort?"
    assert [task.ask for task in tree.asking()] == [asked]
    # The session goes on in another process: what the first one ran is asked about for itself.
    tree.apply(Ran(9, 200.0, "agents:root", replace(ROOT, process_gone=False)))
    assert {task.task_id: task.ask for task in tree.asking()} == {"one": GONE, "two": GONE}
    tree.apply(Ran(10, 201.0, "agents:root", replace(ROOT, process_gone=True)))
    assert [task.task_id for task in tree.asking()] == ["root"]
    tree.apply(Ran(11, 202.0, "agents:root", None))
    assert {task.task_id for task in tree.asking()} == {"one", "two"}


def test_what_can_be_decided_about_a_process_that_is_gone() -> None:
    tree = tree_of([*ran(replace(ROOT, process_gone=True), child("one", process_gone=True)), Tick(9, 130.0)])
    root, one = tree.tasks["root"], tree.tasks["one"]
    assert allowed(one) == {Action.RETRY, Action.ESCALATE, Action.ABORT}
    assert allowed(root) == {Action.ABORT}
    assert policy.suggested(root) is None
    tree.apply(Ran(9, 200.0, "agents:root", replace(ROOT, process_gone=False)))
    assert policy.suggested(one) is Action.RETRY
    assert policy.options(one)[Action.RETRY].warnings[0].startswith("its process is gone: the agent that handed it out")
    tree.apply(decided("one", Action.ABORT))
    assert (one.state, tree.asking()) == ("canceled", [])


def test_to_abort_a_session_whose_process_is_gone_ends_what_is_below() -> None:
    tree = tree_of([*ran(replace(ROOT, process_gone=True), child("one", process_gone=True)), Tick(9, 130.0)])
    tree.apply(decided("root", Action.ABORT))
    assert (tree.tasks["one"].state, tree.asking(), tree.totals.stale) == ("canceled", [], 0)


def test_without_a_retry_left_it_offers_none() -> None:
    tree = tree_of([*ran(ROOT, child("one", process_gone=True)), Tick(9, 130.0)], max_retries=0)
    assert tree.tasks["one"].ask == "process gone: escalate or abort?"
    assert policy.suggested(tree.tasks["one"]) is Action.ESCALATE


def test_a_process_that_was_gone_long_before_the_workspace_was_watched_asks_nothing() -> None:
    tree = tree_of([*ran(ROOT, child("one", process_gone=True)), Tick(9, 9_999.0)], history_before=1_000.0)
    assert (tree.tasks["one"].past, tree.tasks["one"].question, tree.asking()) == (True, None, [])
    assert tree.totals.stale == 0


def test_what_is_acknowledged_asks_no_more_however_the_numbers_grow() -> None:
    tree = tree_of([*ran(ROOT, child("one", tokens=214_000)), Tick(9, 130.0)], limits=Limits(tokens=200_000))
    one = tree.tasks["one"]
    assert one.ask == "used 214k tokens, alarm at 200k; let it go on, or abort?"
    tree.apply(aside("one", Put(mark_of(one), 131.0)))
    assert (one.ask, one.acknowledged, tree.totals.needs_operator) == (None, True, 0)
    tree.apply(again("one", tokens=1_300_000, updated_at=200.0))
    assert (one.ask, one.question) == (None, "used 1300k tokens, alarm at 200k; let it go on, or abort?")


def test_a_closed_session_that_was_acknowledged_asks_no_more_when_only_one_task_below_is_left() -> None:
    tree = tree_of([*ran(replace(ROOT, process_gone=True), child("one"), child("two")), Tick(9, 130.0)])
    root = tree.tasks["root"]
    tree.apply(aside("root", Put(mark_of(root), 131.0)))
    tree.apply(again("two", state=RunState.CANCELED))
    assert (root.ask, root.question) == (
        None,
        "process gone, and 1 task below had not ended: resume the session in its own program, or abort?",
    )


def test_an_alarm_that_is_snoozed_asks_again_when_its_time_has_come() -> None:
    tree = tree_of([*ran(ROOT, child("one", process_gone=True)), Tick(9, 130.0)])
    one = tree.tasks["one"]
    tree.apply(aside("one", Put(mark_of(one), 131.0, snoozed=True, until=500.0)))
    assert one.ask is None
    tree.apply(Tick(10, 500.0))
    assert one.ask == GONE


@pytest.mark.parametrize(("tokens", "asks"), [(199_999, False), (200_000, True)])
def test_the_alarm_of_tokens_comes_at_the_limit_exactly_and_ends_with_the_work(tokens: int, asks: bool) -> None:
    tree = tree_of([*ran(ROOT, child("one", tokens=tokens)), Tick(9, 130.0)], limits=Limits(tokens=200_000))
    assert tree.tasks["one"].needs_operator == asks
    tree.apply(again("one", RunState.CANCELED, tokens=tokens))
    assert not tree.tasks["one"].needs_operator


def test_the_alarm_of_minutes_comes_when_its_time_is_up_and_goes_with_a_clock_that_goes_back() -> None:
    tree = tree_of([*ran(ROOT, child("one", updated_at=1_900.0)), Tick(9, 1_909.0)], limits=Limits(minutes=30))
    assert tree.asking() == [tree.tasks["root"]], "it was at work since 100"
    assert tree.tasks["one"].ask is None
    assert tree.apply(Tick(10, 1_910.0)) == {"one", "root"}
    assert tree.tasks["one"].ask == "at work for more than 30 minutes; let it go on, or abort?"
    assert tree.apply(Tick(11, 1_911.0)) == set()
    tree.apply(Tick(12, 1_000.0))
    assert tree.asking() == []
    tree.apply(Tick(13, 2_000.0))
    assert len(tree.asking()) == 2


def test_one_minute_is_one() -> None:
    tree = tree_of([*ran(child("one")), Tick(9, 9_999.0)], limits=Limits(minutes=1))
    assert tree.tasks["one"].ask == "at work for more than 1 minute; let it go on, or abort?"


def test_a_session_works_since_it_was_last_told_something() -> None:
    rounds = (Turn(100.0, state=RunState.ENDED, ended_at=200.0), Turn(5_000.0))
    session = replace(ROOT, rounds=rounds, updated_at=5_010.0)
    tree = tree_of([*ran(session), Tick(9, 6_799.0)], limits=Limits(minutes=30))
    assert tree.asking() == []
    tree.apply(Tick(10, 6_800.0))
    assert tree.asking() == [tree.tasks["root"]]


def call(repeats: int, what: str = "Bash", about: str = "npm test") -> Activity:
    return Activity(120.0, ActivityKind.TOOL, what, about, repeats=repeats)


def test_the_same_call_over_and_over_asks_at_the_limit_until_there_is_another_one() -> None:
    tree = tree_of([*ran(ROOT, child("one", doing=call(9))), Tick(9, 130.0)], limits=Limits(repeats=10))
    one = tree.tasks["one"]
    assert one.ask is None
    tree.apply(again("one", doing=call(10)))
    assert one.ask == "the same call 10 times: Bash npm test; let it go on, or abort?"
    tree.apply(again("one", doing=Activity(121.0, ActivityKind.WORDS, about="Let me try once more.")))
    assert one.needs_operator, "words between two calls end no loop"
    tree.apply(again("one", doing=call(1, about="npm install")))
    assert one.ask is None
    tree.apply(again("one", doing=Activity(121.0, ActivityKind.WORDS, about="That was it.")))
    assert one.ask is None


def test_words_of_another_session_keep_no_loop_alive() -> None:
    words = Activity(121.0, ActivityKind.WORDS, about="Let me see.")
    tree = tree_of([*ran(ROOT, child("one", doing=call(10), prompt=message(handoff("x"))))], limits=Limits(repeats=10))
    assert tree.tasks["x"].needs_operator
    tree.apply(Ran(9, 300.0, "agents:two", child("two", doing=words, prompt=message(handoff("x", attempt=2)))))
    assert (tree.tasks["x"].attempt, tree.tasks["x"].needs_operator) == (2, False)


@pytest.mark.parametrize(
    ("what", "about"),
    [
        ("TaskOutput", "b7"),
        ("wait_agent", ""),
        ("mcp__agentwatch__wait_for_decision", "one"),
        ("Bash", "sleep 60; tail -3 build.log"),
    ],
)
def test_who_waits_is_in_no_loop(what: str, about: str) -> None:
    tree = tree_of([*ran(ROOT, child("one", doing=call(40, what, about))), Tick(9, 130.0)], limits=Limits(repeats=10))
    assert tree.asking() == []


def test_a_sign_of_life_moves_no_alarm_that_was_raised() -> None:
    limits = Limits(repeats=10, tokens=10)
    tree = tree_of(
        [*ran(child("one", tokens=10), child("two", tokens=10, updated_at=125.0)), Tick(9, 130.0)], limits=limits
    )
    assert [task.task_id for task in tree.asking()] == ["two", "one"]
    one = tree.tasks["one"]
    since = stands_since(one)
    tree.apply(again("one", tokens=11, updated_at=140.0))
    tree.apply(again("one", tokens=12, updated_at=150.0, doing=call(12)))
    assert one.alarms == (Alarm.LOOP, Alarm.TOKENS)
    assert ([task.task_id for task in tree.asking()], stands_since(one)) == (["two", "one"], since)
    # What is raised anew is new.
    tree.apply(again("one", tokens=1, updated_at=160.0))
    tree.apply(again("one", tokens=12, updated_at=170.0))
    assert ([task.task_id for task in tree.asking()], stands_since(one)) == (["one", "two"], 170.0)


def test_several_alarms_are_one_ask_and_without_limits_there_is_none() -> None:
    busy = child("one", doing=call(12), tokens=10)
    tree = tree_of([*ran(busy), Tick(9, 400.0)], limits=Limits(minutes=2, tokens=10, repeats=10))
    said = "the same call 12 times: Bash npm test; used 10 tokens, alarm at 10; at work for more than 2 minutes"
    assert [task.ask for task in tree.asking()] == [f"{said}; let it go on, or abort?"]
    assert tree_document(tree, "/w")["tasks"][0]["alarms"] == ["loop", "tokens", "minutes"]
    assert tree_of([*ran(busy), Tick(9, 400.0)]).asking() == []


def test_of_a_subtree_the_lowest_task_asks_that_uses_too_much_with_all_below_it_and_works() -> None:
    parts = ran(ROOT, child("one", tokens=90), child("two", tokens=90, parent="one"), child("three", tokens=50))
    tree = tree_of([*parts, Tick(9, 130.0)], limits=Limits(subtree_tokens=180))
    said = "used 180 tokens with all below it, alarm at 180; let it go on, or abort?"
    assert {task.task_id: task.ask for task in tree.asking()} == {"one": said}
    tree.apply(again("one", RunState.ENDED, tokens=90))
    assert [task.task_id for task in tree.asking() if Alarm.SUBTREE in task.alarms] == ["root"]
    tree.apply(again("two", tokens=20, parent="one"))
    assert not any(task.alarms for task in tree.asking())


def again(session: str, state: RunState = RunState.WORKING, **more: object) -> Ran:
    run = child(session, state, **more)
    return Ran(99, run.updated_at, f"agents:{session}", run)


def allowed(task: Task) -> set[Action]:
    return {action for action, option in policy.options(task).items() if option.allowed}


def aside(task_id: str, put: Put) -> Event:
    from agentwatch.delegation.events import Noted

    return Noted(9, put.at, task_id, Aside(put))


def decided(task_id: str, action: Action) -> Decided:
    decision = Decision(
        decision_id="d",
        task_id=task_id,
        attempt=1,
        handoff_sha256=None,
        return_sha256=None,
        action=action,
        at=300.0,
        receipts=(Receipt(Stage.RECORDED, 300.0),),
    )
    return Decided(99, 300.0, "d", decision)


# In random orders

SESSIONS = ["root", "one", "two", "three"]
doings = st.none() | st.builds(call, st.integers(1, 4)) | st.just(Activity(1.0, ActivityKind.WORDS, about="so"))
runs = st.builds(
    lambda session, parent, state, **more: child(session, state, **more, parent=parent if parent < session else None),
    st.sampled_from(SESSIONS),
    st.sampled_from(SESSIONS),
    st.sampled_from([RunState.WORKING, RunState.WORKING, RunState.ENDED]),
    process_gone=st.sampled_from([None, False, True, True]),
    tokens=st.none() | st.integers(0, 30),
    doing=doings,
    updated_at=st.sampled_from([1_002.0, 1_010.0, 1_080.0]),
)
LIMITS = Limits(minutes=1.0, tokens=20, subtree_tokens=40, repeats=3)


def recorded(changes: list[Run]) -> list[Event]:
    return [Ran(seq, run.updated_at, f"agents:{run.session_id}", run) for seq, run in enumerate(changes)]


def grown(events: list[Event], ticks: list[float | None]) -> Tree:
    tree = Tree(Rules(limits=LIMITS, history_before=1_005.0, stale_after=5.0))
    for number, event in enumerate(events):
        tree.apply(event)
        if number < len(ticks) and (at := ticks[number]) is not None:
            tree.apply(Tick(99, at))
    tree.apply(Tick(99, 1_100.0))
    return tree


times = st.lists(st.none() | st.floats(1_000.0, 1_200.0), max_size=10)


@given(st.lists(runs, max_size=10), st.lists(st.integers(0, 12), max_size=10), times)
def test_any_interleaving_and_any_time_gives_the_same_alarms(
    changes: list[Run], order: list[int], ticks: list[float | None]
) -> None:
    events = recorded(changes)
    assert documents(grown(interleaved(events, order), ticks)) == documents(grown(events, []))


@given(st.lists(runs, max_size=10), times)
def test_what_asks_by_alarm_is_counted_above_and_stands_in_the_queue(
    changes: list[Run], ticks: list[float | None]
) -> None:
    tree = grown(recorded(changes), ticks)
    for task in tree.tasks.values():
        below = [tree.tasks[one] for one in tree.tasks if task.task_id in tree.ancestors(one)]
        waiting = Counter(one.waits_as for one in below if one.needs_operator)
        assert (task.below.waiting if task.below else {}) == waiting
        assert not (task.alarms and task.past)
        tokens = sum(one.tokens or 0 for one in below)
        assert (task.below.tokens if task.below else 0) == tokens
        over = task.state == "working" and not task.past and (task.tokens or 0) + tokens >= 40
        children = [tree.tasks[one] for one in task.children]
        if Alarm.GONE not in task.alarms and not (task.run and task.run.process_gone):
            assert (Alarm.SUBTREE in task.alarms) == (over and not any(is_over(one) for one in children))
        above = tree.tasks[task.parent_id] if task.parent_id is not None else None
        assert not (above is not None and Alarm.GONE in above.alarms and Alarm.GONE in task.alarms)
    assert {task.task_id for task in tree.asking()} == {task.task_id for task in tree.tasks.values() if task.ask}


def is_over(task: Task) -> bool:
    """Whether a task that works has used 40 tokens with all below it."""
    return task.state == "working" and (task.tokens or 0) + (task.below.tokens if task.below else 0) >= 40


def documents(tree: Tree) -> list[dict[str, Any]]:
    """The tasks, without what follows from the time alone, or from when it was seen."""
    tasks = tree_document(tree, "/w")["tasks"]
    alarmed = {"since": None, "a2a_status": None}
    return [
        one | {"activity": (one["activity"] or {}) | {"seconds": 0}} | (alarmed if one["alarms"] else {})
        for one in tasks
    ]


@given(st.lists(runs, max_size=10))
def test_apply_names_every_task_whose_alarms_change(changes: list[Run]) -> None:
    tree = Tree(Rules(limits=LIMITS, stale_after=5.0))
    before: dict[str, object] = {}
    for event in (*recorded(changes), Tick(99, 1_030.0), Tick(99, 1_100.0), Tick(99, 1_000.0)):
        changed = tree.apply(event)
        after: dict[str, object] = {one["task_id"]: {**one, "depth": None, "why": None} for one in documents(tree)}
        assert {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)} <= changed
        before = after
