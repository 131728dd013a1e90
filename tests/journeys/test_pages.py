"""Timeline, help, palette, themes, problems, footer, the user's own keys, the editor, and leaving."""

import asyncio
import re

import pytest

from tests.journeys.driver import journey
from tests.journeys.made import FAILED, SHOP, handoff, returned

LONG_AGO = {"a.handoff.json@0.03": handoff("a"), "a.return.md@0.02": returned("SUCCESS", "a", "Done.", "")}
LONG_AGO |= {"docs/api.md@9": "# API\n"}


@journey(LONG_AGO)
async def test_keys_zoom_the_timeline_and_unfold_idle_time(screen):
    await screen.shows("now 0", "completed")
    await screen.press("t")
    await screen.shows("Timeline", "╱╱")
    seen = [screen.row("a").count("█")]
    for key, grows in (("plus", True), ("minus", False), ("z", True), ("0", False)):
        await screen.press(key)
        await screen.until(lambda grows=grows: (screen.row("a").count("█") > seen[-1]) is grows)
        seen.append(screen.row("a").count("█"))
    assert seen[0] == seen[2] == seen[4] < seen[1] < seen[3]
    await screen.press("i")
    await screen.hides("╱")
    await screen.press("n", "left", "right", "h", "l", "=", "_")
    await screen.shows("Timeline", "█ work")


@journey(SHOP, size=(60, 20))
async def test_a_narrow_header_drops_whole_counts(screen):
    await screen.shows("3 need you")
    screen.write("ui.return.md", returned("PARTIAL", "shop.ui", "Half of it.", ""))
    await screen.shows("1 new")
    for width, counts in ((60, 6), (50, 5), (40, 2), (30, 0)):
        await screen.resize(width, 20)
        await screen.until(lambda counts=counts: len(re.findall(r" \S [1-9](?= )", screen.line("need you"))) == counts)
        await screen.until(lambda: screen.line("need you").rstrip().endswith(" 1 new   3 need you"))


@journey(SHOP)
async def test_the_timeline_leads_to_decisions_and_tasks(screen):
    await screen.shows("3 need you")
    await screen.find("shop.api", "api")
    await screen.press("t")
    await screen.shows("Timeline", "█ work ▓ failed ┄ waits", "now")
    await screen.until(lambda: "NEEDS YOU" in screen.row("api") and "✗" in screen.row("api"))
    await screen.at("api")
    await screen.press("r")
    await screen.shows("◆ ↻ Retry", "“shop.api”")
    await screen.press("escape")
    await screen.shows("Timeline")
    await screen.press("t")
    await screen.hides("Timeline")
    # No filter applies in the timeline; opening a task clears a filter that would hide the task.
    await screen.type("/api", "enter", "t", "A")
    await screen.shows("esc leave", "“api”: 1 task")
    assert "finds" not in screen.text()
    await screen.press("escape", "G", "enter")
    await screen.hides("Timeline", "/ api")
    await screen.at("ui")


@journey(FAILED)
async def test_help_lists_the_keys_and_leads_through_the_manual(screen):
    await screen.shows("NEEDS YOU")
    await screen.press("?")
    await screen.shows("Keys", "Go to the next task that needs you, first to a request")
    await screen.press("right")
    await screen.hides("Go to the next task that needs you, first to a request")
    await screen.press("left")
    await screen.shows("Go to the next task that needs you, first to a request")
    await screen.press("?")
    await screen.hides("Go to the next task that needs you, first to a request")


@pytest.mark.parametrize("size", [(140, 40), (40, 12)])
@journey(FAILED)
async def test_the_footer_says_first_which_decisions_can_be_made(screen, size):
    await screen.shows("NEEDS YOU")
    await screen.resize(*size)
    await screen.press("n", "enter", "5")
    await screen.shows("code ✓ confirmed")
    for keys, place in {"j j enter": "Difference", "escape": "✓ confirmed", "escape escape t": "Timeline"}.items():
        await screen.press(*keys.split())
        await screen.shows(place)
        await screen.until(lambda: set("rexa?") <= set(screen.text().splitlines()[-1].split()))
        footer = screen.text().splitlines()[-1].split()
        assert all(footer.index("a") < footer.index(later) for later in ("/", "space", "o", "+") if later in footer)


@journey(SHOP)
async def test_the_palette_runs_a_command_by_its_name(screen):
    await screen.shows("3 need you")
    await screen.press("ctrl+p")
    await screen.shows("Search for commands")
    await screen.type("collapse")
    await screen.shows("Collapse everything")
    await screen.press("enter")
    await screen.shows("▸ ◇ shop")
    await screen.press("ctrl+p")
    await screen.shows("Search for commands")
    await screen.press("ctrl+c")
    await screen.hides("Search for commands")
    await screen.press("ctrl+p")
    await screen.type("light")
    await screen.shows("Theme: agentwatch-light")
    await screen.press("enter")
    await screen.until(lambda: screen.pilot.app.theme == "agentwatch-light")


@journey(FAILED, "{shop}", "--theme", "unheard")
async def test_an_unknown_theme_is_named(screen):
    await screen.shows("There is no theme unheard", "agentwatch-light")
    await asyncio.sleep(2.2)
    assert len(screen.told) == 1


@journey({**FAILED, "broken.handoff.json": "{", "stray.return.md": "## Status\nstate: ERROR\n"})
async def test_a_file_that_cannot_be_read_is_a_problem(screen):
    await screen.shows("NEEDS YOU", "⚠ ")
    await screen.press("!")
    await screen.shows("Problems", "broken.handoff.json")
    await screen.press("escape")
    await screen.hides("Problems")


KEYS = '[keys]\ntimeline = "f9"\n"decide.retry" = "ctrl+r"\n"dialog.record" = "f8"\n'


@journey({**FAILED, "~/.config/agentwatch/config.toml": KEYS})
async def test_the_users_own_keys_replace_ours(screen):
    await screen.shows("NEEDS YOU", "^r retry")
    await screen.press("f9")
    await screen.shows("Timeline")
    await screen.press("f9")
    await screen.hides("Timeline")
    await screen.press("n", "ctrl+r")
    await screen.shows("◆ ctrl+s records this decision", "f8 record")
    await screen.press("f8")
    await screen.shows("recorded, delivered.")


@journey(FAILED)
async def test_a_key_of_the_footer_is_clicked(screen):
    await screen.shows("NEEDS YOU")
    await screen.click("/ filter")
    await screen.type("api")
    await screen.shows("/ api")


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
@journey(SHOP)
async def test_a_key_leaves_and_touches_nothing(screen, key):
    await screen.shows("3 need you")
    before = sorted(path.name for path in screen.workspace.iterdir())
    await screen.press(key)
    await screen.ends()
    assert sorted(path.name for path in screen.workspace.iterdir()) == before


@journey({**FAILED, "~/.config/agentwatch/config.toml": "poll = true\n"})
async def test_the_header_says_why_it_polls(screen):
    await screen.shows("polling: Polling, as configured", "1 needs you")
    screen.write("api.return.md", returned("SUCCESS", more=""))
    await screen.hides("1 needs you")
