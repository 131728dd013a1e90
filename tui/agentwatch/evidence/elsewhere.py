"""Where git has the files that are not in the workspace: in a commit of any branch, or in another work tree.

One question for all of them. Who committed the work to a branch and went back, or removed it later, has not lied.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from agentwatch.evidence.disk import Disk, FileKind
from agentwatch.evidence.git import SLACK
from agentwatch.evidence.plumbing import SECONDS, plumbing
from agentwatch.evidence.repository import Repository, tips
from agentwatch.sources.worktrees import NoRepositoryError, worktrees_of

_ASKED: Final = 200
"""Paths that git is given; of more, it lists everything."""
_SHOWN: Final = 10
"""Letters of a commit's name."""
_NANOSECONDS: Final = 1_000_000_000


class Elsewhere(NamedTuple):
    """Who has files that are missing, by path: when, in epoch seconds, and in words; the latest of each."""

    places: dict[str, tuple[float, str]]
    unasked: str = ""
    """Why git did not say, "" where it did."""

    def words(self, path: str, since: float | None) -> str:
        """Who has a file that was made since a handoff, or at any time without one; "" where nobody is known to."""
        at, words = self.places.get(path, (-math.inf, ""))
        is_since = since is None or not math.isfinite(since) or at + SLACK >= math.floor(since)
        return words if words and is_since else self.unasked


def elsewhere(repository: Repository, paths: Collection[str], since: float, *, seconds: float = SECONDS) -> Elsewhere:
    """Look for these paths of the workspace, which are missing there, in what was made `since` (epoch seconds)."""
    wanted = set(paths)
    try:
        found = dict(_in_work_trees(repository, wanted))
        unasked = ""
        for path, place in _in_commits(repository, wanted - found.keys(), since, seconds=seconds):
            found.setdefault(path, place)
    except NoRepositoryError as error:
        unasked = f"git could not be asked whether a commit has it ({error})"
    return Elsewhere(found, unasked)


def _in_work_trees(repository: Repository, paths: set[str]) -> Iterator[tuple[str, tuple[float, str]]]:
    for tree in worktrees_of(repository.top):
        top = f"{tree}/{repository.prefix}".rstrip("/")
        for path, facts in Disk(top).look(paths).items():
            if facts.kind in (FileKind.REGULAR, FileKind.DIRECTORY) and facts.variant is None:
                yield path, (max(facts.mtime_ns, facts.ctime_ns) / _NANOSECONDS, f"the work tree {tree} has it")


def _in_commits(
    repository: Repository, paths: set[str], since: float, *, seconds: float
) -> Iterator[tuple[str, tuple[float, str]]]:
    """Of each path the latest commit that has written it, or something below it."""
    commits = tips(repository)
    # A line each is how git is told.
    asked = sorted(path for path in paths if "\n" not in path)
    if not asked or not commits:
        return
    places = [repository.prefix + path for path in asked] if len(asked) <= _ASKED else [repository.prefix or "."]
    # No file can be called so.
    mark = f"\1{secrets.token_hex(8)} "
    options = (
        f"--max-age={max(math.floor(since), 0)}",
        f"--format={mark}%H %ct",
        "-z",
        "--full-history",
        "--name-only",
        "--diff-filter=AMT",
        "--no-renames",
        "--no-ext-diff",
    )
    git = plumbing(repository, seconds=seconds)
    given = os.fsencode("".join(f"{line}\n" for line in (*commits, "--", *places)))
    output = git.ask("log", "--ignore-missing", "--stdin", *options, given=given)
    commit, at, prefix = "", 0.0, repository.prefix
    # The last word may be half a name.
    for word in output.text.split(b"\0")[:-1]:
        text = os.fsdecode(word)
        if text.startswith(mark):
            commit, _, time = text.removeprefix(mark).partition(" ")
            at = float(time)
            continue
        name = text.removeprefix("\n").removeprefix(prefix)
        while name:
            if name in paths:
                yield name, (at, f"commit {commit[:_SHOWN]} has it")
            name = name.rpartition("/")[0]
