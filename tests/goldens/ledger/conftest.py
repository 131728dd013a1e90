"""A workspace in which two tasks are decided, and the file of a third decision that is in no ledger."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import time_machine

from agentwatch.history.store import Recorder
from agentwatch.sources.files.source import FilesSource
from tests.goldens.ledger.dsse import record_in
from tests.goldens.world import World


@dataclass
class Scene:
    """`shop.api` is to be retried, `shop.ship` aborted; `good` would be the next: an answer to `shop.web`."""

    world: World
    good: bytes = b""

    @property
    def shop(self) -> Path:
        return self.world.root / "shop"

    @property
    def state(self) -> Path:
        (found,) = (self.world.home / ".local" / "state" / "agentwatch").glob("shop-*")
        return found

    @property
    def ledger(self) -> Path:
        return self.state / "decisions"

    @property
    def mirror(self) -> Path:
        return self.shop / ".agentwatch" / "decisions"

    @property
    def record(self) -> dict[str, Any]:
        """The record in `good`."""
        return record_in(self.good)

    def files(self) -> list[Path]:
        """Those of the ledger."""
        return sorted(self.ledger.glob("[0-9]*.json"))

    def decide(self, task: str, *words: str) -> int:
        return self.world.run("decide", task, *words, "--yes", cwd=self.shop).code

    def wait(self, task: str, *words: str) -> tuple[int, dict[str, Any]]:
        """The exit code of `wait`, and its document."""
        done = self.world.run("wait", task, *words, "--timeout", "0", "--json", cwd=self.shop)
        return done.code, json.loads(done.out)

    def verify(self) -> int:
        return self.world.run("verify", cwd=self.shop).code

    def remember(self):
        """Record the workspace as a screen does that has looked at all of it."""
        files = FilesSource(self.shop)
        recorder = Recorder(self.shop, files.content)
        with time_machine.travel(self.world.now, tick=False):
            recorder.open()
            recorder.note(files.scan().events)
            recorder.is_complete = True
            recorder.poll()

    def stages(self, task: str) -> list[str]:
        """How far the decision about a task has got."""
        decisions = json.loads(self.world.run("pending", "--json", cwd=self.shop).out)["decisions"]
        return [one["stage"] for found in decisions if found["task_id"] == task for one in found["receipts"]]


@pytest.fixture
def undecided(tmp_path, monkeypatch):
    """The workspace before anything was decided."""
    world = World(tmp_path / "w", monkeypatch)
    world.use_key()
    world.copy_shop(sessions=False)
    return Scene(world)


@pytest.fixture
def scene(undecided):
    """The workspace with its decisions."""
    assert undecided.decide("shop.api", "--retry") == 0
    assert undecided.decide("shop.ship", "--abort") == 0
    assert undecided.decide("shop.web", "--respond", "8080") == 0
    undecided.good = undecided.files()[-1].read_bytes()
    for path in undecided.world.root.rglob(f"*{undecided.record['decision_id']}*"):
        path.unlink()
    return undecided
