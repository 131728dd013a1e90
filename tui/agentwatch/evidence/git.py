"""The answers of git about the files of a workspace: tracked before a handoff, changed since, moved, or elsewhere.

A few processes answer for all files. Those that a filter rewrites (large file storage) are compared as they lie on
disk, because no filter is run.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from agentwatch.evidence.disk import Disk, FileKind
from agentwatch.evidence.plumbing import SECONDS, GitFailedError, Output, Plumbing, find_repository, plumbing, tips
from agentwatch.sources.worktrees import NoRepositoryError, worktrees_of

SLACK: Final = 0.05
"""Seconds by which two clocks may differ: a file's time comes from a coarser one than a program's."""

_UNMERGED: Final = re.compile(r"DD|AU|UD|UA|DU|AA|UU")
_COMMITS_BYTES: Final = 4 * 1024 * 1024
_MOVES: Final = 5
"""How often one file may have been moved."""
_MODE: Final = "X"
_RENAME: Final = re.compile(r"(?:.*\n)?R\d{1,3}", re.DOTALL)
_FAN_OUT: Final = 2
"""Letters of a directory of stored objects."""
_ASKED: Final = 200
"""Paths that git is given at once: it holds each file that it knows against each of them."""
_ROUNDS: Final = 10
"""Of more, it looks at everything."""
_LATEST: Final = 2**31 - 1
"""The last second that older versions of git understand."""
_NANOSECONDS: Final = 1_000_000_000


class GitFacts(NamedTuple):
    """The answer about one path. None where git cannot say.

    `known`: in the index or the last commit. `tracked_before`: in the commit that was there at the handoff.
    `committed`: the last commit has it otherwise than the one at the handoff, None where only its mode differs.
    `changed`: it differs from the last commit. Without a handoff `tracked_before` and `committed` are None; `changed`
    is None for a file that the index has lost, for then nobody has compared it. `ignored`: git was told not to look.
    """

    known: bool
    tracked_before: bool | None
    committed: bool | None
    changed: bool | None
    ignored: bool = False


class GitView(NamedTuple):
    """One round of answers. Paths are relative to the workspace.

    `tracked` are the paths of the last commit, None where they were too many to list. `bases` has the commit at a
    handoff's time, None where nothing was ever committed; it is left out where that is not known. `committed` has by
    commit what the ones after it have done to a path: A added, D deleted, M or T changed, X its mode only. `changed`
    differ from the last commit and are not deleted, `untracked` are neither tracked nor ignored. `complete`: all of the
    changes were listed.
    """

    git: Plumbing
    tracked: frozenset[str] | None
    bases: dict[float, str | None]
    committed: dict[str, dict[str, str]]
    changed: frozenset[str]
    deleted: frozenset[str]
    untracked: frozenset[str]
    complete: bool

    @property
    def differing(self) -> frozenset[str]:
        """All that differ from the last commit, in whatever way."""
        return self.changed | self.deleted | self.untracked

    def facts(self, path: str, handed_off_at: float | None) -> GitFacts | None:
        """The facts of a path, with the time of the handoff; None where they are not known."""
        if self.tracked is None or (not self.complete and path not in self.changed):
            return None
        now = path in self.tracked
        before: bool | None = None
        committed: bool | None = None
        if handed_off_at is not None and handed_off_at in self.bases:
            base = self.bases[handed_off_at]
            if base is None:
                before, committed = False, now
            elif base in self.committed:
                done = self.committed[base].get(path)
                before = done != "A" if now else done == "D"
                committed = None if done == _MODE else done is not None
        lost = path in self.deleted and path in self.untracked
        changed = None if lost else path in self.changed or path in self.deleted
        known = now or changed is not False
        return GitFacts(known, before, committed, changed, not known and path not in self.untracked)

    def facts_below(self, directory: str, handed_off_at: float | None) -> GitFacts | None:
        """The facts of a directory: what holds of any file that git has in it."""
        start = f"{directory}/"
        paths = {path for path in (self.tracked or frozenset()) | self.changed if path.startswith(start)}
        inner = [self.facts(path, handed_off_at) for path in paths or (directory,)]
        known = [facts for facts in inner if facts is not None]
        if len(known) < len(inner):
            return None
        _, before, committed, changed, _ = (
            True if True in values else None if None in values else False for values in zip(*known, strict=True)
        )
        is_new = any(path.startswith(start) for path in self.untracked - self.deleted)
        return GitFacts(bool(paths), before, committed, is_new or changed, not paths and not is_new)

    def changes_since(self, handed_off_at: float) -> frozenset[str] | None:
        """The paths that commits have done something to since a handoff; None where it was not looked up."""
        base = self.bases.get(handed_off_at, "")
        if base is None:
            return self.tracked
        return frozenset(self.committed[base]) if base in self.committed else None


def look(workspace: str, handoffs: Iterable[float], *, seconds: float = SECONDS) -> GitView:
    """Ask git once for everything, given the times of the handoffs. Raises NoRepositoryError with the reason.

    `workspace` is absolute and resolved; each process may take `seconds`.
    """
    repository = find_repository(workspace)
    git, head = plumbing(repository, seconds=seconds), repository.head
    # What was made, or put there, after a handoff knows nothing of what was before: a time can be set back, but not
    # when an inode was changed.
    with os.scandir(repository.common_directory) as entries:
        began = min((os.lstat(entry.path).st_ctime for entry in entries), default=math.inf)
    times = sorted({time for time in handoffs if math.isfinite(time) and began <= time})
    bases: dict[float, str | None] = {}
    committed: dict[str, dict[str, str]] = {}
    tracked: frozenset[str] | None = frozenset()
    if head is None:
        # Whatever was stored may have been a commit once.
        with os.scandir(f"{repository.common_directory}/objects") as objects:
            bases = {} if any(len(entry.name) == _FAN_OUT for entry in objects) else dict.fromkeys(times)
    else:
        tracked = _tracked(git, head)
        # A history that breaks off says nothing of the past; what is there now can still be told.
        with contextlib.suppress(GitFailedError):
            known = _bases(git, head, times) if times else {}
            # A first commit since the handoff may have taken the place of others.
            bases = {time: base for time, base in known.items() if base is not None}
            committed = _committed(git, head, {base for base in known.values() if base is not None})
    return GitView(git, tracked, bases, committed, *_status(git))


def _words(output: Output) -> list[str]:
    """The words of an answer; the last one of what was cut may be half a name."""
    return os.fsdecode(output.text).split("\0")[:-1]


def _raw(output: Output, prefix: str) -> Iterator[tuple[str, str]]:
    """(what was done, path) of a raw difference, and ("", word) of every other word."""
    words = iter(_words(output))
    for word in words:
        if not word.startswith(":"):
            yield "", word
            continue
        old_mode, mode, old, new, letter = word[1:].split(" ")
        path = next(words, None)
        if path is not None:
            only_mode = old == new and old_mode[:3] == mode[:3]
            yield _MODE if only_mode else letter, path.removeprefix(prefix)


def commit_before(git: Plumbing, head: str, time: float) -> str | None:
    """The commit that was checked out, as far as history tells, at this time; None where there was none."""
    return _bases(git, head, [time])[time]


def unchanged(git: Plumbing, head: str, names: Sequence[str]) -> frozenset[str]:
    """Those of the files that hold what the last commit has; none where they cannot all be listed.

    git looks into no others: where all were copied, it has to read each that it looks at.
    """
    held = (_tracked(git, head) or frozenset()).intersection(names)
    wanted = [git.repository.prefix + name for name in sorted(held)]
    rounds = [wanted[start : start + _ASKED] for start in range(0, len(wanted), _ASKED)]
    for paths in rounds if len(rounds) <= _ROUNDS else [()]:
        changed, deleted, _, complete = _status(git, paths, lists_untracked=False)
        held -= changed | deleted
        if not complete:
            return frozenset()
    return held


def _status(
    git: Plumbing, paths: Sequence[str] = (), *, lists_untracked: bool = True
) -> tuple[frozenset[str], frozenset[str], frozenset[str], bool]:
    """(changed, deleted, untracked, whether that is all), of the workspace or of these `paths` in the repository."""
    prefix = git.repository.prefix
    status, staged = git.status(paths or [prefix or "."], untracked=lists_untracked)
    changed, deleted, untracked = set[str](), set[str](), set[str]()
    for entry in _words(status):
        # How it stands to a commit, which git sees none of, and to the index.
        how, path = entry[:2], entry[3:].removeprefix(prefix)
        if how == "??":
            untracked.add(path)
        elif how[1:] == "D":
            deleted.add(path)
        elif how[1:] != " " or _UNMERGED.match(how) or git.repository.head is None:
            changed.add(path)
    for letter, path in _raw(staged, prefix):
        if letter == "D":
            deleted.add(path)
        elif path not in deleted and letter not in ("U", _MODE):
            changed.add(path)
    return frozenset(changed), frozenset(deleted), frozenset(untracked), not (status.cut or staged.cut)


def _bases(git: Plumbing, head: str, times: list[float]) -> dict[float, str | None]:
    """The last commit at each of the times, given in order."""
    first = git.ask("rev-list", "-1", f"--min-age={min(max(math.floor(times[0]) - 1, 0), _LATEST)}", head).text.split()
    oldest = first[0].decode() if first else None
    span = head if oldest is None else f"{oldest}..{head}"
    output = git.ask("rev-list", "--timestamp", span, max_bytes=_COMMITS_BYTES)
    if output.cut:
        raise GitFailedError("too many commits since the handoff")
    commits = [(float(stamp), name) for stamp, name in (line.decode().split() for line in output.text.splitlines())]
    if oldest is not None:
        commits.append((-math.inf, oldest))
    there = (
        (time, next((name for stamp, name in commits if stamp <= time and _was_there(git, name, time)), None))
        for time in times
    )
    return dict(there)


def _was_there(git: Plumbing, commit: str, time: float) -> bool:
    """Whether a commit of this time was there: its own can be set back, and that of its object's inode cannot."""
    with contextlib.suppress(OSError):
        status = os.lstat(f"{git.repository.common_directory}/objects/{commit[:2]}/{commit[2:]}")
        return max(status.st_mtime, status.st_ctime) <= time
    return True


