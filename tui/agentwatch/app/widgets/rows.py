"""The visible rows of the tree in order: a long list in which finding, inserting and deleting stay cheap.

A plain list would do the same with a search over all of it, or a number on every row that each insertion rewrites: at
100,000 rows either costs a millisecond an update. Here rows live in chunks, and each knows the chunk it is in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

_CHUNK: Final = 512


@dataclass(slots=True, eq=False)
class Row:
    """One visible task. `order` is what its siblings are sorted by, `depth` 0 for a root."""

    task_id: str
    parent_id: str | None
    depth: int
    order: int
    chunk: list[Row] = field(default_factory=list)


class Rows:
    """Rows in order, by position and by task id; a task has at most one."""

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
