"""When the files of a workspace were committed, for those that hold what was committed: asked once for all of them."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path
from typing import Final

from agentwatch.sources.files.walk import is_candidate

SECONDS: Final = (6.0, 30.0, 120.0)
"""How long git may take for an answer, the first time and whenever it was too slow. No file is shown meanwhile; what
git does not say by then goes by the times of the files, and those of a copy would have all of it ask."""

_MAX_BYTES: Final = 16 * 1024 * 1024


class Commits:
    """Asks git the first time that somebody wants to know. To be called in a thread: it may take all the `SECONDS`."""

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
            self._times = self._ask_until_it_answers()
        return self._times.get(name) if written <= self._asked_at else None

    def _ask_until_it_answers(self) -> dict[str, float]:
        from agentwatch.evidence.plumbing import GitSlowError
        from agentwatch.sources.worktrees import NoRepositoryError

        for seconds in SECONDS:
            try:
                return self._ask(seconds)
            except GitSlowError:
                continue
            except NoRepositoryError:
                break
        return {}

    def _ask(self, seconds: float) -> dict[str, float]:
        # Not before somebody asks: a screen appears sooner.
        from agentwatch.evidence.git import unchanged
        from agentwatch.evidence.plumbing import find_repository, plumbing

        repository = find_repository(self._workspace)
        if repository.head is None:
            return {}
        git = plumbing(repository, seconds=seconds)
        # No file can be called so.
        mark = f"\1{secrets.token_hex(8)} "
        options = ("-z", f"--format={mark}%ct", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff")
        place = repository.prefix or "."
        output = git.ask("log", *options, repository.head, "--", place, max_bytes=_MAX_BYTES)
        times = _times(output.text, mark.encode(), os.fsencode(repository.prefix))
        held = unchanged(git, repository.head, list(times))
        return {name: times[name] for name in held}


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
