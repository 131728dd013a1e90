"""Which tasks have a row, in which order: folding, filtering and the tree's changes. Pure, without a widget."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.delegation.task import Task

if TYPE_CHECKING:
    from agentwatch.delegation.tree import DelegationTree

_CHUNK: Final = 512
_MANY: Final = 256
"""Structural changes at once from which building all rows again is cheaper than placing each."""


@dataclass(slots=True, eq=False)
class Row:
    """One visible task. `order` is what its siblings are sorted by, `depth` 0 for a root."""

    task_id: str
    parent_id: str | None
    depth: int
    order: int
    chunk: list[Row] = field(default_factory=list)


class Rows:
    """Rows in order, by position and by task id; a task has at most one. Finding and changing them stays cheap.

    A plain list would do the same with a search over all of it, or a number on every row that each insertion rewrites:
    at 100,000 rows either costs a millisecond an update. Here rows live in chunks, and each knows the chunk it is in.
    """

    def __init__(self) -> None:
        self._chunks: list[list[Row]] = []
        self._by_id: dict[str, Row] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._by_id

    def __getitem__(self, position: int) -> Row:
        chunk, offset = self._locate(position)
        return self._chunks[chunk][offset]

    def get(self, task_id: str) -> Row | None:
        """The row of a task, None if it has none."""
        return self._by_id.get(task_id)

    def slice(self, start: int, stop: int) -> list[Row]:
        """The rows from `start` to before `stop`; fewer if there are no more."""
        stop = min(stop, len(self))
        if start >= stop:
            return []
        number, offset = self._locate(start)
        rows: list[Row] = []
        while len(rows) < stop - start:
            rows.extend(self._chunks[number][offset : offset + stop - start - len(rows)])
            number, offset = number + 1, 0
        return rows

    def index(self, task_id: str) -> int:
        """The position of a task's row. Raises KeyError if it has none."""
        row = self._by_id[task_id]
        before = 0
        for chunk in self._chunks:
            if chunk is row.chunk:
                return before + chunk.index(row)
            before += len(chunk)
        raise KeyError(task_id)

    def insert(self, position: int, rows: Sequence[Row]) -> None:
        """Put rows in front of the row that is at `position` now."""
        if not rows:
            return
        self._by_id.update((row.task_id, row) for row in rows)
        if not self._chunks:
            self._chunks = self._cut(list(rows))
            return
        number, offset = self._locate(position)
        chunk = self._chunks[number]
        chunk[offset:offset] = rows
        if len(chunk) > 2 * _CHUNK:
            self._chunks[number : number + 1] = self._cut(chunk)
        else:
            for row in rows:
                row.chunk = chunk

    def delete(self, position: int, count: int) -> None:
        """Take `count` rows away, from `position` on."""
        while count:
            number, offset = self._locate(position)
            chunk = self._chunks[number]
            gone = chunk[offset : offset + count]
            for row in gone:
                del self._by_id[row.task_id]
            del chunk[offset : offset + count]
            count -= len(gone)
            if not chunk:
                del self._chunks[number]

    def replace(self, rows: Sequence[Row]) -> None:
        """Start again with these rows."""
        self._by_id = {row.task_id: row for row in rows}
        self._chunks = self._cut(list(rows))

    @staticmethod
    def _cut(rows: list[Row]) -> list[list[Row]]:
        chunks = [rows[start : start + _CHUNK] for start in range(0, len(rows), _CHUNK)]
        for chunk in chunks:
            for row in chunk:
                row.chunk = chunk
        return chunks

    def _locate(self, position: int) -> tuple[int, int]:
        """Chunk number and offset; the end of the list is the place behind the last row."""
        for number, chunk in enumerate(self._chunks):
            if position < len(chunk):
                return number, position
            position -= len(chunk)
        if position:
            raise IndexError(position)
        return len(self._chunks) - 1, len(self._chunks[-1])


class Splice(NamedTuple):
    """At `position`, `removed` rows made way for `added` others."""

    position: int
    removed: int
    added: int


