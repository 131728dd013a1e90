"""A store that a test writes record by record: its clock, its ids and what is to be on disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import ClassVar

from agentwatch.delegation.run import Run
from agentwatch.sources.sessions.reader import SessionReader
from tests.unit.sessions.store import Store, spoil_lines, torn


class Written:
    """A store of one workspace in a directory of the test. Nothing is written before `save`."""

    name: ClassVar[str]
    reader_of: ClassVar[Callable[[Path, Path], SessionReader]]
    # All of a story falls within a minute, so that whoever looks sees the same used in the last one.
    tick: ClassVar = timedelta(milliseconds=100)

    def __init__(self, root: Path) -> None:
        self.workspace = root / "work"
        self.home = root / self.name
        self.written: list[tuple[Path, bytes]] = []
        """In this order; a document is written as a whole."""
        self._ids = 0
        self._time = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)

    def new_id(self) -> str:
        self._ids += 1
        return f"id-{self._ids}"

    def now(self) -> str:
        self._time += self.tick
        return self._time.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def put(self, path: Path, data: bytes) -> None:
        self.written.append((path, data))

    def save(self) -> None:
        for path, data in self.written:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb" if path.suffix == ".json" else "ab") as file:
                file.write(data)
        self.written.clear()

    def reader(self) -> SessionReader:
        return type(self).reader_of(self.workspace, self.home)

    def runs(self) -> dict[str, Run]:
        """All runs by the program's own id, as a reader that begins now finds them."""
        self.save()
        return {change.run.session_id: change.run for change in self.reader().read(60.0) if change.run is not None}


def story(built: Written, place: Path, name: str, *second: Path) -> Store:
    """The store of a story; `second` holds its second session, and garbage of that `name` lies in `place`."""

    def steps() -> Iterator[None]:
        for path, data in built.written:
            if path.suffix == ".json":
                # It is replaced at once.
                path.parent.mkdir(parents=True, exist_ok=True)
                whole = path.with_suffix(".new")
                whole.write_bytes(data)
                whole.replace(path)
                yield
            else:
                yield from torn(path, data)

    def forget() -> None:
        for path in second:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def spoil(random: Random) -> None:
        spoil_lines(place, name, random)

    return Store(built.workspace, built.home, built.reader, steps(), spoil, forget)
