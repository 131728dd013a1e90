"""Requests of programs: their ids, their tasks, how far they have got, and their effects on the task."""

import hashlib

import pytest

from agentwatch.delegation.decision import (
    OF_ATTEMPTS,
    OF_REQUESTS,
    Action,
    CallArgument,
    Permitter,
    RequestStage,
    Stage,
    canonical_input,
    make_request_id,
)
from agentwatch.delegation.events import Aside, Event, Noted, Put, Tick
from agentwatch.delegation.standing import mark_of
from agentwatch.delegation.task import State, Task
from agentwatch.view.words import ask_line
from tests.unit.delegation.asking import decided, permit, ran, request, requested, session
from tests.unit.delegation.events import decided as decided_about
from tests.unit.delegation.events import handoff, message, tree_of

ACTED, ELSEWHERE, DELIVERED = RequestStage.ACTED, RequestStage.ELSEWHERE, RequestStage.DELIVERED
OFFERED, UNKNOWN, DECIDED = RequestStage.OFFERED, RequestStage.UNKNOWN, RequestStage.DECIDED
ASKED, THERE = requested(request()), "it waits in its own session"
GONE = request(stage=RequestStage.GONE, ended_at=1_130.0)
WAITS = ran(session(waiting="a permission"))
ALLOW, DENY, GIVEN = Action.ALLOW, Action.DENY, Stage.DELIVERED


def task_of(*events: Event) -> Task:
    return tree_of(events).tasks["s1"]


def stages(task: Task) -> dict[str, RequestStage]:
    return {one.nonce: one.stage for one in task.requests}


@pytest.mark.parametrize(
    ("events", "stage", "state", "ask", "why"),
    [
        ([ASKED], OFFERED, State.BLOCKED, "allow? Bash  npm test", "its program asks for a permission"),
        ([WAITS, ASKED, decided(request())], DECIDED, State.BLOCKED, None, "its program has not got your answer yet"),
        # The store still says that the program waits, as nothing has been written since.
        ([WAITS, ASKED, decided(request(), stage=GIVEN)], DELIVERED, State.WORKING, None, ""),
        ([requested(GONE)], GONE.stage, State.WORKING, None, ""),
        # The program's own prompt is still open.
        (
            [WAITS, requested(GONE)],
            GONE.stage,
            State.BLOCKED,
            f"{THERE}: a permission",
            "it waits for an answer in its",
        ),
        ([ASKED, decided_about("s1", Action.ABORT, 1_200.0)], OFFERED, State.CANCELED, None, "you decided: abort; "),
    ],
)
def test_a_request_blocks_its_task_until_it_is_answered_or_gone(events, stage, state, ask, why):
    task = task_of(ran(session()), *events)
    assert ([one.stage for one in task.requests], task.state, task.ask) == ([stage], state, ask)
    assert task.why.startswith(why)


def test_an_ask_names_the_rest_before_a_long_command():
    beside = (CallArgument("cwd", '"/x"'), CallArgument('"a\u202e"', "1"))
    task = task_of(ran(session()), requested(request(command="x" * 500, beside=beside)))
    assert (task.ask or "").startswith('allow? Bash + cwd, "a<U+202E>"  xxx')
    many = tuple(CallArgument(f"argument{number}", "1") for number in range(200))
    ask = task_of(ran(session()), requested(request(beside=many))).ask or ""
    assert ask.endswith(" characters>  npm test")
    assert len(ask) < 200


def test_the_ask_of_a_call_leaves_out_no_mark_and_no_line_end():
    task = task_of(ran(session()), requested(request(command="./x `id`\u00a0# note\nrm -rf ~\r")))
    assert ask_line(task, task.ask or "") == "allow? Bash  ./x `id`<U+00A0># note␊rm -rf ~␍"


