"""Drives the app in a test by what an operator sees and presses."""

import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from textual.pilot import Pilot
from textual.strip import Strip

from agentwatch.app.app import AgentwatchApp
from agentwatch.app.screens.main import MainScreen
from agentwatch.app.widgets.details.pane import DetailsPane
from agentwatch.app.widgets.tree import TaskTree
from agentwatch.config import Settings
from agentwatch.delegation.events import Event
from agentwatch.sources import Health
from tests.app.scenes import LIVE, NOW, Scene, ToldSource, monitor_of, shop

_DEADLINE = 30.0
"""Seconds until a condition that does not come true fails the test."""


@dataclass
class Stage:
    """A running app, and what tests ask of it."""

    app: AgentwatchApp
    pilot: Pilot[None]
    source: ToldSource
    scene: Scene

    @property
    def main(self) -> MainScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, MainScreen)
        return screen

    @property
    def tree(self) -> TaskTree:
        return self.main.task_tree

    @property
    def cursor(self) -> str | None:
        return self.tree.cursor_id

    def row_ids(self) -> list[str]:
        """The task ids of the rows in order; headings have none."""
        return [row.task_id for row in self.tree.rows if row.task_id is not None]

    @property
    def details(self) -> DetailsPane:
        assert self.main.details is not None
        return self.main.details

    @property
    def in_details(self) -> bool:
        return self.details.has_focus_within

    def settle(self):
        """The first scan is over, without the time in which more might come."""
        self.app.settle()

    async def until(self, holds: Callable[[], object]):
        """Wait for a condition."""
        end = time.monotonic() + _DEADLINE
        while not holds():
            assert time.monotonic() < end, f"did not come true: {self.text()}"
            await self.pilot.pause(0.01)

    async def resize(self, width: int, height: int):
        """Give the terminal another size, and wait until the screen has it: on a busy machine a key may overtake it."""
        await self.pilot.resize_terminal(width, height)
        await self.until(lambda: self.app.screen.size == (width, height))
        await self.pilot.pause()

    async def press(self, *keys: str):
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def choose(self, key: str, answer: str = "enter"):
        """Open a question of ours with a key, and answer it."""
        await self.press(key)
        await self.answer(answer)

    async def answer(self, key: str = "enter"):
        """Answer a question of ours once that counts."""
        await self.until(lambda: "· esc leave" in self.text() and "in a moment" not in self.text())
        await self.press(key)

    async def see(self, *ids: str):
        """Let the source see what the scene has collected, and wait until these tasks are in the tree."""
        self.source.push(self.scene.take())
        await self.until(lambda: all(task_id in self.app.monitor.tree.tasks for task_id in ids))
        await self.shown()

    async def shown(self):
        """Wait until the rows are those of the tree."""
        tree = self.app.monitor.tree
        await self.until(lambda: all(task_id in tree.tasks for task_id in self.row_ids()))
        await self.until(lambda: not tree.roots or tree.roots[-1] in self.row_ids() or self.main.filter_bar.sought)
        await self.pilot.pause()

    @property
    def is_told(self) -> bool:
        """Whether the tree has all that the source has seen, and the screens were told of it."""
        monitor = self.app.monitor
        return monitor.health is self.source.health and not monitor._pending and self.app.is_idle

    @property
    def is_drawn(self) -> bool:
        """Whether the tree is on the screen."""
        return bool(self.tree.row_count and self.tree.size and self.tree.render_line(0).text.strip())

    def strips(self) -> list[Strip]:
        """What the compositor would write, line by line."""
        return self.app.screen._compositor.render_strips()

    def text(self) -> str:
        """The screen as text."""
        return "\n".join(strip.text.rstrip() for strip in self.strips())

    def line(self, part: str) -> str:
        """The first screen line that holds the part."""
        lines = [line for line in self.text().splitlines() if part in line]
        assert lines, f"{part!r} is not on screen: {self.text()}"
        return lines[0]


@asynccontextmanager
async def stage(
    events: Iterable[Event] | None = None,
    size: tuple[int, int] = (140, 40),
    *,
    scene: Scene | None = None,
    health: Health = LIVE,
    settings: Settings | None = None,
    clock: Callable[[], float] = lambda: NOW,
    workspace: str = "/home/kim/shop",
    settled: bool = True,
) -> AsyncIterator[Stage]:
    """The app on the sketch's session, or on other observations: all of them are in the tree and in its rows.

    Unless `settled` is False, the first scan is over: nothing folds by itself while the test goes on.
    """
    scene = scene or shop()
    first = scene.take() if events is None else tuple(events)
    monitor, source = monitor_of(first, health=health, settings=settings, clock=clock, workspace=workspace)
    app = AgentwatchApp(monitor, clock)
    async with app.run_test(size=size, notifications=True) as pilot:
        stage = Stage(app, pilot, source, scene)
        await stage.until(lambda: stage.main.details and stage.is_told)
        if first:
            # What folds depends on the room that there is.
            await stage.until(lambda: stage.is_drawn)
        if settled and health.mode != "starting":
            stage.settle()
        await pilot.pause()
        yield stage
