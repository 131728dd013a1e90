"""Claims in a watched workspace: a lie is caught, and becomes true when the file appears."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from agentwatch.config import Settings
from agentwatch.delegation.events import Verdict
from agentwatch.delegation.task import State, Task
from agentwatch.monitor import Monitor
from agentwatch.sources.files.source import FilesSource
from tests.journeys.made import returned


def workspace_with_a_lie(root: Path, state: str = "SUCCESS") -> Path:
    (root / "docs").mkdir()
    (root / "docs" / "api.md").write_text("# Design\n", "utf-8")
    (root / "api.return.md").write_text(returned(state, more="", created="- src/handler.py"), "utf-8")
    return root


def monitor_of(root: Path, *, remembers: bool = False) -> Monitor:
    return Monitor(root, Settings(), FilesSource(root), clock=time.time, inspects=True, remembers=remembers)


async def until(updates: AsyncIterator[object], monitor: Monitor, holds: Callable[[Task], bool]):
    async with asyncio.timeout(20):
        async for _ in updates:
            task = monitor.tree.tasks.get("shop.api")
            if task is not None and holds(task):
                return


async def test_a_lie_turns_true_when_the_file_appears(tmp_path):
    root = workspace_with_a_lie(tmp_path)
    monitor = monitor_of(root)
    updates = monitor.updates()
    await until(updates, monitor, lambda task: task.contradicted)
    task = monitor.tree.tasks["shop.api"]
    assert task.ask is not None
    assert task.ask.startswith("a claim is false: src/handler.py (missing")
    (root / "src").mkdir()
    (root / "src" / "handler.py").write_text("def handle(): ...\n", "utf-8")
    await until(updates, monitor, lambda task: task.verdict is Verdict.VERIFIED)
    assert task.ask is None
    (root / "src" / "handler.py").unlink()
    await until(updates, monitor, lambda task: task.contradicted)
    await updates.aclose()  # type: ignore[attr-defined]


async def watch_a_broken_return(root: Path):
    monitor = monitor_of(root, remembers=True)
    updates = monitor.updates()
    await until(updates, monitor, lambda task: task.state is State.INVALID and bool(task.claims))
    await updates.aclose()  # type: ignore[attr-defined]


async def test_a_return_that_breaks_its_contract_is_an_error_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "shop").mkdir()
    root = workspace_with_a_lie(tmp_path / "shop", "DONE")
    await watch_a_broken_return(root)
    await watch_a_broken_return(root)
    (entry,) = json.loads((root / ".agentwatch" / "errors.json").read_text("utf-8"))["errors"]
    assert (entry["task_id"], entry["rules"]) == ("shop.api", ["RET011"])
    assert entry["recommendation"] == "Fix code subagent return format"
