"""Ratios taken side by side: machines differ and drift, so nothing is compared across runs."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """One comparison: the figure and that of the reference, both in `unit`, and their ratio. The goal is for the ratio,
    or for the figure if it is `absolute`."""

    what: str
    reference: str
    reference_ms: float
    measured_ms: float
    goal: float | None = None
    unit: str = "ms"
    absolute: bool = False

    @property
    def ratio(self) -> float:
        return self.measured_ms / self.reference_ms

    @property
    def holds(self) -> str:
        figure = self.measured_ms if self.absolute else self.ratio
        return "" if self.goal is None else "yes" if figure <= self.goal else "NO"

    def __str__(self) -> str:
        goal = f"{self.goal:.2f}" if self.goal is not None else ""
        figures = f"{self.measured_ms:10.3f} {self.unit:<3} {self.reference_ms:10.3f} {self.unit:<3}"
        return f"{self.what:<56} {figures} {self.ratio:8.2f} {goal:>6}  {self.holds:<5}  {self.reference}"


HEAD = f"{'':<56} {'figure':>10}     {'reference':>10}     {'ratio':>8} {'goal':>6}  {'holds':<5}  reference"
"""The heading of the table."""


def timed(action: Callable[[], object]) -> float:
    """Return the milliseconds that one call takes."""
    begin = time.perf_counter()
    action()
    return (time.perf_counter() - begin) * 1_000


def interleaved(actions: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Return the median milliseconds of each action; every round calls all of them once."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(rounds):
        for action, taken in zip(actions, times, strict=True):
            taken.append(timed(action))
    return [statistics.median(taken) for taken in times]
