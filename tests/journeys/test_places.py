"""Which tasks the screen shows, in which window: several workspaces, machines, window sizes, recordings, the demo."""

import sys
from pathlib import Path

from agentwatch.delegation.decision import Stage
from agentwatch.delegation.events import Checked, Claim, Verdict
from agentwatch.history.recording import recording_lines
from tests.journeys.driver import AGENTWATCH, Screen, journey, run
from tests.journeys.made import FAILED, SHOP, decisions, handoff, returned
from tests.unit.delegation.asking import decided, ran, request, requested, session
from tests.unit.history.recorded import Workspace

TWO = {**FAILED, "../cart/pay.handoff.json": handoff("shop.api", "Pay."), "../cart/docs/api.md": "# API\n"}


@journey({**TWO, "../void/x.md": ""}, "{shop}", "{shop}/../cart", "{shop}/../void")
async def test_two_workspaces_are_one_tree(screen):
    await screen.shows("▾", "shop", "cart", "2 tasks", "1 needs you")
    await screen.until(lambda: "no tasks" in screen.row("void"))
    await screen.until(lambda: screen.text().count("shop.api") >= 2)
    await screen.press("n", "r")
    await screen.shows("◆ ctrl+s", "shop")
    await screen.press("ctrl+s")
    await screen.shows("recorded, delivered.")
    assert len(decisions(screen.workspace)) == 1
    assert not (screen.workspace.parent / "cart" / ".agentwatch" / "decisions").exists()


ODD = {"api.handoff.json": handoff("cart › shop.api"), "api.return.md": returned(task_id="cart › shop.api")}
ODD |= {f"../cart/{name}": text for name, text in FAILED.items()}


@journey(ODD, "{shop}", "{shop}/../cart")
async def test_no_id_looks_like_one_of_another_workspace(screen):
    await screen.shows("2 need you", "shop › cart > shop.api")
    assert screen.text().count("cart › ") == 1


PAST = {"old.return.md@80": returned(task_id="old"), "../cart/pay.handoff.json": handoff("pay")}


@journey(PAST, "{shop}", "{shop}/../cart")
async def test_past_tasks_of_another_workspace_are_history(screen):
    await screen.shows("NOW", "cart", "HISTORY 1 run")


@journey(SHOP)
async def test_a_window_that_shrinks_and_grows(screen):
    await screen.shows("Overview")
    await screen.resize(80, 24)
    await screen.hides("Overview")
    await screen.resize(20, 4)
    await screen.resize(1, 1)
    await screen.resize(140, 40)
    await screen.shows("Overview", "3 need you")


@journey({"api.handoff.json": handoff()})
async def test_a_watched_workspace_can_be_exported(screen):
    await screen.shows("submitted")
    screen.write("api.return.md", returned())
    await screen.shows("failed")
    # The screen shows a change a moment before the history is written.
    for number in range(20):
        exported = screen.home / f"shop{number}.jsonl"
        assert (await run(*AGENTWATCH, "log", screen.workspace, "--export", exported))[0] == 0
        if "The migration timed out." in exported.read_text("utf-8"):
            break
    else:
        raise AssertionError("it was never exported")


@journey({}, "replay", str(Path(__file__).with_name("shop.jsonl")), "--speed", "1000")
async def test_a_recording_plays_steps_and_goes_back(screen):
    await screen.press("]")
    await screen.shows("10 of 10", "2 need you")
    for key, shown in (
        (",", "9 of 10"),
        (",", "8 of 10"),
        (".", "9 of 10"),
        ("[", "1 of 10"),
        ("<", "500×"),
        (">", "1000×"),
    ):
        await screen.press(key)
        await screen.shows(shown)
    await screen.press("space")
    await screen.shows("10 of 10")
    await screen.press("n", "r")
    await screen.shows("2 need you", "This is a recording: you cannot act on it.")
    assert "ctrl+s" not in screen.text()


def recorded() -> str:
    """Return a recording with an old failure, a request that was answered, and a claim that is false."""
    files, now = Workspace(), 1_900_000_000.0
    asked = request(asked_at=now + 20)
    done = files.seen("new/x.return.md", returned("SUCCESS", more=""), at=now + 60)
    claim = Claim("created", "made.py", Verdict.CONTRADICTED, "missing", is_missing=True)
    events = [
        files.seen("old/y.return.md", returned(task_id="shop.old"), at=now - 20 * 86_400),
        ran(session(started_at=now, updated_at=now + 10)),
        requested(asked),
        decided(asked, stage=Stage.DELIVERED, at=now + 40),
        done,
        Checked(9, now + 61, done.path, done.digest, (claim,)),
    ]
    return "".join(recording_lines("shop", events, files.text_of, now - 3 * 86_400))


@journey({"../r.jsonl": recorded()}, "replay", "{shop}/../r.jsonl", "--speed", "1000")
async def test_a_recording_shows_what_live_showed(screen):
    await screen.press("]")
    await screen.shows("8 of 8", "HISTORY", "1 run since", "⚑")
    await screen.press(",")
    await screen.shows("7 of 8", "✓ shop.api")
    for _ in range(3):
        await screen.press(",")
    await screen.shows("4 of 8", "Bash")
    await screen.press("]")
    await screen.hides("npm test")


# In place of another machine, this ssh only starts the command in another home.
SSH = f"""#!/bin/sh
for command; do :; done
export HOME="$HOME/there" XDG_STATE_HOME="$HOME/there/state" PATH="{Path(sys.executable).parent}:$PATH"
mkdir -p "$HOME" && exec sh -c "$command"
"""
DONE = {"ok.handoff.json": handoff("shop.ok"), "ok.return.md": returned("SUCCESS", "shop.ok", more="")}
FAR = {"~/bin/ssh": SSH} | {f"~/far/{name}": text for name, text in (FAILED | DONE).items()}


async def there(screen: Screen, *words: str) -> tuple[int | None, str]:
    """Run a command about the workspace, as an agent on its host does."""
    line = " ".join(("agentwatch", *words, str(screen.home / "far")))
    return await run(screen.home / "bin" / "ssh", "build1", line)


@journey(FAR, "ssh://build1{home}/far")
async def test_the_same_return_again_ends_the_second_attempt(screen):
    await screen.shows("build1", "shop.api", "1 needs you", "retry? the child recommends it")
    screen.write("../home/far/api.handoff.json", handoff(objective="Build half of it."))
    await screen.hides("1 needs you")
    screen.write("../home/far/api.return.md", returned())
    await screen.shows("1 needs you")
    await screen.until(lambda: "↻2" in screen.row("shop.api") and "failed" in screen.row("shop.api"))


@journey(FAR, "ssh://build1{home}/far")
async def test_a_waiting_agent_gets_the_decision_made_there(screen):
    await screen.shows("1 needs you")
    assert (await there(screen, "wait", "shop.ok"))[0] == 8
    assert (await there(screen, "decide", "--retry", "--yes", "shop.api"))[0] == 0
    await screen.shows("retrying")
    code, printed = await there(screen, "wait", "shop.api")
    assert (code, '"retry"' in printed) == (0, True)
    await screen.shows("retry ◉ read")
