"""What is asked for on the command line becomes what would be recorded, or a sentence of what is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentwatch.cli.decide_wish import Wish, agrees, lines, params_of, plain_params
from agentwatch.cli.pending import commands
from agentwatch.decisions.amend import UNSTATED, AmendError
from agentwatch.decisions.desk import Desk
from agentwatch.decisions.errors import NoAnswerError
from agentwatch.decisions.proposal import report_problems
from agentwatch.decisions.record import Answer, Mitigation, Params, Subject
from agentwatch.delegation.decision import OF_ATTEMPTS, Action
from agentwatch.delegation.task import Task
from agentwatch.errors import UsageError
from tests.unit.decisions.made import record
from tests.unit.decisions.test_policy import Told, blocked, failed, returned
from tests.unit.history.recorded import packet

RETRY, ESCALATE, ABORT, RESPOND, _ = OF_ATTEMPTS
HANDOFF = packet("x", attempt=1)


def subject_of(task: Task) -> Subject:
    return Desk(Path("/w"), state=Path("/s"), configuration=Path("/c")).subject(task)


def made(task: Task, wish: Wish, text: str | None = HANDOFF) -> Params:
    return params_of(wish, task, subject_of(task), "ada", lambda _version: text)


def test_a_retry_carries_the_last_handoff_with_the_note_and_the_hint_of_the_child() -> None:
    task = failed()
    handoff = made(task, Wish(RETRY, note="Use the map.")).handoff
    assert handoff is not None
    found = json.loads(handoff)
    assert found["attempt"] == 2
    assert found["decision_id"] == subject_of(task).decision_id
    assert found["notes"][-2:] == ["Operator: Use the map.", "Hint of attempt 1: Again."]


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


def test_an_escalation_names_the_mode_in_the_handoff() -> None:
    params = made(failed(), Wish(ESCALATE, mode="architect"))
    assert params.mode == "architect"
    assert json.loads(params.handoff or "")["mode"] == "architect"


def test_a_line_fault_goes_to_the_fitter_with_a_packet_of_its_own() -> None:
    found = json.loads(made(failed(code="E_LINE_FAULT"), Wish(ESCALATE, mode="fitter")).handoff or "")
    assert found["restores"] == "x"
    assert found["task_id"] == "x.fitter-1"
    assert found["attempt"] == 1


def test_an_abort_carries_a_sound_final_report() -> None:
    report = made(failed(), Wish(ABORT, note="Enough.")).report
    assert report is not None
    assert report_problems(report) == []
    assert "- Enough." in report


@pytest.mark.parametrize(
    ("action", "words"),
    [(RESPOND, {"answers": ("Blue.", "TEXT")}), (RETRY, {"note": "TEXT"}), (ESCALATE, {"mode": "MODE"})],
)
def test_a_word_of_a_printed_line_that_stands_for_the_operators_is_refused(
    action: Action, words: dict[str, Any]
) -> None:
    with pytest.raises(UsageError, match=r"not recorded: (TEXT|MODE) stands for"):
        Wish(action, **words)


def test_answers_go_to_the_blockers_in_their_order() -> None:
    assert plain_params(Wish(RESPOND, answers=("Blue.",)), blocked()).answers == (Answer("Which colour?", "Blue."),)
    with pytest.raises(UsageError, match="2 answers are given, and it asks 1"):
        plain_params(Wish(RESPOND, answers=("Blue.", "Red.")), blocked())


@pytest.mark.parametrize("given", [(), ("8080",)])
def test_a_question_without_an_answer_is_refused_and_all_are_listed(given: tuple[str, ...]) -> None:
    task = blocked("Which port?", "Which host?")
    with pytest.raises(UsageError, match=r"(?s)to 2 questions.*1\. Which port\?\n  2\. Which host\?"):
        plain_params(Wish(RESPOND, answers=given), task)
    assert plain_params(Wish(RESPOND, answers=("8080", "db")), task).answers == (
        Answer("Which port?", "8080"),
        Answer("Which host?", "db"),
    )
    words = commands(task, Desk(Path("/w"), state=Path("/s"), configuration=Path("/c")), Path("/w"))[RESPOND]
    assert words.count("--respond TEXT") == 2


def test_where_no_question_is_known_every_answer_is_one_to_all() -> None:
    answers = plain_params(Wish(RESPOND, answers=("Go on.", "Quickly.")), failed()).answers
    assert answers == (Answer(None, "Go on."), Answer(None, "Quickly."))


def test_a_task_without_a_handoff_gets_none() -> None:
    told = Told()
    task = told.tell(told.seen.seen("x.return.md", returned().replace("\n", "\ntask_id: x\n", 1)))
    assert made(task, Wish(RETRY)).handoff is None


def test_a_handoff_whose_text_is_lost_must_be_given() -> None:
    with pytest.raises(AmendError, match="is not kept any more; write a new handoff, and give --handoff FILE"):
        made(failed(), Wish(RETRY), text=None)


def test_a_handoff_of_the_operator_is_taken_as_it_is_where_it_is_sound() -> None:
    task = failed()
    mine = json.dumps(json.loads(HANDOFF) | {"attempt": 2, "decision_id": subject_of(task).decision_id})
    assert made(task, Wish(RETRY, handoff=(mine, "mine.json"))).handoff == mine


def test_a_handoff_for_another_attempt_is_refused_with_what_must_be_in_it() -> None:
    task = failed()
    with pytest.raises(UsageError) as error:
        made(task, Wish(RETRY, handoff=(HANDOFF, "mine.json")))
    assert "mine.json cannot be handed on" in str(error.value)
    assert "attempt must be 2" in str(error.value)
    assert f"decision_id must be {subject_of(task).decision_id}" in str(error.value)


@pytest.mark.parametrize(
    ("words", "wish"),
    [
        ("--mitigation belongs to --retry", {"action": ABORT, "mitigation": Mitigation.CHANGED_INPUTS}),
        ("--handoff belongs to --retry and --escalate", {"action": ABORT, "handoff": ("{}", "x")}),
    ],
)
def test_what_does_not_belong_to_an_action_is_wrong_usage(words: str, wish: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=words):
        Wish(**wish)  # type: ignore[arg-type]


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


def test_a_mitigation_without_any_change_in_the_handoff_is_warned_about() -> None:
    told = "a mitigation, and nothing is changed in the handoff"
    plain = Wish(RETRY, mitigation=Mitigation.CHANGED_INPUTS)
    assert told in cautions_of(failed(), plain)
    assert told not in cautions_of(failed(), Wish(RETRY))
    assert told not in cautions_of(failed(), replace(plain, note="Read b.py instead."))
    same = made(failed(), plain).handoff or ""
    laid_out = json.dumps(json.loads(same), indent=7)
    assert told in cautions_of(failed(), replace(plain, handoff=(laid_out, "mine.handoff.json")))
    other = json.dumps(json.loads(same) | {"objective": "build half of it"})
    assert told not in cautions_of(failed(), replace(plain, handoff=(other, "mine.handoff.json")))
