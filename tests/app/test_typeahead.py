"""Several keys in one read of the terminal: each goes to what the key before it has opened."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from tests.app.deciding import FAILED, handoff, office
from tests.app.scenes import monitor_of
from tests.app.stage import Stage, stage
from textual import events
from textual.keys import key_to_character
from textual.widgets import Input

from agentwatch import background
from agentwatch.app import task_commands
from agentwatch.app.app import AgentwatchApp
from agentwatch.app.dialogs.decision import DecisionScreen
from agentwatch.app.screens.main import MainScreen
from agentwatch.app.screens.pages import HelpScreen
from agentwatch.app.screens.task import TaskScreen
from agentwatch.app.screens.timeline import TimelineScreen
from agentwatch.app.widgets.filter_bar import FilterInput
from agentwatch.config import Settings
from agentwatch.sources.health import Health, Mode

SLASH = "slash"


def type_at_once(s: Stage, *keys: str) -> None:
    """What the terminal's reader does with the keys of one read."""
    type_into(s.app, *keys)


def type_into(app: AgentwatchApp, *keys: str) -> None:
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else key_to_character(key)))


def row(s: Stage, number: int) -> str:
    return s.tree.row_ids()[number]


@pytest.mark.parametrize("size", [(140, 40), (80, 24)])
async def test_a_filter_gets_the_letters_behind_its_slash(size: tuple[int, int]) -> None:
    async with stage(size=size) as s:
        type_at_once(s, SLASH, *"api")
        await s.until(lambda: s.main.filter_bar.sought.text == "api")
        assert isinstance(s.app.focused, FilterInput)
        assert isinstance(s.app.screen, MainScreen)


async def test_what_is_typed_before_the_first_frame_is_heard_behind_it() -> None:
    class Hurried(AgentwatchApp):
        def on_mount(self) -> None:
            for key in (SLASH, *"api"):
                self.post_message(events.Key(key, key_to_character(key)))

    monitor, _ = monitor_of(health=Health("starting", "reading the workspace"))
    app = Hurried(monitor)
    async with app.run_test() as pilot:
        main = app.screen
        assert isinstance(main, MainScreen)
        async with asyncio.timeout(20):
            while main.sought.text != "api":
                await pilot.pause(0.01)
        assert isinstance(app.focused, FilterInput)


async def test_what_comes_behind_a_kept_filter_is_for_the_tree() -> None:
    async with stage() as s:
        type_at_once(s, SLASH, *"checkout", "enter", "G", "f")
        await s.until(lambda: s.tree.follows)
        assert s.main.filter_bar.sought.text == "checkout"
        assert s.app.focused is s.tree
        assert s.cursor == s.tree.row_ids()[-1]


@pytest.mark.parametrize(("keys", "text"), [((), "checkout"), ((("last", ("ctrl+j",)),), "checkoutG")])
async def test_a_line_feed_is_an_enter_unless_the_operator_has_given_it_to_a_command(
    keys: tuple[tuple[str, tuple[str, ...]], ...], text: str
) -> None:
    async with stage(settings=Settings(keys=keys)) as s:
        type_at_once(s, SLASH, *"checkout", "ctrl+j", "G")
        await s.until(lambda: s.main.filter_bar.sought.text == text)
        await s.until(lambda: (s.app.focused is s.tree) != bool(keys))


async def test_a_pasted_filter_is_a_filter() -> None:
    async with stage() as s:
        s.app.post_message(events.Paste("/api\nand more"))
        await s.until(lambda: s.main.filter_bar.sought.text == "api")
        s.app.post_message(events.Paste(".docs"))
        await s.until(lambda: s.main.filter_bar.sought.text == "api.docs")


async def test_a_paste_behind_a_slash_is_the_filter() -> None:
    async with stage() as s:
        type_at_once(s, SLASH)
        s.app.post_message(events.Paste("api"))
        await s.until(lambda: s.main.filter_bar.sought.text == "api")


async def test_a_paste_without_a_slash_does_nothing() -> None:
    async with stage() as s:
        s.app.post_message(events.Paste("qrx"))
        await s.pilot.pause()
        assert s.app.focused is s.tree
        assert s.app.screen is s.main


