"""The answers of git about the files of a workspace: tracked before a handoff, changed since, or elsewhere.

Files that a filter rewrites (large file storage) are compared as they lie on disk, because no filter is run.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from agentwatch.evidence.disk import look
from agentwatch.evidence.plumbing import SECONDS, GitFailedError, Plumbing, find_repository, plumbing
from agentwatch.sources.files.walk import is_candidate
from agentwatch.sources.worktrees import NoRepositoryError, worktrees_of

SLACK: Final = 0.05  # seconds by which two clocks may differ: a file's time comes from a coarser one than a program's
_ASKED: Final = 200  # paths that git is given at once: of more, it looks at everything
COPY_SECONDS: Final = 120.0  # the times of the files of a copy would have all of it ask for somebody
_TIPS: Final = 5_000
_FAN_OUT: Final = 2  # letters of a directory of stored objects
_LATEST: Final = 2**31 - 1  # the last second that older versions of git understand
_MODE: Final = "X"
_OPTIONS: Final = ("-z", "--no-renames", "--ignore-submodules=all")


class GitFacts(NamedTuple):
    """The answer about one path. None where git cannot say, or `tracked_before` and `committed` without a handoff.

    `known`: in the index or the last commit. `tracked_before`: git had it at the handoff. `committed`: a commit has
    changed it since, None where only its mode. `changed`: it differs from the last commit; None where the index has
    lost it. `ignored`: git was told not to look.
    """

    known: bool
    tracked_before: bool | None
    committed: bool | None
    changed: bool | None
    ignored: bool = False


class GitView(NamedTuple):
    """One round of answers. Paths are relative to the workspace, and `tracked` are those of the last commit.

    `touched` has by path the (time, letter of git, or X for its mode) of the commits since the oldest handoff, the
    newest first; it tells of the handoffs since `known_since`.
    """

    git: Plumbing
    tracked: frozenset[str]
    touched: dict[str, list[tuple[float, str]]]
    known_since: float
    changed: frozenset[str]
    deleted: frozenset[str]
    untracked: frozenset[str]

    def facts(self, path: str, handed_off_at: float | None) -> GitFacts:
        """The facts of a file, with the time of the handoff."""
        now, before, committed = path in self.tracked, None, None
        times = self.touched.get(path, [])
        # A commit of the handoff's second may be from before or after it.
        if handed_off_at is not None and self.known_since <= handed_off_at:
            since = [letter for at, letter in times if at > handed_off_at]
            if not any(handed_off_at - 1 < at <= handed_off_at for at, _ in times):
                before = since[-1] != "A" if since else now
                committed = None if since and set(since) == {_MODE} else bool(since)
        is_lost = path in self.deleted and path in self.untracked
        changed = None if is_lost else path in self.changed or path in self.deleted
        known = now or changed is not False
        return GitFacts(known, before, committed, changed, not known and path not in self.untracked)

    def changed_since(self, time: float) -> set[str]:
        """The paths that may have been changed since a time: those that differ, and those of later commits."""
        later = {path for path, times in self.touched.items() if times[0][0] > time - 1}
        return later | self.changed | self.deleted | self.untracked


def ask_git(workspace: str, handoffs: Iterable[float], *, seconds: float = SECONDS) -> GitView:
    """Ask git once for everything, given the times of the handoffs. Raises NoRepositoryError with the reason.

    `workspace` is absolute and resolved; each process may take `seconds`.
    """
    repository = find_repository(workspace)
    git, head = plumbing(repository, seconds=seconds), repository.head
    # What was made, or put there, after a handoff knows nothing of what was before: a time can be set back, but not
    # when an inode was changed.
    with os.scandir(repository.common_directory) as entries:
        began = min((os.lstat(entry.path).st_ctime for entry in entries), default=math.inf)
    times = [time for time in handoffs if math.isfinite(time) and began <= time]
    known_since, touched = began, dict[str, list[tuple[float, str]]]()
    if head is None:
        # Whatever was stored may have been a commit once.
        with os.scandir(f"{repository.common_directory}/objects") as objects:
            known_since = math.inf if any(len(entry.name) == _FAN_OUT for entry in objects) else began
        return GitView(git, frozenset(), touched, known_since, *_differing(git))
    tracked = frozenset(_tree(git, head))
    if times:
        # A history that breaks off says nothing of the past; what is there now can still be told.
        known_since = math.inf
        with contextlib.suppress(GitFailedError):
            first = commit_before(git, head, min(times))
            oldest = math.inf
            for at, _, word, path in _log(git, head if first is None else f"{first}..{head}"):
                oldest = min(oldest, at)
                touched.setdefault(path, []).append((at, _letter(word)))
            # A first commit since the handoff may have taken the place of others.
            known_since = began if first is not None else max(began, oldest)
    return GitView(git, tracked, touched, known_since, *_differing(git))


def commit_before(git: Plumbing, head: str, time: float) -> str | None:
    """The commit that was checked out, as far as history tells, at this time; None where there was none."""
    age = min(max(math.floor(time) - 1, 0), _LATEST)
    return git.ask("rev-list", "-1", f"--min-age={age}", head).text.decode().strip() or None


def unchanged(git: Plumbing, head: str, names: list[str]) -> set[str]:
    """Those of the files that hold what the last commit has. git looks into no others, if they are not too many: where
    all were copied, it has to read each that it looks at."""
    wanted = [git.repository.prefix + name for name in names] if len(names) <= _ASKED else []
    changed, deleted, _ = _differing(git, *wanted)
    return set(names).intersection(_tree(git, head)) - changed - deleted


def _tree(git: Plumbing, head: str) -> Iterator[str]:
    """The paths of a commit. Only trees are read: the files themselves may be missing in a partial clone."""
    prefix = git.repository.prefix
    names = git.ask("ls-tree", "-r", "-z", "--full-tree", "--name-only", head, "--", prefix or ".").words
    return (name.removeprefix(prefix) for name in names)


def _differing(git: Plumbing, *paths: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The files that are (changed, deleted, untracked), of the workspace or of these paths in the repository."""
    prefix, head = git.repository.prefix, git.repository.head
    places = ("--", *(paths or [prefix or "."]))
    changed, deleted, untracked = set[str](), set[str](), set[str]()
    status = ("status", "--porcelain=v1", "-z", "--ignore-submodules=all", "--no-renames", "--untracked-files=all")
    for entry in git.ask(*status, *places).words:
        # How it stands to a commit, which git sees none of, and to the index.
        how, path = entry[:2], entry[3:].removeprefix(prefix)
        if how == "??":
            untracked.add(path)
        elif how[1:] == "D":
            deleted.add(path)
        elif how[1:] != " " or head is None:
            changed.add(path)
    if head is not None:
        words = iter(git.ask("diff-index", "--cached", "--raw", *_OPTIONS, head, *places).words)
        for word in words:
            letter, path = _letter(word), next(words, "").removeprefix(prefix)
            if letter == "D":
                deleted.add(path)
            elif path not in deleted and letter not in ("U", _MODE):
                changed.add(path)
    return frozenset(changed), frozenset(deleted), frozenset(untracked)


