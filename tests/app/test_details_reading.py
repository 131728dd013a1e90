"""What the details show is read in threads: the screen never waits for a disk, and nothing lands in a wrong place."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from details_tasks import NOW, Case, DetailsApp, case, retried, screen_text, shown, shown_text
from tests.app.stage import Stage, stage
from textual.pilot import Pilot

from agentwatch.app.widgets.details import TABS, DetailsPane
from agentwatch.app.widgets.details.view import KEPT
from agentwatch.contracts.shapes import Contract
from agentwatch.delegation.attempt import Attempt
from agentwatch.delegation.run import Message, Round, Run, RunState
from agentwatch.delegation.task import Task, Version

Wanted = Version | Message


def in_words(answers: int) -> Case:
    """A task of a session store, asked for and answered in words so many times."""
    messages = tuple(Message(NOW, f"{number:064}", f"opening {number}") for number in range(answers + 1))
    rounds = [Round(NOW, state=RunState.ENDED, said=message) for message in messages[1:]]
    run = Run(
        source="opencode", session_id="ses_1", parent_session=None, state=RunState.ENDED, place="/db",
        started_at=NOW - 60, updated_at=NOW, link="a human asked for it",
        prompt=messages[0], said=messages[-1], rounds=tuple(rounds),
    )  # fmt: skip
    attempt = Attempt(1, started_at=NOW - 60, run=run)
    texts = {message.digest: f"the words {number}" for number, message in enumerate(messages)}
    return Case(Task("ses_1", "Say it", attempts=[attempt]), texts)


async def until(pilot: Pilot[None], holds: Callable[[], object]) -> None:
    for _ in range(1_000):
        if holds():
            return
        await pilot.pause(0.01)
    raise AssertionError(screen_text(pilot.app))


CASES = {
    "a handoff": lambda: case(None),
    "a return": case,
    "a report": lambda: case(Contract.REPORT_CONTRACT),
    "two attempts": lambda: retried(2),
    "words": lambda: in_words(3),
}


@pytest.mark.parametrize("made", CASES.values(), ids=CASES)
@pytest.mark.parametrize("tab_id", [tab_id for tab_id, _ in TABS])
async def test_no_tab_reads_on_the_event_loop(made: Callable[[], Case], tab_id: str) -> None:
    one = made()
    readers: set[threading.Thread] = set()

    def content(version: Wanted) -> str | None:
        readers.add(threading.current_thread())
        return one.content(version)

    async with DetailsApp(one).run_test(size=(80, 40)) as pilot:
        pilot.app.query_one(DetailsPane).show(one.task, one.tree, content, NOW)
        await shown(pilot, tab_id)
    assert threading.current_thread() not in readers


@pytest.mark.parametrize("size", [(140, 40), (80, 24)])
async def test_keys_are_answered_while_a_disk_is_not(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    disk = threading.Event()
    async with stage(size=size) as s:
        monkeypatch.setattr(s.source, "content", lambda _digest: disk.wait(20) and "")
        try:
            await raw_tab_and_back(s)
        finally:
            disk.set()


async def raw_tab_and_back(s: Stage) -> None:
    await s.press("n", "enter", "8")
    await s.until(lambda: "reading…" in s.text())
    before = s.cursor
    await s.press("escape", "down")
    await s.until(lambda: s.cursor != before)


async def test_what_is_shown_stays_until_the_next_content_has_come() -> None:
    disk = threading.Event()
    first, second = case(text="## Status\nstate: SUCCESS\n"), case(text="## Status\nstate: ERROR\n")

    def slow(version: Wanted) -> str | None:
        disk.wait(20)
        return second.content(version)

    async with DetailsApp(first).run_test(size=(80, 40)) as pilot:
        before = await shown(pilot, "raw")
        pane = pilot.app.query_one(DetailsPane)
        pane.show(second.task, second.tree, slow, NOW)
        for _ in range(5):
            await pilot.pause()
            assert shown_text(pane) == before
        disk.set()
        assert "state: ERROR" in await shown(pilot)


async def test_a_text_that_comes_late_is_not_put_on_another_task() -> None:
    late, other = case(text="LATE"), case(text="OTHER", task_id="shop.other")
    disk, read = threading.Event(), threading.Event()

    def slow(version: Wanted) -> str | None:
        disk.wait(20)
        read.set()
        return late.content(version)

    async with DetailsApp(other).run_test(size=(80, 40)) as pilot:
        await shown(pilot, "raw")
        pane = pilot.app.query_one(DetailsPane)
        pane.show(late.task, late.tree, slow, NOW)
        await until(pilot, lambda: "reading…" in shown_text(pane))
        assert "OTHER" not in shown_text(pane)
        pilot.app.show(other)
        await until(pilot, lambda: "OTHER" in shown_text(pane))
        disk.set()
        await until(pilot, read.is_set)
        await pilot.pause()
        assert "LATE" not in shown_text(pane)
        pane.show(late.task, late.tree, slow, NOW)
        assert "LATE" in await shown(pilot)


async def test_a_text_that_was_gone_is_looked_for_again() -> None:
    one, other = case(), case(task_id="shop.other")
    texts, one.texts = one.texts, {}
    async with DetailsApp(one).run_test(size=(80, 40)) as pilot:
        assert "is gone" in await shown(pilot, "raw")
        one.texts = texts
        pilot.app.show(other)
        await shown(pilot)
        pilot.app.show(one)
        assert "is gone" not in await shown(pilot)


async def test_more_texts_than_are_kept_are_shown_once_all_have_come() -> None:
    one, asked = in_words(KEPT + 20), []

    def content(version: Wanted) -> str | None:
        asked.append(version.digest)
        return one.content(version)

    async with DetailsApp(one).run_test(size=(80, 40)) as pilot:
        pane = pilot.app.query_one(DetailsPane)
        pane.show(one.task, one.tree, content, NOW)
        text = await shown(pilot, "return")
        assert all(f"the words {number}" in text for number in range(1, KEPT + 21))
        await pilot.pause()
    assert len(asked) == len(set(asked))
