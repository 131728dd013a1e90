"""Runs as a reader gives them, followed from one read to the next."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from agentwatch.delegation.run import Run
from agentwatch.sources.opencode.opencode_reader import OpenCodeReader

LONG = 10.0


@dataclass
class Reading:
    """A reader, and what it has given so far."""

    reader: OpenCodeReader
    runs: dict[str, Run] = field(default_factory=dict)

    def read(self, seconds: float = LONG) -> dict[str, Run]:
        """Read once, and give the runs there are now."""
        for change in self.reader.read(seconds):
            if change.run is None:
                del self.runs[change.key]
            else:
                self.runs[change.key] = change.run
        return self.runs

    def said(self, session: str) -> str | None:
        """What a session came to."""
        said = self.runs[session].said
        return self.reader.text(said.digest) if said is not None else None


def reading(workspace: Path, database: Path) -> Reading:
    """Read from the beginning."""
    return Reading(OpenCodeReader(workspace, database))


def fresh(workspace: Path, database: Path) -> dict[str, Run]:
    """The runs that somebody sees who has just come."""
    new = reading(workspace, database)
    try:
        return new.read()
    finally:
        new.reader.close()