def _letter(word: str) -> str:
    """The letter of `:mode mode blob blob letter`; of a file of which only the mode differs, another one."""
    if word[:1] != ":":
        raise GitFailedError("git's answer cannot be understood")
    old_mode, mode, old, new, letter = word[1:].split(" ")
    return _MODE if old == new and old_mode[:3] == mode[:3] else letter


def _log(git: Plumbing, *asked: str, cuts: bool = False) -> Iterator[tuple[float, str, str, str]]:
    """(time, short name, what was done as git has it, path) of the commits that a log lists, the newest first."""
    # No file can be called so.
    mark, prefix, at, commit = f"\1{secrets.token_hex(8)} ", git.repository.prefix, 0.0, ""
    options = ("--raw", "--no-abbrev", "--no-ext-diff", f"--format={mark}%ct %H", *_OPTIONS)
    output = git.ask("log", *options, *asked, "--", prefix or ".", cuts=cuts)
    # The last word of what was cut may be half a name.
    words = iter(output.words[:-1] if output.cut else output.words)
    for word in words:
        if word.startswith(mark):
            stamp, commit = word.removeprefix(mark).split(" ")
            at = float(stamp)
        else:
            yield at, commit[:10], word.lstrip("\n"), next(words, "").removeprefix(prefix)


def elsewhere(view: GitView, missing: Collection[str], since: float) -> dict[str, str]:
    """By path, the work tree, or the commit since a time (epoch seconds), that has a missing file, in words. Whoever
    committed the work to a branch and went back, or removed it later, has not lied."""
    found: dict[str, str] = {}
    try:
        repository = view.git.repository
        for tree in worktrees_of(repository.top):
            there = f"{tree}/{repository.prefix}".rstrip("/")
            found |= {path: f"the work tree {tree} has it" for path in missing if look(there, path).is_there}
        named, age = repository.tips[:_TIPS], f"--max-age={max(math.floor(since), 0)}"
        asked = ("--full-history", "--diff-filter=AMT", "--ignore-missing", age, *named)
        for _, commit, _, name in _log(view.git, *asked) if named else ():
            for path in {name, *map(str, PurePosixPath(name).parents)}.intersection(missing):
                found.setdefault(path, f"commit {commit} has it")
    except NoRepositoryError as error:
        return dict.fromkeys(missing, f"git could not be asked whether a commit has it ({error})") | found
    return found


class Commits:
    """When what the files of a workspace hold was committed, asked once for all of them. It may take the
    `COPY_SECONDS`: a thread is to call it."""

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
        try:
            git = plumbing(find_repository(self._workspace), seconds=COPY_SECONDS)
            if (head := git.repository.head) is None:
                return {}
            # The newest commit comes first. Renamed and archived work is as old as its content.
            blobs, first = dict[str, str](), dict[str, float]()
            for at, _, word, name in _log(git, head, cuts=True):
                blob = word.split(" ")[3]
                first[blob] = at
                if name and is_candidate(name):
                    blobs.setdefault(name, blob)
            return {name: first[blobs[name]] for name in unchanged(git, head, list(blobs))}
        except NoRepositoryError:
            return {}
