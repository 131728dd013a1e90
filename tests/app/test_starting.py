"""The order in which things happen while the app starts."""

import threading
from pathlib import Path

from agentwatch.app.app import AgentwatchApp, Opening
from agentwatch.app.messages import STILL_READING
from agentwatch.delegation.events import Gone
from agentwatch.monitor import Monitor
from agentwatch.sources import Health
from tests.app.scenes import monitor_of, shop
from tests.app.stage import Stage
from tests.journeys.driver import running


async def test_a_monitor_is_opened_in_a_thread_behind_the_first_frame():
    monitor, source = monitor_of(shop().take())
    may_open, told = threading.Event(), list[object]()

    def opened() -> Monitor:
        told.append(threading.current_thread() is threading.main_thread())
        assert may_open.wait(30)
        return monitor

    app = AgentwatchApp(Opening(monitor.settings, "shop/", opened))
    app.when_shown = lambda: told.append(type(app.screen).__name__)
    async with running(app, (80, 24)) as (pilot, notes):
        s = Stage(pilot, Path(), Path(), notes)
        await s.until(lambda: len(told) == 2)
        # Keys that are typed meanwhile are handled.
        s.press_ahead("slash", *"api")
        await pilot.click("Footer", offset=(2, 0))
        await pilot.pause(0.05)
        assert told == ["OpeningScreen", False]
        assert s.words().split() == ["agentwatch", "shop/", "○", "starting", "q", "quit", "^z", "shell", "?", "keys"]
        may_open.set()
        await s.shows("/ api", "1 found")
        assert source.health is monitor.health


async def test_before_the_first_look_no_key_says_that_there_is_nothing():
    monitor, source = monitor_of(health=Health("starting", "reading the workspace"))
    async with running(AgentwatchApp(monitor)) as (pilot, told):
        s = Stage(pilot, Path(), Path(), told)

        async def says(key: str, sentence: str):
            told.clear()
            # Keys behind a key that opens nothing count again after escape.
            await s.press("escape", key)
            await s.until(lambda: told)
            assert (key, told) == (key, [sentence])

        for key in "nuRaxAwZHsoc":
            await says(key, STILL_READING)
        await s.press("escape", "exclamation_mark")
        await s.shows(STILL_READING)
        await s.press("escape")

        source.push(health=Health("live", ""))
        await s.until(lambda: s.app.is_settled)
        await says("n", "Nobody needs you now.")
        await says("R", "Nobody needs you now, and no task is marked.")
        await says("H", "There is no history: nothing here is that old.")
        # After watching has ended, the tasks stay on the screen, and the header says so.
        source.push([Gone(1, 1.0, [])])
        await s.shows("▲ degraded: watching has ended, start agentwatch again (")