def test_a_session_that_is_not_known_is_a_task_named_by_program():
    tree = tree_of([ASKED])
    task = tree.tasks["s1"]
    assert (task.title, task.agent, task.inferred, task.state) == ("claude · s1", None, False, State.BLOCKED)
    assert tree.apply(requested(GONE, 2)) == {"s1"}
    assert (tree.tasks, tree.find_request(GONE.request_id)) == ({}, None)
    # After that its run is seen; it executes a task that was handed over.
    tree.apply(ASKED, ran(session(parent_session="root", prompt=message(handoff("a")))))
    assert ("s1" in tree.tasks, stages(tree.tasks["a"])) == (False, {"n1": OFFERED})


def test_a_decision_about_a_request_is_no_decision_of_the_task():
    before = task_of(ran(session()))
    task = task_of(ran(session()), ASKED, decided(request()))
    assert (task.attempt, task.retry, task.decision, task.binding) == (1, before.retry, None, None)
    assert [attempt.decisions for attempt in task.attempts] == [()]


def test_an_answer_that_expired_undelivered_can_be_given_anew():
    tree = tree_of([ran(session()), ASKED, decided(request(), expires_at=1_500.0), Tick(5, 1_499.0)])
    assert tree.tasks["s1"].ask is None
    assert tree.apply(Tick(6, 1_500.0)) == {"s1"}
    assert (stages(tree.tasks["s1"]), tree.tasks["s1"].needs_operator) == ({"n1": OFFERED}, True)
    tree.apply(Tick(7, 1_499.0))
    assert stages(tree.tasks["s1"]) == {"n1": DECIDED}


@pytest.mark.parametrize(
    ("action", "stage", "recorded", "expected"),
    [
        (ALLOW, GIVEN, permit(), ACTED),
        (ALLOW, GIVEN, permit(by=Permitter.UNKNOWN), ACTED),
        (ALLOW, GIVEN, permit(allowed=None), ACTED),
        (ALLOW, GIVEN, permit(by=Permitter.PERSON), ELSEWHERE),
        (ALLOW, GIVEN, permit(by=Permitter.RULE), ELSEWHERE),
        (ALLOW, GIVEN, permit(allowed=False), ELSEWHERE),
        (ALLOW, Stage.RECORDED, permit(), ELSEWHERE),
        (DENY, GIVEN, permit(allowed=False), ACTED),
        (DENY, GIVEN, permit(allowed=False, words="Error: Use build/."), ACTED),
        (DENY, GIVEN, permit(allowed=False, words="Not now."), ELSEWHERE),
        (DENY, GIVEN, permit(), ELSEWHERE),
        (ALLOW, GIVEN, permit(at=1_099.0), DELIVERED),
        (ALLOW, GIVEN, permit(input_sha256="0"), DELIVERED),
        (ALLOW, GIVEN, permit(tool="Edit"), DELIVERED),
        (None, None, permit(), ELSEWHERE),
        # The holder broke before the outcome was known.
        (ALLOW, None, permit(at=1_000.0), UNKNOWN),
        (ALLOW, None, permit(by=Permitter.UNKNOWN), UNKNOWN),
        (ALLOW, None, permit(False, Permitter.UNKNOWN), ELSEWHERE),
        (ALLOW, None, permit(by=Permitter.PERSON), ELSEWHERE),
    ],
)
def test_the_records_of_the_program_tell_what_it_carried_out(action, stage, recorded, expected):
    events: list[Event] = [ran(session(recorded)), ASKED]
    if action is not None:
        note = "Use build/." if action is DENY else ""
        events.append(decided(request(), action, stage or Stage.RECORDED, note=note))
        events += [] if stage else [requested(request(stage=UNKNOWN, ended_at=1_110.0), 5)]
    assert stages(task_of(*events)) == {"n1": expected}


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([request(), request(2, asked_at=1_101.0)], {"n1": ELSEWHERE, "n2": OFFERED}),
        ([request(), request(2, asked_at=1_101.0, call_id="toolu_1")], {"n1": OFFERED, "n2": ELSEWHERE}),
        ([request(call_id="toolu_3")], {"n1": OFFERED}),
    ],
)
def test_each_record_is_of_one_request(requests, expected):
    assert stages(task_of(ran(session(permit())), *map(requested, requests))) == expected


