"""Why a request cannot be answered here, which decision of a task still matters, and what it cost."""

from dataclasses import replace

import pytest

from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import RequestStage
from agentwatch.delegation.task import Attempt, Task
from agentwatch.view.words import GONE, cost_of, decision_of, is_on_its_way, why_not
from tests.unit.delegation.asking import request
from tests.unit.delegation.events import ROOT, decided


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, None),
        ({"actions": ()}, "answer in its terminal"),
        ({"actions": (), "why_not": "it is too long"}, "it is too long"),
        ({"stage": RequestStage.DECIDED}, "it is decided already"),
        ({"stage": RequestStage.GONE}, GONE),
        ({"stage": RequestStage.ACTED}, "it has ended: acted"),
    ],
)
def test_why_a_request_cannot_be_answered_here(fields, words):
    assert why_not(request(**fields)) == words


def test_the_decision_about_the_attempt_before_matters_still():
    decision = decided("a", Action.RETRY, 1.0).decision
    attempts = [Attempt(1, decisions=(decision,)), Attempt(2), Attempt(3)]
    assert [decision_of(Task("a", "a", attempts=attempts[:count])) for count in (1, 2, 3)] == [decision, decision, None]


def test_an_end_is_under_way_until_it_was_read_and_not_only_claimed():
    abort, retry = (decided("a", one, 1.0, 3).decision for one in (Action.ABORT, Action.RETRY))
    assert (is_on_its_way(abort), is_on_its_way(retry)) == (False, True)
    claimed = replace(abort, receipts=tuple(one._replace(claimed=True) for one in abort.receipts))
    assert is_on_its_way(claimed)
    assert not is_on_its_way(replace(claimed, expired=True))


@pytest.mark.parametrize(
    ("prices", "cost"),
    [
        ({"big": 3.0, "small": 1.0}, 7.0),
        ({"big": 3.0, "x/big": 5.0, "small": 1.0}, 11.0),
        ({"small": 1.0}, None),
    ],
)
def test_a_cost_is_told_where_every_price_is_known(prices, cost):
    runs = replace(ROOT, model="x/big", tokens=2_000_000), replace(ROOT, model="small", tokens=1_000_000), ROOT
    task = Task("a", "a", attempts=[Attempt(number, run=run) for number, run in enumerate(runs, 1)])
    assert cost_of(task, prices) == cost
