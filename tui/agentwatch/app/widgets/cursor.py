"""The cursor of a view of the tree, and where it goes when its row has gone. Pure, without a widget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentwatch.app.widgets.outline import Outline
from agentwatch.app.widgets.rows import Heading, Row, RowId

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree


class Cursor:
    """The cursor of one view of a tree: bound to a row, which is None if there is none; `row` is its place."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.row_id: RowId | None = None
        self.row = 0
        self._above: list[str] = []
        self._parent_id: str | None = None
        self._before: RowId | None = None
        """What it was on before there was nothing, as where a filter matches nothing."""

    @property
    def task_id(self) -> str | None:
        """The task that it is on, None where it is on a heading or nowhere."""
        return None if isinstance(self.row_id, Heading) else self.row_id

    def put(self, row: Row | None, place: int) -> None:
        """Put it on a row, which is at this place."""
        self._before = (self.row_id or self._before) if row is None else None
        self.row_id, self.row = None if row is None else row.row_id, place
        # Where it goes when its task disappears has to be known before that does.
        self._parent_id = None if row is None else row.parent_id
        task_id = self.task_id
        self._above = self._tree.ancestors(task_id) if task_id is not None and task_id in self._tree.tasks else []

    def successor(self, outline: Outline, place: int) -> int:
        """Its row has gone, and what is at `place` now took its place. The place to go to.

        That is the sibling in its place, else the nearest that is left of what it was part of. If there was no row at
        all, it is that of the task it was on before.
        """
        rows = outline.rows
        if self._before is not None and self._before in rows:
            return rows.index(self._before)
        gone = self.task_id
        if gone is None:
            return place
        is_there = gone in self._tree.tasks
        if not is_there and rows[place].task_id is not None and rows[place].parent_id == self._parent_id:
            return place
        for task_id in [gone, *self._above]:
            if (row := rows.standing_for(task_id)) is not None:
                return rows.index(row.row_id)
        heading = outline.heading_of(self._above[-1] if self._above else gone)
        return place if heading is None else rows.index(heading)
