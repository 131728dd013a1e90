"""Several workspaces on one screen: a row for each, and what is done to a task is done where it belongs."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.app.deciding import Office
from tests.app.scenes import Scene, ToldSource
from tests.journeys.made import handoff, returned
from tests.unit.requests.asked import request

from agentwatch.app.app import AgentwatchApp
from agentwatch.composition import watched
from agentwatch.config import Settings
from agentwatch.decisions.reader import Pending, Question, Reader, Verified
from agentwatch.decisions.service import LocalService
from agentwatch.requests.store import RequestStore


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def fill(place: Path, **states: str) -> Path:
    for name, state in states.items():
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{name}.handoff.json").write_text(handoff(f"shop.{name}"))
        if state:
            (place / f"{name}.return.md").write_text(returned(state, f"shop.{name}"))
    return place


@asynccontextmanager
async def screen(root: Path, *workspaces: Path, size: tuple[int, int] = (140, 40)) -> AsyncIterator[Office]:
    monitor = watched(workspaces, Settings(sessions=False))
    clock = [0.0]
    app = AgentwatchApp(monitor, steady=lambda: clock[0])
    async with app.run_test(size=size, notifications=True) as pilot:
        stage = Office(app, pilot, ToldSource(), Scene(), root, LocalService(workspaces[0]), clock)
        await stage.until(lambda: stage.main.details)
        await stage.until(lambda: all(part.monitor.clerk for part in monitor._parts.values()))
        await stage.until(lambda: app.is_settled)
        await pilot.pause()
        yield stage


async def test_a_decision_from_the_screen_reaches_the_agents_of_that_workspace_only(home: Path) -> None:
    one, two = fill(home / "one", api="ERROR"), fill(home / "two", api="ERROR")
    async with screen(home, one, two) as stage:
        await stage.press("n")
        task = stage.app.monitor.tree.tasks[stage.cursor or ""]
        assert task.own_id == "shop.api"
        here = stage.app.monitor.of(task.task_id)[0].workspace
        await stage.press("r")
        await stage.until(lambda: stage.in_dialog)
        assert "“shop.api”" in stage.text()
        assert f"in        “{here.name}”" in stage.text()
        await stage.until(lambda: "not yet:" in stage.text() or "read it first" in stage.text())
        await stage.record()
    version = task.attempts[-1].returned
    question = Question("shop.api", 1, version.digest if version else None)
    assert isinstance(Reader(here).find(question), Verified)
    assert isinstance(Reader(two if here == one else one).find(question), Pending)


async def test_an_answer_from_the_screen_is_recorded_in_the_workspace_of_its_request_only(home: Path) -> None:
    one, two = fill(home / "one", api=""), fill(home / "two", api="")
    wanted = request(two, source="claude-code", session_id="shop.api", asked_at=time.time())
    with RequestStore(two).offer(wanted):
        async with screen(home, one, two) as stage:
            await stage.until(lambda: stage.app.monitor.tree.totals.needs_operator)
            stage.tree.select(stage.app.monitor.tree.roots[0])
            await stage.press("a")
            await stage.until(lambda: "choose an answer" in stage.text() or "read it first" in stage.text())
            assert "in        “two”" in stage.text()
            await stage.press("space")
            dialog = stage.app.screen
            stage.wait_for_arming()
            await stage.press("ctrl+s")
            await stage.until(lambda: stage.app.screen is not dialog)
    assert [entry.record.decision_id for entry in LocalService(two).read().entries] == [wanted.request_id]
    assert LocalService(one).read().entries == ()


async def test_an_id_does_not_look_like_a_task_of_another_workspace(home: Path) -> None:
    one, two = fill(home / "one", api="ERROR"), fill(home / "two", api="ERROR")
    (one / "api.handoff.json").write_text(handoff("two › shop.api"))
    (one / "api.return.md").write_text(returned("ERROR", "two › shop.api"))
    async with screen(home, one, two) as stage:
        await stage.until(lambda: len(stage.app.monitor.tree.asking()) == 2)
        assert "one › two > shop.api" in stage.text()
        assert stage.text().count("two › ") == 1
