"""Makes the pictures of README and manual, and the recording, beside this file; it needs the packages of the tests."""

import asyncio
import io
import json
import os
import re
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import time_machine
from rich.console import Console
from rich.style import Style
from rich.text import Text

from agentwatch.app.app import AgentwatchApp
from agentwatch.composition import build_desk, build_monitor
from agentwatch.config import Settings, config_directory
from agentwatch.delegation.events import Lost
from agentwatch.demo.orchestrator import Orchestrator
from agentwatch.demo.script import Player, demo_screenplay
from agentwatch.monitor import Monitor
from agentwatch.sources import Batch, Health, Problem
from agentwatch.sources.files.source import FilesSource
from agentwatch.state import state_directory
from agentwatch.workspaces import Place, Workspaces
from tests.terminal.emulator import Terminal, agentwatch
from tests.unit.claude_code.building import Store, meta, returned

HERE = Path(__file__).parent
BEGIN, WIDE = 1_790_000_000.0, (140, 40)
homes = partial(dict.fromkeys, ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"))  # Nobody's own are read or written


# A screen to photograph, for how many seconds to play before it, and how to bring the files to each of them.
Scene = tuple[AgentwatchApp, int, Callable[[int], object]]


def app_of(workspace: Path, settings: Settings) -> AgentwatchApp:
    """The screen of a workspace, as `agentwatch` opens it."""
    return AgentwatchApp(build_monitor(workspace, settings, open_desk=lambda: build_desk(workspace, settings)))


def demo(root: Path, settings: Settings, seconds: int = 110, *, asks: bool = False) -> Scene:
    """The session of the demo after so many seconds; a child `asks` for a permission."""
    (workspace := root / "shop").mkdir()
    play = demo_screenplay()
    player = Player(play.steps, workspace)
    agents = Orchestrator(workspace, state_directory(workspace), config_directory(), play, player)
    return app_of(workspace, settings), seconds, lambda now: (player.play(now, BEGIN), asks and agents.handle_news())


HOSTS = (  # Host, workspace, the second in which its demo begins, and for how long it runs, address
    ("build1", "shop", 0, 110, "/ssh:build1:/srv/shop"),
    ("build2", "api", 45, 40, "/ssh:build2:~/api"),
    ("box", "crawler", 90, 20, "/nats:box/9f2c4e6a8b0d1f35"),
)
WHY = "build2 cannot be reached: Connection timed out: `ssh build2` in a terminal says more"


class Machine(FilesSource):
    """A workspace as a host tells of it."""

    def start(self, emit: Callable[[Batch], None]) -> None:
        self.emit = emit
        super().start(emit)


def machines(root: Path, settings: Settings) -> Scene:
    """Three machines, one of which is lost at the end."""
    sources, players = {}, []
    for host, name, begin, length, address in HOSTS:
        (place := root / host / name).mkdir(parents=True)
        sources[address] = Machine(place)
        players.append((Player(demo_screenplay().steps, place), begin, length))

    def play(second: int) -> None:
        for player, begin, length in players:
            player.play(min(second - begin, length), BEGIN + begin)
        if second == 110:
            lost = Health("degraded", WHY, problems=(Problem("files", "build2", WHY),))
            sources[HOSTS[1][-1]].emit(Batch((Lost(0, BEGIN + 95),), lost))

    def open_one(place: Place) -> Monitor:
        return Monitor(place.workspace, settings, sources[str(place.workspace)], time.time, host=place.host)

    places = [Place(Path(address), f"{host}: {name}", host=host) for host, name, _, _, address in HOSTS]
    return AgentwatchApp(Workspaces(places, settings, open_one)), 110, play


WORK = ("vat_rules", "stock_feed", "login_flow", "search_index", "mail_templates", "gift_cards", "order_export")
ENDS = ("researched", "planned", "implemented", "partial", "failed")
CALLS = (  # Tool, its parameters, result, whether it failed
    ("Read", {"file_path": "src/export/invoice.py"}, "class Invoice:\n    total: Decimal", False),
    ("Bash", {"command": "pytest -q tests/export"}, "F..\n1 failed, 2 passed in 0.41s", True),
)


def aged(root: Path, settings: Settings) -> Scene:
    """A repository with two years of work behind it, in which a session of Claude Code is at work now."""
    store, workspace = Store(root), root / "shop"
    store.workspace = workspace
    for number in range(60):
        days = 0.4 if number == 0 else 1.2 if number < 3 else 5 + number * 11
        (directory := workspace / "specs" / f"{number + 11:03d}_{WORK[number % len(WORK)]}").mkdir(parents=True)
        for step, agent in enumerate(("researcher", "planner", "coder", "reviewer")[: 2 + number % 3]):
            path, then = directory / f".return-meta-{agent}.json", time.time() - days * 86_400 + step * 900
            status = ENDS[(number * 3 + step) % (5 if days > 5 else 3)]
            metadata = {"session_id": f"s_{number}_{step}", "agent_type": agent, "delegation_path": [agent]}
            document = {"status": status, "summary": f"By the {agent}.", "artifacts": [], "metadata": metadata}
            path.write_text(json.dumps(document))
            os.utime(path, (then, then))
    (workspace / "README.md").touch()
    # The session handed out three parts: one is done, one failed, one is at work.
    store.home, store.time = root / ".claude", datetime.now(UTC) - timedelta(seconds=200)
    main, logs = store.session(), {}
    main.asked("Ship the invoice export: schema, API and docs.")
    for name in ("schema", "docs", "api"):
        handed = {"handoff_schema": "composability.handoff_packet.v1", "task_id": f"export.{name}"}
        prompt = json.dumps(handed | {"objective": f"Build the {name} of the export"}, indent=1)
        main.delegated(f"call_{name}", prompt, description=f"the {name}")
        logs[name] = store.agent(name, meta(f"call_{name}", description=f"the {name}"))
        logs[name].asked(prompt)
    for name, state, summary in (("schema", "SUCCESS", "schema.json says it."), ("docs", "ERROR", "No sphinx.")):
        told = returned(["README.md"], summary, state=state)
        logs[name].said(told)
        main.returned(f"call_{name}", name, told)
    for tool, given, result, is_wrong in CALLS:
        logs["api"].used(tool, tool, **given)
        logs["api"].got(tool, result, error=is_wrong)
    store.time = datetime.now(UTC) - timedelta(seconds=12)
    logs["api"].used("Bash", "last", command="pytest -q tests/export")
    store.save()
    return app_of(workspace, settings), 0, int


PICTURES = (  # Name, theme, size, scene, keys
    ("agentwatch-dark", "dark", WIDE, partial(demo, seconds=89), "N"),
    ("agentwatch-light", "light", WIDE, demo, "N"),
    ("false-claim", "dark", WIDE, demo, "/ d o c s enter 5"),
    ("timeline", "dark", WIDE, demo, "t"),
    ("narrow", "dark", (80, 24), demo, "N"),
    ("retry", "dark", (100, 32), partial(demo, seconds=13), "n r"),
    ("request", "dark", (100, 24), partial(demo, seconds=64, asks=True), "a space"),
    ("now-dark", "dark", WIDE, aged, "n"),
    ("live-dark", "dark", (120, 26), aged, "/ e x p o r t . a p i enter G 2"),
    ("machines-dark", "dark", WIDE, machines, "n"),
)


async def photograph(name: str, theme: str, size: tuple[int, int], scene: Callable[..., Scene], keys: str) -> None:
    """Save one picture."""
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as root,
        patch.dict(os.environ, homes(root)),
        time_machine.travel(time.time() if scene is aged else BEGIN, tick=False) as clock,
    ):
        app, seconds, play = scene(Path(root), Settings()._replace(theme=f"agentwatch-{theme}", stale_after=60))
        async with app.run_test(size=size) as pilot:
            while not app.is_settled:
                await pilot.pause(0.05)
            # Step by step, so that what was rewritten is seen as it was before.
            for second in range(seconds + 1):
                play(second)
                await pilot.pause(0.03)
                clock.shift(1)
            await pilot.pause(1.5)
            await pilot.press(*keys.split())
            await pilot.pause(1.5)
            (HERE / f"{name}.svg").write_text(portable(app.export_screenshot()), "utf-8")


