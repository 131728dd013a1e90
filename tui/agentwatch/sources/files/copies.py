"""Which files of a first look were copied: the time of such a file says nothing of what it holds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from agentwatch.kept import looks
from agentwatch.sources.files.read import FileRefusedError, read_file

_SESSION: Final = re.compile(r'"session_id"\s*:\s*"sess_(\d{10})["_]')
"""Ids of sessions begin with the time, in seconds since the epoch."""

_APART: Final = 7 * 86_400.0
"""Seconds between the beginning of a session and its return; what is later was copied, or the id is invented."""


class _Moment(NamedTuple):
    """When the first and the last of the sessions began that are named in what was written in one second."""

    first: float
    last: float


class Copies:
    """The files below `root` that a first look finds. They are looked into only where somebody asks."""

    def __init__(self, root: str, names: Iterable[str], max_bytes: int) -> None:
        self._root = root
        self._names = names
        self._max_bytes = max_bytes
        self._written: dict[int, list[str]] | None = None
        """By second."""
        self._moments: dict[int, _Moment | None] = {}

    def began(self, session_id: str | None, written: float) -> float | None:
        """When the work in a file began that was `written` long after its session, by the id of that session (both in
        seconds since the epoch); None where that says nothing.

        Anybody may invent an id, or take that of an example. So it counts only where a copy shows: what was written in
        the same second or beside it is of a session that began at quite another time.
        """
        match = _SESSION.match(f'"session_id":"{session_id}"')
        if match is None or written - (began := float(match[1])) <= _APART:
            return None
        beside = (self._moment(int(written) + off) for off in (-1, 0, 1))
        is_copied = any(one is not None and max(began - one.first, one.last - began) > _APART for one in beside)
        return began if is_copied else None

    def _moment(self, second: int) -> _Moment | None:
        if second not in self._moments:
            if self._written is None:
                looks.all_matter()
                self._written = {}
                for name in self._names:
                    if (at := self._written_at(name)) is not None:
                        self._written.setdefault(at, []).append(name)
            texts = map(self._text, self._written.get(second, ()))
            began = [float(at) for text in texts for at in _SESSION.findall(text)]
            self._moments[second] = _Moment(min(began), max(began)) if began else None
        return self._moments[second]

    def _written_at(self, name: str) -> int | None:
        try:
            return int(os.lstat(os.path.join(self._root, name)).st_mtime)  # noqa: PTH118
        except OSError:
            return None

    def _text(self, name: str) -> str:
        try:
            return read_file(self._root, name, self._max_bytes).text
        except (FileRefusedError, OSError):
            return ""
