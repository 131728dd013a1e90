"""A cold scan against a pruned os.walk and json.loads, and a warm start against a cold one."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from shutil import rmtree

from agentwatch.history.store import History
from agentwatch.sources.files.source import FilesSource
from agentwatch.sources.files.walk import DEFAULT_PRUNED
from tests.benchmarks.measuring import Row, interleaved
from tests.benchmarks.workspaces import write
from tests.unit.files.watching import candidates


def _walk(root: Path) -> list[str]:
    found = []
    for directory, directories, files in os.walk(root):
        directories[:] = [name for name in directories if name not in DEFAULT_PRUNED]
        found += [os.path.join(directory, name) for name in files if name.endswith((".json", ".md"))]  # noqa: PTH118
    return found


def walk_and_load(root: Path) -> None:
    for path in _walk(root):
        data = Path(path).read_bytes()
        if path.endswith(".json"):
            json.loads(data)


def _start(root: Path, state: Path) -> None:
    """What a warm start does until all that was known, and all that has changed since, is observed."""
    files = FilesSource(root)
    history = History(state)
    files.remember(history.recall().files)
    files.scan()


def _keep(root: Path, state: Path) -> None:
    files = FilesSource(root)
    history = History(state)
    history.record(files.scan().events, files.content)


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        write(root, 5_000, noise=8)
        walk, scan, load, once = interleaved(
            [
                lambda: _walk(root),
                lambda: list(candidates(root)),
                lambda: walk_and_load(root),
                lambda: FilesSource(root).scan(),
            ],
            5,
        )
        state = root.with_name(f"{root.name}-state")
        try:
            _keep(root, state)
            cold, warm = interleaved([lambda: FilesSource(root).scan(), lambda: _start(root, state)], 5)
        finally:
            rmtree(state)
    return [
        Row("scan 50,000 files in 5,000 directories", "a pruned os.walk", walk, scan, 1.15),
        Row("scan, read and check 10,000 documents", "os.walk, read, json.loads", load, once, 3.0),
        Row("warm start with 10,000 documents", "a cold start", cold, warm, 0.2),
    ]
