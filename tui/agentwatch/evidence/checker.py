"""Checks the claims of many returns in one round: one look at the disk and one `git status` for all of them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.background import meanwhile
from agentwatch.delegation.claims import Change, Claim, Deed, Verdict
from agentwatch.evidence import verdicts
from agentwatch.evidence.claims import claims_of, told_in
from agentwatch.evidence.commands.proof import Proof
from agentwatch.evidence.disk import MISSING, Disk, DiskFacts, FileKind, look_of, trace
from agentwatch.evidence.elsewhere import elsewhere
from agentwatch.evidence.git import GitHistory, GitView, look, renames
from agentwatch.evidence.paths import ClaimedPlace, beside, place_of
from agentwatch.evidence.plumbing import SECONDS
from agentwatch.evidence.repository import NotInRepositoryError
from agentwatch.evidence.round import Round
from agentwatch.evidence.shapes import Assertion, ClaimKind
from agentwatch.evidence.verdicts import NO_HANDOFF, Handed
from agentwatch.sources.files.names import to_name
from agentwatch.sources.files.read import FileRefusedError, read_file
from agentwatch.sources.worktrees import NoRepositoryError

if TYPE_CHECKING:
    from agentwatch.evidence.one_look import OneLook

_NANOSECONDS: Final = 1_000_000_000
_LARGEST: Final = 4 * 1024 * 1024
"""Bytes of a file whose lines are counted."""
_FEW: Final = 10
"""Requests up to which a thread beside costs more than it saves."""
_COUNTED: Final = 20_000
"""Files whose number of lines is remembered."""


class Request(NamedTuple):
    """A return to check, with the handoff it answers. `digest` is the return's; times are in epoch seconds.

    Names are paths relative to the workspace; `stored` texts are no files but a session's. Without
    `returned_at` the attempt has lasted until now. `handoff_at` is the time of the handoff as it is now, where that is
    another version than the one that was handed off. `former` are the names under which the return lay before;
    `gone`: it is not there any more. `proof` is what was done by tools, None where no log tells.
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
    proof: Proof | None = None


class Result(NamedTuple):
    """The claims of a return, in its order, and the workspace's paths whose change should cause another check.

    `look` is how those looked before (`disk.look_of`, by their names); None where only the check told which they are.
    `changed` are the files changed since the handoff and last written before the return, by whatever hand, at most
    MAX_CHANGED; None where git cannot say. `git` is "" or why git said nothing. `unsaid` is what the log has and the
    return does not speak of.
    """

    claims: tuple[Claim, ...]
    watch_paths: frozenset[str]
    changed: tuple[Change, ...] | None = None
    git: str = ""
    unsaid: tuple[Deed, ...] = ()
    look: int | None = None


class _Prepared(NamedTuple):
    request: Request
    assertions: tuple[Assertion, ...]
    places: tuple[ClaimedPlace | None, ...]
    relatives: frozenset[str]
    """Of the places."""
    handoff: str | None
    """The place of the handoff; a session's is never there."""


def _handed(one: _Prepared, state: Round) -> Handed:
    """When the handoff of a request was written, as far as anybody can tell."""
    request, name = one.request, one.handoff
    at, returned_at = request.handed_off_at, request.returned_at
    if at is None or not math.isfinite(at):
        return Handed(why=NO_HANDOFF if name is None else "nothing tells when the handoff was written")
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


def _key(claim: Claim) -> tuple[object, ...]:
    """What two claims of one return have alike that claim the same."""
    return claim.kind, claim.path, claim.lines


def _verified(claims: tuple[Claim, ...]) -> dict[tuple[object, ...], Claim]:
    return {_key(one): one for one in claims if one.verdict is Verdict.VERIFIED}


def _look(paths: frozenset[str], traces: Mapping[str, object]) -> int | None:
    return look_of(traces[path] for path in sorted(paths)) if paths <= traces.keys() else None


