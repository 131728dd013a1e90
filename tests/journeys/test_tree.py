"""The tree: the text of a row, moving, folding, new tasks, history."""

import asyncio
import re

from textual import events

from tests.journeys.driver import journey, write
from tests.journeys.made import FAILED, SHOP, child, handoff, returned


@journey(SHOP)
async def test_a_row_shows_the_state_and_whether_it_needs_you(screen):
    await screen.shows("6 tasks", "3 need you")
    states = {"plan": "completed", "api": "failed", "docs": "false", "auth": "blocked", "ui": "submitted"}
    await screen.until(lambda: all(state in screen.row(name) for name, state in states.items()))
    assert [name for name in states if "NEEDS YOU" in screen.row(name)] == ["api", "docs", "auth"]


@journey({})
async def test_an_empty_workspace_says_what_to_do(screen):
    await screen.shows("● live", "agentwatch demo")
    await screen.press("!")
    await screen.shows("Every file that looks like a handoff or a return could be read")
    await screen.press("escape")
    screen.write("api.handoff.json", handoff())
    await screen.shows("shop.api", "submitted")


@journey({"api.handoff.json": handoff()[:-40]})
async def test_a_handoff_that_breaks_off_has_a_sign(screen):
    await screen.until(lambda: "‼ handoff" in screen.row("shop.api"))
    await screen.shows("breaks the contract: The document ends in the")


@journey(SHOP)
async def test_left_and_right_fold_and_lead_up_and_down(screen):
    await screen.find("shop.ui", "ui")
    await screen.at("ui")
    await screen.press("left")
    await screen.at("shop")
    await screen.press("h")
    await screen.shows("▸ ◇ shop")
    # A filter shows folded rows, and clearing it folds them again.
    await screen.type("/plan", "enter")
    await screen.at("plan")
    await screen.press("escape")
    await screen.shows("▸ ◇ shop")
    await screen.press("l", "right")
    await screen.at("plan")


@journey({**SHOP, "z.handoff.json": handoff("z"), "z1.handoff.json": handoff("z.one", parent_task_id="z")})
async def test_everything_is_folded_and_unfolded(screen):
    await screen.shows(" plan ", " one ", "3 need you")
    await screen.press("C")
    await screen.hides(" plan ", "○ one")
    await screen.shows("3 tasks that need you are folded: n goes there, E unfolds.", "? keys")
    await screen.press("n")
    await screen.at("auth")
    assert not screen.row("one")
    await screen.press("E")
    await screen.shows(" plan ", " one ")


@journey({f"{number:02}.handoff.json": handoff(f"task.{number:02}") for number in range(60)}, size=(80, 24))
async def test_keys_move_by_rows_pages_and_to_the_ends(screen):
    await screen.shows("60 tasks")
    # The newest task is first.
    order = [("g", "59"), ("j", "58"), ("down", "57"), ("k", "58"), ("up", "59"), ("G", "00"), ("home", "59")]
    for key, number in order:
        await screen.press(key)
        await screen.at(f"task.{number}")
    await screen.press("g", "pagedown")
    await screen.until(lambda: screen.line("▌") and not screen.is_at("task.59"))
    await screen.press("ctrl+d", "ctrl+u", "pageup")
    await screen.at("task.59")


@journey(SHOP)
async def test_n_leads_on_and_back_through_what_needs_you(screen):
    await screen.shows("3 need you")
    seen = []
    for _ in range(3):
        before = screen.line("▌")
        await screen.press("n")
        await screen.until(lambda before=before: screen.line("▌") != before and "NEEDS YOU" in screen.line("▌"))
        seen.append(screen.line("▌").split()[2])
    # The order is: blocked, false, failed.
    assert seen == ["auth", "docs", "api"]
    for key, name in (("n", "auth"), ("N", "api"), ("N", "docs")):
        await screen.press(key)
        await screen.at(name)


@journey({"ui.handoff.json": handoff("shop.ui"), **FAILED})
async def test_a_task_that_ends_is_new_until_it_was_looked_at(screen):
    await screen.shows("2 tasks", "1 needs you")
    await screen.find("shop.api")
    screen.write("ui.return.md", returned("SUCCESS", "shop.ui", "Done.", ""))
    await screen.shows("1 new")
    await screen.until(lambda: screen.row("shop.ui").startswith("•"))
    await screen.press("u")
    await screen.at("shop.ui")
    await screen.hides("1 new")
    await screen.press("U")
    await screen.shows("Nothing is new.")
    await screen.type("/shop.ui", "enter", "n", "w", "A")
    said = ["Inside the filter: nobody needs you now.", "asks nothing that could", "nothing to acknowledge here"]
    await screen.until(lambda: all(one in " ".join(screen.told) for one in said))


