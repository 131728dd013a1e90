"""What the line of a row depends on besides the row itself: the rows around it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final

from agentwatch.app.widgets.rows import Row
from agentwatch.delegation.task import Task
from agentwatch.view.chains import chain_name

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


def before_titles(rows: Sequence[Row | None], tasks: Mapping[str, Task]) -> dict[str, str]:
    """By task, what stands before its title: the chain that its row stands for, and of siblings that would read the
    same, the part of its id's path that the others do not have; "" where the title is enough."""
    words: dict[str, str] = {}
    alike: dict[tuple[str | None, str, str], list[str]] = {}
    for row in rows:
        if row is not None and row.task_id is not None and (task := tasks.get(row.task_id)) is not None:
            chain = chain_name(task, [tasks[one] for one in row.chain if one in tasks]) if row.chain else ""
            words[task.task_id] = chain
            alike.setdefault((row.parent_id, chain, task.title), []).append(task.task_id)
    for (_, chain, _), ids in alike.items():
        paths = [tasks[task_id].own_id.split("/") for task_id in ids]
        common = set(paths[0]).intersection(*paths)
        for task_id, path in zip(ids, paths, strict=True):
            # Without a path, the id is that of a session, and says nothing.
            own = "/".join(part for part in path if part not in common) if len(path) > 1 else ""
            words[task_id] = "/".join(filter(None, (own, chain)))
    return words


def _common(one: str, other: str) -> int:
    """With how many same characters both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
