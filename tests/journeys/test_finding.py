"""The filter: words, terms, completion, states, saved views."""

import pytest

from tests.journeys.driver import Screen, journey
from tests.journeys.made import SHOP

VIEWS = {
    "~/.config/agentwatch/config.toml": '[views]\nmine = "is:needs-you"\nopen = "state:submitted"\nodd = "stat:x"\n'
}
QUERIES = {
    "payment": {"ui"},
    "is:needs-you -state:failed": {"docs", "auth"},
    '"Write the guide"': {"docs"},
    "is:needs-you since:1h": {"api", "docs", "auth"},
    "host:here is:open": {"ui", "auth"},
    "state:completed": {"plan"},
    "state:false": {"docs"},
}


def children(screen: Screen) -> set[str]:
    return {name for name in ("plan", "api", "docs", "auth", "ui") if screen.row(name)}


@journey(SHOP)
async def test_the_tree_shows_what_matches(screen):
    await screen.shows("3 need you")
    for query, names in QUERIES.items():
        await screen.type(f"/{query}")
        await screen.until(lambda names=names: children(screen) == names)
        await screen.press("escape")
        await screen.hides("words, or state:")
        await screen.until(lambda: len(children(screen)) == 5)


@journey(SHOP)
async def test_a_kept_filter_holds_for_what_comes(screen):
    await screen.shows("3 need you")
    await screen.type("/api", "enter")
    await screen.shows("1 found", "2 outside the filter")
    await screen.press("slash", *["backspace"] * 3, *"ui", "enter")
    await screen.shows("/ ui", "3 found")
    await screen.press("slash", *["backspace"] * 2, "up")
    await screen.shows("/ ui")
    await screen.press("up")
    await screen.shows("/ api")
    await screen.press("down", "escape", "slash", "up", "up")
    await screen.shows("/ ui")


@journey(SHOP)
async def test_a_wrong_key_is_named_and_the_rest_holds(screen):
    await screen.shows("3 need you")
    await screen.type("/state:unheard api")
    await screen.shows("no “state:unheard”: try invalid, failed, blocked")
    await screen.until(lambda: children(screen) == {"api"})
    await screen.press("enter", "x")
    await screen.shows("/ state:unheard apix", "no “state:unheard”")
    await screen.press("tab")
    await screen.shows("/ apix")
    await screen.press("escape")
    # The same key completes a key and a value.
    await screen.type("/sta", "tab")
    await screen.shows("/ state:")
    await screen.type("fail", "tab")
    await screen.shows("/ state:failed", "1 found")


@journey(SHOP)
async def test_s_goes_on_and_back_through_the_states(screen):
    await screen.shows("3 need you")
    await screen.press("s")
    await screen.shows("/ is:needs-you", "3 found")
    for state in ("failed", "blocked"):
        await screen.press("s")
        await screen.shows(f"/ state:{state}", "1 found")
    await screen.press("S")
    await screen.shows("/ state:failed")
    await screen.press("S")
    await screen.shows("/ is:needs-you")
    await screen.press("S")
    await screen.until(lambda: len(children(screen)) == 5)
    for state in ("completed", "false"):
        await screen.press("S")
        await screen.shows(f"/ state:{state}", "1 found", "⚑ 1 false", "✓ 1")


@journey({**SHOP, **VIEWS})
async def test_a_number_shows_a_saved_view(screen):
    await screen.shows("3 need you", "the view “odd” is wrong: no key “stat”: did you mean state?")
    await screen.press("1")
    await screen.until(lambda: children(screen) == {"api", "docs", "auth"})
    await screen.press("2")
    await screen.until(lambda: children(screen) == {"ui"})
    await screen.press("2")
    await screen.until(lambda: len(children(screen)) == 5)
    await screen.press("?", "end")
    await screen.shows("Your views", "1 mine: is:needs-you")


@pytest.mark.parametrize("keys", [(*"failed", "enter"), (*"sta", "left", "tab")])
@journey(SHOP)
async def test_keys_typed_behind_a_filter_are_for_the_tree(screen, keys):
    await screen.shows("3 need you")
    screen.press_ahead("slash", *keys, "q")
    await screen.ends()
