"""The table: what is claimed, what disk and git say, and the verdict with its reason in words. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from agentwatch.delegation.claims import MISSING
from agentwatch.evidence.disk import DiskFacts, FileKind
from agentwatch.evidence.git import SLACK, GitFacts
from agentwatch.evidence.paths import Fault, Place
from agentwatch.evidence.shapes import Assertion, Claim, Kind, Limit, Verdict
from agentwatch.sources.files.names import to_path

_YES: Final = Verdict.VERIFIED
_NO: Final = Verdict.CONTRADICTED
_OPEN: Final = Verdict.UNVERIFIABLE

_EMPTY_BY_NATURE: Final = frozenset({"__init__.py", "py.typed", ".gitkeep", ".keep", ".nojekyll", ".npmignore"})
_MARKDOWN: Final = (".md", ".markdown", ".mdx")
_CODE: Final = re.compile(
    r"\.(?:bash|bat|c|cc|clj|cpp|cs|css|cxx|dart|ex|exs|erl|go|gradle|groovy|h|hpp|hs|html|java|jl|js|jsx|kt|kts"
    r"|lean|lua|m|ml|mjs|cjs|php|pl|pm|ps1|py|pyi|r|rb|rs|sass|scala|scss|sh|sql|svelte|swift|ts|tsx|vue|zig|split)\Z"
)
_NANOSECONDS: Final = 1_000_000_000
_LONGEST: Final = 4_096
"""Characters of a claimed path or text that are kept."""


class Found(NamedTuple):
    """What was found about the path of an assertion.

    `git` is None, and `without_git` says why, where git says nothing. `line_count` is that of the file, None where it
    was not counted, and `uncounted` says why. `slashed` are the facts of the same path with `/` for backslashes.
    """

    place: Place
    disk: DiskFacts
    git: GitFacts | None = None
    without_git: str = ""
    line_count: int | None = None
    uncounted: str = ""
    slashed: DiskFacts | None = None


def judge(assertion: Assertion, found: Found | None, handed_off_at: float | None) -> Claim:
    """The claim that an assertion becomes. `handed_off_at` is in seconds since the epoch.

    `found` may be None only where the assertion is settled by its text.
    """
    if handed_off_at is not None and not math.isfinite(handed_off_at):
        handed_off_at = None
    if assertion.settled is not None or found is None:
        verdict, detail = assertion.settled or (_OPEN, "it was not looked at")
    else:
        verdict, detail = _of_path(assertion, found, handed_off_at)
    relative = found.place.relative if found is not None else None
    file = to_path(relative) if relative is not None else None
    return Claim(assertion.kind, assertion.path[:_LONGEST], verdict, detail, assertion.lines, file)


def _of_path(assertion: Assertion, found: Found, handed_off_at: float | None) -> tuple[Verdict, str]:
    fault = found.place.fault
    if fault is not None:
        return _misplaced(assertion, found, fault)
    disk = found.disk
    if disk.kind is FileKind.REFUSED:
        return _OPEN, f"cannot be looked at: {disk.words}"
    if disk.kind is FileKind.OUTSIDE:
        verdict = _NO if assertion.kind.is_made or assertion.kind is Kind.REFERENCE else _OPEN
        return verdict, "outside the workspace: a symbolic link leads there, and agentwatch does not follow it"
    if disk.variant is not None:
        return _NO, f"case differs: on disk it is {disk.variant}"
    if disk.kind is FileKind.MISSING:
        return _missing(assertion, found)
    if assertion.kind in (Kind.EVIDENCE, Kind.REFERENCE):
        return _cited(assertion, found)
    return _made(assertion, found, handed_off_at)


def _misplaced(assertion: Assertion, found: Found, fault: Fault) -> tuple[Verdict, str]:
    if assertion.kind is Kind.EVIDENCE:
        # Evidence may be anything that was read; only what a child makes has to lie in the workspace.
        if fault is Fault.ABSOLUTE and found.disk.kind in (FileKind.REGULAR, FileKind.DIRECTORY):
            return _YES, "exists (given as an absolute path)"
        if fault is Fault.ABSOLUTE and found.disk.kind is FileKind.MISSING:
            return _NO, "missing: nothing is there"
        return _OPEN, f"{fault}, so it is not looked at"
    if fault is Fault.EMPTY:
        return _OPEN, fault
    if fault is Fault.ABSOLUTE and found.place.relative is not None:
        there = "which exists" if found.disk.kind is FileKind.REGULAR else "where no such file is"
        return _NO, f"{fault}; there it would be {found.place.relative}, {there}"
    return _NO, fault


def _missing(assertion: Assertion, found: Found) -> tuple[Verdict, str]:
    if found.slashed is not None and found.slashed.kind is not FileKind.MISSING:
        return _NO, rf"{MISSING} under this name: there is a file with `/` in place of `\`, and paths are written so"
    if assertion.unfinished:
        return _OPEN, "missing so far; the return does not say that the work is done"
    if assertion.doubtful:
        return _OPEN, "nothing of this name is there, and it may not be a path"
    if any(letter in assertion.path for letter in "*?"):
        return _OPEN, "a pattern, not a path: name the files one by one"
    if found.git is not None and found.git.tracked_before:
        return _NO, f"{MISSING}: git had it before the handoff, and it is gone"
    return _NO, f"{MISSING}: no such file in the workspace"


def _cited(assertion: Assertion, found: Found) -> tuple[Verdict, str]:
    disk = found.disk
    if assertion.lines is None:
        if disk.kind is FileKind.OTHER:
            return _NO, f"not a regular file: {disk.words}"
        return _YES, _note("exists", disk, ", but is empty" if disk.empty else "")
    if disk.kind is not FileKind.REGULAR:
        return _NO, f"not a regular file: {disk.words or 'a directory'}; it has no lines"
    first, last = assertion.lines
    if not 1 <= first <= last:
        return _NO, f"lines {first}-{last} are no range: the first is 1 and the last is not before it"
    if found.line_count is None:
        return _OPEN, f"exists, but its lines were not counted: {found.uncounted or 'it was not read'}"
    if last > found.line_count:
        lines = f"{found.line_count} line{'s' if found.line_count != 1 else ''}"
        return _NO, f"line range {first}-{last} is beyond the end: the file has {lines}"
    return _YES, _note(f"exists, with lines {first}-{last}", disk)


def _made(assertion: Assertion, found: Found, handed_off_at: float | None) -> tuple[Verdict, str]:
    disk = found.disk
    if disk.kind is FileKind.OTHER:
        return _NO, f"not a regular file: {disk.words}"
    if disk.kind is FileKind.DIRECTORY and not found.place.is_directory:
        return _NO, "not a regular file: a directory"
    if disk.kind is FileKind.REGULAR and found.place.is_directory:
        return _NO, "claimed as a directory by its last `/`, but it is a file"
    name = (found.place.relative or "").rpartition("/")[2]
    if disk.empty and name not in _EMPTY_BY_NATURE:
        return _NO, f"empty: the {'directory' if disk.kind is FileKind.DIRECTORY else 'file'} holds nothing"
    if assertion.kind is Kind.CREATED:
        return _created(found, handed_off_at)
    if assertion.kind is Kind.MODIFIED:
        return _modified(found, handed_off_at)
    return _YES, _note("exists", disk, _age(disk, handed_off_at))


def _created(found: Found, handed_off_at: float | None) -> tuple[Verdict, str]:
    disk, git = found.disk, found.git
    if handed_off_at is None:
        return _YES, _note("exists; no handoff is known, so its age says nothing", disk)
    if git is not None and git.tracked_before:
        return _NO, "claimed created but tracked before the handoff: git already had it"
    if is_older(disk, handed_off_at):
        return _NO, "older than the handoff: claimed created, but last written before it"
    return _YES, _note("exists, new since the handoff", disk)


def _modified(found: Found, handed_off_at: float | None) -> tuple[Verdict, str]:
    disk, git = found.disk, found.git
    compares = git is not None and (git.known or git.changed)
    if handed_off_at is None:
        if compares and git is not None and git.changed:
            return _YES, _note("exists and differs from the last commit; no handoff is known", disk)
        return _OPEN, "exists; without a handoff nothing tells whether it was modified"
    older = is_older(disk, handed_off_at)
    if not compares or git is None:
        why = found.without_git or "git does not track it"
        if older:
            return _NO, f"older than the handoff: claimed modified, but last written before it ({why})"
        return _YES, _note(f"written since the handoff ({why})", disk)
    if git.committed:
        return _YES, _note("changed by a commit since the handoff", disk)
    if git.changed:
        if older:
            return _NO, "older than the handoff: it differs from the last commit, but was last written before it"
        return _YES, _note("differs from the last commit, written since the handoff", disk)
    if older:
        return _NO, "claimed modified but unchanged: git sees no difference, and it was last written before the handoff"
    return _OPEN, "written since the handoff, but git sees no difference: its content is what it was"


def is_older(disk: DiskFacts, handed_off_at: float) -> bool:
    """The file was last written before the handoff, by its modification time."""
    if disk.mtime_ns % _NANOSECONDS == 0:
        # Some file systems keep whole seconds only.
        return disk.mtime_ns // _NANOSECONDS < math.floor(handed_off_at)
    return disk.mtime_ns / _NANOSECONDS < handed_off_at - SLACK


def _age(disk: DiskFacts, handed_off_at: float | None) -> str:
    if handed_off_at is None or disk.kind is not FileKind.REGULAR:
        return ""
    return ", last written before the handoff" if is_older(disk, handed_off_at) else ", written since the handoff"


def _note(words: str, disk: DiskFacts, more: str = "") -> str:
    return words + more + (" (through a symbolic link in the workspace)" if disk.linked else "")


def judge_constraint(
    assertion: Assertion, claimed: Collection[str], changed: Collection[str] | None, without_git: str
) -> Claim:
    """A constraint against the files claimed and those `changed` since the handoff (None: not known)."""
    broken = sorted(path for path in claimed if _breaks(assertion, path))
    if broken:
        verdict, detail = _NO, f"the return itself claims {_listed(broken)}"
    elif changed is None:
        why = without_git or "git cannot say what changed"
        verdict, detail = _OPEN, f"no claimed file breaks it; what else changed is not known ({why})"
    else:
        others = sorted(path for path in changed if path not in claimed and _breaks(assertion, path))
        if others:
            verdict = _OPEN
            detail = f"no claimed file breaks it, but {_listed(others)} changed since the handoff, by whom is not known"
        else:
            verdict, detail = _YES, "no file claimed, and none changed since the handoff, breaks it"
    return Claim(assertion.kind, assertion.path[:_LONGEST], verdict, detail)


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
