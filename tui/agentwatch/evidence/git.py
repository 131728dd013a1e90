"""What git says of the files of a workspace: tracked before a handoff, changed since; a few processes for all of them.

Files that a filter rewrites (large file storage) are compared as they lie on disk, because no filter is run.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from agentwatch.background import meanwhile
from agentwatch.evidence.plumbing import SECONDS, GitFailedError, Plumbing, plumbing
from agentwatch.evidence.repository import Repository, find_repository
from agentwatch.sources.worktrees import NoRepositoryError

SLACK: Final = 0.05
"""Seconds by which two clocks may differ: a file's time comes from a coarser one than a program's."""

_UNMERGED: Final = frozenset({b"DD", b"AU", b"UD", b"UA", b"DU", b"AA", b"UU"})
_COMMITS_BYTES: Final = 4 * 1024 * 1024
_RENAMED: Final = 200
"""Missing paths that git is asked about in one round."""
_MOVES: Final = 5
"""How often one file may have been moved."""
_MODE: Final = "X"
_RENAME: Final = re.compile(r"R\d{1,3}")
_FAN_OUT: Final = 2
"""Letters of a directory of stored objects."""
_ASKED: Final = 200
"""Paths that git is given at once: it holds each file that it knows against each of them."""
_ROUNDS: Final = 10
"""Of more, it looks at everything."""
_LATEST: Final = 2**31 - 1
"""The last second that older versions of git understand."""


class GitFacts(NamedTuple):
    """One path. None where git cannot say.

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


@dataclass(slots=True)
class GitHistory:
    """What the last commit and those before it say: it holds until another commit is checked out."""

    repository: Repository | None = None
    tracked: frozenset[str] | None = frozenset()
    """The paths of the last commit, None where they were too many to list."""
    bases: dict[float, str | None] = field(default_factory=dict)
    """The commit at a handoff's time, None where nothing was ever committed. Left out where it is not known."""
    committed: dict[str, dict[str, str]] = field(default_factory=dict)
    """By commit, what the ones after it have done to a path: A added, D deleted, M or T changed, X its mode only."""
    renamed: dict[str, str | None] = field(default_factory=dict)
    """Where commits have moved a path to that is not there any more, None for nowhere."""


class GitView(NamedTuple):
    """One round of answers. Paths are relative to the workspace. `changed` differ from the last commit and are not
    deleted, `untracked` are neither tracked nor ignored. `complete`: all of the changes were listed."""

    repository: Repository
    history: GitHistory
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
        history = self.history
        if history.tracked is None or (not self.complete and path not in self.changed):
            return None
        now = path in history.tracked
        tracked_before: bool | None = None
        committed: bool | None = None
        if handed_off_at is not None and handed_off_at in history.bases:
            base = history.bases[handed_off_at]
            if base is None:
                tracked_before, committed = False, now
            elif base in history.committed:
                done = history.committed[base].get(path)
                tracked_before = done != "A" if now else done == "D"
                committed = None if done == _MODE else done is not None
        lost = path in self.deleted and path in self.untracked
        changed = None if lost else path in self.changed or path in self.deleted
        known = now or changed is not False
        return GitFacts(known, tracked_before, committed, changed, not known and path not in self.untracked)

    def facts_below(self, directory: str, handed_off_at: float | None) -> GitFacts | None:
        """The facts of a directory: what holds of any file that git has in it."""
        start = f"{directory}/"
        paths = {path for path in (self.history.tracked or frozenset()) | self.changed if path.startswith(start)}
        inner = [self.facts(path, handed_off_at) for path in paths or (directory,)]
        known = [facts for facts in inner if facts is not None]
        if len(known) < len(inner):
            return None
        before, committed = _any(one.tracked_before for one in known), _any(one.committed for one in known)
        changed = _any(one.changed for one in known)
        is_new = any(path.startswith(start) for path in self.untracked - self.deleted)
        return GitFacts(bool(paths), before, committed, True if is_new else changed, not paths and not is_new)

    def changes_since(self, handed_off_at: float) -> frozenset[str] | None:
        """What commits have done something to since a handoff; None where it was not looked up."""
        if handed_off_at not in self.history.bases:
            return None
        base = self.history.bases[handed_off_at]
        if base is None:
            return self.history.tracked
        done = self.history.committed.get(base)
        return None if done is None else frozenset(done)


