"""Ratios taken side by side: machines differ and drift, so nothing is compared across runs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison: medians in milliseconds, their ratio, and the goal for it."""

    what: str
    reference: str
    reference_ms: float
    measured_ms: float
    goal: float | None = None

    @property
    def ratio(self) -> float:
        return self.measured_ms / self.reference_ms

    def __str__(self) -> str:
        goal = f"goal {self.goal:.2f}" if self.goal is not None else ""
        numbers = f"{self.measured_ms:9.3f} ms  {self.reference_ms:9.3f} ms  {self.ratio:6.2f} x  {goal}"
        return f"{self.what:<52} {numbers:<48} against {self.reference}"


def timed(action: Callable[[], object]) -> float:
    """Milliseconds that one call takes."""
    begin = time.perf_counter()
    action()
    return (time.perf_counter() - begin) * 1_000


def interleaved(actions: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """The median milliseconds of each action, all of them once in every round."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(rounds):
        for action, taken in zip(actions, times, strict=True):
            taken.append(timed(action))
    return [statistics.median(taken) for taken in times]
