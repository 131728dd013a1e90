"""Decisions: what the dialog shows, when its key counts, and what the disk holds afterwards."""

import asyncio
import json

from tests.journeys.driver import AGENTWATCH, Screen, journey, run
from tests.journeys.made import FAILED, SHOP, blocked, decisions, handoff, returned

UNSEEN = (
    "```json\n"
    + handoff(notes=["Be quick." + 5_000 * " " + "Then push.", "Or" + 50 * "\n" + "not."])
    + "```\n"
    + 300 * "\n"
    + "Then push.\n"
)
READY = "◆ ctrl+s records this decision"
PARTIAL = {**FAILED, "api.return.md": returned("PARTIAL", summary="Half is done.", more="")}
BLOCKED = {
    "auth.handoff.json": handoff("shop.auth"),
    "auth.return.json": blocked("shop.auth", "Which flow?", "Since when?"),
}
MODES = {"~/.config/agentwatch/config.toml": '[modes]\ndebug = "finds the cause"\n'}


async def record(screen: Screen) -> dict[str, object]:
    """Press the key once it counts, and return the decision that agents can read."""
    await screen.shows(READY)
    while READY in screen.words():
        # The typed text may still be checked; until then the key does nothing.
        await screen.press("ctrl+s")
        await screen.pilot.pause(0.2)
    await screen.shows("recorded, delivered.")
    (decision,) = decisions(screen.workspace)
    return decision


@journey(FAILED)
async def test_a_retry_hands_on_the_hint_and_the_note(screen):
    await screen.shows("NEEDS YOU")
    await screen.press("n", "n", "r")
    await screen.shows("attempt 1 ✗ failed → attempt 2", "retries 1 left now, 0 after this", "unchanged")
    await screen.type("Use the long one.")
    await screen.shows("Use the long one.", "Hint of attempt 1: Raise the")
    decision = await record(screen)
    assert (decision["action"], decision["note"]) == ("retry", "Use the long one.")
    assert "Raise the time-out." in json.dumps(decision)
    await screen.shows("retrying", "decided retry · recorded", "delivered")


@journey(FAILED)
async def test_only_the_key_records_and_after_a_moment_in_sight(screen):
    await screen.shows("NEEDS YOU")
    await screen.press("n")
    screen.press_ahead("r", "a", "ctrl+s", "b")
    await screen.shows("note ab", READY)
    await screen.click(READY)
    await screen.press("enter")
    await screen.shows(READY)
    await screen.press("escape")
    await screen.hides(READY)
    assert not decisions(screen.workspace)


@journey({**SHOP, **MODES})
async def test_no_key_behind_one_that_decides_is_lost(screen):
    await screen.shows("3 need you")
    await screen.find("shop.plan", "plan")
    screen.press_ahead("r", "x", "j")
    await screen.at("api")
    assert [words[:19] for words in screen.told] == ["Retry “shop.plan”: ", "Abort “shop.plan”: "]
    screen.press_ahead("c", "k", "j")
    await screen.until(lambda: any("api.return.md" in words for words in screen.told))
    screen.press_ahead("R", "ctrl+n", "ctrl+n", "f3", "f6", *"abc")
    await screen.shows("3 of 3", "◆ ↑ Escalate", "note abc")
    screen.press_ahead("f2", *"def")
    await screen.shows("note def", READY)
    screen.press_ahead("ctrl+s", "j", "j")
    await screen.shows("recorded, delivered.")
    await screen.at("auth")


@journey(FAILED)
async def test_a_retry_without_the_hint(screen):
    await screen.shows("NEEDS YOU")
    await screen.press("n", "r")
    await screen.shows("● hand it on", "Hint of attempt 1")
    await screen.press("shift+tab", "right")
    await screen.hides("Hint of attempt 1")
    assert "Raise the time-out." not in json.dumps(await record(screen))


@journey(FAILED)
async def test_the_next_handoff_is_edited_and_checked(screen):
    await screen.shows("NEEDS YOU")
    await screen.press("n", "r")
    await screen.shows("✓ valid", '"objective": "Build the API."')
    await screen.press("tab", "ctrl+home")
    await screen.type("x")
    await screen.shows("not yet")
    await screen.press("backspace")
    await screen.shows(READY)
    await screen.press("ctrl+t")
    await screen.shows('+ 21 "attempt": 2,')


@journey({"api.handoff.md": UNSEEN, "api.return.md": returned()}, size=(80, 24))
async def test_a_handoff_is_read_to_its_end_whatever_it_hides(screen):
    await screen.shows("NEEDS YOU")
    await screen.press("n", "r")
    await screen.shows("more lines below: read to the end first (pagedown)", "blanks in it are counted")
    await asyncio.sleep(0.7)
    await screen.press("ctrl+s")
    seen = ""
    while READY not in screen.words():
        await screen.press("pagedown")
        await screen.pilot.pause(0.2)
        seen += screen.text()
    assert "Be quick.<5,000 blanks>Then push." in seen
    assert "┊ <49 empty lines>" in seen
    assert "┊ <300 empty lines>" in seen
    await screen.press("ctrl+t")
    await screen.shows("1 ```json")
    await record(screen)


