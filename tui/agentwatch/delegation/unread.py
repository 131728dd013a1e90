"""Whose the files are that cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from agentwatch.contracts.shapes import Handoff
from agentwatch.delegation import identity
from agentwatch.delegation.events import Unreadable
from agentwatch.delegation.files import Files
from agentwatch.delegation.indexes import Groups
from agentwatch.delegation.task import PlacedFinding, Version

_REFUSED: Final = "SRC"
"""How the ids of the rules begin that a file must keep to be read at all."""


class Unread:
    """Files that cannot be read: each belongs to the tasks that it spoke of before, and to a handoff beside it."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._findings: dict[str, PlacedFinding] = {}
        self._written: dict[str, float] = {}
        """When the files were written, in epoch seconds."""
        self._by_slot = Groups[identity.Slot]()

    @property
    def notices(self) -> list[PlacedFinding]:
        """What is wrong with files that belong to no task, by their names."""
        unread = [placed for path, placed in self._findings.items() if not self._files.tasks_beside(path)]
        return sorted(unread + self._files.nobodys, key=lambda placed: placed.path)

    def see(self, event: Unreadable) -> set[str]:
        """A file cannot be read. Returns the tasks that this concerns."""
        path = event.path
        self._findings[path] = PlacedFinding(event.finding, path)
        self._written[path] = event.at
        self._by_slot.add(identity.slot(path), path)
        return self._files.tasks_beside(path)

    def clear(self, path: str) -> set[str]:
        """A file can be read again, or is gone. Returns the tasks that this concerns."""
        if self._findings.pop(path, None) is None:
            return set()
        del self._written[path]
        self._by_slot.discard(identity.slot(path), path)
        return self._files.tasks_beside(path)

    @property
    def times(self) -> Iterable[float]:
        """When the files that cannot be read were written, in epoch seconds."""
        return self._written.values()

    @property
    def paths(self) -> set[str]:
        """Every file that cannot be read, and those that are returns by their names alone and are nobody's."""
        return {*self._findings, *(placed.path for placed in self._files.nobodys)}

    def hidden(self, versions: Sequence[Version]) -> dict[str, float]:
        """The handoffs and returns of a task, by their names, that are there and were refused, and when they were
        written (epoch seconds)."""
        refused = (one.path for one in self.of(versions) if one.finding.rule.startswith(_REFUSED))
        return {path: self._written[path] for path in refused if identity.is_under_contract(path)}

    def of(self, versions: Sequence[Version]) -> tuple[PlacedFinding, ...]:
        """What is wrong with the files of a task that has these versions."""
        if not self._findings:
            return ()
        paths = dict.fromkeys(version.path for version in versions)
        for version in versions:
            if isinstance(version.document, Handoff) and not self._files.is_gone(version.path):
                paths |= dict.fromkeys(sorted(self._by_slot.of(identity.slot(version.path))))
        return tuple(self._findings[path] for path in paths if path in self._findings)
