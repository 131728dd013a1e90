"""Goldens of each tab for each contract, and for documents that are gone, cannot be read, or break their contract."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from details_tasks import (
    BROKEN,
    NOW,
    PACKET_SUMMARY,
    RETURN_FORMAT,
    SUMMARIES,
    AtOnce,
    Case,
    case,
)
from tests.goldens.golden import Golden

from agentwatch.app.widgets.details.blocks import lay_out
from agentwatch.app.widgets.details.tabs import TABS
from agentwatch.contracts.shapes import Contract, Finding, Outcome, Severity
from agentwatch.delegation.task import Basis, Below, Counted, State


def with_children() -> Case:
    one = case()
    one.task.below = Below({Counted(State.COMPLETED): 2, Counted(State.FAILED): 1})
    return one


def gone(contract: Contract) -> Case:
    one = case(
        contract,
        summary=replace(SUMMARIES[contract], summary="A short summary.", blockers=("A blocker.",)),
        packet=replace(PACKET_SUMMARY, parent_task_id="shop.checkout", mode="code"),
    )
    one.texts.clear()
    return one


def broken() -> Case:
    one = case(findings=BROKEN)
    one.task.findings.append(Finding("HOF001", Severity.WARNING, "Give a task_id", 3, "api.handoff.md"))
    return one


def root() -> Case:
    one = case(summary=replace(SUMMARIES[Contract.RETURN_FORMAT], outcome=Outcome.PARTIAL, reported_state="PARTIAL"))
    one.task.parent_id, one.task.parent_basis = None, Basis.NONE
    return one


CASES: dict[str, Callable[[], Case]] = {
    "return-format": with_children,
    "subagent-return": lambda: case(Contract.SUBAGENT_RETURN),
    "return-meta": lambda: case(Contract.RETURN_META),
    "report": lambda: case(Contract.REPORT_CONTRACT),
    "not-returned": lambda: case(None),
    "gone": lambda: gone(Contract.RETURN_FORMAT),
    "gone-subagent-return": lambda: gone(Contract.SUBAGENT_RETURN),
    "gone-report": lambda: gone(Contract.REPORT_CONTRACT),
    "unreadable": lambda: case(text="{ this is nothing", packet_text='{"colour": "blu'),
    "unreadable-json": lambda: case(Contract.SUBAGENT_RETURN, text="{ this is nothing"),
    "broken": broken,
    "partial-root": root,
    "unknown-state": lambda: case(
        text=RETURN_FORMAT.replace("ERROR", "GREEN", 1),
        summary=replace(SUMMARIES[Contract.RETURN_FORMAT], reported_state="GREEN"),
    ),
    "none-reported": lambda: case(
        text="## Status\nstate: SUCCESS\nsummary: Done.\n## Runtime Attestation\nfiles_created:\n- (none)\n"
    ),
    "many-blockers": lambda: case(
        Contract.REPORT_CONTRACT,
        summary=replace(SUMMARIES[Contract.REPORT_CONTRACT], blockers=tuple(f"blocker {n}" for n in range(50))),
    ),
}


@pytest.fixture
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_utc")
@pytest.mark.parametrize("name", CASES)
def test_each_tab_says_what_it_said(name: str, request: pytest.FixtureRequest) -> None:
    one = CASES[name]()
    view = AtOnce(one.task, one.tree, one, NOW)
    text = ""
    for tab_id, tab in TABS.items():
        lines = [line.content.plain.rstrip() for line in lay_out(tab.write(view), 90)]
        text += f"== {tab_id}\n" + "\n".join(lines) + "\n\n"
    Golden(request.config.getoption("--update-goldens")).check(f"details/{name}.txt", text)