class Checker:
    """Checks claims in one workspace. Not thread-safe: one round at a time, in a worker thread. `one_look` may know
    already what a file says."""

    def __init__(self, workspace: Path, *, git_seconds: float = SECONDS, one_look: OneLook | None = None) -> None:
        self._one_look = one_look
        self._workspace = os.path.realpath(workspace)
        self._git_seconds = git_seconds
        self._disk = Disk(self._workspace)
        self._history = GitHistory()
        self._verified: dict[str, tuple[Claim, ...]] = {}
        """By the digest of a return, claims of it: those that were verified at any time, and what else it claims."""
        self._lines: dict[str, tuple[tuple[int, int, int, int], int]] = {}

    def check(self, requests: Sequence[Request]) -> list[Result]:
        """A result for each request, in their order. Blocks for about as long as one `git status`."""
        if not requests:
            return []
        times = [request.handed_off_at for request in requests if request.handed_off_at is not None]
        with ExitStack() as stack:
            if len(requests) > _FEW:
                # To ask git takes as long as to read the requests.
                asked = stack.enter_context(meanwhile(partial(self._look_at_git, times)))
            else:
                asked = partial(self._look_at_git, times)
            prepared = [self._prepare(request) for request in requests]
            paths = set[str]().union(*(one.relatives for one in prepared))
            # Before anything is looked at: a file that changes meanwhile looks different the next time, if any.
            traces = {path: trace(f"{self._workspace}/{path}") for path in paths if self._one_look is None}
            paths |= {one.handoff for one in prepared if one.handoff is not None}
            paths |= {place.slashed for one in prepared for place in one.places if place and place.slashed is not None}
            facts = self._disk.look(paths)
            view, without_git, failed = asked()
        if view is not None:
            facts |= self._disk.look(view.differing.difference(facts))
        state = Round(facts, view, without_git, failed, self._disk)
        self._find_moved(prepared, state)
        results = [self._result(number, one, state) for number, one in enumerate(prepared)]
        if self._one_look is not None:
            return results
        return [one._replace(look=_look(one.watch_paths, traces)) for one in results]

    def _find_moved(self, prepared: Sequence[_Prepared], state: Round) -> None:
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
        by_git = renames(gone, self._history, seconds=self._git_seconds) if state.view else {}
        places: dict[tuple[int, str], list[str]] = {}
        for number, path in missing:
            request = prepared[number].request
            places[number, path] = [by_git[path]] if path in by_git else []
            if not request.stored:
                places[number, path] += beside(path, to_name(request.returned_name), map(to_name, request.former))
        state.facts |= self._disk.look({place for some in places.values() for place in some} - state.facts.keys())
        for key, some in places.items():
            there = (one for one in some if state.facts[one].kind in (FileKind.REGULAR, FileKind.DIRECTORY))
            if (place := next(there, None)) is not None:
                state.moved[key] = place
        lost = {key: prepared[key[0]].request.handed_off_at for key in missing if key not in state.moved}
        if lost and state.view is not None:
            times = (at if at is not None and math.isfinite(at) else 0.0 for at in lost.values())
            gone = {path for _, path in lost}
            repository, seconds = state.view.repository, self._git_seconds
            state.elsewhere = elsewhere(repository, gone, min(times), seconds=seconds)

    def _prepare(self, request: Request) -> _Prepared:
        assertions = self._claims_of(request)
        places = tuple(place_of(one.path, self._workspace) if one.names_file else None for one in assertions)
        relatives = frozenset(place.relative for place in places if place is not None and place.relative is not None)
        place = place_of(to_name(request.handoff_name), self._workspace).relative if request.handoff_name else None
        return _Prepared(request, assertions, places, relatives, place)

    def _claims_of(self, request: Request) -> tuple[Assertion, ...]:
        logged = request.proof is not None and request.proof.is_there
        returned, handoff = (request.returned_text, request.returned_name), (request.handoff_text, request.handoff_name)
        tell = told_in if self._one_look is None else self._one_look.tell
        return claims_of(*returned, *handoff, stored=request.stored, logged=logged, tell=tell)

    def _look_at_git(self, times: list[float]) -> tuple[GitView | None, str, bool]:
        """(what git says, why it does not say all, whether it should have)."""
        try:
            view = look(self._workspace, times, self._history, seconds=self._git_seconds)
        except NotInRepositoryError as error:
            was_there = self._history.repository is not None
            return None, "the git repository is gone" if was_there else str(error), was_there
        except NoRepositoryError as error:
            return None, str(error), True
        return view, "" if view.complete else "git lists too many changes", True

    def _result(self, number: int, one: _Prepared, state: Round) -> Result:
        request = one.request
        handed = _handed(one, state)
        changed = state.changed_since(handed.at) if one.assertions else None
        during = state.changed_during(handed.at, request.returned_at)
        claims: list[Claim] = []
        before = _verified(self._verified.get(request.digest, ()))
        sights: dict[tuple[ClaimedPlace, tuple[int, int] | None], verdicts.Sight] = {}
        for assertion, place in zip(one.assertions, one.places, strict=True):
            if assertion.kind is ClaimKind.CONSTRAINT and assertion.settled is None:
                made = [place_of(path, self._workspace) for path in assertion.made]
                # The return and the handoff themselves are not the work that was constrained.
                own = {request.returned_name, request.handoff_name}
                others = None if changed is None else [path for path in changed if path not in own]
                claimed = {place.relative for place in made if place.relative is not None} - own
                claims.append(verdicts.judge_constraint(assertion, claimed, others, state.without_git))
            elif assertion.statement is not None and request.proof is not None:
                demanded = assertion.kind is ClaimKind.CRITERION
                held = request.proof.hold(assertion.statement, demanded=demanded)
                by_others = request.proof.others(held, request.returned_at)
                claims.append(verdicts.judge_statement(assertion, held, during, by_others))
            else:
                moved, sight = None, None
                if place is not None:
                    moved = state.moved.get((number, place.relative or ""))
                    # One file is claimed in several ways.
                    if (sight := sights.get(seen := (place, assertion.lines))) is None:
                        sight = sights[seen] = self._sight(
                            assertion, place, moved, state, handed.at, cleared=request.gone
                        )
                claim = verdicts.judge(assertion, sight, handed)
                if claim.verdict is Verdict.UNVERIFIABLE and moved is not None and _key(claim) in before:
                    # It stays so when the file moves, though its new place tells less of it.
                    words = f"moved since, to {moved}: it was verified before"
                    claim = claim._replace(verdict=Verdict.VERIFIED, detail=words)
                # Many returns claim the same of the same few files.
                claims.append(state.shared(claim))
        watched = {*one.relatives, *(place for (of, _), place in state.moved.items() if of == number)}
        missing = (path for path in one.relatives if state.facts[path].kind is FileKind.MISSING)
        if state.view is not None and any((number, path) not in state.moved for path in missing):
            # A file may be moved first, and git told of it later; and another branch may have it.
            watched.add(os.path.relpath(f"{state.view.repository.git_directory}/index", self._workspace))
        unsaid = request.proof.unsaid(request.returned_text) if request.proof is not None else ()
        found = tuple(claims)
        self._note_verified(request.digest, found)
        return Result(found, frozenset(watched), during, state.without_git, unsaid)

    def _note_verified(self, digest: str, claims: tuple[Claim, ...]) -> None:
        """Keep what was verified of a return at any time; as a rule that is what was found last, which others keep."""
        now, before = _verified(claims), _verified(self._verified.get(digest, ()))
        lost = [before[key] for key in before.keys() - now.keys()]
        if now or lost:
            self._verified[digest] = (*claims, *lost) if lost else claims

    def _sight(
        self,
        assertion: Assertion,
        place: ClaimedPlace,
        moved: str | None,
        state: Round,
        handed_off_at: float | None,
        *,
        cleared: bool,
    ) -> verdicts.Sight:
        if place.relative is None:
            return verdicts.Sight(place, MISSING, cleared=cleared)
        path = moved or place.relative
        disk = state.facts[path]
        known = state.git_facts(path, handed_off_at)
        if known is not None and moved is not None and (before := state.git_facts(place.relative, handed_off_at)):
            known = known._replace(tracked_before=known.tracked_before or before.tracked_before)
        without_git = state.without_git
        if state.view is not None and self._is_nested(path, state):
            known, without_git = None, "it lies in a git repository of its own"
        count, uncounted = None, ""
        if assertion.lines is not None and disk.kind is FileKind.REGULAR:
            count, uncounted = self._count(path, disk, state)
        slashed = state.facts.get(place.slashed) if place.slashed is not None else None
        words = state.elsewhere.words(path, handed_off_at)
        return verdicts.Sight(
            place, disk, known, without_git, state.failed, count, uncounted, slashed, moved, words, cleared
        )

    def _is_nested(self, path: str, state: Round) -> bool:
        """The path lies in another repository, below the workspace."""
        above = path.rpartition("/")[0]
        if not above:
            return False
        if above not in state.nested:
            here = os.path.lexists(f"{self._workspace}/{above}/.git")
            state.nested[above] = here or self._is_nested(above, state)
        return state.nested[above]

    def _count(self, path: str, disk: DiskFacts, state: Round) -> tuple[int | None, str]:
        """(the number of lines of a file, None where it is not counted; why)."""
        identity = (disk.mtime_ns, disk.ctime_ns, disk.size, disk.inode)
        known = self._lines.get(path)
        if known is not None and known[0] == identity:
            return known[1], ""
        if disk.linked:
            return None, "a symbolic link leads to it, and agentwatch reads no file through one"
        if disk.size > state.unread:
            return None, "there was too much to read at once"
        state.unread -= disk.size
        try:
            text = read_file(self._workspace, path, _LARGEST).text
        except FileNotFoundError:
            return None, "it is gone"
        except FileRefusedError as error:
            return None, error.reason
        count = text.count("\n") + (1 if text and not text.endswith("\n") else 0)
        if len(self._lines) >= _COUNTED:
            self._lines.clear()
        self._lines[path] = (identity, count)
        return count, ""
