"""A cold scan against a pruned os.walk, and with parsing against that walk, reading and json.loads."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from agentwatch.sources.files.scan import scan_candidates
from agentwatch.sources.files.settings import DEFAULT_PRUNED
from agentwatch.sources.files.source import scan_once
from tests.benchmarks.measuring import Row, interleaved
from tests.benchmarks.workspaces import write


def _walk(root: Path) -> list[str]:
    found = []
    for directory, directories, files in os.walk(root):
        directories[:] = [name for name in directories if name not in DEFAULT_PRUNED]
        found += [os.path.join(directory, name) for name in files if name.endswith((".json", ".md"))]  # noqa: PTH118
    return found


def _walk_and_load(root: Path) -> None:
    for path in _walk(root):
        data = Path(path).read_bytes()
        if path.endswith(".json"):
            json.loads(data)


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        write(root, 5_000, noise=8)
        walk, scan, load, once = interleaved(
            [
                lambda: _walk(root),
                lambda: list(scan_candidates(root, DEFAULT_PRUNED)),
                lambda: _walk_and_load(root),
                lambda: scan_once(root),
            ],
            5,
        )
    return [
        Row("scan 50,000 files in 5,000 directories", "a pruned os.walk", walk, scan, 1.15),
        Row("scan, read and check 10,000 documents", "os.walk, read, json.loads", load, once, 3.0),
    ]
