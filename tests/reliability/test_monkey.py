"""Random keys, clicks and window sizes while files change: no act of an operator ends the screen.
`AGENTWATCH_MONKEY=600 pytest tests/reliability/test_monkey.py` goes on for ten minutes; `AGENTWATCH_SEED` is the number
of the first round."""

import os
import random
import time
from itertools import count
from pathlib import Path

from textual import events

from tests.journeys.driver import Screen, journey
from tests.journeys.made import FAILURE, handoff, returned

SECONDS = float(os.environ.get("AGENTWATCH_MONKEY", "10"))
SEED = int(os.environ.get("AGENTWATCH_SEED", "0"))
RECORDING = Path(__file__).parents[1] / "journeys" / "shop.jsonl"
ACTS = 250
"""Acts of one round; each round begins with a new home."""
SIZES = ((140, 40), (80, 24), (60, 20), (40, 12), (30, 6), (12, 3), (200, 60), (1, 1))
KEYS = (
    *("ctrl+s", "ctrl+p", "escape", "enter", "enter", "tab", "shift+tab", "up", "down", "left", "right", "space"),
    *("pageup", "pagedown", "home", "end", "ctrl+n", "ctrl+t", "ctrl+e", "ctrl+u", "ctrl+d", "backspace", "delete"),
    *("f2", "f3", "f4", "f5", "f6", "ctrl+a", "ctrl+k", "ctrl+z", "ctrl+y", "ctrl+c", "ctrl+w", "shift+down"),
    *(".", ",", "<", ">", "[", "]"),
    *"nNuUfts!rexayRmAwZjkgGECSH/123456789dp-+=0zihloc?q ",
)
BURSTS = (("r", "ctrl+s", "ctrl+p"), ("x", "ctrl+s", "?"), ("ctrl+p", "pageup"), ("R", "ctrl+n"), ("/", "x", "down"))
STATES = {"ERROR": FAILURE, "COMPLETED": "", "BLOCKED": "blockers:\n- Which?\n", "WORKING": "", "PARTIAL": ""}


def change(screen: Screen, dice: random.Random):
    """Write a file as an agent does, or remove one."""
    name = f"shop.{dice.randrange(6)}"
    act = dice.randrange(4)
    if act == 0:
        attempt, parent = dice.randrange(1, 4), dice.choice([None, "shop.0"])
        screen.write(f"{name}.handoff.json", handoff(name, attempt=attempt, parent_task_id=parent))
    elif act == 1:
        (screen.workspace / f"{name}.return.md").unlink(missing_ok=True)
    elif act == 2:
        screen.write(f"{name}.return.md", dice.randbytes(300).decode("latin-1"))
    else:
        state = dice.choice(list(STATES))
        screen.write(f"{name}.return.md", returned(state, name, "\x1b[31m[bold]" * dice.randrange(3), STATES[state]))


def key(name: str) -> events.Key:
    """Return a key as a terminal sends it."""
    return events.Key(name, name if len(name) == 1 else None)


async def act(screen: Screen, dice: random.Random) -> str:
    """Do one random act, and return its name."""
    app = screen.pilot.app
    kind = dice.random()
    if kind < 0.08:
        size = dice.choice(SIZES)
        await screen.pilot.resize_terminal(*size)
        return f"resize {size}"
    if kind < 0.2:
        change(screen, dice)
        return "file"
    if kind < 0.35:
        offset = dice.randrange(app.size.width), dice.randrange(app.size.height)
        await screen.pilot.click(offset=offset, times=dice.choice([1, 1, 2]))
        return f"click {offset}"
    keys = dice.choice(BURSTS) if kind < 0.45 else dice.choices(KEYS, k=dice.choice([1, 1, 1, 2, 4]))
    for name in keys:
        app.post_message(key(name))
        if dice.random() < 0.1:
            await screen.pilot.pause(0.7 if dice.random() < 0.3 else 0.01)
    return " ".join(keys)


def test_no_key_and_no_click_ends_the_screen(tmp_path_factory, monkeypatch):
    end = time.monotonic() + SECONDS
    for seed in count(SEED):
        dice = random.Random(seed)
        done: list[str] = []

        @journey(FILES, *dice.choice([[], [], ["replay", str(RECORDING)]]), size=dice.choice(SIZES[:4]))
        async def wander(screen: Screen, dice: random.Random = dice, done: list[str] = done):
            await screen.until(lambda: "shop" in screen.text())
            while len(done) < ACTS and screen.pilot.app.is_running:
                done.append(await act(screen, dice))
                await screen.pilot.pause()

        try:
            with monkeypatch.context() as patch:
                wander(tmp_path_factory.mktemp("round"), patch)
        except BaseException as error:
            error.add_note(f"AGENTWATCH_SEED={seed}: …, {', '.join(done[-12:])}")
            raise
        print(seed, len(done), flush=True)
        if time.monotonic() > end:
            return


FILES = {
    "shop.0.handoff.json": handoff("shop.0"),
    **{f"shop.{n}.handoff.json": handoff(f"shop.{n}", parent_task_id="shop.0") for n in range(1, 5)},
    "shop.1.return.md": returned(task_id="shop.1"),
    "shop.2.return.md": returned("BLOCKED", "shop.2", "Which flow?", "blockers:\n- Which flow is in scope?\n"),
    "shop.3.return.md": returned("COMPLETED", "shop.3", "Done.", "", created="- missing.py"),
    "docs/api.md": "# API\n",
}
