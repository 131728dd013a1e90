"""Makes the pictures of README and manual: of the demo, played into a temporary workspace, of an aged repository, and
of several machines.

Run `python -m screenshots.make [NAME ...]` where the tests' packages are installed. The SVG files stand beside this
script; nothing else is written.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Final
from unittest.mock import patch

from agentwatch.app.app import AgentwatchApp
from agentwatch.composition import desk_of, monitor_of
from agentwatch.config import Settings
from agentwatch.decisions.service import DecisionService
from agentwatch.demo.orchestrator import ASKS_AT, Orchestrator
from agentwatch.demo.script import Player, demo_screenplay
from agentwatch.monitor import Monitor
from agentwatch.requests.inbox import Inbox
from agentwatch.requests.store import RequestStore
from agentwatch.sources.files import source as documents
from agentwatch.sources.files.source import FilesSource
from screenshots.aged import aged
from screenshots.machines import LOST, fleet

HERE: Final = Path(__file__).parent
STARTED_AT: Final = 1_790_000_000.0

WIDE: Final = (140, 40)
PICTURES: Final = (
    # name, theme, size, the second of the session, keys
    ("agentwatch-dark", "agentwatch-dark", WIDE, 89, ("N",)),
    ("agentwatch-light", "agentwatch-light", WIDE, 110, ("N",)),
    ("agentwatch-contrast", "agentwatch-contrast", WIDE, 110, ("n", "n")),
    ("blocked", "agentwatch-dark", WIDE, 110, ("N",)),
    ("findings", "agentwatch-dark", WIDE, 110, ("n", "n", "6")),
    ("false-claim", "agentwatch-dark", WIDE, 110, ("/", *"docs", "enter", "5")),
    ("timeline", "agentwatch-dark", WIDE, 110, ("t",)),
    ("attempts", "agentwatch-dark", WIDE, 110, ("/", *"api", "enter", "7")),
    ("retry", "agentwatch-dark", (100, 32), 13, ("n", "r")),
    ("request", "agentwatch-dark", (100, 24), 64, ("a", "space")),
    ("narrow", "agentwatch-dark", (80, 24), 110, ("N",)),
    ("narrow-details", "agentwatch-dark", (80, 24), 110, ("N", "enter")),
)

AGED: Final = (
    # name, theme, size, keys
    ("now-dark", "agentwatch-dark", WIDE, ("n",)),
    ("now-light", "agentwatch-light", WIDE, ("n",)),
    ("now-narrow", "agentwatch-dark", (80, 24), ("n",)),
    ("live-dark", "agentwatch-dark", (120, 26), ("/", *"export.api", "enter", "G", "2")),
    ("live-light", "agentwatch-light", (120, 26), ("/", *"export.api", "enter", "G", "2")),
)
"""Of a repository with years of work behind it, in which a session is at work."""


MACHINES: Final = (
    # name, theme, size, keys
    ("machines-dark", "agentwatch-dark", WIDE, ("n",)),
    ("machines-light", "agentwatch-light", WIDE, ("n",)),
    ("machines-narrow", "agentwatch-dark", (80, 24), ("n",)),
)
"""Of three machines, one of which cannot be reached any more."""


async def photograph_aged(name: str, theme: str, size: tuple[int, int], keys: tuple[str, ...]) -> None:
    """Save one picture of an aged repository, as it looks when agentwatch is started there."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        workspace, environment = aged(Path(directory))
        with patch.dict(os.environ, environment):
            settings = Settings()._replace(theme=theme)
            monitor = monitor_of(workspace, settings, open_desk=lambda: desk_of(workspace, settings))
            app = AgentwatchApp(monitor)
            async with app.run_test(size=size) as pilot:
                while not app.is_settled or monitor.clerk is None:
                    await pilot.pause(0.05)
                await pilot.pause(1.0)
                await pilot.press(*keys)
                await pilot.pause(1.5)
                (HERE / f"{name}.svg").write_text(_portable(app.export_screenshot()), "utf-8")


