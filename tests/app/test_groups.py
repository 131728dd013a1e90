"""What is alive stands first, in an aged repository too: groups, headings, and a cursor that stays in its line."""

from __future__ import annotations

from typing import Any

import pytest
from tests.app.scenes import NOW, Scene
from tests.app.stage import Stage, stage

from agentwatch.contracts.shapes import Contract, Outcome, Return
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import Tree

DAY = 86_400


def groups_of_all() -> Scene:
    """A run in each group but the history, and several in one."""
    scene = Scene()
    scene.handoff("live", ago=300)
    scene.handoff("live.one", ago=200)
    scene.returned("live.one", Outcome.WORKING, ago=20)
    for name, ago in (("noon", 3_000.0), ("morning", 9_000.0)):
        scene.handoff(name, ago=ago + 60)
        scene.returned(name, ago=ago)
    for number in range(4):
        scene.handoff(f"old{number}", ago=3 * DAY + number * DAY + 60)
        scene.returned(f"old{number}", ago=3 * DAY + number * DAY)
    return scene


async def test_a_heading_can_be_folded_and_told_of_and_nothing_is_decided_on_it() -> None:
    async with stage(scene=groups_of_all()) as s:
        await s.press("g")
        assert s.cursor is None
        await s.press("enter")
        assert "live" not in s.tree.row_ids()
        assert "▸ NOW  1 run, 2 tasks, all working" in s.line("NOW")
        await s.press("space")
        assert s.tree.row_ids()[0] == "live"
        await s.press("right")
        assert s.cursor == "live"
        await s.press("left", "left")
        assert s.cursor is None
        assert s.tree.cursor_group == "now"
        await s.press("r")
        await s.until(lambda: "No task is selected." in s.text())


async def test_a_run_goes_to_its_group_as_time_passes_but_not_under_the_cursor() -> None:
    now = NOW
    async with stage(scene=groups_of_all(), size=(80, 24), clock=lambda: now) as s:
        await s.press("j", "j", "j")
        assert s.cursor == "noon"
        now += 17 * 3_600
        s.tree.tick()
        order = s.tree.outline.order
        # Nothing goes past the task under the cursor.
        assert [order.group(one) for one in ("live", "noon", "morning")] == ["now", "today", "earlier"]
        await s.press("j")
        assert [order.group(one) for one in ("live", "noon", "morning")] == ["earlier"] * 3
        assert "NOW" not in s.text()


async def test_a_sign_of_life_moves_nothing_and_a_question_does() -> None:
    scene = Scene()
    for name, ago in (("a", 300), ("b", 200), ("c", 100)):
        scene.handoff(name, ago=ago)
        scene.returned(name, Outcome.WORKING, ago=ago - 5)
    async with stage(scene=scene, size=(80, 24)) as s:
        assert s.tree.row_ids() == ["c", "b", "a"]
        scene.returned("a", Outcome.WORKING, ago=1, summary="Still at it.")
        await s.see()
        await s.until(lambda: s.app.monitor.tree.tasks["a"].updated_at == NOW - 1)
        await s.shown()
        assert s.tree.row_ids() == ["c", "b", "a"]
        await s.press("j")
        scene.returned("a", Outcome.FAILED, ago=0)
        await s.see()
        # It goes up as far as the task under the cursor, and above it when the cursor has left.
        await s.until(lambda: s.app.monitor.tree.tasks["a"].state is State.FAILED)
        await s.until(lambda: s.line(" a ").strip() > "" and "NEEDS YOU" in s.line(" a "))
        assert s.tree.row_ids()[0] in ("a", "c")
        assert s.cursor == "b"


def returns_along(scene: Scene, *paths: tuple[str, ...], ago: float = 60.0) -> None:
    """A return of the last agent of each path, in one task directory."""
    for path in paths:
        name = f"specs/973_prove_it/.return-meta-{len(scene.digests)}.json"
        document = Return(
            Contract.SUBAGENT_RETURN, "implemented", Outcome.COMPLETED, agent=path[-1], delegation_path=path
        )
        scene._see(name, document, ago)