async def test_keys_behind_one_that_opens_a_screen_are_for_that_screen() -> None:
    async with stage() as s:
        type_at_once(s, "t", "j")
        await s.until(lambda: isinstance(s.app.screen, TimelineScreen) and s.app.screen.chart.cursor_id == row(s, 1))
        type_at_once(s, "escape", "question_mark", "q", "j")
        await s.until(lambda: s.cursor == row(s, 1))
        assert s.app.is_running


async def test_keys_behind_enter_are_for_the_details() -> None:
    async with stage(size=(80, 24)) as s:
        type_at_once(s, "j", "enter", "8", "escape", "j")
        await s.until(lambda: s.cursor == row(s, 2))
        assert isinstance(s.app.screen, MainScreen)
        type_at_once(s, "enter", "8")
        await s.until(lambda: isinstance(s.app.screen, TaskScreen) and s.app.screen.details.active == "raw")


async def test_no_dialog_hears_what_was_typed_before_it_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = threading.Event()
    load = task_commands.import_module
    async with office(tmp_path, FAILED) as s:
        monkeypatch.setattr(task_commands, "import_module", lambda name: disk.wait(20) and load(name))
        type_at_once(s, "r", "q", *"xyz", "tab", "escape", "ctrl+s")
        await s.pilot.pause(0.05)
        assert s.app.screen is s.main
        disk.set()
        await s.until(lambda: s.in_dialog and s.dialog.seen_at is not None)
        await s.ready()
        assert s.dialog.query_one("#note", Input).value == ""
        assert s.entries() == ()
        said = [one.message for one in s.app._notifications]
        assert said.count("Keys typed before were not taken.") == 1
        type_at_once(s, *"why")
        await s.until(lambda: s.dialog.note == "why")


async def test_a_key_that_nobody_answers_keeps_the_others_waiting_for_a_moment_only() -> None:
    async with stage(size=(80, 24)) as s:
        # Its own screen goes with the key: what was to tell of it goes, too.
        type_at_once(s, "enter", "escape", "enter", "escape", "t", "enter", "j")
        await s.until(lambda: s.cursor == row(s, 1))
        assert not isinstance(s.app.screen, HelpScreen | DecisionScreen)


async def test_what_waits_for_a_key_goes_on_when_the_key_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_LONGEST", 60.0)
    monkeypatch.setattr(background, "_BETWEEN", 0.0)
    async with stage() as s:
        for key in (SLASH, "a", "escape", "j"):
            background.keys_first.begin()
            type_at_once(s, key)
            await s.until(lambda: not background.keys_first.is_on)


@pytest.mark.parametrize(("key", "mode"), [("a", "starting"), ("R", "starting"), ("f", "live")])
async def test_what_is_typed_behind_a_key_that_is_refused_is_no_command(key: str, mode: Mode) -> None:
    monitor, _ = monitor_of(health=Health(mode, "reading the workspace"))
    app = AgentwatchApp(monitor)
    async with app.run_test() as pilot:
        type_into(app, key, *"looks fine, quit", "enter", "question_mark", "q")
        async with asyncio.timeout(20):
            while "Keys typed before were not taken." not in [one.message for one in app._notifications]:
                await pilot.pause(0.01)
        await pilot.pause()
        assert (app.is_running, type(app.screen)) == (True, MainScreen)
        # Whoever leaves means what comes next.
        type_into(app, "escape", "question_mark")
        async with asyncio.timeout(20):
            while not isinstance(app.screen, HelpScreen):
                await pilot.pause(0.01)


async def test_what_is_typed_behind_a_decision_that_cannot_be_made_is_no_command(tmp_path: Path) -> None:
    async with office(tmp_path, {"api.handoff.json": handoff()}) as s:
        type_at_once(s, "r", *"tq", "question_mark")
        await s.until(lambda: "Keys typed before were not taken." in [one.message for one in s.app._notifications])
        await s.pilot.pause()
        assert s.app.screen is s.main
