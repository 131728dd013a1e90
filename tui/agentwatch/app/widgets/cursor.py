"""A cursor that is bound to a task and not to a row: where it is, and where it goes when its row goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentwatch.app.widgets.rows import Rows

if TYPE_CHECKING:
    from agentwatch.delegation.tree import DelegationTree


class Cursor:
    """The cursor of one view of a tree. `task_id` is None if there is no task to be on; `row` is its place."""

    def __init__(self, tree: DelegationTree) -> None:
        self._tree = tree
        self.task_id: str | None = None
        self.row = 0
        self._parents: dict[str, str | None] = {}
        self._before: str | None = None
        """The task it was on before there was none, as where a filter matches nothing."""

    def put(self, task_id: str | None, row: int) -> None:
        """Put it on a task, which has this row."""
        self._before = (self.task_id or self._before) if task_id is None else None
        self.task_id, self.row = task_id, row
        # Where it goes when its task disappears has to be known before that does.
        self._parents = {}
        while task_id is not None and (task := self._tree.tasks.get(task_id)) is not None:
            self._parents[task_id] = task.parent_id
            task_id = task.parent_id

    def successor(self, rows: Rows, row: int) -> int:
        """Its row has gone, and what is at `row` now took its place. The row to go to.

        That is the sibling in its place, else the nearest task above that is left. If there was no row at all, it
        is that of the task it was on before.
        """
        if self._before is not None and self._before in rows:
            return rows.index(self._before)
        gone = self.task_id
        if gone is not None and gone not in self._tree.tasks and rows[row].parent_id == self._parents.get(gone):
            return row
        while gone is not None:
            gone = self._parents.get(gone)
            if gone is not None and gone in rows:
                return rows.index(gone)
        return row
