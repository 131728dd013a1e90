"""A program in which four operators decide the same attempt at once, again and again.

Arguments: an empty directory, and how many races. Of every four, two agree in each second race.
"""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

from agentwatch.decisions.record import AlreadyDecidedError
from agentwatch.delegation.decision import Action
from tests.unit.decisions.made import Operator

OPERATORS = 4
RACES_EACH = 100
"""Races on one ledger."""

Result = tuple[int, int, bool, str]
"""Race, operator, whether its decision was the one, and the note of the one that holds."""


def opinion(race: int, number: int) -> str:
    return f"opinion {0 if race % 2 and number == 1 else number}"


def race(root: Path, number: int, races: int, barrier: Barrier, results: Queue[list[Result]]) -> None:
    found = []
    for turn in range(races):
        if turn % RACES_EACH == 0:
            operator = Operator(root / str(turn))
        barrier.wait()
        note = opinion(turn, number)
        try:
            recorded = operator.decide(f"task.{turn}", Action.RETRY, note=note, operator=f"operator {number}")
        except AlreadyDecidedError as error:
            found.append((turn, number, False, error.existing.note))
        else:
            found.append((turn, number, recorded.fresh, recorded.entry.record.note))
    results.put(found)


def main(root: Path, races: int) -> None:
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(OPERATORS), context.Queue()
    for turn in range(0, races, RACES_EACH):
        # The key is there already; making it is another race.
        Operator(root / str(turn))
    everybody = [
        context.Process(target=race, args=(root, number, races, barrier, results)) for number in range(OPERATORS)
    ]
    for one in everybody:
        one.start()
    found = [result for _ in everybody for result in results.get()]
    for one in everybody:
        one.join()
        assert one.exitcode == 0
    winners: dict[int, list[int]] = {}
    held: dict[int, set[str]] = {}
    for turn, number, won, note in found:
        held.setdefault(turn, set()).add(note)
        if won:
            winners.setdefault(turn, []).append(number)
    assert sorted(winners) == list(range(races))
    assert all(len(numbers) == 1 for numbers in winners.values()), "two won"
    assert all(len(notes) == 1 for notes in held.values()), "they were told of different decisions"
    for first in range(0, races, RACES_EACH):
        chain = Operator(root / str(first)).chain()
        assert chain.problems == ()
        assert [entry.record.note for entry in chain.entries] == [
            held[turn].pop() for turn in range(first, min(first + RACES_EACH, races))
        ]
    sys.stdout.write(f"{races} {len(found)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
