"""Timeline, help, palette, themes, problems, footer, keys of one's own, the editor, and leaving."""

import re

import pytest

from tests.journeys.driver import journey
from tests.journeys.made import FAILED, SHOP, returned

ZOOMS = ("plus", "minus", "z", "i", "0", "n", "left", "right", "h", "l", "=", "_")


@journey(SHOP, size=(60, 20))
async def test_the_header_drops_whole_counts_where_it_is_narrow(screen):
    await screen.shows("3 need you")
    screen.write("ui.return.md", returned("PARTIAL", "shop.ui", "Half of it.", ""))
    await screen.shows("1 new")
    for width, counts in ((60, 6), (50, 5), (40, 2), (30, 0)):
        await screen.resize(width, 20)
        await screen.until(lambda: screen.text().splitlines()[0].rstrip().endswith(" 1 new   3 need you"))
        assert len(re.findall(r" \S [1-9](?= )", screen.text().splitlines()[0])) == counts, screen.text()


@journey(SHOP)
async def test_t_shows_who_worked_and_waited_when(screen):
    await screen.shows("3 need you")
    await screen.press("t")
    await screen.shows("Timeline", "█ work ▓ failed ┄ waits", "now")
    await screen.until(lambda: "NEEDS YOU" in screen.row("api") and "✗" in screen.row("api"))
    for key in ZOOMS:
        await screen.press(key)
        await screen.shows("Timeline", "█ work")
    await screen.press("t")
    await screen.hides("Timeline")


@journey(SHOP)
async def test_enter_in_the_timeline_goes_to_the_task(screen):
    await screen.shows("3 need you")
    await screen.press("t")
    await screen.shows("Timeline")
    await screen.press("G", "enter")
    await screen.hides("Timeline")
    await screen.at("ui")


@journey(SHOP)
async def test_what_the_timeline_selects_can_be_decided(screen):
    await screen.shows("3 need you")
    await screen.find("shop.api", "api")
    await screen.press("t")
    await screen.shows("Timeline")
    await screen.at("api")
    await screen.press("r")
    await screen.shows("◆ ↻ Retry", "“shop.api”")
    await screen.press("escape")
    await screen.shows("Timeline")


@journey(FAILED)
async def test_help_lists_the_keys_and_leads_through_the_manual(screen):
    await screen.shows("NEEDS YOU")
    await screen.press("?")
    await screen.shows("Keys", "Go to the next task that needs you.")
    await screen.press("right")
    await screen.hides("Go to the next task that needs you.")
    await screen.press("left")
    await screen.shows("Go to the next task that needs you.")
    await screen.press("?")
    await screen.hides("Go to the next task that needs you.")


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


@journey(FAILED)
async def test_the_palette_has_the_themes(screen):
    await screen.shows("NEEDS YOU")
    await screen.press("ctrl+p")
    await screen.type("light")
    await screen.shows("Theme: agentwatch-light")
    await screen.press("enter")
    await screen.hides("Search for commands")
    await screen.until(lambda: screen.pilot.app.theme == "agentwatch-light")


@journey(FAILED, "{shop}", "--theme", "unheard")
async def test_an_unknown_theme_is_named(screen):
    await screen.shows("There is no theme unheard", "agentwatch-light")


@journey(FAILED)
async def test_the_palette_lives_in_any_window(screen):
    await screen.shows("NEEDS YOU")
    await screen.press("ctrl+p")
    await screen.shows("Search for commands")
    await screen.resize(20, 3)
    await screen.press("pageup", "pagedown", "down", "up")
    await screen.pilot.click(offset=(1, 1), times=2)
    await screen.press("escape")
    await screen.resize(140, 40)
    await screen.shows("NEEDS YOU")
    await screen.press("escape", "escape")
    await screen.hides("Search for commands")


@journey({**FAILED, "broken.handoff.json": "{", "stray.return.md": "## Status\nstate: ERROR\n"})
async def test_a_file_that_cannot_be_read_is_a_problem(screen):
    await screen.shows("NEEDS YOU", "⚠ ")
    await screen.press("!")
    await screen.shows("Problems", "broken.handoff.json")
    await screen.press("escape")
    await screen.hides("Problems")


@journey({**FAILED, "~/.config/agentwatch/config.toml": '[keys]\ntimeline = ["f9"]\n"decide.retry" = "ctrl+r"\n'})
async def test_keys_of_ones_own_replace_ours(screen):
    await screen.shows("NEEDS YOU", "^r retry")
    await screen.press("f9")
    await screen.shows("Timeline")
    await screen.press("f9")
    await screen.hides("Timeline")
    await screen.press("n", "ctrl+r")
    await screen.shows("◆ ↻ Retry")


@journey(FAILED)
async def test_a_key_of_the_footer_is_clicked(screen):
    await screen.shows("NEEDS YOU", "t timeline" if "t timeline" in screen.text() else "/ filter")
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
