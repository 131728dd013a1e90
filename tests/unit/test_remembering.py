"""What was observed outlives the files and the program: a real workspace, watched, left, and watched again."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from pathlib import Path

import pytest

from agentwatch.config import Settings
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Document
from agentwatch.monitor import Monitor
from agentwatch.sources.files.source import FilesSource
from tests.unit.history.recorded import META, meta, packet

CODER = "specs/7_api/coder"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    return home


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    return root


def monitor_of(workspace: Path, read: Callable[[str, str], Document | None] = read_document) -> Monitor:
    source = FilesSource(workspace, read_document=read)
    return Monitor(workspace, Settings(), source, time.time, inspects=False, remembers=True)


async def watch(monitor: Monitor, until: Callable[[], object]) -> None:
    """Run a monitor until something is so, and end it as a user would."""

    async def run() -> None:
        async with aclosing(monitor.updates()) as updates:
            async for _ in updates:
                pass

    running = asyncio.create_task(run())
    try:
        async with asyncio.timeout(15):
            while monitor.health.mode != "live" or not until():  # noqa: ASYNC110  a monitor has no such event
                await asyncio.sleep(0.01)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def lived_through(workspace: Path, *texts: str, path: str = META) -> Monitor:
    """A running monitor that sees one file rewritten with each of the texts."""
    monitor = monitor_of(workspace)
    file = workspace / path
    file.parent.mkdir(parents=True, exist_ok=True)
    waiting = list(texts)

    def next_text() -> bool:
        task = monitor.tree.tasks.get(CODER)
        latest = task.latest if task else None
        written = file.read_text() if file.exists() else None
        if written is not None and (latest is None or not latest.returned):
            return False
        if written is None or (latest and latest.returned and monitor.content(latest.returned) == written):
            if not waiting:
                return True
            temporary = file.with_name("next.tmp")
            temporary.write_text(waiting.pop(0))
            temporary.rename(file)
        return False

    await watch(monitor, next_text)
    return monitor


async def test_every_attempt_of_a_rewritten_file_is_there_after_all_files_are_deleted_and_it_is_started_again(
    workspace: Path,
) -> None:
    texts = [
        meta(status, session)
        for session in ("sess_1", "sess_2", "sess_3")
        for status in ("in_progress", "partial" if session != "sess_3" else "implemented")
    ]
    monitor = await lived_through(workspace, *texts)
    lived = [(one.number, one.session_id, one.state) for one in monitor.tree.tasks[CODER].attempts]
    assert [session for _, session, _ in lived] == ["sess_1", "sess_2", "sess_3"]
    shutil.rmtree(workspace / "specs")

    for _ in range(2):
        again = monitor_of(workspace)
        kept: list[str | None] = []

        def is_deleted() -> bool:
            task = again.tree.tasks[CODER]  # noqa: B023
            kept[:] = [again.content(one.returned) for one in task.attempts if one.returned]  # noqa: B023
            return task.deleted

        await watch(again, is_deleted)
        attempts = again.tree.tasks[CODER].attempts
        assert [(one.number, one.session_id, one.state) for one in attempts] == lived
        assert kept == texts[1::2]


@pytest.mark.parametrize("deletes", [False, True])
@pytest.mark.parametrize("while_watching", [False, True])
async def test_a_second_failure_in_the_same_words_asks_and_does_so_after_a_restart(
    workspace: Path, *, deletes: bool, while_watching: bool
) -> None:
    handed, failed = workspace / "b.handoff.json", workspace / "b.return.md"
    words = "## Status\nstate: ERROR\nsummary: boom\n"
    other = workspace / "a.handoff.json"
    other.write_text(packet("a"))
    (workspace / "a.return.md").write_text(words)
    handed.write_text(packet("b"))
    steps = [
        lambda: failed.write_text(words),
        lambda: failed.unlink() if deletes else None,
        lambda: handed.write_text(packet("b", attempt=2)),
        lambda: failed.write_text(words),
    ]
    tells = [
        lambda it: it == [(1, "submitted")],
        lambda it: it == [(1, "invalid")],
        lambda it: it[0][1] == "invalid",
        lambda it: it == [(1, "invalid"), (2, "submitted")],
        lambda it: it == [(1, "invalid"), (2, "invalid")],
    ]

    def states(monitor: Monitor) -> list[tuple[int, str]]:
        task = monitor.tree.tasks.get("b")
        return [(one.number, str(one.state)) for one in task.attempts] if task else []

    monitor, done = monitor_of(workspace), 0

    def is_told() -> bool:
        nonlocal done
        now = states(monitor)
        if now and tells[done](now):
            if done == len(steps) - 1 and not while_watching:
                return True
            if done == len(steps):
                return True
            time.sleep(0.05)
            steps[done]()
            done += 1
        return False

    await watch(monitor, is_told)
    if not while_watching:
        await asyncio.sleep(0.05)
        steps[-1]()
    for _ in range(2):
        again = monitor_of(workspace)
        await watch(again, lambda: states(again) == [(1, "invalid"), (2, "invalid")])  # noqa: B023
        assert again.tree.tasks["b"].needs_operator
