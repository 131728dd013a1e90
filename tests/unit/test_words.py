"""Why a request cannot be answered here, which decision of a task matters and how far it is, and what it cost."""

from dataclasses import replace

import pytest

from agentwatch.app.decision_words import receipt_line, short, warning
from agentwatch.app.decision_words import why_not as why_not_decided
from agentwatch.delegation.decision import Action, Receipt, RequestStage, Stage
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


def told(at, *more):
    return {"receipts": (Receipt(Stage.RECORDED, at, "ada"), Receipt(Stage.DELIVERED, at), *more)}


SAYS_SO = Receipt(Stage.READ, 940.0, "one", claimed=True, taken_by="two")
ON = "recorded 3m ago · delivered"
GOT = f"{ON} · read"
SAID = "read by one 1m ago (an agent says so) · claimed by “two”, not acted on yet"


@pytest.mark.parametrize(
    ("action", "stages", "fields", "row", "line", "trouble"),
    [
        (Action.RETRY, 1, {}, "∙ recorded", "retry · recorded 3m ago", ""),
        (Action.RETRY, 1, {"waits": "no room"}, "! undelivered", "retry · recorded 3m ago", "no room"),
        (Action.RETRY, 2, {}, "! unread 3m", f"retry · {ON}", "not read for 3m: is an agent waiting"),
        (Action.RETRY, 2, told(821.0), "→ delivered", "retry · recorded 2m ago · delivered", ""),
        (Action.RETRY, 3, {}, "◉ read 3m", f"retry · {GOT} · attempt 2 not seen yet", ""),
        (Action.RETRY, 3, told(800.0, SAYS_SO), "◉ says read 1m", f"retry · {ON} · {SAID}", ""),
        (Action.RETRY, 4, {}, "✓ acted", f"retry · {GOT} · acted", ""),
        (Action.ESCALATE, 2, {"mode": "debug"}, "! unread 3m", f"escalate to debug · {ON}", "not read for 3m"),
        (
            Action.ESCALATE,
            3,
            {"mode": "fitter"},
            "◉ read 3m",
            f"escalate to fitter · {GOT} · the fitter not seen yet",
            "",
        ),
        (Action.ABORT, 3, {}, "◉ read 3m", f"abort · {GOT}", ""),
    ],
)
def test_how_far_a_decision_has_got(action, stages, fields, row, line, trouble):  # noqa: PLR0917
    made = decided("a", action, 800.0, stages, **fields).decision
    assert (short(made, 1_000.0), receipt_line(made, 1_000.0).plain) == (row, line)
    assert (warning(made, 1_000.0) or "")[: len(trouble) or None] == trouble
    task = Task("a", "a", attempts=[Attempt(1, decisions=(made,))])
    why = f"already decided: you said {action} 3m ago; you can decide about the next attempt"
    assert why_not_decided(task, Action.RETRY, 1_000.0) == why
    task.workspace = "/w"
    assert why_not_decided(task, Action.RETRY, 1_000.0) == "this row is a workspace; go to one of its tasks"
