"""A workspace full of files that were made to break their readers. `AGENTWATCH_HOSTILE=1000000 pytest
tests/reliability/test_files_hostile.py` makes more of them."""

import os
import random
import tracemalloc
from pathlib import Path

import pytest

from agentwatch.delegation.events import Seen, Unreadable
from agentwatch.sources.files.source import FilesSource

COUNT = 2_000
"""Files in one workspace."""
ROUNDS = range(max(1, int(os.environ.get("AGENTWATCH_HOSTILE", "4000")) // COUNT))

NAMES = [
    b"return",
    b"handoff",
    b"todos",
    b"\xff",
    b"\x1b]52;c;eA==\x07",
    b"\n",
    "\u202e".encode(),
    b"\\xff",
    b"[/]",
    b".",
]
SUFFIXES = [b".json", b".md", b".return.json", b".handoff.md", b".todos.md", b".MARKDOWN"]
PIECES = [
    b'{"status": "completed", "summary": "',
    b'{"task_id": "a", "objective": "',
    b"## Status\nstate: SUCCESS\nsummary: ",
    b"```json\n{",
    b"- [x] DRAFT: done\n",
    b"[" * 3_000,
    b'{"a":' * 3_000,
    b"\xff\xfe\x00",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\x1b[2J\x9b31m",
    b"[@click=app.quit]x[/]",
    b"1e400, NaN, -0",
    b"9" * 5_000,
    b"x" * 50_000,
    b'"}\n',
    b"}\n",
    b"\r\n---\n",
    b"",
]


@pytest.mark.parametrize("seed", ROUNDS)
def test_every_hostile_file_is_read_or_refused(tmp_path, seed):
    chance = random.Random(seed)
    # Tracing memory takes six times as long, so only one workspace is traced, a quarter as large.
    count = COUNT if seed else COUNT // 4
    for number in range(count):
        make(tmp_path, chance, number)
    if seed == 0:
        tracemalloc.start()
    source = FilesSource(tmp_path)
    source.settle_seconds = 0.0
    try:
        batch = source.scan()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32_000_000
    assert peak > 0 or seed
    assert len(batch.events) > count / 10
    assert len({item.path for item in batch.events if isinstance(item, Seen | Unreadable)}) == len(batch.events)
    for item in batch.events:
        assert isinstance(item, Seen | Unreadable)
        assert item.path.encode()
        findings = item.findings if isinstance(item, Seen) else (item.finding,)
        assert all(finding.message.encode() for finding in findings)
        assert not any(finding.rule == "SRC008" for finding in findings), item.path


def make(root: Path, chance: random.Random, number: int):
    """Make one file, or something else with the name of a file."""
    name = chance.choice(NAMES) + str(number).encode() + chance.choice(SUFFIXES)
    path = root / chance.choice(["", "handoffs", "returns", "a/b"]) / os.fsdecode(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = chance.random()
    if kind < 0.05:
        os.mkfifo(path)
    elif kind < 0.1:
        path.symlink_to(chance.choice(["/etc/passwd", ".", "loop", "/dev/zero", str(path)]))
    elif kind < 0.12:
        path.mkdir()
    elif kind < 0.15:
        with path.open("wb") as file:
            file.truncate(1024**3)
    else:
        path.write_bytes(b"".join(chance.choices(PIECES, k=chance.randint(0, 5))))
