"""What a program asks: on which task it stands, how far it has got, and what that does to the task."""

from __future__ import annotations

import pytest
from tests.unit.delegation.asking import decided, permit, ran, request, requested, session
from tests.unit.delegation.events import handoff, tree_of
from tests.unit.delegation.test_runs import message

from agentwatch.delegation.asks import mark_of
from agentwatch.delegation.decision import Action, Stage
from agentwatch.delegation.events import Aside, Event, Noted, Put, Tick
from agentwatch.delegation.request import Given, RequestStage
from agentwatch.delegation.run import Permitter
from agentwatch.delegation.task import State, Task
from agentwatch.view.words import in_line


def stages(task: Task) -> list[RequestStage]:
    return [one.stage for one in task.requests]


def test_an_open_request_blocks_its_task_and_asks_with_the_command_itself() -> None:
    task = tree_of([ran(session()), requested(request(said="Runs the tests"))]).tasks["s1"]
    assert (task.state, task.ask) == (State.BLOCKED, "allow? Bash  npm test")
    assert task.why == "its program asks for a permission"


def test_an_ask_names_what_its_call_is_given_besides_before_a_command_that_may_be_long() -> None:
    beside = (Given("cwd", '"/x"'), Given('"a\u202e"', "1"))
    tree = tree_of([ran(session()), requested(request(command="x" * 500, beside=beside))])
    assert (tree.tasks["s1"].ask or "").startswith('allow? Bash + cwd, "a<U+202E>"  xxx')
    many = tuple(Given(f"argument{number}", "1") for number in range(200))
    task = tree_of([ran(session()), requested(request(beside=many))]).tasks["s1"]
    assert (task.ask or "").endswith(" characters>  npm test")
    assert len(task.ask or "") < 200


@pytest.mark.parametrize(
    ("allowed", "by", "stage"),
    [
        (True, Permitter.UNKNOWN, RequestStage.UNKNOWN),
        (False, Permitter.UNKNOWN, RequestStage.ELSEWHERE),
        (True, Permitter.PERSON, RequestStage.ELSEWHERE),
    ],
)
def test_an_answer_that_nothing_was_heard_of_is_not_told_as_anybodys_where_that_is_not_known(
    allowed: bool, by: Permitter, stage: RequestStage
) -> None:
    lost = request(stage=RequestStage.UNKNOWN, ended_at=1_110.0)
    tree = tree_of([ran(session()), requested(request()), decided(request()), requested(lost, 5)])
    assert stages(tree.tasks["s1"]) == [RequestStage.UNKNOWN]
    assert not tree.tasks["s1"].ask
    tree.apply(ran(session(permit(allowed, by)), 6))
    assert stages(tree.tasks["s1"]) == [stage]


def test_a_request_of_a_session_that_is_not_known_is_a_task_named_by_program_and_session() -> None:
    tree = tree_of([requested(request())])
    task = tree.tasks["s1"]
    assert (task.title, task.agent, task.inferred, task.state) == ("claude · s1", None, False, State.BLOCKED)
    # Then its run is seen, and is the execution of a task that was handed over.
    tree.apply(ran(session(parent_session="root", prompt=message(handoff("a")))))
    assert "s1" not in tree.tasks
    assert stages(tree.tasks["a"]) == [RequestStage.OFFERED]


def test_a_task_of_which_only_a_request_spoke_is_gone_when_that_has_ended() -> None:
    tree = tree_of([requested(request())])
    assert tree.apply(requested(request(stage=RequestStage.GONE, ended_at=1_130.0), 2)) == {"s1"}
    assert tree.tasks == {}
    assert tree.request(request().request_id) is None


def test_a_decision_about_a_request_is_no_attempt_no_retry_and_no_decision_of_the_task() -> None:
    one = request()
    before = tree_of([ran(session())]).tasks["s1"]
    tree = tree_of([ran(session()), requested(one), decided(one)])
    task = tree.tasks["s1"]
    assert (task.attempt, task.retry, task.decision, task.binding) == (1, before.retry, None, None)
    assert [attempt.decisions for attempt in task.attempts] == [()]


