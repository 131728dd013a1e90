"""Checks the claims of many returns in one round: one look at the disk and one `git status` for all of them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.delegation.claims import Claim, Deed, Verdict
from agentwatch.evidence.claims import ClaimKind, ReadClaims, Stated, claims_of, limit_of, read_claims
from agentwatch.evidence.disk import MISSING, ClaimedPlace, Disk, DiskFacts, FileKind, beside, place_of, trace
from agentwatch.evidence.git import SLACK, Elsewhere, GitFacts, GitView, elsewhere, look, renames
from agentwatch.evidence.log import is_document
from agentwatch.evidence.plumbing import SECONDS, NotInRepositoryError
from agentwatch.evidence.statements import AttemptLog
from agentwatch.evidence.verdicts import Handed, Sight, is_older, judge, judge_constraint
from agentwatch.sources.files.read import FileRefusedError, read_file
from agentwatch.sources.files.walk import to_name, to_path
from agentwatch.sources.worktrees import NoRepositoryError

"""Changed files that a result names."""
_NANOSECONDS: Final = 1_000_000_000
_LARGEST: Final = 4 * 1024 * 1024
"""Bytes of a file whose lines are counted."""
_READ: Final = 64 * 1024 * 1024
"""Bytes read in one round."""
_OWN: Final = ".agentwatch/"
"""The files that agentwatch itself writes in a workspace: nobody's work."""


class Request(NamedTuple):
    """A return to check, with the handoff it answers. `digest` is the return's; times are in epoch seconds.

    Names are paths relative to the workspace; `stored` texts are no files but a session's. Without
    `returned_at` the attempt has lasted until now. `handoff_at` is the time of the handoff as it is now, where that is
    another version than the one that was handed off. `former` are the names under which the return lay before;
    `gone`: it is not there any more. `log` is what was done by tools, None where no log tells.
    """

    digest: str
    returned_text: str
    returned_name: str
    handoff_text: str | None = None
    handoff_name: str | None = None
    handed_off_at: float | None = None
    returned_at: float | None = None
    stored: bool = False
    handoff_at: float | None = None
    former: tuple[str, ...] = ()
    gone: bool = False
    log: AttemptLog | None = None


class Result(NamedTuple):
    """The claims of a return, in its order, and the workspace's paths whose change should cause another check.

    `look` is the hash of how those looked before, as traces in their order. `is_elsewhere`: a file is missing or was
    moved, and may be anywhere by now. `git` is "" or why git said nothing.
    `unsaid` is what the log has and the return does not speak of.
    """

    claims: tuple[Claim, ...]
    watched: tuple[str, ...]
    git: str = ""
    unsaid: tuple[Deed, ...] = ()
    look: int = 0
    is_elsewhere: bool = False


class _Prepared(NamedTuple):
    """A request with its claims, the places of those that name a file, and the place of the handoff."""

    request: Request
    stated: list[Stated]
    places: list[ClaimedPlace | None]
    handoff: str | None

    @property
    def relatives(self) -> frozenset[str]:
        return frozenset(place.relative for place in self.places if place is not None and place.relative is not None)


class _Key(NamedTuple):
    """The parts in which two claims of one return are alike that claim the same."""

    kind: str
    path: str
    lines: tuple[int, int] | None