def look(workspace: str, handoffs: Iterable[float], history: GitHistory, *, seconds: float = SECONDS) -> GitView:
    """Ask git once for everything, given the times of the handoffs. Raises NoRepositoryError with the reason.

    `workspace` is absolute and resolved; each process may take `seconds`. `history` is kept from look to look.
    """
    repository = find_repository(workspace)
    # What was made, or put there, after a handoff knows nothing of what was before.
    began = _began(repository)
    times = sorted({time for time in handoffs if math.isfinite(time) and began <= time})
    git = plumbing(repository, seconds=seconds)
    with meanwhile(lambda: _status(git)) as status:
        # That is the longest of the questions.
        if history.repository != repository:
            history.tracked = _tracked(git, repository.head) if repository.head is not None else frozenset()
            history.repository, history.bases, history.committed, history.renamed = repository, {}, {}, {}
        if repository.head is None:
            # Whatever was stored may have been a commit once.
            with os.scandir(f"{repository.common_directory}/objects") as objects:
                stored = any(len(entry.name) == _FAN_OUT for entry in objects)
            history.bases = {} if stored else dict.fromkeys(times)
        else:
            # A history that breaks off says nothing of the past; what is there now can still be told.
            with contextlib.suppress(GitFailedError):
                if missing := [time for time in times if time not in history.bases]:
                    bases = _bases(git, repository.head, missing)
                    # A first commit since the handoff may have taken the place of others.
                    history.bases |= {time: base for time, base in bases.items() if base is not None}
                asked = {history.bases[time] for time in times if time in history.bases}
                history.committed |= _committed(git, repository.head, asked - history.committed.keys())
        return GitView(repository, history, *status())


def renames(paths: Iterable[str], history: GitHistory, *, seconds: float = SECONDS) -> dict[str, str]:
    """Where git moved these files, which are not there any more: by a commit, or in the index. Nothing where it fails.

    `history` is what `look` has filled a moment ago.
    """
    targets: dict[str, str] = {}
    repository = history.repository
    if repository is None or repository.head is None:
        return targets
    with contextlib.suppress(NoRepositoryError):
        git = plumbing(repository, seconds=seconds)
        options = ("-M", "-z", "--name-status", "--diff-filter=R", "--no-ext-diff")
        staged = _moves(git, "diff-index", "--cached", *options, repository.head)
        asked = set(paths)
        for _ in range(_MOVES):
            if new := sorted(asked - history.renamed.keys())[:_RENAMED]:
                log = ("log", "--format=%H", "--diff-filter=D", "--no-renames", repository.head, "--")
                commits = git.ask(*log, *(repository.prefix + path for path in new)).text
                moved = _moves(git, "diff-tree", "--stdin", "-r", *options, given=commits) if commits else {}
                history.renamed |= {path: moved.get(path) for path in new}
            steps = {path: staged.get(path) or history.renamed.get(path) for path in asked}
            targets |= {path: target for path, target in steps.items() if target is not None}
            asked = {target for target in steps.values() if target is not None} - targets.keys()
    ends = {path: path for path in targets}
    for _ in range(_MOVES):
        ends = {path: targets.get(end, end) for path, end in ends.items()}
    return ends


def _moves(git: Plumbing, *command: str, given: bytes = b"") -> dict[str, str]:
    """The renames that a command of git lists, the latest first, below the workspace."""
    words = iter(os.fsdecode(word) for word in git.ask(*command, given=given).text.split(b"\0"))
    prefix = git.repository.prefix
    moves: dict[str, str] = {}
    for word in words:
        if not _RENAME.fullmatch(word.rpartition("\n")[2]):
            continue
        old, new = next(words, ""), next(words, "")
        if old.startswith(prefix) and new.startswith(prefix):
            moves.setdefault(old.removeprefix(prefix), new.removeprefix(prefix))
    return moves


def _began(repository: Repository) -> float:
    """When the oldest file of a repository was put there: its own time can be set back, that of its inode cannot."""
    with contextlib.suppress(OSError), os.scandir(repository.common_directory) as entries:
        return min((os.lstat(entry.path).st_ctime for entry in entries), default=math.inf)
    return math.inf


def _any(values: Iterable[bool | None]) -> bool | None:
    known = set(values)
    return True if True in known else None if None in known else False


def commit_before(git: Plumbing, head: str, time: float) -> str | None:
    """The commit that was checked out, as far as history tells, at this time; None where there was none."""
    return _bases(git, head, [time])[time]