@journey({"ui.handoff.json": handoff("shop.ui"), **FAILED})
async def test_tasks_below_a_page_do_not_count_as_looked_at(screen):
    await screen.shows("2 tasks", "1 needs you")
    await screen.find("shop.ui")
    await screen.press("?")
    await screen.shows("Put aside")
    screen.write("ui.return.md", returned("SUCCESS", "shop.ui", "Done.", ""))
    await asyncio.sleep(4.0)
    await screen.press("escape")
    await screen.shows("1 new")
    await screen.hides("1 new")
    # A window without focus does not count as looked at either.
    screen.pilot.app.post_message(events.AppBlur())
    screen.write("ui.return.md", returned("PARTIAL", "shop.ui", "Half of it.", ""))
    await screen.shows("1 new")
    await asyncio.sleep(2.5)
    assert "1 new" in screen.text()
    screen.pilot.app.post_message(events.AppFocus())
    await screen.hides("1 new")


@journey({"ui.handoff.json": handoff("shop.ui"), **FAILED})
async def test_f_follows_what_changes(screen):
    await screen.shows("2 tasks")
    await screen.resize(200, 40)
    await screen.find("shop.api")
    # The footer dims refused actions, and highlights those that are switched on.
    await screen.until(lambda: screen.inks(" accept ") not in (screen.inks(" retry "), set()))
    off = screen.inks(" follow ")
    await screen.press("f")
    await screen.until(lambda: screen.inks(" follow ") not in (off, set()))
    screen.write("ui.return.md", returned("SUCCESS", "shop.ui", "Done.", ""))
    await screen.at("shop.ui")
    await screen.shows("1 new")
    await asyncio.sleep(2.5)
    assert "1 new" in screen.text()
    await screen.press("A")
    await screen.shows("“shop.ui”: 1 task")
    await screen.press("enter")
    await screen.hides("1 new")
    # Moving the cursor ends following.
    await screen.press("k")
    await screen.at("shop.api")
    screen.write("ui.return.md", returned("PARTIAL", "shop.ui", "Half of it.", ""))
    await screen.shows("1 new")
    assert screen.is_at("shop.api")


@journey({"ui.handoff.json": handoff("shop.ui"), "old.handoff.json": handoff("shop.old")}, "{shop}/missing/../")
async def test_a_click_selects_a_row_and_a_tab(screen):
    await screen.shows("shop.ui", "shop.old")
    await screen.click("shop.old")
    await screen.at("shop.old")
    await screen.shows("Overview")
    await screen.click("Raw")
    await screen.shows("old.handoff.json", '"task_id"')


@journey({})
async def test_a_child_that_ends_in_prose_has_no_return(screen):
    await screen.shows("● live")
    for path, text in child(screen.workspace, handoff("shop.totals"), "pytest", "ok", "It looks well kept."):
        write(path, text)
    await screen.until(lambda: "no return" in screen.row("shop.totals"))


@journey(FAILED, size=(80, 20))
async def test_c_copies_a_path_and_covers_no_key(screen):
    await screen.shows("NEEDS YOU")
    await screen.press("c")
    await screen.shows("Copied the path of api.return.md: ", "Needs you ✗ shop.api retry?", "r retry", "? keys")
    await screen.click("shop.api", times=2)
    await screen.shows("Overview", "hint Raise the time-out.")


@journey(SHOP, size=(80, 20))
async def test_a_click_in_the_strip_goes_to_the_task(screen):
    await screen.shows("answer: Which flow is in scope?", "retry? the child", "a claim is false", "3 need you")
    await screen.click("answer: Which flow is in scope?")
    await screen.at("auth")
    await screen.resize(80, 11)
    await screen.shows("Needs you ▌■ auth  answer: Which", "+2 more")
    await screen.press("n")
    await screen.shows("Needs you ▌⚑ docs  a claim is", "+2 more")


NAMES = ["plan", *(f"plan.c{number:02}" for number in range(30))]
DONE = {f"{name}.return.md": returned("SUCCESS", name, "Done.", "") for name in NAMES} | {
    f"{name}.handoff.json": handoff(name, parent_task_id="plan" if name != "plan" else None) for name in NAMES
}


@journey({**FAILED, **DONE}, size=(80, 24))
async def test_completed_tasks_start_folded_if_they_do_not_fit(screen):
    await screen.shows("NEEDS YOU")
    await screen.until(lambda: "▸" in screen.row("plan"))
    assert "30 of 30" in screen.row("plan")


@journey({"a.handoff.json": handoff("`web`"), "b.handoff.json": handoff("web"), "c.handoff.json": handoff("*x* # y")})
async def test_a_row_has_the_unchanged_id(screen):
    await screen.until(lambda: screen.row("`web`") and screen.row("web") and screen.row("*x* # y"))


STEPS = {
    **{f"{name}.handoff.json": handoff(name) for name in ("web", "web.a", "web.b")},
    "web.a.return.md": returned("SUCCESS", "web.a", "Done.", ""),
    "web.b.todos.md": "- [x] read\n- [-] write\n- [ ] test\n",
}


@journey(STEPS, size=(140, 30))
async def test_todos_and_tasks_below_are_counted_apart(screen):
    await screen.find("web.b", "b")
    await screen.shows("Handoff 1/3")
    for width in (140, 80, 60):
        await screen.resize(width, 24)
        await screen.until(lambda: "0 of 2" in screen.row("web") and re.search("━─+ +1/3", screen.row("b")))
