"""A claimed file, and its difference from before the handoff: text for the screen, safe and cut to size."""

from pathlib import Path
from typing import NamedTuple

from agentwatch.evidence.disk import FileKind, look, place_of
from agentwatch.evidence.git import SECONDS, commit_before, open_git
from agentwatch.sources.files.read import FileRefusedError, read_file
from agentwatch.sources.worktrees import NoRepositoryError

MAX_SHOWN = 256 * 1024  # characters of a text that are handed out
_LARGEST = 8 * 1024 * 1024
_SNIFFED = 8_000  # characters among which a NUL makes a file binary, as git has it
_DIFF = ("--no-textconv", "--no-ext-diff", "--no-color", "--no-renames", "--ignore-submodules=all")


class Inspection(NamedTuple):
    """A text to show: foreign and unsanitised. `problem` says in words why there is none, "" where there is one."""

    text: str = ""
    truncated: bool = False
    problem: str = ""


def file_text(workspace: Path, path: str) -> Inspection:
    """The text of a claimed file. Blocks for as long as reading takes; never raises for what is on disk."""
    root = workspace.resolve()
    place = place_of(path, str(root))
    if place.relative is None:
        return Inspection(problem=f"This path is not shown: {place.fault}.")
    try:
        text = read_file(root, place.relative, _LARGEST).text
    except FileNotFoundError:
        return Inspection(problem="There is no such file now.")
    except FileRefusedError as error:
        # What to do about it is for the one who wrote the file.
        return Inspection(problem=f"{error.reason}.")
    if "\0" in text[:_SNIFFED]:
        return Inspection(problem="This is a binary file: there is no text to show.")
    return _cut(text)


def difference(workspace: Path, path: str, handed_off_at: float | None, *, seconds: float = SECONDS) -> Inspection:
    """The `git diff` of a claimed file since the commit at its handoff, or since the last commit without a handoff.

    A file that git does not know has no difference; its text is all new. No filter, textconv or external diff is run.
    """
    root = str(workspace.resolve())
    place = place_of(path, root)
    if place.relative is None:
        return Inspection(problem=f"This path is not shown: {place.fault}.")
    # git itself would follow a link in the middle of a path.
    facts = look(root, place.relative)
    if facts.real or not (facts.is_there or facts.kind is FileKind.MISSING):
        return Inspection(problem="This is not a regular file of the workspace: there is no difference to show.")
    try:
        git = open_git(root, seconds=seconds)
        base = git.head
        if base is not None and handed_off_at is not None:
            base = commit_before(git, base, handed_off_at)
        if base is None:
            return Inspection(problem="git has no commit to compare with: everything is new.")
        file = f"{git.prefix}{place.relative}"
        output = git.ask("diff", *_DIFF, base, "--", file, max_bytes=MAX_SHOWN * 4, cuts=True)
    except NoRepositoryError as error:
        return Inspection(problem=f"git cannot show the difference: {error}.")
    # Of a file that was only touched there is a heading and nothing below.
    shown = _cut(output.decode("utf-8", "replace") if output.count(b"\n") > 1 else "")
    if not shown.text:
        return Inspection(problem="git sees no difference since the handoff, or does not track this file.")
    return shown


def _cut(text: str) -> Inspection:
    return Inspection(text[:MAX_SHOWN], truncated=len(text) > MAX_SHOWN)