def _tracked(git: Plumbing, head: str) -> frozenset[str] | None:
    """The paths of a commit. Only trees are read: the files themselves may be missing in a partial clone."""
    prefix = git.repository.prefix
    output = git.ask("ls-tree", "-r", "-z", "--full-tree", "--name-only", head, "--", prefix or ".")
    return None if output.cut else frozenset(name.removeprefix(prefix) for name in _words(output))


def _committed(git: Plumbing, head: str, bases: set[str]) -> dict[str, dict[str, str]]:
    """The changes to each path between each of the commits and the last one, by one process."""
    asked, prefix = sorted(bases - {head}), git.repository.prefix
    done: dict[str, dict[str, str]] = {head: {}}
    if asked:
        # Compares the first with the second as if that were its only parent.
        given = "".join(f"{head} {base}\n" for base in asked).encode()
        options = ("--stdin", "--always", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff")
        output = git.ask("diff-tree", *options, "--", prefix or ".", given=given)
        answers: list[dict[str, str]] = []
        for letter, path in _raw(output, prefix):
            if not letter:
                answers.append({})
            elif answers:
                answers[-1][path] = letter
        done |= dict(zip(asked, answers[:-1] if output.cut else answers, strict=False))
    return done


# Files that are missing here


def renames(view: GitView, paths: Iterable[str]) -> dict[str, str]:
    """Where git moved these files, which are not there any more: by a commit, or in the index. Nothing where"
    " it fails."""
    targets: dict[str, str] = {}
    git, head = view.git, view.git.repository.head
    if head is None:
        return targets
    with contextlib.suppress(NoRepositoryError):
        options = ("-M", "-z", "--name-status", "--diff-filter=R", "--no-ext-diff")
        staged = _moves(git, "diff-index", "--cached", *options, head)
        asked = set(paths)
        for _ in range(_MOVES):
            if not asked:
                break
            log = ("log", "--format=%H", "--diff-filter=D", "--no-renames", head, "--")
            commits = git.ask(*log, *(git.repository.prefix + path for path in sorted(asked)[:_ASKED])).text
            moved = _moves(git, "diff-tree", "--stdin", "-r", *options, given=commits) if commits else {}
            steps = {path: to for path in asked if (to := staged.get(path) or moved.get(path)) is not None}
            targets |= steps
            asked = set(steps.values()) - targets.keys()
    ends = {path: path for path in targets}
    for _ in range(_MOVES):
        ends = {path: targets.get(end, end) for path, end in ends.items()}
    return ends


def _moves(git: Plumbing, *command: str, given: bytes = b"") -> dict[str, str]:
    """The renames that a command of git lists, the latest first, below the workspace."""
    words, prefix = iter(_words(git.ask(*command, given=given))), git.repository.prefix
    moves: dict[str, str] = {}
    for word in words:
        if _RENAME.fullmatch(word):
            old, new = next(words, ""), next(words, "")
            if old.startswith(prefix) and new.startswith(prefix):
                moves.setdefault(old.removeprefix(prefix), new.removeprefix(prefix))
    return moves


class Elsewhere(NamedTuple):
    """The places of files that are missing, by path: when, in epoch seconds, and in words; the latest of each.

    `unasked` is why git did not say, "" where it did. Who committed the work to a branch and went back, or removed it
    later, has not lied.
    """

    places: dict[str, tuple[float, str]]
    unasked: str = ""

    def words(self, path: str, since: float | None) -> str:
        """The place of a file that was made since a handoff, or at any time without one; "" where none is known."""
        at, words = self.places.get(path, (-math.inf, ""))
        is_since = since is None or not math.isfinite(since) or at + SLACK >= math.floor(since)
        return words if words and is_since else self.unasked


def elsewhere(view: GitView, paths: Collection[str], since: float) -> Elsewhere:
    """Look for these paths, which are missing, in other work trees and in commits made `since` (epoch seconds)."""
    found: dict[str, tuple[float, str]] = {}
    try:
        repository = view.git.repository
        for tree in worktrees_of(repository.top):
            for path, facts in Disk(f"{tree}/{repository.prefix}".rstrip("/")).look(paths).items():
                if facts.kind in (FileKind.REGULAR, FileKind.DIRECTORY) and facts.variant is None:
                    at = max(facts.mtime_ns, facts.ctime_ns) / _NANOSECONDS
                    found[path] = at, f"the work tree {tree} has it"
        for path, place in _in_commits(view.git, set(paths) - found.keys(), since):
            found.setdefault(path, place)
    except NoRepositoryError as error:
        return Elsewhere(found, f"git could not be asked whether a commit has it ({error})")
    return Elsewhere(found)


def _in_commits(git: Plumbing, paths: set[str], since: float) -> Iterator[tuple[str, tuple[float, str]]]:
    """Of each path the latest commit that has written it, or something below it."""
    commits, prefix = tips(git.repository), git.repository.prefix
    # A line each is how git is told; of more paths, it lists everything.
    asked = sorted(path for path in paths if "\n" not in path)
    if not asked or not commits:
        return
    places = [prefix + path for path in asked] if len(asked) <= _ASKED else [prefix or "."]
    # No file can be called so.
    mark = f"\1{secrets.token_hex(8)} "
    options = ("-z", "--full-history", "--name-only", "--diff-filter=AMT", "--no-renames", "--no-ext-diff")
    told = (f"--max-age={max(math.floor(since), 0)}", f"--format={mark}%H %ct", *options)
    given = os.fsencode("".join(f"{line}\n" for line in (*commits, "--", *places)))
    commit, at = "", 0.0
    for word in _words(git.ask("log", "--ignore-missing", "--stdin", *told, given=given)):
        if word.startswith(mark):
            commit, _, time = word.removeprefix(mark).partition(" ")
            at = float(time)
            continue
        name = word.removeprefix("\n").removeprefix(prefix)
        while name:
            if name in paths:
                yield name, (at, f"commit {commit[:10]} has it")
            name = name.rpartition("/")[0]
