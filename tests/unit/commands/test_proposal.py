"""A wish of the command line becomes the record that would be signed, or a sentence about what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentwatch.cli.decide import Wish, agrees, lines, params_of
from agentwatch.decisions.errors import NoAnswerError
from agentwatch.decisions.handoff import AmendError
from agentwatch.decisions.record import Answer, Mitigation, Params
from agentwatch.decisions.service import LocalService
from agentwatch.delegation.decision import Action
from tests.unit.decisions.made import record
from tests.unit.decisions.test_policy import failed
from tests.unit.history.recorded import packet

HANDOFF = packet("x", attempt=1)


def made(wish: Wish, text: Any = HANDOFF) -> Params:
    task = failed()
    subject = LocalService(Path("/w"), state=Path("/s"), configuration=Path("/c")).subject(task)

    def text_of(_version: object) -> str:
        if isinstance(text, Exception):
            raise text
        return str(text)

    monitor = cast("Any", SimpleNamespace(text=text_of, tree=SimpleNamespace(failed_below=lambda _: ())))
    return params_of(task, subject, wish, Params(mode=wish.mode), monitor)


@pytest.mark.parametrize("wish", [Wish(Action.RETRY), Wish(Action.ESCALATE, mode="debug"), Wish(Action.ABORT)])
def test_all_of_the_text_that_is_signed_is_printed(wish: Wish) -> None:
    notes = [f"line {number} " + "y" * 500 for number in range(99)]
    params = made(wish, json.dumps({**json.loads(HANDOFF), "notes": notes}, indent=1))
    printed = "\n".join(lines(wish, params, []))
    for line in (params.handoff or params.report or "").splitlines():
        assert f"│ {line}" in printed


def test_a_host_that_does_not_answer_is_no_lost_handoff() -> None:
    silent = NoAnswerError("build1 does not give the text now: it does not answer")
    with pytest.raises(AmendError, match="build1 does not give the text now"):
        made(Wish(Action.RETRY), silent)
    handoff = made(Wish(Action.RETRY)).handoff or ""
    assert made(Wish(Action.RETRY, handoff=(handoff, "x.json")), silent).handoff == handoff


def test_a_wish_agrees_with_what_is_recorded_unless_it_says_otherwise() -> None:
    retried = record(action=Action.RETRY, params=Params(Mitigation.CHANGED_INPUTS, HANDOFF), note="Use the map.")
    for wish in (Wish(Action.RETRY), Wish(Action.RETRY, note="Use the map.", handoff=(HANDOFF, "mine.json"))):
        assert agrees(wish, retried)
    for wish in (
        Wish(Action.ABORT),
        Wish(Action.RETRY, note="Use another."),
        Wish(Action.RETRY, mitigation="reduced_scope"),
        Wish(Action.RETRY, handoff=("{}", "mine.json")),
    ):
        assert not agrees(wish, retried)
    answered = record(action=Action.RESPOND, params=Params(answers=(Answer("Which colour?", "Blue."),)))
    assert agrees(Wish(Action.RESPOND, answers=("Blue.",)), answered)
    assert not agrees(Wish(Action.RESPOND, answers=("Red.",)), answered)


def test_a_handoff_that_breaks_its_contract_is_not_handed_on() -> None:
    broken = json.dumps({key: value for key, value in json.loads(HANDOFF).items() if key != "risks"})
    with pytest.raises(AmendError, match=r"the last handoff is not sound.*--handoff FILE:\n.*risks"):
        made(Wish(Action.RETRY), broken)
