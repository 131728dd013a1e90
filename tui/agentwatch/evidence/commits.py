"""When the files of a workspace were committed, for those that hold what was committed: asked once for all of them."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path
from typing import Final

from agentwatch.sources.files.walk import is_candidate

SECONDS: Final = 120.0  # git may take so long: the times of the files of a copy would have all of it ask for somebody


class Commits:
    """Asks git the first time that somebody wants to know. To be called in a thread: it may take the `SECONDS`."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = os.path.realpath(workspace)
        self._times: dict[str, float] | None = None
        self._asked_at = 0.0

    def time_of(self, name: str, written: float) -> float | None:
        """When what a file holds was first committed, under whatever name, in seconds since the epoch.

        `name` is relative to the workspace, `written` when the file was last written. None where git cannot say, or
        the file holds something else by now.
        """
        if self._times is None:
            self._asked_at = time.time()
            self._times = self._ask()
        return self._times.get(name) if written <= self._asked_at else None

    def _ask(self) -> dict[str, float]:
        # Not before somebody asks: a screen appears sooner.
        from agentwatch.evidence.git import unchanged
        from agentwatch.evidence.plumbing import find_repository, plumbing
        from agentwatch.sources.worktrees import NoRepositoryError

        try:
            repository = find_repository(self._workspace)
            if (head := repository.head) is None:
                return {}
            git = plumbing(repository, seconds=SECONDS)
            # No file can be called so.
            mark = f"\1{secrets.token_hex(8)} "
            options = ("-z", f"--format={mark}%ct", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff")
            log = git.ask("log", *options, head, "--", repository.prefix or ".", cuts=True)
            times = _times(log.text, mark.encode(), os.fsencode(repository.prefix))
            return {name: times[name] for name in unchanged(git, head, list(times))}
        except NoRepositoryError:
            return {}


def _times(log: bytes, mark: bytes, prefix: bytes) -> dict[str, float]:
    """When what the commits have of each file that may be read was first committed. The log tells the newest commit
    first. Renamed and archived work is as old as its content."""
    blobs: dict[str, bytes] = {}
    first: dict[bytes, float] = {}
    at, blob = 0.0, b""
    # The last word may be half a name.
    for word in log.split(b"\0")[:-1]:
        if word.startswith(mark):
            at = float(word[len(mark) :])
        elif not blob:
            # `:modes, blob before, blob after, kind`, in front of the name.
            blob = word.lstrip(b"\n").split(b" ")[3]
        else:
            name = os.fsdecode(word.removeprefix(prefix))
            first[blob] = at
            if is_candidate(name):
                blobs.setdefault(name, blob)
            blob = b""
    return {name: first[blob] for name, blob in blobs.items()}
