"""A screen as an operator has it: a test runs the command, presses keys and the mouse, and reads text.

The command runs in this process, with a home and a workspace in temporary directories. Only Textual's own `App.run` is
replaced, by Textual's own pilot: this module names nothing of agentwatch but its entry point."""

import asyncio
import inspect
import os
import re
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual._compositor import Compositor
from textual.app import App
from textual.errors import NoWidget
from textual.map_geometry import MapGeometry
from textual.message import Message
from textual.notifications import Notify
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widget import Widget

from agentwatch.__main__ import main
from tests.homes import live_in

DEADLINE = float(os.environ.get("AGENTWATCH_DEADLINE", "30"))
"""Seconds after which a journey fails if an expected text does not appear; this measures nothing."""
FRAMES = str.maketrans("║│┆┊┃╭╮╰╯─═╔╗╚╝▌━╟╢", " " * 19)


@dataclass
class Screen:
    """A running screen. `home` and `workspace` are its directories, `told` the notifications that it has shown."""

    pilot: Pilot[Any]
    home: Path
    workspace: Path
    told: list[str]

    def strips(self) -> list[Strip]:
        """Return the lines as they are drawn: each widget in its place, above those that it covers."""
        screen, places = self.pilot.app.screen, list[tuple[MapGeometry, Widget]]()
        strips = [Strip.blank(screen.size.width)] * screen.size.height
        for widget in screen.walk_children(Widget, with_self=True):
            with suppress(NoWidget):
                places.append((screen.find_widget(widget), widget))
        for place, widget in sorted(places, key=lambda one: one[0].order):
            if seen := place.visible_region.intersection(screen.region):
                for y, strip in enumerate(widget.render_lines(seen.translate(-place.region.offset)), seen.y):
                    strips[y] = Strip.join([strips[y].crop(0, seen.x), strip, strips[y].crop(seen.right)])
        return strips

    def text(self) -> str:
        """Return the lines of the screen."""
        return "\n".join(strip.text.rstrip() for strip in self.strips())

    def words(self) -> str:
        """Return the lines as running text, without frames."""
        return " ".join(self.text().translate(FRAMES).split())

    def finds(self, *parts: str) -> list[bool]:
        """Tell for each of these texts whether it is on the screen, in a line or as running text."""
        text = self.text()
        words = " ".join(text.translate(FRAMES).split())
        return [part in text or part in words for part in parts]

    def line(self, part: str) -> str:
        """Return the first line that holds `part`, or "" if there is none."""
        return next((line for line in self.text().splitlines() if part in line), "")

    def row(self, name: str) -> str:
        """Return the row of a task in the tree, or "" if there is none."""
        begin = re.compile(rf"[▌◆•▸▾│┃ ]*\S {re.escape(name)}(?!\w)")
        return next((line for line in self.text().splitlines() if begin.match(line)), "")

    def inks(self, text: str) -> set[object]:
        """Return the colours in which `text` is written."""
        return {part.style.color for strip in self.strips() for part in strip if part.style and part.text == text}

    def is_at(self, name: str) -> bool:
        """Whether the cursor is on this task."""
        return self.row(name).startswith("▌")

    async def at(self, name: str):
        """Wait until the cursor is on this task."""
        await self.until(lambda: self.is_at(name))

    async def until(self, holds: Callable[[], object]):
        """Wait for a condition. It is asked again when something was drawn, and five times a second."""
        end, drawn = time.monotonic() + DEADLINE, asyncio.Event()
        self.pilot.app.post_display_hook = drawn.set  # type: ignore[method-assign]
        while not holds():
            assert time.monotonic() < end, f"did not come true:\n{self.text()}\nit said: {self.told}"
            assert self.pilot.app.is_running, "the screen has ended"
            with suppress(TimeoutError):
                async with asyncio.timeout(0.2):
                    await drawn.wait()
            drawn.clear()
            await self.pilot.pause(0.02)

    async def shows(self, *parts: str):
        """Wait until all of these texts are on the screen."""
        await self.until(lambda: all(self.finds(*parts)))

    async def hides(self, *parts: str):
        """Wait until none of these texts is on the screen."""
        await self.until(lambda: not any(self.finds(*parts)))

    async def press(self, *keys: str):
        """Press keys by their names; use `type` for a text of several words or letters."""
        await self.pilot.press(*keys)

    def press_ahead(self, *keys: str):
        """Press keys at once, as a terminal delivers them: each waits in the queue while the one before acts."""
        for key in keys:
            self.pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))

    async def type(self, text: str, *keys: str):
        """Type a text, and press keys after it."""
        await self.pilot.press(*text, *keys)

    async def find(self, text: str, name: str = ""):
        """Find a task by this text in the filter, go to it, and clear the filter."""
        await self.type(f"/{text}", "enter", "escape")
        await self.at(name or text)

    async def click(self, part: str, **how: Any):
        """Click on the first place on the screen that shows `part`."""
        lines = self.text().splitlines()
        y = next(number for number, line in enumerate(lines) if part in line)
        await self.pilot.click(offset=(lines[y].index(part), y), **how)

    async def ends(self):
        """Wait until the screen has ended."""
        end = time.monotonic() + DEADLINE
        while self.pilot.app.is_running:
            assert time.monotonic() < end, f"did not end:\n{self.text()}"
            await asyncio.sleep(0.02)

    async def resize(self, width: int, height: int):
        """Give the window another size."""
        await self.pilot.resize_terminal(width, height)
        await self.until(lambda: self.pilot.app.screen.region.size == (width, height))

    def write(self, name: str, text: str):
        """Write a file of the workspace in one step, as agents should."""
        write(self.workspace / name, text)