class Checker:
    """Checks claims in one workspace. Not thread-safe: one round at a time, in a worker thread. `read` may know
    already what a file says."""

    def __init__(self, workspace: Path, *, git_seconds: float = SECONDS, read: ReadClaims = read_claims) -> None:
        self._read = read
        self._workspace = os.path.realpath(workspace)
        self._git_seconds = git_seconds
        self._had_git = False
        self._verified: dict[str, set[_Key]] = {}
        """By the digest of a return, the claims of it that were verified at any time."""

    def check(self, requests: Sequence[Request]) -> list[Result]:
        """A result for each request, in their order. Blocks for about as long as one `git status`."""
        if not requests:
            return []
        prepared = [self._prepare(request) for request in requests]
        times = [request.handed_off_at for request in requests if request.handed_off_at is not None]
        state = _Round(self._workspace)
        # Before anything is looked at: a file that changes meanwhile looks different the next time.
        paths = set[str]().union(*(one.relatives for one in prepared))
        state.traces = {path: trace(f"{self._workspace}/{path}") for path in paths}
        state.view, state.without_git, state.failed = self._look_at_git(times)
        paths |= {one.handoff for one in prepared if one.handoff is not None}
        paths |= {place.slashed for one in prepared for place in one.places if place and place.slashed is not None}
        state.look(paths)
        if state.view is not None:
            state.look(state.view.differing)
        self._find_moved(prepared, state)
        return [self._result(number, one, state) for number, one in enumerate(prepared)]

    def _look_at_git(self, times: list[float]) -> tuple[GitView | None, str, bool]:
        """(what git says, why it does not say all, whether it should have)."""
        try:
            view = look(self._workspace, times, seconds=self._git_seconds)
        except NotInRepositoryError as error:
            return None, "the git repository is gone" if self._had_git else str(error), self._had_git
        except NoRepositoryError as error:
            return None, str(error), True
        self._had_git = True
        return view, "" if view.complete else "git lists too many changes", True

    def _prepare(self, request: Request) -> _Prepared:
        log = request.log
        stated = claims_of(
            request.returned_text,
            request.returned_name,
            request.handoff_text,
            request.handoff_name,
            stored=request.stored,
            judge=log.judge if log is not None and log.is_there else None,
            read=self._read,
        )
        places = [place_of(one.claim.path, self._workspace) if one.names_file else None for one in stated]
        handoff = place_of(to_name(request.handoff_name), self._workspace).relative if request.handoff_name else None
        return _Prepared(request, stated, places, handoff)

    def _find_moved(self, prepared: Sequence[_Prepared], state: _Round) -> None:
        """Look for the files that are not where they are claimed: where git, or their return, has gone."""
        missing = [
            (number, path)
            for number, one in enumerate(prepared)
            for path in one.relatives
            if state.facts[path].kind is FileKind.MISSING and state.facts[path].variant is None
        ]
        if not missing:
            return
        gone = {path for _, path in missing}
        by_git = renames(state.view, gone) if state.view is not None else {}
        places: dict[tuple[int, str], list[str]] = {}
        for number, path in missing:
            request = prepared[number].request
            places[number, path] = [by_git[path]] if path in by_git else []
            if not request.stored:
                places[number, path] += beside(path, to_name(request.returned_name), map(to_name, request.former))
        state.look({place for some in places.values() for place in some})
        for key, some in places.items():
            there = (one for one in some if state.facts[one].kind in (FileKind.REGULAR, FileKind.DIRECTORY))
            if (place := next(there, None)) is not None:
                state.moved[key] = place
        lost = {key: prepared[key[0]].request.handed_off_at for key in missing if key not in state.moved}
        if lost and state.view is not None:
            times = (at if at is not None and math.isfinite(at) else 0.0 for at in lost.values())
            state.elsewhere = elsewhere(state.view, {path for _, path in lost}, min(times))

    def _result(self, number: int, one: _Prepared, state: _Round) -> Result:
        request, handed = one.request, _handed(one, state)
        changed = state.changed_since(handed.at) if one.stated else None
        during = state.changed_during(handed.at, request.returned_at)
        before, claims = self._verified.get(request.digest, set[_Key]()), list[Claim]()
        # The return and the handoff themselves are not the work that was constrained.
        own = {request.returned_name, request.handoff_name}
        others = None if changed is None else changed - own
        for stated, place in zip(one.stated, one.places, strict=True):
            if stated.claim.kind == ClaimKind.CONSTRAINT and (breaks := limit_of(stated.claim.path)) is not None:
                made = {path for path in self._made(one) if path not in own}
                claims.append(judge_constraint(stated.claim, breaks, made, others, state.without_git))
                continue
            moved = state.moved.get((number, place.relative or "")) if place is not None else None
            sight = None
            if place is not None:
                sight = self._sight(stated, place, moved, state, handed.at)._replace(cleared=request.gone)
            claim = judge(stated, sight, handed)
            if claim.verdict is Verdict.VERIFIED and claim.call is not None:
                # By whatever hand: what no log shows, git may.
                since = claim.call.at + SLACK
                later = next((path for path, at in during if at > since and not is_document(path)), "")
                if later:
                    words = f"outdated: {claim.detail}; after that {later} was changed"
                    claim = claim._replace(verdict=Verdict.UNVERIFIABLE, detail=words)
            if claim.verdict is Verdict.UNVERIFIABLE and moved is not None and _key(claim) in before:
                # It stays so when the file moves, though its new place tells less of it.
                words = f"moved since, to {moved}: it was verified before"
                claim = claim._replace(verdict=Verdict.VERIFIED, detail=words)
            claims.append(claim)
        watched = {*one.relatives, *(place for (of, _), place in state.moved.items() if of == number)}
        missing = [path for path in one.relatives if state.facts[path].kind is FileKind.MISSING]
        if state.view is not None and any((number, path) not in state.moved for path in missing):
            # A file may be moved first, and git told of it later; and another branch may have it.
            watched.add(os.path.relpath(f"{state.view.git.repository.git_directory}/index", self._workspace))
        traces = {path: state.traces.get(path) or trace(f"{self._workspace}/{path}") for path in sorted(watched)}
        if verified := {_key(claim) for claim in claims if claim.verdict is Verdict.VERIFIED}:
            self._verified[request.digest] = before | verified
        unsaid = request.log.unsaid(request.returned_text) if request.log is not None else ()
        look = hash(tuple(traces.values()))
        return Result(tuple(claims), tuple(traces), state.without_git, unsaid, look, bool(missing))

    def _made(self, one: _Prepared) -> Iterable[str]:
        """The places in the workspace that a return claims to have made."""
        made = (stated.claim for stated in one.stated if ClaimKind(stated.claim.kind).is_made)
        asked = (claim.path for claim in made if claim.kind != ClaimKind.MUST_CREATE and not claim.detail)
        places = (place_of(path, self._workspace).relative for path in asked)
        return (place for place in places if place is not None)

    def _sight(
        self, stated: Stated, place: ClaimedPlace, moved: str | None, state: _Round, handed_off_at: float | None
    ) -> Sight:
        if place.relative is None:
            return Sight(place, MISSING)
        path = moved or place.relative
        disk, known, without_git = state.facts[path], state.git_facts(path, handed_off_at), state.without_git
        if known is not None and moved is not None and (before := state.git_facts(place.relative, handed_off_at)):
            known = known._replace(tracked_before=known.tracked_before or before.tracked_before)
        above = path.split("/")[:-1]
        if state.view is not None and any(
            os.path.lexists(f"{self._workspace}/{'/'.join(above[:end])}/.git") for end in range(1, len(above) + 1)
        ):
            known, without_git = None, "it lies in a git repository of its own"
        count, uncounted = None, ""
        if stated.claim.lines is not None and disk.kind is FileKind.REGULAR:
            count, uncounted = state.count_lines(path, disk)
        slashed = state.facts.get(place.slashed) if place.slashed is not None else None
        words = state.elsewhere.words(path, handed_off_at)
        return Sight(place, disk, known, without_git, state.failed, count, uncounted, slashed, moved, words)


