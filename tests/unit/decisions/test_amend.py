"""Documents that a decision hands on: valid by its contract, and changed only where it must be."""

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
    amended,
    final_report,
    fitter_packet,
    handoff_problems,
)
from agentwatch.decisions.record import Subject
from agentwatch.delegation.task import Task
from tests.unit.contracts.documents import PACKET, TODOS, text_of
from tests.unit.decisions.test_policy import Told, failed, returned

ID = "0123456789abcdef0123456789abcdef"
NAME = "x.handoff.json"
NEW = ["Operator: Use the new map.", "Hint of attempt 1: Pass the map as text."]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
FENCED = f"# Plan the bed\n\n```json\n{text_of(PACKET)}```\n\n{TODOS}"


def amend(text: str, name: str = NAME, **changes: Any) -> str:
    values = {"attempt": 2, "decision_id": ID, "note": "Use the new map.", "retry_hint": "Pass the map as text."}
    return amended(text, name, **(values | changes))


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
    packet = model(after, name)
    assert (packet.attempt, packet.decision_id, packet.mode, packet.session_id) == (2, ID, "planner", None)
    assert packet.notes == ["The tap is broken.", *NEW]
    new = {"attempt": 2, "decision_id": ID, "session_id": None, "notes": packet.notes, "todos": packet.todos}
    assert packet == model(text, name).model_copy(update=new)
    assert [todo.text for todo in packet.todos or ()] == [todo.text for todo in model(text, name).todos or ()]


@pytest.mark.parametrize("notes", [[], None, "no list", ["one", "two"]])
def test_notes_of_any_shape_get_the_new_ones(notes):
    before = {key: value for key, value in PACKET.items() if key != "attempt"} | {"notes": notes}
    after = amend(json.dumps(before))
    assert problems(after) == []
    assert json.loads(after)["notes"] == [*(notes if isinstance(notes, list) else []), *NEW]


@pytest.mark.parametrize("text", ["", "no packet", "[]", text_of(PACKET)[:-20], "{" * 2_000, '{"a": 1}'])
def test_without_a_sound_packet_it_is_said(text):
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
    reading = read_document(text, NAME)
    assert reading is not None
    assert reading.findings == ()
    packet = model(text)
    assert (packet.restores, packet.mode, packet.attempt, packet.decision_id) == ("x", "fitter", 1, ID)
    assert [one.path for one in packet.evidence or []] == ["x2.handoff.json", "x2.return.md"]
    assert packet.notes == ["Operator: The press jams."]
    subject = Subject("w", "x", 2, None, None)
    text = fitter_packet(task, decision_id=subject.decision_id)
    assert handoff_problems(task, subject, NAME, text, mode="fitter") == []


def test_the_final_report_is_a_valid_return():
    proposal = final_report(station(), note="The budget is spent.\nStop.", operator="ada")
    text = proposal.text
    assert proposal.problems(text) == []
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
