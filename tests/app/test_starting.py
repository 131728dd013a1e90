"""What happens in which order while the app starts."""

import asyncio
import threading

import pytest
from textual import events
from textual.keys import key_to_character

from agentwatch.app.app import AgentwatchApp, Opening
from agentwatch.app.messages import STILL_READING
from agentwatch.app.screens import main
from agentwatch.config import Settings
from agentwatch.delegation.events import Gone
from agentwatch.errors import ConfigError
from agentwatch.monitor import Monitor
from agentwatch.sources import Health
from tests.app.scenes import monitor_of, shop


def words_of(app):
    return " ".join(strip.text for strip in app.screen._compositor.render_strips())


async def test_a_monitor_is_opened_in_a_thread_behind_the_first_frame_and_what_is_typed_meanwhile_is_heard():
    monitor, source = monitor_of(shop().take())
    may_open, told = threading.Event(), list[object]()

    def opened() -> Monitor:
        told.append(threading.current_thread() is threading.main_thread())
        assert may_open.wait(30)
        return monitor

    app = AgentwatchApp(Opening(monitor.settings, "shop/", opened))
    app.when_shown = lambda: told.append(type(app.screen).__name__)
    async with app.run_test() as pilot:
        while len(told) < 2:
            await pilot.pause(0.01)
        for key in ("slash", *"api"):
            app.post_message(events.Key(key, key_to_character(key)))
        await pilot.click("Footer", offset=(2, 0))
        await pilot.pause(0.05)
        assert (told, app.is_running) == (["OpeningScreen", False], True)
        assert type(app.screen).__name__ == "OpeningScreen"
        words = words_of(app).split()
        assert words == ["agentwatch", "shop/", "○", "starting", "q", "quit", "^z", "shell", "?", "keys"]
        may_open.set()
        while not isinstance(app.screen, main.MainScreen) or app.screen.sought.text != "api":
            await pilot.pause(0.01)
        while not monitor.tree.tasks:
            await pilot.pause(0.01)
        assert source.health is monitor.health


@pytest.mark.parametrize("keys", [["q"], ["ctrl+c"], ["slash", "q", "ctrl+c"]])
async def test_a_key_to_leave_with_does_not_wait_until_a_monitor_is_opened(keys):
    may_open = threading.Event()

    def opened() -> Monitor:
        assert may_open.wait(30)
        raise ConfigError("nobody wants it")

    app = AgentwatchApp(Opening(Settings(), "shop/", opened))
    try:
        async with app.run_test() as pilot:
            for key in keys:
                # Behind others, a letter may be meant for what they open.
                assert app.is_running
                app.post_message(events.Key(key, key_to_character(key)))
                await pilot.pause(0.05)
            async with asyncio.timeout(30):
                while app.is_running:
                    await pilot.pause(0.01)
        assert (app.return_code, app.failure) == (0, None)
    finally:
        may_open.set()


async def test_before_the_first_look_is_over_no_key_says_that_there_is_nothing():
    monitor, source = monitor_of(health=Health("starting", "reading the workspace"))
    app = AgentwatchApp(monitor)
    async with app.run_test(notifications=True) as pilot:

        async def said_of(key: str) -> list[str]:
            app.clear_notifications()
            # What is typed on, behind a key that opens nothing, is heard again after escape.
            await pilot.press("escape", key)
            async with asyncio.timeout(20):
                while not app._notifications:
                    await pilot.pause(0.01)
            return [one.message for one in app._notifications]

        for key in "nuRaxAwZHsoc":
            assert (key, await said_of(key)) == (key, [STILL_READING])
        await pilot.press("escape", "exclamation_mark")
        assert STILL_READING in words_of(app)
        await pilot.press("escape")

        source.push(health=Health("live", ""))
        while not app.is_settled:
            await pilot.pause(0.01)
        assert await said_of("n") == ["Nobody needs you now."]
        assert await said_of("R") == ["Nobody needs you now, and no task is marked."]
        assert await said_of("H") == ["There is no history: nothing here is that old."]
        # What was seen stays where watching ends, and the header says so.
        source.push([Gone(1, 1.0, [])])
        while "▲ degraded: watching has ended, start agentwatch again (" not in words_of(app):
            await pilot.pause(0.01)
