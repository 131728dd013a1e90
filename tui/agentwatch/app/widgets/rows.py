"""The rows of the tree: one flat list, made anew from tasks, their order, folds and filter. Pure, without a widget."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.view.chains import continued, end_of_chain
from agentwatch.view.groups import GROUPS, Group, has_finished
from agentwatch.view.order import Order

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

    Until the first scan has settled, what is finished and waits for nobody is folded as it comes, but for what the
    operator has touched. After `settle`, nothing folds or unfolds by itself.
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
        self._touched: set[RowId] = set()
        self._held: list[str] = []
        """The task under the cursor and those above it, which keep their place."""

    def copy(self) -> Outline:
        """Another outline of the same tree, folded like this one, without its filter."""
        other = Outline(self._tree, self._clock)
        other.order = self.order.copy()
        other._folded = self._folded.copy()
        return other

    def build(self) -> None:
        """Make the rows."""
        tasks, order, folds = self._tree.tasks, self.order, self.folds
        runs: dict[Group, list[str]] = {group: [] for group in GROUPS}
        for root in order.roots():
            if root in tasks and tasks[root].parent_id is None and (self._shown is None or root in self._shown):
                runs[order.group(root)].append(root)
        groups = [group for group in GROUPS if runs[group]]
        held = self._held[-1] if self._held else None
        rows: list[Row] = []
        if len(groups) < 2 and groups != [Group.HISTORY]:
            self._add_rows(rows, None, next((runs[group] for group in groups), []))
            groups = []
        for heading in map(Heading, groups):
            # Nothing hides what is under the cursor.
            if held in runs[heading.group] and heading not in self.places:
                folds.discard(heading)
            rows.append(Row(heading, None, -1, heading in folds))
            if heading not in folds:
                self._add_rows(rows, heading, runs[heading.group])
        self.rows = rows
        self.places = {row.row_id: place for place, row in enumerate(rows)}
        self.places |= {link: place for place, row in enumerate(rows) for link in row.chain}

    def _add_rows(self, rows: list[Row], heading: Heading | None, runs: Sequence[str]) -> None:
        tasks, folds, shown, children_of = self._tree.tasks, self.folds, self._shown, self.order.children
        pending: list[tuple[str, int, RowId | None]] = [(run, 0, heading) for run in reversed(runs)]
        while pending:
            task_id, depth, above = pending.pop()
            chain: tuple[str, ...] = ()
            while (task := tasks[task_id]).shares_row and (one := continued(tasks, task)) is not None:
                chain = (*chain, task_id)
                task_id = one.task_id
            children = children_of(task_id) if task.children else ()
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

    def heading_of(self, root: str) -> Heading | None:
        """The heading of a run; None where there is none."""
        heading = Heading(self.order.group(root)) if self.order.knows(root) else None
        return heading if heading in self.places else None

    def successor(self, gone: Row, rows: list[Row]) -> int:
        """Where the cursor goes from a row that stood among `rows` and has gone: to the sibling in its place, else to
        the nearest that is left of what it was part of."""
        places, tasks = self.places, self._tree.tasks
        at = rows.index(gone)
        place = next((places[row.row_id] for row in rows[at + 1 :] if row.row_id in places), len(self.rows) - 1)
        if gone.task_id is None or (gone.task_id not in tasks and self.rows[place].above == gone.above):
            return place
        path: list[RowId | None] = [gone.row_id, *reversed(gone.chain)]
        above = {row.row_id: row for row in rows}
        row: Row | None = gone
        while row is not None and row.above is not None:
            path.append(row.above)
            row = above.get(row.above)
        if gone.task_id in tasks:
            path.append(self.heading_of([gone.task_id, *self._tree.ancestors(gone.task_id)][-1]))
        return next((places[one] for one in path if one in places), place)

    # What the tree and the time change

    def apply(self, changed: Collection[str]) -> bool:
        """Take in the tasks that the tree says were added, changed or removed. Returns whether some have moved."""
        has_moved = bool(self.order.take(changed, self._clock()))
        for task_id in () if self.order.is_settled else changed:
            task = self._tree.tasks.get(task_id)
            if task is not None and task_id not in self._touched and has_finished(task) != (task_id in self._folded):
                self._folded ^= {task_id}
        return has_moved

    def hold(self, row_id: RowId | None) -> bool:
        """Keep the row under the cursor, and those above it, where they are among the others. Returns whether some that
        were kept before are free to move."""
        is_gone = row_id is None or isinstance(row_id, Heading) or row_id not in self._tree.tasks
        self._held = [] if is_gone else [str(row_id), *self._tree.ancestors(str(row_id))]
        return bool(self.order.hold(self._held))

    # Folds

    def settle(self, room: int = 0) -> None:
        """End the folding of what comes: the first scan is over.

        Where `room` rows hold all tasks but those of the history, nothing of them stays folded but what the operator
        has; else a lone root shows at least its first levels, and the earlier runs are folded.
        """
        if self.order.is_settled:
            return
        self.order.is_settled = True
        touched, tallies = self._touched, self.order.tallies
        headings = [group for group in GROUPS if tallies[group].runs]
        is_old = len(headings) > 1
        if not is_old and HISTORY not in touched:
            # There is nothing else to see.
            self._folded.discard(HISTORY)
        groups = [group for group in GROUPS if group is not Group.HISTORY or not is_old]
        current = [root for root in self.order.roots() if self.order.group(root) in groups]
        if sum(tallies[group].tasks for group in groups) + (len(headings) if is_old else 0) <= room:
            for root in current:
                self._folded -= {task.task_id for task, _ in self._tree.preorder([root])} - touched
            return
        self.build()
        rows = self.places.get(HISTORY, len(self.rows))
        if self._shown is None and _EARLIER not in touched and self.places.get(_EARLIER, 0) > 0 and rows > room:
            self._folded.add(_EARLIER)
        level = [root for root in current if self.heading_of(root) not in self._folded]
        while len(level) == 1 and level[0] not in touched:
            self.folds.discard(level[0])
            level = list(self._tree.tasks[level[0]].children)

    def fold(self, row_id: RowId, *, folded: bool) -> None:
        """Hide what is below a row, or show it."""
        self._touched.add(row_id)
        if folded:
            self.folds.add(row_id)
        else:
            self.folds.discard(row_id)

    def reveal(self, task_id: str) -> None:
        """Unfold whatever hides a task; nothing if the filter hides it."""
        ancestors = self._tree.ancestors(task_id)
        heading = self.heading_of([task_id, *ancestors][-1])
        hiding: list[RowId] = [*ancestors, *([heading] if heading is not None else [])]
        for row_id in hiding:
            self.fold(row_id, folded=False)

    def fold_all(self, *, folded: bool) -> None:
        """Hide everything but the roots, and those of old groups; or show everything."""
        folds: set[RowId] = (
            {task_id for task_id, task in self._tree.tasks.items() if task.children} if folded else set()
        )
        self._touched.update(self._tree.tasks, (_EARLIER, HISTORY))
        self.folds.clear()
        self.folds.update(folds, (_EARLIER, HISTORY) if folded else ())

    def show_only(self, shown: set[str] | None) -> None:
        """Show these tasks only (each with its ancestors); None shows all again, folded as before."""
        if shown is None or self._shown is None:
            self._folded_in_filter = set()
        self._shown = shown
