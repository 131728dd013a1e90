"""The decisions that error-propagation allows, and the reasons why it refuses others."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.contracts.handoff import HandoffPacket
from agentwatch.contracts.reading import read_document
from agentwatch.decisions.form import (
    AmendError,
    DecisionForm,
    amend_handoff,
    decision_facts,
    final_report,
    fitter_packet,
    handoff_problems,
)
from agentwatch.decisions.policy import find_warnings, suggest_action, why_impossible, why_refused
from agentwatch.decisions.record import Answer, Mitigation, Params, Subject
from agentwatch.delegation.decision import OF_ATTEMPTS, Action
from agentwatch.delegation.events import Checked, Claim, Event, Tick, Verdict
from agentwatch.delegation.task import State, Task
from agentwatch.delegation.tree import Tree
from tests.unit.agents.documents import returned
from tests.unit.contracts.documents import PACKET, TODOS, text_of
from tests.unit.delegation.events import child, decided, ran
from tests.unit.history.recorded import Workspace, meta, packet

RETRY, ESCALATE, ABORT, RESPOND, ACCEPT = OF_ATTEMPTS
MITIGATION = Mitigation.CHANGED_INPUTS


class Told:
    """A tree that gets events about one task `x`, attempt by attempt."""

    def __init__(self):
        self.seen, self.tree = Workspace(), Tree()

    def tell(self, *events: Event) -> Task:
        for event in events:
            self.tree.apply(event)
        return self.tree.tasks["x"]

    def attempt(self, number: int, text: str | None = None) -> Task:
        task = self.tell(self.seen.seen(f"x{number}.handoff.json", packet("x", attempt=number)))
        if text is not None:
            text = text.replace("\n", f"\ntask_id: x\nattempt: {number}\n", 1)
            task = self.tell(self.seen.seen(f"x{number}.return.md", text))
        return task


def failed(times: int = 1, code: str = "E_X", advised: str = "yes") -> Task:
    told = Told()
    for number in range(1, times + 1):
        text = returned(code=code).replace("retry_recommended: yes", f"retry_recommended: {advised}")
        task = told.attempt(number, text)
    return task


def reported(status: str, **more: object) -> Task:
    told = Told()
    return told.tell(told.seen.seen(".return-meta.json", json.dumps(json.loads(meta(status, agent="x")) | more)))


def blocked() -> Task:
    return reported("blocked", blockers=["Which colour?"])


def contradicted() -> Task:
    told = Told()
    task = told.attempt(1, returned("SUCCESS"))
    version = task.attempts[0].returned
    assert version is not None
    claim = Claim("created", "a.py", Verdict.CONTRADICTED, "not there")
    return told.tell(Checked(99, 99.0, version.path, version.digest, (claim,)))


def stale() -> Task:
    told = Told()
    told.attempt(1)
    return told.tell(told.seen.seen("x1.todos.md", "- [x] one\n- [ ] two\n"), Tick(99, 1e9))


def allowed(task: Task, **given: Any) -> set[Action]:
    return {action for action in OF_ATTEMPTS if why_impossible(task, action, **given) is None}


CASES: dict[str, tuple[Task, set[Action]]] = {
    "handed off": (Told().attempt(1), {ABORT}),
    "failed": (failed(), {RETRY, ESCALATE, ABORT, RESPOND}),
    "failed twice": (failed(2), {ESCALATE, ABORT}),
    "partial": (Told().attempt(1, returned("PARTIAL", limits=["half"])), {RETRY, ESCALATE, ACCEPT}),
    "completed": (Told().attempt(1, returned("SUCCESS")), set()),
    "invalid": (Told().attempt(1, "## Status\nstate: SUCCESS\n"), {RETRY, ESCALATE, ABORT, RESPOND, ACCEPT}),
    "blocked": (blocked(), {RETRY, ESCALATE, ABORT, RESPOND}),
    "contradicted": (contradicted(), {RETRY, ESCALATE, ABORT, RESPOND, ACCEPT}),
    "stale": (stale(), {RETRY, ESCALATE, ABORT}),
}


@pytest.mark.parametrize("name", CASES)
def test_allowed_decisions_and_a_reason_for_every_refusal(name):
    task, expected = CASES[name]
    assert allowed(task) == expected
    assert all(why_impossible(task, action) != "" for action in OF_ATTEMPTS)


def test_with_a_mitigation_there_is_a_second_retry_and_no_third():
    assert [RETRY in allowed(failed(times), mitigation=MITIGATION) for times in (2, 3)] == [True, False]
    assert why_refused(failed(2), RETRY, Params(mitigation=MITIGATION), "") is None


def called(told: Told, task: Task) -> Task:
    """Call the fitter for the latest attempt, by the decision `d1`."""
    assert task.latest.returned is not None
    about = {"attempt": task.attempt, "return_sha256": task.latest.returned.digest, "mode": "fitter"}
    told.tell(decided("x", ESCALATE, 1.0, name="d1", **about))
    fitter = json.loads(packet("fit")) | {"restores": "x", "decision_id": "d1"}
    return told.tell(told.seen.seen("f/fit.handoff.json", json.dumps(fitter)))


def test_a_station_gets_one_retry_once_its_fitter_has_ended():
    told = Told()
    told.attempt(1, returned(code="E_LINE_FAULT"))
    task = called(told, told.attempt(2, returned(code="E_LINE_FAULT")))
    assert allowed(task) == set()
    task = told.tell(told.seen.seen("f/fit.return.md", returned("SUCCESS")))
    assert (task.retry.remaining, suggest_action(task), [*find_warnings(task, RETRY)]) == (1, RETRY, [])
    assert "retry first" in (why_refused(task, ESCALATE, Params(mode="fitter"), "") or "")
    assert why_refused(task, ESCALATE, Params(mode="debug"), "") is None
    task = told.attempt(3, returned(code="E_LINE_FAULT"))
    assert RETRY not in allowed(task) | allowed(task, mitigation=MITIGATION)


def test_advice_and_repeated_failures_warn_and_do_not_forbid():
    advised, same, told = failed(advised="no"), failed(2), Told()
    assert [*find_warnings(advised, RETRY)] == ["the child advises against a retry"]
    assert [*find_warnings(advised, ESCALATE)] == []
    alike = "the last two attempts failed in the same way: escalating is more likely to help"
    assert [*find_warnings(same, RETRY)] == [alike]
    assert suggest_action(advised) is suggest_action(same) is ESCALATE
    told.attempt(1, returned(code="E_ONE"))
    other = told.attempt(2, returned(code="E_TWO"))
    assert ([*find_warnings(other, RETRY)], suggest_action(other)) == ([], ESCALATE)


@pytest.mark.parametrize(
    ("action", "params", "note", "words"),
    [
        (ESCALATE, Params(), "", "say which mode"),
        (ESCALATE, Params(mode="code"), "", "it ran in the mode “code” already"),
        (RESPOND, Params(), "", "say what the answer is"),
        (RESPOND, Params(answers=(Answer(None, " \n"),)), "", "say what the answer is"),
        (RESPOND, Params(answers=(Answer("Who?", "Ada."), Answer("When?", ""))), "", "say what the answer is"),
        (ACCEPT, Params(), " \n", "say why the return is good enough"),
    ],
)
def test_what_must_come_along_is_asked_for(action, params, note, words):
    task = Told().attempt(1, returned("SUCCESS").replace("summary: The migration timed out.\n", ""))
    assert words in (why_refused(task, action, params, note) or "")


def test_what_the_contracts_point_to():
    assert suggest_action(failed()) is RETRY
    assert suggest_action(failed(2)) is ESCALATE
    assert suggest_action(blocked()) is RESPOND
    assert suggest_action(contradicted()) is RETRY
    assert suggest_action(CASES["completed"][0]) is None
    review = reported("partial", requires_user_review=True, review_reason="look")
    assert (suggest_action(review), ABORT in allowed(review)) == (ACCEPT, True)


def test_a_task_that_waits_in_its_session_is_answered_there():
    task = Told().tell(*ran(child("x", waiting="a permission")))
    assert task.state is State.BLOCKED
    assert why_impossible(task, RESPOND) == "it waits in its own session, which reads no decision: answer it there"
    heard_late = "it waits in its own session: answer it there, or this is heard too late"
    assert [next(find_warnings(task, action)) for action in (RETRY, ESCALATE, ABORT)] == [heard_late] * 3
    assert suggest_action(task) is None


# Documents that a decision hands on

ID = "0123456789abcdef0123456789abcdef"
NAME = "x.handoff.json"
NEW = ["Operator: Use the new map.", "Hint of attempt 1: Pass the map as text."]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
FENCED = f"# Plan the bed\n\n```json\n{text_of(PACKET)}```\n\n{TODOS}"


def amend(text: str, name: str = NAME, **changes: Any) -> str:
    values = {"attempt": 2, "decision_id": ID, "note": "Use the new map.", "retry_hint": "Pass the map as text."}
    return amend_handoff(text, name, **(values | changes))


def model(text: str, name: str = NAME) -> HandoffPacket:
    opened = read_document(text, name)
    assert opened is not None
    assert isinstance(opened.model, HandoffPacket)
    return opened.model


def problems(text: str, name: str = NAME, **changes: Any) -> list[str]:
    subject = Subject("w", changes.get("task_id", PACKET["task_id"]), changes.get("attempt", 1), None, None)
    task = replace(station(), task_id=subject.task_id)
    return handoff_problems(task, subject, name, text.replace(ID, subject.decision_id))


@pytest.mark.parametrize("name", [NAME, "x.handoff.md"])
def test_an_amended_handoff_is_valid_and_says_what_is_new(name):
    text = text_of(PACKET) if name == NAME else FENCED
    after = amend(text, name)
    assert problems(after, name) == []
    before, packet = model(text, name), model(after, name)
    notes = ["The tap is broken.", *NEW]
    new = {"attempt": 2, "decision_id": ID, "session_id": None, "notes": notes, "todos": packet.todos}
    assert packet == before.model_copy(update=new)
    assert [todo.text for todo in packet.todos or ()] == [todo.text for todo in before.todos or ()]


@pytest.mark.parametrize("notes", [[], None, "no list", ["one", "two"]])
def test_notes_of_any_shape_get_the_new_ones(notes):
    before = {key: value for key, value in PACKET.items() if key != "attempt"} | {"notes": notes}
    after = amend(json.dumps(before))
    assert problems(after) == []
    assert json.loads(after)["notes"] == [*(notes if isinstance(notes, list) else []), *NEW]


@pytest.mark.parametrize("text", ["", "no packet", "[]", text_of(PACKET)[:-20], "{" * 2_000, '{"a": 1}'])
def test_a_proposal_without_a_sound_packet_says_so(text):
    with pytest.raises(AmendError, match="write a new one"):
        amend(text)


def test_an_edited_handoff_is_checked():
    good = amend(text_of(PACKET))
    assert problems("# Nothing", "x.md") == ["it is no handoff packet any more"]
    assert len(problems(good[:-30])) == 1
    assert problems(good, attempt=2) == ["attempt must be 3"]
    assert problems(good, task_id="other\x1b") == ["task_id must be other␛"]
    assert problems(good.replace(ID, "f" * 32))[0].startswith("decision_id must be ")
    assert "objective" in problems(good.replace('"objective"', '"aim"'))[0]
    assert any(one.startswith("line ") for one in problems(good.replace('"required": true', '"required": "yes"')))


def station() -> Task:
    return failed(2, code="E_LINE_FAULT")


def test_the_fitter_gets_a_packet_that_names_what_it_restores():
    task = station()
    text = fitter_packet(task, decision_id=ID, note="The press jams.")
    packet = model(text)
    assert (packet.restores, packet.mode, packet.attempt, packet.decision_id) == ("x", "fitter", 1, ID)
    assert [one.path for one in packet.evidence or []] == ["x2.handoff.json", "x2.return.md"]
    assert packet.notes == ["Operator: The press jams."]
    subject = Subject("w", "x", 2, None, None)
    text = fitter_packet(task, decision_id=subject.decision_id, note="The press jams.")
    assert handoff_problems(task, subject, NAME, text, mode="fitter") == []


def test_a_return_that_was_written_again_is_not_as_you_saw_it():
    seen, told = failed(), Told()
    told.attempt(1, returned(code="E_X"))
    again = told.attempt(1, returned(summary="It broke."))
    subject = Subject("w", "x", 1, None, seen.latest.returned.digest)
    for task, words in ((seen, "unchanged"), (again, "not as you saw it")):
        lines = {
            one.label: one.parts for one in decision_facts(seen, task, subject, RETRY, Params(), now=9.0, writes="")
        }
        assert lines["return"][-1][0] == words


def test_a_written_mode_comes_before_a_chosen_one():
    task = station()
    form = DecisionForm(task, Subject("w", "x", 2, None, None), ESCALATE, [task], {"architect": "plans anew"})
    mode = form["mode"]
    assert mode is not None
    assert form.params().mode == mode.options[0][0]
    mode.text = " by hand "
    assert form.params().mode == "by hand"


def test_the_final_report_is_a_valid_return():
    proposal = final_report(station(), note="The budget is spent.\nStop.", operator="ada")
    text = proposal.text
    assert proposal.problems(text.replace("ERROR", "SUCCESS", 1)) != []
    assert "no return-format document" in proposal.problems("{}")[0]
    assert "Aborted by the operator after 2 attempts: E_LINE_FAULT: " in text
    assert "- The budget is spent.\n- Stop.\n" in text
    assert "- x2.return.md (sha256 " in text
    proposal = final_report(Task("x", "x"))
    assert proposal.problems(proposal.text) == []


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_no_text_breaks_the_final_report(task_id, note, operator, code):
    told = Told()
    task = told.attempt(1, returned())
    task.task_id = task_id or "x"
    result = task.result
    assert result is not None
    object.__setattr__(result, "error_code", code)
    proposal = final_report(task, note=note, operator=operator)
    assert proposal.problems(proposal.text) == []
