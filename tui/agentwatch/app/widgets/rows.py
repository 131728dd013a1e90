"""The rows of the tree: one flat list, made anew from tasks, their order, folds and filter. Pure, without a widget."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.view.chains import continued, end_of_chain
from agentwatch.view.order import GROUPS, Group, Order, has_finished

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree


class Heading(NamedTuple):
    """The id of the row above a group of runs: no task has such a one."""

    group: Group


RowId = str | Heading
HISTORY: Final = Heading(Group.HISTORY)
_EARLIER: Final = Heading(Group.EARLIER)


class Row(NamedTuple):
    """One visible task, or a heading, below the row `above`. `depth` is 0 for a run and -1 for a heading, `folded` None
    where nothing is below.

    `chain` are the ids of the tasks above it that it stands for, the outermost first: each is only named, and has one
    task below it.
    """

    row_id: RowId
    above: RowId | None
    depth: int
    folded: bool | None
    chain: tuple[str, ...] = ()

    @property
    def task_id(self) -> str | None:
        """None for a heading."""
        return None if isinstance(self.row_id, Heading) else self.row_id


class Outline:
    """The rows of a delegation tree, and what is folded. After any change `build` makes `rows` and `places` anew.

    Until the first scan has settled, what is finished and waits for nobody is folded as it comes. After `settle`, and
    once the operator has folded something, nothing folds or unfolds by itself.
    """

    def __init__(self, tree: Tree, clock: Callable[[], float]) -> None:
        self.order = Order(tree)
        self.rows: list[Row] = []
        self.places: dict[RowId, int] = {}
        """By the ids of the rows, and of the tasks in their chains."""
        self._tree = tree
        self._clock = clock
        self._folded: set[RowId] = {HISTORY}
        self._folded_in_filter: set[RowId] = set()
        self._shown: set[str] | None = None
        self._is_touched = False
        """Whether the operator has folded or unfolded something."""
        self._held: list[str] = []
        """The task under the cursor and those above it, which keep their place."""

    def copy(self) -> Outline:
        """Another outline of the same tree, folded like this one, without its filter."""
        other = Outline(self._tree, self._clock)
        other.order, other._folded = self.order.copy(), self._folded.copy()
        return other

    def build(self) -> None:
        """Make the rows."""
        tasks, shown, folds = self._tree.tasks, self._shown, self.folds
        runs = {
            group: [one for one in ids if one in tasks and (shown is None or one in shown)]
            for group, ids in self.order.groups.items()
        }
        groups = [group for group in GROUPS if runs[group]]
        rows: list[Row] = []
        if len(groups) < 2 and groups != [Group.HISTORY]:
            self._add_rows(rows, None, [one for group in groups for one in runs[group]])
            groups = []
        for heading in map(Heading, groups):
            # Nothing hides what is under the cursor.
            if self._held and self._held[-1] in runs[heading.group] and heading not in self.places:
                folds.discard(heading)
            rows.append(Row(heading, None, -1, heading in folds))
            if heading not in folds:
                self._add_rows(rows, heading, runs[heading.group])
        self.rows = rows
        self.places = {row.row_id: place for place, row in enumerate(rows)}
        self.places |= {link: place for place, row in enumerate(rows) for link in row.chain}

    def _add_rows(self, rows: list[Row], heading: Heading | None, runs: Sequence[str]) -> None:
        tasks, folds, shown = self._tree.tasks, self.folds, self._shown
        pending: list[tuple[str, int, RowId | None]] = [(run, 0, heading) for run in reversed(runs)]
        while pending:
            task_id, depth, above = pending.pop()
            chain: tuple[str, ...] = ()
            while (task := tasks[task_id]).shares_row and (one := continued(tasks, task)) is not None:
                chain = (*chain, task_id)
                task_id = one.task_id
            children = self.order.children(task_id) if task.children else ()
            if shown is not None:
                children = [child for child in children if child in shown]
            folded = task_id in folds if children else None
            rows.append(Row(task_id, above, depth, folded, chain))
            if folded is False:
                pending += [(child, depth + 1, task_id) for child in reversed(children)]

    # What rows are there

    @property
    def folds(self) -> set[RowId]:
        """The folds that hold now."""
        return self._folded if self._shown is None else self._folded_in_filter

    def get(self, row_id: RowId | None) -> Row | None:
        """The row of a task, of its chain, or of a heading; None if it has none."""
        place = None if row_id is None else self.places.get(row_id)
        return None if place is None else self.rows[place]

    def row_of(self, task_id: str) -> str:
        """The id of the row that stands for a task: its own, or that of the task at the end of its chain."""
        return end_of_chain(self._tree.tasks, task_id)

    def successor(self, at: int, before: Sequence[Row]) -> int:
        """Where the cursor goes from a row that stood among those `before` and is no more: to what it was part of where
        its task is only hidden, else to the next row that is left."""
        if (gone := before[at]).row_id in self._tree.tasks:
            above = {one.row_id: one.above for one in before}
            part_of = gone.above
            while part_of is not None and part_of not in self.places:
                part_of = above.get(part_of)
            if part_of is not None:
                return self.places[part_of]
        left = (one.row_id for one in (*before[at + 1 :], *reversed(before[:at])) if one.row_id in self.places)
        return self.places[nearest] if (nearest := next(left, None)) is not None else 0

    # What the tree and the time change

    def apply(self, changed: Collection[str]) -> None:
        """Take in the tasks that the tree says were added, changed or removed."""
        self.order.apply(changed, self._clock())
        for task_id in () if self.order.is_settled or self._is_touched else changed:
            task = self._tree.tasks.get(task_id)
            if task is not None and has_finished(task) != (task_id in self._folded):
                self._folded ^= {task_id}

    def hold(self, row_id: RowId | None) -> bool:
        """Keep the row under the cursor, and those above it, where they are among the others. Returns whether some that
        were kept before are free to move."""
        is_gone = not isinstance(row_id, str) or row_id not in self._tree.tasks
        self._held = [] if is_gone else [str(row_id), *self._tree.ancestors(str(row_id))]
        return self.order.hold(self._held)

    # Folds

    def settle(self, room: int) -> None:
        """End the folding of what comes: the first scan is over.

        Where `room` rows hold all tasks but those of the history, nothing of them stays folded; else a lone root shows
        at least its first levels, and the earlier runs are folded.
        """
        if self.order.is_settled:
            return
        self.order.is_settled = True
        if self._is_touched:
            return
        groups = [group for group in GROUPS if self.order.groups[group]]
        if len(groups) == 1:
            # There is nothing else to see.
            self._folded.discard(HISTORY)
        current = [group for group in groups if group is not Group.HISTORY or len(groups) == 1]
        roots = [root for group in current for root in self.order.groups[group]]
        headings = len(groups) if len(groups) > 1 else 0
        if sum(self.order.tally(group).tasks for group in current) + headings <= room:
            self._folded.difference_update(task.task_id for task, _ in self._tree.preorder(roots))
            return
        self.build()
        if self.places.get(_EARLIER) and self.places.get(HISTORY, len(self.rows)) > room:
            self._folded.add(_EARLIER)
            roots = [root for root in roots if self.order.group(root) is not Group.EARLIER]
        while len(roots) == 1:
            self._folded.discard(roots[0])
            roots = list(self._tree.tasks[roots[0]].children)

    def fold(self, row_id: RowId, *, folded: bool) -> None:
        """Hide what is below a row, or show it."""
        self._is_touched = True
        if folded:
            self.folds.add(row_id)
        else:
            self.folds.discard(row_id)

    def reveal(self, task_id: str) -> None:
        """Unfold whatever hides a task; nothing if the filter hides it."""
        ancestors = self._tree.ancestors(task_id)
        root = [task_id, *ancestors][-1]
        self.folds.difference_update(ancestors, [Heading(self.order.group(root))] if self.order.knows(root) else [])

    def fold_all(self, *, folded: bool) -> None:
        """Hide everything but the roots, and those of old groups; or show everything."""
        self._is_touched = True
        self.folds.clear()
        if folded:
            self.folds.update(task_id for task_id, task in self._tree.tasks.items() if task.children)
            self.folds.update((_EARLIER, HISTORY))

    def show_only(self, shown: set[str] | None) -> None:
        """Show these tasks only (each with its ancestors); None shows all again, folded as before."""
        if shown is None or self._shown is None:
            self._folded_in_filter = set()
        self._shown = shown