class Outline:
    """The rows of a delegation tree. Every change of them is told by the splices it returns, in order.

    The tree may already be further than `apply` has heard: until it has, a task that is gone keeps its row, and one
    that has moved keeps its old one.

    Until the first scan has settled, subtrees that are finished and wait for nobody are folded as they come; a fold
    the operator has touched is left alone. After `settle`, nothing folds or unfolds by itself.
    """

    def __init__(self, tree: DelegationTree, folded: Iterable[str] = (), *, settled: bool = False) -> None:
        self.rows = Rows()
        self._tree = tree
        self._folded = set(folded)
        self._folded_in_filter: set[str] = set()
        self._shown: set[str] | None = None
        self._touched: set[str] | None = None if settled else set()

    def copy(self) -> Outline:
        """Another outline of the same tree, folded like this one, without its filter."""
        return Outline(self._tree, self._folded, settled=self._touched is None)

    @property
    def is_filtered(self) -> bool:
        return self._shown is not None

    def is_folded(self, task_id: str) -> bool:
        return task_id in self._folds

    def has_children(self, task_id: str) -> bool:
        """Whether the task's row has rows below it, or would have if it were not folded."""
        return next(self._children(task_id), None) is not None

    def apply(self, changed: Collection[str]) -> list[Splice]:
        """Take in the tasks that the tree says were added, changed or removed."""
        misplaced = [task_id for task_id in changed if self._is_misplaced(task_id)]
        refolded = self._refold(changed) if self._touched is not None else []
        if not misplaced and not refolded:
            return []
        if len(misplaced) + len(refolded) > max(_MANY, len(self.rows) // 8):
            return self._rebuild()
        splices: list[Splice] = []
        for task_id in misplaced:
            splices += self._take_out(task_id)
        for task_id in misplaced:
            splices += self._put_in(task_id)
        for task_id in refolded:
            splices += self._take_below(task_id) if task_id in self._folded else self._put_below(task_id)
        return splices

    def settle(self, room: int = 0) -> list[Splice]:
        """End the folding of what comes: the first scan is over.

        Where `room` rows hold all tasks, nothing stays folded but what the operator has; else a lone root shows at
        least its first levels.
        """
        if self._touched is None:
            return []
        touched, self._touched = self._touched, None
        if len(self._tree.tasks) <= room:
            self._folded &= touched
            return self._rebuild()
        splices: list[Splice] = []
        level: list[str] = self._tree.roots
        while len(level) == 1 and level[0] not in touched:
            splices += self.unfold(level[0])
            level = self._tree.tasks[level[0]].children
        return splices

    def fold(self, task_id: str) -> list[Splice]:
        """Hide what is below a task."""
        self._touch(task_id)
        if task_id in self._folds or not self.has_children(task_id):
            return []
        self._folds.add(task_id)
        return self._take_below(task_id)

    def unfold(self, task_id: str) -> list[Splice]:
        """Show what is below a task."""
        self._touch(task_id)
        if task_id not in self._folds:
            return []
        self._folds.discard(task_id)
        return self._put_below(task_id)

    def reveal(self, task_id: str) -> list[Splice]:
        """Unfold whatever hides a task; nothing if the filter hides it."""
        splices: list[Splice] = []
        for ancestor in reversed(self._tree.ancestors(task_id)):
            splices += self.unfold(ancestor)
        return splices

    def fold_all(self) -> list[Splice]:
        """Hide everything but the roots."""
        return self._set_all_folds({task_id for task_id, task in self._tree.tasks.items() if task.children})

    def unfold_all(self) -> list[Splice]:
        """Show everything."""
        return self._set_all_folds(set())

    def show_only(self, shown: set[str] | None) -> list[Splice]:
        """Show these tasks only (each with its ancestors); None shows all again, folded as before."""
        if shown is None or self._shown is None:
            self._folded_in_filter = set()
        self._shown = shown
        return self._rebuild()

    @property
    def _folds(self) -> set[str]:
        return self._folded if self._shown is None else self._folded_in_filter

    def _touch(self, task_id: str) -> None:
        if self._touched is not None:
            self._touched.add(task_id)

    def _set_all_folds(self, folds: set[str]) -> list[Splice]:
        if self._touched is not None:
            self._touched.update(self._tree.tasks)
        if self._shown is None:
            self._folded = folds
        else:
            self._folded_in_filter = folds
        return self._rebuild()

    def _children(self, task_id: str) -> Iterator[str]:
        task = self._tree.tasks.get(task_id)
        children = iter(task.children if task else ())
        return children if self._shown is None else filter(self._shown.__contains__, children)

    def _is_misplaced(self, task_id: str) -> bool:
        task, row = self._tree.tasks.get(task_id), self.rows.get(task_id)
        if task is None or row is None:
            return row is not None if task is None else self._has_place(task)
        return row.parent_id != task.parent_id or row.order != task.first_seq

    def _has_place(self, task: Task) -> bool:
        """Whether the rows, as they are, should show the task."""
        if self._shown is not None and task.task_id not in self._shown:
            return False
        return task.parent_id is None or (task.parent_id in self.rows and task.parent_id not in self._folds)

    def _refold(self, changed: Collection[str]) -> list[str]:
        """Fold what is finished and unfold what is not; the visible rows whose fold changed."""
        turned: list[str] = []
        for task_id in changed:
            task = self._tree.tasks.get(task_id)
            if task is None or self._touched is None or task_id in self._touched:
                continue
            finished = _is_finished(task)
            if finished != (task_id in self._folded):
                (self._folded.add if finished else self._folded.discard)(task_id)
                if self._shown is None and task_id in self.rows:
                    turned.append(task_id)
        return turned

    def _block(self, task_id: str, depth: int, *, present: Rows | None = None) -> list[Row]:
        """New rows for a task and everything visible below it, without what has a row in `present`."""
        folds = self._folds
        rows: list[Row] = []
        pending = [(task_id, depth)]
        while pending:
            task_id, depth = pending.pop()
            if present is not None and task_id in present:
                continue
            task = self._tree.tasks[task_id]
            rows.append(Row(task_id, task.parent_id, depth, task.first_seq))
            if task.children and task_id not in folds:
                pending += reversed([(child, depth + 1) for child in self._children(task_id)])
        return rows

    def _rebuild(self) -> list[Splice]:
        before = len(self.rows)
        roots = (root for root in self._tree.roots if self._shown is None or root in self._shown)
        rows = [row for root in roots for row in self._block(root, 0)]
        self.rows.replace(rows)
        return [Splice(0, before, len(rows))]

    def _block_end(self, position: int) -> int:
        """The position behind the row and everything visible below it."""
        depth = self.rows[position].depth
        end = position + 1
        while step := self.rows.slice(end, end + 64):
            for row in step:
                if row.depth <= depth:
                    return end
                end += 1
        return end

    def _take_out(self, task_id: str, kept: int = 0) -> list[Splice]:
        """Take away the row of a task and everything visible below it, but for the first `kept` of these rows."""
        if task_id not in self.rows:
            return []
        start = self.rows.index(task_id)
        end, start = self._block_end(start), start + kept
        self.rows.delete(start, end - start)
        return [Splice(start, end - start, 0)] if end > start else []

    def _take_below(self, task_id: str) -> list[Splice]:
        return self._take_out(task_id, kept=1)

    def _put_below(self, task_id: str) -> list[Splice]:
        row = self.rows.get(task_id)
        if row is None:
            return []
        splices = self._take_below(task_id)
        start, depth = self.rows.index(task_id) + 1, row.depth + 1
        rows = [new for child in self._children(task_id) for new in self._block(child, depth, present=self.rows)]
        self.rows.insert(start, rows)
        return [*splices, Splice(start, 0, len(rows))] if rows else splices

    def _put_in(self, task_id: str) -> list[Splice]:
        """Give a task and what is visible below it their rows, where its parent's row shows its children."""
        task = self._tree.tasks.get(task_id)
        if task is None or task_id in self.rows or not self._has_place(task):
            return []
        parent = None if task.parent_id is None else self.rows.get(task.parent_id)
        position = self._place(task)
        rows = self._block(task_id, 0 if parent is None else parent.depth + 1, present=self.rows)
        self.rows.insert(position, rows)
        return [Splice(position, 0, len(rows))]

    def _place(self, task: Task) -> int:
        """Behind the nearest sibling before it that has a row, else right below its parent."""
        for sibling_id in self._tree.siblings_before(task):
            sibling = self.rows.get(sibling_id)
            if sibling is not None and sibling.parent_id == task.parent_id:
                return self._below_last(sibling_id)
        return 0 if task.parent_id is None else self.rows.index(task.parent_id) + 1

    def _below_last(self, task_id: str) -> int:
        """The position behind everything visible below a task, found by going down its last rows."""
        last = task_id
        while last not in self._folds:
            below = next((child for child in reversed(self._tree.tasks[last].children) if child in self.rows), None)
            if below is None:
                break
            last = below
        return self.rows.index(last) + 1


def _is_finished(task: Task) -> bool:
    """Everything below has ended, and nothing here waits for the operator."""
    below = task.below
    if below is None or task.state.is_open or task.needs_operator:
        return False
    return below.ended == below.tasks and not below.needs_operator
