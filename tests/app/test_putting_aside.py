"""Acknowledge, snooze, undo and what is new, by keys."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.app.scenes import NOW, Scene
from tests.app.stage import Stage, stage

from agentwatch.app.putting_aside import ChoiceScreen, snoozes
from agentwatch.app.screens.main import MainScreen
from agentwatch.app.screens.task import TaskScreen
from agentwatch.aside import NAME
from agentwatch.aside.shelf import Shelf
from agentwatch.contracts.shapes import Outcome
from agentwatch.delegation.observation import Looked

API = "checkout.implement.api"


def asking(s: Stage) -> set[str]:
    return {task.task_id for task in s.app.monitor.tree.asking()}


def words(s: Stage) -> str:
    """The screen, without the breaks of its lines and its frames."""
    return " ".join(s.text().replace("│", " ").split())


async def acknowledge(s: Stage, task_id: str) -> None:
    s.tree.select(task_id)
    await s.choose("A")
    await s.until(lambda: s.app.monitor.tree.tasks[task_id].acknowledged)


async def test_one_key_and_one_confirmation_put_a_task_aside_with_all_below_it() -> None:
    async with stage() as s:
        before = asking(s)
        below = {task_id for task_id in before if task_id.startswith("checkout.")}
        assert len(below) > 2
        s.tree.select("checkout")
        await s.press("A")
        assert isinstance(s.app.screen, ChoiceScreen)
        await s.until(lambda: f": {len(below)} tasks stop asking" in s.text())
        assert "This approves nothing and reaches no agent." in s.text()
        await s.until(lambda: "enter acknowledge · esc leave" in s.text())
        assert asking(s) == before
        await s.press("enter")
        await s.until(lambda: asking(s) == before - below)
        await s.until(lambda: "need you" not in s.line("agentwatch"))
        s.tree.select(API)
        await s.until(lambda: "put aside   acknowledged: retry?" in s.text())
        assert s.app.monitor.tree.tasks[API].question is not None
        await s.press("Z")
        await s.until(lambda: asking(s) == before)
        await s.until(lambda: f"Undone: {len(below)} tasks acknowledged just now ask again." in words(s))
        assert "Z undoes it" not in words(s)
        await s.press("Z")
        await s.until(lambda: "There is nothing to undo." in s.text())


@pytest.mark.parametrize("key", ["enter", "1"])
async def test_a_key_that_was_meant_for_the_screen_below_puts_nothing_aside(key: str) -> None:
    async with stage(steady=lambda: 0.0) as s:
        before = asking(s)
        s.tree.select(API)
        await s.press("A")
        await s.until(lambda: isinstance(s.app.screen, ChoiceScreen))
        await s.press(key, key)
        assert isinstance(s.app.screen, ChoiceScreen)
        assert "read it first: enter counts in a moment · esc leave" in s.text()
        assert asking(s) == before


@pytest.mark.parametrize("key", ["escape", "q", "ctrl+c"])
async def test_leaving_puts_nothing_aside(key: str) -> None:
    async with stage() as s:
        before = asking(s)
        await s.press("A", key)
        assert isinstance(s.app.screen, MainScreen)
        assert asking(s) == before


async def test_with_a_filter_all_that_it_finds_is_offered_first_and_then_the_selected_task() -> None:
    async with stage() as s:
        before = asking(s)
        await s.press("/", *"is:asks", "enter")
        await s.until(lambda: s.main.sought.text == "is:asks" and s.tree.row_count < 13)
        s.tree.select(API)
        await s.press("A")
        await s.until(lambda: "all that “is:asks” finds" in s.text())
        await s.press("j")
        await s.answer()
        await s.until(lambda: asking(s) == before - {API})
        await s.choose("A", "1")
        await s.until(lambda: not asking(s))
        await s.press("Z")
        await s.until(lambda: asking(s) == before - {API})
        await s.press("Z")
        await s.until(lambda: asking(s) == before)


async def test_where_nothing_asks_and_nothing_is_new_it_is_said() -> None:
    async with stage() as s:
        s.tree.select("checkout.plan")
        await s.press("A")
        assert isinstance(s.app.screen, MainScreen)
        await s.until(lambda: "There is nothing to acknowledge here" in s.text())
        await s.press("w")
        await s.until(lambda: "asks nothing that could be snoozed" in s.text())


async def test_a_new_failure_asks_again() -> None:
    async with stage() as s:
        await acknowledge(s, API)
        s.scene.returned(API, Outcome.FAILED, agent="code", ago=1, code="E_OTHER", summary="Failed in another way.")
        await s.see()
        await s.until(lambda: API in asking(s))


async def test_a_snooze_ends_when_its_time_has_come() -> None:
    now = NOW
    async with stage(clock=lambda: now) as s:
        s.tree.select(API)
        await s.press("w")
        await s.until(lambda: "until tomorrow, 9:00" in s.text())
        await s.answer()
        await s.until(lambda: API not in asking(s))
        await s.until(lambda: "put aside   snoozed until " in s.text())
        now += 1_799
        s.source.push()
        await s.pilot.pause(0.1)
        assert API not in asking(s)
        now += 1
        await s.until(lambda: API in asking(s))


def test_tomorrow_begins_at_nine_on_the_operators_clock() -> None:
    ways = dict(snoozes(NOW))
    morning = ways["until tomorrow, 9:00"]
    assert morning is not None
    there, here = (datetime.fromtimestamp(at, UTC).astimezone() for at in (morning, NOW))
    assert (there.hour, there.minute, (there.date() - here.date()).days) == (9, 0, 1)
    assert (ways["for 30 minutes"], ways["until it changes"]) == (NOW + 1_800, None)


async def test_a_decision_about_what_is_acknowledged_is_still_offered() -> None:
    async with stage() as s:
        await acknowledge(s, API)
        assert s.main.why_not("decide.retry") is None


async def test_all_of_it_works_on_a_page_of_its_own() -> None:
    async with stage(size=(80, 24)) as s:
        s.tree.select(API)
        await s.press("enter")
        assert isinstance(s.app.screen, TaskScreen)
        await s.choose("w")
        await s.until(lambda: s.app.monitor.tree.tasks[API].snoozed)
        await s.press("Z")
        await s.until(lambda: not s.app.monitor.tree.tasks[API].snoozed)
        await s.choose("A")
        await s.until(lambda: s.app.monitor.tree.tasks[API].acknowledged)
        assert isinstance(s.app.screen, TaskScreen)


async def test_what_cannot_be_written_is_said_and_asks_on(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    async with stage(open_shelf=lambda: Shelf(tmp_path, clock=lambda: NOW)) as s:
        s.tree.select(API)
        await s.choose("A")
        await s.until(lambda: "nothing is put aside" in s.text())
        assert API in asking(s)


async def test_a_screen_that_may_not_write_says_that_it_counts_here_only(tmp_path: Path) -> None:
    async with stage(open_shelf=lambda: Shelf(tmp_path, writes=False, clock=lambda: NOW)) as s:
        await acknowledge(s, API)
        await s.until(lambda: "nothing is written here" in words(s))
    assert list(tmp_path.iterdir()) == []


async def test_two_screens_show_the_same(tmp_path: Path) -> None:
    async with stage(open_shelf=lambda: Shelf(tmp_path, clock=lambda: NOW)) as one:
        other = Shelf(tmp_path)
        other.begin()
        await acknowledge(one, API)
        other.look()
        assert other.undo() is not None
        await one.until(lambda: API in asking(one))
    async with stage(open_shelf=lambda: Shelf(tmp_path, clock=lambda: NOW)) as again:
        assert API in asking(again)
        await acknowledge(again, API)
    async with stage(open_shelf=lambda: Shelf(tmp_path, clock=lambda: NOW)) as again:
        assert API not in asking(again)


async def test_hostile_names_are_shown_as_text() -> None:
    scene = Scene()
    scene.handoff("x", "[bold]evil[/]\x1b[2J\u202e", ago=100)
    scene.returned("x", Outcome.FAILED, ago=50, summary="[red]x")
    scene.handoff("\x1b]0;x\x07[b]", "y", ago=90)
    scene.returned("\x1b]0;x\x07[b]", Outcome.FAILED, ago=50)
    async with stage(scene.take(), scene=scene) as s:
        for _ in range(2):
            await s.press("n", "A")
            await s.until(lambda: "stops asking" in s.text())
            assert "\x1b" not in s.text()
            await s.press("escape", "w")
            assert "\x1b" not in s.text()
            await s.press("escape")


# What is new


async def test_what_ends_is_new_until_it_was_selected_for_a_second(tmp_path: Path) -> None:
    async with stage(open_shelf=lambda: Shelf(tmp_path, clock=lambda: NOW - 5)) as s:
        tree = s.app.monitor.tree
        assert "new" not in s.line("agentwatch")
        s.tree.select("checkout.plan")
        s.scene.returned("checkout.implement.docs", agent="writer", ago=2, summary="Written.")
        s.scene.returned("checkout.review", agent="critic", ago=1, summary="Reviewed.")
        s.source.push(s.scene.take())
        await s.until(lambda: list(tree.unseen) == ["checkout.review", "checkout.implement.docs"])
        await s.until(lambda: "2 new" in s.line("agentwatch"))
        await s.press("u")
        assert s.cursor == "checkout.review"
        await s.until(lambda: list(tree.unseen) == ["checkout.implement.docs"])
        await s.until(lambda: "1 new" in s.line("agentwatch"))
        await s.press("u")
        assert s.cursor == "checkout.implement.docs"
        await s.until(lambda: not tree.unseen)
        await s.press("u")
        await s.until(lambda: "Nothing is new." in s.text())
    told = [json.loads(line) for line in (tmp_path / NAME).read_text().splitlines()]
    assert [one["record"] for one in told] == ["began", "seen", "seen"]
    scene = s.scene
    scene.returned("checkout.implement.docs", agent="writer", ago=2, summary="Written.")
    async with stage(scene.take(), open_shelf=lambda: Shelf(tmp_path, clock=lambda: NOW - 5)) as again:
        # It holds the same bytes for the second one alone.
        assert len(again.app.monitor.tree.unseen) <= 1


async def test_nobody_looks_at_a_window_without_the_focus_or_behind_a_dialog() -> None:
    async with stage() as s:
        tree = s.app.monitor.tree
        s.tree.select(API)
        await s.press("question_mark")
        s.source.push([Looked(0, NOW - 1_000)])
        await s.until(lambda: not tree.tasks[API].seen)
        await s.pilot.pause(2.5)
        assert not tree.tasks[API].seen
        await s.press("escape")
        s.app.app_focus = False
        await s.pilot.pause(2.5)
        assert not tree.tasks[API].seen
        s.app.app_focus = True
        await s.until(lambda: tree.tasks[API].seen)


async def test_the_way_to_what_is_new_stays_inside_the_filter() -> None:
    async with stage() as s:
        s.source.push([Looked(0, NOW - 1_000)])
        await s.until(lambda: len(s.app.monitor.tree.unseen) > 2)
        s.main.filter_bar.seek("api is:new")
        await s.until(lambda: s.main.sought.text == "api is:new")
        await s.press("u")
        assert s.cursor == API
        await s.press("u")
        assert s.cursor == API
        s.main.filter_bar.seek("state:working")
        await s.pilot.pause()
        await s.press("u")
        await s.until(lambda: "Nothing that the filter shows is new." in s.text())


async def test_acknowledging_ends_what_is_new_and_the_undo_brings_it_back() -> None:
    async with stage() as s:
        tree = s.app.monitor.tree
        s.source.push([Looked(0, NOW - 1_000)])
        await s.until(lambda: len(tree.unseen) > 2)
        before = set(tree.unseen), asking(s)
        s.tree.select("checkout")
        await s.press("A")
        await s.until(lambda: "new no more" in s.text())
        await s.answer()
        await s.until(lambda: not tree.unseen and not asking(s))
        await s.press("Z")
        await s.until(lambda: (set(tree.unseen), asking(s)) == before)
