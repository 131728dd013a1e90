"""What is to happen once, a while later."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest
from textual import timer
from textual.app import App

from agentwatch.app.once import once


async def test_it_happens_though_the_processor_is_taken_away_while_its_timer_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app, called = App[None](), list[int]()
    async with app.run_test() as pilot:
        # From each look at the clock to the next, ten seconds pass, for a while.
        gone = itertools.chain((10.0 * look for look in range(50)), itertools.repeat(500.0))
        monkeypatch.setattr(timer._time, "get_time", lambda: time.monotonic() + next(gone))
        once(app, 0.01, lambda: called.append(1))
        await pilot.pause(0.2)
        assert called == [1]


def test_nothing_of_the_screen_waits_for_a_timer_that_may_never_go_off() -> None:
    app = Path(__file__).parents[2] / "tui" / "agentwatch" / "app"
    users = {path.name for path in app.rglob("*.py") if ".set_timer(" in path.read_text("utf-8")}
    assert users == {"once.py"}