def _key(claim: Claim) -> _Key:
    return _Key(claim.kind, claim.path, claim.lines)


def _handed(one: _Prepared, state: _Round) -> Handed:
    """When the handoff of a request was written, as far as anybody can tell."""
    request, name = one.request, one.handoff
    at, returned_at = request.handed_off_at, request.returned_at
    if at is None or not math.isfinite(at):
        return Handed() if name is None else Handed(why="nothing tells when the handoff was written")
    now = at if request.handoff_at is None else request.handoff_at
    if returned_at is not None and (at > returned_at or at == returned_at < now):
        return Handed(why="the handoff was written after its return")
    if name is None:
        return Handed(at, at)
    git = state.view.facts(name, at) if state.view is not None else None
    if git is not None and git.tracked_before and not (git.committed or git.changed):
        return Handed(why="git had the handoff before the time that its file has")
    disk = state.facts[name]
    if disk.kind is FileKind.REFUSED:
        return Handed(why="the handoff cannot be looked at")
    if disk.kind is not FileKind.REGULAR or now != at:
        return Handed(at, at)
    # The time of a file can be set back; when its inode was last changed cannot.
    return Handed(at, max(at, disk.ctime_ns / _NANOSECONDS))


class _Round:
    """The answers of disk and git this time. `failed`: there is a repository, and it could not be asked. `moved` is by
    the number of a request and a path that is missing, where the file lies now."""

    def __init__(self, workspace: str) -> None:
        self.view: GitView | None = None
        self.without_git, self.failed = "", False
        self.traces: dict[str, object] = {}
        self.facts: dict[str, DiskFacts] = {}
        self.moved: dict[tuple[int, str], str] = {}
        self.elsewhere = Elsewhere({})
        self._disk = Disk(workspace)
        self._unread = _READ
        self._newest: list[str] | None = None

    def look(self, paths: Iterable[str]) -> None:
        """Look at those that were not looked at yet."""
        self.facts |= self._disk.look(set(paths) - self.facts.keys())

    def git_facts(self, path: str, handed_off_at: float | None) -> GitFacts | None:
        """The answer of git about a file, or about what it has in a directory; None where it says nothing."""
        if self.view is None:
            return None
        is_directory = self.facts[path].kind is FileKind.DIRECTORY
        return (self.view.facts_below if is_directory else self.view.facts)(path, handed_off_at)

    def changed_since(self, handed_off_at: float | None) -> frozenset[str] | None:
        """The paths changed since a handoff by commits, or on disk and written since; None where git cannot say."""
        if handed_off_at is None or not math.isfinite(handed_off_at) or self.view is None or not self.view.complete:
            return None
        committed = self.view.changes_since(handed_off_at)
        if committed is None:
            return None
        if self._newest is None:
            # The one last written first: most of many differing files are older than most handoffs.
            self._newest = sorted(self.view.differing, key=lambda path: self._itself(path).mtime_ns, reverse=True)
        return committed.union(takewhile(lambda path: not is_older(self._itself(path), handed_off_at), self._newest))

    def changed_during(self, handed_off_at: float | None, returned_at: float | None) -> list[tuple[str, float]]:
        """The files that changed between a handoff and a return, as far as git says so, and when (epoch seconds)."""
        paths = self.changed_since(handed_off_at)
        if paths is None or handed_off_at is None:
            return []
        self.look(paths)
        last = math.inf if returned_at is None else returned_at + SLACK
        return [
            (to_path(path), facts.mtime_ns / _NANOSECONDS)
            for path in sorted(paths)
            if (facts := self._itself(path)).mtime_ns <= last * _NANOSECONDS
            and not is_older(facts, handed_off_at)
            and not path.startswith(_OWN)
        ]

    def _itself(self, path: str) -> DiskFacts:
        """A file as it is; of what is a link by now, the link; of what is gone, the directory that lost it."""
        facts = self.facts[path]
        if facts.kind is FileKind.REGULAR and not facts.linked:
            return facts
        place = Path(self._disk.root, path)
        for one in (place, *place.parents):
            with suppress(OSError):
                return DiskFacts(FileKind.OTHER, 0, one.lstat().st_mtime_ns)
        return MISSING

    def count_lines(self, path: str, disk: DiskFacts) -> tuple[int | None, str]:
        """(the number of lines of a file, None where it is not counted; why)."""
        if disk.linked:
            return None, "a symbolic link leads to it, and agentwatch reads no file through one"
        if disk.size > self._unread:
            return None, "there was too much to read at once"
        self._unread -= disk.size
        try:
            text = read_file(self._disk.root, path, _LARGEST).text
        except FileNotFoundError:
            return None, "it is gone"
        except FileRefusedError as error:
            return None, error.reason
        return text.count("\n") + (1 if text and not text.endswith("\n") else 0), ""
