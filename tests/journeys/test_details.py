"""The details of a task: their tabs, its claims against the disk and the log, its transcript, its files."""

import time

from tests.journeys.driver import journey, write
from tests.journeys.made import FAILED, SESSION, SHOP, called, child, handoff, returned, said, session

TABS = {
    "1": "asked Build the API.",
    "2": "Only files speak of this task, so there is no transcript.",
    "3": "criteria",
    "4": "summary The migration timed out.",
    "5": "model some/model",
    "6": "no findings: keeps its contract",
    "7": "Only one attempt is known.",
    "8": "Return api.return.md",
}


@journey(FAILED)
async def test_each_number_opens_a_tab(screen):
    await screen.shows("Overview Live Handoff Return Attestation Findings Attempts Raw")
    for key, words in TABS.items():
        await screen.press(key)
        await screen.shows(words)


@journey(FAILED)
async def test_arrow_keys_lead_through_the_tabs(screen):
    await screen.shows("Overview", "asked Build the API.")
    screen.press_ahead("tab", "right", "l", "right")
    await screen.shows(TABS["4"])
    await screen.press("h", "left")
    await screen.shows(TABS["2"])
    while "No transcript is shown: the Live tab of a session's task has it." not in screen.words():
        await screen.press("p")


@journey(FAILED, size=(80, 24))
async def test_in_a_narrow_window_details_are_a_page(screen):
    await screen.shows("NEEDS YOU")
    assert "Overview" not in screen.text()
    await screen.press("enter")
    await screen.shows("Overview", "asked Build the API.", "esc back")
    await screen.press("space", "pagedown", "end", "home", "escape")
    await screen.hides("Overview")
    await screen.press("enter")
    await screen.shows("Overview")
    await screen.type("/api")
    await screen.shows("/ api", "1 found", "NEEDS YOU")


@journey(FAILED, size=(120, 30))
async def test_z_gives_the_details_the_whole_width(screen):
    await screen.shows("Overview", "▌  ✗ shop.api")
    await screen.press("z")
    await screen.hides("▌  ✗ shop.api")
    await screen.shows("z whole width", "esc back", "Needs you ▌✗ shop.api")
    await screen.press("4")
    await screen.shows(TABS["4"])
    await screen.press("z")
    await screen.shows("▌  ✗ shop.api", TABS["4"])
    await screen.press("z", "escape")
    await screen.shows("▌  ✗ shop.api", TABS["4"], "enter open")


@journey(FAILED)
async def test_attempts_show_what_a_retry_changed(screen):
    await screen.shows("NEEDS YOU", "Overview")
    screen.write("api2.handoff.json", handoff(objective="Build the API, schema first.", attempt=2))
    await screen.shows("↻2", "Attempts 2")
    await screen.press("7")
    await screen.shows("Build the API, schema first.", "Build the API.")
    screen.write("api3.handoff.json", handoff(objective="Build half of it.", attempt=3))
    await screen.shows("Build half of it.")
    await screen.press("tab", "-", "-", "-")
    await screen.hides("Build half of it.")
    await screen.press("+")
    await screen.shows("Build half of it.")
    await screen.press("c")
    await screen.shows("Copied the path of api3.handoff.json: ")


@journey(SHOP)
async def test_a_false_claim_leads_to_what_is_on_disk(screen):
    await screen.shows("3 need you")
    await screen.find("shop.docs", "docs")
    await screen.press("5")
    await screen.shows("Attestation 1!", "⚑ false docs/guide.md", "missing: no such file", "✓ verified docs/api.md")
    await screen.press("tab", "j", "j", "enter")
    await screen.shows("1 │ # API", "Difference since the handoff")
    await screen.press("d")
    await screen.shows("not in a git repository")
    await screen.press("escape")
    await screen.shows("⚑ false docs/guide.md", "⚑ 1 false")
    screen.write("docs/guide.md", "# Guide\n")
    await screen.until(lambda: "completed" in screen.row("docs"))
    await screen.hides("⚑ 1 false")


FAILS = "= short test summary info =\nFAILED test_totals.py::test_cents\n==== 1 failed, 13 passed in 0.31s ===="


@journey({})
async def test_a_claimed_test_run_leads_to_its_output(screen):
    await screen.shows("● live")
    report = returned("SUCCESS", "shop.totals", "All tests pass.", "", evidence="pytest: 14 passed")
    output = "".join(f"test_{number}.py .\n" for number in range(80)) + FAILS
    for path, text in child(screen.workspace, handoff("shop.totals"), "pytest", output, report):
        write(path, text)
    await screen.shows("totals")
    await screen.until(lambda: "false" in screen.row("shop.totals"))
    await screen.press("G", "5")
    await screen.shows("⚑ false pytest: 14 passed")
    await screen.press("tab", "j", "enter")
    # The end of the output is in sight.
    await screen.shows("1 failed, 13 passed", "Bash pytest", "test_79.py")
    assert "test_0.py" not in screen.text()


@journey({})
async def test_the_live_tab_follows_a_transcript(screen):
    await screen.shows("● live")
    path, text = session(screen.workspace)
    write(path, text)
    await screen.shows("Export the invoices.", "Bash npm test -- --watch=false", "working")
    await screen.press("2")
    await screen.shows("› Export the invoices.", "I read the totals first.", "◐ Bash npm test")
    cwd = str(screen.workspace)
    text += called(time.time(), SESSION, cwd, "Edit", {"file_path": f"{cwd}/src/form.tsx"})
    text += called(time.time(), SESSION, cwd, "Bash", {"command": f"cd {cwd} && ls '{cwd}/a b'"})
    write(path, text)
    await screen.shows("◐ Edit src/form.tsx", "◐ Bash cd . && ls 'a b'")
    text += said(time.time(), SESSION, cwd, {"type": "text", "text": "The cents differ."})
    write(path, text)
    await screen.shows("The cents differ.")
    await screen.press("tab", *["up"] * 4, "enter")
    await screen.shows("I read the totals first.", "words", "esc back")


@journey({})
async def test_the_live_tab_finds_words_of_results_and_of_the_called(screen):
    await screen.shows("● live")
    report = returned("SUCCESS", "shop.totals", "All tests pass.", "")
    for path, text in child(screen.workspace, handoff("shop.totals"), "pytest", FAILS, report):
        write(path, text)
    await screen.until(lambda: screen.row("shop.totals"))
    await screen.press("G", "2")
    await screen.shows("✗ Bash pytest", "Status state: SUCCESS")
    await screen.press("tab")
    await screen.type("/test_cents", "enter")
    await screen.hides("Status state: SUCCESS")
    await screen.shows("✗ Bash pytest")
    await screen.press("escape", "shift+tab", "g", "tab")
    await screen.shows("npm test", "I read the totals first.")
    await screen.type("/shop.totals", "enter")
    await screen.hides("npm test", "I read the totals first.")
    await screen.shows("◐ Agent ▸ shop.totals")