def portable(picture: str) -> str:
    """A picture without fonts from the network, and with its spaces kept by every viewer."""
    picture = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->", "", picture, flags=re.DOTALL)
    return picture.replace("<text ", '<text xml:space="preserve" ')


SIZE = {"columns": 104, "lines": 30}
STILL, SECONDS = 2, 2.7  # Of the picture that moves: the frame where nothing moves, and for how long each is shown
ACTS = (  # Keys, and the text that they bring
    ("", r"NEEDS YOU"),
    ("n", r"▌.*✗ api"),
    ("r", r"Retry"),
    ("raise the time-out first, then migrate", r"◆ ctrl\+s records this decision"),
    ("\x13", r"recorded"),
    ("", r"· acted"),
)


def record() -> None:
    """Play a decision in a real terminal: `decision.cast` (asciinema, version 2), and `decision.svg`, which moves."""
    written, frames = [], []
    with TemporaryDirectory() as home, Terminal(agentwatch("demo"), **SIZE, environment=homes(home)) as terminal:

        def until(pattern: str, seconds: float) -> None:
            """Note what is written when, until a pattern was seen and so many seconds have passed."""
            end = time.monotonic() + seconds
            note = lambda: written.append((time.monotonic(), len(terminal.written)))  # noqa: E731
            terminal.wait_until(lambda: note() or (time.monotonic() > end and re.search(pattern, terminal.text())))

        for keys, pattern in ACTS:
            for key in keys:
                terminal.press(key)
                until("", 0.07)
            until(pattern, 1.2)
            frames.append(frame(terminal, len(frames)))
        terminal.press("q")
        terminal.wait_until_exit()
    lines = [json.dumps({"version": 2, "width": SIZE["columns"], "height": SIZE["lines"], "idle_time_limit": 1.6})]
    for (_, start), (moment, end) in pairwise(written):
        if end > start:
            printed = terminal.written[start:end].decode("utf-8", "replace")
            lines.append(json.dumps([moment - written[0][0], "o", printed]))
    (HERE / "decision.cast").write_text("\n".join(lines) + "\n", "utf-8")
    whole, box = len(frames) * SECONDS, re.findall(r'viewBox="[^"]*"', frames[0])[0]
    turn = f"0%{{visibility:visible}}{100 / len(frames):.2f}%,100%{{visibility:hidden}}"
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {box}><style>@keyframes turn {{{turn}}}</style>\n'
    for number, picture in enumerate(frames):
        style = f"animation:turn {whole}s {number * SECONDS - whole:.1f}s step-end infinite"
        svg += f'<g visibility="{"visible" if number == STILL else "hidden"}" style="{style}">{picture}</g>\n'
    (HERE / "decision.svg").write_text(f"{svg}</svg>\n", "utf-8")


def frame(terminal: Terminal, number: int) -> str:
    """The screen of a terminal as a picture."""
    console = Console(width=SIZE["columns"], record=True, file=io.StringIO())
    for line in range(SIZE["lines"]):
        cells, text = [terminal.screen.buffer[line][column] for column in range(SIZE["columns"])], Text()
        for cell, run in groupby(cells, key=lambda cell: cell._replace(data="")):
            ink, paper = (re.sub(r"^[0-9a-f]{6}$", r"#\g<0>", name) for name in (cell.fg, cell.bg))
            style = Style(color=ink, bgcolor=paper, bold=cell.bold, reverse=cell.reverse)
            text.append("".join(one.data for one in run), style)
        console.print(text)
    return portable(console.export_svg(title="agentwatch demo", unique_id=f"f{number}"))


if __name__ == "__main__":
    for picture in PICTURES:
        if picture[0] in (sys.argv[1:] or [picture[0]]):
            asyncio.run(photograph(*picture))
    if "decision" in (sys.argv[1:] or ["decision"]):
        record()