@journey(SHOP)
async def test_abort_ends_what_is_below_too(screen):
    await screen.shows("3 need you")
    await screen.press("g", "x")
    await screen.shows("Abort", "“shop”", "ended, with 2 open tasks below it: 1 blocked, 1 submitted")
    assert "retries" not in screen.text()
    await screen.resize(60, 20)
    await screen.shows("○ yes, end it and the 2 open tasks below it", "not yet: say yes", "^s record esc leave")
    await screen.resize(140, 40)
    await screen.type("Not needed.")
    assert (await record(screen))["action"] == "abort"
    await screen.until(lambda: "canceled" in screen.row("shop"))


@journey(BLOCKED)
async def test_a_question_of_a_child_is_answered(screen):
    await screen.shows("answer: Which flow?")
    await screen.press("n", "a")
    await screen.shows("Which flow?", "not yet", "retries an answer uses none")
    await screen.press("ctrl+s")
    await screen.type("Login only.")
    await screen.shows("not yet: answer each of its 2 questions: 1 left")
    await screen.press("tab")
    await screen.type("May.")
    decision = await record(screen)
    assert decision["action"] == "respond"
    answers = [{"question": "Which flow?", "answer": "Login only."}, {"question": "Since when?", "answer": "May."}]
    assert f'"answers": {json.dumps(answers)}' in json.dumps(decision)


@journey({**SHOP, "api.return.md": returned(created="- docs/gone.md", evidence="- docs/gone.md")})
async def test_the_childs_words_are_only_the_childs(screen):
    await screen.shows("3 need you")
    await screen.find("shop.plan", "plan")
    await screen.shows("✓ completed   attempt 1   code")
    await screen.find("shop.auth", "auth")
    await screen.shows("■ blocked   attempt 1   auditor")
    await screen.press("r")
    await screen.shows("beware a retry does not answer its question: leave, and press `a` to answer")
    await screen.press("escape")
    await screen.find("shop.api", "api")
    await screen.shows("✗ failed   attempt 1 of 2")
    await screen.press("r")
    await screen.shows("false “docs/gone.md: missing: no such file in the workspace”", "whole return")
    assert not [line for line in screen.text().splitlines() if "┊" in line and "no such file" in line]


@journey(PARTIAL)
async def test_a_partial_return_is_accepted_with_a_reason(screen):
    await screen.shows("partial", "y accept")
    await screen.press("y")
    await screen.shows("Accept", "not yet")
    await screen.type("Good enough.")
    assert (await record(screen))["action"] == "accept"
    await screen.shows("accepted")


@journey(FAILED)
async def test_a_decision_about_a_changed_return_is_not_recorded(screen):
    await screen.shows("NEEDS YOU")
    await screen.press("n", "r")
    await screen.shows(READY)
    screen.write("api.return.md", returned(summary="Another thing failed."))
    await screen.shows("✗", "The return has changed since you opened this. Leave with escape, look at it")
    screen.write("api2.handoff.json", handoff(attempt=2))
    await screen.shows("Attempt 2 has begun meanwhile.")
    await screen.press("ctrl+s")
    await screen.shows("Leave with escape")
    assert not decisions(screen.workspace)


@journey(SHOP)
async def test_a_change_of_the_handoff_under_the_dialog_is_shown(screen):
    await screen.shows("3 need you")
    await screen.find("shop.ui", "ui")
    await screen.press("x")
    await screen.shows("Abort", "“shop.ui”", "not yet: say yes")
    await screen.press("right")
    await screen.shows(READY)
    screen.write("ui.handoff.json", handoff("shop.ui", "Build another form", parent_task_id="shop", mode="design"))
    await screen.shows("The handoff has changed since you opened this.")
    await screen.press("ctrl+s")
    await screen.shows("Leave with escape")
    assert not decisions(screen.workspace)


@journey({**FAILED, "~/.config/agentwatch/config.toml": "[retry]\nmax_retries = 2\n"})
async def test_a_mitigation_earns_no_third_retry(screen):
    await screen.shows("2 retries left")
    await screen.press("n", "r")
    await screen.shows("retries 2 left now, 1 after this; a mitigation earns no more")


@journey({**FAILED, **MODES})
async def test_another_action_is_taken_instead(screen):
    await screen.shows("NEEDS YOU")
    await screen.press("n", "r")
    await screen.shows("Retry", "attempt 2")
    for key, word in (("f3", "Escalate"), ("f4", "Abort"), ("f2", "Retry")):
        await screen.press(key)
        await screen.shows(f"◆ {screen.line('◆ ')[5]} {word}")
    await screen.press("ctrl+c")
    await screen.hides("Retry ═")
    await screen.press("e")
    await screen.shows("Escalate", "● debug", "finds the cause")
    assert (await record(screen))["action"] == "escalate"
    await screen.shows("escalated")


