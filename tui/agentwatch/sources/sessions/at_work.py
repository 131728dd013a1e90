"""The sessions that work now: their files are glanced at often, so that what they write is read at once."""

from __future__ import annotations

import math
import os
import time
from typing import Final

from agentwatch.delegation.run import Run, RunState

_GLANCE_SECONDS: Final = 0.04
"""Between two glances at the files of the sessions that work: what they write is read as soon as it is there."""

_GLANCE_SHARE: Final = 0.005
"""The part of one core that these may take."""

_AT_WORK_SECONDS: Final = 900.0
_MOST_AT_WORK: Final = 256
"""Such sessions are those with a sign of life in so many seconds; of more of them, only the last ones are."""


class AtWork:
    """The files in which sessions that work are written, and who reads them."""

    def __init__(self) -> None:
        self._pause = _GLANCE_SECONDS
        self._places: dict[tuple[str, str], str] = {}
        """By reader and run, where it is written; the last to change are the last."""
        self._stamps: dict[str, tuple[int, int] | None] = {}

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._places)

    @property
    def pause(self) -> float:
        """Seconds until the next glance; there is no need for one while nobody works."""
        return self._pause if self._places else math.inf

    def take(self, reader: str, key: str, run: Run | None, now: float) -> None:
        """A run is like this now."""
        self._places.pop((reader, key), None)
        if run is None or run.state is not RunState.WORKING or run.process_gone:
            return
        if run.updated_at > now - _AT_WORK_SECONDS:
            self._places[reader, key] = run.place
            if len(self._places) > _MOST_AT_WORK:
                del self._places[next(iter(self._places))]

    def glance(self) -> set[str]:
        """The readers of the files that were written since the glance before."""
        began = time.perf_counter()
        before, self._stamps = self._stamps, {}
        written: set[str] = set()
        for (reader, _), place in self._places.items():
            for path in _files_of(place):
                if path not in self._stamps:
                    self._stamps[path] = _stamp(path)
                if path in before and before[path] != self._stamps[path]:
                    written.add(reader)
        self._pause = max(_GLANCE_SECONDS, (time.perf_counter() - began) / _GLANCE_SHARE)
        return written


def _files_of(place: str) -> tuple[str, ...]:
    """What to look at for a run: a database is written in its log first, a directory by a file in it, and beside a
    transcript, or below its name, lie those of the agents that it asks."""
    above, _, name = place.rpartition("/")
    if name.endswith(".db"):
        return place, f"{place}-wal"
    if "." not in name:
        return place, f"{place}/progress.md"
    return place, above, f"{place.removesuffix('.jsonl')}/subagents"


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116  twenty times a second
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size
