"""Which tasks are on the screen, in which window: several workspaces, machines' sizes, recordings, the demo."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.journeys.driver import Screen, journey
from tests.journeys.made import FAILED, SHOP, decisions, handoff, returned

TWO = {**FAILED, "../cart/pay.handoff.json": handoff("shop.api", "Pay."), "../cart/docs/api.md": "# API\n"}


@journey(TWO, "{shop}", "{shop}/../cart")
async def test_two_workspaces_are_one_tree(screen: Screen) -> None:
    await screen.shows("▾", "shop", "cart", "2 tasks")
    await screen.until(lambda: screen.text().count("shop.api") >= 2)
    await screen.press("n", "r")
    await screen.shows("◆ ctrl+s", "shop")
    await screen.press("ctrl+s")
    await screen.shows("recorded, delivered.")
    assert len(decisions(screen.workspace)) == 1
    assert not (screen.workspace.parent / "cart" / ".agentwatch" / "decisions").exists()


@journey(SHOP)
async def test_a_window_that_shrinks_and_grows(screen: Screen) -> None:
    await screen.shows("Overview")
    await screen.resize(80, 24)
    await screen.hides("Overview")
    await screen.resize(20, 4)
    await screen.resize(1, 1)
    await screen.resize(140, 40)
    await screen.shows("Overview", "3 need you")


@journey({}, "demo", "--speed", "40", size=(80, 24))
async def test_the_demo_says_what_to_try(screen: Screen) -> None:
    await screen.shows("DEMO", "Try it")
    await screen.shows("NEEDS YOU")
    await screen.press("n", "r")
    await screen.shows("◆ ctrl+s")
    await screen.press("ctrl+s")
    await screen.shows("recorded, delivered.")
    await screen.shows("↻2/2")


@journey({"api.handoff.json": handoff()})
async def test_what_was_watched_can_be_exported(screen: Screen) -> None:
    await screen.shows("submitted")
    screen.write("api.return.md", returned())
    await screen.shows("failed")
    # The history is written a moment after the screen.
    for number in range(20):
        exported = screen.home / f"shop{number}.jsonl"
        words = ["-m", "agentwatch", "log", str(screen.workspace), "--export", str(exported)]
        assert await (await asyncio.create_subprocess_exec(sys.executable, *words)).wait() == 0
        if "The migration timed out." in exported.read_text("utf-8"):
            break
    else:
        raise AssertionError("it was never exported")


@journey({}, "replay", str(Path(__file__).with_name("shop.jsonl")), "--speed", "1000")
async def test_a_recording_plays_steps_and_goes_back(screen: Screen) -> None:
    await screen.press("]")
    await screen.shows("10 of 10", "2 need you")
    for key, shown in (
        (",", "9 of 10"),
        (",", "8 of 10"),
        (".", "9 of 10"),
        ("[", "1 of 10"),
        ("<", "500×"),
        (">", "1000×"),
    ):
        await screen.press(key)
        await screen.shows(shown)
    await screen.press("space")
    await screen.shows("10 of 10")
    await screen.press("n", "r")
    await screen.shows("2 need you")
    assert "ctrl+s" not in screen.text()