AGENTWATCH = (sys.executable, "-m", "agentwatch")


async def run(*words: str | Path) -> tuple[int | None, str]:
    """Run a command beside the screen, and return its exit code and its output."""
    process = await asyncio.create_subprocess_exec(*words, stdout=PIPE)
    async with asyncio.timeout(DEADLINE):
        printed, _ = await process.communicate()
    return process.returncode, printed.decode()


@asynccontextmanager
async def running(app: App[Any], size: tuple[int, int] = (140, 40)) -> AsyncIterator[tuple[Pilot[Any], list[str]]]:
    """Run the app on a terminal of this size; yields its pilot, and the list of notifications that it shows."""
    told = list[str]()

    def listen(message: Message):
        if isinstance(message, Notify):
            told.append(message.notification.message)

    draw = Compositor.render_update

    def draw_pictures(compositor: Compositor, full: bool = False, **more: Any) -> object:
        return draw(compositor, full, **more) if full else None

    with pytest.MonkeyPatch.context() as patch:
        # `strips` draws what a test looks at. To draw each frame, which nobody sees, would take a third more time.
        patch.setattr(Compositor, "render_update", draw_pictures)
        async with app.run_test(size=size, notifications=True, message_hook=listen) as pilot:
            yield pilot, told


Act = Callable[..., Awaitable[None]]


def write(path: Path, text: str):
    """Write a file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, "utf-8")
    part.replace(path)


def start(monkeypatch: pytest.MonkeyPatch, arguments: list[str], show: Callable[[App[Any]], Any]) -> object:
    """Run the command line as if on a terminal, and return the exit code; `show` gets the app in place of `App.run`."""
    monkeypatch.setattr(App, "run", lambda app, **_: show(app))
    monkeypatch.setattr(os, "_exit", lambda code: None)
    monkeypatch.setattr(sys, "argv", ["agentwatch", *arguments])
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str]) -> tuple[Path, Path]:
    """Make a home and a workspace with these files: `~/` before a name means the home, and `@DAYS` behind it the age of
    the file. Programs in `~/bin` can be run."""
    home, workspace = tmp_path / "home", tmp_path / "shop"
    workspace.mkdir()
    live_in(home, monkeypatch)
    for name, value in {"TERM": "xterm-256color", "COLORTERM": "truecolor", "TZ": "UTC"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
    for name in ("NO_COLOR", "EDITOR", "VISUAL", "PAGER", "DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    for named, text in files.items():
        name, _, days = named.partition("@")
        path = home / name[2:] if name.startswith("~/") else workspace / name
        write(path, text)
        os.utime(path, (time.time() - float(days or 0) * 86_400,) * 2)
        path.chmod(0o755 if path.parent == home / "bin" else 0o644)
    return home, workspace


def journey(files: Mapping[str, str], *arguments: str, size: tuple[int, int] = (140, 40)) -> Callable[[Act], Any]:
    """Make a test of a journey, which gets the screen that `agentwatch shop …` shows of these files. `arguments`, if
    given, replace `shop`; `{shop}` in them is its directory."""

    def wrap(act: Act) -> Callable[..., None]:
        @wraps(act)
        def test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **more: Any):
            home, workspace = at_home(tmp_path, monkeypatch, files)

            async def drive(app: App[Any]):
                async with running(app, size) as (pilot, told):
                    await act(Screen(pilot, home, workspace, told), **more)

            words = [word.format(shop=workspace, home=home) for word in arguments or ("{shop}",)]
            start(monkeypatch, words, lambda app: asyncio.run(drive(app)))

        own = [one for one in inspect.signature(act).parameters.values() if one.name != "screen"]
        given = [one for one in inspect.signature(test, follow_wrapped=False).parameters.values() if one.name != "more"]
        test.__signature__ = inspect.Signature([*given, *own])  # type: ignore[attr-defined]
        return test

    return wrap
