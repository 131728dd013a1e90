"""Acknowledge, snooze, undo, and the history."""

import re

from tests.journeys.driver import AGENTWATCH, Screen, journey, run
from tests.journeys.made import FAILED, SHOP, handoff, returned

COUNTS = "· esc leave"


async def choose(screen: Screen, *keys: str):
    """Answer the question with these keys."""
    await screen.shows("enter", COUNTS)
    await screen.press(*keys)


@journey(FAILED)
async def test_an_acknowledged_task_asks_no_more_until_it_changes(screen):
    await screen.shows("1 needs you")
    await screen.press("n", "A")
    await screen.shows("Acknowledge", "“shop.api”: 1 task", COUNTS)
    await screen.press("escape")
    await screen.hides(COUNTS)
    assert "1 needs you" in screen.text()
    await screen.press("A")
    await choose(screen, "enter")
    await screen.hides("1 needs you", "NEEDS YOU")
    while "There is nothing to acknowledge here" not in screen.words():
        await screen.press("A")
    await screen.press("Z")
    await screen.shows("1 needs you")
    await screen.press("A")
    await choose(screen, "enter")
    await screen.hides("1 needs you", "NEEDS YOU")
    screen.write("api.return.md", returned(summary="Another thing failed."))
    await screen.shows("1 needs you")


@journey(FAILED)
async def test_a_task_is_snoozed(screen):
    await screen.shows("1 needs you")
    await screen.press("n", "w")
    await screen.shows("Snooze", "for 30 minutes", "for 2 hours", "until tomorrow, 9:00", "until it changes")
    await choose(screen, "down", "enter")
    await screen.hides("1 needs you")
    await screen.until(lambda: "snoozed" in screen.row("shop.api"))
    await screen.type("/is:snoozed", "enter")
    await screen.shows("1 found")
    await screen.press("escape", "Z", "w")
    await choose(screen, "down", "down", "enter")
    await screen.until(lambda: re.search(r" snoozed until \d{4}-\d\d-\d\d 09:00 ", screen.words()))
    # The hint that the key undoes it is gone.
    await screen.press("Z")
    await screen.shows("Undone: 1 task as before.")
    assert "Z undoes it" not in screen.text()


@journey(SHOP)
async def test_keys_behind_a_question_answer_it(screen):
    await screen.shows("3 need you")
    await screen.find("shop.api", "api")
    screen.press_ahead("w", "down", "enter", "j")
    await screen.shows("Snoozed for 2 hours: “api”. Z undoes it.")
    await screen.at("docs")


OLD = {f"old{number}.return.md@30": returned(task_id=f"old{number}") for number in range(3)}


@journey(OLD)
async def test_old_returns_are_history(screen):
    await screen.shows("HISTORY 3 runs", "old0", "now 0")
    assert screen.inks("✗ ") == screen.inks("▾ ") != set()
    screen.write("new.handoff.json", handoff("new"))
    await screen.shows("NOW", "new", "▸ HISTORY")
    await screen.at("new")
    assert "old0" not in screen.text()
    await screen.press("H")
    await screen.shows("old0", "old1", "old2")
    await screen.press("G", "w")
    await screen.shows("asks nothing that could be snoozed")
    await screen.press("up", "up", "up", "A")
    await screen.shows("all of history: 3 tasks")
    await screen.press("enter")
    await screen.shows("Acknowledged all of")
    await screen.press("Z")
    await screen.shows("Undone: 3 tasks as before.")


BOTH = {**FAILED, "../cart/pay.handoff.json": handoff("pay"), "../cart/pay.return.md": returned(task_id="pay")}


@journey(BOTH, "{shop}", "{shop}/../cart")
async def test_undo_restores_tasks_put_aside_in_two_workspaces(screen):
    await screen.shows("2 need you")
    await screen.type("/state:failed", "enter", "A")
    await screen.shows("2 tasks")
    await choose(screen, "enter")
    await screen.hides("need you", "needs you")
    # Each workspace knows of the acknowledgement of its own task only.
    for place in ("shop", "cart"):
        _, pending = await run(*AGENTWATCH, "pending", screen.workspace.parent / place)
        assert pending.startswith("nothing needs you\n1 acknowledged")
    await screen.press("Z")
    await screen.shows("2 need you")
    await screen.press("Z")
    await screen.shows("There is nothing to undo.")
