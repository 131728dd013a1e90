"""What the line of a row depends on besides the row itself: the rows around it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final

from agentwatch.app.widgets.rows import Row
from agentwatch.delegation.task import Task

_SHORTEST: Final = 10
"""Characters of a title from which one may be cut."""
_COMPARED: Final = 200
"""Characters up to which titles are compared: hardly a line is longer."""


def lit_guide(rows: Sequence[Row | None], at: int) -> tuple[int, int, int]:
    """The lines whose guide is lit, from, to, and its level: the siblings of the row `at` and what is below them."""
    depths = [-1 if row is None else row.depth for row in rows]
    if not 0 <= at < len(rows) or depths[at] <= 0:
        return 0, 0, -1
    depth = depths[at]
    first = last = at
    while first > 0 and depths[first - 1] >= depth:
        first -= 1
    while last + 1 < len(rows) and depths[last + 1] >= depth:
        last += 1
    return first, last + 1, depth - 1


def shared_beginnings(rows: Sequence[Row | None], tasks: Mapping[str, Task]) -> dict[str, int]:
    """By task, how many characters of its title the sibling before or behind it begins with, too."""
    shared: dict[str, int] = {}
    before: dict[str | None, tuple[str, str]] = {}
    for row in rows:
        task = None if row is None or row.task_id is None else tasks.get(row.task_id)
        # A short title has room everywhere.
        if row is None or task is None or len(title := task.title[:_COMPARED]) < _SHORTEST:
            continue
        if (sibling := before.get(row.parent_id)) is not None and (common := _common(sibling[1], title)):
            shared[sibling[0]] = max(shared.get(sibling[0], 0), common)
            shared[task.task_id] = common
        before[row.parent_id] = task.task_id, title
    return shared


def _common(one: str, other: str) -> int:
    """With how many same characters both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
