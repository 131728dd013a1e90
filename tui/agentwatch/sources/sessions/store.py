"""What the readers of this package have in common: what was given, what has changed of it, and texts by digest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from agentwatch.delegation.run import Run
from agentwatch.sources.sessions.reader import Change, Found
from agentwatch.sources.sessions.texts import Texts


class StoreReader:
    """The same part of every `SessionReader`; nothing is held open between two calls."""

    def __init__(self, name: str, texts: Texts) -> None:
        self._name = name
        self._texts = texts
        self._given: Mapping[str, Run] = {}
        """The runs as they were last given, by key."""

    @property
    def name(self) -> str:
        return self._name

    def text(self, digest: str) -> str | None:
        return self._texts.get(digest)

    def close(self) -> None:
        """Nothing is open."""

    def _give(self, runs: Mapping[str, Run]) -> list[Change]:
        """What has changed, now that these are all runs there are."""
        before, self._given = self._given, runs
        return changes_between(before, runs)

    def _found(self, place: object, skipped: str, runs: Iterable[Run]) -> Found:
        """A place where these runs were found."""
        asked_for = [run.parent_session is not None for run in runs]
        return Found(self.name, str(place), asked_for.count(False), skipped, asked_for.count(True))


class Workspace:
    """The directory in which the agents work, whatever others call it."""

    def __init__(self, path: Path) -> None:
        self.path = os.path.realpath(path)
        self._same: dict[str, bool] = {}

    def is_at(self, directory: str) -> bool:
        """Whether this, as a foreign file names it, is the workspace."""
        known = self._same.get(directory)
        if known is None:
            try:
                known = os.path.isabs(directory) and os.path.realpath(directory) == self.path  # noqa: PTH117
            except (OSError, ValueError):
                known = False
            self._same[directory] = known
        return known


def changes_between(before: Mapping[str, Run], after: Mapping[str, Run]) -> list[Change]:
    """What turns these runs, by key, into those."""
    gone = [Change(key, None) for key in before.keys() - after.keys()]
    return gone + [Change(key, run) for key, run in after.items() if before.get(key) != run]


def several(count: int, noun: str) -> str:
    """A number of things: `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
