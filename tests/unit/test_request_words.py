"""What is said of a request: how far it has got, where it is answered, and what other programs read of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentwatch.cli.command import load_command, parser_of
from agentwatch.delegation.decision import Action, Stage
from agentwatch.delegation.events import Event
from agentwatch.delegation.request import Given, RequestStage
from agentwatch.delegation.run import Permitter
from agentwatch.delegation.task import Task
from agentwatch.view.document import tree_document
from agentwatch.view.requests import denial_words, standing_words, where
from tests.unit.delegation.asking import decided, permit, question, ran, request, requested, session
from tests.unit.delegation.events import tree_of

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
