"""Evidence for 1,000 claims in a repository of 20,000 files against one `git status`, and what the event loop feels."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import time
from contextlib import aclosing, suppress
from pathlib import Path

from agentwatch.config import Settings
from agentwatch.evidence.checker import Checker, Request
from agentwatch.monitor import Monitor
from agentwatch.sources.files.source import FilesSource
from tests.benchmarks.measuring import Row, interleaved

_RETURN = """\
## Status
state: SUCCESS
summary: done

## Deliverables
- (none)

## Evidence
- (none)

## Runtime Attestation
runtime_model_reported: some/model
runtime_mode_reported: code
files_created:
{created}
files_modified:
- (none)
"""


def _git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "gc.auto=0")
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, stdout=subprocess.DEVNULL)


def _repository(root: Path) -> list[Request]:
    """20,000 tracked files, 100 returns with ten claims each, half of them true."""
    for number in range(20_000):
        file = root / f"src/{number // 100}/{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"number = {number}\n")
    _git(root, "init", "-q")
    _git(root, "add", "-A")
    _git(root, "commit", "-q", "-m", "x")
    (root / "new").mkdir()
    requests = []
    for number in range(100):
        paths = [f"new/{number}-{part}.py" for part in range(10)]
        for path in paths[:5]:
            (root / path).write_text("made\n")
        text = _RETURN.format(created="\n".join(f"- {path}" for path in paths))
        requests.append(Request(f"{number:064x}", text, f"returns/t{number}.return.md"))
    return requests


async def _longest_pause(root: Path, seconds: float) -> float:
    """Milliseconds that the event loop was held up at most, from the start until every claim is checked."""
    monitor = Monitor(root, Settings(), FilesSource(root), time.time, inspects=True)
    longest = 0.0

    async def watch() -> None:
        async with aclosing(monitor.updates()) as updates:
            async for _ in updates:
                pass

    running = asyncio.create_task(watch())
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        before = time.perf_counter()
        await asyncio.sleep(0.001)
        longest = max(longest, time.perf_counter() - before - 0.001)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    checked = sum(len(task.claims) for task in monitor.tree.tasks.values())
    if checked < 1_000:
        raise RuntimeError(f"only {checked} claims were checked in time")
    return longest * 1_000


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        requests = _repository(root)
        status, check = interleaved(
            [
                lambda: _git(root, "status", "--porcelain=v2", "-z"),
                lambda: Checker(root).check(requests),
            ],
            5,
        )
        (root / "returns").mkdir()
        for request in requests:
            (root / request.returned_name).write_text(request.returned_text)
        pause = asyncio.run(_longest_pause(root, 8.0))
    return [
        Row("evidence for 1,000 claims, 20,000 files", "one git status", status, check),
        Row("longest pause of the event loop meanwhile", "50 ms", 50.0, pause, 1.0),
    ]