async def photograph(name: str, theme: str, size: tuple[int, int], second: int, keys: tuple[str, ...]) -> None:
    """Save one picture of the demo as it looks at a second of its session."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        workspace = Path(directory, "shop")
        workspace.mkdir()
        play = demo_screenplay()
        player = Player(play.steps, workspace)
        now = STARTED_AT
        player.play(0, STARTED_AT)

        state, configuration = Path(directory, "agentwatch", "shop"), Path(directory, "configuration")
        places = workspace, state, configuration
        agents = Orchestrator(*places, play, player, clock=lambda: STARTED_AT + ASKS_AT)

        def open_desk() -> DecisionService:
            return DecisionService(workspace, state=state, configuration=configuration)

        def open_inbox() -> Inbox:
            return Inbox(RequestStore(workspace, state=state))

        settings = Settings()._replace(theme=theme, stale_after=60)
        source = FilesSource(workspace)
        # The other pictures are of decisions about attempts.
        inbox = open_inbox if name == "request" else None
        monitor = Monitor(
            workspace, settings, source, lambda: now, inspects=True, open_desk=open_desk, open_inbox=inbox
        )
        app = AgentwatchApp(monitor, lambda: now)
        # A file that is seen long after its own time would be as old as the moment in which it was seen.
        clock = SimpleNamespace(**vars(time) | {"time": lambda: now})
        with patch.object(documents, "time", clock):
            async with app.run_test(size=size) as pilot:
                while monitor.health.mode != "live" or monitor.clerk is None:
                    await pilot.pause(0.05)
                # Step by step, so that what was rewritten is seen as it was before.
                for moment in range(1, second + 1):
                    now = STARTED_AT + moment
                    player.play(moment, STARTED_AT)
                    if inbox is not None:
                        agents.attend()
                    await pilot.pause(0.03)
                await pilot.pause(1.5)
                await pilot.press(*keys)
                await pilot.pause(1.0)
                (HERE / f"{name}.svg").write_text(_portable(app.export_screenshot()), "utf-8")
        agents.leave()


async def photograph_machines(name: str, theme: str, size: tuple[int, int], keys: tuple[str, ...]) -> None:
    """Save one picture of several machines, three minutes after one of them was lost."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        now = STARTED_AT
        settings = Settings()._replace(theme=theme, stale_after=60)
        monitor, machines = fleet(Path(directory), demo_screenplay().steps, settings, lambda: now)
        app = AgentwatchApp(monitor, lambda: now)
        clock = SimpleNamespace(**vars(time) | {"time": lambda: now})
        with patch.object(documents, "time", clock):
            for one in machines:
                one.play(0, STARTED_AT)
            async with app.run_test(size=size) as pilot:
                while not app.is_settled:
                    await pilot.pause(0.05)
                for moment in range(1, 111):
                    now = STARTED_AT + moment
                    for one in machines:
                        one.play(moment - (110 - one.seconds), STARTED_AT + 110 - one.seconds)
                    await pilot.pause(0.03)
                await pilot.pause(1.5)
                for one in machines:
                    if one.host == LOST:
                        one.lose(now - 15)
                await pilot.pause(1.0)
                await pilot.press(*keys)
                await pilot.pause(1.0)
                (HERE / f"{name}.svg").write_text(_portable(app.export_screenshot()), "utf-8")


def _portable(picture: str) -> str:
    """The picture without fonts from the network, and with its spaces kept by every viewer."""
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    return picture.replace("<text ", '<text xml:space="preserve" ')


async def main() -> None:
    wanted = sys.argv[1:]
    for picture in PICTURES:
        if not wanted or picture[0] in wanted:
            await photograph(*picture)
    for scene in AGED:
        if not wanted or scene[0] in wanted:
            await photograph_aged(*scene)
    for shot in MACHINES:
        if not wanted or shot[0] in wanted:
            await photograph_machines(*shot)


if __name__ == "__main__":
    asyncio.run(main())