def test_a_decided_request_asks_no_more_and_blocks_until_it_is_delivered() -> None:
    one = request()
    events: list[Event] = [ran(session(waiting="a permission")), requested(one), decided(one)]
    task = tree_of(events).tasks["s1"]
    assert (stages(task), task.state, task.ask) == ([RequestStage.DECIDED], State.BLOCKED, None)
    assert task.why == "its program has not got your answer yet"
    task = tree_of([*events, decided(one, stage=Stage.DELIVERED)]).tasks["s1"]
    # Its store still says that it waits: it has written nothing since.
    assert (stages(task), task.state, task.ask) == ([RequestStage.DELIVERED], State.WORKING, None)


def test_an_answer_that_expired_undelivered_can_be_given_anew() -> None:
    one = request()
    tree = tree_of([ran(session()), requested(one), decided(one, expires_at=1_500.0), Tick(5, 1_499.0)])
    assert tree.tasks["s1"].ask is None
    assert tree.apply(Tick(6, 1_500.0)) == {"s1"}
    assert (stages(tree.tasks["s1"]), tree.tasks["s1"].needs_operator) == ([RequestStage.OFFERED], True)
    tree.apply(Tick(7, 1_499.0))
    assert stages(tree.tasks["s1"]) == [RequestStage.DECIDED]


@pytest.mark.parametrize(
    ("action", "stage", "recorded", "expected"),
    [
        (Action.ALLOW, Stage.DELIVERED, permit(), RequestStage.ACTED),
        (Action.ALLOW, Stage.DELIVERED, permit(by=Permitter.UNKNOWN), RequestStage.ACTED),
        (Action.ALLOW, Stage.DELIVERED, permit(allowed=None), RequestStage.ACTED),
        (Action.ALLOW, Stage.DELIVERED, permit(by=Permitter.PERSON), RequestStage.ELSEWHERE),
        (Action.ALLOW, Stage.DELIVERED, permit(by=Permitter.RULE), RequestStage.ELSEWHERE),
        (Action.ALLOW, Stage.DELIVERED, permit(allowed=False), RequestStage.ELSEWHERE),
        (Action.ALLOW, Stage.RECORDED, permit(), RequestStage.ELSEWHERE),
        (Action.DENY, Stage.DELIVERED, permit(allowed=False), RequestStage.ACTED),
        (Action.DENY, Stage.DELIVERED, permit(allowed=False, words="Error: Use build/."), RequestStage.ACTED),
        (Action.DENY, Stage.DELIVERED, permit(allowed=False, words="Not now."), RequestStage.ELSEWHERE),
        (Action.DENY, Stage.DELIVERED, permit(), RequestStage.ELSEWHERE),
        (Action.ALLOW, Stage.DELIVERED, permit(at=1_099.0), RequestStage.DELIVERED),
        (Action.ALLOW, Stage.DELIVERED, permit(input_sha256="0"), RequestStage.DELIVERED),
        (Action.ALLOW, Stage.DELIVERED, permit(tool="Edit"), RequestStage.DELIVERED),
        (None, None, permit(), RequestStage.ELSEWHERE),
    ],
)
def test_the_records_of_the_program_tell_whether_our_answer_was_carried_out(
    action: Action | None, stage: Stage | None, recorded: object, expected: RequestStage
) -> None:
    one = request()
    events: list[Event] = [ran(session(recorded)), requested(one)]  # type: ignore[arg-type]
    if action is not None and stage is not None:
        events.append(decided(one, action, stage, note="Use build/." if action is Action.DENY else ""))
    task = tree_of(events).tasks["s1"]
    assert stages(task) == [expected]


def test_each_record_is_of_one_request_by_its_call_where_that_is_known_else_in_their_order() -> None:
    first, second = request(1), request(2, asked_at=1_101.0)
    one = tree_of([ran(session(permit())), requested(first), requested(second)]).tasks["s1"]
    assert {each.nonce: each.stage for each in one.requests} == {
        "n1": RequestStage.ELSEWHERE,
        "n2": RequestStage.OFFERED,
    }
    second = request(2, asked_at=1_101.0, call_id="toolu_1")
    one = tree_of([ran(session(permit())), requested(first), requested(second)]).tasks["s1"]
    assert {each.nonce: each.stage for each in one.requests} == {
        "n1": RequestStage.OFFERED,
        "n2": RequestStage.ELSEWHERE,
    }
    other = request(3, call_id="toolu_3")
    assert stages(tree_of([ran(session(permit())), requested(other)]).tasks["s1"]) == [RequestStage.OFFERED]


