"""The lines of the rows in sight; one that would read as before is not made again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from textual.strip import Strip

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cursor import Cursor
from agentwatch.app.widgets.outline import Outline
from agentwatch.app.widgets.rows import Row
from agentwatch.app.widgets.task_line import Columns, Pose, pose, task_line

if TYPE_CHECKING:
    from agentwatch.delegation.tree import DelegationTree


class TreeLines:
    """Makes the lines of one view of a tree. `clock` gives seconds since the epoch."""

    def __init__(self, tree: DelegationTree, clock: Callable[[], float]) -> None:
        self._tree = tree
        self._clock = clock
        self._columns = Columns.of(80)
        self._made: dict[str, tuple[Pose, Strip]] = {}

    @property
    def columns(self) -> Columns:
        return self._columns

    @columns.setter
    def columns(self, columns: Columns) -> None:
        self._columns = columns
        self.forget()

    def forget(self, changed: Iterable[str] | None = None) -> None:
        """These tasks read differently now; all of them where none are named."""
        if changed is None:
            self._made = {}
            return
        for task_id in changed:
            self._made.pop(task_id, None)

    def make(
        self,
        outline: Outline,
        top: int,
        height: int,
        palette: Palette,
        *,
        cursor: Cursor,
        focused: bool,
        marked: Collection[str],
    ) -> list[Strip]:
        """The lines of at most `height` rows, from the row `top` on."""
        now = self._clock()
        rows = outline.rows.slice(top, top + height)
        first, last, level = _lit_guide(rows, cursor.row - top)
        made: dict[str, tuple[Pose, Strip]] = {}
        lines: list[Strip] = []
        for y, row in enumerate(rows):
            task = self._tree.tasks.get(row.task_id)
            if task is None:
                # Gone from the tree a moment ago; the row goes with the next update.
                lines.append(Strip.blank(self._columns.width, palette.base))
                continue
            can_fold = bool(task.children) and outline.has_children(row.task_id)
            stand = pose(
                task,
                row.depth,
                now,
                folded=outline.is_folded(row.task_id) if can_fold else None,
                guide=level if first <= y < last else -1,
                selected=row.task_id == cursor.task_id,
                focused=focused,
                marked=row.task_id in marked,
            )
            known = self._made.get(row.task_id)
            strip = known[1] if known is not None and known[0] == stand else None
            if strip is None:
                strip = task_line(task, stand, self._columns, palette)
            made[row.task_id] = (stand, strip)
            lines.append(strip)
        self._made = made
        return lines


def _lit_guide(rows: list[Row], at: int) -> tuple[int, int, int]:
    """The lines whose guide is lit, from, to, and its level: the siblings of the row `at` and what is below them."""
    if not 0 <= at < len(rows) or not rows[at].depth:
        return 0, 0, -1
    depth = rows[at].depth
    first = last = at
    while first > 0 and rows[first - 1].depth >= depth:
        first -= 1
    while last + 1 < len(rows) and rows[last + 1].depth >= depth:
        last += 1
    return first, last + 1, depth - 1
