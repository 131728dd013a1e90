"""Pictures of the whole screen, the clock standing still. `pytest tests/snapshots --snapshot-update` renews them."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import pytest
from tests.app.scenes import LIVE, NOW, monitor_of, shop
from textual.pilot import Pilot

from agentwatch.app.app import AgentwatchApp
from agentwatch.app.screens.main import MainScreen
from agentwatch.config import Settings
from agentwatch.delegation.observation import Observation
from agentwatch.sources.health import Health

Compare = Callable[..., bool]


def app_on(observations: tuple[Observation, ...], theme: str | None = None, health: Health = LIVE) -> AgentwatchApp:
    monitor, _source = monitor_of(observations, settings=Settings(theme=theme), health=health)
    return AgentwatchApp(monitor, clock=lambda: NOW)


def pressing(*keys: str) -> Callable[[Pilot[None]], object]:
    """Wait until everything stands, then press the keys."""

    async def press(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, AgentwatchApp)
        end = monotonic() + 10
        main = app.screen
        assert isinstance(main, MainScreen)
        while main.details is None or not app.is_settled:
            assert monotonic() < end
            await pilot.pause(0.01)
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        await pilot.pause(0.05)

    return press


@pytest.mark.parametrize("theme", ["agentwatch-dark", "agentwatch-light", "agentwatch-contrast", "agentwatch-ansi"])
def test_wide(snap_compare: Compare, theme: str) -> None:
    assert snap_compare(app_on(shop().take(), theme), terminal_size=(140, 40), run_before=pressing("n"))


@pytest.mark.parametrize("size", [(80, 24), (40, 12)], ids=["80x24", "40x12"])
def test_narrow(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert snap_compare(app_on(shop().take()), terminal_size=size, run_before=pressing("n"))


def test_a_page_of_details(snap_compare: Compare) -> None:
    assert snap_compare(app_on(shop().take()), terminal_size=(80, 24), run_before=pressing("n", "enter"))


def test_a_filter(snap_compare: Compare) -> None:
    assert snap_compare(app_on(shop().take()), terminal_size=(80, 24), run_before=pressing("/", *"code", "enter"))


def test_collapsed(snap_compare: Compare) -> None:
    assert snap_compare(app_on(shop().take()), terminal_size=(80, 24), run_before=pressing("C", "l", "C"))


def test_help(snap_compare: Compare) -> None:
    assert snap_compare(app_on(shop().take()), terminal_size=(100, 60), run_before=pressing("?"))


def test_an_empty_workspace(snap_compare: Compare) -> None:
    health = Health("polling", "the kernel's watch limit is reached: raise fs.inotify.max_user_watches")
    assert snap_compare(app_on((), health=health), terminal_size=(120, 24), run_before=pressing())
