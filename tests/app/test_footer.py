"""The footer at every size: it names what works where the operator is, and what can be decided before all else."""

import pytest

from agentwatch.app.messages import Inspect
from agentwatch.app.screens.inspect import InspectScreen
from agentwatch.app.screens.timeline import TimelineScreen
from agentwatch.delegation.events import Claim, Verdict
from tests.app.deciding import Office, office

SIZES = [(40, 12), (140, 40)]


def footer(s: Office) -> list[str]:
    """The words of the last line."""
    return s.text().splitlines()[-1].split()


async def go(s: Office, place: str):
    """To the details, the timeline, or the file of a claim."""
    s.tree.select("shop.api")
    if place == "details":
        await s.press("enter")
        await s.until(lambda: s.in_details)
    elif place == "timeline":
        await s.press("t")
        await s.until(lambda: isinstance(s.app.screen, TimelineScreen))
    elif place == "file":
        s.app.post_message(Inspect("shop.api", Claim("", "api.handoff.json", Verdict.VERIFIED, "")))
        await s.until(lambda: isinstance(s.app.screen, InspectScreen))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("place", ["tree", "details", "timeline", "file"])
async def test_what_can_be_decided_is_named_at_any_size(place, size, tmp_path):
    async with office(tmp_path, size=size) as s:
        await go(s, place)
        await s.until(lambda: set("rexa?") <= set(footer(s)))
        # Keys and what they move come behind what is decided.
        words = footer(s)
        assert all(words.index("a") < words.index(later) for later in ("/", "space", "o", "+") if later in words)
