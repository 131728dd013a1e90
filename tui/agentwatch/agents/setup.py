"""`agentwatch init`: shows what it would change, changes it with --write, and takes it back with --remove.

A file that is plain JSON is read, and written anew with ours in it. Where more than values would be lost by that, as
comments, a person is shown what to add.
"""

from __future__ import annotations

import difflib
import errno
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentwatch.agents.hook.journal import Journal
from agentwatch.agents.programs import CLAUDE_SETTINGS, ByHand, Part, Program, programs
from agentwatch.config import Settings
from agentwatch.disk import Directory, NotRegularError
from agentwatch.errors import WorkspaceError
from agentwatch.shell import command_line, install_line, launcher
from agentwatch.state import state_directory
from agentwatch.text import Check, bad, clean, good, note, say

BY_HAND: Final = 1
BACKUP: Final = ".agentwatch.bak"
_SDK: Final = ("mcp", "mcp_types")
_LARGEST: Final = 4 * 1024 * 1024
_FILE_MODE: Final = 0o644
_DIRECTORY_MODE: Final = 0o755
_BEGIN: Final = "<!-- agentwatch: begin -->"
_END: Final = "<!-- agentwatch: end -->"
"""Around what is ours in a Markdown file: nobody sees these when it is shown."""

_BLOCK: Final = re.compile(rf"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
_WITH_GAP: Final = re.compile(rf"(?:\r?\n)*{_BLOCK.pattern}(?:\r?\n)?", re.DOTALL)
_INDENT: Final = re.compile(r"^([ \t]+)[\"\[{]", re.MULTILINE)
_COMMENT: Final = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA: Final = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)


class NotEditableError(ValueError):
    """A JSON file that is not written anew, and why."""


class Edit(NamedTuple):
    """One file, relative to the workspace. None stands for no file.

    `backup` is what lies beside it from before the first edit, as far as it does.
    """

    path: str
    before: str | None
    after: str | None
    backup: str | None


Step = Edit | ByHand
Change = Callable[[str, bool], str]
"""Puts what is ours into a text, or with False takes it out. Raises NotEditableError."""


def run(
    workspace: Path,
    agent: str | None,
    settings: Settings,
    *,
    write: bool,
    remove: bool,
    sources: Callable[[], Set[str]] = frozenset,
) -> int:
    """Set up the programs that are there, or the one that is named. Returns 0, or BY_HAND where something is left.

    `sources` gives the names of the readers that know a session of this workspace.
    """
    command = launcher()
    known = programs(command, settings)
    chosen = _recognised(workspace, known, sources()) if agent is None else [known[agent]]
    if not remove:
        say(f"this command starts agentwatch from any shell, until you move it: {command_line(command)}")
        if any(PathFinder.find_spec(name, command[-1].split(os.pathsep)) is None for name in _SDK):
            say(f"beware: the MCP server cannot start without its SDK; install that first: {install_line('mcp')}")
    # One after the other, as two of them may share a file.
    left = [program for program in chosen if _set_up(workspace, program, write=write, remove=remove)]
    if left:
        say(f"left for you: each step above that begins with `by hand`. Because of that the exit code is {BY_HAND}")
    return BY_HAND if left else 0


def _recognised(workspace: Path, known: Mapping[str, Program], read: Set[str]) -> list[Program]:
    named = [program for name, program in known.items() if name != "generic"]
    found = [one for one in named if one.name in read or any(os.path.exists(workspace / sign) for sign in one.signs)]
    if found:
        say(f"found: {', '.join(one.name for one in found)}")
        return found
    looked = "; ".join(f"{', '.join(one.signs)} ({one.name})" for one in named)
    say(
        f"no agent program is recognised here. Looked for, in this directory: {looked}; and for sessions that were"
        f" begun in it.\nIf you use one of these, name it with --agent ({', '.join(one.name for one in named)}). What"
        " follows serves any other program that reads AGENTS.md"
    )
    return [known["generic"]]