async def test_a_chain_that_is_only_named_is_one_row_called_by_the_task() -> None:
    scene = Scene()
    returns_along(scene, ("orchestrator", "research", "skill-x", "agent-y"))
    scene.handoff("other")
    async with stage(scene=scene, size=(140, 24)) as s:
        chained = next(one for one in s.app.monitor.tree.tasks if "agent-y" in one)
        top = s.app.monitor.tree.ancestors(chained)[-1]
        assert sorted(s.tree.row_ids()) == sorted([chained, "other"])
        row = s.line("973_prove_it").split("│")[0]
        assert "973_prove_it" in row
        assert "agent-y" in row
        # All goes by the ids of the tasks, also of those without a row.
        s.tree.select("other")
        s.main.show_task(top)
        assert s.cursor == chained
        await s.press("/", *"path:973", "enter")
        await s.until(lambda: s.tree.row_ids() == [chained])
        await s.until(lambda: "1 found" in s.text())
        await s.press("/", *["backspace"] * 8, *"973", "enter")
        await s.until(lambda: s.tree.row_ids() == [chained] and " found" in s.text())
        assert " 1 found" in s.text()
        await s.press("escape", "t")
        await s.until(lambda: "973_prove_it" in s.text())
        await s.press("escape")
        s.tree.select(chained)
        await s.press("left")
        assert s.cursor == chained
        returns_along(scene, ("orchestrator", "plan", "agent-z"), ago=5.0)
        await s.see()
        await s.until(lambda: any("agent-z" in one for one in s.tree.row_ids()))
        # The one who has two below him now has a row, and what fits stays in sight.
        assert top in s.tree.row_ids()
        assert (s.cursor, s.tree.scroll_offset.y) == (chained, 0)
        await s.press("left")
        assert s.cursor == top


def history(count: int = 9) -> Scene:
    """Nothing but runs that had long been silent when their workspace was first watched."""
    scene = Scene()
    for number in range(count):
        scene.handoff(f"old{number}", ago=40 * DAY + number)
        scene.returned(f"old{number}", Outcome.FAILED, ago=39 * DAY + number)
    return scene


@pytest.fixture
def all_is_history(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Tree.__init__

    def watched_since_a_week(tree: Tree, *args: Any, **more: Any) -> None:
        begin(tree, *args, **more)
        tree.rules = tree.rules._replace(history_before=NOW - 7 * DAY)

    monkeypatch.setattr(Tree, "__init__", watched_since_a_week)


async def begins(s: Stage) -> None:
    """A live parent with three children begins."""
    for name in ("live", "live.a", "live.b", "live.c"):
        s.scene.handoff(name, ago=2.0)
        s.scene.returned(name, Outcome.WORKING, ago=1.0)
    await s.see("live", "live.a", "live.b", "live.c")
    await s.until(lambda: "live.c" in s.tree.row_ids())
    await s.pilot.pause()


@pytest.mark.usefixtures("all_is_history")
async def test_what_begins_above_is_in_sight_and_the_cursor_stays_on_its_task() -> None:
    async with stage(scene=history(), size=(80, 24)) as s:
        await s.press(*"jjjjj")
        before = s.cursor
        await begins(s)
        assert s.cursor == before
        assert s.text().splitlines()[1].strip().startswith("▾ NOW")


async def test_what_asks_and_works_comes_first_and_what_asked_long_ago_after_what_is_live() -> None:
    now, scene = NOW, Scene()
    for name, ago in (("older", 15_000.0), ("ended", 1_700.0), ("asks", 200.0)):
        scene.handoff(name, ago=ago + 10)
        scene.returned(name, Outcome.FAILED, ago=ago)
    for name in ("works", "both", "both.child"):
        scene.handoff(name, ago=300.0)
        scene.returned(name, Outcome.FAILED if "child" in name else Outcome.WORKING, ago=250.0)
    async with stage(scene=scene, size=(80, 24), clock=lambda: now) as s:
        assert s.tree.row_ids() == ["both", "both.child", "asks", "works", "ended", "older"]
        await s.press("j")
        now += 600.0
        s.tree.tick()
        assert s.tree.row_ids() == ["both", "both.child", "works", "asks", "ended", "older"]
