"""What is asked for on the command line becomes what would be recorded, or a sentence of what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentwatch.cli.decide_wish import Wish, agrees, lines, params_of, plain_params
from agentwatch.cli.pending import commands
from agentwatch.decisions.errors import NoAnswerError
from agentwatch.decisions.handoff import UNSTATED, AmendError
from agentwatch.decisions.record import Answer, Mitigation, Params, Subject
from agentwatch.decisions.service import LocalService
from agentwatch.delegation.decision import OF_ATTEMPTS, Action
from agentwatch.delegation.task import Task
from agentwatch.errors import UsageError
from tests.unit.decisions.made import record
from tests.unit.decisions.test_policy import blocked, failed
from tests.unit.history.recorded import packet

RETRY, ESCALATE, ABORT, RESPOND, _ = OF_ATTEMPTS
HANDOFF = packet("x", attempt=1)


def subject_of(task: Task) -> Subject:
    return LocalService(Path("/w"), state=Path("/s"), configuration=Path("/c")).subject(task)


def made(task: Task, wish: Wish, text: str | None = HANDOFF) -> Params:
    return params_of(wish, task, subject_of(task), "ada", lambda _version: text)


@pytest.mark.parametrize("wish", [Wish(RETRY), Wish(ESCALATE, mode="debug"), Wish(ABORT)])
def test_all_of_the_text_that_is_signed_is_printed(wish: Wish) -> None:
    task = failed()
    notes = [f"line {number} " + "y" * 500 for number in range(99)]
    params = made(task, wish, json.dumps({**json.loads(HANDOFF), "notes": notes}, indent=1))
    printed = "\n".join(lines(task, subject_of(task), wish, params, warnings=(), places=()))
    for line in (params.handoff or params.report or "").splitlines():
        assert f"│ {line}" in printed


def test_a_host_that_does_not_answer_is_no_lost_handoff() -> None:
    def silent(_version: object) -> str | None:
        raise NoAnswerError("build1 does not give the text now: it does not answer")

    task = failed()
    with pytest.raises(AmendError, match="build1 does not give the text now"):
        params_of(Wish(RETRY), task, subject_of(task), "ada", silent)
    handoff = made(task, Wish(RETRY)).handoff or ""
    given = params_of(Wish(RETRY, handoff=(handoff, "x.json")), task, subject_of(task), "ada", silent)
    assert given.handoff == handoff


def test_the_same_wish_makes_the_same_parameters() -> None:
    task = failed()
    wish = Wish(RETRY, mitigation=Mitigation.REDUCED_SCOPE, note="Less.")
    assert made(task, wish) == made(task, wish)


def test_a_wish_agrees_with_what_is_recorded_unless_it_says_otherwise() -> None:
    mitigated = Params(Mitigation.CHANGED_INPUTS, HANDOFF)
    retried = record(action=RETRY, params=mitigated, note="Use the map.")
    for wish in (
        Wish(RETRY),
        Wish(RETRY, note="Use the map."),
        Wish(RETRY, mitigation=Mitigation.CHANGED_INPUTS, handoff=(HANDOFF, "mine.json")),
    ):
        assert agrees(wish, retried)
    for wish in (
        Wish(ABORT),
        Wish(RETRY, note="Use another."),
        Wish(RETRY, mitigation=Mitigation.REDUCED_SCOPE),
        Wish(RETRY, handoff=("{}", "mine.json")),
    ):
        assert not agrees(wish, retried)
    answered = record(action=RESPOND, params=Params(answers=(Answer("Which colour?", "Blue."),)))
    assert agrees(Wish(RESPOND, answers=("Blue.",)), answered)
    assert not agrees(Wish(RESPOND, answers=("Red.",)), answered)
    escalated = record(action=ESCALATE, params=Params(mode="debug"))
    assert agrees(Wish(ESCALATE, "debug"), escalated)
    assert not agrees(Wish(ESCALATE, "fitter"), escalated)


@pytest.mark.parametrize(
    ("action", "words"),
    [(RESPOND, {"answers": ("Blue.", "TEXT")}), (RETRY, {"note": "TEXT"}), (ESCALATE, {"mode": "MODE"})],
)
def test_a_word_of_a_printed_line_that_stands_for_the_operators_is_refused(
    action: Action, words: dict[str, Any]
) -> None:
    with pytest.raises(UsageError, match=r"not recorded: (TEXT|MODE) stands for"):
        Wish(action, **words)


@pytest.mark.parametrize("given", [(), ("8080",)])
def test_a_question_without_an_answer_is_refused_and_all_are_listed(given: tuple[str, ...]) -> None:
    task = blocked("Which port?", "Which host?")
    with pytest.raises(UsageError, match=r"(?s)to 2 questions.*1\. Which port\?\n  2\. Which host\?"):
        plain_params(Wish(RESPOND, answers=given), task)
    assert plain_params(Wish(RESPOND, answers=("8080", "db")), task).answers == (
        Answer("Which port?", "8080"),
        Answer("Which host?", "db"),
    )
    words = commands(task, LocalService(Path("/w"), state=Path("/s"), configuration=Path("/c")), Path("/w"))[RESPOND]
    assert words.count("--respond TEXT") == 2


def cautions_of(task: Task, wish: Wish, text: str = HANDOFF) -> str:
    beware: list[str] = []
    params_of(wish, task, subject_of(task), "ada", lambda _version: text, beware=beware)
    return " ".join(beware)


def test_a_handoff_that_breaks_its_contract_is_retried_with_what_is_missing_filled_in() -> None:
    broken = json.dumps({key: value for key, value in json.loads(HANDOFF).items() if key != "risks"})
    params = made(failed(), Wish(RETRY), broken)
    assert UNSTATED in (params.handoff or "")
    assert "risks filled in or corrected here" in cautions_of(failed(), Wish(RETRY), broken)
    assert cautions_of(failed(), Wish(RETRY)) == ""
