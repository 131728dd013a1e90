"""What happens in which order while the app starts."""

from __future__ import annotations

import asyncio
from importlib import import_module

import pytest
from tests.app.scenes import monitor_of, shop

from agentwatch.app.app import AgentwatchApp
from agentwatch.app.screens import main
from agentwatch.sources.health import Health


async def test_the_first_frame_is_told_before_the_first_scan_begins_and_its_end_is_told() -> None:
    monitor, _ = monitor_of(shop().take())
    app = AgentwatchApp(monitor)
    told: list[tuple[str, bool]] = []
    settled = asyncio.Event()
    app.when_shown = lambda: told.append(("shown", bool(monitor.tree.tasks)))

    def settle() -> None:
        told.append(("settled", bool(monitor.tree.tasks)))
        settled.set()

    app.when_settled = settle
    async with app.run_test():
        await asyncio.wait_for(settled.wait(), 30)
    assert told == [("shown", False), ("settled", True)]


async def test_the_details_are_loaded_behind_the_first_task(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[tuple[str, bool]] = []
    monkeypatch.setattr(main, "_WITHOUT_TASKS", 3600.0)
    monitor, source = monitor_of(health=Health("starting", "reading the workspace"))

    def load(name: str) -> object:
        loaded.append((name, bool(monitor.tree.tasks)))
        return import_module(name)

    monkeypatch.setattr(main, "import_module", load)
    app = AgentwatchApp(monitor)
    async with app.run_test(size=(140, 40)) as pilot:
        screen = app.screen
        assert isinstance(screen, main.MainScreen)
        while monitor.health is not source.health:
            await pilot.pause(0.01)
        assert loaded == []
        source.push(shop().take())
        while screen.details is None:
            await pilot.pause(0.01)
    assert loaded == [("agentwatch.app.widgets.details", True)]
