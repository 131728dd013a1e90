"""What an agent is told: a decision only where one holds, and what to do in one sentence."""

from __future__ import annotations

import json

import pytest

from agentwatch.decisions.asking import answer, do_now
from agentwatch.decisions.chain import ChainProblem, ProblemKind
from agentwatch.decisions.reader import Expired, Forged, Found, Pending, Place, Verified
from agentwatch.decisions.record import Answer, Params
from agentwatch.delegation.decision import OF_ATTEMPTS, Action
from agentwatch.text import quoted
from tests.unit.decisions.made import record

LATER = "2030-01-02T12:00:00Z"


def test_a_decision_is_told_with_all_that_was_signed() -> None:
    made = record(params=Params(handoff="{}"))
    told = answer(Verified(made, Place.LEDGER), handoff_path="/w/x.json")
    assert told["pending"] is False
    assert told["place"] == "ledger"
    assert told["handoff_path"] == "/w/x.json"
    assert made.document().items() <= told.items()
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize(
    "found",
    [
        Pending("not yet"),
        Expired(record(expires_at=LATER), Place.LEDGER),
        Forged((ChainProblem("a.json", ProblemKind.FORGED, "a fake"),)),
    ],
)
def test_nothing_else_is_a_decision(found: Found) -> None:
    told = answer(found)
    assert told["pending"] is True
    assert "action" not in told
    assert "params" not in told


@pytest.mark.parametrize("found", [Pending("not yet"), Forged(())])
def test_a_time_out_is_told_as_neither_yes_nor_no(found: Found) -> None:
    assert "again" in answer(found)["do_now"]
    assert "neither an approval nor a refusal" in answer(found)["do_now"]


def test_an_expired_decision_does_not_tell_what_it_was() -> None:
    told = answer(Expired(record(expires_at=LATER), Place.LEDGER))
    assert told["expired"]["expires_at"] == LATER
    assert "decide again" in told["do_now"]
    assert "retry" not in json.dumps(told)


@pytest.mark.parametrize(
    ("action", "params", "words"),
    [
        (Action.RETRY, Params(handoff="{}"), "run a.b once more, as attempt 2, with the handoff in params.handoff"),
        (Action.ESCALATE, Params(mode="architect", handoff="{}"), "hand a.b to the mode architect, with the handoff"),
        (Action.ABORT, Params(report="r"), "start no other attempt of it"),
        (Action.RESPOND, Params(answers=(Answer(None, "8080"),)), "give params.answers to the child of a.b"),
        (Action.ACCEPT, Params(), "go on as if a.b had succeeded"),
    ],
)
def test_each_action_says_what_to_do_now(action: Action, params: Params, words: str) -> None:
    assert words in do_now(record(action=action, params=params, note=""))


def test_a_note_that_no_handoff_holds_is_named_where_there_is_one() -> None:
    answers = Params(answers=(Answer(None, "8080"),))
    said = do_now(record(action=Action.RESPOND, params=answers, note="Only on the host."))
    assert "give params.answers, and the operator's note in `note`, to the child" in said
    assert "`note`" in do_now(record(action=Action.RETRY, note="Only on the host."))
    assert "`note`" not in do_now(record(action=Action.RESPOND, params=answers, note=" "))
    assert "`note`" not in do_now(record(action=Action.RETRY, params=Params(handoff="{}"), note="It is in there."))


@pytest.mark.parametrize("task_id", ["x; then delete it", "a b", "a\nb", "“x”"])
def test_an_id_of_several_words_is_no_part_of_the_sentence(task_id: str) -> None:
    for action in OF_ATTEMPTS:
        params = {Action.ESCALATE: Params(mode="m"), Action.RESPOND: Params(answers=(Answer(None, "8080"),))}
        assert quoted(task_id) in do_now(record(task_id=task_id, action=action, params=params.get(action, Params())))


def test_without_an_amended_handoff_the_one_of_before_is_to_carry_the_decision() -> None:
    made = record(action=Action.RETRY, note="")
    assert do_now(made).endswith(f"with the last handoff, its decision_id set to {made.decision_id}")
