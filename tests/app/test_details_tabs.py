"""What each tab says for each contract."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from details_tasks import (
    BROKEN,
    PACKET,
    PACKET_SUMMARY,
    REPORT,
    RETURN_FORMAT,
    RETURN_META,
    SUBAGENT_RETURN,
    SUMMARIES,
    Case,
    DetailsApp,
    case,
    shown,
)

from agentwatch.app.widgets.details import TABS
from agentwatch.contracts.shapes import Contract, Finding, Outcome, Severity
from agentwatch.delegation.task import Basis, Below, Counted, State

RETURNS = {
    Contract.RETURN_FORMAT: RETURN_FORMAT,
    Contract.SUBAGENT_RETURN: SUBAGENT_RETURN,
    Contract.RETURN_META: RETURN_META,
    Contract.REPORT_CONTRACT: REPORT,
}
WIDE = (90, 90)


async def tab(one: Case, tab_id: str, size: tuple[int, int] = WIDE) -> str:
    """The text of a tab with runs of spaces as one, so that what is said is compared and not the columns."""
    async with DetailsApp(one).run_test(size=size) as pilot:
        return "\n".join(re.sub(r" {2,}", " ", line.strip()) for line in (await shown(pilot, tab_id)).split("\n"))


def assert_says(text: str, *lines: str) -> None:
    for line in lines:
        assert line in text


# Overview


async def test_overview_of_a_failed_return_format() -> None:
    one = case()
    one.task.below = Below({Counted(State.COMPLETED): 2, Counted(State.FAILED): 1})
    text = await tab(one, "overview")
    assert_says(
        text,
        "asked Build the checkout API against schema v3.",
        "returned The migration tool timed out before the schema was applied.",
        "1 artifact, 1 file created, 1 file modified",
        "limits • The contract tests were not run",
        "why the return says ERROR",
        "model openai/gpt-5.2 mode code (attested)",
        "retries the child recommends one",
        "below 3 tasks ✗ 1 failed ✓ 2 completed",
        "contract return-format (Markdown)",
        "linked below shop.checkout the parent's id is the beginning of its id",
        "took 1m",
        "handoff work/api.handoff.md",
        "return work/api.return.md",
    )


async def test_overview_says_that_a_file_breaks_a_rule_where_the_state_does_not() -> None:
    one = case(None)
    one.task.findings = [replace(finding, path="work/api.handoff.md") for finding in BROKEN]
    assert_says(await tab(one, "overview"), "findings ✗ 2 errors in its files, see Findings")
    one.task.state = one.task.attempts[0].state = State.INVALID
    one.task.own_state = State.INVALID
    assert "in its files" not in await tab(one, "overview")


async def test_overview_of_a_blocked_report() -> None:
    text = await tab(case(Contract.REPORT_CONTRACT), "overview")
    assert_says(
        text,
        "what it found is in the Return tab",
        "blockers ■ Which auth flow is in scope?",
        "confidence 0.42",
    )


async def test_overview_of_a_partial_subagent_return() -> None:
    text = await tab(case(Contract.SUBAGENT_RETURN), "overview")
    assert_says(
        text,
        "message Timed out after 7200s",
        "next Run /implement 246 to resume",
        "session sess_1735460684_abc123",
        "2 artifacts",
    )


async def test_overview_of_a_task_that_has_not_returned() -> None:
    text = await tab(case(None), "overview")
    assert_says(text, "returned nothing yet", "why handed off; no sign of life yet", "took 3m so far")


async def test_overview_counts_what_has_too_many_blockers() -> None:
    blockers = tuple(f"blocker {number}" for number in range(50))
    summary = replace(SUMMARIES[Contract.REPORT_CONTRACT], blockers=blockers)
    text = await tab(case(Contract.REPORT_CONTRACT, summary=summary), "overview")
    assert_says(text, "■ blocker 19", "… and 30 more, see Return")


@pytest.mark.parametrize(
    ("basis", "words"),
    [
        (Basis.PACKET, "its packet names the parent"),
        (Basis.SESSION, "the session store links the two"),
        (Basis.DELEGATION_PATH, "its delegation path leads through the parent"),
        (Basis.DOTTED_PREFIX, "the parent's id is the beginning of its id"),
        (Basis.DIRECTORY, "it lies in the parent's directory"),
    ],
)
async def test_overview_says_how_the_task_is_linked(basis: Basis, words: str) -> None:
    one = case()
    one.task.parent_basis = basis
    assert f"linked below shop.checkout {words}" in await tab(one, "overview", (120, 60))


async def test_overview_says_that_a_task_is_a_root() -> None:
    one = case()
    one.task.parent_id, one.task.parent_basis = None, Basis.NONE
    assert "linked nothing names a parent" in await tab(one, "overview")


async def test_overview_of_a_partial_return_says_at_once_what_it_leaves_out() -> None:
    partial = replace(SUMMARIES[Contract.RETURN_FORMAT], outcome=Outcome.PARTIAL, reported_state="PARTIAL")
    text = await tab(case(summary=partial), "overview")
    assert text.index("limits • The contract tests were not run") < text.index("why the return says")
    assert "Raise the tool time-out" not in text, "it stands in the head"


# Handoff


async def test_handoff_shows_the_whole_packet() -> None:
    text = await tab(case(), "handoff")
    assert_says(
        text,
        "Build the checkout API against schema v3.",
        "task shop.checkout.api",
        "schema composability.handoff_packet.v1",
        "Success criteria 2",
        "• POST /checkout answers 201",
        "Evidence 2",
        "● must read docs/schema.md The schema to build against",
        "○ optional docs/history.md Why version 2 was given up",
        "Deliverables 1",
        "● must create src/checkout.py The endpoint",
        "Risks 1",
        "! The migration is slow",
        "→ Raise the tool time-out",
        "• No new dependencies",
        "• shop.checkout.schema",
        "• Prices are in cents",
        "Todos 3",
        "✓ done DISCOVER: read the schema",
        "◐ in progress DRAFT: write src/checkout.py",
        "○ pending VERIFY: run the contract tests",
    )


async def test_handoff_of_a_json_file() -> None:
    packet = PACKET.split("```")[1].removeprefix("json")
    text = await tab(case(packet_text=packet), "handoff")
    assert "● must read docs/schema.md The schema to build against" in text


async def test_handoff_whose_text_is_gone_falls_back_to_its_summary() -> None:
    one = case(packet=replace(PACKET_SUMMARY, parent_task_id="shop.checkout", mode="code"))
    one.texts.clear()
    text = await tab(one, "handoff")
    assert_says(
        text,
        "The text of the handoff is gone; this is what was read of it.",
        "Build the checkout API against schema v3.",
        "parent shop.checkout",
        "mode code",
        "✓ done DISCOVER: read the schema",
    )


async def test_handoff_that_cannot_be_read_falls_back_to_its_summary() -> None:
    text = await tab(case(packet_text='{"colour": "blu'), "handoff")
    assert_says(text, "The handoff cannot be read as a packet", "Build the checkout API against schema v3.")


# Return


async def test_return_format_is_shown_in_its_sections() -> None:
    text = await tab(case(), "return")
    assert_says(
        text,
        "state ERROR",
        "summary The migration tool timed out before the schema was applied.",
        "error E_TOOL_FAILURE",
        "retry yes",
        "hint Raise the tool time-out and pass the schema path.",
        "Deliverables 1",
        "src/checkout.py the endpoint, without its tests",
        "Evidence 2",
        "• docs/schema.md — read in full",
        "• pytest: 12 passed, 3 failed",
        "Runtime attestation",
        "model openai/gpt-5.2",
        "mode code",
        "created • src/checkout.py",
        "modified • src/app.py",
        "limits • The contract tests were not run",
    )


async def test_subagent_return_is_shown_in_its_parts() -> None:
    text = await tab(case(Contract.SUBAGENT_RETURN), "return")
    assert_says(
        text,
        "status partial",
        "summary Phases 1 and 2 of 3 are done. Phase 3 was cut short.",
        "Artifacts 2",
        "implementation src/a.py Phase 1",
        "Errors 1",
        "✗ timeout\nrecoverable",
        "Timed out after 7200s",
        "→ Resume at phase 3",
        "Next steps\nRun /implement 246 to resume",
        "agent implementer",
        "session sess_1735460684_abc123",
        "path orchestrator › implement › implementer",
        "depth 2",
        "took 2h",
        "phases 3",
    )


async def test_return_meta_is_shown_in_its_parts() -> None:
    text = await tab(case(Contract.RETURN_META), "return")
    assert_says(
        text,
        "status in_progress",
        "summary Working on phase 2.",
        "phases 1 of 3 ██░░░░",
        "path\nspecs/001_a/plan.md",
        "Finish phase 2",
        "agent implementer",
        "More that it says 1",
        "started_at 2026-01-05T10:00:00Z",
    )


async def test_report_is_shown_with_its_context_map_as_a_table() -> None:
    text = await tab(case(Contract.REPORT_CONTRACT), "return")
    assert_says(
        text,
        "status blocked",
        "agent investigator",
        "level detailed",
        "confidence 0.42",
        "tokens 4,250",
        "took 45s",
        "Blockers 1\n■ Which auth flow is in scope?",
        "Context map 2\nstatement location",
        "The session is kept in a cookie. -",
        "Tokens are signed here. src/auth/jwt.ts:45-120",
        "overview\nAuth",
        "• password",
        "numbers\nendpoints 4\ntested\n• true\n• false\n• null",
        "→ Write tests for jwt.ts.",
        "○ No rate limits are documented.",
    )


@pytest.mark.parametrize("contract", RETURNS)
async def test_a_return_whose_text_is_gone_falls_back_to_its_summary(contract: Contract) -> None:
    one = case(contract, summary=replace(SUMMARIES[contract], summary="A short summary.", blockers=("A blocker.",)))
    one.texts.clear()
    text = await tab(one, "return")
    assert_says(
        text,
        "The text of the return is gone; this is what was read of it.",
        f"status {SUMMARIES[contract].reported_state}",
        "summary A short summary.",
        "• A blocker.",
    )
    assert "The text of this version is gone" in await tab(one, "raw")


@pytest.mark.parametrize("contract", RETURNS)
async def test_a_return_that_cannot_be_read_says_so(contract: Contract) -> None:
    text = await tab(case(contract, text="{ this is nothing"), "return")
    assert_says(text, "The return cannot be read in whole", f"status {SUMMARIES[contract].reported_state}")


async def test_a_return_that_breaks_its_contract_says_so() -> None:
    assert "‼ breaks its contract: 2 errors, see Findings" in await tab(case(findings=BROKEN), "return")


@pytest.mark.parametrize(
    ("contract", "word"),
    [
        (Contract.RETURN_FORMAT, "ERROR"),
        (Contract.SUBAGENT_RETURN, '"partial"'),
        (Contract.REPORT_CONTRACT, '"blocked"'),
    ],
)
async def test_a_state_that_the_contract_does_not_know_is_shown_as_it_was_reported(
    contract: Contract, word: str
) -> None:
    other = word.replace(word.strip('"'), "GREEN")
    summary = replace(SUMMARIES[contract], reported_state="GREEN")
    one = case(contract, text=RETURNS[contract].replace(word, other, 1), summary=summary)
    assert "GREEN the contract does not have this word" in await tab(one, "return")


# Attestation


async def test_attestation_of_a_return_format() -> None:
    text = await tab(case(), "attestation")
    assert_says(
        text,
        "model openai/gpt-5.2",
        "mode code",
        "created • src/checkout.py",
        "modified • src/app.py",
        "limits • The contract tests were not run",
    )


async def test_attestation_tells_none_from_not_reported() -> None:
    text = "## Status\nstate: SUCCESS\nsummary: Done.\n## Runtime Attestation\nfiles_created:\n- (none)\n"
    shown = await tab(case(text=text), "attestation")
    assert_says(shown, "model not reported", "mode not reported", "created none", "modified not reported")


async def test_attestation_whose_text_is_gone_is_remembered() -> None:
    one = case()
    one.texts.clear()
    assert_says(await tab(one, "attestation"), "model openai/gpt-5.2", "created • src/checkout.py")


@pytest.mark.parametrize("contract", [Contract.SUBAGENT_RETURN, Contract.RETURN_META, Contract.REPORT_CONTRACT])
async def test_a_contract_without_attestation_says_so(contract: Contract) -> None:
    assert f"There is no attestation in this contract ({contract})" in await tab(case(contract), "attestation")


async def test_attestation_lists_the_artifacts_of_a_subagent_return() -> None:
    text = await tab(case(Contract.SUBAGENT_RETURN), "attestation")
    assert_says(text, "type path summary", "implementation src/a.py Phase 1", "summary docs/a-summary.md What was done")


async def test_attestation_lists_artifacts_whose_text_is_gone() -> None:
    one = case(Contract.SUBAGENT_RETURN)
    one.texts.clear()
    assert_says(await tab(one, "attestation"), "Artifacts 2\n• src/a.py\n• docs/a-summary.md")


# Findings


async def test_findings_are_sorted_by_line_as_check_does() -> None:
    text = await tab(case(findings=BROKEN), "findings")
    assert_says(
        text,
        "✗ 2 errors ! 1 warning",
        "work/api.return.md\nseverity rule place message",
        "✗ error RET020 file Add the section ## Evidence\n"
        "✗ error RET004 line 2 Say retry_recommended: yes or no when state is ERROR\n"
        "! warning RET011 line 8 Write the header as ## Deliverables",
    )


async def test_findings_of_several_files_stand_apart() -> None:
    one = case(findings=BROKEN)
    other = Finding("HOF001", Severity.WARNING, "Give a task_id", 3)
    one.task.findings.append(replace(other, path="work/api.handoff.md"))
    text = await tab(one, "findings")
    assert text.index("work/api.return.md") < text.index("work/api.handoff.md") < text.index("HOF001")


async def test_no_findings_are_said() -> None:
    assert "✓ no findings: keeps its contract" in await tab(case(), "findings")


# Raw


async def test_raw_shows_return_and_handoff_with_line_numbers() -> None:
    text = await tab(case(), "raw")
    assert_says(
        text,
        "Return work/api.return.md 23 lines",
        "1 │ ## Status",
        "2 │ state: ERROR",
        "Handoff work/api.handoff.md 21 lines",
        "1 │ ```json",
    )
    assert text.index("Return work") < text.index("Handoff work")


async def test_raw_marks_the_lines_of_findings_in_the_gutter() -> None:
    async with DetailsApp(case(findings=BROKEN)).run_test(size=WIDE) as pilot:
        await shown(pilot, "raw")
        lines = list(pilot.app.details.page.lines)
    at = lines.index("✗  2 │ state: ERROR")
    assert lines[at + 1].strip() == "╰ RET004  Say retry_recommended: yes or no when state is ERROR"
    assert any(line.startswith("!  8 │ ") for line in lines)
    assert "   1 │ ## Status" in lines


async def test_raw_says_what_it_cut() -> None:
    text = await tab(case(text="line\n" * 5_000), "raw")
    assert_says(text, "at most 2,000 lines of 4,000 characters", "2000 │ line")
    assert "2001 │" not in text


async def test_raw_wraps_long_lines_behind_the_gutter() -> None:
    async with DetailsApp(case(text="word " * 40)).run_test(size=(60, 40)) as pilot:
        await shown(pilot, "raw")
        lines = pilot.app.details.page.lines
    assert lines[1].startswith("  1 │ word word")
    assert lines[2].startswith("    │ word word")


async def test_raw_colours_json_and_not_what_is_too_large() -> None:
    for text, colored in ((SUBAGENT_RETURN, True), (SUBAGENT_RETURN + " " * 70_000, False)):
        async with DetailsApp(case(Contract.SUBAGENT_RETURN, text=text)).run_test(size=WIDE) as pilot:
            await shown(pilot, "raw")
            page = pilot.app.details.page
            row = next(number for number, line in enumerate(page.lines) if '"status": "partial"' in line)
            segments = [segment for segment in page.render_line(row) if segment.text.strip()]
            colors = {segment.style.color for segment in segments if segment.style}
            assert (len(colors) > 2) is colored


@pytest.mark.parametrize("contract", RETURNS)
async def test_every_tab_fits_a_narrow_pane(contract: Contract) -> None:
    async with DetailsApp(case(contract, findings=BROKEN)).run_test(size=(38, 24)) as pilot:
        for tab_id in TABS:
            await shown(pilot, tab_id)
            page = pilot.app.details.page
            assert page.lines, tab_id
            widest = max(line.content.cell_length for line in page._lines)
            assert widest <= page.scrollable_content_region.width, tab_id
