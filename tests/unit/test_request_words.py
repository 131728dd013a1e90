"""What is said of a request: how far it has got, where it is answered, and what other programs read of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentwatch.delegation.decision import Action, Stage
from agentwatch.delegation.events import Event
from agentwatch.delegation.request import RequestStage
from agentwatch.delegation.run import Permitter
from agentwatch.delegation.task import Task
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


def test_what_a_denial_ends_is_said_before() -> None:
    ends = "ends the turn of its agent"
    assert denial_words(request(words=True)) == denial_words(request(ends_turn=True, actions=())) == []
    also = "a denial ends 1 other open request of its session, too"
    assert denial_words(request(ends_turn=True, words=True, ends_others=1)) == [also, f"a denial without words {ends}"]
    assert denial_words(question(ends_turn=True)) == [f"a denial {ends}"]
