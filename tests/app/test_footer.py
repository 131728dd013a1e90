"""The footer at every size: it names what works where the operator is, and what can be decided before all else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.app.deciding import FAILED, Office, desk_of, handoff, office, returned
from tests.app.stage import stage

from agentwatch.app.messages import Inspect
from agentwatch.app.screens.inspect import InspectScreen
from agentwatch.app.screens.task import TaskScreen
from agentwatch.app.screens.timeline import TimelineScreen
from agentwatch.app.widgets.details.tabs import Entry
from agentwatch.decisions.clerk import Clerk

SIZES = [(40, 12), (60, 20), (80, 24), (140, 40)]
DONE = {"api.handoff.json": handoff(), "api.return.md": returned("SUCCESS", more="")}
TWO = {
    **FAILED,
    "ui.handoff.json": handoff("shop.ui"),
    "ui.return.md": returned(task_id="shop.ui"),
}


def footer(s: Office) -> list[str]:
    """The words of the last line."""
    return s.text().splitlines()[-1].split()


async def go(s: Office, place: str) -> None:
    """To the details, the timeline, or the file of a claim."""
    s.tree.select("shop.api")
    wide = s.app.size.width >= 100
    if place == "details":
        await s.press("enter")
        await s.until(lambda: s.in_details if wide else isinstance(s.app.screen, TaskScreen))
    elif place == "timeline":
        await s.press("t")
        await s.until(lambda: isinstance(s.app.screen, TimelineScreen))
    elif place == "file":
        s.app.post_message(Inspect("shop.api", Entry("", "api.handoff.json", None)))
        await s.until(lambda: isinstance(s.app.screen, InspectScreen))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("place", ["tree", "details", "timeline", "file"])
async def test_what_can_be_decided_is_named_at_any_size(place: str, size: tuple[int, int], tmp_path: Path) -> None:
    async with office(tmp_path, size=size) as s:
        await go(s, place)
        await s.until(lambda: set("rexa?") <= set(footer(s)))
        # Keys and what they move come behind what is decided.
        words = footer(s)
        assert all(words.index("a") < words.index(later) for later in ("/", "space", "o", "+") if later in words)


@pytest.mark.parametrize("place", ["tree", "details", "timeline", "file"])
async def test_a_key_that_decides_opens_its_dialog_where_it_is_named(place: str, tmp_path: Path) -> None:
    async with office(tmp_path, size=(80, 24)) as s:
        await go(s, place)
        await s.until(lambda: "r" in footer(s))
        await s.press("r")
        await s.until(lambda: s.in_dialog)


@pytest.mark.parametrize("place", ["tree", "timeline"])
async def test_where_nothing_can_be_decided_no_key_is_named_and_pressing_one_says_why(place: str) -> None:
    async with stage(size=(80, 24)) as s:
        await s.press("n", *(["t"] if place == "timeline" else []))
        line = s.text().splitlines()[-1].split()
        assert not {"r", "e", "x", "a", "y", "R"} & set(line)
        await s.press("r")
        await s.until(lambda: "Nothing can be decided here" in s.text())


async def test_a_finished_task_names_no_decision_and_says_why(tmp_path: Path) -> None:
    async with office(tmp_path, DONE, (80, 24)) as s:
        await go(s, "timeline")
        assert not {"r", "e", "x", "a", "y"} & set(footer(s))
        await s.press("r")
        await s.until(lambda: "nothing speaks against it" in s.toasts)


async def test_what_is_refused_gives_way_to_what_is_not(tmp_path: Path) -> None:
    async with office(tmp_path, size=(80, 24)) as s:
        s.tree.select("shop.api")
        # A failed return is not accepted: that is said where there is room.
        await s.until(lambda: {"a", "y", "?"} <= set(footer(s)))
        await s.resize(70, 24)
        await s.until(lambda: "y" not in footer(s))
        assert {"r", "e", "x", "a", "answer", "?"} <= set(footer(s))


@pytest.mark.parametrize("place", ["tree", "details", "timeline"])
async def test_a_review_is_named_where_somebody_asks(place: str, tmp_path: Path) -> None:
    async with office(tmp_path, TWO) as s:
        await go(s, place)
        await s.until(lambda: "R" in footer(s))
        for name in ("ui", "api"):
            (s.workspace / f"{name}.return.md").write_text(returned("SUCCESS", f"shop.{name}", more=""))
        await s.until(lambda: "R" not in footer(s))


@pytest.mark.parametrize(
    ("place", "own"), [("details", "1–8 tabs"), ("timeline", "+ zoom in  - out"), ("file", "d difference")]
)
async def test_a_small_screen_names_its_own_keys_beside_those_that_decide(place: str, own: str, tmp_path: Path) -> None:
    async with office(tmp_path, size=(80, 24)) as s:
        await go(s, place)
        await s.until(lambda: "r e x a decide" in s.text())
        assert own in s.text().splitlines()[-1]


async def test_where_one_thing_can_be_decided_it_is_said_in_a_word(tmp_path: Path) -> None:
    async with office(tmp_path, {"api.handoff.json": handoff()}, (80, 24)) as s:
        await go(s, "timeline")
        await s.until(lambda: "x abort" in s.text().splitlines()[-1])


async def test_escape_is_named_for_what_it_does_to_a_filter() -> None:
    async with stage(size=(80, 24)) as s:
        assert "esc" not in s.text().splitlines()[-1]
        await s.press("s")
        assert "esc clear the filter" in s.text().splitlines()[-1]


async def test_the_keys_of_other_decisions_are_named_one_by_one_where_there_is_room(tmp_path: Path) -> None:
    async with office(tmp_path) as s:
        await s.open("r")
        assert "f2 retry  f3 escalate  f4 abort  f5 answer  f6 accept" in s.text().splitlines()[-1]
        await s.resize(80, 24)
        await s.until(lambda: "f2–f6 otherwise" in s.text().splitlines()[-1])


async def test_what_is_blocked_has_nothing_to_accept(tmp_path: Path) -> None:
    async with stage(size=(140, 40)) as s:
        s.app.monitor.clerk = Clerk(desk_of(tmp_path))
        s.tree.select("checkout.security")
        await s.until(lambda: {"x", "a"} <= set(footer(s)) and "y" not in footer(s))
