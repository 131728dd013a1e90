"""Makes the pictures of the README: plays the demo into a temporary workspace and photographs the app.

Run `python screenshots/make.py` from an environment in which agentwatch is installed. The SVG files stand beside this
script; nothing else is written.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from agentwatch.app.app import AgentwatchApp
from agentwatch.config import Settings
from agentwatch.demo.screenplay import demo_script
from agentwatch.monitor import Monitor
from agentwatch.sources.files.source import FilesSource
from agentwatch.sources.replay import Player

HERE: Final = Path(__file__).parent
STARTED_AT: Final = 1_790_000_000.0

WIDE: Final = (140, 40)
PICTURES: Final = (
    # name, theme, size, the second of the session, keys
    ("agentwatch-dark", "agentwatch-dark", WIDE, 48, ("n",)),
    ("agentwatch-light", "agentwatch-light", WIDE, 119, ("n",)),
    ("agentwatch-contrast", "agentwatch-contrast", WIDE, 119, ("n", "n")),
    ("blocked", "agentwatch-dark", WIDE, 119, ("n",)),
    ("findings", "agentwatch-dark", WIDE, 119, ("n", "n", "5")),
    ("false-claim", "agentwatch-dark", WIDE, 119, ("/", *"docs", "enter", "4")),
    ("narrow", "agentwatch-dark", (80, 24), 119, ("n",)),
    ("narrow-details", "agentwatch-dark", (80, 24), 119, ("n", "enter")),
)


async def photograph(name: str, theme: str, size: tuple[int, int], second: float, keys: tuple[str, ...]) -> None:
    """Save one picture of the demo as it looks at a second of its session."""
    with tempfile.TemporaryDirectory() as directory:
        workspace = Path(directory, "shop")
        workspace.mkdir()
        Player(demo_script(), workspace).play_all(until=second, started_at=STARTED_AT)

        def clock() -> float:
            return STARTED_AT + second

        settings = replace(Settings(), theme=theme, stale_after=60)
        app = AgentwatchApp(Monitor(workspace, settings, FilesSource(workspace), clock, inspects=True), clock)
        async with app.run_test(size=size) as pilot:
            while app.monitor.health.mode != "live":
                await pilot.pause(0.05)
            await pilot.pause(0.8)
            await pilot.press(*keys)
            await pilot.pause(0.2)
            (HERE / f"{name}.svg").write_text(_portable(app.export_screenshot()), "utf-8")


def _portable(picture: str) -> str:
    """The picture without fonts from the network, and with its spaces kept by every viewer."""
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    return picture.replace("<text ", '<text xml:space="preserve" ')


async def main() -> None:
    for picture in PICTURES:
        await photograph(*picture)


if __name__ == "__main__":
    asyncio.run(main())
