"""Files under a contract's name: judged by it whatever they hold, and no excuse in a dialect or a schema."""

from __future__ import annotations

from typing import Any

import pytest

from agentwatch.contracts.reading import read_document
from agentwatch.contracts.report import Report
from agentwatch.contracts.shapes import Contract, Handoff, Return, Severity
from tests.unit.contracts.documents import META, PACKET, REPORT, RETURN, SUBAGENT, drop, open_document, put, text_of


def rules(text: str, name: str) -> list[str]:
    reading = read_document(text, name)
    assert reading is not None
    return [finding.rule for finding in reading.findings]


@pytest.mark.parametrize(
    "change",
    [{"verification": {}}, {"started_at": "2030-01-01"}, {"partial_progress": {}}, {"$schema": "json-schema.org/x"}],
)
def test_an_extra_key_switches_no_contract_off_where_the_name_says_which(change: dict[str, Any]) -> None:
    good = read_document(text_of({**SUBAGENT, **change}), "x.return.json")
    bad = read_document(text_of({**drop("metadata")(SUBAGENT), **change}), "x.return.json")

    assert good is not None
    assert (good.contract, good.findings) == (Contract.SUBAGENT_RETURN, ())
    assert bad is not None
    assert [finding.rule for finding in bad.findings] == ["SUB030"]


@pytest.mark.parametrize("word", ["success", "done", "researched", "in_progress"])
def test_a_word_of_the_dialect_is_outside_the_enum_of_a_named_return(word: str) -> None:
    assert rules(text_of(put("status", word)(SUBAGENT)), "x.return.json") == ["SUB003"]
    assert "SUB003" not in rules(text_of(put("status", word)(SUBAGENT)), "x.json")


@pytest.mark.parametrize(
    ("text", "name", "contract"),
    [
        (text_of(PACKET), "x.return.json", Contract.SUBAGENT_RETURN),
        (text_of(SUBAGENT), "x.handoff.json", Contract.HANDOFF_PACKET),
        (text_of({"ok": True}), "x.return.json", Contract.SUBAGENT_RETURN),
        ("{}", "x.handoff.json", Contract.HANDOFF_PACKET),
        ("{}", "x.report.json", Contract.REPORT_CONTRACT),
        ("[]", "x.return.json", Contract.SUBAGENT_RETURN),
        ("", "x.return.json", Contract.SUBAGENT_RETURN),
        ("Done.", "x.return.json", Contract.SUBAGENT_RETURN),
        (RETURN, "x.return.json", Contract.SUBAGENT_RETURN),
        ("Done.", "X.RETURN.MD", Contract.RETURN_FORMAT),
        ("", "x.handoff.md", Contract.HANDOFF_PACKET),
        ("Nothing to do.", "x.todos.md", Contract.HANDOFF_PACKET),
    ],
)
def test_what_holds_nothing_of_its_name_is_judged_and_not_recognised(text: str, name: str, contract: Contract) -> None:
    reading = read_document(text, name)

    assert reading is not None
    assert reading.findings
    assert (reading.contract, reading.document.recognised, reading.complete) == (contract, False, False)


def test_that_a_packet_or_a_checklist_is_there_is_only_recommended() -> None:
    for name in ("x.handoff.md", "x.todos.md"):
        reading = read_document("Go on as before.", name)
        assert reading is not None
        assert [finding.severity for finding in reading.findings] == [Severity.WARNING]


@pytest.mark.parametrize("text", ["", "{}", "Done."])
def test_other_names_stay_nobodys(text: str) -> None:
    for name in ("x.json", "return.json", ".return.json", "returns/x.json", "handoff.md", "todos.md", "x.md"):
        assert read_document(text, name) is None


def test_a_named_report_without_a_key_of_one_is_what_is_in_it() -> None:
    reading = read_document(text_of(SUBAGENT), "x.report.json")
    assert reading is not None
    assert reading.contract is Contract.SUBAGENT_RETURN
    assert not reading.findings
    assert rules(text_of({"findings": {}, "recommendations": [], "blockers": []}), "x.report.json") == ["REP001"]
    reading = read_document(text_of({"recommendations": [], "status": "passed"}), "jest.report.json")
    assert reading is not None
    assert not reading.document.recognised


def test_a_report_under_the_name_of_a_return_is_judged_as_the_report_that_it_is() -> None:
    reading = read_document(text_of(REPORT), "x.return.json")
    assert reading is not None
    assert (reading.contract, reading.findings) == (Contract.REPORT_CONTRACT, ())


def test_one_key_of_a_packet_is_enough_for_its_name() -> None:
    assert rules(text_of({"task_id": "a"}), "x.handoff.json") == ["HOF004", "HOF010", "HOF020", "HOF030"]


