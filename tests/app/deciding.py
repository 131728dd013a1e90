"""A workspace on disk, a real desk, and an app on it whose arming clock a test moves."""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agentwatch.app.app import AgentwatchApp
from agentwatch.app.dialogs.dialog import ARMING_SECONDS, DecisionScreen
from agentwatch.config import Settings
from agentwatch.decisions.ledger import ChainEntry
from agentwatch.decisions.service import DecisionService
from agentwatch.monitor import Monitor
from agentwatch.requests.inbox import Inbox
from agentwatch.requests.store import RequestStore
from agentwatch.sources.files.source import FilesSource
from tests.app.scenes import Scene, ToldSource
from tests.app.stage import Stage
from tests.journeys.made import handoff, returned
from tests.unit.decisions.made import QUICK

FAILED = {"api.handoff.json": handoff(), "api.return.md": returned()}
"""A task that failed."""


@dataclass
class Office(Stage):
    """A stage with a workspace and a desk behind it."""

    root: Path
    desk: DecisionService
    clock: list[float]

    @property
    def workspace(self) -> Path:
        return self.root / "shop"

    @property
    def dialog(self) -> DecisionScreen:
        screen = self.app.screen
        assert isinstance(screen, DecisionScreen)
        return screen

    @property
    def in_dialog(self) -> bool:
        return isinstance(self.app.screen, DecisionScreen)

    @property
    def toasts(self) -> str:
        """What the operator was told in passing."""
        return "\n".join(notification.message for notification in self.app._notifications)

    @property
    def words(self) -> str:
        """The screen as running text: where a sentence wraps depends on the paths in it."""
        return " ".join(self.text().replace("║", " ").split())

    def entries(self) -> tuple[ChainEntry, ...]:
        """What the ledger holds, as somebody else reads it."""
        return self.another_desk().read().entries

    def another_desk(self) -> DecisionService:
        return desk_of(self.root)

    async def open(self, key: str, task_id: str = "shop.api"):
        """Go to a task and press the key of an action."""
        self.tree.select(task_id)
        await self.press(key)
        await self.until(lambda: self.in_dialog)
        await self.until(lambda: "◌ read it first" in self.text() or "not yet:" in self.text())

    def wait_for_arming(self):
        self.clock[0] += ARMING_SECONDS

    async def ready(self):
        """Let the time pass after which the key counts, and wait until nothing is missing."""
        self.wait_for_arming()
        self.dialog.look()
        await self.until(lambda: "◆ ctrl+s" in self.text())

    async def record(self):
        """Press the key that records, and wait until the dialog has closed."""
        dialog = self.dialog
        await self.ready()
        await self.press("ctrl+s")
        await self.until(lambda: self.app.screen is not dialog)


def desk_of(root: Path) -> DecisionService:
    """A desk on the workspace below `root`."""
    state, configuration = root / "state" / "shop", root / "configuration"
    return DecisionService(root / "shop", state=state, configuration=configuration, disk=QUICK)


def box_of(root: Path) -> RequestStore:
    """The requests of the workspace below `root`."""
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
    """The app on a workspace with these files."""
    workspace = root / "shop"
    workspace.mkdir(exist_ok=True)
    for name, text in files.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text, "utf-8")
    desk = desk_of(root)
    box = box_of(root)
    monitor = Monitor(
        workspace,
        settings or Settings(),
        source or FilesSource(workspace),
        time.time,
        open_desk=lambda: desk,
        open_inbox=lambda: Inbox(box),
    )
    clock = [0.0]
    app = AgentwatchApp(monitor, steady=lambda: clock[0])
    async with app.run_test(size=size, notifications=True) as pilot:
        stage = Office(app, pilot, ToldSource(), Scene(), root, desk, clock)
        await stage.until(lambda: stage.main.details)
        await stage.until(lambda: stage.is_drawn and monitor.clerk is not None)
        await pilot.pause()
        yield stage
