"""What changes the rows of a tree: its tasks, the time, folds and filters. Pure, without a widget."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Final

from agentwatch.app.widgets.placed_rows import HISTORY, PlacedRows
from agentwatch.app.widgets.rows import Heading, RowId, Splice
from agentwatch.delegation.links import below
from agentwatch.view.groups import GROUPS, Group, has_finished

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree

_MANY: Final = 256
"""Structural changes at once from which building all rows again is cheaper than placing each."""
_EARLIER: Final = Heading(Group.EARLIER)


class Outline(PlacedRows):
    """The rows of a delegation tree. Every change of them is told by the splices it returns, in order.

    The tree may already be further than `apply` has heard: until it has, a task keeps its row where it was.
    Until the first scan has settled, what is finished and waits for nobody is folded as it comes, but for what the
    operator has touched. After `settle`, nothing folds or unfolds by itself.
    """

    def __init__(self, tree: Tree, clock: Callable[[], float]) -> None:
        super().__init__(tree)
        self._clock = clock
        self._touched = set[RowId]()

    def copy(self) -> Outline:
        """Another outline of the same tree, folded like this one, without its filter."""
        other = Outline(self._tree, self._clock)
        other.order = self.order.copy()
        other._folded = self._folded.copy()
        return other

    # What the tree and the time change

    def begin(self) -> list[Splice]:
        """Make the rows for the first time. A copy knows the order already: the tree told both of the same changes."""
        return self._rebuild() if any(self.order.roots()) else self.apply(list(self._tree.tasks))

    def apply(self, changed: Collection[str]) -> list[Splice]:
        """Take in the tasks that the tree says were added, changed or removed."""
        moved = self.order.take(changed, self._clock())
        return self._follow([*changed, *moved], [] if self.order.is_settled else self._refold(changed))

    def tick(self) -> list[Splice]:
        """Take in that time has passed."""
        return self._follow(self.order.tick(self._clock()))

    def hold(self, row_id: RowId | None) -> list[Splice]:
        """Keep the row under the cursor, and those above it, where they are among the others, and let the ones go that
        were kept before."""
        is_gone = row_id is None or isinstance(row_id, Heading) or row_id not in self._tree.tasks
        self._held = [] if is_gone else [str(row_id), *self._tree.ancestors(str(row_id))]
        return self._follow(self.order.hold(self._held))

    def _follow(self, ids: Collection[str], refolded: Collection[str] = ()) -> list[Splice]:
        """Bring the rows of these tasks to where they belong."""
        misplaced = [row_id for row_id in self._rows_for(ids) if self._is_misplaced(row_id)]
        if self._shown is not None and misplaced:
            self._count_shown()
        headings = self._wanted_headings()
        if not misplaced and not refolded and headings == self._headings():
            return []
        if len(misplaced) + len(refolded) > max(_MANY, len(self.rows) // 8):
            return self._rebuild()
        splices: list[Splice] = []
        for task_id in misplaced:
            splices += self._take_below(task_id, itself=True)
        splices += self._set_headings(headings)
        # In their order: each finds the sibling before it in its place.
        for task_id in sorted(misplaced, key=self._rank):
            splices += self._put_in(task_id)
        for task_id in refolded:
            splices += self._take_below(task_id) if task_id in self._folded else self._put_below(task_id)
        return splices

    def _rows_for(self, changed: Iterable[str]) -> Iterable[str]:
        """The ids of the rows that show these tasks, or have to."""
        ids: dict[str, None] = {}
        for task_id in changed:
            row = self.rows.standing_for(task_id)
            if row is not None and row.task_id is not None:
                ids[row.task_id] = None
            ids[self.row_of(task_id)] = None
        return ids

    # Folds

    def settle(self, room: int = 0) -> list[Splice]:
        """End the folding of what comes: the first scan is over.

        Where `room` rows hold all tasks but those of the history, nothing of them stays folded but what the operator
        has; else a lone root shows at least its first levels, and the earlier runs are folded.
        """
        if self.order.is_settled:
            return []
        self.order.is_settled = True
        touched, tallies = self._touched, self.order.tallies
        is_old = len(self._wanted_headings()) > 1
        if not is_old and HISTORY not in touched:
            # There is nothing else to see.
            self._folded.discard(HISTORY)
        groups = [group for group in GROUPS if group is not Group.HISTORY or not is_old]
        current = [root for group in groups for root in self._roots(group)]
        if sum(tallies[group].tasks for group in groups) + len(self._headings()) <= room:
            for root in current:
                self._folded -= {root, *below(self._tree.tasks, root)} - touched
            return self._rebuild()
        splices = [] if HISTORY in self._folds else self._put_below(HISTORY)
        if self._shown is None and _EARLIER in self.rows and _EARLIER not in touched:
            rows = self.rows.index(HISTORY) if HISTORY in self.rows else len(self.rows)
            if rows > room and self.rows.index(_EARLIER) > 0:
                self._folded.add(_EARLIER)
                splices += self._take_below(_EARLIER)
        level = [root for root in current if not self._is_hidden(root)]
        while len(level) == 1 and level[0] not in touched:
            splices += self.unfold(level[0])
            level = list(self._tree.tasks[level[0]].children)
        return splices

    def fold(self, row_id: RowId) -> list[Splice]:
        """Hide what is below a row."""
        self._touched.add(row_id)
        if row_id in self._folds or not self.has_children(row_id):
            return []
        self._folds.add(row_id)
        return self._take_below(row_id)

    def unfold(self, row_id: RowId) -> list[Splice]:
        """Show what is below a row."""
        self._touched.add(row_id)
        if row_id not in self._folds:
            return []
        self._folds.discard(row_id)
        return self._put_below(row_id)

    def reveal(self, task_id: str) -> list[Splice]:
        """Unfold whatever hides a task; nothing if the filter hides it."""
        ancestors = self._tree.ancestors(task_id)
        heading = self.heading_of([task_id, *ancestors][-1])
        hiding: list[RowId] = [*ancestors, *([heading] if heading is not None else [])]
        return [splice for row_id in reversed(hiding) for splice in self.unfold(row_id)]

    def fold_all(self) -> list[Splice]:
        """Hide everything but the roots, and those of old groups."""
        parents = (task_id for task_id, task in self._tree.tasks.items() if task.children)
        return self._set_all_folds({*parents, _EARLIER, HISTORY})

    def unfold_all(self) -> list[Splice]:
        """Show everything."""
        return self._set_all_folds(set())

    def show_only(self, shown: set[str] | None) -> list[Splice]:
        """Show these tasks only (each with its ancestors); None shows all again, folded as before."""
        if shown is None and self._shown is None:
            return []
        if shown is None or self._shown is None:
            self._folded_in_filter = set()
        self._shown = shown
        self._count_shown()
        return self._rebuild()

    def _set_all_folds(self, folds: set[RowId]) -> list[Splice]:
        self._touched.update(self._tree.tasks, (_EARLIER, HISTORY))
        if self._shown is None:
            self._folded = folds
        else:
            self._folded_in_filter = folds
        return self._rebuild()

    def _refold(self, changed: Collection[str]) -> list[str]:
        """Fold what is finished and unfold what is not; the visible rows whose fold changed."""
        turned: list[str] = []
        for task_id in changed:
            task = self._tree.tasks.get(task_id)
            if task is not None and task_id not in self._touched and has_finished(task) != (task_id in self._folded):
                self._folded ^= {task_id}
                if self._shown is None and task_id in self.rows:
                    turned.append(task_id)
        return turned