def test_of_two_requests_of_one_call_the_record_is_of_the_last() -> None:
    # OpenCode asks for a directory outside, then for the command, both with the id of the call.
    first = request(1, stage=RequestStage.DELIVERED, ended_at=1_111.0, call_id="toolu_1")
    second = request(2, asked_at=1_112.0, stage=RequestStage.DELIVERED, ended_at=1_114.0, call_id="toolu_1")
    allowed = decided(first, stage=Stage.DELIVERED)
    denied = decided(second, Action.DENY, Stage.DELIVERED, at=1_113.0)
    record = ran(session(permit(False, Permitter.UNKNOWN)))
    task = tree_of([record, requested(first), requested(second), allowed, denied]).tasks["s1"]
    assert {one.nonce: (one.stage, one.allowed) for one in task.requests} == {
        "n1": (RequestStage.DELIVERED, True),
        "n2": (RequestStage.ACTED, False),
    }


def test_a_request_whose_holder_is_gone_asks_nothing() -> None:
    gone = request(stage=RequestStage.GONE, ended_at=1_130.0)
    task = tree_of([ran(session()), requested(gone)]).tasks["s1"]
    assert (stages(task), task.state, task.ask) == ([RequestStage.GONE], State.WORKING, None)
    # Its own prompt stands.
    task = tree_of([ran(session(waiting="a permission")), requested(gone)]).tasks["s1"]
    assert (task.state, task.ask) == (State.BLOCKED, "it waits in its own session: a permission")


def test_of_several_requests_what_ends_soon_comes_first_and_then_the_newest() -> None:
    old, new = request(1), request(2, asked_at=1_105.0)
    soon = request(3, asked_at=1_090.0, until=1_110.0)
    later = request(4, asked_at=1_080.0, until=1_080.0 + 3_600.0)
    answered = request(5, asked_at=1_200.0)
    offered = [requested(one) for one in (old, answered, new, later, soon)]
    task = tree_of([ran(session()), *offered, decided(answered)]).tasks["s1"]
    assert [one.nonce for one in task.requests] == ["n3", "n2", "n1", "n4", "n5"]
    assert task.ask == "allow? Bash  npm test (+3 more)"


def test_a_task_with_an_open_request_comes_before_all_others_that_ask() -> None:
    waits = ran(session(session_id="s2", waiting="an answer: Which?", updated_at=5_000.0))
    asks = [ran(session()), requested(request())]
    tree = tree_of([waits, *asks])
    assert [task.task_id for task in tree.asking()] == ["s1", "s2"]
    soon = request(2, session_id="s3", asked_at=1_090.0, until=1_110.0)
    tree.apply(requested(soon))
    assert [task.task_id for task in tree.asking()] == ["s3", "s1", "s2"]


def test_a_new_request_asks_again_after_the_one_before_was_put_aside() -> None:
    tree = tree_of([ran(session()), requested(request())])
    tree.apply(Noted(4, 1_150.0, "s1", Aside(Put(mark_of(tree.tasks["s1"]), 1_150.0))))
    assert tree.tasks["s1"].acknowledged
    tree.apply(requested(request(stage=RequestStage.GONE, ended_at=1_160.0), 5))
    # The very same command once more.
    tree.apply(requested(request(2, asked_at=1_170.0), 6))
    assert (tree.tasks["s1"].acknowledged, tree.tasks["s1"].ask) == (False, "allow? Bash  npm test")


def test_an_open_request_is_no_history_however_old_its_session_is() -> None:
    old = ran(session())
    assert tree_of([old], history_before=10_000.0).tasks["s1"].past
    assert not tree_of([old, requested(request())], history_before=10_000.0).tasks["s1"].past


def test_the_ask_of_a_call_leaves_out_no_mark_and_no_line_end() -> None:
    task = tree_of([ran(session()), requested(request(command="./x `id`\u00a0# note\nrm -rf ~\r"))]).tasks["s1"]
    assert in_line(task, task.ask or "") == "allow? Bash  ./x `id`<U+00A0># note␊rm -rf ~␍"
