"""The table: what is claimed, what disk and git say, and the verdict with its reason in words. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from sys import intern
from typing import Final, NamedTuple

from agentwatch.delegation.claims import Change, Claim, Verdict
from agentwatch.evidence.commands.hits import UNCHANGED, Held
from agentwatch.evidence.commands.log import is_document
from agentwatch.evidence.disk import DiskFacts, FileKind
from agentwatch.evidence.git import SLACK, GitFacts
from agentwatch.evidence.paths import ClaimedPlace, Fault
from agentwatch.evidence.shapes import Assertion, ClaimKind, Limit
from agentwatch.sources.files.walk import to_path

_YES: Final = Verdict.VERIFIED
_NO: Final = Verdict.CONTRADICTED
_OPEN: Final = Verdict.UNVERIFIABLE

_EMPTY_BY_NATURE: Final = frozenset(
    {"__init__.py", "conftest.py", "py.typed", ".gitkeep", ".keep", ".nojekyll", ".npmignore"}
)
_MARKDOWN: Final = (".md", ".markdown", ".mdx")
_CODE: Final = re.compile(
    r"\.(?:bash|bat|c|cc|clj|cpp|cs|css|cxx|dart|ex|exs|erl|go|gradle|groovy|h|hpp|hs|html|java|jl|js|jsx|kt|kts"
    r"|lean|lua|m|ml|mjs|cjs|php|pl|pm|ps1|py|pyi|r|rb|rs|sass|scala|scss|sh|sql|svelte|swift|ts|tsx|vue|zig|split)\Z"
)
_NANOSECONDS: Final = 1_000_000_000
KEPT: Final = "no claimed file breaks it, and no change that git shows; what git ignores was not looked at"
NO_HANDOFF: Final = "no handoff is known"
STATED: Final = "the file exists; what is said of it cannot be checked"
_CAME: Final = "put there, or committed, since: a copy or a move keeps the older time"
_LATER: Final = "the handoff was put there, or given its time, after that: whether it is older is not known"
UNREAD: Final = "; its content was not checked"
_WORDS: Final = {
    ClaimKind.CREATED: "created",
    ClaimKind.MODIFIED: "modified",
    ClaimKind.MUST_CREATE: "made for this task",
}
_LONGEST: Final = 4_096
"""Characters of a claimed path or text that are kept."""


class Handed(NamedTuple):
    """When the handoff was written, in seconds since the epoch; `at` is None where nobody knows, and `why` says so.

    A file's time can be set back. So it was there at `at` by its own word, and for sure only at `sure`, not before.
    """

    at: float | None = None
    sure: float = -math.inf
    why: str = NO_HANDOFF


class Sight(NamedTuple):
    """What was found about the path of an assertion.

    `git` is None, and `without_git` says why, where git says nothing; `failed`: there is a repository, and it could not
    be asked. `line_count` is that of the file, None where it was not counted, and `uncounted` says why. `slashed` are
    the facts of the same path with `/` for backslashes. `moved` is where the file lies now, and what is told here is
    about that place. `elsewhere` says in words who has a file that is missing. `cleared`: the return is gone, too.
    """

    place: ClaimedPlace
    disk: DiskFacts
    git: GitFacts | None = None
    without_git: str = ""
    failed: bool = False
    line_count: int | None = None
    uncounted: str = ""
    slashed: DiskFacts | None = None
    moved: str | None = None
    elsewhere: str = ""
    cleared: bool = False


def judge(assertion: Assertion, sight: Sight | None, handed: Handed) -> Claim:
    """The claim that an assertion becomes. `sight` may be None only where the assertion is settled by its text."""
    if assertion.settled is not None or sight is None:
        verdict, detail = assertion.settled or (_OPEN, "it was not looked at")
        if verdict is _YES and sight is not None and sight.disk.kind not in (FileKind.REGULAR, FileKind.DIRECTORY):
            verdict, detail = _OPEN, f"{detail}, but no such file was found"
    else:
        verdict, detail = _of_path(assertion, sight, handed)
    if sight is None:
        return Claim(assertion.kind, intern(assertion.path[:_LONGEST]), verdict, intern(str(detail)), assertion.lines)
    if sight.moved is not None:
        detail = f"moved since, to {sight.moved}: {detail}"
    file = sight.moved or sight.place.relative
    is_there = sight.disk.kind is not FileKind.MISSING or sight.disk.variant or sight.place.relative is None
    return Claim(
        kind=assertion.kind,
        # Interned, for thousands of claims say the same, and one file is claimed in several ways.
        path=intern(assertion.path[:_LONGEST]),
        verdict=verdict,
        detail=intern(str(detail)),
        lines=assertion.lines,
        file=intern(to_path(file)) if file is not None else None,
        is_missing=verdict is _NO and not is_there,
    )


def _of_path(assertion: Assertion, sight: Sight, handed: Handed) -> tuple[Verdict, str]:
    fault = sight.place.fault
    if fault is Fault.ABSOLUTE and sight.place.relative is not None:
        # Against the contract, which says so; but it is clear which file is meant.
        verdict, detail = _of_path(assertion, sight._replace(place=sight.place._replace(fault=None)), handed)
        return verdict, f"{detail} (given as an absolute path)"
    if fault is not None:
        return _misplaced(assertion, fault)
    disk = sight.disk
    if disk.kind is FileKind.REFUSED:
        return _OPEN, f"cannot be looked at: {disk.words}"
    if disk.kind is FileKind.OUTSIDE:
        verdict = _NO if assertion.kind.is_made or assertion.kind is ClaimKind.REFERENCE else _OPEN
        return verdict, "outside the workspace: a symbolic link leads there, and agentwatch does not follow it"
    if disk.variant is not None:
        return _NO, f"case differs: on disk it is {disk.variant}"
    if disk.kind is FileKind.MISSING:
        return _missing(assertion, sight)
    if assertion.kind in (ClaimKind.EVIDENCE, ClaimKind.REFERENCE):
        return _cited(assertion, sight)
    return _made(assertion, sight, handed)


def _misplaced(assertion: Assertion, fault: Fault) -> tuple[Verdict, str]:
    if assertion.kind is ClaimKind.EVIDENCE:
        # Evidence may be anything that was read; only what a child makes has to lie in the workspace.
        return _OPEN, f"{fault}, so it is not looked at"
    return (_OPEN if fault is Fault.EMPTY else _NO), fault


def _missing(assertion: Assertion, sight: Sight) -> tuple[Verdict, str]:
    if sight.slashed is not None and sight.slashed.kind is not FileKind.MISSING:
        return _NO, r"missing under this name: there is a file with `/` in place of `\`, and paths are written so"
    if sight.cleared:
        return _OPEN, "missing, and so is its return: the work may have been cleared away as a whole"
    if assertion.unfinished:
        return _OPEN, "missing so far; the return does not say that the work is done"
    if assertion.removed:
        return _OPEN, "missing, and the return says that it was removed"
    if assertion.doubtful:
        return _OPEN, "nothing of this name is there, and it may not be a path"
    if any(letter in assertion.path for letter in "*?"):
        return _OPEN, "a pattern, not a path: name the files one by one"
    was_there = sight.git is not None and sight.git.tracked_before
    if was_there and assertion.kind is ClaimKind.CREATED:
        return _NO, "missing: git had it before the handoff, and it is gone"
    if sight.elsewhere:
        return _OPEN, f"missing here, but {sight.elsewhere}"
    if was_there and assertion.kind is not ClaimKind.MUST_CREATE:
        return _OPEN, "missing: git had it before the handoff, and it is gone; to delete a file changes it, too"
    return _NO, "missing: no such file in the workspace"


def _cited(assertion: Assertion, sight: Sight) -> tuple[Verdict, str]:
    disk = sight.disk
    if assertion.lines is None:
        if disk.kind is FileKind.OTHER:
            return _NO, f"not a regular file: {disk.words}"
        if assertion.stated:
            return _OPEN, STATED
        return _YES, "exists, but is empty" if disk.empty else _note("exists", disk)
    if disk.kind is not FileKind.REGULAR:
        return _NO, f"not a regular file: {disk.words or 'a directory'}; it has no lines"
    first, last = assertion.lines
    if not 1 <= first <= last:
        return _NO, f"lines {first}-{last} are no range: the first is 1 and the last is not before it"
    if sight.line_count is None:
        return _OPEN, f"exists, but its lines were not counted: {sight.uncounted or 'it was not read'}"
    if last > sight.line_count:
        lines = f"{sight.line_count} line{'s' if sight.line_count != 1 else ''}"
        return _NO, f"line range {first}-{last} is beyond the end: the file has {lines}"
    if assertion.stated:
        return _OPEN, STATED
    return _YES, _note(f"exists, with lines {first}-{last}", disk)


def _made(assertion: Assertion, sight: Sight, handed: Handed) -> tuple[Verdict, str]:
    disk = sight.disk
    if disk.kind is FileKind.OTHER:
        return _NO, f"not a regular file: {disk.words}"
    if disk.kind is FileKind.REGULAR and sight.place.is_directory:
        return _NO, "claimed as a directory by its last `/`, but it is a file"
    name = (sight.place.relative or "").rpartition("/")[2]
    if disk.empty and name not in _EMPTY_BY_NATURE:
        return _NO, f"empty: the {'directory' if disk.kind is FileKind.DIRECTORY else 'file'} holds nothing"
    if handed.at is None:
        if assertion.kind in (ClaimKind.DELIVERABLE, ClaimKind.ARTIFACT):
            # That it is there is all that is said of it, and all that can be seen.
            return _YES, _note("exists", disk)
        return _OPEN, f"exists; {handed.why}, so nothing tells whether it was {_WORDS[assertion.kind]}"
    older = is_older(disk, handed.at)
    if assertion.kind is ClaimKind.CREATED:
        if sight.git is not None and sight.git.tracked_before:
            return _NO, "claimed created but tracked before the handoff: git already had it"
        if older and (_came(disk, handed.at) or (sight.git is not None and sight.git.committed)):
            return _OPEN, f"last written before the handoff, but {_CAME}"
        if older:
            return _NO, "older than the handoff: claimed created, but last written before it"
    elif older:
        return _untouched(assertion, sight, handed.at, is_sure=handed.sure <= handed.at + SLACK)
    is_modified = assertion.kind is ClaimKind.MODIFIED
    return _written(sight, is_modified=is_modified, is_sure=not is_older(disk, handed.sure))


def _came(disk: DiskFacts, time: float) -> bool:
    """A file, whatever time it has, was put under its name since: moved, or copied with its times."""
    return not is_older(disk._replace(mtime_ns=disk.ctime_ns), time)


def _untouched(assertion: Assertion, sight: Sight, time: float, *, is_sure: bool) -> tuple[Verdict, str]:
    """A file that was last written before the handoff, and is not claimed to be new; `is_sure` is of that time."""
    git = sight.git
    if assertion.kind is not ClaimKind.MODIFIED:
        return _OPEN, "exists, but was last written before the handoff: nothing shows that this attempt made it"
    if sight.disk.kind is FileKind.DIRECTORY:
        return _OPEN, "a directory, whose time says nothing of the files in it"
    if git is not None and git.tracked_before and git.committed:
        if not is_sure:
            return _OPEN, f"changed by a commit since the handoff, but {_LATER}"
        return _YES, _note("changed by a commit since the handoff", sight.disk, "")
    if git is not None and git.tracked_before and git.committed is None:
        return _OPEN, "only its mode was changed by a commit since the handoff"
    if _came(sight.disk, time):
        return _OPEN, f"last written before the handoff, but {_CAME}"
    if git is not None and git.changed:
        return _NO, "older than the handoff: it differs from the last commit, but was last written before it"
    if git is not None and git.known:
        return _NO, "claimed modified but unchanged: git sees no difference, and it was last written before the handoff"
    why = sight.without_git or "git does not track it"
    return _NO, f"older than the handoff: claimed modified, but last written before it ({why})"


def _written(sight: Sight, *, is_modified: bool, is_sure: bool) -> tuple[Verdict, str]:
    """A file that was last written since the handoff, by what the handoff says of its own time; `is_sure`: and also
    since that file lies there."""
    git, disk = sight.git, sight.disk
    if not is_sure:
        return _OPEN, f"written since the handoff, but {_LATER}"
    has_names = disk.kind is FileKind.REGULAR and disk.names > 1
    if has_names and (git is None or not git.tracked_before):
        return _OPEN, "written since the handoff, but it has another name (a hard link), and may be as old as that"
    if git is None and not sight.failed:
        return _YES, _note(f"exists, written since the handoff ({sight.without_git})", disk)
    if git is None or git.tracked_before is None or git.changed is None:
        why = sight.without_git or "its history does not reach back to the handoff, or its index breaks off"
        return _OPEN, f"written since the handoff, but git cannot say whether it differs from before ({why})"
    if not git.tracked_before and is_modified and (git.ignored or git.known):
        why = "git ignores it" if git.ignored else "git did not have it before under this name"
        return _OPEN, f"written since the handoff, but {why}: whether its content is another is not known"
    if not git.tracked_before:
        return _YES, _note("exists, written since the handoff, and git did not have it before", disk)
    if git.committed:
        return _YES, _note("changed by a commit since the handoff", disk, "")
    if git.changed:
        return _YES, _note("differs from the last commit, written since the handoff", disk, "")
    return _OPEN, "written since the handoff, but git sees no difference: its content is what it was"


def is_older(disk: DiskFacts, time: float) -> bool:
    """The file was last written before this, by its modification time."""
    if not math.isfinite(time):
        return False
    if disk.mtime_ns % _NANOSECONDS == 0:
        # Some file systems keep whole seconds only.
        return disk.mtime_ns // _NANOSECONDS < math.floor(time)
    return disk.mtime_ns / _NANOSECONDS < time - SLACK


def _note(words: str, disk: DiskFacts, more: str = UNREAD) -> str:
    return words + (" (through a symbolic link in the workspace)" if disk.linked else "") + more


def judge_constraint(
    assertion: Assertion, claimed: Collection[str], changed: Collection[str] | None, without_git: str
) -> Claim:
    """A constraint against the files claimed and those `changed` since the handoff (None: not known).

    That nothing was changed is never verified: git is easily told not to look at a file.
    """
    broken = sorted(path for path in claimed if _breaks(assertion, path))
    if broken:
        verdict, detail = _NO, f"the return itself claims {_listed(broken)}"
    elif changed is None:
        why = without_git or "git cannot say what changed"
        verdict, detail = _OPEN, f"no claimed file breaks it; what else changed is not known ({why})"
    elif others := sorted(path for path in changed if path not in claimed and _breaks(assertion, path)):
        verdict = _OPEN
        detail = f"no claimed file breaks it, but {_listed(others)} changed since the handoff, by whom is not known"
    else:
        verdict, detail = _OPEN, KEPT
    return Claim(kind=assertion.kind, path=assertion.path[:_LONGEST], verdict=verdict, detail=detail)


def judge_statement(assertion: Assertion, held: Held, changed: Collection[Change] | None, others: str) -> Claim:
    """What is said of a command, by the log, the files `changed` before the return (None where git cannot say), and
    what `others` did in that time."""
    verdict, detail = held.verdict, held.detail
    if verdict is _YES and held.since is not None:
        if changed is None:
            detail = detail.replace(UNCHANGED, f"{UNCHANGED}, as far as its log tells")
        later = [one.path for one in changed or () if one.at > held.since and not is_document(one.path)]
        if later:
            verdict, detail = (
                _OPEN,
                f"outdated: {detail.partition(UNCHANGED)[0]}, and after that {later[0]} changed",
            )
        elif others:
            verdict, detail = _OPEN, f"outdated: {detail.partition(UNCHANGED)[0]}, and after that {others}"
    return Claim(assertion.kind, assertion.path[:_LONGEST], verdict, detail, call=held.call)


def _breaks(assertion: Assertion, path: str) -> bool:
    name = path.casefold()
    if assertion.limit is Limit.ONLY_MARKDOWN:
        return not name.endswith(_MARKDOWN)
    if assertion.limit is Limit.NO_CODE:
        return _CODE.search(name) is not None
    if assertion.limit is Limit.ONLY_BELOW:
        return path != assertion.below and not path.startswith(f"{assertion.below}/")
    return True


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(paths[:3]) + more
