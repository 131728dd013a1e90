"""Several workspaces on one screen: a row for each, and what is done to a task is done where it belongs."""

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agentwatch.app.app import AgentwatchApp
from agentwatch.composition import watched
from agentwatch.config import Settings
from agentwatch.decisions.reader import Question, Reader
from agentwatch.decisions.service import DecisionService
from agentwatch.history.acknowledgements import Acknowledgements
from agentwatch.requests.store import RequestStore
from agentwatch.state import workspace_id
from agentwatch.view.rows import Group
from tests.app.deciding import Office
from tests.app.scenes import Scene, ToldSource
from tests.journeys.made import handoff, returned
from tests.unit.requests.asked import request
from tests.unit.test_worktrees import git


@pytest.fixture
def home(tmp_path, monkeypatch):
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
        stage = Office(app, pilot, ToldSource(), Scene(), root, DecisionService(workspaces[0]), clock)
        await stage.until(lambda: stage.main.details)
        await stage.until(lambda: all(part.monitor.clerk for part in monitor._parts.values()))
        await stage.until(lambda: app.is_settled)
        await pilot.pause()
        yield stage


async def test_a_decision_from_the_screen_reaches_the_agents_of_that_workspace_only(home):
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
    assert Reader(here).find(question).record
    assert not Reader(two if here == one else one).find(question).decided


async def test_an_answer_from_the_screen_is_recorded_in_the_workspace_of_its_request_only(home):
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
    assert [entry.record.decision_id for entry in DecisionService(two).read().entries] == [wanted.request_id]
    assert DecisionService(one).read().entries == ()


async def test_what_is_put_aside_is_so_in_its_own_workspace_and_one_undo_takes_all_of_it_back(home):
    one, two = fill(home / "one", api="ERROR"), fill(home / "two", api="ERROR", form="ERROR")
    async with screen(home, one, two) as stage:
        tree = stage.app.monitor.tree
        await stage.until(lambda: len(tree.asking()) == 3)
        stage.main.filter_bar.seek("is:asks")
        await stage.until(lambda: stage.main.sought.text == "is:asks")
        await stage.choose("A")
        await stage.until(lambda: not tree.asking())
        states = [home / ".local/state/agentwatch" / workspace_id(place) for place in (one, two)]
        asides = [
            {getattr(event, "path", "") for event in Acknowledgements(state).read_changes()} - {""} for state in states
        ]
        assert asides == [{"shop.api"}, {"shop.api", "shop.form"}]
        await stage.press("Z")
        await stage.until(lambda: len(tree.asking()) == 3)
        await stage.press("Z")
        await stage.until(lambda: "There is nothing to undo." in stage.text())


async def test_what_is_past_in_another_worktree_is_history_and_no_part_of_now(home, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_COMMITTER_DATE", f"{time.time() - 80 * 86_400:.0f} +0000")
    shop = fill(home / "shop", lost="ERROR", left="ERROR")
    for words in ("init -q", "add -A", "commit -qm one", "worktree add -q ../other"):
        git(shop, *words.split())
    fill(home / "other", live="")
    async with screen(home, shop) as stage:
        await stage.until(lambda: "HISTORY  2 runs" in stage.text() and "other" in stage.text())
        assert stage.main.task_tree.order.tally(Group.NOW).sums.tasks == 1


async def test_an_id_does_not_look_like_a_task_of_another_workspace(home):
    one, two = fill(home / "one", api="ERROR"), fill(home / "two", api="ERROR")
    (one / "api.handoff.json").write_text(handoff("two › shop.api"))
    (one / "api.return.md").write_text(returned("ERROR", "two › shop.api"))
    async with screen(home, one, two) as stage:
        await stage.until(lambda: len(stage.app.monitor.tree.asking()) == 2)
        assert "one › two > shop.api" in stage.text()
        assert stage.text().count("two › ") == 1