def _set_up(workspace: Path, program: Program, *, write: bool, remove: bool) -> bool:
    """Returns whether something is left to be done by hand."""

    def tell(words: str) -> None:
        say(f"{program.name}: {words}")

    steps = plan(workspace, program, remove=remove)
    edits = [step for step in steps if isinstance(step, Edit) and step.before != step.after]
    for step in steps:
        _show(step)
    if edits and not remove:
        tell(
            f"what is added to {', '.join(edit.path for edit in edits)} names files of this machine. If you commit"
            " that, everybody who works with it must run `agentwatch init --write`, too"
        )
    if not edits:
        tell(f"nothing to {'remove' if remove else 'change'}")
    elif not write:
        tell("nothing is written yet; do it with --write")
    for edit in edits if write else ():
        try:
            _write(workspace, edit, keep_backup=not remove)
        except OSError as error:
            raise WorkspaceError(f"{edit.path}: cannot be written ({error}); what was written before stays") from error
        tell(f"{'removed from' if remove else 'written to'} {edit.path}")
    if not remove:
        for offer in program.offers:
            tell(f"you may add to {offer.place} ({offer.why}):")
            _show_lines(offer.lines)
        for words in program.notes:
            tell(words)
    return any(isinstance(step, ByHand) for step in steps)


def _show(step: Step) -> None:
    if isinstance(step, ByHand):
        say(f"by hand, to {clean(step.place)} ({clean(step.why)}):")
        _show_lines(step.lines)
        return
    texts = step.before, step.after
    names = ("/dev/null" if text is None else step.path for text in texts)
    for line in difflib.unified_diff(*((text or "").splitlines() for text in texts), *names, lineterm=""):
        say(clean(line))


def _show_lines(text: str) -> None:
    for line in text.splitlines():
        say(f"    {clean(line)}")


def checks(workspace: Path, settings: Settings) -> Iterator[Check]:
    """The checks of `doctor` on files that `init` wrote: whether it would write the same now."""
    if (said := Journal(state_directory(workspace)).unanswered()) is not None:
        yield note("agents", f"an answer to a program did not get through at {said}")
    is_right: dict[str, bool] = {}
    for program in programs(launcher(), settings).values():
        both = zip(plan(workspace, program, remove=False), plan(workspace, program, remove=True), strict=False)
        for step, without in both:
            if isinstance(step, Edit) and isinstance(without, Edit) and without.before != without.after:
                is_right[step.path] = step.before == step.after and is_right.get(step.path, True)
    for path in (path for path, right in is_right.items() if not right):
        why = "what is there was written by hand, or by another agentwatch: other code may run in its place"
        yield bad("agents", f"{path}: {why}; `agentwatch init --write` mends it")
    if is_right and all(is_right.values()):
        yield good("agents", "what their configurations start is agentwatch, whatever lies in the workspace")
    if is_right.get(CLAUDE_SETTINGS):
        yield good("agents", "permissions and questions of Claude Code can be answered in agentwatch")


# Files


def plan(workspace: Path, program: Program, *, remove: bool) -> list[Step]:
    """The steps of setting a program up, or of removing what was set up."""
    changes: list[tuple[str, str, Change]] = [
        (program.instructions, program.told, partial(_change_block, program.told))
    ]
    for file in program.files:
        path = next((one for one in file.paths if os.path.exists(workspace / one)), file.paths[-1])
        change = partial(_change_json, file.parts)
        changes.append((path, change("", True), change))
    steps = [_step(workspace, *one, remove=remove) for one in changes]
    return steps if remove else [*steps, *program.by_hand]


def _step(workspace: Path, path: str, lines: str, change: Change, *, remove: bool) -> Step:
    """The edit of one file, or `lines` for a person where it cannot be edited."""
    try:
        text, backup = _read(workspace, path), _read(workspace, path + BACKUP)
        return Edit(path, text, _undone(text, backup, change) if remove else change(text or "", True), backup)
    except UnicodeDecodeError:
        why = "it is not UTF-8"
    except NotEditableError as error:
        why = f"it cannot be edited safely: {error}"
    except OSError as error:
        is_link = isinstance(error, NotRegularError) or error.errno in (errno.ELOOP, errno.ENOTDIR)
        is_why = "it is a link or no file, and nothing is written through links"
        why = is_why if is_link else f"it cannot be read: {error}"
    return ByHand(path, lines, f"{why}; take this out of it" if remove else why)


def _undone(text: str | None, backup: str | None, change: Change) -> str | None:
    """The text of before: the very bytes, or no file, where nobody else has changed it since, else without ours."""
    if text is None:
        return None
    # A backup that has ours was made of the work of an older agentwatch.
    before = backup if backup is not None and change(backup, False) == backup else None
    return before if change(before or "", True) == text else change(text, False)


