"""The screen on a scene, or on a workspace with a desk, driven through the keys and the text that an operator has."""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agentwatch.app.app import AgentwatchApp
from agentwatch.app.dialogs.dialog import ARMING_SECONDS, DecisionScreen
from agentwatch.app.screens.main import MainScreen
from agentwatch.app.widgets.details.pane import DetailsPane
from agentwatch.app.widgets.tree import TaskTree
from agentwatch.config import Settings
from agentwatch.decisions.ledger import ChainEntry
from agentwatch.decisions.service import DecisionService
from agentwatch.monitor import Monitor
from agentwatch.requests.inbox import Inbox
from agentwatch.requests.store import RequestStore
from agentwatch.sources import Health
from agentwatch.sources.files.source import FilesSource
from tests.app.scenes import LIVE, NOW, Scene, ToldSource, monitor_of, shop
from tests.journeys.driver import Screen, running, write
from tests.journeys.made import handoff, returned
from tests.unit.decisions.made import QUICK

FAILED = {"api.handoff.json": handoff(), "api.return.md": returned()}
"""The files of a task that failed."""


class LendingApp(AgentwatchApp):
    """The app, on a terminal that it can lend to an editor."""

    @contextmanager
    def suspend(self) -> Iterator[None]:
        yield


@dataclass(kw_only=True)
class Stage(Screen):
    """A running app, with the questions that tests ask about it."""

    source: ToldSource = field(default_factory=ToldSource)
    scene: Scene = field(default_factory=Scene)

    @property
    def app(self) -> AgentwatchApp:
        app = self.pilot.app
        assert isinstance(app, AgentwatchApp)
        return app

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
        """Return the task ids of the rows in order, without the headings."""
        return [row.task_id for row in self.tree.rows if row.task_id is not None]

    def row(self, name: str) -> str:
        """Return the first line of the tree that holds `name`, without the details beside it."""
        region = self.tree.region
        lines = [line[: region.width].rstrip() for line in self.text().splitlines()[region.y :]]
        return next((line for line in lines if name in line), "")

    async def press(self, *keys: str):
        await super().press(*keys)
        await self.pilot.pause()

    @property
    def details(self) -> DetailsPane:
        assert self.main.details is not None
        return self.main.details

    async def see(self, *ids: str):
        """Let the source emit the events of the scene, and wait until these tasks and all rows are there."""
        self.source.push(self.scene.take())
        tree = self.app.monitor.tree
        await self.until(lambda: all(task_id in tree.tasks for task_id in (*ids, *self.row_ids())))
        await self.until(
            lambda: not tree.roots or tree.roots[-1] in self.row_ids() or self.main.filter_bar.active_query
        )
        await self.pilot.pause()

    async def drawn(self):
        """Wait until the tree is on the screen."""
        await self.until(lambda: self.main.details and self.tree.row_count and self.tree.size and self.row(" ").strip())
        await self.pilot.pause()


@asynccontextmanager
async def stage(
    *,
    scene: Scene | None = None,
    size: tuple[int, int] = (140, 40),
    health: Health = LIVE,
    settings: Settings | None = None,
    clock: Callable[[], float] = lambda: NOW,
    steady: Callable[[], float] = time.monotonic,
    workspace: str = "/home/kim/shop",
) -> AsyncIterator[Stage]:
    """Run the app on the sketch's session, or on another scene. It begins when the tree and its rows are complete and
    the first scan is over, so that no row folds by itself during the test."""
    scene = scene or shop()
    first = scene.take()
    monitor, source = monitor_of(first, health=health, settings=settings, clock=clock, workspace=workspace)
    async with running(LendingApp(monitor, clock, steady=steady), size) as (pilot, told):
        stage = Stage(pilot, Path(), Path(workspace), told, source=source, scene=scene)
        await stage.until(lambda: stage.main.details and monitor.health is source.health and stage.app.is_idle)
        if first:
            # The rows that fold depend on the height of the tree.
            await stage.drawn()
        stage.app.finish_first_scan()
        await pilot.pause()
        yield stage


@dataclass(kw_only=True)
class Office(Stage):
    """A stage with a workspace and a desk; its `clock` says when the key that decides begins to count."""

    desk: DecisionService
    clock: list[float]

    @property
    def dialog(self) -> DecisionScreen:
        screen = self.app.screen
        assert isinstance(screen, DecisionScreen)
        return screen

    @property
    def in_dialog(self) -> bool:
        return isinstance(self.app.screen, DecisionScreen)

    def entries(self) -> tuple[ChainEntry, ...]:
        """Return the entries of the ledger, read by a desk of its own."""
        return desk_of(self.home).read().entries

    async def open(self, key: str, task_id: str = "shop.api"):
        """Go to a task, press the key of an action, and wait until the dialog is open and its key may count."""
        self.tree.select(task_id)
        await self.press(key)
        await self.until(lambda: self.in_dialog)
        signs = ("◌ read it first", "not yet:", "◆ ctrl+s", "✗ ")
        await self.until(lambda: any(sign in self.text() for sign in signs))
        self.wait_for_arming()

    def wait_for_arming(self):
        self.clock[0] += ARMING_SECONDS
        self.dialog.show_state()

    async def ready(self):
        """Let the time pass before which the key does not count, and wait until the dialog misses nothing."""
        self.wait_for_arming()
        await self.until(lambda: "◆ ctrl+s" in self.text())

    async def record(self):
        """Press the key that records twice, as a hasty operator does, and wait until the dialog has closed."""
        dialog = self.dialog
        await self.ready()
        await self.press("ctrl+s", "ctrl+s")
        await self.until(lambda: self.app.screen is not dialog)


def desk_of(root: Path) -> DecisionService:
    """Return a desk on the workspace below `root`."""
    state, configuration = root / "state" / "shop", root / "configuration"
    return DecisionService(root / "shop", state=state, configuration=configuration, disk=QUICK)


def box_of(root: Path) -> RequestStore:
    """Return the store of requests of the workspace below `root`."""
    return RequestStore(root / "shop", state=root / "state" / "shop", disk=QUICK)


@asynccontextmanager
async def office(
    root: Path,
    files: Mapping[str, str] = FAILED,
    size: tuple[int, int] = (140, 40),
    *,
    settings: Settings | None = None,
    source: FilesSource | None = None,
) -> AsyncIterator[Office]:
    """Run the app on a workspace with these files."""
    workspace, desk, box, clock = root / "shop", desk_of(root), box_of(root), [0.0]
    for name, text in files.items():
        write(workspace / name, text)
    monitor = Monitor(
        workspace,
        settings or Settings(),
        source or FilesSource(workspace),
        time.time,
        open_desk=lambda: desk,
        open_inbox=lambda: Inbox(box),
    )
    async with running(LendingApp(monitor, steady=lambda: clock[0]), size) as (pilot, told):
        office = Office(pilot, root, workspace, told, desk=desk, clock=clock)
        await office.until(lambda: monitor.decision_watcher is not None)
        await office.drawn()
        yield office
