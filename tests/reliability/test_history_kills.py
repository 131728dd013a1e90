"""kill -9 at random points of writing: the history opens, and nothing that was acknowledged is lost."""

import os
import random
import subprocess
import sys
from pathlib import Path

from agentwatch.history.store import History
from tests.unit.history.recorded import opened, seen_in

_ROUNDS = int(os.environ.get("AGENTWATCH_ROUNDS", "20"))
_ROUNDS_EACH = 4
"""Writers killed on one history: what a kill left is what the next one begins with."""
_ROOT = Path(__file__).parents[2]


def start(state: Path, name: str, batch: int) -> subprocess.Popen[str]:
    writer = "tests.unit.history.recorded"
    return subprocess.Popen(
        [sys.executable, "-m", writer, str(state), name, str(batch)], cwd=_ROOT, stdout=subprocess.PIPE, text=True
    )


def acknowledged_until_killed(writer: subprocess.Popen[str], batches: int) -> list[str]:
    """Let it acknowledge some batches, kill it in the middle of the next, and give what it had acknowledged."""
    assert writer.stdout is not None
    lines = [writer.stdout.readline() for _ in range(batches)]
    writer.kill()
    lines += writer.stdout.readlines()
    writer.stdout.close()
    assert writer.wait() == -9
    # The last line may be cut off by the kill: then it was not heard.
    return [digest for line in lines if line.endswith("\n") for digest in line.split()]


def test_nothing_acknowledged_is_lost(tmp_path):
    dice = random.Random()
    for number in range(_ROUNDS):
        if number % _ROUNDS_EACH == 0:
            state = tmp_path / f"state-{number}"
            acknowledged: list[str] = []
        writer = start(state, f"w{number}", dice.choice((1, 3, 20)))
        acknowledged += acknowledged_until_killed(writer, dice.randrange(1, 25))
        history = opened(state)
        assert history.notice is None
        kept = [version.digest for version in seen_in(history)]
        # They come back in the order in which they were recorded.
        heard = set(acknowledged)
        assert [digest for digest in kept if digest in heard] == acknowledged


def test_two_writers_at_once_both_killed(tmp_path):
    dice = random.Random()
    for number in range(max(_ROUNDS // 5, 2)):
        state = tmp_path / f"state-{number // _ROUNDS_EACH}"
        writers = [start(state, f"{side}{number}", 3) for side in "ab"]
        heard = [acknowledged_until_killed(writer, dice.randrange(1, 20)) for writer in writers]
        history = opened(state)
        assert history.notice is None
        kept = [version.digest for version in seen_in(history)]
        for acknowledged in map(dict.fromkeys, heard):
            assert [digest for digest in kept if digest in acknowledged] == list(acknowledged)
        reading = History(state)
        assert [version.digest for version in seen_in(reading)] == kept
