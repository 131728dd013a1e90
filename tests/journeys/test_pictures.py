"""Pictures of the main pages, at one version of Textual; `pytest tests/journeys --snapshot-update` renews them."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from pytest_textual_snapshot import SVGImageExtension
from syrupy import SnapshotAssertion

from tests.journeys.driver import Screen, journey
from tests.journeys.made import FAILED

TEXTUAL = "8.2.8"
pytestmark = pytest.mark.skipif(
    version("textual") != TEXTUAL, reason=f"another version of Textual than {TEXTUAL} draws in another way"
)
RECORDING = str(Path(__file__).with_name("shop.jsonl"))
MASKS = (
    (r"terminal-\d+", "terminal"),
    (r"shop-[0-9a-f]{16}", "shop-" + "0" * 16),
    (r"\b[0-9a-f]{12}…", "0" * 12 + "…"),
    (r"\b[0-9a-f]{32}\b", "0" * 32),
)
AGED = {f"{name}@{200 / 86_400}": text for name, text in FAILED.items()}
PAGES = {
    "wide": ((140, 40), "dark", ["n", "n"], "NEEDS YOU retry?"),
    "wide-light": ((140, 40), "light", ["n", "n"], "NEEDS YOU retry?"),
    "wide-contrast": ((140, 40), "contrast", ["n", "n"], "NEEDS YOU retry?"),
    "wide-ansi": ((140, 40), "ansi", ["n", "n"], "NEEDS YOU retry?"),
    "narrow": ((80, 24), "dark", ["n", "n"], "Needs you"),
    "narrow-light": ((80, 24), "light", ["n", "n", "enter"], "hint Raise the time-out."),
    "small": ((60, 20), "dark", ["n", "n"], "Needs you"),
    "small-details": ((60, 20), "contrast", ["n", "n", "enter"], "hint Raise the time-out."),
    "return": ((140, 40), "dark", ["n", "n", "4"], "summary The migration"),
    "timeline": ((140, 40), "dark", ["n", "n", "t"], "█ work"),
    "timeline-narrow": ((80, 24), "light", ["t"], "Timeline"),
    "filter": ((80, 24), "dark", ["/", *"state:failed", "enter"], "1 found"),
    "help": ((100, 40), "dark", ["?"], "Go to the previous task that needs you."),
}


async def compare(screen: Screen, snapshot: SnapshotAssertion):
    """Compare the screen, once it reads nothing any more."""
    await screen.hides("reading…")
    await screen.pilot.pause()
    screen.pilot.app.screen.refresh()
    picture = screen.pilot.app.export_screenshot()
    for pattern, mask in MASKS:
        picture = re.sub(pattern, mask, picture)
    assert snapshot.use_extension(SVGImageExtension) == picture


@pytest.mark.parametrize("page", PAGES)
def test_a_page(page, snapshot, tmp_path, monkeypatch):
    size, theme, keys, words = PAGES[page]

    @journey({}, "replay", RECORDING, "--speed", "1000", "--theme", f"agentwatch-{theme}", size=size)
    async def show(screen: Screen):
        await screen.press("]")
        await screen.shows("REPLAY", "10 of 10")
        await screen.until(lambda: screen.row("ui"))
        await screen.press(*keys)
        await screen.shows(words)
        await compare(screen, snapshot)

    show(tmp_path, monkeypatch)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_a_decision(theme, snapshot, tmp_path, monkeypatch):
    @journey(AGED, "{shop}", "--theme", f"agentwatch-{theme}")
    async def show(screen: Screen):
        await screen.shows("NEEDS YOU", "● live")
        await screen.press("n", "r")
        await screen.shows("◆ ctrl+s")
        # Leave the field, whose cursor blinks.
        await screen.press("shift+tab")
        await compare(screen, snapshot)

    show(tmp_path, monkeypatch)
