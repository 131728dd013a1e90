"""The attempts tab: every execution, and what was changed for the next one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from details_tasks import NOW, Case, DetailsApp, case, retried, screen_text, shown

from agentwatch.app.widgets.details import DetailsPane
from agentwatch.contracts.shapes import Contract
from agentwatch.delegation.task import State


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


async def text_of(one: Case) -> str:
    async with DetailsApp(one).run_test(size=(90, 60)) as pilot:
        return await shown(pilot, "attempts")


async def test_attempts_are_listed_with_times_and_digests_the_newest_first() -> None:
    one = retried()
    first, second = one.task.attempts
    assert first.handoff
    assert second.handoff
    assert second.returned
    lines = (await text_of(one)).split("\n")
    assert lines[0].split() == ["2", "✗", "failed", "22:22:20", "→", "22:23:05", "45s"]
    assert lines[1].split() == ["handoff", second.handoff.digest[:12], "return", second.returned.digest[:12]]
    assert lines[2] == "   session sess_2"
    assert lines[3].strip() == "The migration tool timed out before the schema was applied."
    assert lines[5].startswith("1  ✗ failed")
    assert first.handoff.digest[:12] in lines[6]


async def test_an_attempt_that_runs_says_how_long_so_far() -> None:
    one = case(Contract.RETURN_META)
    one.task.attempts[0].state = State.WORKING
    assert "22:20:20 → not yet   3m so far" in await text_of(one)


async def test_one_attempt_has_nothing_to_compare() -> None:
    text = await text_of(case())
    assert "Only one attempt is known." in text
    assert "│" not in text


async def test_what_was_changed_is_shown_with_signs() -> None:
    text = await text_of(retried())
    assert "Handoff  attempt 1 → 2   +1 −1" in text
    assert '- 15 │   "notes": ["Prices are in cents"]' in text
    assert '+ 15 │   "notes": ["Prices are in cents", "Attempt 2"]' in text
    assert "Return  attempt 1 → 2   +1 −1" in text
    assert "+ 13 │ - pytest: 12 passed, 3 failed, run 2" in text


async def test_the_same_handoff_is_said_to_be_the_same() -> None:
    one = retried()
    one.task.attempts[1].handoff = one.task.attempts[0].handoff
    assert "Handoff  attempt 1 → 2\nThe same, byte for byte." in await text_of(one)


async def test_a_text_that_is_not_kept_is_said_to_be_gone() -> None:
    one = retried()
    assert one.task.attempts[0].returned
    del one.texts[one.task.attempts[0].returned.digest]
    text = await text_of(one)
    assert "The text of attempt 1 is not kept any more." in text
    assert "+ 15 │" in text


async def test_an_attempt_without_a_return_leaves_the_last_two_returns_compared() -> None:
    one = retried(3)
    one.task.attempts[2].returned = None
    text = await text_of(one)
    assert "Handoff  attempt 2 → 3" in text
    assert "Return  attempt 1 → 2" in text


async def test_keys_choose_which_attempts_are_compared() -> None:
    async with DetailsApp(retried(4)).run_test(size=(90, 60)) as pilot:
        pane = pilot.app.query_one(DetailsPane)
        seen = []
        for key in ("", "-", "-", "-", "+", "=", "+"):
            if key:
                await pilot.press(key)
            text = await shown(pilot, "attempts")
            seen.append(next(line.split("   ")[0][-5:] for line in text.split("\n") if line.startswith("Handoff  ")))
        assert seen == ["3 → 4", "2 → 3", "1 → 2", "1 → 2", "2 → 3", "3 → 4", "3 → 4"]
        assert pane.offered == {"compare.earlier", "compare.later"}


async def test_another_task_is_compared_from_its_end() -> None:
    async with DetailsApp(retried(3)).run_test(size=(90, 60)) as pilot:
        await shown(pilot, "attempts")
        await pilot.press("-")
        other = retried(3)
        other.task.task_id = "shop.other"
        pilot.app.show(other)
        await pilot.pause()
        assert "Handoff  attempt 2 → 3" in await shown(pilot, "attempts")


async def test_two_attempts_leave_no_choice() -> None:
    async with DetailsApp(retried()).run_test(size=(90, 60)) as pilot:
        await shown(pilot, "attempts")
        assert not pilot.app.query_one(DetailsPane).offered


async def test_texts_are_fetched_in_a_thread_and_compared_once() -> None:
    one = retried()
    asked: list[int] = []

    def content(wanted):
        asked.append(threading.get_ident())
        return one.texts[wanted.digest]

    async with DetailsApp(one).run_test(size=(90, 60)) as pilot:
        pane = pilot.app.query_one(DetailsPane)
        pane.show(one.task, one.tree, content, NOW)
        await shown(pilot, "attempts")
        for later in range(5):
            pane.show(one.task, one.tree, content, NOW + later)
            await pilot.pause()
    assert len(asked) == 4
    assert threading.get_ident() not in asked


async def test_nothing_of_a_difference_reaches_the_terminal_as_it_is() -> None:
    one = retried()
    second = one.task.attempts[1].returned
    assert second
    one.texts[second.digest] += "\x1b]52;c;aGk=\x07 [@click=app.quit]now[/] \u202eevil"
    async with DetailsApp(one).run_test(size=(90, 60)) as pilot:
        await shown(pilot, "attempts")
        await pilot.press("end")
        await pilot.pause()
        text = screen_text(pilot.app)
    assert "[@click=app.quit]now[/]" in text
    assert not {"\x1b", "\x07", "\u202e"} & set(text)


async def test_a_time_that_no_calendar_has_is_no_error() -> None:
    one = retried()
    one.task.attempts[0].started_at = 1e18
    one.task.attempts[1].started_at = -1e15
    assert "? →" in await text_of(one)
