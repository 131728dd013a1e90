"""Escalate, abort, answer and accept on the screen, from the key to the ledger."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.app.deciding import FAILED, handoff, office, returned
from tests.app.scenes import Scene
from textual.widgets import Input

from agentwatch.app import app as app_module
from agentwatch.app.dialogs.document import Document
from agentwatch.app.dialogs.fields import Row
from agentwatch.app.dialogs.forms import said
from agentwatch.config import Settings
from agentwatch.decisions.proposal import report_problems
from agentwatch.decisions.record import Answer
from agentwatch.delegation.claims import Claim, Verdict
from agentwatch.delegation.decision import Action
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import DelegationTree

LINE_FAULT = returned(more="error_code: E_LINE_FAULT\nretry_recommended: no\n")


def blocked(*blockers: str) -> str:
    """A report that the child is blocked."""
    metadata: dict[str, Any] = {
        "agent_name": "auditor",
        "task_id": "shop.api",
        "status": "blocked",
        "verbosity_level": "summary",
        "confidence_level": 0.8,
    }
    report = {"report_metadata": metadata, "findings": {"context_map": [["Sandy.", None]]}, "blockers": blockers}
    return json.dumps({**report, "recommendations": [], "identified_gaps": []})


async def test_a_task_is_escalated_to_a_mode_that_was_seen_or_configured(tmp_path: Path) -> None:
    files = {**FAILED, "ui.handoff.json": handoff("shop.ui", mode="architect")}
    async with office(tmp_path, files, settings=Settings(modes=(("debug", "finds the cause"),))) as s:
        await s.open("e")
        assert "● debug  ○ architect" in s.line("║ mode ")
        assert "a retry comes first" in s.line("beware")
        assert "finds the cause" in s.line("it is for ")
        await s.press("shift+tab", "shift+tab", "right")
        await s.until(lambda: "finds the cause" not in s.text())
        await s.until(lambda: '"mode": "architect"' in s.dialog.query_one(Document).text)
        await s.record()
        (entry,) = s.entries()
        assert (entry.record.action, entry.record.params.mode) == (Action.ESCALATE, "architect")
        assert json.loads(entry.record.params.handoff or "")["mode"] == "architect"
        await s.until(lambda: s.app.monitor.tree.tasks["shop.api"].state is State.ESCALATED)


async def test_a_mode_that_was_merely_seen_is_not_chosen_for_the_operator(tmp_path: Path) -> None:
    modes = {"ui": "auditor", "db": "architect", "docs": "architect"}
    files = FAILED | {f"{name}.handoff.json": handoff(f"shop.{name}", mode=mode) for name, mode in modes.items()}
    async with office(tmp_path, files) as s:
        await s.open("e")
        s.wait_for_arming()
        await s.until(lambda: "not yet: say which mode to escalate to" in s.text())
        assert "○ architect  ○ auditor" in s.line("║ mode ")
        await s.press("ctrl+s")
        assert s.in_dialog
        await s.press("right")
        await s.until(lambda: "● architect" in s.text())
        await s.record()
        (entry,) = s.entries()
        assert entry.record.params.mode == "architect"


async def test_any_other_mode_can_be_written_but_not_its_own(tmp_path: Path) -> None:
    async with office(tmp_path) as s:
        await s.open("e")
        s.wait_for_arming()
        await s.until(lambda: "not yet: say which mode to escalate to" in s.text())
        # Without one to choose, this is where the operator begins.
        await s.press(*"code")
        await s.until(lambda: "it ran in the mode “code” already" in s.text())
        await s.press(*"-review")
        await s.record()
        (entry,) = s.entries()
        assert entry.record.params.mode == "code-review"


async def test_a_line_fault_goes_to_the_fitter_with_a_packet_of_its_own(tmp_path: Path) -> None:
    async with office(tmp_path, {**FAILED, "api.return.md": LINE_FAULT}) as s:
        await s.open("e")
        assert "● fitter" in s.line("║ mode ")
        assert "→ the fitter, who restores the line" in s.line("task ")
        assert "1 left, exactly one once the fitter has restored the line" in s.line("retries ")
        await s.record()
        (entry,) = s.entries()
        packet = json.loads(entry.record.params.handoff or "")
        assert (packet["restores"], packet["mode"], packet["attempt"]) == ("shop.api", "fitter", 1)


async def test_an_abort_is_confirmed_and_says_what_it_ends(tmp_path: Path) -> None:
    files = {
        **FAILED,
        "b.handoff.json": handoff("shop.api.b", parent_task_id="shop.api"),
        "c.handoff.json": handoff("shop.api.c", parent_task_id="shop.api"),
    }
    async with office(tmp_path, files) as s:
        await s.open("x")
        assert "ended, with 2 open tasks below it" in s.line("task ")
        s.wait_for_arming()
        await s.press("ctrl+s")
        assert "not yet: say yes" in s.text()
        await s.press("right")
        await s.until(lambda: "● yes, end this task and the 2 open tasks below it" in s.text())
        await s.until(lambda: "state: ERROR" in s.text())
        await s.press("tab", *"out of scope")
        await s.until(lambda: "out of scope" in s.dialog.query_one(Document).text)
        await s.record()
        (entry,) = s.entries()
        report = entry.record.params.report or ""
        assert report_problems(report) == []
        assert "- out of scope" in report
        await s.until(lambda: s.app.monitor.tree.tasks["shop.api"].state is State.CANCELED)


async def test_an_abort_with_a_report_that_breaks_its_contract_says_so(tmp_path: Path) -> None:
    async with office(tmp_path) as s:
        await s.open("x")
        await s.press("right")
        await s.until(lambda: "✓ valid" in s.text())
        s.dialog.query_one(Document).write("nothing")
        await s.until(lambda: "not yet: correct the report first" in s.text())


async def test_the_dialogs_are_there_before_their_key_is_pressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[ModuleType] = []
    monkeypatch.setattr(app_module, "import_module", lambda name: loaded.append(import_module(name)))
    async with office(tmp_path) as s:
        await s.until(lambda: "agentwatch.app.dialogs.opening" in {module.__name__ for module in loaded})


async def test_the_label_of_the_field_that_has_the_focus_stands_out(tmp_path: Path) -> None:
    async with office(tmp_path) as s:
        await s.open("x")

        def standing_out() -> list[str]:
            labels = [row.query_one(".label") for row in s.dialog.query(Row)]
            return [str(label.render()) for label in labels if label.styles.text_style.bold]

        await s.until(lambda: standing_out() == ["abort"])
        await s.press("tab")
        await s.until(lambda: standing_out() == ["why"])


async def test_each_blocker_gets_its_answer(tmp_path: Path) -> None:
    files = {"api.handoff.json": handoff(), "api.return.json": blocked("Which flow?", "Which\nregion?")}
    async with office(tmp_path, files) as s:
        await s.until(lambda: s.app.monitor.tree.tasks["shop.api"].own_state is State.BLOCKED)
        await s.open("a")
        assert "┊ Which flow?" in s.text()
        assert "┊ Which region?" in s.text()
        s.wait_for_arming()
        await s.press("ctrl+s")
        assert "not yet: say what the answer is" in s.text()
        await s.press(*"oauth")
        await s.press("ctrl+s")
        assert "not yet: answer each of its 2 questions: 1 left" in s.text()
        assert not s.entries()
        await s.press(*"eu")
        await s.record()
        (entry,) = s.entries()
        assert entry.record.params.answers == (Answer("Which flow?", "oauth"), Answer("Which\nregion?", "eu"))


@pytest.mark.parametrize("size", [(40, 12), (60, 20), (120, 20), (80, 24)])
async def test_the_field_of_an_answer_is_in_sight_while_it_is_written(tmp_path: Path, size: tuple[int, int]) -> None:
    question = "Which of the many ways to do this is the one that you want? " * 3
    async with office(tmp_path, {**FAILED, "api.return.md": blocked(question, "Which region?")}, size) as s:
        await s.open("a")
        await s.press(*"oauth")
        await s.until(lambda: "│  oauth" in s.text())
        await s.press("tab", *"eu")
        await s.until(lambda: "│  eu" in s.text())


@pytest.mark.parametrize("size", [(40, 12), (60, 20), (80, 24), (140, 40)])
async def test_what_is_missing_is_said_at_its_field_and_among_the_keys(tmp_path: Path, size: tuple[int, int]) -> None:
    async with office(tmp_path, {**FAILED, "api.return.md": blocked("Which flow?", "Which region?")}, size) as s:
        await s.open("a")
        await s.press("tab", "tab", "tab")
        s.wait_for_arming()
        await s.press("ctrl+s")
        await s.until(lambda: "not yet: say what the" in s.text().splitlines()[-1])
        await s.until(lambda: "│  say what the answer is" in s.text())
        field = s.app.focused
        assert isinstance(field, Input)
        assert field.has_class("-wanted")
        await s.press(*"oauth")
        await s.until(lambda: "say what the answer is" not in s.text().splitlines()[-1])
        assert not field.has_class("-wanted")


@pytest.mark.parametrize(("key", "field", "status"), [("x", "sure", "ERROR"), ("y", "note", "PARTIAL")])
async def test_the_key_that_records_goes_to_the_field_that_is_missing(
    tmp_path: Path, key: str, field: str, status: str
) -> None:
    files = {**FAILED, "api.return.md": returned(status)}
    async with office(tmp_path, files, (80, 24)) as s:
        await s.open(key)
        await s.press("tab")
        s.wait_for_arming()
        await s.press("ctrl+s")
        await s.until(lambda: s.app.focused is not None and s.app.focused.id == field)
        assert s.text().splitlines()[-1].startswith(" ✗ not yet: say ")
        assert s.entries() == ()


async def test_each_line_of_a_question_stands_behind_the_bar(tmp_path: Path) -> None:
    question = "Which of the many ways to do this is the one that you want? " * 6
    async with office(tmp_path, {**FAILED, "api.return.md": blocked(question)}, (60, 30)) as s:
        await s.open("a")
        lines = s.text().splitlines()
        first = next(number for number, line in enumerate(lines) if "your answers" in line) + 1
        last = next(number for number, line in enumerate(lines) if "your answer " in line and number > first)
        assert last - first > 3
        assert all(line.startswith("│┊ ") for line in lines[first:last])


async def test_a_part_is_accepted_with_a_reason(tmp_path: Path) -> None:
    files = {"api.handoff.json": handoff(), "api.return.md": returned("PARTIAL", more="")}
    async with office(tmp_path, files, (80, 24)) as s:
        await s.open("y")
        s.wait_for_arming()
        await s.press("ctrl+s")
        assert "not yet: say why the return is good enough" in s.text()
        await s.press(*"it will do")
        await s.record()
        (entry,) = s.entries()
        assert (entry.record.action, entry.record.note) == (Action.ACCEPT, "it will do")


async def test_the_dialog_tells_which_rules_a_return_breaks(tmp_path: Path) -> None:
    files = {"api.handoff.json": handoff(), "api.return.md": returned("DONE")}
    async with office(tmp_path, files) as s:
        await s.open("r")
        assert "RET011, line 2: `state` is “DONE”" in s.line("breaks rules ")


def test_a_false_claim_that_is_made_twice_is_told_once() -> None:
    scene = Scene()
    scene.handoff("api")
    scene.returned("api", created=("out.md",))
    lies = [Claim(kind, "out.md", Verdict.CONTRADICTED, "missing") for kind in ("created", "deliverable")]
    scene.checked("returns/api.return.md", *lies)
    tree = DelegationTree()
    for observation in scene.take():
        tree.apply(observation)
    text = "\n".join(line.content.plain for block in said(tree.tasks["api"], None) for line in block.lines(80))
    assert text.count("out.md: missing") == 1


async def test_the_dialog_shows_that_a_task_is_contradicted(tmp_path: Path) -> None:
    files = {"api.handoff.json": handoff(), "api.return.md": returned("SUCCESS", more="")}
    async with office(tmp_path, files) as s:
        s.app.monitor.tree.tasks["shop.api"].verdict = Verdict.CONTRADICTED
        await s.open("r")
        assert "attempt 1 ⚑ false → attempt 2" in s.line("“shop.api”")


async def test_another_action_can_be_taken_instead(tmp_path: Path) -> None:
    async with office(tmp_path) as s:
        await s.open("r")
        await s.press("f6")
        await s.until(lambda: "Accept: there is no result to accept." in s.toasts)
        await s.press("f3")
        await s.until(lambda: "╔═ ◆ ↑ Escalate" in s.text())
        await s.press("f4")
        await s.until(lambda: "╔═ ◆ – Abort" in s.text())
        # It begins anew: the moment before the key counts as well.
        assert not s.dialog._arming.is_over
        await s.until(lambda: s.dialog.seen_at is not None)
        await s.press("escape")
        assert not s.in_dialog
        assert s.entries() == ()
