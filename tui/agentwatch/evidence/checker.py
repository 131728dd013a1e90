"""Checks the claims of many returns in one round: one look at the disk and at git for all of them."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from io import StringIO
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.delegation.claims import Claim, Deed, Verdict
from agentwatch.evidence.claims import ClaimKind, Stated, limit_of
from agentwatch.evidence.disk import MISSING, DiskFacts, Fault, FileKind, beside, is_document, look, place_of
from agentwatch.evidence.git import SECONDS, SLACK, GitFacts, GitView, NotInRepositoryError, ask_git, elsewhere
from agentwatch.sources.files.read import FileRefusedError, read_file
from agentwatch.sources.files.walk import to_name, to_path
from agentwatch.sources.worktrees import NoRepositoryError

_YES, _NO, _OPEN = Verdict.VERIFIED, Verdict.CONTRADICTED, Verdict.UNVERIFIABLE
_NANOSECONDS: Final = 1_000_000_000
_LARGEST: Final = 4 * 1024 * 1024  # bytes of a file whose lines are counted
_OWN: Final = ".agentwatch/"  # files that agentwatch itself writes in a workspace: nobody's work
_LONGEST_CLAIM: Final = 4_096  # characters of a claimed path or text that are kept
_EMPTY_BY_NATURE: Final = re.compile(
    r"(?:.*/)?(?:__init__\.py|conftest\.py|py\.typed|\.(?:gitkeep|keep|nojekyll|npmignore))\Z"
)
_CAME: Final = (
    "last written before the handoff, but put there, or committed, since: a copy or a move keeps the older time"
)
_SINCE: Final = "written since the handoff"
_LATER: Final = "but the handoff was put there, or given its time, after that: whether it is older is not known"
_MISSING: Final = "missing: no such file in the workspace"
_OLDER: Final = "older than the handoff: claimed created, but last written before it"
_UNREAD: Final = "; its content was not checked"

_Judged = tuple[Verdict, str]


class Request(NamedTuple):
    """The statements of a return, to be checked. Names are paths relative to the workspace; times are in epoch seconds.

    `handoff_at` is the time of the handoff as it is now, where that is another version than the one handed off.
    `stored`: it is no file but a session's. `former` are the names under which the return lay before; `gone`: it is not
    there any more. `changed_since` says what others changed since a time, as logs show.
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
    """The claims of a return, the traces of the paths whose change should cause another check, and why git said
    nothing, if so."""

    claims: tuple[Claim, ...]
    traces: dict[str, object]
    git: str = ""


class _Handed(NamedTuple):
    """When the handoff was written, in seconds since the epoch; `at` is None where nobody knows, and `why` says so.

    A file's time can be set back. So it was there at `at` by its own word, and for sure only at `sure`, not before.
    """

    at: float | None = None
    sure: float = -math.inf
    why: str = "no handoff is known"


class Checker:
    """Checks claims in one workspace, in a worker thread."""

    def __init__(self, workspace: Path, *, git_seconds: float = SECONDS) -> None:
        self._workspace, self._git_seconds = os.path.realpath(workspace), git_seconds
        self._had_git = False

    def check(self, requests: Sequence[Request]) -> list[Result]:
        """A result for each request, in their order. Blocks for as long as git takes."""
        view, words, has_git = None, "", True
        try:
            times = [one.handed_off_at for one in requests if one.handed_off_at is not None]
            view = ask_git(self._workspace, times, seconds=self._git_seconds) if requests else None
            self._had_git = True
        except NotInRepositoryError as error:
            words, has_git = "the git repository is gone" if self._had_git else str(error), self._had_git
        except NoRepositoryError as error:
            words = str(error)
        state = _Round(self._workspace, view, words, has_git)
        state.find_missing(requests)
        return [state.result(request) for request in requests]


