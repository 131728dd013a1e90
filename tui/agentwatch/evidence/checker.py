"""Checks the claims of many returns together, so that each file and git are read only once for all claims."""

import math
import os
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from sys import intern
from typing import NamedTuple

from agentwatch.delegation.events import Claim, Run, Verdict
from agentwatch.evidence.claims import ClaimKind, RawClaim
from agentwatch.evidence.disk import DOCUMENT, DiskFacts, FileKind, moved_places, place_of, read_facts
from agentwatch.evidence.git import SECONDS, SLACK, GitFacts, GitView, NotInRepositoryError, place_finder, read_git
from agentwatch.evidence.inspector import Target
from agentwatch.sources.files.read import FileRefusedError, event_path, read_file, system_name
from agentwatch.sources.worktrees import NoRepositoryError

_YES, _NO, _OPEN = Verdict.VERIFIED, Verdict.CONTRADICTED, Verdict.UNVERIFIABLE
_NANOSECONDS = 1_000_000_000
_LARGEST = 4 * 1024 * 1024  # bytes; the lines of a larger file are not counted
_OWN = ".agentwatch/"  # files that agentwatch itself writes in a workspace
_LONGEST_CLAIM = 4_096  # characters of a claimed path or text; more are cut off
_EMPTY_BY_NATURE = re.compile(
    r"(?:.*/)?(?:__init__\.py|conftest\.py|py\.typed|\.(?:gitkeep|keep|nojekyll|npmignore))\Z"
)
_CAME = "last written before the handoff, but put there, or committed, since: a copy or a move keeps its time"
_SINCE = "written since the handoff"
_UNREAD = "; its content was not checked"

_Judged = tuple[Verdict, str]


class CheckRequest(NamedTuple):
    """A return, and its claims that must be checked (`stated`). `gone` tells whether the return's file is deleted."""

    target: Target
    stated: Sequence[RawClaim]
    gone: bool = False


class CheckResult(NamedTuple):
    """The checked claims of a return. If one of the `facts` (by path) changes, the claims must be checked again."""

    claims: tuple[Claim, ...]
    facts: dict[str, DiskFacts]


class _HandedOff(NamedTuple):
    """The time when the handoff was written (`at`, epoch seconds). If the time is unknown, `at` is None and `why` is
    the reason. The file's time may have been set back, so `sure` is a time at which the file certainly existed."""

    at: float | None = None
    sure: float = 0.0
    why: str = "nobody knows when the task was handed off"


