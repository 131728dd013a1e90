"""Processes that are killed at any moment lose and double nothing; `AGENTWATCH_KILLS=20000` searches for longer."""

import os
import subprocess
import sys
from pathlib import Path

_KILLS = int(os.environ.get("AGENTWATCH_KILLS", "400"))
_ROOT = Path(__file__).parents[3]


def run(program: str, place: Path, count: int) -> list[int]:
    """The numbers that a program of these tests prints when all was well."""
    module = f"tests.reliability.decisions.{program}"
    done = subprocess.run(
        [sys.executable, "-m", module, str(place), str(count)], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    return [int(word) for word in done.stdout.split()]


def test_killed_writers_lose_and_double_nothing(tmp_path):
    killed, recorded, asked = run("killing", tmp_path, _KILLS)
    assert killed == _KILLS
    # Each was killed only when it had recorded what it was asked for; the next one may have said what it left unsaid.
    assert recorded >= asked > 0