class _Round:
    """The answers of disk and git this time. `has_git`: there is a repository, also where it could not be asked."""

    def __init__(self, root: str, view: GitView | None, without_git: str, has_git: bool) -> None:
        self.root, self.view, self.without_git, self.has_git = root, view, without_git, has_git
        self.elsewhere: dict[str, str] = {}
        # Each path is judged, and looked at, once.
        self.place, self.look = cache(partial(place_of, workspace=root)), cache(partial(look, root))

    def where(self, path: str, request: Request) -> str:
        """Where a claimed file lies: where it is claimed, or where its return has gone."""
        near = (
            ()
            if request.stored or self.look(path).kind is not FileKind.MISSING
            else beside(path, to_name(request.returned_name), request.former)
        )
        return next((one for one in near if self.look(one).is_there), path)

    def find_missing(self, requests: Sequence[Request]) -> None:
        """Look in git for the files that are nowhere."""
        lost: dict[str, float] = {}
        for request in requests:
            for path in {self.place(one.claim.path).relative for one in request.stated if one.names_file}:
                if path is not None and self.look(self.where(path, request)).kind is FileKind.MISSING:
                    lost[path] = min(lost.get(path, math.inf), _finite(request.handed_off_at, 0.0))
        if lost and self.view is not None:
            self.elsewhere = elsewhere(self.view, lost, min(lost.values()))

    def result(self, request: Request) -> Result:
        """The verdicts on all that a return states."""
        handed, claims, watched = self._handed(request), list[Claim](), set[str]()
        for one in request.stated:
            claim = one.claim._replace(path=one.claim.path[:_LONGEST_CLAIM])
            if claim.kind == ClaimKind.CONSTRAINT:
                claim = self._judge_constraint(claim, request)
            elif one.names_file:
                claim = self._judge_path(claim, one, request, handed)
                path = self.place(one.claim.path).relative
                watched |= {path, self.where(path, request)} if path is not None else set()
            elif claim.verdict is _YES and claim.call is not None:
                change = self._changed(claim.call.at, request) or request.changed_since(claim.call.at)
                detail = f"outdated: {claim.detail}; after that {change}"
                claim = claim._replace(verdict=_OPEN, detail=detail) if change else claim
            claims.append(claim)
        traces = {path: self.look(path).trace for path in sorted(watched)}
        return Result(tuple(claims), traces, self.without_git)

    def _changed(self, since: float, request: Request) -> str:
        """A file that was changed after a time, by whatever hand: what no log shows, git may."""
        first, last = since + SLACK, _finite(request.returned_at, math.inf) + SLACK
        for path in sorted(self.view.changed_since(first)) if self.view is not None else ():
            is_own = is_document(path) or path.startswith(_OWN)
            if not is_own and first < self.look(path).mtime_ns / _NANOSECONDS <= last:
                return f"{to_path(path)} was changed"
        return ""

    def _judge_constraint(self, claim: Claim, request: Request) -> Claim:
        """A constraint against the files that the return claims; that it was kept is never verified."""
        limit, own, made = limit_of(claim.path), (request.returned_name, request.handoff_name), set[str]()
        for path, kind in ((one.claim.path, one.claim.kind) for one in request.stated if one.names_file):
            if ClaimKind(kind).is_made and kind != ClaimKind.MUST_CREATE and path not in own:
                made |= {path} if limit is not None and limit.match(path) else set()
        if made:
            return claim._replace(verdict=_NO, detail=f"the return itself claims {', '.join(sorted(made)[:3])}")
        return claim._replace(detail="no claimed file breaks it; what else was changed was not looked at")

    def _handed(self, request: Request) -> _Handed:
        """When the handoff of a request was written, as far as anybody can tell."""
        at, returned_at = request.handed_off_at, request.returned_at
        if at is None or not math.isfinite(at):
            no_time = "nothing tells when the handoff was written"
            return _Handed() if request.handoff_name is None else _Handed(why=no_time)
        now = at if request.handoff_at is None else request.handoff_at
        if returned_at is not None and (at > returned_at or at == returned_at < now):
            return _Handed(why="the handoff was written after its return")
        name = self.place(to_name(request.handoff_name or "")).relative
        if name is None:
            return _Handed(at, at)
        git, disk = self._git_facts(name, at), self.look(name)
        is_known = self.view is not None and self.view.known_since <= at
        if is_known and git is not None and git.tracked_before is not False and not (git.committed or git.changed):
            return _Handed(why="git had the handoff before the time that its file has")
        if disk.kind is FileKind.REFUSED:
            return _Handed(why="the handoff cannot be looked at")
        # The time of a file can be set back; when its inode was last changed cannot.
        is_file = disk.kind is FileKind.REGULAR and now == at
        return _Handed(at, max(at, disk.ctime_ns / _NANOSECONDS) if is_file else at)

    def _git_facts(self, path: str, handed_off_at: float | None) -> GitFacts | None:
        # Of a directory git knows nothing: of the files in it, one may be new and another not.
        is_known = self.view is not None and self.look(path).kind is not FileKind.DIRECTORY
        return self.view.facts(path, handed_off_at) if self.view is not None and is_known else None

    # Claimed paths

    def _judge_path(self, claim: Claim, one: Stated, request: Request, handed: _Handed) -> Claim:
        (path, fault), verdict, detail = self.place(one.claim.path), claim.verdict, claim.detail
        there = None if path is None else self.where(path, request)
        disk = MISSING if there is None else self.look(there)
        if detail:
            if verdict is _YES and not disk.is_there:
                verdict, detail = _OPEN, f"{detail}, but no such file was found"
        elif there is None or path is None:
            # Evidence may be anything that was read; only what a child makes has to lie in the workspace.
            is_read = claim.kind == ClaimKind.EVIDENCE
            verdict = _OPEN if is_read or fault is Fault.EMPTY else _NO
            detail = f"{fault}, so it is not looked at" if is_read else f"{fault}"
        else:
            known = self._git_facts(there, handed.at)
            if known is not None and there != path and (before := self._git_facts(path, handed.at)):
                known = known._replace(tracked_before=known.tracked_before or before.tracked_before)
            verdict, detail = self._of_path(one, there, known, request, handed)
            # Against the contract, which says so; but it is clear which file is meant.
            detail += " (given as an absolute path)" if fault is Fault.ABSOLUTE else ""
        if there != path:
            detail = f"moved since, to {there}: {detail}"
        is_missing = verdict is _NO and path is not None and disk.kind is FileKind.MISSING
        file = None if there is None else to_path(there)
        return claim._replace(verdict=verdict, detail=detail, file=file, is_missing=is_missing)

    def _of_path(self, one: Stated, path: str, known: GitFacts | None, request: Request, handed: _Handed) -> _Judged:
        kind, disk = ClaimKind(one.claim.kind), self.look(path)
        if disk.kind is FileKind.REFUSED:
            return _OPEN, f"cannot be looked at: {disk.words}"
        if disk.kind is FileKind.OUTSIDE:
            verdict = _NO if kind.is_made or kind is ClaimKind.REFERENCE else _OPEN
            return verdict, "outside the workspace: a symbolic link leads there, and agentwatch does not follow it"
        if disk.kind is FileKind.MISSING:
            return self._missing(one, path, known, request)
        if disk.kind is FileKind.OTHER:
            return _NO, f"not a regular file: {disk.words}"
        return self._made(one, path, disk, known, handed) if kind.is_made else self._cited(one, path, disk)

    def _missing(self, one: Stated, path: str, known: GitFacts | None, request: Request) -> _Judged:
        kind, was_there = one.claim.kind, known is not None and known.tracked_before
        words = "missing: git had it before the handoff, and it is gone" if was_there else _MISSING
        is_lie = was_there and kind == ClaimKind.CREATED
        doubts = (
            (request.gone, "missing, and so is its return: the work may have been cleared away as a whole"),
            (one.unfinished, "missing so far; the return does not say that the work is done"),
            (one.removed and kind != ClaimKind.MUST_CREATE, "missing, and the return says that it was removed"),
            (one.doubtful, "nothing of this name is there, and it may not be a path"),
            (set("*?") & set(one.claim.path), "a pattern, not a path: name the files one by one"),
            (not is_lie and path in self.elsewhere, f"missing here, but {self.elsewhere.get(path)}"),
            (was_there and not is_lie and kind != ClaimKind.MUST_CREATE, f"{words}; to delete a file changes it, too"),
        )
        doubt = next((words for applies, words in doubts if applies), None)
        return (_NO, words) if doubt is None else (_OPEN, doubt)

    def _cited(self, one: Stated, path: str, disk: DiskFacts) -> _Judged:
        said, lines = "the file exists; what is said of it cannot be checked", one.claim.lines
        if lines is None:
            return (_OPEN, said) if one.stated else (_YES, "exists, but is empty" if disk.empty else f"exists{_UNREAD}")
        first, last = lines
        if disk.kind is FileKind.DIRECTORY:
            return _NO, "a directory: it has no lines"
        if not 1 <= first <= last:
            return _NO, f"lines {first}-{last} are no range: the first is 1 and the last is not before it"
        try:
            count = sum(1 for _ in StringIO(read_file(self.root, path, _LARGEST).text))
        except (FileNotFoundError, FileRefusedError) as error:
            return _OPEN, f"exists, but its lines were not counted: {getattr(error, 'reason', 'it is gone')}"
        if last > count:
            return _NO, f"line range {first}-{last} is beyond the end: the file has {count} line{'s' * (count != 1)}"
        return (_OPEN, said) if one.stated else (_YES, f"exists, with lines {first}-{last}{_UNREAD}")

    def _made(self, one: Stated, path: str, disk: DiskFacts, git: GitFacts | None, handed: _Handed) -> _Judged:
        kind, is_directory = one.claim.kind, disk.kind is FileKind.DIRECTORY
        if not is_directory and one.claim.path.strip().endswith(("/", "/.")):
            return _NO, "claimed as a directory by its last `/`, but it is a file"
        if disk.empty and not _EMPTY_BY_NATURE.match(path):
            return _NO, f"empty: the {'directory' if is_directory else 'file'} holds nothing"
        if handed.at is None:
            if kind in (ClaimKind.DELIVERABLE, ClaimKind.ARTIFACT):
                # That it is there is all that is said of it, and all that can be seen.
                return _YES, f"exists{_UNREAD}"
            how = "made for this task" if kind == ClaimKind.MUST_CREATE else kind
            return _OPEN, f"exists; {handed.why}, so nothing tells whether it was {how}"
        why = self.without_git or "a directory" * is_directory
        if any(os.path.lexists(f"{self.root}/{above}/.git") for above in Path(path).parents[:-1]):
            git, why = None, "it lies in a git repository of its own"
        had_it = git is not None and git.tracked_before
        older = _is_older(disk.mtime_ns, handed.at)
        came = older and not _is_older(disk.ctime_ns, handed.at)
        if kind == ClaimKind.CREATED and had_it:
            return _NO, "claimed created but tracked before the handoff: git already had it"
        if kind == ClaimKind.CREATED and older:
            is_open = came or (git is not None and git.committed)
            return (_OPEN, _CAME) if is_open else (_NO, _OLDER)
        if older and kind != ClaimKind.MODIFIED:
            return _OPEN, "exists, but was last written before the handoff: nothing shows that this attempt made it"
        if older:
            return _untouched(git, why, came=came, is_directory=is_directory, is_sure=handed.sure <= handed.at + SLACK)
        if _is_older(disk.mtime_ns, handed.sure):
            return _OPEN, f"{_SINCE}, {_LATER}"
        if disk.names > 1 and not had_it:
            return _OPEN, f"{_SINCE}, but it has another name (a hard link), and may be as old as that"
        if git is None and not self.has_git:
            return _YES, f"exists, {_SINCE} ({why}){_UNREAD}"
        return _written(git, why, is_modified=kind == ClaimKind.MODIFIED)