@contextmanager
def _directory_of(workspace: Path, path: str, *, make: bool = False) -> Iterator[tuple[Directory, str]]:
    """The directory of a file in the workspace, through no link, and the name in it. Raises OSError."""
    *parents, name = path.split("/")
    directory = Directory.open(workspace)
    for parent in parents:
        with directory as above:
            directory = above.child(parent, make=_DIRECTORY_MODE if make else None)
    with directory:
        yield directory, name


def _read(workspace: Path, path: str) -> str | None:
    with suppress(FileNotFoundError), _directory_of(workspace, path) as (directory, name):
        # Line ends are kept as they are.
        return directory.read(name, _LARGEST).decode()
    return None


def _write(workspace: Path, edit: Edit, *, keep_backup: bool) -> None:
    """Raises OSError."""
    with _directory_of(workspace, edit.path, make=True) as (directory, name):
        mode = _FILE_MODE if edit.before is None else directory.status(name).st_mode & 0o777
        if keep_backup and edit.before is not None and edit.backup is None:
            directory.publish(name + BACKUP, edit.before.encode(), mode)
        if edit.after is None:
            directory.remove(name)
        else:
            directory.replace(name, edit.after.encode(), mode)
        if not keep_backup and edit.backup is not None:
            directory.remove(name + BACKUP)


# Texts


def _change_block(block: str, text: str, put: bool) -> str:
    """The text with the block, where it was before, else at the end; or without it."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if not put:
        return _WITH_GAP.sub(lambda gap: newline if gap.start() else "", text, count=1)
    new = newline.join((_BEGIN, *block.strip().split("\n"), _END))
    if _BLOCK.search(text):
        return _BLOCK.sub(lambda _: new, text, count=1)
    gap = newline * (2 - text.endswith("\n")) if text else ""
    return f"{text}{gap}{new}{newline}"


def _change_json(parts: Sequence[Part], text: str, put: bool) -> str:
    """The text with all parts, or without them; the same text where nothing is changed by that."""
    document = before = _as(dict, _read_json(text or "{}"))
    for part in parts:
        document = _changed(document, part, put=put) or {}
    if document == before:
        return text
    with suppress(ValueError, RecursionError):
        json.loads(text or "{}")
        # With the indent and the line ends of before.
        indent = _INDENT.search(text)
        new = json.dumps(document, indent=indent[1] if indent is not None else 2, ensure_ascii=False) + "\n"
        return new.replace("\n", "\r\n") if "\r\n" in text else new
    raise NotEditableError("it has comments or trailing commas, which would be lost")


def _read_json(text: str) -> Any:
    """A JSON text, also with the comments and trailing commas that some programs allow."""
    try:
        bare = _COMMENT.sub(_keep_strings, text.removeprefix("\ufeff"))
        return json.loads(_LAST_COMMA.sub(_keep_strings, bare))
    except json.JSONDecodeError as error:
        raise NotEditableError(f"line {error.lineno}: {error.msg}") from error
    except RecursionError as error:
        raise NotEditableError("it is too deep") from error


def _keep_strings(match: re.Match[str]) -> str:
    # The same lines, so that an error names the right one.
    return match[1] or "\n" * match[0].count("\n")


def _changed(node: Any, part: Part, *, put: bool) -> Any:
    """A value with a part in it, in the place of an older one, or without it; None where it held nothing else."""
    changed: dict[str, Any] | list[Any]
    if part.path:
        key, *inner = part.path
        members = _as(dict, node)
        changed = members | {key: _changed(members.get(key), part._replace(path=tuple(inner)), put=put)}
        if changed[key] is None:
            del changed[key]
    elif part.is_ours is None:
        return part.value if put else None
    else:
        entries, right = _as(list, node), [part.value] if put else []
        others = [entry for entry in entries if not part.is_ours(entry)]
        changed = entries if [entry for entry in entries if part.is_ours(entry)] == right else others + right
    return node if changed == node else changed or None


def _as(kind: type[Any], value: Any) -> Any:
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise NotEditableError(f"there is no {'object' if kind is dict else 'array'} where one is expected")
    return value
