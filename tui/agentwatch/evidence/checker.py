"""Checks the claims of many returns in one round: one look at the disk and at git for all of them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from io import StringIO
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.delegation.claims import Claim, Deed, Verdict
from agentwatch.evidence.claims import ClaimKind, Stated, limit_of
from agentwatch.evidence.disk import MISSING, ClaimedPlace, DiskFacts, FileKind, beside, look, place_of, trace
from agentwatch.evidence.git import SLACK, GitFacts, GitView, ask_git, elsewhere
from agentwatch.evidence.log import is_document
from agentwatch.evidence.plumbing import SECONDS, NotInRepositoryError
from agentwatch.evidence.verdicts import Handed, Sight, judge, judge_constraint
from agentwatch.sources.files.read import FileRefusedError, read_file
from agentwatch.sources.files.walk import to_name, to_path
from agentwatch.sources.worktrees import NoRepositoryError

_NANOSECONDS: Final = 1_000_000_000
_LARGEST: Final = 4 * 1024 * 1024  # bytes of a file whose lines are counted
_OWN: Final = ".agentwatch/"  # files that agentwatch itself writes in a workspace: nobody's work


class Request(NamedTuple):
    """The statements of a return, to be checked. Names are paths relative to the workspace; times are in epoch seconds.

    Without `returned_at` the attempt has lasted until now. `handoff_at` is the time of the handoff as it is now, where
    that is another version than the one that was handed off. `stored`: it is no file but a session's. `former` are the
    names under which the return lay before; `gone`: it is not there any more. `unsaid` is what the log has and the
    return does not speak of; `changed_since` says what others changed since a time, as logs show.
    """

    stated: Sequence[Stated]
    returned_name: str
    handoff_name: str | None = None
    handed_off_at: float | None = None
    returned_at: float | None = None
    handoff_at: float | None = None
    stored: bool = False
    former: tuple[str, ...] = ()
    gone: bool = False
    unsaid: tuple[Deed, ...] = ()
    changed_since: Callable[[float], str] = lambda _: ""


class Result(NamedTuple):
    """The claims of a return, in its order, and the paths whose change should cause another check.

    `traces` are those of the paths before they were looked at. `git` is "" or why git said nothing. `is_elsewhere`: a
    file is missing, and may be anywhere by now.
    """

    claims: tuple[Claim, ...]
    traces: dict[str, object]
    git: str = ""
    is_elsewhere: bool = False


class Checker:
    """Checks claims in one workspace, in a worker thread."""

    def __init__(self, workspace: Path, *, git_seconds: float = SECONDS) -> None:
        self._workspace, self._git_seconds = os.path.realpath(workspace), git_seconds
        self._had_git = False

    def check(self, requests: Sequence[Request]) -> list[Result]:
        """A result for each request, in their order. Blocks for as long as git takes."""
        if not requests:
            return []
        view, words, failed = None, "", True
        try:
            times = [one.handed_off_at for one in requests if one.handed_off_at is not None]
            view = ask_git(self._workspace, times, seconds=self._git_seconds)
            self._had_git = True
        except NotInRepositoryError as error:
            words, failed = "the git repository is gone" if self._had_git else str(error), self._had_git
        except NoRepositoryError as error:
            words = str(error)
        state = _Round(self._workspace, view, words, failed)
        places = [
            [place_of(one.claim.path, self._workspace) if one.names_file else None for one in request.stated]
            for request in requests
        ]
        state.find_missing(requests, places)
        return [state.result(*one) for one in zip(range(len(requests)), requests, places, strict=True)]


class _Round:
    """The answers of disk and git this time. `failed`: there is a repository, and it could not be asked."""

    def __init__(self, root: str, view: GitView | None, without_git: str, failed: bool) -> None:
        self.root, self.view, self.without_git, self.failed = root, view, without_git, failed
        self.traces: dict[str, object] = {}
        self.looked: dict[str, DiskFacts] = {}
        self.moved: dict[tuple[int, str], str] = {}
        """By the number of a request and a path that is missing, where the file lies now."""
        self.elsewhere: dict[str, tuple[float, str]] = {}
        self.changes = sorted(((self.changed_at(path), path) for path in view.differing), reverse=True) if view else []
        """All that differs from the last commit, with the time, what was last written first."""

    def look(self, path: str) -> DiskFacts:
        """The facts of a path, looked at once."""
        if path not in self.looked:
            # Before it is looked at: a file that changes meanwhile looks different the next time.
            self.traces[path] = trace(f"{self.root}/{path}")
            self.looked[path] = look(self.root, path)
        return self.looked[path]

    def changed_at(self, path: str) -> float:
        """When a file was last written; of what is gone, the directory that lost it."""
        place = Path(self.root, path)
        for one in (place, *place.parents):
            try:
                return one.lstat().st_mtime
            except OSError:
                continue
        return 0.0

    def find_missing(self, requests: Sequence[Request], places: Sequence[Sequence[ClaimedPlace | None]]) -> None:
        """Look for the files that are not where they are claimed: where their return has gone, or in git."""
        lost: dict[str, float] = {}
        for number, request in enumerate(requests):
            for path in {place.relative for place in places[number] if place is not None and place.relative}:
                if self.look(path) != MISSING:
                    continue
                former = map(to_name, request.former)
                near = () if request.stored else beside(path, to_name(request.returned_name), former)
                if there := next((one for one in near if self.look(one).is_there), None):
                    self.moved[number, path] = there
                else:
                    lost[path] = min(lost.get(path, math.inf), _finite(request.handed_off_at, 0.0))
        if lost and self.view is not None:
            self.elsewhere = elsewhere(self.view, lost, min(lost.values()))

    def result(self, number: int, request: Request, places: Sequence[ClaimedPlace | None]) -> Result:
        """The verdicts on all that a return states."""
        handed, stated = self._handed(request), request.stated
        # The return and the handoff themselves are not the work that was constrained.
        own = {request.returned_name, request.handoff_name}
        made = {
            place.relative
            for one, place in zip(stated, places, strict=True)
            if place is not None and place.relative is not None and one.claim.kind != ClaimKind.MUST_CREATE
            if ClaimKind(one.claim.kind).is_made and place.relative not in own
        }
        changed = None if self.view is None or handed.at is None else self._changed_since(self.view, handed.at)
        claims: list[Claim] = []
        watched: set[str] = set()
        is_elsewhere = False
        for one, place in zip(stated, places, strict=True):
            if one.claim.kind == ClaimKind.CONSTRAINT and (breaks := limit_of(one.claim.path)) is not None:
                others = None if changed is None else {path for path, _ in changed} - own
                claims.append(judge_constraint(one.claim, breaks, made, others, self.without_git))
                continue
            sight = None
            if place is not None:
                moved = self.moved.get((number, place.relative or ""))
                sight = self._sight(one, place, moved, handed.at)._replace(cleared=request.gone)
                watched |= {path for path in (place.relative, moved) if path is not None}
                is_elsewhere |= place.relative is not None and self.look(place.relative).kind is FileKind.MISSING
            claim = judge(one, sight, handed)
            if claim.verdict is Verdict.VERIFIED and claim.call is not None:
                # By whatever hand: what no log shows, git may.
                first, last = claim.call.at + SLACK, _finite(request.returned_at, math.inf) + SLACK
                later = (path for path, at in changed or () if first < at <= last and not is_document(path))
                path = next(later, "")
                change = f"{to_path(path)} was changed" if path else request.changed_since(claim.call.at)
                if change:
                    words = f"outdated: {claim.detail}; after that {change}"
                    claim = claim._replace(verdict=Verdict.UNVERIFIABLE, detail=words)
            claims.append(claim)
        traces = {path: self.traces[path] for path in sorted(watched)}
        return Result(tuple(claims), traces, self.without_git, is_elsewhere)

    def _changed_since(self, view: GitView, handed_off_at: float) -> list[tuple[str, float]] | None:
        """The files changed since a handoff, and when, by commits, or on disk and written since; None where git cannot
        say."""
        committed = view.committed_since(handed_off_at)
        if committed is None:
            return None
        written = takewhile(lambda one: one[0] >= handed_off_at - SLACK, self.changes)
        changed = {path: at for at, path in written} | {path: self.changed_at(path) for path in committed}
        return sorted((path, at) for path, at in changed.items() if not path.startswith(_OWN))

    def _handed(self, request: Request) -> Handed:
        """When the handoff of a request was written, as far as anybody can tell."""
        at, returned_at = request.handed_off_at, request.returned_at
        if at is None or not math.isfinite(at):
            no_time = "nothing tells when the handoff was written"
            return Handed() if request.handoff_name is None else Handed(why=no_time)
        now = at if request.handoff_at is None else request.handoff_at
        if returned_at is not None and (at > returned_at or at == returned_at < now):
            return Handed(why="the handoff was written after its return")
        name = place_of(to_name(request.handoff_name or ""), self.root).relative
        if name is None:
            return Handed(at, at)
        git, disk = self._git_facts(name, at), self.look(name)
        is_known = self.view is not None and self.view.known_since <= at
        if is_known and git is not None and git.tracked_before is not False and not (git.committed or git.changed):
            return Handed(why="git had the handoff before the time that its file has")
        if disk.kind is FileKind.REFUSED:
            return Handed(why="the handoff cannot be looked at")
        # The time of a file can be set back; when its inode was last changed cannot.
        is_file = disk.kind is FileKind.REGULAR and now == at
        return Handed(at, max(at, disk.ctime_ns / _NANOSECONDS) if is_file else at)

    def _git_facts(self, path: str, handed_off_at: float | None) -> GitFacts | None:
        is_directory = self.look(path).kind is FileKind.DIRECTORY
        return self.view.facts(path, handed_off_at, is_directory=is_directory) if self.view is not None else None

    def _sight(self, stated: Stated, place: ClaimedPlace, moved: str | None, handed_off_at: float | None) -> Sight:
        if place.relative is None:
            return Sight(place, MISSING)
        path = moved or place.relative
        disk, known, without_git = self.look(path), self._git_facts(path, handed_off_at), self.without_git
        if known is not None and moved is not None and (before := self._git_facts(place.relative, handed_off_at)):
            known = known._replace(tracked_before=known.tracked_before or before.tracked_before)
        above = Path(path).parents[:-1]
        if known is not None and any(os.path.lexists(f"{self.root}/{one}/.git") for one in above):
            known, without_git = None, "it lies in a git repository of its own"
        count, uncounted = None, ""
        if stated.claim.lines is not None and disk.kind is FileKind.REGULAR:
            count, uncounted = self._count_lines(path, disk)
        slashed = place.slashed is not None and self.look(place.slashed).kind is not FileKind.MISSING
        at, words = self.elsewhere.get(path, (0.0, ""))
        if at + SLACK < math.floor(_finite(handed_off_at, 0.0)):
            words = ""
        return Sight(place, disk, known, without_git, self.failed, count, uncounted, slashed, moved, words)

    def _count_lines(self, path: str, disk: DiskFacts) -> tuple[int | None, str]:
        """(the number of lines of a file, None where it is not counted; why)."""
        if disk.linked:
            return None, "a symbolic link leads to it, and agentwatch reads no file through one"
        try:
            return sum(1 for _ in StringIO(read_file(self.root, path, _LARGEST).text)), ""
        except FileNotFoundError:
            return None, "it is gone"
        except FileRefusedError as error:
            return None, error.reason


def _finite(time: float | None, otherwise: float) -> float:
    return time if time is not None and math.isfinite(time) else otherwise
