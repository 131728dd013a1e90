"""A program that forks writers and kills them with -9 at random moments, and looks at the ledger after each.

Arguments: an empty directory, and how many to kill. Forking from a warm process takes a millisecond where starting one
takes half a second; it is a program of its own because a test runner may have threads, and those do not survive a fork.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

from agentwatch.disk import DISK
from tests.unit.decisions.made import Operator

ROUNDS_EACH = 100
"""Writers killed on one ledger: what a kill left is what the next one begins with."""

READY = b"."

LONGEST = 0.01  # seconds that a decision takes on most disks

MOST = 4
"""Decisions that a writer may record before it is killed in the next one."""


def task(number: int) -> str:
    return f"task.{number}"


def write(operator: Operator, first: int, pipe: int):
    """Decide without end, and say each on the pipe once it is recorded; before the first one, say that it begins."""
    os.write(pipe, READY)
    number = first
    while True:
        recorded = operator.decide(task(number))
        assert recorded.doubt is None
        os.write(pipe, b"%d\n" % number)
        number += 1


def killed(operator: Operator, first: int, decisions: int, seconds: float) -> int:
    """Let a writer begin with a decision, and kill it some time after it has said so many of them.

    Returns the number that comes behind the last one it said.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            write(operator, first, writing)
        finally:
            os._exit(1)
    os.close(writing)
    # However busy the machine is: it gets that far before it is killed.
    assert os.read(reading, 1) == READY
    said = b""
    while said.count(b"\n") < decisions:
        said += os.read(reading, 1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the writer ended by itself"
    assert os.WTERMSIG(status) == signal.SIGKILL
    with os.fdopen(reading, "rb") as pipe:
        said += pipe.read()
    return int(said.splitlines()[-1]) + 1 if said else first


def main(root: Path, rounds: int):
    dice = random.Random()
    recorded, asked = 0, 0
    for number in range(rounds):
        if number % ROUNDS_EACH == 0:
            # The real disk, syncs and all: they are where a writer spends its time.
            operator, said = Operator(root / str(number), DISK), 0
        # Beginning with the one that the last writer may have recorded and not said: it must not be there twice.
        decisions = dice.randrange(MOST)
        asked += decisions
        said = killed(operator, said, decisions, dice.uniform(0, LONGEST))
        chain = operator.ledger.read(operator.trust)
        assert chain.problems == (), chain.problems
        there = [entry.record.task_id for entry in chain.entries]
        assert there in ([task(one) for one in range(said)], [task(one) for one in range(said + 1)]), (said, there)
        if number % ROUNDS_EACH == ROUNDS_EACH - 1 or number == rounds - 1:
            recorded += len(operator.chain().entries)
    sys.stdout.write(f"{rounds} {recorded} {asked}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
