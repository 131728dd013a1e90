"""Killed writers lose and double nothing, at whatever moment; `AGENTWATCH_KILLS=20000` searches for longer.

Forking from a warm process takes a millisecond, and starting one half a second. The writers run in a program of their
own because a test runner may have threads, which do not survive a fork."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from agentwatch.disk import DISK
from tests.unit.decisions.made import Operator

KILLS = int(os.environ.get("AGENTWATCH_KILLS", "200"))
ROUNDS_EACH = 25
"""Writers killed on one ledger; each begins with the files that the last kill left."""
READY = b"."
LONGEST = 0.01  # seconds that a decision takes on most disks
MOST = 4
"""Decisions that a writer may record before it is killed during the next one."""


def test_killed_writers_lose_and_double_nothing(tmp_path):
    words = [sys.executable, "-m", __spec__.name, str(tmp_path)]
    done = subprocess.run(words, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4_000:]


def write(operator: Operator, first: int, pipe: int):
    """Decide without end: first report READY on the pipe, then the number of each decision after it is recorded."""
    os.write(pipe, READY)
    number = first
    while True:
        recorded = operator.decide(f"{number}")
        assert recorded.doubt is None
        os.write(pipe, b"%d\n" % number)
        number += 1


def killed(operator: Operator, first: int, decisions: int, seconds: float) -> int:
    """Start a writer at decision `first`, and kill it some time after it has reported so many decisions.

    Returns the number after the last reported one."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            write(operator, first, writing)
        finally:
            os._exit(1)
    os.close(writing)
    # Even on a busy machine the writer gets this far before it is killed.
    assert os.read(reading, 1) == READY
    said = b""
    while said.count(b"\n") < decisions:
        said += os.read(reading, 1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the writer ended by itself"
    with os.fdopen(reading, "rb") as pipe:
        said += pipe.read()
    return int(said.splitlines()[-1]) + 1 if said else first


def main(root: Path):
    dice = random.Random()
    for number in range(KILLS):
        if number % ROUNDS_EACH == 0:
            # On the real disk with its syncs, a writer spends most of its time in them.
            operator, said = Operator(root / str(number), DISK), 0
        # Begin with a decision that the last writer may have recorded without a report: it must not be there twice.
        said = killed(operator, said, dice.randrange(MOST), dice.uniform(0, LONGEST))
        chain = operator.ledger.read(operator.trust)
        assert chain.problems == (), chain.problems
        there = [int(entry.record.task_id) for entry in chain.entries]
        assert there in ([*range(said)], [*range(said + 1)]), (said, there)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
