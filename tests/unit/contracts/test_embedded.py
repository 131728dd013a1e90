"""In the text that a subagent returned, the contract is found inside prose, a fence or a frame."""

from __future__ import annotations

import pytest

from agentwatch.contracts.reading import open_document, read_document
from agentwatch.contracts.shapes import Contract
from tests.unit.contracts.documents import FAILURE, PACKET, PARTIAL, REPORT, RETURN, SUBAGENT, TODOS, put, text_of

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
        (text_of(REPORT), Contract.REPORT_CONTRACT),
        (f"The report:\n\n```json\n{text_of(REPORT)}```\n\nBest wishes.", Contract.REPORT_CONTRACT),
        (f"The report: {text_of(REPORT)}", Contract.REPORT_CONTRACT),
        (f"{text_of(REPORT)}\nThat is all {{really}}.", Contract.REPORT_CONTRACT),
        (f"A set {{x}} and then\n{text_of(SUBAGENT)}", Contract.SUBAGENT_RETURN),
        (f"Do this:\n\n```json\n{text_of(PACKET)}```\n\n{TODOS}", Contract.HANDOFF_PACKET),
        (f"```json\n{text_of(PACKET)}```\n\nReturn it so:\n\n```markdown\n{RETURN}```\n", Contract.HANDOFF_PACKET),
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


def test_a_broken_object_among_prose_is_told_from_none() -> None:
    text = text_of(SUBAGENT)
    reading = read_document("The return:\n" + text[: text.index('"next_steps"')], "", embedded=True)

    assert reading is not None
    assert (reading.contract, reading.complete) == (Contract.SUBAGENT_RETURN, False)