def _untouched(git: GitFacts | None, why: str, *, came: bool, is_directory: bool, is_sure: bool) -> _Judged:
    """A file that is claimed to be modified, and was last written before the handoff; `is_sure` is of that time."""
    if is_directory:
        return _OPEN, "a directory, whose time says nothing of the files in it"
    if git is not None and git.tracked_before and git.committed is not False:
        if git.committed is None:
            return _OPEN, "only its mode was changed by a commit since the handoff"
        words = "changed by a commit since the handoff"
        return (_YES, words) if is_sure else (_OPEN, f"{words}, {_LATER}")
    if came:
        return _OPEN, _CAME
    if git is not None and git.known:
        why = "it differs from the last commit" if git.changed else "git sees no difference"
    return _NO, f"claimed modified, but last written before the handoff ({why or 'git does not track it'})"


def _written(git: GitFacts | None, why: str, *, is_modified: bool) -> _Judged:
    """A file that was last written since the handoff, in a git repository."""
    if git is None or git.tracked_before is None or git.changed is None:
        why = why or "its history does not reach back to the handoff, or its index breaks off"
        return _OPEN, f"{_SINCE}, but git cannot say whether it differs from before ({why})"
    if not git.tracked_before:
        if is_modified and (git.ignored or git.known):
            why = "git ignores it" if git.ignored else "git did not have it before under this name"
            return _OPEN, f"{_SINCE}, but {why}: whether its content is another is not known"
        return _YES, f"exists, {_SINCE}, and git did not have it before{_UNREAD}"
    if git.committed:
        return _YES, "changed by a commit since the handoff"
    if git.changed:
        return _YES, f"differs from the last commit, {_SINCE}"
    return _OPEN, f"{_SINCE}, but git sees no difference: its content is what it was"


def _is_older(nanoseconds: int, time: float) -> bool:
    """A file with this time was last written before that one."""
    if not math.isfinite(time):
        return False
    if nanoseconds % _NANOSECONDS == 0:
        # Some file systems keep whole seconds only.
        return nanoseconds // _NANOSECONDS < math.floor(time)
    return nanoseconds / _NANOSECONDS < time - SLACK


def _finite(time: float | None, otherwise: float) -> float:
    return time if time is not None and math.isfinite(time) else otherwise
