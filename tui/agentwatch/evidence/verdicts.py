"""The verdict on a claimed path, by what disk and git say, with its reason in words. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from agentwatch.delegation.claims import Claim, Verdict
from agentwatch.evidence.claims import ClaimKind, Stated
from agentwatch.evidence.disk import ClaimedPlace, DiskFacts, Fault, FileKind
from agentwatch.evidence.git import SLACK, GitFacts
from agentwatch.sources.files.walk import to_path

_YES, _NO, _OPEN = Verdict.VERIFIED, Verdict.CONTRADICTED, Verdict.UNVERIFIABLE

_EMPTY_BY_NATURE: Final = re.compile(
    r"(?:.*/)?(?:__init__\.py|conftest\.py|py\.typed|\.(?:gitkeep|keep|nojekyll|npmignore))\Z"
)
_NANOSECONDS: Final = 1_000_000_000
_CAME: Final = "put there, or committed, since: a copy or a move keeps the older time"
_LATER: Final = "the handoff was put there, or given its time, after that: whether it is older is not known"
_UNREAD: Final = "; its content was not checked"
_STATED: Final = "the file exists; what is said of it cannot be checked"
_WORDS: Final = {
    ClaimKind.CREATED: "created",
    ClaimKind.MODIFIED: "modified",
    ClaimKind.MUST_CREATE: "made for this task",
}
LONGEST_CLAIM: Final = 4_096
"""Characters of a claimed path or text that are kept."""

Judged = tuple[Verdict, str]


class Handed(NamedTuple):
    """When the handoff was written, in seconds since the epoch; `at` is None where nobody knows, and `why` says so.

    A file's time can be set back. So it was there at `at` by its own word, and for sure only at `sure`, not before.
    """

    at: float | None = None
    sure: float = -math.inf
    why: str = "no handoff is known"


class Sight(NamedTuple):
    """The finding about a claimed path.

    `git` is None, and `without_git` says why, where git says nothing; `failed`: there is a repository, and it could not
    be asked. `line_count` is None where the lines were not counted, and `uncounted` says why. `slashed`: there is a
    file of the same path with `/` for backslashes. `moved` is where the file lies now: all that is told here is about
    that. `elsewhere` says who has a file that is missing. `cleared`: the return is gone, too.
    """

    place: ClaimedPlace
    disk: DiskFacts
    git: GitFacts | None = None
    without_git: str = ""
    failed: bool = False
    line_count: int | None = None
    uncounted: str = ""
    slashed: bool = False
    moved: str | None = None
    elsewhere: str = ""
    cleared: bool = False


def judge(stated: Stated, sight: Sight | None, handed: Handed) -> Claim:
    """The claim with its verdict. `sight` may be None only where the text alone decides it."""
    claim = stated.claim._replace(path=stated.claim.path[:LONGEST_CLAIM])
    verdict, detail = claim.verdict, claim.detail
    if sight is None:
        return claim
    if not detail:
        verdict, detail = _of_path(stated, sight, handed)
    elif verdict is _YES and sight.disk.kind not in (FileKind.REGULAR, FileKind.DIRECTORY):
        verdict, detail = _OPEN, f"{detail}, but no such file was found"
    if sight.moved is not None:
        detail = f"moved since, to {sight.moved}: {detail}"
    file = sight.moved or sight.place.relative
    is_there = sight.disk.kind is not FileKind.MISSING or sight.disk.variant or sight.place.relative is None
    return claim._replace(
        verdict=verdict,
        detail=str(detail),
        file=to_path(file) if file is not None else None,
        is_missing=verdict is _NO and not is_there,
    )


def _of_path(stated: Stated, sight: Sight, handed: Handed) -> Judged:
    fault, disk, kind = sight.place.fault, sight.disk, ClaimKind(stated.claim.kind)
    if fault is Fault.ABSOLUTE and sight.place.relative is not None:
        # Against the contract, which says so; but it is clear which file is meant.
        verdict, detail = _of_path(stated, sight._replace(place=sight.place._replace(fault=None)), handed)
        return verdict, f"{detail} (given as an absolute path)"
    if fault is not None and kind is ClaimKind.EVIDENCE:
        # Evidence may be anything that was read; only what a child makes has to lie in the workspace.
        return _OPEN, f"{fault}, so it is not looked at"
    if fault is not None:
        return (_OPEN if fault is Fault.EMPTY else _NO), fault
    if disk.kind is FileKind.REFUSED:
        return _OPEN, f"cannot be looked at: {disk.words}"
    if disk.kind is FileKind.OUTSIDE:
        verdict = _NO if kind.is_made or kind is ClaimKind.REFERENCE else _OPEN
        return verdict, "outside the workspace: a symbolic link leads there, and agentwatch does not follow it"
    if disk.variant is not None:
        return _NO, f"case differs: on disk it is {disk.variant}"
    if disk.kind is FileKind.MISSING:
        return _missing(stated, sight)
    return _made(stated, sight, handed) if kind.is_made else _cited(stated, sight)


def _missing(stated: Stated, sight: Sight) -> Judged:
    was_there = sight.git is not None and sight.git.tracked_before
    gone = "missing: git had it before the handoff, and it is gone"
    rows = (
        (
            sight.slashed,
            (_NO, r"missing under this name: there is a file with `/` in place of `\`, and paths are written so"),
        ),
        (sight.cleared, (_OPEN, "missing, and so is its return: the work may have been cleared away as a whole")),
        (stated.unfinished, (_OPEN, "missing so far; the return does not say that the work is done")),
        (stated.removed, (_OPEN, "missing, and the return says that it was removed")),
        (stated.doubtful, (_OPEN, "nothing of this name is there, and it may not be a path")),
        (
            any(letter in stated.claim.path for letter in "*?"),
            (_OPEN, "a pattern, not a path: name the files one by one"),
        ),
        (was_there and stated.claim.kind == ClaimKind.CREATED, (_NO, gone)),
        (sight.elsewhere, (_OPEN, f"missing here, but {sight.elsewhere}")),
        (
            was_there and stated.claim.kind != ClaimKind.MUST_CREATE,
            (_OPEN, f"{gone}; to delete a file changes it, too"),
        ),
    )
    return next((judged for applies, judged in rows if applies), (_NO, "missing: no such file in the workspace"))


def _cited(stated: Stated, sight: Sight) -> Judged:
    disk = sight.disk
    if stated.claim.lines is None:
        if disk.kind is FileKind.OTHER:
            return _NO, f"not a regular file: {disk.words}"
        if stated.stated:
            return _OPEN, _STATED
        return _YES, "exists, but is empty" if disk.empty else f"exists{_UNREAD}"
    if disk.kind is not FileKind.REGULAR:
        return _NO, f"not a regular file: {disk.words or 'a directory'}; it has no lines"
    first, last = stated.claim.lines
    if not 1 <= first <= last:
        return _NO, f"lines {first}-{last} are no range: the first is 1 and the last is not before it"
    if sight.line_count is None:
        return _OPEN, f"exists, but its lines were not counted: {sight.uncounted or 'it was not read'}"
    if last > sight.line_count:
        lines = f"{sight.line_count} line{'s' if sight.line_count != 1 else ''}"
        return _NO, f"line range {first}-{last} is beyond the end: the file has {lines}"
    return (_OPEN, _STATED) if stated.stated else (_YES, f"exists, with lines {first}-{last}{_UNREAD}")


def _made(stated: Stated, sight: Sight, handed: Handed) -> Judged:
    disk, kind = sight.disk, ClaimKind(stated.claim.kind)
    if disk.kind is FileKind.OTHER:
        return _NO, f"not a regular file: {disk.words}"
    if disk.kind is FileKind.REGULAR and sight.place.is_directory:
        return _NO, "claimed as a directory by its last `/`, but it is a file"
    if disk.empty and not _EMPTY_BY_NATURE.match(sight.place.relative or ""):
        return _NO, f"empty: the {'directory' if disk.kind is FileKind.DIRECTORY else 'file'} holds nothing"
    if handed.at is None:
        if kind in (ClaimKind.DELIVERABLE, ClaimKind.ARTIFACT):
            # That it is there is all that is said of it, and all that can be seen.
            return _YES, f"exists{_UNREAD}"
        return _OPEN, f"exists; {handed.why}, so nothing tells whether it was {_WORDS[kind]}"
    older = is_older(disk, handed.at)
    came = older and not is_older(disk._replace(mtime_ns=disk.ctime_ns), handed.at)
    git = sight.git
    if kind is ClaimKind.CREATED:
        if git is not None and git.tracked_before:
            return _NO, "claimed created but tracked before the handoff: git already had it"
        if older and (came or (git is not None and git.committed)):
            return _OPEN, f"last written before the handoff, but {_CAME}"
        if older:
            return _NO, "older than the handoff: claimed created, but last written before it"
    elif older and kind is not ClaimKind.MODIFIED:
        return _OPEN, "exists, but was last written before the handoff: nothing shows that this attempt made it"
    elif older:
        return _untouched(sight, came=came, is_sure=handed.sure <= handed.at + SLACK)
    return _written(sight, is_modified=kind is ClaimKind.MODIFIED, is_sure=not is_older(disk, handed.sure))


def _untouched(sight: Sight, *, came: bool, is_sure: bool) -> Judged:
    """A file that is claimed to be modified, and was last written before the handoff; `is_sure` is of that time."""
    git = sight.git
    if sight.disk.kind is FileKind.DIRECTORY:
        return _OPEN, "a directory, whose time says nothing of the files in it"
    if git is not None and git.tracked_before and git.committed:
        if not is_sure:
            return _OPEN, f"changed by a commit since the handoff, but {_LATER}"
        return _YES, "changed by a commit since the handoff"
    if git is not None and git.tracked_before and git.committed is None:
        return _OPEN, "only its mode was changed by a commit since the handoff"
    if came:
        return _OPEN, f"last written before the handoff, but {_CAME}"
    if git is not None and git.changed:
        return _NO, "older than the handoff: it differs from the last commit, but was last written before it"
    if git is not None and git.known:
        return _NO, "claimed modified but unchanged: git sees no difference, and it was last written before the handoff"
    why = sight.without_git or "git does not track it"
    return _NO, f"older than the handoff: claimed modified, but last written before it ({why})"


def _written(sight: Sight, *, is_modified: bool, is_sure: bool) -> Judged:
    """A file that was last written since the handoff, by what the handoff says of its own time; `is_sure`: and also
    since that file lies there."""
    git, disk = sight.git, sight.disk
    since = "written since the handoff"
    if not is_sure:
        return _OPEN, f"{since}, but {_LATER}"
    if disk.kind is FileKind.REGULAR and disk.names > 1 and (git is None or not git.tracked_before):
        return _OPEN, f"{since}, but it has another name (a hard link), and may be as old as that"
    if git is None and not sight.failed:
        return _YES, f"exists, {since} ({sight.without_git}){_UNREAD}"
    if git is None or git.tracked_before is None or git.changed is None:
        why = sight.without_git or "its history does not reach back to the handoff, or its index breaks off"
        return _OPEN, f"{since}, but git cannot say whether it differs from before ({why})"
    if not git.tracked_before and is_modified and (git.ignored or git.known):
        why = "git ignores it" if git.ignored else "git did not have it before under this name"
        return _OPEN, f"{since}, but {why}: whether its content is another is not known"
    if not git.tracked_before:
        return _YES, f"exists, {since}, and git did not have it before{_UNREAD}"
    if git.committed:
        return _YES, "changed by a commit since the handoff"
    if git.changed:
        return _YES, f"differs from the last commit, {since}"
    return _OPEN, f"{since}, but git sees no difference: its content is what it was"


def is_older(disk: DiskFacts, time: float) -> bool:
    """The file was last written before this, by its modification time."""
    if not math.isfinite(time):
        return False
    if disk.mtime_ns % _NANOSECONDS == 0:
        # Some file systems keep whole seconds only.
        return disk.mtime_ns // _NANOSECONDS < math.floor(time)
    return disk.mtime_ns / _NANOSECONDS < time - SLACK


def judge_constraint(
    claim: Claim, breaks: Callable[[str], bool], made: Collection[str], changed: Collection[str] | None, why: str
) -> Claim:
    """A constraint against the files claimed and those `changed` since the handoff (None: not known, and `why`).

    That nothing was changed is never verified: git is easily told not to look at a file.
    """
    verdict = _OPEN
    if broken := sorted(filter(breaks, made)):
        verdict, detail = _NO, f"the return itself claims {_listed(broken)}"
    elif changed is None:
        why = why or "git cannot say what changed"
        detail = f"no claimed file breaks it; what else changed is not known ({why})"
    elif others := sorted(path for path in changed if path not in made and breaks(path)):
        detail = f"no claimed file breaks it, but {_listed(others)} changed since the handoff, by whom is not known"
    else:
        detail = "no claimed file breaks it, and no change that git shows; what git ignores was not looked at"
    return claim._replace(path=claim.path[:LONGEST_CLAIM], verdict=verdict, detail=detail)


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(paths[:3]) + more
