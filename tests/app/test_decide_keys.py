"""Every key that decides, or works in the dialog of a decision, does what its definition says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from tests.app.deciding import FAILED, Office, handoff, office, returned
from textual.widgets import TextArea

from agentwatch.app.actions import COMMANDS, Group
from agentwatch.app.app import AgentwatchApp
from agentwatch.app.dialogs.document import Document
from agentwatch.delegation.decision import OF_ATTEMPTS, Action

Case = Callable[[Office, str], Awaitable[None]]
CASES: dict[str, Case] = {}
ACTIONS = dict(zip("rexay", OF_ATTEMPTS, strict=True))

TWO = {
    **FAILED,
    "ui.handoff.json": handoff("shop.ui"),
    "ui.return.md": returned("PARTIAL", "shop.ui", more="blockers: which\n"),
    "db.handoff.json": handoff("shop.db"),
    "db.return.md": returned(task_id="shop.db"),
}


def case(command_id: str) -> Callable[[Case], Case]:
    def keep(check: Case) -> Case:
        CASES[command_id] = check
        return check

    return keep


@case("decide.retry")
@case("decide.escalate")
@case("decide.abort")
async def _(s: Office, key: str) -> None:
    await s.open(key)
    assert s.dialog.case.action is ACTIONS[key]
    assert s.dialog.case.subject.task_id == "shop.api"


@case("decide.respond")
async def _(s: Office, key: str) -> None:
    await s.open(key)
    await s.until(lambda: "your answers, below the child's questions" in s.text())


@case("decide.accept")
async def _(s: Office, key: str) -> None:
    await s.open(key, "shop.ui")
    assert s.dialog.case.action is Action.ACCEPT


@case("review")
async def _(s: Office, key: str) -> None:
    await s.press(key)
    await s.until(lambda: "1 of 2" in s.text())


@case("mark")
async def _(s: Office, key: str) -> None:
    await s.press(key)
    assert s.tree.marked == (s.cursor,)
    await s.press(key)
    assert s.tree.marked == ()


@case("dialog.record")
async def _(s: Office, key: str) -> None:
    await s.open("r")
    await s.ready()
    await s.press(key)
    await s.until(lambda: not s.in_dialog)
    assert len(s.entries()) == 1


@case("dialog.leave")
async def _(s: Office, key: str) -> None:
    await s.open("r")
    await s.press(key)
    assert not s.in_dialog


@case("dialog.break")
async def _(s: Office, key: str) -> None:
    await s.open("r")
    await s.press(*"note", "shift+home", key)
    assert s.in_dialog
    assert s.app.clipboard == "note"
    await s.press("end", key)
    assert not s.in_dialog
    assert s.entries() == ()


@case("dialog.skip")
async def _(s: Office, key: str) -> None:
    await s.press("R")
    await s.until(lambda: "1 of 2" in s.text())
    await s.press(key)
    await s.until(lambda: "2 of 2" in s.text())


@case("dialog.next")
async def _(s: Office, key: str) -> None:
    await s.open("r")
    await s.press(key)
    await s.until(lambda: s.dialog.query_one(Document).has_focus_within)


@case("dialog.previous")
async def _(s: Office, key: str) -> None:
    await s.open("r")
    await s.press(key)
    await s.until(lambda: s.app.focused is not None and s.app.focused.id == "hint")


@case("dialog.edit")
async def _(s: Office, key: str) -> None:
    await s.open("r")
    await s.until(lambda: "✓ valid" in s.text())
    await s.press(key)
    await s.until(lambda: "by hand" in s.dialog.query_one(Document).text)


@case("dialog.changes")
async def _(s: Office, key: str) -> None:
    await s.open("r")
    await s.press(key)
    await s.until(lambda: '│   "attempt": 2,' in s.text())


@case("dialog.instead")
async def _(s: Office, key: str) -> None:
    await s.open("x")
    wanted = OF_ATTEMPTS[int(key[1:]) - 2]
    await s.press(key)
    if wanted is Action.ABORT:
        await s.until(lambda: "Abort: this is its dialog." in s.toasts)
    elif wanted is Action.ACCEPT:
        await s.until(lambda: "Accept: there is no result to accept." in s.toasts)
    else:
        await s.until(lambda: s.dialog.case.action is wanted)


HERE = [command for command in COMMANDS if command.group in (Group.DECIDE, Group.DIALOG)]


def test_every_command_has_a_case() -> None:
    assert set(CASES) == {command.id for command in HERE}


@pytest.mark.parametrize(
    ("command_id", "key"), [(command.id, key) for command in HERE for key in command.keys.split(" ")]
)
async def test_the_key_does_what_the_command_says(
    command_id: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "vi")
    monkeypatch.setattr("agentwatch.app.editor.edit", lambda _command, path: path.write_text("by hand") and 0)
    monkeypatch.setattr(AgentwatchApp, "suspend", lambda _app: nullcontext())
    async with office(tmp_path, TWO) as s:
        await s.until(lambda: len(s.app.monitor.tree.asking()) == 2)
        await CASES[command_id](s, key)


async def test_in_a_document_the_key_that_suspends_takes_a_change_back(tmp_path: Path) -> None:
    async with office(tmp_path, TWO) as s:
        await s.open("r")
        await s.ready()
        area = s.dialog.query_one(TextArea)
        area.focus()
        before = area.text
        await s.press("Z")
        assert area.text != before
        await s.press("ctrl+z")
        assert area.text == before
        assert not s.toasts


def test_what_decides_is_never_done_by_a_click() -> None:
    assert [command.id for command in HERE if command.by_key] == ["dialog.record"]
