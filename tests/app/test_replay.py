"""A recording on the same screens: it says so, every key steers it, and nothing in it can be acted on."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.app.scenes import Scene, ToldSource, shop
from tests.app.stage import Stage, stage
from textual import events
from textual.keys import key_to_character

from agentwatch.app.actions import COMMANDS, Home
from agentwatch.app.app import AgentwatchApp
from agentwatch.app.played import ReplayApp
from agentwatch.app.screens.task import TaskScreen
from agentwatch.app.widgets.filter_bar import FilterInput
from agentwatch.config import Settings
from agentwatch.delegation.observation import Observation, Seen
from agentwatch.monitor import Monitor
from agentwatch.sources.playback import Playback, Position

BORDER = 75
"""The column of the line between tree and details."""

Case = Callable[[Stage, str], Awaitable[None]]
CASES: dict[str, Case] = {}
REPLAY = [command for command in COMMANDS if Home.REPLAY in command.homes]


def case(command_id: str) -> Callable[[Case], Case]:
    def keep(check: Case) -> Case:
        CASES[command_id] = check
        return check

    return keep


@asynccontextmanager
async def replay(scene: Scene | None = None, size: tuple[int, int] = (140, 40)) -> AsyncIterator[Stage]:
    """The app on a recording of the sketch's session, paused at its last observation."""
    playback = Playback((scene or shop()).take(), lambda digest: f"# Text of {digest[:8]}\n")
    playback.play()
    playback.wind()
    monitor = Monitor(Path("/home/kim/shop"), Settings(), playback, playback.clock)
    app = ReplayApp(monitor, playback)
    async with app.run_test(size=size, notifications=True) as pilot:
        stage = Stage(app, pilot, ToldSource(), Scene())
        await stage.until(lambda: stage.main.details)
        await stage.until(lambda: len(monitor.tree.tasks) == 13)
        await stage.until(lambda: "○ docs" in stage.text())
        yield stage


def position(s: Stage) -> Position:
    assert isinstance(s.app, ReplayApp)
    return s.app.playback.position


async def at(s: Stage, number: int) -> None:
    """Wait until the bar says so."""
    await s.until(lambda: f"{number} of {position(s).count}" in s.text())


@case("replay.play")
async def _(s: Stage, key: str) -> None:
    await s.press("comma", key)
    assert position(s).playing
    await s.until(lambda: "▶ playing" in s.text())
    await s.press(key)
    assert not position(s).playing
    # The key folds where nothing is replayed.
    assert s.tree.row_count == len(s.app.monitor.tree.tasks)


@case("replay.step")
async def _(s: Stage, key: str) -> None:
    await s.press("[")
    await s.until(lambda: s.tree.row_ids() == ["checkout"])
    await s.press(key)
    await s.until(lambda: s.tree.row_ids() == ["checkout", "checkout.plan"])
    await at(s, 2)


@case("replay.step.back")
async def _(s: Stage, key: str) -> None:
    def has_returned() -> bool:
        latest = s.app.monitor.tree.tasks["checkout.release"].latest
        return latest is not None and latest.returned is not None

    assert has_returned()
    await s.press(key)
    await s.until(lambda: not has_returned())
    await at(s, position(s).count - 1)


@case("replay.slower")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    await s.until(lambda: "0.5×" in s.text())


@case("replay.faster")
async def _(s: Stage, key: str) -> None:
    await s.press(key, key)
    await s.until(lambda: "4×" in s.text())


@case("replay.start")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    await s.until(lambda: s.tree.row_ids() == ["checkout"])
    await at(s, 1)


@case("replay.end")
async def _(s: Stage, key: str) -> None:
    await s.press("[")
    await at(s, 1)
    await s.press(key)
    await s.until(lambda: len(s.app.monitor.tree.tasks) == 13)
    await s.until(lambda: "■ at the end" in s.text())


def test_every_command_of_the_replay_has_a_case() -> None:
    assert set(CASES) == {command.id for command in REPLAY}


@pytest.mark.parametrize(("command_id", "key"), [(one.id, key) for one in REPLAY for key in one.keys.split(" ")])
async def test_the_key_does_what_the_command_says(command_id: str, key: str) -> None:
    async with replay() as s:
        await CASES[command_id](s, key)


def test_only_folding_gives_up_its_key() -> None:
    keys = {key for command in REPLAY for key in command.keys.split(" ")}
    others = [one for one in COMMANDS if one not in REPLAY and keys & set(one.keys.split(" "))]
    assert {command.id for command in others} == {"fold", "page.on"}