@journey(SHOP)
async def test_a_review_leads_through_all_that_need_you(screen):
    await screen.shows("3 need you")
    await screen.press("R")
    await screen.shows("1 of 3", "“shop.auth”")
    await screen.press("ctrl+n")
    await screen.shows("2 of 3", "“shop.docs”")
    await screen.press("ctrl+n")
    await screen.shows("3 of 3", "“shop.api”", READY)
    await screen.press("ctrl+s")
    await screen.shows("recorded, delivered.", "2 need you")
    assert len(decisions(screen.workspace)) == 1
    await screen.press("R")
    await screen.shows("1 of 2", "^s record")
    # Leaving the dialog ends the review.
    await screen.press("escape")
    await screen.hides("^s record")


@journey(SHOP)
async def test_a_review_of_what_was_marked(screen):
    await screen.shows("3 need you")
    await screen.find("shop.api", "api")
    await screen.press("m")
    await screen.shows("◆")
    await screen.press("R")
    await screen.shows("“shop.api”", "◆ ↻ Retry")
    assert "of 3" not in screen.text()
    await screen.press("escape")
    await screen.hides("◆ ↻ Retry")
    await screen.find("shop.auth", "auth")
    await screen.press("m", "R")
    await screen.shows("1 of 2")
    await screen.press("ctrl+n")
    await screen.shows("2 of 2")
    await screen.press("escape")
    await screen.hides("2 of 2")
    # Nothing was decided, so the marks stay.
    assert "◆" in screen.row("api")
    assert "◆" in screen.row("auth")
    await screen.press("R")
    await screen.shows("1 of 2", "“shop.api”", READY)
    await screen.press("ctrl+s")
    await screen.shows("2 of 2", "“shop.auth”")
    await screen.press("escape")
    await screen.until(lambda: screen.row("api") and "◆" not in screen.row("api"))
    assert "◆" in screen.row("auth")


@journey({**FAILED, ".agentwatch": "in the way"})
async def test_an_undelivered_decision_is_shown_in_its_row(screen):
    await screen.shows("NEEDS YOU")
    await screen.press("n", "r")
    await screen.shows(READY)
    await screen.press("ctrl+s")
    await screen.shows("recorded, not delivered: ", "retry ! undelivered", "decided recorded, not delivered: ")


@journey(FAILED)
async def test_the_next_attempt_follows_the_decision(screen):
    await screen.shows("NEEDS YOU")
    await screen.press("n", "r")
    decision = await record(screen)
    screen.write("api2.handoff.json", handoff(attempt=2, decision_id=decision["decision_id"]))
    await screen.shows("↻2", "submitted")
    await screen.shows("returned nothing yet")
    await screen.press("4")
    await screen.shows("Nothing has come back yet.", "The Attempts tab has what came back before.")
    assert "timed out" not in screen.text()
    await screen.press("7")
    await screen.shows("retry · recorded", "The migration timed out.", "Return api.return.md")


@journey({**FAILED, "ok.handoff.json": handoff("shop.ok")})
async def test_a_decision_that_is_not_possible_has_a_reason(screen):
    await screen.shows("2 tasks")
    await screen.find("shop.ok")
    await screen.press("r")
    await screen.shows("Retry")
    assert "◆ ctrl+s" not in screen.text()


@journey(FAILED, "{shop}", "--read-only")
async def test_read_only_writes_nothing(screen):
    await screen.shows("NEEDS YOU", "● live  read only")
    await screen.press("n", "r")
    await screen.shows("nowhere else (read only)", READY)
    await screen.press("ctrl+s")
    await screen.shows("recorded")
    assert not (screen.workspace / ".agentwatch").exists()


@journey(FAILED, size=(60, 20))
async def test_a_small_window_scrolls_a_whole_dialog(screen):
    await screen.shows("NEEDS YOU")
    await screen.press("n", "r")
    await screen.shows("◆ ctrl+s")
    await screen.resize(28, 8)
    await screen.shows("this window is too small")
    await screen.press("ctrl+s")
    await screen.resize(40, 12)
    # At every scroll position, the line about the deciding key is in sight.
    for _ in range(8):
        await screen.shows("◆ ctrl+s")
        await screen.press("tab")
    assert not decisions(screen.workspace)


@journey(FAILED)
async def test_no_palette_opens_over_a_decision(screen):
    await screen.shows("NEEDS YOU")
    await screen.press("n", "r")
    await screen.shows(READY)
    await screen.press("ctrl+p")
    await screen.press("ctrl+s", "ctrl+p")
    await screen.shows("recorded, delivered.")
    assert len(decisions(screen.workspace)) == 1


@journey(FAILED)
async def test_the_handoff_that_was_shown_is_what_is_handed_out(screen):
    await screen.shows("NEEDS YOU")
    await screen.press("n", "r")
    await screen.shows(READY)
    (screen.workspace / "api.handoff.json").unlink()
    params = (await record(screen))["params"]
    _, output = await run(*AGENTWATCH, "wait", "shop.api", screen.workspace, "--timeout", "0")
    await screen.shows("retry ◉ read")
    path = json.loads(output)["handoff_path"]
    assert isinstance(params, dict)
    assert (screen.workspace / path).read_text("utf-8") == params["handoff"]
    assert '"objective": "Build the API."' in params["handoff"]
