"""Hostile text in every field of every contract: nothing foreign reaches the terminal, runs, or breaks the pane."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from itertools import cycle

import pytest
from details_tasks import (
    PACKET_SUMMARY,
    SUMMARIES,
    Case,
    DetailsApp,
    case,
    screen_text,
    shown,
    shown_text,
)
from textual.widgets import Static

from agentwatch.app.widgets.details import TABS, DetailsPane
from agentwatch.app.widgets.details.blocks import MAX_LINES
from agentwatch.contracts.shapes import Contract, Finding, Severity, Todo, TodoStatus

CONTRACTS = [Contract.RETURN_FORMAT, Contract.SUBAGENT_RETURN, Contract.RETURN_META, Contract.REPORT_CONTRACT]

PAYLOADS = {
    "escape": "\x1b[31mred\x1b[0m",
    "clipboard": "\x1b]52;c;aGVsbG8=\x07",
    "link": "\x1b]8;;http://evil.test\x1b\\here\x1b]8;;\x1b\\",
    "c1": "\x9b31m\x9d0;title\x9c",
    "closing tag": "[/] [/a] [/",
    "action": "[@click=app.approve('t-7')]see log[/]",
    "style": "[bold red]loud[/bold red] [link=http://evil.test]x[/link]",
    "bidi": "\u202eesrever\u2066x\u2069",
    "zero width": "a\u200bb\ufeffc\u00ad",
    "separators": "a\u2028b\u2029c\x0bd\x0ce\x85f",
    "zalgo": "z" + "\u0301" * 500,
    "nul": "a\x00b\x08c\x7f",
    "carriage": "safe\rfake",
    "wide": "宽" * 200,
    "long": "x" * 5_000,
    "emoji": "👩‍👩‍👧‍👦 ☠️",
    "markdown": "**[a](b) `` ~~ ![x](y) | # > - [",
}


def control_characters(text: str) -> set[str]:
    return {
        character
        for character in text
        if character != "\n" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    }


def drawn(pane: DetailsPane) -> str:
    """What the pane draws, line by line. An action behind it would be `@click` in its metadata."""
    said = [str(pane.query_one("#head", Static).content)]
    page = pane.page
    for y in range(page.size.height):
        for segment in page.render_line(y):
            assert segment.style is not None
            assert set(segment.style.meta) <= {"offset"}
            assert segment.style.link is None
            said.append(segment.text)
    return "\n".join(said)


async def assert_safe(cases: Mapping[str, Case]) -> None:
    """Draw every case in every tab of one pane; written at once, since a pause for each would take minutes."""
    async with DetailsApp(next(iter(cases.values()))).run_test(size=(80, 100)) as pilot:
        await pilot.pause()
        pane = pilot.app.query_one(DetailsPane)
        for name, one in cases.items():
            pilot.app.show(one)
            for tab_id in TABS:
                pane.activate(tab_id)
                while not shown_text(pane) or "reading…" in shown_text(pane):  # noqa: ASYNC110 - it has no event
                    await asyncio.sleep(0.0002)
                assert control_characters(shown_text(pane) + drawn(pane)) == set(), (name, tab_id)
        await pilot.pause()
        assert control_characters(screen_text(pilot.app)) == set()


def poisoned(contract: Contract, payload: str) -> Case:
    """A task with the payload in every text that it has."""
    summary = replace(
        SUMMARIES[contract],
        reported_state=payload,
        task_id=payload,
        session_id=payload,
        agent=payload,
        delegation_path=(payload,),
        summary=payload,
        error_code=payload,
        error_message=payload,
        retry_hint=payload,
        blockers=(payload,),
        review_reason=payload,
        next_steps=payload,
        model=payload,
        mode=payload,
        files_created=(payload,),
        files_modified=(payload,),
        limitations=(payload,),
        artifacts=(payload,),
    )
    packet = replace(
        PACKET_SUMMARY,
        task_id=payload,
        objective=payload,
        parent_task_id=payload,
        mode=payload,
        todos=(Todo(payload, TodoStatus.PENDING, payload, 1),),
    )
    findings = (Finding(payload, Severity.ERROR, payload, 1),)
    one = case(contract, summary=summary, packet=packet, findings=findings, text=payload, packet_text=payload)
    task = one.task
    task.task_id = task.title = task.parent_id = task.agent = task.ask = task.why = payload
    task.findings.append(replace(findings[0], path=payload))
    return one


async def test_a_poisoned_task_is_shown_safely() -> None:
    contracts = zip(PAYLOADS, cycle(CONTRACTS), strict=False)
    await assert_safe({name: poisoned(contract, PAYLOADS[name]) for name, contract in contracts})


@pytest.mark.parametrize(
    "text",
    [
        "x" * 10_000_000,
        '{"a": ' * 100_000,
        '{"status": "completed", "summary": "' + "a" * 2_000_000 + '", "artifacts": [], "metadata": {}}',
    ],
    ids=["one line", "deep objects", "long string"],
)
async def test_huge_texts_are_cut_and_say_so(text: str) -> None:
    one = case(Contract.SUBAGENT_RETURN, text=text, packet_text=text)
    async with DetailsApp(one).run_test(size=(80, 40)) as pilot:
        pane = pilot.app.query_one(DetailsPane)
        for tab_id in TABS:
            await shown(pilot, tab_id)
            assert len(pane.page.lines) <= MAX_LINES + 1
        assert "truncated" in shown_text(pane)
