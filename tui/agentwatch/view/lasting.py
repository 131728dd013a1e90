"""Until when a tree, and what is said of it, stays as it is if nothing but the time changes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from agentwatch.delegation.task import Alarm, State, Task
from agentwatch.delegation.tree import DelegationTree
from agentwatch.view.groups import Stretch, changes_at

_UNITS: Final = (60.0, 3_600.0, 86_400.0)
"""In what spans are told, from a minute on."""


def words_last(tree: DelegationTree) -> float:
    """Until when the words about every task stay as they are, in epoch seconds; minus infinity where they change all
    the time."""
    moments = (moment for task in tree.tasks.values() for moment in _moments(tree, task))
    # A date is told in other words tomorrow.
    return min(Stretch.of(tree.now).end, min(moments, default=math.inf))


def document_lasts(tree: DelegationTree) -> float:
    """The same of `tree --json`, which tells for how long a task has been at what it does."""
    is_busy = any(task.doing is not None and task.doing.at for task in tree.tasks.values())
    return -math.inf if is_busy else words_last(tree)


def line_lasts(tree: DelegationTree) -> float:
    """For how many seconds the line of what is past may move on with the clock, and nothing is judged otherwise."""
    line = tree.history_before
    passes = min((sign for sign in tree.signs() if sign >= line), default=math.inf)
    # The day that it lies on is told.
    return min(passes, Stretch.of(line).end) - line


def _moments(tree: DelegationTree, task: Task) -> Iterator[float]:
    if task.parent_id is None:
        yield changes_at(task, tree.now, tree.history_before)
    if task.requests or Alarm.GONE in task.alarms:
        # How long they have waited is told by the second.
        yield -math.inf
    if task.stale or task.state is State.UNKNOWN:
        since = tree.now if task.alive_at is None else task.alive_at
        silent = tree.now - since
        unit = max((unit for unit in _UNITS if silent >= unit), default=1.0)
        yield since if silent < 0 else since + (silent // unit + 1.0) * unit
    if task.snoozed_until is not None:
        yield task.snoozed_until
