"""Which texts are handoffs and returns, and which only look like them or talk about them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Contract, Handoff, Outcome, Return, TodoList
from tests.unit.contracts.documents import (
    FAILURE,
    META,
    PACKET,
    REPORT,
    RETURN,
    SUBAGENT,
    TODOS,
    drop,
    open_document,
    put,
    text_of,
)

FENCED_PACKET = f"```json\n{text_of(PACKET)}```\n"
STAGE = {"status": "implemented", "metadata": SUBAGENT["metadata"], "artifacts": []}


def contract_of(text: str, name: str) -> Contract | None:
    reading = read_document(text, name)
    return reading.contract if reading is not None and reading.document.recognised else None


@pytest.mark.parametrize(
    ("text", "name", "contract"),
    [
        (text_of(PACKET), "anything.json", Contract.HANDOFF_PACKET),
        (text_of(PACKET), "x.handoff.json", Contract.HANDOFF_PACKET),
        (text_of(drop("handoff_schema")(PACKET)), "anything.json", Contract.HANDOFF_PACKET),
        (text_of(PACKET), "schema.handoff.json", Contract.HANDOFF_PACKET),
        (text_of(PACKET), "handoffs/checkout.schema.json", Contract.HANDOFF_PACKET),
        (text_of({"task_id": "a", "objective": "Do."}), "x.handoff.json", Contract.HANDOFF_PACKET),
        (text_of({"objective": "Do.", "risks": []}), "handoffs/x.json", Contract.HANDOFF_PACKET),
        (FENCED_PACKET, "notes.md", Contract.HANDOFF_PACKET),
        (FENCED_PACKET.replace("json", "", 1), "notes.md", Contract.HANDOFF_PACKET),
        (f"---\nto: planner\n---\n\n# North bed\n\n{FENCED_PACKET}", "notes.md", Contract.HANDOFF_PACKET),
        (FENCED_PACKET.replace("```", "~~~"), "notes.md", Contract.HANDOFF_PACKET),
        (TODOS, "north.todos.md", Contract.HANDOFF_PACKET),
        (TODOS, "handoffs/todos.md", Contract.HANDOFF_PACKET),
        (RETURN, "anything.md", Contract.RETURN_FORMAT),
        (FAILURE, "anything.txt", Contract.RETURN_FORMAT),
        ("---\ntask: a\n---\n" + RETURN, "x.md", Contract.RETURN_FORMAT),
        ("# Return of the planner\n\n" + RETURN, "x.md", Contract.RETURN_FORMAT),
        ("## Status\nstate: SUC", "x.md", Contract.RETURN_FORMAT),
        ("## Status\nstate: DONE\nsummary: It is done.\n", "x.md", Contract.RETURN_FORMAT),
        ("## Status\n- **state**: ERROR\n", "x.md", Contract.RETURN_FORMAT),
        (text_of(SUBAGENT), "anything.json", Contract.SUBAGENT_RETURN),
        (text_of(drop("metadata")(SUBAGENT)), "x.json", Contract.SUBAGENT_RETURN),
        (text_of(put("status", 5)(SUBAGENT)), "x.json", Contract.SUBAGENT_RETURN),
        (text_of(put("status", "finished")(SUBAGENT)), "x.return.json", Contract.SUBAGENT_RETURN),
        (text_of({"status": "partial", "artifacts": [], "next_steps": "Go on."}), "x.json", Contract.SUBAGENT_RETURN),
        (text_of(SUBAGENT), "specs/001_a/.return-meta.json", Contract.RETURN_META),
        (text_of(put("status", "researched")(SUBAGENT)), "x.json", Contract.RETURN_META),
        (text_of(put("status", "done")(SUBAGENT)), "x.json", Contract.RETURN_META),
        (text_of(put("status", "success")(SUBAGENT)), "x.json", Contract.RETURN_META),
        (text_of({**SUBAGENT, "started_at": "2030-01-01"}), "x.json", Contract.RETURN_META),
        (text_of({**SUBAGENT, "partial_progress": {}}), "x.json", Contract.RETURN_META),
        (text_of({**SUBAGENT, "completion_data": {}}), "x.json", Contract.RETURN_META),
        (text_of({**SUBAGENT, "verification": {}}), "x.json", Contract.RETURN_META),
        (text_of(PACKET), "specs/001_a/.orchestrator-handoff.json", Contract.HANDOFF_PACKET),
        (text_of(STAGE), "x.json", Contract.RETURN_META),
        (text_of({"status": "tasks_created", "artifacts": []}), "x.json", Contract.RETURN_META),
        (text_of({"status": "in_progress", "delegation_path": ["a"]}), "x.json", Contract.RETURN_META),
        (text_of({"$schema": "our-return-v1", **STAGE}), "x.json", Contract.RETURN_META),
        (text_of(REPORT), "anything.json", Contract.REPORT_CONTRACT),
        (text_of({"report_metadata": {"agent_name": "digger"}, "findings": {}}), "x.json", Contract.REPORT_CONTRACT),
        (text_of({"report_metadata": {"status": "blocked", "task_id": "a"}}), "x.json", Contract.REPORT_CONTRACT),
        (text_of({"report_metadata": "by the digger", "findings": {}}), "x.json", Contract.REPORT_CONTRACT),
        (text_of(drop("task_id")(PACKET)), "x.json", Contract.HANDOFF_PACKET),
        (text_of(drop("report_metadata")(REPORT)), "anything.json", Contract.REPORT_CONTRACT),
        ("\ufeff" + text_of(REPORT), "anything.json", Contract.REPORT_CONTRACT),
        (text_of(REPORT).replace("\n", "\r\n"), "anything.json", Contract.REPORT_CONTRACT),
        (RETURN.replace("\n", "\r\n"), "x.md", Contract.RETURN_FORMAT),
        ("\ufeff" + RETURN.replace("\n", "\r"), "x.md", Contract.RETURN_FORMAT),
    ],
)
def test_a_document_is_recognised_by_its_content(text: str, name: str, contract: Contract) -> None:
    assert contract_of(text, name) is contract


@pytest.mark.parametrize(
    "name",
    [
        ".return-meta.json",
        "specs/001_a/.return-meta-a.json",
        "specs/001_a/.return-meta-02.json",
        "specs/001_a/.return-meta-multi-sess_1700000000_aa11.json",
        "specs/001_a/research-return-meta.json",
        "specs/001_a/.meta-return.json",
        "specs/001_a/.meta-builder-return.json",
        "specs/001_a/.orchestrator-handoff.json",
        "specs/001_a/.orchestrator-handoff-2.json",
        "specs/001_a/.orchestrator-handoff.plan.json",
        "specs/001_a/handoffs/02_orchestrator-handoff.json",
        "specs/001_a/.phase4-handoff.json",
    ],
)
def test_the_return_meta_family_needs_little_more_than_its_name(name: str) -> None:
    reading = read_document('{"status": "researched"}', name)

    assert reading is not None
    assert reading.contract is Contract.RETURN_META
    assert isinstance(reading.document, Return)
    assert reading.document.outcome is Outcome.COMPLETED
    assert not reading.has_error
    assert contract_of('{"colour": "green"}', name) is None


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ({"session_id": "s", "cycle_count": 1, "max_cycles": 3, "current_state": "researched"}, "x.json"),
        ({"session_id": "s", "skill": "planner", "operation": "plan", "reason": "status update"}, "x.json"),
        ({"tasks": [{"id": 1}], "dependency_order": [1]}, ".spawn-return.json"),
        ({"phase": 1, "status": "in_progress", "session_id": "s", "objectives": [{"status": "done"}]}, "p.json"),
        ({"errors": [{"type": "timeout", "message": "x"}]}, "errors.json"),
        ({"active_projects": [{"status": "planned", "artifacts": []}], "next_project_number": 2}, "state.json"),
        ({"status": 200, "metadata": {"session_id": "s"}, "summary": "OK"}, "http.json"),
        ({"status": 200, "artifacts": [], "summary": "OK"}, "http.json"),
        ({"status": "ok", "metadata": {"session_id": "s"}, "summary": "OK"}, "log.json"),
        ({"status": "success", "artifacts": ["dist/a.whl"], "errors": []}, "build.json"),
        ({"status": "passed", "tests": 42}, "build/unit.report.json"),
        ({"kind": "Pod", "metadata": {"name": "web"}, "status": {"phase": "Running"}}, "pod.json"),
        ({"name": "pkg", "version": "1.0.0", "dependencies": {}, "risks": []}, "package.json"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", **SUBAGENT}, "x.json"),
        ({"type": "object", "properties": {"status": {}, "metadata": {}}, **SUBAGENT}, "x.json"),
        (SUBAGENT, "subagent-return-schema.json"),
        ({"meta": {}, "tasks": [{"task_id": "1", "objective": "Do."}]}, "handoff.json"),
        ({"type": "result", "subtype": "success", "result": "Done.", "session_id": "s"}, "log.json"),
        ({"status": "planned", "title": "Spring"}, "x.json"),
        ({"status": "in_progress", "session_id": "s"}, "x.json"),
        ({"task_id": "a", "objective": "Do."}, "x.json"),
        ({"objective": "Sow.", "success_criteria": ["Green."], "risks": ["Frost."]}, "plan.json"),
        ({"report_metadata": {"tool": "lint", "generated_at": "2030-01-01"}, "findings": []}, "lint.json"),
        ({"report_metadata": {"status": "final", "title": "Spring"}, "summary": {}}, "report.json"),
        ({"report_metadata": None, "rows": []}, "report.json"),
        ({"findings": {}, "status": "completed", "recommendations": [], "blockers": []}, "x.json"),
        ([SUBAGENT], "x.json"),
        ([PACKET], "handoff.json"),
        (1, "x.json"),
        ("text", "x.json"),
    ],
)
def test_other_json_is_not_taken_for_a_document(document: Any, name: str) -> None:
    assert contract_of(json.dumps(document, indent=2), name) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "x.md"),
        ("", "x.json"),
        ("Nothing to see.", "x.md"),
        ("# Decision 7\n\n## Status\n\nAccepted\n\n## Context\n\nWe need it.\n", "docs/adr-7.md"),
        ("# Garden\n\n## Status\nstate: beta\n\n## Install\nrun it\n", "README.md"),
        ("## Status\n**Status**: implementing\n", "handoffs/phase-1.md"),
        (f"# The return format\n\nChildren return this:\n\n```markdown\n{RETURN}```\n", "docs/return-format.md"),
        (f"```markdown\n{RETURN}```\n", "docs/example.md"),
        ("# Format\n\n### `## Status`\n\n- `state`: SUCCESS\n\n### `## Evidence`\n\n- a\n", "docs/format.md"),
        ("# Guide\n\n## Overview\ntext\n\n" + RETURN, "docs/guide.md"),
        (f"# Handoffs\n\nA packet looks so:\n\n{FENCED_PACKET}", "docs/handoffs.md"),
        (f"```json\n{text_of(SUBAGENT)}```\n", "docs/subagent.md"),
        (f"```yaml\n{text_of(PACKET)}```\n", "docs/packet.md"),
        (TODOS, "README.md"),
        (TODOS, "TODOS.md"),
        ("# Plans\n\nNothing yet.\n", "todos.md"),
        ("# Ideas\n\n- Paint the shed\n- Sow beans\n", "notes/todos.md"),
        (text_of(SUBAGENT).replace("\n", ""), "log.jsonl"),
        ('{"feature": "worktrees",\n "entries": [ {"phase": 1} "x" ]}', "handoff.json"),
        ("---\n" * 3, "x.md"),
        ("```", "x.md"),
        ("# ", "x.md"),
    ],
)
def test_texts_about_the_formats_are_not_documents(text: str, name: str) -> None:
    assert contract_of(text, name) is None
    assert open_document(text, name) is None


@pytest.mark.parametrize(
    ("name", "contract"),
    [
        ("x.return.json", Contract.SUBAGENT_RETURN),
        ("x.handoff.json", Contract.HANDOFF_PACKET),
        ("specs/001_a/.return-meta.json", Contract.RETURN_META),
        ("x.report.json", Contract.REPORT_CONTRACT),
    ],
)
@pytest.mark.parametrize("text", ["", " \n", "{", '{\n  "colour', "hello", "```json\n{}\n```"])
def test_a_file_known_by_its_name_is_recognised_even_when_it_is_broken(
    name: str, contract: Contract, text: str
) -> None:
    reading = read_document(text, name)

    assert reading is not None
    assert (reading.contract, reading.complete) == (contract, False)
    assert {finding.rule for finding in reading.findings} <= {"DOC001", "DOC002"}


def test_a_broken_document_keeps_what_stands_before_the_break() -> None:
    text = text_of(SUBAGENT)
    reading = read_document(text[: text.index('"delegation_path"')], "odd-name.json")

    assert reading is not None
    assert isinstance(reading.document, Return)
    assert not reading.complete
    assert reading.document.session_id == SUBAGENT["metadata"]["session_id"]
    assert reading.document.artifacts == ("plans/north.md", "reports/soil.md")


@pytest.mark.parametrize(
    "state",
    [
        "SUCCESS | ERROR | PARTIAL",
        "`SUCCESS` | `ERROR` | `PARTIAL`",
        "SUCCESS, ERROR or PARTIAL",
        "success/error",
        "`SUCCESS` | \u2026",
        "<state>",
        "`{state}`",
        "...",
    ],
)
def test_a_document_about_the_format_is_a_return_only_where_it_is_named_so(state: str) -> None:
    text = RETURN.replace("SUCCESS", state)

    assert contract_of(text, "docs/format.md") is None
    assert contract_of(text, "x.return.md") is Contract.RETURN_FORMAT


@pytest.mark.parametrize("state", ["SUCCESS (was ERROR)", "[SUCCESS]", "DONE", "", "SUCCESS <3"])
def test_another_wrong_state_is_a_return_all_the_same(state: str) -> None:
    assert contract_of(RETURN.replace("SUCCESS", state), "x.md") is Contract.RETURN_FORMAT


@pytest.mark.parametrize("value", ["1", "9" * 5_000])
@pytest.mark.parametrize(
    ("name", "contract"),
    [
        ("x.return.json", Contract.SUBAGENT_RETURN),
        ("x.report.json", Contract.REPORT_CONTRACT),
        ("x.handoff.json", Contract.HANDOFF_PACKET),
        ("x.json", None),
    ],
)
def test_a_sound_object_without_a_signature_is_held_to_the_contract_of_its_name_only(
    name: str, contract: Contract | None, value: str
) -> None:
    reading = read_document('{"colour": ' + value + "}", name)
    assert (reading.contract if reading is not None else None) is contract
    assert reading is None or not reading.document.recognised


@pytest.mark.parametrize("report", [{"report_metadata": {"status": "failed"}}, {"findings": {}}, {"findings": []}])
def test_a_report_file_with_metadata_or_findings_is_a_report_and_another_file_is_none(report: Any) -> None:
    assert contract_of(text_of(report), "x.report.json") is Contract.REPORT_CONTRACT
    assert contract_of(text_of(report), "x.json") is None


def test_halves_of_surrogate_pairs_do_not_reach_the_document() -> None:
    reading = read_document(RETURN.replace("acme", "acme\ud800"), "x.md")

    assert reading is not None
    assert isinstance(reading.document, Return)
    assert reading.document.model == "acme\ufffd/grower-2"


def test_a_packet_in_markdown_brings_its_checklist() -> None:
    reading = read_document(f"{FENCED_PACKET}\nPlease keep to the list.\n\n## Todos\n\n{TODOS}\nThank you.\n", "x.md")

    assert reading is not None
    assert isinstance(reading.document, Handoff)
    assert reading.findings == ()
    assert reading.document.todos is not None
    assert [todo.text for todo in reading.document.todos] == [
        "Look at the map",
        "Draw the rows",
        "Count the seeds",
        "Check the shade",
    ]
    assert [todo.phase for todo in reading.document.todos] == ["READ", "PLAN", "PLAN", "VERIFY"]


@pytest.mark.parametrize("line", ["- Sow", "[ ] Sow", "-[ ] Sow", "* Sow", "[x] Sow"])
def test_a_checklist_in_which_no_line_is_right_has_findings(line: str) -> None:
    for text in (f"{line}\n{line}\n", f"# Todos\n\n{line}\n{line}"):
        reading = read_document(text, "x.todos.md")

        assert reading is not None
        assert [finding.rule for finding in reading.findings] == ["TOD001", "TOD001"]
    assert contract_of(f"Some notes.\n\n{line.replace('[', '(')}\n", "x.todos.md") is None
    behind = read_document(f"{FENCED_PACKET}\n## Todos\n\n{line}\n", "x.md")
    assert behind is not None
    assert [finding.rule for finding in behind.findings] == (["TOD001"] if "[" in line else [])


@pytest.mark.parametrize("comment", ["<!-- in order -->", "<!--\n- [ ] Not yet\nor never\n-->"])
def test_comments_in_a_checklist_are_left_aside_in_both_places(comment: str) -> None:
    first, rest = TODOS.split("\n- [ ] PLAN", 1)
    todos = f"{comment}\n{first} <!-- yes -->\n{comment}\n- [ ] PLAN{rest}{comment}\n"
    alone, behind = read_document(todos, "x.todos.md"), read_document(f"{FENCED_PACKET}\n{todos}", "x.md")

    assert alone is not None
    assert isinstance(alone.document, TodoList)
    assert behind is not None
    assert isinstance(behind.document, Handoff)
    assert behind.document.todos is not None
    assert [todo.text for todo in alone.document.items] == [todo.text for todo in behind.document.todos]
    assert len(alone.document.items) == 4
    assert (alone.findings, behind.findings) == ((), ())


def test_a_packet_whose_fence_is_never_closed_is_incomplete() -> None:
    reading = read_document(FENCED_PACKET.removesuffix("```\n"), "x.md")

    assert reading is not None
    assert not reading.complete
    assert [finding.rule for finding in reading.findings] == ["DOC002"]


def test_a_checklist_of_its_own_opens_as_a_packet_with_todos_only() -> None:
    reading = read_document(TODOS, "x.todos.md")
    packet = open_document(TODOS, "x.todos.md")

    assert reading is not None
    assert isinstance(reading.document, TodoList)
    assert packet is not None
    assert packet.model_dump(exclude_none=True).keys() == {"todos"}


@pytest.mark.parametrize("word", [META["status"], "Researched", "RESEARCHED"])
def test_the_case_of_a_stage_word_does_not_decide_the_dialect(word: str) -> None:
    assert contract_of(text_of(put("status", word)(SUBAGENT)), "x.json") is Contract.RETURN_META


@pytest.mark.parametrize("state", ["SUCCESS, partial coverage", "SUCCESS (or PARTIAL, see limitations)"])
def test_a_state_with_a_remark_is_a_return_that_says_too_much(state: str) -> None:
    reading = read_document(RETURN.replace("state: SUCCESS", f"state: {state}"), "returns/a.md")
    assert reading is not None
    assert "RET011" in {finding.rule for finding in reading.findings}
