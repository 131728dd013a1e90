"""In the text that a subagent returned, the contract is found inside prose, a fence or a frame."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Contract, Handoff, Outcome, Return
from tests.unit.contracts.documents import (
    FAILURE,
    PACKET,
    PARTIAL,
    REPORT,
    RETURN,
    SUBAGENT,
    TODOS,
    open_document,
    put,
    text_of,
)

INDENTED = "".join(f"  {line}\n" for line in RETURN.split("\n"))


@pytest.mark.parametrize(
    ("text", "contract"),
    [
        (RETURN, Contract.RETURN_FORMAT),
        (f"I am done. Here is my return:\n\n{RETURN}", Contract.RETURN_FORMAT),
        (f"# Work log\n\n## What I did\n\nA lot.\n\n{PARTIAL}", Contract.RETURN_FORMAT),
        (f"{FAILURE}\nTell me if you need more.\n", Contract.RETURN_FORMAT),
        (f"```markdown\n{RETURN}```\n", Contract.RETURN_FORMAT),
        (f"Here:\n\n````\n{RETURN}````\nBye.", Contract.RETURN_FORMAT),
        (f'<task id="1" state="completed">\n<task_result>\n{RETURN}</task_result>\n</task>', Contract.RETURN_FORMAT),
        (f"<result>{RETURN}</result>\n<usage><tokens>1</tokens></usage>", Contract.RETURN_FORMAT),
        (
            f"[Report] The report follows:\n{INDENTED}\nagentId: 1 (go on)\n<usage>x: 1\ny: 2</usage>",
            Contract.RETURN_FORMAT,
        ),
        (f"<result>\n{RETURN}</result>", Contract.RETURN_FORMAT),
        (f"<task_result>\n\n{PARTIAL}\n</task_result>\n\nSee you.", Contract.RETURN_FORMAT),
        (f"{RETURN}\nFor the retry use:\n\n- nothing\n", Contract.RETURN_FORMAT),
        (text_of(REPORT), Contract.REPORT_CONTRACT),
        (f"The report:\n\n```json\n{text_of(REPORT)}```\n\nBest wishes.", Contract.REPORT_CONTRACT),
        (f"The report: {text_of(REPORT)}", Contract.REPORT_CONTRACT),
        (f"{text_of(REPORT)}\nThat is all {{really}}.", Contract.REPORT_CONTRACT),
        (f"A set {{x}} and then\n{text_of(SUBAGENT)}", Contract.SUBAGENT_RETURN),
        (f"Do this:\n\n```json\n{text_of(PACKET)}```\n\n{TODOS}", Contract.HANDOFF_PACKET),
    ],
)
def test_the_contract_is_found_and_valid(text: str, contract: Contract) -> None:
    reading = read_document(text, "", embedded=True)

    assert reading is not None
    assert (reading.contract, reading.findings, reading.complete) == (contract, (), True)
    assert open_document(text, "", embedded=True) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Done.",
        "```\n```",
        "{",
        "{}",
        "{" * 100,
        "```json\n{}\n```",
        "## Status\n\nAll is well.",
        "```markdown\n## Status",
    ],
)
def test_other_texts_hold_no_contract(text: str) -> None:
    assert read_document(text, "", embedded=True) is None


def test_lines_are_those_of_the_whole_text() -> None:
    broken = text_of(put("status", "finished")(SUBAGENT))
    reading = read_document(f"Here it is:\n\n```json\n{broken}```\n", "", embedded=True)

    assert reading is not None
    assert [(finding.rule, finding.line) for finding in reading.findings] == [("SUB003", 5)]


def test_lines_of_markdown_in_a_fence_are_those_of_the_whole_text() -> None:
    reading = read_document(f"Here:\n```\n{RETURN.replace('SUCCESS', 'DONE')}```\n", "", embedded=True)

    assert reading is not None
    assert [(finding.rule, finding.line) for finding in reading.findings] == [("RET011", 4)]


FAILED_REPORT = put("report_metadata.status", "failed")(put("report_metadata.error_message", "It broke.")(REPORT))
TEMPLATE = {**FAILED_REPORT, "identified_gaps": []}


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (f"Draft:\n\n```json\n{text_of(TEMPLATE)}```\n\nMine:\n\n```json\n{text_of(REPORT)}```\n", "completed"),
        (f"```markdown\n{RETURN}```\n\nI was wrong:\n\n```markdown\n{FAILURE}```\n", "ERROR"),
        (f"```markdown\n{FAILURE}```\n\n{RETURN}", "SUCCESS"),
        (f"<thinking>\n{RETURN}</thinking>\n\n{FAILURE}", "ERROR"),
        (f"{text_of(TEMPLATE)}\n{text_of(REPORT)}", "completed"),
        (f"{text_of(REPORT)[:-9]},\n\n{text_of(TEMPLATE)}", "failed"),
        (f"{text_of(TEMPLATE)}\nSo:\n\n{RETURN}", "SUCCESS"),
        (f"```json\n{text_of(REPORT)}```\n\nInstead: {text_of(TEMPLATE)}", "failed"),
    ],
)
def test_of_several_returns_the_last_counts_and_a_warning_says_so_at_its_line(text: str, state: str) -> None:
    reading = read_document(text, "", embedded=True)

    line = max(number for number, each in enumerate(text.split("\n"), 1) if each in ("## Status", "{", "Instead: {"))
    assert reading is not None
    assert isinstance(reading.document, Return)
    assert reading.document.reported_state == state
    assert [(finding.rule, finding.line) for finding in reading.findings] == [("DOC011", line)]


CORRECTION = "Correction, this is my real return:"


@pytest.mark.parametrize(
    "behind",
    [
        f"{CORRECTION}\n\n```markdown\n{FAILURE}```\n",
        f"Correction:\n~~~\n{FAILURE}~~~\n",
        f"{CORRECTION}\n\n```json\n{text_of(TEMPLATE)}```\n",
        f"{CORRECTION}\n\n{text_of(TEMPLATE)}",
    ],
)
def test_a_return_behind_an_open_one_that_tells_another_state_counts_also_in_a_file(behind: str) -> None:
    for name, more in (("", []), ("x.return.md", ["DOC014"]), ("x.md", ["DOC014"])):
        reading = read_document(f"{RETURN}\n{behind}", name, embedded=not name)

        assert reading is not None
        assert isinstance(reading.document, Return)
        assert reading.document.outcome is Outcome.FAILED
        assert [finding.rule for finding in reading.findings] == [*more, "DOC011"]


@pytest.mark.parametrize(
    "behind",
    [
        f"```markdown\n{RETURN.replace('SUCCESS', 'SUCCESS | ERROR | PARTIAL')}```\n",
        f"<!--\n```markdown\n{FAILURE}```\n-->\n",
        f"limitations:\n- it said\n  ```\n{INDENTED.replace('SUCCESS', 'ERROR')}  ```\n",
        f"limitations:\n- it said {json.dumps({'status': 'failed', 'summary': 'No.', 'errors': []})}\n",
        "```\nstate: ERROR\n```\n",
    ],
)
def test_templates_comments_and_quotes_behind_a_return_correct_nothing(behind: str) -> None:
    for name in ("", "x.return.md", "x.md"):
        reading = read_document(f"{RETURN}{behind}", name, embedded=not name)

        assert reading is not None
        assert isinstance(reading.document, Return)
        assert reading.document.outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    "text",
    [
        f"{RETURN}\n```json\n{text_of(REPORT)}```\n",
        RETURN.replace("- rows counted: 9", f"- rows:\n\n```\n{FAILURE}```\n"),
        RETURN.replace("- rows counted: 9", f"- rows:\n\n  {text_of(SUBAGENT)}"),
        f"{RETURN}\n{RETURN}",
        f"## Status\n\nAll is well.\n\n## Done\n\nAll.\n\n{RETURN}",
    ],
)
def test_what_stands_inside_a_return_and_what_says_the_same_is_no_other(text: str) -> None:
    reading = read_document(text, "", embedded=True)

    assert reading is not None
    assert isinstance(reading.document, Return)
    assert reading.document.reported_state == "SUCCESS"
    assert "DOC011" not in {finding.rule for finding in reading.findings}


@pytest.mark.parametrize("returned", [FAILURE, f"```json\n{text_of(TEMPLATE)}```", text_of(TEMPLATE)])
@pytest.mark.parametrize(
    "packet", [f"```json\n{text_of(PACKET)}```", f"I got this:\n{text_of(PACKET)}", text_of(PACKET)]
)
def test_an_echoed_packet_hides_no_return_and_an_example_of_a_return_hides_no_packet(
    packet: str, returned: str
) -> None:
    for text in (f"{packet}\n\n{returned}", f"{returned}\n{packet}"):
        said, asked = read_document(text, "", embedded=True), read_document(text, "", handed_over=True)

        assert said is not None
        assert isinstance(said.document, Return)
        assert said.document.outcome is Outcome.FAILED
        assert asked is not None
        assert isinstance(asked.document, Handoff)
        assert asked.document.task_id == PACKET["task_id"]


def test_the_first_packet_of_a_prompt_counts() -> None:
    text = f"```json\n{text_of(PACKET)}```\n\nLater:\n\n```json\n{text_of(put('task_id', 'other')(PACKET))}```\n"
    reading = read_document(text, "", handed_over=True)

    assert reading is not None
    assert isinstance(reading.document, Handoff)
    assert reading.document.task_id == PACKET["task_id"]


@pytest.mark.parametrize("key", ["objective", "evidence", "success_criteria", "risks", "constraints", "deliverables"])
@pytest.mark.parametrize("dress", ["{}", "```json\n{}```\n\nDo it.", "# Task\n\n```\n{}```\n", "{}\nDo it."])
def test_the_first_block_of_a_prompt_with_a_task_and_one_more_key_is_a_packet_with_findings(
    dress: str, key: str
) -> None:
    text = dress.replace("{}", text_of({"task_id": "garden", key: PACKET[key]}))
    reading = read_document(text, "", handed_over=True)

    assert reading is not None
    assert isinstance(reading.document, Handoff)
    assert reading.has_error
    assert all(finding.rule.startswith("HOF") for finding in reading.findings)


@pytest.mark.parametrize(
    "text",
    [
        text_of({"task_id": "garden", "notes": []}),
        text_of({"objective": "Dig.", "evidence": []}),
        f"Answer with this:\n\n```json\n{text_of({'task_id': 'garden', 'evidence': []})}```\n",
    ],
)
def test_less_than_that_or_further_down_is_none(text: str) -> None:
    assert read_document(text, "", handed_over=True) is None


@pytest.mark.parametrize(
    ("document", "contract"),
    [
        ({"status": "failed", "summary": "It broke.", "errors": []}, Contract.SUBAGENT_RETURN),
        ({"status": "Completed", "summary": "Done.", "next_steps": "Sow."}, Contract.SUBAGENT_RETURN),
        ({"status": "completed", "summary": "Done."}, None),
        ({"status": "green", "summary": "Done.", "errors": []}, None),
        ({"status": "completed", "summary": "Done.", "errors": 0}, None),
        ({"report_metadata": {"status": "failed"}}, Contract.REPORT_CONTRACT),
        ({"report_metadata": {"version": 1}, "findings": {}}, Contract.REPORT_CONTRACT),
        ({"report_metadata": {"version": 1}, "rows": []}, None),
    ],
)
def test_what_a_subagent_returns_may_lack_keys_that_a_file_needs(
    document: dict[str, Any], contract: Contract | None
) -> None:
    for text in (text_of(document), f"Here:\n\n```json\n{text_of(document)}```\n", f"So it is: {text_of(document)}"):
        reading = read_document(text, "", embedded=True)

        assert (reading.contract if reading is not None else None) is contract
        assert reading is None or reading.has_error
    assert read_document(text_of(document), "x.json") is None


def test_a_broken_object_among_prose_is_told_from_none() -> None:
    text = text_of(SUBAGENT)
    reading = read_document("The return:\n" + text[: text.index('"next_steps"')], "", embedded=True)

    assert reading is not None
    assert (reading.contract, reading.complete) == (Contract.SUBAGENT_RETURN, False)


QUOTED = '{"status": "failed", "summary": "over quota", "errors": [{"code": 1}]}'


def test_an_object_that_a_sentence_quotes_is_no_return() -> None:
    assert read_document(f"The service said {QUOTED} so I tried again, and all is well.", "x", embedded=True) is None
    at_the_end = read_document(f"My report:\n\n{QUOTED}\n", "x", embedded=True)
    assert at_the_end is not None
    assert at_the_end.contract is Contract.SUBAGENT_RETURN
