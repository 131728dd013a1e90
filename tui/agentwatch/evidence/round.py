"""What disk and git said in one round of checking, and what has changed by that."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, takewhile
from pathlib import Path
from typing import Final

from agentwatch.delegation.claims import Change, Claim
from agentwatch.evidence import verdicts
from agentwatch.evidence.disk import MISSING, Disk, DiskFacts, FileKind
from agentwatch.evidence.elsewhere import Elsewhere
from agentwatch.evidence.git import SLACK, GitFacts, GitView
from agentwatch.sources.files.walk import to_path

MAX_CHANGED: Final = 1_000
"""Changed files that a result names."""
_NANOSECONDS: Final = 1_000_000_000
_OWN: Final = ".agentwatch/"
"""What agentwatch itself writes in a workspace: nobody's work."""
_READ: Final = 64 * 1024 * 1024
"""Bytes read in one round."""


@dataclass(slots=True)
class Round:
    """What disk and git said this time. `unread` is how many bytes may still be read."""

    facts: dict[str, DiskFacts]
    view: GitView | None
    without_git: str
    failed: bool
    """There is a repository, and it could not be asked."""
    disk: Disk
    moved: dict[tuple[int, str], str] = field(default_factory=dict)
    """By the number of a request and a path that is missing, where the file lies now."""
    elsewhere: Elsewhere = field(default_factory=lambda: Elsewhere({}))
    """Of the other paths that are missing."""
    nested: dict[str, bool] = field(default_factory=dict)
    unread: int = _READ
    changes: dict[float, tuple[str, ...] | None] = field(default_factory=dict)
    newest: list[str] | None = None
    """The files that differ from the last commit, the one last written first."""

    claims: dict[tuple[str, str], Claim] = field(default_factory=dict)
    """Found of other returns, by what they name and say of it."""

    def shared(self, claim: Claim) -> Claim:
        """The same, one for all returns that claim it."""
        known = self.claims.setdefault((claim.path, claim.detail), claim)
        return known if known == claim else claim

    def changed_since(self, handed_off_at: float | None) -> tuple[str, ...] | None:
        """The paths changed since a handoff by commits, or on disk and written since; None where git cannot say."""
        if handed_off_at is None or not math.isfinite(handed_off_at) or self.view is None:
            return None
        if handed_off_at not in self.changes:
            self.changes[handed_off_at] = self._changed(self.view, handed_off_at)
        return self.changes[handed_off_at]

    def changed_during(self, handed_off_at: float | None, returned_at: float | None) -> tuple[Change, ...] | None:
        """The files that changed between a handoff and a return; None where git cannot say."""
        paths = self.changed_since(handed_off_at)
        if paths is None or handed_off_at is None:
            return None
        if missing := [path for path in paths if path not in self.facts]:
            self.facts |= self.disk.look(missing)
        last = math.inf if returned_at is None else returned_at + SLACK
        during = (
            Change(to_path(path), facts.mtime_ns / _NANOSECONDS)
            for path in paths
            if (facts := self._itself(path)).mtime_ns <= last * _NANOSECONDS
            and not verdicts.is_older(facts, handed_off_at)
            and not path.startswith(_OWN)
        )
        return tuple(islice(during, MAX_CHANGED))

    def git_facts(self, path: str, handed_off_at: float | None) -> GitFacts | None:
        """What git says of a file, or of what it has in a directory; None where it says nothing."""
        if self.view is None:
            return None
        is_directory = self.facts[path].kind is FileKind.DIRECTORY
        return (self.view.facts_below if is_directory else self.view.facts)(path, handed_off_at)

    def _changed(self, view: GitView, handed_off_at: float) -> tuple[str, ...] | None:
        committed = view.changes_since(handed_off_at)
        if committed is None or not view.complete:
            return None
        if self.newest is None:
            self.newest = sorted(view.differing, key=lambda path: self._itself(path).mtime_ns, reverse=True)
        written = takewhile(lambda path: not verdicts.is_older(self._itself(path), handed_off_at), self.newest)
        return tuple(sorted(committed.union(written)))

    def _itself(self, path: str) -> DiskFacts:
        """A file as it is; of what is a link by now, the link; of what is gone, the directory that lost it."""
        facts = self.facts[path]
        if facts.kind is FileKind.REGULAR and not facts.linked:
            return facts
        place = Path(self.disk.root, path)
        for one in (place, *place.parents):
            with suppress(OSError):
                return DiskFacts(FileKind.OTHER, 0, one.lstat().st_mtime_ns)
        return MISSING