def test_a_record_belongs_to_the_last_request_of_its_call():
    # OpenCode asks for a directory outside and then for the command, both with the id of the call.
    first = request(1, stage=DELIVERED, ended_at=1_111.0, call_id="toolu_1")
    second = request(2, asked_at=1_112.0, stage=DELIVERED, ended_at=1_114.0, call_id="toolu_1")
    answers = decided(first, stage=GIVEN), decided(second, DENY, GIVEN, at=1_113.0)
    record = ran(session(permit(False, Permitter.UNKNOWN)))
    task = task_of(record, requested(first), requested(second), *answers)
    found = {one.nonce: (one.stage, one.allowed) for one in task.requests}
    assert found == {"n1": (DELIVERED, True), "n2": (ACTED, False)}


def test_requests_that_end_soon_come_first_then_the_newest():
    asked = {1: 1_100.0, 5: 1_200.0, 2: 1_105.0}
    offered = [request(number, asked_at=at) for number, at in asked.items()]
    offered += [request(4, asked_at=1_080.0, until=4_680.0), request(3, asked_at=1_090.0, until=1_110.0)]
    tree = tree_of([ran(session()), *map(requested, offered), decided(request(5))])
    task = tree.tasks["s1"]
    assert [one.nonce for one in task.requests] == ["n3", "n2", "n1", "n4", "n5"]
    assert task.ask == "allow? Bash  npm test (+3 more)"
    tree.apply(ran(session(session_id="s2", waiting="an answer: Which?", updated_at=5_000.0)))
    tree.apply(requested(request(6, session_id="s3", asked_at=1_091.0, until=1_100.0)))
    assert tree.queue == ["s3", "s1", "s2"]


def test_a_new_request_asks_again_after_one_was_put_aside():
    tree = tree_of([ran(session()), ASKED])
    tree.apply(Noted(4, 1_150.0, "s1", Aside(Put(mark_of(tree.tasks["s1"]), 1_150.0))))
    assert tree.tasks["s1"].acknowledged
    # The same command is asked for again.
    tree.apply(requested(GONE, 5), requested(request(2, asked_at=1_170.0), 6))
    assert (tree.tasks["s1"].acknowledged, tree.tasks["s1"].ask) == (False, "allow? Bash  npm test")


def test_an_open_request_is_no_history_however_old_its_session():
    old = ran(session())
    assert tree_of([old], history_before=10_000.0).tasks["s1"].past
    assert not tree_of([old, ASKED], history_before=10_000.0).tasks["s1"].past


# Ids


def test_equal_inputs_have_one_spelling():
    one, two = canonical_input({"b": 1, "a": "ä"}), canonical_input({"a": "ä", "b": 1})
    assert one == two == ('{"a":"ä","b":1}', hashlib.sha256('{"a":"ä","b":1}'.encode()).hexdigest())
    assert canonical_input({"a": "1"}) != canonical_input({"a": 1})


@pytest.mark.parametrize("value", [float("nan"), "\ud800", {"a": {1}}, {1: 0, "a": 0}, 100_000])
def test_an_input_without_a_spelling_is_refused(value):
    for _ in range(value if isinstance(value, int) else 0):
        value = [value]
    with pytest.raises(ValueError, match=r"JSON|surrogate"):
        canonical_input(value)


def test_the_id_of_a_request_depends_on_each_of_its_parts():
    parts = ["workspace", "claude", "session", "nonce", "0" * 64]
    ids = {make_request_id(*parts), make_request_id("workspac", "eclaude", *parts[2:])}
    ids |= {make_request_id(*parts[:place], parts[place] + "1", *parts[place + 1 :]) for place in range(5)}
    assert len(ids) == 7
    assert all(len(one) == 32 and set(one) <= set("0123456789abcdef") for one in ids)


def test_every_action_is_of_an_attempt_or_of_a_request():
    assert tuple(Action) == OF_ATTEMPTS + OF_REQUESTS
