"""Several workspaces on one screen: a row for each, and what is done to a task is done where it belongs."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.app.deciding import Office
from tests.app.scenes import Scene, ToldSource
from tests.journeys.made import handoff, returned
from tests.unit.requests.asked import request
from tests.unit.test_worktrees import git

from agentwatch.app.app import AgentwatchApp
from agentwatch.composition import watched
from agentwatch.config import Settings
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


async def test_an_answer_is_recorded_in_the_workspace_of_its_request(home: Path) -> None:
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


async def test_what_is_past_in_another_worktree_is_history(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_COMMITTER_DATE", f"{time.time() - 80 * 86_400:.0f} +0000")
    shop = fill(home / "shop", lost="ERROR", left="ERROR")
    for words in ("init -q", "add -A", "commit -qm one", "worktree add -q ../other"):
        git(shop, *words.split())
    fill(home / "other", live="")
    async with screen(home, shop) as stage:
        await stage.until(lambda: "HISTORY  2 runs" in stage.text() and "other" in stage.text())
        assert stage.main.task_tree.count_now()[0] == 1


async def test_an_id_does_not_look_like_a_task_of_another_workspace(home: Path) -> None:
    one, two = fill(home / "one", api="ERROR"), fill(home / "two", api="ERROR")
    (one / "api.handoff.json").write_text(handoff("two › shop.api"))
    (one / "api.return.md").write_text(returned("ERROR", "two › shop.api"))
    async with screen(home, one, two) as stage:
        await stage.until(lambda: len(stage.app.monitor.tree.asking()) == 2)
        assert "one › two > shop.api" in stage.text()
        assert stage.text().count("two › ") == 1
