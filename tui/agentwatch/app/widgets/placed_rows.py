"""Where the rows of a tree belong: groups, chains, what is folded and what a filter shows. Pure, without a widget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from agentwatch.app.widgets.rows import Heading, Row, RowId, Rows, Splice
from agentwatch.delegation.task import Task
from agentwatch.view.chains import chain_above, continued, end_of_chain
from agentwatch.view.groups import GROUPS, Group
from agentwatch.view.order import Order, Rank

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree

HISTORY: Final = Heading(Group.HISTORY)


class PlacedRows:
    """Rows, each where it belongs by the order of the tasks, by what is folded and by what the filter shows.

    Runs stand in groups, each below a heading where there are several groups; a chain has one row.
    """

    def __init__(self, tree: Tree) -> None:
        self.rows = Rows()
        self.order = Order(tree)
        self._tree = tree
        self._folded: set[RowId] = {HISTORY}
        self._folded_in_filter: set[RowId] = set()
        self._shown: set[str] | None = None
        self._shown_groups: list[Group] = []
        """The groups of the runs that are shown, while not all are."""
        self._held: list[str] = []
        """The task under the cursor and those above it, which keep their place."""

    def is_folded(self, row_id: RowId) -> bool:
        return row_id in self._folds

    def has_children(self, row_id: RowId) -> bool:
        """Whether a row has rows below it, or would have if it were not folded."""
        return next(self._children(row_id), None) is not None

    def row_of(self, task_id: str) -> str:
        """The id of the row that stands for a task: its own, or that of the task at the end of its chain."""
        return end_of_chain(self._tree.tasks, task_id)

    def above(self, row: Row) -> RowId | None:
        """The id of the row that a row is below; None where there is none."""
        if row.task_id is None or row.parent_id is not None:
            return row.parent_id
        return self.heading_of(row.chain[0] if row.chain else row.task_id)

    def heading_of(self, root: str) -> Heading | None:
        """The heading of a run; None where there is none."""
        heading = Heading(self.order.group(root)) if self.order.knows(root) else None
        return heading if heading is not None and heading in self.rows else None

    @property
    def _folds(self) -> set[RowId]:
        return self._folded if self._shown is None else self._folded_in_filter

    def _is_hidden(self, root: str) -> bool:
        heading = self.heading_of(root)
        return heading is not None and heading in self._folds

    # Headings

    def _headings(self) -> list[Group]:
        return [group for group in GROUPS if Heading(group) in self.rows]

    def _wanted_headings(self) -> list[Group]:
        """The groups that have a heading: all that hold a run, where they are several, and the history in any case."""
        tallies = self.order.tallies
        groups = [group for group in GROUPS if tallies[group].runs] if self._shown is None else self._shown_groups
        return groups if len(groups) > 1 or groups == [Group.HISTORY] else []

    def _count_shown(self) -> None:
        """Take account of the groups of the runs that the filter shows."""
        counted = Counter(map(self.order.group, self._roots()) if self._shown is not None else ())
        self._shown_groups = [group for group in GROUPS if counted[group]]

    def _set_headings(self, wanted: list[Group]) -> list[Splice]:
        """Have a heading above each of these groups, and above no other. Rows that stand elsewhere are out."""
        present = self._headings()
        if wanted == present:
            return []
        splices: list[Splice] = []
        for group in present:
            if group in wanted:
                continue
            heading = Heading(group)
            at = self.rows.index(heading)
            self.rows.delete(at, 1)
            splices.append(Splice(at, 1, 0))
            if not wanted and heading in self._folds:
                splices += self._insert(at, self._blocks(self._roots(group), 0))
        above: Heading | None = None
        for group in wanted:
            heading = Heading(group)
            if heading not in self.rows:
                splices += self._insert(0 if above is None else self._below_last(above), [Row(heading, None, -1)])
            above = heading
        for heading in (Heading(group) for group in wanted if group not in present):
            if heading in self._folds:
                if self._held and self.heading_of(self._held[-1]) == heading:
                    # Nothing hides what is under the cursor.
                    self._folds.discard(heading)
                else:
                    splices += self._take_below(heading)
        return splices

    # Where tasks belong

    def _roots(self, group: Group | None = None) -> Iterator[str]:
        """The runs that are to be seen, of all groups or of one."""
        return filter(self._is_shown, self.order.roots(group))

    def _is_shown(self, task_id: str) -> bool:
        """Whether the filter lets a task be seen that is at the beginning of a chain, or in none."""
        return task_id in self._tree.tasks and (self._shown is None or task_id in self._shown)

    def _children(self, row_id: RowId) -> Iterator[str]:
        """What is below a row, the beginnings of chains."""
        if isinstance(row_id, Heading):
            return self._roots(row_id.group)
        children = iter(self.order.children(row_id))
        return children if self._shown is None else filter(self._shown.__contains__, children)

    def _top(self, task: Task) -> tuple[Task, tuple[str, ...]]:
        """The outermost task of a chain, and the ids of all of it but its last one."""
        chain = chain_above(self._tree.tasks, task)
        return self._tree.tasks[chain[0]] if chain else task, chain

    def _rank(self, task_id: str) -> Rank:
        task = self._tree.tasks.get(task_id)
        return () if task is None else self.order.rank(self._top(task)[0])

    def _is_misplaced(self, task_id: str) -> bool:
        task, row = self._tree.tasks.get(task_id), self.rows.get(task_id)
        if task is None or continued(self._tree.tasks, task) is not None:
            return row is not None
        top, chain = self._top(task)
        if row is None:
            return self._has_place(top)
        return row.parent_id != top.parent_id or row.chain != chain or row.order != self.order.rank(top)

    def _has_place(self, top: Task) -> bool:
        """Whether the rows, as they are, should show a task that is at the beginning of a chain, or in none."""
        if not self._is_shown(top.task_id):
            return False
        if top.parent_id is not None:
            return top.parent_id in self.rows and top.parent_id not in self._folds
        return self.order.knows(top.task_id) and not self._is_hidden(top.task_id)

    # Rows

    def _blocks(self, task_ids: Iterable[str], depth: int) -> list[Row]:
        """New rows for these tasks and everything visible below them, without what has a row already."""
        folds, tasks, rank = self._folds, self._tree.tasks, self.order.rank
        rows: list[Row] = []
        pending = [(task_id, depth) for task_id in task_ids][::-1]
        while pending:
            task_id, depth = pending.pop()
            task = top = tasks[task_id]
            chain: tuple[str, ...] = ()
            while (one := continued(tasks, task)) is not None:
                chain = (*chain, task_id)
                task, task_id = one, one.task_id
            if task_id in self.rows:
                continue
            rows.append(Row(task_id, top.parent_id, depth, rank(top), chain))
            if task.children and task_id not in folds:
                pending += reversed([(child, depth + 1) for child in self._children(task_id)])
        return rows

    def _rebuild(self) -> list[Splice]:
        before = self.rows.clear()
        rows: list[Row] = []
        for heading in map(Heading, self._wanted_headings()):
            rows.append(Row(heading, None, -1))
            if heading not in self._folds:
                rows += self._blocks(self._roots(heading.group), 0)
        self.rows.insert(0, rows or self._blocks(self._roots(), 0))
        return [Splice(0, before, len(self.rows))]

    def _insert(self, position: int, rows: Sequence[Row]) -> list[Splice]:
        self.rows.insert(position, rows)
        return [Splice(position, 0, len(rows))] if rows else []

    def _take_below(self, row_id: RowId, *, itself: bool = False) -> list[Splice]:
        """Take away everything visible below a row, and perhaps the row itself."""
        if row_id not in self.rows:
            return []
        at = self.rows.index(row_id)
        start, end = at + (not itself), self.rows.block_end(at)
        self.rows.delete(start, end - start)
        return [Splice(start, end - start, 0)] if end > start else []

    def _put_below(self, row_id: RowId) -> list[Splice]:
        row = self.rows.get(row_id)
        if row is None:
            return []
        splices = self._take_below(row_id)
        return splices + self._insert(self.rows.index(row_id) + 1, self._blocks(self._children(row_id), row.depth + 1))

    def _put_in(self, task_id: str) -> list[Splice]:
        """Give a task and what is visible below it their rows, where its parent's row shows its children."""
        task = self._tree.tasks.get(task_id)
        if task is None or task_id in self.rows or continued(self._tree.tasks, task) is not None:
            return []
        top, _ = self._top(task)
        if not self._has_place(top):
            return []
        parent = None if top.parent_id is None else self.rows.get(top.parent_id)
        return self._insert(self._place(top), self._blocks([top.task_id], 0 if parent is None else parent.depth + 1))

    def _place(self, top: Task) -> int:
        """Behind the nearest sibling before it that has a row, else right below what it is part of."""
        for sibling_id in self.order.before(top):
            sibling = self.rows.get(self.row_of(sibling_id))
            if sibling is not None and sibling.parent_id == top.parent_id:
                return self._below_last(sibling.row_id)
        if top.parent_id is not None:
            return self.rows.index(top.parent_id) + 1
        heading = self.heading_of(top.task_id)
        return 0 if heading is None else self.rows.index(heading) + 1

    def _below_last(self, row_id: RowId) -> int:
        """The position behind everything visible below a row, found by going down its last rows."""
        while row_id not in self._folds and (last := next(self._rows_up(row_id), None)) is not None:
            row_id = last
        return self.rows.index(row_id) + 1

    def _rows_up(self, row_id: RowId) -> Iterator[RowId]:
        """The ids of the rows right below a row, the last first."""
        if isinstance(row_id, Heading):
            parent_id, children = None, self.order.last_roots(row_id.group)
        else:
            parent_id, children = row_id, reversed(self.order.children(row_id))
        for child in children:
            row = self.rows.get(self.row_of(child))
            if row is not None and row.parent_id == parent_id:
                yield row.row_id