@pytest.mark.parametrize("size", [(140, 40), (80, 24), (40, 12)])
async def test_nobody_takes_it_for_live(size: tuple[int, int]) -> None:
    async with replay(size=size) as s:
        for key in ("comma", "space", "enter", "t"):
            await s.press(key)
            assert s.text().splitlines()[0].startswith(" REPLAY "), key
            assert "live" not in "\n".join(s.text().splitlines()[:2]), key


async def test_the_line_says_where_it_is() -> None:
    async with replay() as s:
        bar = s.text().splitlines()[0]
        assert "■ at the end" in bar
        assert "2027-01-15 07:59:50Z" in bar
        assert "23 of 23" in bar
        assert "━" * 5 in bar
        assert "▷ replay" in s.text().splitlines()[1]


async def test_elapsed_times_are_those_of_then() -> None:
    async with replay() as s:
        await s.until(lambda: s.line("○ docs")[:BORDER].split()[-1] == "5s")
        await s.press("[")
        await s.until(lambda: s.tree.row_ids() == ["checkout"])
        await s.until(lambda: s.line("○ checkout")[:BORDER].split()[-1] == "0s")


async def test_the_keys_are_characters_in_the_filter() -> None:
    async with replay() as s:
        await s.press("/")
        assert isinstance(s.app.focused, FilterInput)
        await s.press("a", ".", "space", "<", "]")
        assert s.main.filter_bar.sought.text == "a. <]"
        assert position(s).speed == 1


async def test_nothing_can_be_done_to_the_workspace() -> None:
    async with replay() as s:
        footer = s.text().splitlines()[-1]
        assert "edit" not in footer
        assert "copy path" not in footer
        assert "fold" not in footer
        await s.press("o")
        await s.until(lambda: "This is a recording" in s.text())


async def test_what_acts_is_refused_whosever_action_it_is() -> None:
    async with replay() as s:
        for command in COMMANDS:
            if command.acts:
                assert await s.app.run_action(f"screen.{command.action}")
        await s.until(lambda: "This is a recording" in s.text())


async def test_the_palette_names_the_keys_of_the_replay() -> None:
    async with replay() as s:
        titles = {command.title for command in s.app.get_system_commands(s.app.screen)}
        assert "Play or pause" in titles
        assert "Open the file in the editor" not in titles
        await s.press("ctrl+p", *"start of the")
        await s.until(lambda: "Go to the start of the recording" in s.text())
        await s.press("down", "enter")
        await at(s, 1)


async def test_a_live_session_has_no_such_commands() -> None:
    async with stage() as s:
        assert type(s.app) is AgentwatchApp
        titles = {command.title for command in s.app.get_system_commands(s.app.screen)}
        assert not titles & {command.title for command in REPLAY if command.title}
        await s.press(".", "comma", "[", "]", "<", ">")
        assert "REPLAY" not in s.text()


async def test_a_click_on_a_key_steers_it() -> None:
    async with replay() as s:
        await s.pilot.click(offset=(s.text().splitlines()[0].index("start"), 0))
        await at(s, 1)


async def test_the_page_of_a_task_goes_with_the_recording() -> None:
    async with replay(size=(80, 24)) as s:
        s.tree.select("checkout.metrics")
        await s.press("enter")
        assert isinstance(s.app.screen, TaskScreen)
        await s.until(lambda: "invalid" in s.text())
        await s.press(*["comma"] * 5)
        await s.until(lambda: "submitted" in s.text())


async def test_a_moment_without_a_task_is_no_empty_workspace() -> None:
    scene = shop()
    paths = dict.fromkeys(one.path for one in scene.observations if isinstance(one, Seen))
    for path in paths:
        scene.gone(path)
    playback = Playback(scene.take(), lambda _: None)
    playback.play()
    playback.wind()
    app = ReplayApp(Monitor(Path("/home/kim/shop"), Settings(), playback, playback.clock), playback)
    async with app.run_test(size=(140, 40)) as pilot:
        s = Stage(app, pilot, ToldSource(), Scene())
        await s.until(lambda: "There was no delegation at this moment" in s.text())
        await s.press("[")
        await s.until(lambda: s.tree.row_ids() == ["checkout"])


@pytest.mark.parametrize(("key", "number"), [("right_square_bracket", 12), ("full_stop", 1)])
async def test_keys_behind_one_that_goes_elsewhere_are_for_the_rows_there(
    key: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with replay() as s:
        every = s.tree.row_ids()
        await s.press("[")
        await s.until(lambda: s.tree.row_ids() == ["checkout"])
        way = Playback._way

        def slow_way(playback: Playback, shown: int, number: int) -> Iterator[Observation]:
            time.sleep(0.2)
            return way(playback, shown, number)

        monkeypatch.setattr(Playback, "_way", slow_way)
        # In one read of the terminal.
        for one in (key, "G"):
            s.app.post_message(events.Key(one, key_to_character(one)))
        await s.until(lambda: s.cursor == every[number])
