"""Working tasks at the moment: their activity, and the cost of their tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agentwatch.delegation.run import Activity
from agentwatch.delegation.task import Task
from agentwatch.view.times import iso

if TYPE_CHECKING:
    from agentwatch.view.documents import tasks


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


def activity_document(doing: Activity | None, now: float) -> tasks.Activity | None:
    """What a task does, for programs; `now` is in epoch seconds. Texts are foreign and unsanitised."""
    if doing is None:
        return None
    return {
        "at": iso(doing.at),
        "kind": doing.kind,
        "what": doing.what,
        "about": doing.about,
        "over": doing.over,
        "repeats": doing.repeats,
        "seconds": round(max(now - doing.at, 0.0), 1) if doing.at and now > float("-inf") else None,
    }
