"""Requests on the screen: what presses most is found first, told apart from others, and its clock is seen to run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.app.deciding import handoff, office
from tests.app.scenes import NOW, Scene
from tests.app.stage import stage
from tests.app.test_requests import WORKING, asking, open_it, opened, permission, question, record
from tests.unit.delegation import asking as programs

from agentwatch.app.widgets.needs_you import NeedsYou
from agentwatch.delegation.request import Option, Query, RequestKind

SMALL, WIDE = (80, 24), (140, 40)


async def test_a_request_says_how_long_it_can_be_answered_where_it_stands(tmp_path: Path) -> None:
    now = time.time()
    files = {**WORKING, "ui.handoff.json": handoff("shop.ui")}
    soon = permission(tmp_path, "git push", session_id="shop.ui", asked_at=now - 5, until=now + 90)
    async with asking(tmp_path, permission(tmp_path, "ls"), soon, files=files, size=SMALL) as (s, _):
        strip = s.main.query_one(NeedsYou)
        # The other one is newer, and waits for as long as it takes.
        await s.until(lambda: "■ shop.ui allow? Bash  git push 1m left" in first_of(strip))
        # So, too, where the cursor is on another one that asks.
        s.tree.select("shop.api")
        await s.until(lambda: strip.cursor_id == "shop.api")
        assert "■ shop.ui allow? Bash  git push" in first_of(strip)


def first_of(strip: NeedsYou) -> str:
    """The line of the first that asks; empty as long as nobody does."""
    return "".join(part.text for parts in strip._parts[:1] for part in parts)


@pytest.mark.parametrize("size", [(40, 12), SMALL, WIDE])
async def test_a_toast_covers_nothing_of_the_strip(size: tuple[int, int]) -> None:
    async with stage(size=size) as s:
        strip = s.main.query_one(NeedsYou)
        lines = s.text().splitlines()[strip.region.y : strip.region.bottom]
        for words in ("One line.", "This one\nhas two."):
            s.app.notify(words, markup=False)
            await s.until(lambda words=words: all(part in s.text() for part in words.split("\n")))
            await s.until(lambda: s.text().splitlines()[strip.region.y : strip.region.bottom] == lines)


async def test_sessions_of_one_title_are_told_apart_where_they_ask(tmp_path: Path) -> None:
    scene = Scene()
    for number, session in enumerate(("5f0c1111-a", "77aa2222-b"), 1):
        scene.ran(session, "export the invoices")
        asked = programs.request(number, session_id=session, asked_at=NOW - 20 * number)
        scene.events.append(programs.requested(asked, 100 + number))
    async with stage(scene=scene, size=WIDE) as s:
        await s.until(lambda: "export the invoices · 5f0c1111" in s.text())
        assert "export the invoices · 77aa2222" in s.text()


async def test_a_form_asks_and_is_no_permission(tmp_path: Path) -> None:
    form = permission(tmp_path, "Which colour?", kind=RequestKind.FORM, actions=(), why_not="it is filled in there")
    async with asking(tmp_path, form) as (s, _):
        await s.until(lambda: "its program has a form" in s.text())
        assert "NEEDS YOU  asks" in s.text()
        assert "fill in? Bash" in s.words
        assert "allow?" not in s.text()


async def test_the_review_is_named_and_works_where_one_task_asks(tmp_path: Path) -> None:
    async with asking(tmp_path, permission(tmp_path)) as (s, _):
        await s.until(lambda: " R review" in s.text())
        await open_it(s, "R")


async def test_the_review_is_not_named_where_nobody_asks(tmp_path: Path) -> None:
    async with office(tmp_path, WORKING) as s:
        assert "enter open" in s.text()
        assert " R review" not in s.text()


async def test_the_toast_names_the_program_and_what_was_denied(tmp_path: Path) -> None:
    async with asking(tmp_path, permission(tmp_path, "rm -rf " + "x" * 90), size=SMALL) as (s, _):
        await open_it(s)
        await s.press("space", "right")
        await record(s)
        assert s.toasts.startswith("Denied to claude: “rm -rf x")
        await s.until(lambda: "Denied to claude" in s.text().splitlines()[-1])
        assert opened(s) is None


async def test_the_first_press_of_the_space_bar_takes_the_first_of_several_options(tmp_path: Path) -> None:
    query = Query("Which checks?", options=(Option("Lint"), Option("Types")), several=True)
    async with asking(tmp_path, question(tmp_path, queries=(query,)), size=SMALL) as (s, _):
        await open_it(s)
        await s.press("space")
        await s.until(lambda: "■ Lint" in s.text())
        await s.press("down", "space", "up", "space")
        await s.until(lambda: "□ Lint" in s.text() and "■ Types" in s.text())


async def test_a_long_call_is_read_and_allowed_from_the_answers(tmp_path: Path) -> None:
    command = "".join(f"echo {number}\n" for number in range(20)) + "rm -rf ~"
    async with asking(tmp_path, permission(tmp_path, command), size=SMALL) as (s, _):
        await open_it(s)
        await s.until(lambda: "9 more lines: pagedown" in s.text())
        # No key but these two reads, and chooses.
        await s.press("pagedown")
        await s.until(lambda: "rm -rf ~" in s.text() and "more line" not in s.text())
        await s.press("pageup", "space")
        await record(s)
        assert len(s.entries()) == 1