def test_a_packet_is_found_inside_its_wrapper() -> None:
    for name in ("x.handoff.json", "handoffs/x.json", "anything.json"):
        reading = read_document(text_of({"handoff_packet": PACKET}), name)
        assert reading is not None
        assert isinstance(reading.document, Handoff)
        assert (reading.document.task_id, [one.rule for one in reading.findings]) == (PACKET["task_id"], ["HOF061"])
    fenced = f"```json\n{text_of({'handoff_packet': drop('risks')(PACKET)})}```\n"
    assert rules(fenced, "x.md") == ["HOF061", "HOF030"]


def test_the_state_of_a_project_is_no_return() -> None:
    state = {"status": "completed", "artifacts": [], "summary": "All done.", "metadata": SUBAGENT["metadata"]}
    assert read_document(text_of(state), "specs/state.json") is None
    for key in ("next_project_number", "active_projects", "repository_health", "project_number"):
        assert read_document(text_of({**state, key: []}), "specs/anything.json") is None
        assert read_document(text_of({**META, key: []}), "specs/001_a/.return-meta.json") is not None
        assert read_document(text_of({**state, key: []}), "x.return.json") is not None


@pytest.mark.parametrize("length", [400, 401, 500, 501])
def test_about_400_characters_leave_a_quarter_before_a_summary_is_an_error(length: int) -> None:
    reading = read_document(text_of(put("summary", "Planned. " + "X" * (length - 9))(SUBAGENT)), "x.return.json")
    assert reading is not None
    severity = {401: [Severity.WARNING], 500: [Severity.WARNING], 501: [Severity.ERROR]}.get(length, [])
    assert [finding.severity for finding in reading.findings] == severity


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (put("metadata.delegation_depth", 1.0), []),
        (put("metadata.phase_count", 2.0), []),
        (put("metadata.estimated_hours", "4-6"), [Severity.WARNING]),
        (put("metadata.duration_seconds", "4 min"), [Severity.WARNING]),
        (put("metadata.findings_count", -1), [Severity.WARNING]),
    ],
)
def test_a_looser_type_where_the_document_gives_none_is_at_most_a_warning(change: Any, found: list[Severity]) -> None:
    reading = read_document(text_of(change(SUBAGENT)), "x.return.json")
    assert reading is not None
    assert [finding.severity for finding in reading.findings] == found


@pytest.mark.parametrize(
    ("row", "place"),
    [
        (["The entry.", "repo://src/a.ts"], ("src/a.ts", None, None)),
        (["The entry.", "repo://src/a.ts:45"], ("src/a.ts", 45, 45)),
        (["The entry.", "repo://src/a.ts:45-50"], ("src/a.ts", 45, 50)),
        (["The entry.", "repo://src/a.ts#L4"], ("src/a.ts", 4, 4)),
        (["The entry.", "repo://src/a.ts#L4-L9"], ("src/a.ts", 4, 9)),
        (["The entry.", "#L4"], None),
        (["The entry.", "https://example.org/a.ts"], None),
        ({"description": "The entry.", "pointer": "src/a.ts"}, None),
    ],
)
def test_a_row_of_a_context_map_is_never_an_error(row: Any, place: tuple[str, int | None, int | None] | None) -> None:
    text = text_of(put("findings.context_map", [row])(REPORT))
    reading, report = read_document(text, "x.report.json"), open_document(text, "x.report.json")
    assert reading is not None
    assert isinstance(report, Report)
    assert [finding.severity for finding in reading.findings] == ([] if place else [Severity.WARNING])
    places = [(entry.path, entry.first, entry.last) for entry in report.context_map or ()]
    assert place is None or places == [place]


@pytest.mark.parametrize(
    ("base", "key", "name", "inner"),
    [
        (SUBAGENT, "metadata", "x.return.json", ("session_id", "agent_type", "delegation_depth", "delegation_path")),
        (SUBAGENT, "artifacts", "x.return.json", ("type", "path", "summary")),
        (REPORT, "report_metadata", "x.report.json", ("agent_name", "task_id", "status", "confidence_level")),
        (PACKET, "evidence", "x.handoff.json", ("path", "purpose", "required")),
        (PACKET, "risks", "x.handoff.json", ("risk", "mitigation")),
    ],
)
def test_the_message_of_a_missing_object_names_its_keys(base: Any, key: str, name: str, inner: tuple[str, ...]) -> None:
    for text in (text_of(drop(key)(base)), text_of(put(key, 7)(base))):
        reading = read_document(text, name)
        assert reading is not None
        assert all(f"`{word}`" in reading.findings[0].message for word in inner)


def test_only_ascii_letters_have_another_case() -> None:
    kelvin = read_document(text_of({**SUBAGENT, "status": "bloc\u212aed"}), "north.return.json")

    assert kelvin is not None
    assert isinstance(kelvin.document, Return)
    assert (kelvin.document.outcome, kelvin.has_error) == (None, True)
    assert read_document("- [ ] Sow\n", "north.todo\u017f.md") is None