def unchanged(git: Plumbing, head: str, names: Sequence[str]) -> frozenset[str]:
    """Those of the files that hold what the last commit has; none where they cannot all be listed.

    git looks into no others: where all were copied, it has to read each that it looks at.
    """
    tracked = _tracked(git, head)
    if tracked is None:
        return frozenset()
    held = tracked.intersection(names)
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
    prefix = os.fsencode(git.repository.prefix)
    status, staged = git.status(paths or [git.repository.prefix or "."], untracked=lists_untracked)
    changed, deleted, untracked = set[str](), set[str](), set[str]()
    # The last word of what was cut may be half a name.
    for entry in status.text.split(b"\0")[:-1]:
        # How it stands to a commit, which git sees none of, and to the index.
        how, path = entry[:2], os.fsdecode(entry[3:].removeprefix(prefix))
        if how == b"??":
            untracked.add(path)
        elif how[1:] == b"D":
            deleted.add(path)
        elif how[1:] != b" " or how in _UNMERGED or git.repository.head is None:
            changed.add(path)
    words = iter(staged.text.split(b"\0")[:-1])
    for word, name in zip(words, words, strict=False):
        old_mode, mode, old, new, letter = word.removeprefix(b":").split(b" ")
        path = os.fsdecode(name.removeprefix(prefix))
        if letter == b"D":
            deleted.add(path)
        elif path not in deleted and (old != new or old_mode[:3] != mode[:3]) and letter != b"U":
            changed.add(path)
    return frozenset(changed), frozenset(deleted), frozenset(untracked), not (status.cut or staged.cut)


def _bases(git: Plumbing, head: str, times: list[float]) -> dict[float, str | None]:
    """The last commit at each of the times, given in order."""
    first = git.ask("rev-list", "-1", f"--min-age={min(max(math.floor(times[0]) - 1, 0), _LATEST)}", head).text.split()
    oldest = first[0].decode() if first else None
    span = [head] if oldest is None else [f"{oldest}..{head}"]
    output = git.ask("rev-list", "--timestamp", *span, max_bytes=_COMMITS_BYTES)
    if output.cut:
        raise GitFailedError("too many commits since the handoff")
    lines = (line.decode().partition(" ") for line in output.text.splitlines())
    commits = [(float(stamp), name) for stamp, _, name in lines]
    if oldest is not None:
        commits.append((-math.inf, oldest))
    return {
        time: next((name for stamp, name in commits if stamp <= time and _was_there(git, name, time)), None)
        for time in times
    }


def _was_there(git: Plumbing, commit: str, time: float) -> bool:
    """Whether a commit of this time was there: its own can be set back, and that of its object's inode cannot."""
    try:
        status = os.lstat(f"{git.repository.common_directory}/objects/{commit[:2]}/{commit[2:]}")
    except OSError:
        return True
    return max(status.st_mtime, status.st_ctime) <= time


def _tracked(git: Plumbing, head: str) -> frozenset[str] | None:
    """The paths of a commit. Only trees are read: the files themselves may be missing in a partial clone."""
    output = git.ask("ls-tree", "-r", "-z", "--full-tree", "--name-only", head, "--", git.repository.prefix or ".")
    names = (os.fsdecode(name) for name in output.text.split(b"\0") if name)
    return None if output.cut else frozenset(name.removeprefix(git.repository.prefix) for name in names)


def _committed(git: Plumbing, head: str, bases: set[str | None]) -> dict[str, dict[str, str]]:
    """What was done to each path between each of the commits and the last one, by one process."""
    done: dict[str, dict[str, str]] = {head: {}} if head in bases else {}
    asked = sorted(base for base in bases if base is not None and base != head)
    if not asked:
        return done
    # Compares the first with the second as if that were its only parent.
    given = "".join(f"{head} {base}\n" for base in asked).encode()
    prefix = git.repository.prefix
    options = ("--stdin", "--always", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff")
    output = git.ask("diff-tree", *options, "--", prefix or ".", given=given)
    words = iter(output.text.split(b"\0")[:-1])
    answers: list[dict[str, str]] = []
    for word in words:
        # `:mode mode object object letter` is followed by a path; anything else is the head of the next answer.
        if word.startswith(b":") and answers:
            old_mode, mode, old, new, letter = word.decode("ascii", "replace").removeprefix(":").split(" ")
            path = next(words, None)
            if path is not None:
                only_mode = old == new and old_mode[:2] == mode[:2]
                answers[-1][os.fsdecode(path).removeprefix(prefix)] = _MODE if only_mode else letter
        else:
            answers.append({})
    if output.cut:
        answers.pop()
    return done | dict(zip(asked, answers, strict=False))
