"""The rows of the tree, as a list that stays cheap however long it is. Pure, without a widget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from agentwatch.view.groups import Group
    from agentwatch.view.order import Rank

_CHUNK: Final = 512


class Heading(NamedTuple):
    """The id of the row above a group of runs: no task has such a one."""

    group: Group


RowId = str | Heading


@dataclass(slots=True, eq=False)
class Row:
    """One visible task, or a heading. `order` is what its siblings are sorted by, `depth` 0 for a root.

    `chain` are the ids of the tasks above it that it stands for, the outermost first: each is only named, and has one
    task below it. `parent_id` is the task above all of these.
    """

    row_id: RowId
    parent_id: str | None
    depth: int
    order: Rank = ()
    chain: tuple[str, ...] = ()
    chunk: list[Row] = field(default_factory=list)

    @property
    def task_id(self) -> str | None:
        """None for a heading."""
        return None if isinstance(self.row_id, Heading) else self.row_id


class Rows:
    """Rows in order, by position and by id; a task has at most one. Finding and changing them stays cheap.

    A plain list would do the same with a search over all of it, or a number on every row that each insertion rewrites:
    at 100,000 rows either costs a millisecond an update. Here rows live in chunks, and each knows the chunk it is in.
    """

    def __init__(self) -> None:
        self._chunks: list[list[Row]] = []
        self._by_id: dict[RowId, Row] = {}
        self._by_link: dict[str, Row] = {}
        """By the tasks of chains that have no row of their own."""

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, row_id: RowId) -> bool:
        return row_id in self._by_id

    def __getitem__(self, position: int) -> Row:
        chunk, offset = self._locate(position)
        return self._chunks[chunk][offset]

    def get(self, row_id: RowId) -> Row | None:
        """The row of a task or a heading, None if it has none."""
        return self._by_id.get(row_id)

    def standing_for(self, task_id: str) -> Row | None:
        """The row of a task, or of the chain that it is part of; None if there is neither."""
        return self._by_id.get(task_id) or self._by_link.get(task_id)

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

    def index(self, row_id: RowId) -> int:
        """The position of a row. Raises KeyError if there is none."""
        row = self._by_id[row_id]
        before = 0
        for chunk in self._chunks:
            if chunk is row.chunk:
                return before + chunk.index(row)
            before += len(chunk)
        raise KeyError(row_id)

    def block_end(self, position: int) -> int:
        """The position behind a row and everything below it."""
        depth = self[position].depth
        end = position + 1
        while step := self.slice(end, end + 64):
            for row in step:
                if row.depth <= depth:
                    return end
                end += 1
        return end

    def insert(self, position: int, rows: Sequence[Row]) -> None:
        """Put rows in front of the row that is at `position` now."""
        if not rows:
            return
        self._name(rows)
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
                del self._by_id[row.row_id]
                for link in row.chain:
                    if self._by_link.get(link) is row:
                        del self._by_link[link]
            del chunk[offset : offset + count]
            count -= len(gone)
            if not chunk:
                del self._chunks[number]

    def clear(self) -> int:
        """Take all rows away. Returns how many there were."""
        count = len(self)
        for chunk in self._chunks:
            # Each row knows its chunk: rows that are left to the collector would stay for long, or for ever.
            chunk.clear()
        self._chunks.clear()
        self._by_id.clear()
        self._by_link.clear()
        return count

    def _name(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._by_id[row.row_id] = row
            for link in row.chain:
                self._by_link[link] = row

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
