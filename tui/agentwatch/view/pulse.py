"""The cost of the tokens of tasks."""

from __future__ import annotations

from collections.abc import Mapping

from agentwatch.delegation.task import Task


def cost_of(task: Task, prices: Mapping[str, float]) -> float | None:
    """What the tokens of a task itself cost, by the price of a million tokens of each model, which is named with or
    without its provider; None where a price is missing, or no store tells of tokens."""
    cost = None
    for run in (attempt.run for attempt in task.attempts):
        if run is None or run.tokens is None:
            continue
        model = run.model or ""
        price = prices.get(model, prices.get(model.rpartition("/")[2]))
        if price is None:
            return None
        cost = (cost or 0.0) + run.tokens * price / 1_000_000
    return cost
