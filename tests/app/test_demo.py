"""The demo on its screens: a line says what to try, the play waits for dialogs, and a decision closes the loop."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from pathlib import Path

import pytest
from tests.app.scenes import Scene, ToldSource
from tests.app.stage import Stage

from agentwatch.app.dialogs.decision import DecisionScreen
from agentwatch.app.played import DemoApp
from agentwatch.app.screens.pages import HelpScreen
from agentwatch.app.screens.task import TaskScreen
from agentwatch.config import Settings
from agentwatch.delegation.decision import Stage as Receipt
from agentwatch.delegation.task import State, Task
from agentwatch.demo import DemoSession, session
from agentwatch.monitor import Monitor
from agentwatch.sources.files.source import FilesSource

DOCS = "checkout.docs"


def reached(task: Task) -> list[Receipt]:
    """How far the decision about the first attempt has got."""
    decision = task.attempts[0].decision
    return [receipt.stage for receipt in decision.receipts] if decision is not None else []


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_a_newcomer_is_told_what_to_try_and_sees_the_loop_close(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setattr(session, "POLL_SECONDS", 0.02)
    held: list[bool] = []
    demo = DemoSession(speed=100.0, once=True)

    def hold(waits: bool) -> None:
        held.append(waits)
        demo.hold(waits)

    with demo as workspace:
        monitor = Monitor(
            workspace, Settings(), FilesSource(workspace), time.time, inspects=True, open_desk=demo.open_desk
        )
        app = DemoApp(monitor, hold)
        async with app.run_test(size=size) as pilot:
            s = Stage(app, pilot, ToldSource(), Scene())
            await s.until(lambda: monitor.clerk is not None)
            await s.until(lambda: DOCS in monitor.tree.tasks and monitor.tree.tasks[DOCS].contradicted)
            s.tree.select("checkout")
            await s.until(lambda: "Try it: n goes to a child that needs you." in s.text())
            s.tree.select(DOCS)
            await s.until(lambda: "Try it: r to retry. Only ctrl+s records it." in s.text())
            assert held[-1] is False
            await s.press("r")
            await s.until(lambda: isinstance(app.screen, DecisionScreen))
            assert held[-1] is True
            await s.until(lambda: "◆ ctrl+s" in s.text())
            await s.press("ctrl+s")
            await s.until(lambda: not isinstance(app.screen, DecisionScreen))
            assert held[-1] is False
            tasks = monitor.tree.tasks
            await s.until(lambda: reached(tasks[DOCS]) == list(Receipt))
            await s.until(lambda: tasks[DOCS].own_state is State.COMPLETED and not tasks[DOCS].contradicted)
            assert tasks[DOCS].attempt == 2
        # Whoever watches the workspace ends behind the screen.
        for thread in threading.enumerate():
            if thread.name == "agentwatch-evidence":
                await asyncio.to_thread(thread.join)
    assert not workspace.parent.exists()


async def test_the_demo_says_that_it_starts_over_and_a_key_puts_that_off(tmp_path: Path) -> None:
    left: list[float | None] = [None]
    app = DemoApp(
        Monitor(tmp_path, Settings(), FilesSource(tmp_path), time.time),
        lambda _held: None,
        stay=lambda: left.__setitem__(0, 60.0),
        starts_over_in=lambda: left[0],
    )
    async with app.run_test(size=(80, 24)) as pilot:
        s = Stage(app, pilot, ToldSource(), Scene())
        await s.until(lambda: " DEMO   Agents build" in s.text())
        left[0] = 11.2
        await s.until(lambda: " DEMO   It starts over in 12 s; any key waits." in s.text())
        await s.press("j")
        await s.until(lambda: "starts over" not in s.text())
        left[0] = math.inf
        await s.until(lambda: " DEMO   The demo is over: nothing more comes by itself." in s.text())


async def test_the_line_is_on_every_screen_of_its_own_and_dialogs_hold_the_play(tmp_path: Path) -> None:
    held: list[bool] = []
    (tmp_path / "notes.handoff.json").write_text(
        '{"task_id": "notes", "objective": "Write.", "evidence": [], "success_criteria": ["a"], "risks": []}\n'
    )
    app = DemoApp(Monitor(tmp_path, Settings(), FilesSource(tmp_path), time.time), held.append)
    async with app.run_test(size=(80, 24)) as pilot:
        s = Stage(app, pilot, ToldSource(), Scene())
        await s.until(lambda: "○ notes" in s.text() and " DEMO   Agents build the checkout of a shop." in s.text())
        await s.press("enter")
        await s.until(lambda: isinstance(app.screen, TaskScreen) and " DEMO " in s.text())
        assert held[-1] is False
        await s.press("?")
        await s.until(lambda: isinstance(app.screen, HelpScreen))
        assert held[-1] is True
        await s.press("escape", "escape")
        await s.until(lambda: app.screen is s.main and s.text().count(" DEMO ") == 1)
        assert held[-1] is False