class Checker:
    """Checks claims in one workspace, in a worker thread. Each check reads the disk and git anew. `change_by_others`
    gets some runs and two times. It describes how other runs changed files between these times, or returns ""."""

    def __init__(
        self,
        workspace: Path,
        *,
        git_seconds: float = SECONDS,
        change_by_others: Callable[[Sequence[Run], float, float], str] = lambda *_: "",
    ):
        self._root, self._git_seconds, self._by_others = os.path.realpath(workspace), git_seconds, change_by_others
        self._has_git, self._without_git = False, ""
        self._view: GitView | None = None
        self._find_elsewhere: Callable[[str], str]

    def check(self, requests: Sequence[CheckRequest]) -> list[CheckResult]:
        """Return a result for each request, in the same order. Blocks while git works."""
        # Each path is resolved and read only once for all requests.
        self._place, self._read_facts = (
            cache(partial(place_of, workspace=self._root)),
            cache(partial(read_facts, self._root)),
        )
        self._view, self._without_git, self._find_elsewhere = None, "", lambda _: ""
        times = [one.target.handed_off_at for one in requests]
        try:
            self._view = read_git(self._root, filter(None, times), seconds=self._git_seconds)
            self._has_git = True
            self._find_elsewhere = place_finder(self._view.git, min(at or 0.0 for at in times))
        except NotInRepositoryError as error:
            self._without_git = "the git repository is gone" if self._has_git else str(error)
        except NoRepositoryError as error:
            self._has_git, self._without_git = True, str(error)
        results = [self._check_return(request) for request in requests]
        self._place.cache_clear()
        self._read_facts.cache_clear()
        return results

    def _check_return(self, request: CheckRequest) -> CheckResult:
        handed = self._handoff_time(request.target)
        claims = tuple(self._judge_claim(one, request, handed) for one in request.stated)
        watched = {system_name(one.file) for one in claims if one.file}
        watched |= {self._place(one.claim.path).relative or "." for one in request.stated if one.is_file}
        return CheckResult(claims, {path: self._read_facts(path) for path in sorted(watched)})

    def _judge_claim(self, one: RawClaim, request: CheckRequest, handed: _HandedOff) -> Claim:
        claim = one.claim._replace(path=one.claim.path[:_LONGEST_CLAIM])
        if one.is_file:
            return self._judge_file(claim, one, request, handed)
        if claim.verdict is not _YES or claim.call is None:
            return claim
        since, target = claim.call.at, request.target
        change = self._git_change(since, target.returned.at) or self._by_others(target.runs, since, target.returned.at)
        detail = f"outdated: {claim.detail}; after that {change}"
        return claim._replace(verdict=_OPEN, detail=detail) if change else claim

    def _current_path(self, path: str, target: Target) -> str:
        """Return the path of a claimed file now: as claimed, or where the file was moved together with its return."""
        if target.returned.stored or self._read_facts(path).kind is not FileKind.MISSING:
            return path
        near = moved_places(path, system_name(target.returned.path), target.former)
        return next((one for one in near if self._read_facts(one).is_there), path)

    def _git_change(self, since: float, until: float) -> str:
        """Name a file that git lists as changed and that was written between two times. Return "" if there is none."""
        first, last = since + SLACK, until + SLACK
        for path in sorted(self._view.changed_since(first)) if self._view is not None else ():
            is_own = DOCUMENT.search(path) or path.startswith(_OWN)
            if not is_own and first < self._read_facts(path).mtime_ns / _NANOSECONDS <= last:
                return f"{event_path(path)} was changed"
        return ""

    def _handoff_time(self, target: Target) -> _HandedOff:
        at, returned_at, handoff = target.handed_off_at, target.returned.at, target.handoff
        if at is None:
            return _HandedOff()
        now = at if handoff is None else handoff.at
        if at > returned_at or at == returned_at < now:
            return _HandedOff(why="the handoff was written after its return")
        name = self._place(system_name(handoff.path)).relative if handoff else None
        if name is None:
            return _HandedOff(at, at)
        git, disk = self._read_git_facts(name, at), self._read_facts(name)
        is_known = self._view is not None and self._view.known_since <= at
        if is_known and git and git.tracked_before is not False and not (git.committed or git.changed):
            return _HandedOff(why="git had the handoff before the time that its file has")
        if disk.kind is FileKind.REFUSED:
            return _HandedOff(why="the handoff cannot be looked at")
        # A file's own time can be set back, but not the time when its inode was last changed.
        is_file = disk.kind is FileKind.REGULAR and now == at
        return _HandedOff(at, max(at, disk.ctime_ns / _NANOSECONDS) if is_file else at)

    def _read_git_facts(self, path: str, handed_off_at: float | None) -> GitFacts | None:
        # git cannot answer for a directory: some of its files may be new, and some old.
        if self._view is None or self._read_facts(path).kind is FileKind.DIRECTORY:
            return None
        return self._view.facts(path, handed_off_at)

    # Claimed files

    def _judge_file(self, claim: Claim, one: RawClaim, request: CheckRequest, handed: _HandedOff) -> Claim:
        path, fault = self._place(one.claim.path)
        if path is None:
            # Evidence may be a file anywhere. Only a file that the child makes must lie in the workspace.
            is_open = claim.detail or claim.kind == ClaimKind.EVIDENCE or not claim.path.strip()
            return claim._replace(verdict=_OPEN if is_open else _NO, detail=claim.detail or fault)
        current = self._current_path(path, request.target)
        disk, (verdict, detail) = self._read_facts(current), (claim.verdict, claim.detail)
        git, before = self._read_git_facts(current, handed.at), self._read_git_facts(path, handed.at)
        if git is not None and before is not None and before.tracked_before:
            git = git._replace(tracked_before=True)
        if detail:
            if verdict is _YES and not disk.is_there:
                verdict, detail = _OPEN, f"{detail}, but no such file was found"
        elif disk.kind is FileKind.MISSING:
            verdict, detail = _judge_missing(one, git, is_gone=request.gone)
        else:
            verdict, detail = self._judge_found(one, current, disk, git, handed)
        is_missing = verdict is _NO and disk.kind is FileKind.MISSING
        if is_missing and (place := self._find_elsewhere(current)):
            verdict, detail, is_missing = _OPEN, f"missing here, but {place}", False
        if current != path:
            detail = f"moved since, to {current}: {detail}"
        # Interning saves memory, because many claims share a few reasons.
        return claim._replace(verdict=verdict, detail=intern(detail), file=event_path(current), is_missing=is_missing)

    def _judge_found(
        self, one: RawClaim, path: str, disk: DiskFacts, git: GitFacts | None, handed: _HandedOff
    ) -> _Judged:
        kind = ClaimKind(one.claim.kind)
        if disk.kind is FileKind.REFUSED:
            return _OPEN, f"cannot be looked at: {disk.words}"
        if disk.kind is FileKind.OUTSIDE:
            verdict = _NO if kind.is_made or kind is ClaimKind.REFERENCE else _OPEN
            return verdict, "outside the workspace: a symbolic link leads there, and agentwatch does not follow it"
        if disk.kind is FileKind.OTHER:
            return _NO, f"not a regular file: {disk.words}"
        return self._judge_made(one, path, disk, git, handed) if kind.is_made else self._judge_cited(one, path, disk)

    def _judge_cited(self, one: RawClaim, path: str, disk: DiskFacts) -> _Judged:
        found = "exists, but is empty" if disk.empty else f"exists{_UNREAD}"
        if one.claim.lines is not None:
            first, last = one.claim.lines
            if disk.kind is FileKind.DIRECTORY:
                return _NO, "a directory: it has no lines"
            if not 1 <= first <= last:
                return _NO, f"lines {first}-{last} are no range: the first is 1 and the last is not before it"
            try:
                text = read_file(self._root, path, _LARGEST).text
            except (FileNotFoundError, FileRefusedError) as error:
                return _OPEN, f"exists, but its lines were not counted: {getattr(error, 'reason', 'it is gone')}"
            count = text.count("\n") + bool(text.rpartition("\n")[2])
            if last > count:
                return _NO, f"line range {first}-{last} is beyond the end: the file has {count} lines"
            found = f"exists, with lines {first}-{last}{_UNREAD}"
        return (_OPEN, "the file exists; what is said of it cannot be checked") if one.is_about else (_YES, found)

    def _judge_made(
        self, one: RawClaim, path: str, disk: DiskFacts, git: GitFacts | None, handed: _HandedOff
    ) -> _Judged:
        kind, is_directory = one.claim.kind, disk.kind is FileKind.DIRECTORY
        if not is_directory and one.claim.path.strip().endswith(("/", "/.")):
            return _NO, "claimed as a directory by its last `/`, but it is a file"
        if disk.empty and not _EMPTY_BY_NATURE.match(path):
            return _NO, f"empty: the {'directory' if is_directory else 'file'} holds nothing"
        if handed.at is None:
            if kind in (ClaimKind.DELIVERABLE, ClaimKind.ARTIFACT):
                # The claim says only that the file exists, so the handoff's time does not matter.
                return _YES, f"exists{_UNREAD}"
            return _OPEN, f"exists; {handed.why}, so nothing tells whether it was made for this task"
        why = self._without_git or "a directory" * is_directory
        if any(os.path.lexists(f"{self._root}/{above}/.git") for above in Path(path).parents[:-1]):
            git, why = None, "it lies in a git repository of its own"
        had_it = git is not None and git.tracked_before
        if kind == ClaimKind.CREATED and had_it:
            return _NO, "claimed created but tracked before the handoff: git already had it"
        if _is_older(disk.mtime_ns, handed.at):
            if kind not in (ClaimKind.CREATED, ClaimKind.MODIFIED):
                return _OPEN, "exists, but was last written before the handoff: nothing shows that this attempt made it"
            if not _is_older(disk.ctime_ns, handed.at) or (git and git.committed):
                return _OPEN, _CAME
            if is_directory and kind == ClaimKind.MODIFIED:
                return _OPEN, "a directory, whose time says nothing of the files in it"
            return _NO, f"older than the handoff: claimed {kind}, but last written before it"
        if _is_older(disk.mtime_ns, handed.sure):
            return _OPEN, f"{_SINCE}, but the handoff was put there, or given its time, after that"
        if disk.links > 1 and not had_it:
            return _OPEN, f"{_SINCE}, but it has another name (a hard link), and may be as old as that"
        if git is None and not self._has_git:
            return _YES, f"exists, {_SINCE} ({why}){_UNREAD}"
        if git is None or git.tracked_before is None or git.changed is None:
            why = why or "its history does not reach back to the handoff, or its index breaks off"
            return _OPEN, f"{_SINCE}, but git cannot say whether it differs from before ({why})"
        if not git.tracked_before:
            if kind == ClaimKind.MODIFIED and not git.untracked:
                return _OPEN, f"{_SINCE}, but git ignores it, or did not have it before under this name"
            return _YES, f"exists, {_SINCE}, and git did not have it before{_UNREAD}"
        if git.committed or git.changed:
            return _YES, f"differs from {'before' if git.committed else 'the last commit'}, {_SINCE}"
        return _OPEN, f"{_SINCE}, but git sees no difference: its content is what it was"


def _judge_missing(one: RawClaim, git: GitFacts | None, *, is_gone: bool) -> _Judged:
    """Return the verdict and the reason for a missing file. `is_gone` tells whether its return is missing, too."""
    kind, was_there = one.claim.kind, git is not None and git.tracked_before
    if is_gone:
        return _OPEN, "missing, and so is its return: the work may have been cleared away as a whole"
    if one.excuse:
        return _OPEN, one.excuse
    if set("*?") & set(one.claim.path):
        return _OPEN, "a pattern, not a path: name the files one by one"
    if was_there and kind not in (ClaimKind.CREATED, ClaimKind.MUST_CREATE):
        return _OPEN, "missing: git had it before the handoff; to delete a file changes it, too"
    why = "git had it before the handoff, and it is gone" if was_there else "no such file in the workspace"
    return _NO, f"missing: {why}"


def _is_older(nanoseconds: int, time: float) -> bool:
    """Tell whether a file's time in nanoseconds is before `time`, in seconds."""
    if nanoseconds % _NANOSECONDS == 0:
        # Some file systems keep only whole seconds.
        return nanoseconds // _NANOSECONDS < math.floor(time)
    return nanoseconds / _NANOSECONDS < time - SLACK
