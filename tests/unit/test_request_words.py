"""What is said of a request: how far it has got, where it is answered, and what other programs read of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentwatch.cli.command import parser_of
from agentwatch.cli.registry import load_command
from agentwatch.contracts.shapes import Contract
from agentwatch.delegation.decision import Action, Stage
from agentwatch.delegation.events import Event
from agentwatch.delegation.request import Given, Request, RequestStage
from agentwatch.delegation.run import Permitter
from agentwatch.delegation.task import Task
from agentwatch.view.a2a import a2a_state
from agentwatch.view.document import tree_document
from agentwatch.view.looks import look
from agentwatch.view.query import parse
from agentwatch.view.requests import denial_words, standing_words, where
from tests.unit.delegation.asking import decided, permit, question, ran, request, requested, session
from tests.unit.delegation.events import Recorder, returned, tree_of

OPEN = RequestStage.OFFERED
GONE = request(stage=RequestStage.GONE, ended_at=1_130.0)

LEFT = "nothing here waits for it any more; if its program still asks, answer it there"


def task_of(*events: Event) -> Task:
    return tree_of([ran(session()), *events]).tasks["s1"]


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([requested(request())], "waits for you"),
        ([requested(request(until=1_150.0))], "can be answered here for 20s"),
        ([requested(request(until=1_150.0, prompt_hidden=True))], "its prompt appears in its terminal in 20s"),
        ([requested(request()), decided(request())], "allowed, not delivered yet"),
        ([requested(request()), decided(request(), Action.DENY)], "denied, not delivered yet"),
        ([requested(question()), decided(question(), Action.ANSWER)], "answered, not delivered yet"),
        (
            [requested(request()), decided(request(), stage=Stage.DELIVERED)],
            "allowed and delivered; what came of it is not known yet",
        ),
        ([requested(GONE)], f"gone: {LEFT}"),
        ([requested(GONE), decided(request())], f"gone: {LEFT}; your answer came too late"),
        ([requested(replace(GONE, stage=RequestStage.ELSEWHERE))], "answered in the program"),
        (
            [requested(request()), decided(request(), stage=Stage.DELIVERED), ran(session(permit()), 5)],
            "allowed by you",
        ),
        (
            [
                requested(request()),
                decided(request(), Action.DENY, Stage.DELIVERED),
                ran(session(permit(allowed=False)), 5),
            ],
            "denied by you",
        ),
        ([requested(request()), ran(session(permit(by=Permitter.PERSON)), 5)], "allowed in the program"),
        ([requested(request()), ran(session(permit(False, Permitter.RULE)), 5)], "denied by a rule of the program"),
        (
            [
                requested(request()),
                decided(request()),
                requested(request(stage=RequestStage.UNKNOWN, ended_at=1_110.0), 5),
            ],
            "allowed by you; whether that counted is not known: the connection to its program broke",
        ),
        ([requested(request()), ran(session(permit(None)), 5)], "answered by a hook, not with your answer"),
    ],
)
def test_each_stage_has_words_of_its_own(events: list[Event], words: str) -> None:
    assert standing_words(task_of(*events).requests[0], 1_130.0) == words


def test_a_permission_is_told_apart_from_a_question() -> None:
    leave, asks = task_of(requested(request())), task_of(requested(question()))
    assert [a2a_state(task) for task in (leave, asks)] == ["auth-required", "input-required"]
    assert [look(task).word for task in (leave, asks)] == ["allow?", "asks"]
    for words, found in (("state:auth-required", leave), ("state:input-required", asks)):
        assert [parse(words).matches(task, 0.0) for task in (leave, asks)] == [leave is found, asks is found]


def test_what_a_store_or_a_return_says_of_a_permission_is_told_apart_too() -> None:
    by_store = tree_of([ran(session(waiting="a permission, it seems: task"))]).tasks["s1"]
    other = tree_of([ran(session(waiting="an answer: Which?"))]).tasks["s1"]
    recorder = Recorder()
    blocked = [replace(returned("blocked", Contract.SUBAGENT_RETURN, task_id="a"), reported_state="auth_required")]
    by_return = tree_of([recorder.seen("a.return.md", one) for one in blocked]).tasks["a"]
    assert [a2a_state(task) for task in (by_store, other, by_return)] == [
        "auth-required",
        "input-required",
        "auth-required",
    ]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("claude-code", "answer in its terminal; `agentwatch init --agent claude-code` lets you answer here"),
        ("kilo", "answer in its terminal; `agentwatch init --agent kilo` lets you answer here"),
        ("roo", "answer in its terminal"),
    ],
)
def test_what_cannot_be_answered_here_says_where_it_can(source: str, words: str) -> None:
    task = tree_of([ran(session(source=source, waiting="a permission"))]).tasks["s1"]
    assert where(task) == words


def test_the_line_that_makes_it_answerable_here_is_one_that_the_command_takes() -> None:
    for source in ("claude-code", "opencode", "kilo"):
        line = where(tree_of([ran(session(source=source, waiting="a permission"))]).tasks["s1"]).split("`")[1]
        program, command, *words = line.split()
        takes = next(one for one in load_command(command).ARGUMENTS if "--agent" in one.names)
        assert program == "agentwatch"
        assert parser_of(command).parse_intermixed_args(words).agent == source
        # Not one that it only knows what to make of.
        assert source in takes.choices


def test_what_a_denial_ends_is_said_before() -> None:
    assert denial_words(request(words=True)) == []
    assert denial_words(request(ends_turn=True, words=True, ends_others=1)) == [
        "a denial ends 1 other open request of its session, too",
        "a denial without words ends the turn of its agent",
    ]
    assert denial_words(question(ends_turn=True)) == ["a denial ends the turn of its agent"]
    assert denial_words(request(ends_turn=True, ends_others=1, actions=())) == []


def test_where_a_request_is_answered_is_said_by_its_holder_and_only_if_it_is_not_here() -> None:
    assert where(task_of()) == ""
    assert where(task_of(requested(request()))) == ""
    one = request(actions=(), why_not="a plan is answered in its terminal")
    assert where(task_of(requested(one))) == "a plan is answered in its terminal"
    assert where(task_of(requested(replace(one, why_not="")))) == "answer in its terminal"


def document(*events: Event) -> dict[str, object]:
    tree = tree_of([ran(session()), *events])
    [task] = tree_document(tree, "/w")["tasks"]
    [one] = task["requests"]
    assert isinstance(one, dict)
    return one


def test_the_json_has_the_request_as_it_was_asked() -> None:
    beside = (Given("cwd", '"/x"'),)
    one = document(requested(request(command="npm\u202e test", said="Runs it", beside=beside)))
    assert one["beside"] == [{"name": "cwd", "value": '"/x"'}]
    wanted = request(command="npm\u202e test")
    assert one["shown"] == "npm\u202e test"
    assert (one["request_id"], one["input_sha256"]) == (wanted.request_id, wanted.input_sha256)
    assert (one["kind"], one["options"], one["answerable"], one["why_not"]) == (
        "permission",
        ["allow", "deny"],
        True,
        None,
    )
    assert document(requested(question()))["options"] == ["SQLite", "Redis"]


@pytest.mark.parametrize(
    ("one", "more", "why_not"),
    [
        (request(actions=(), why_not="only there"), [], "only there"),
        (request(), [decided(request())], "it is decided already"),
        (GONE, [], LEFT),
    ],
)
def test_the_json_says_why_a_request_cannot_be_answered(one: Request, more: list[Event], why_not: str) -> None:
    made = document(requested(one), *more)
    assert (made["answerable"], made["why_not"]) == (False, why_not)
