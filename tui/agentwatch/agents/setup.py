"""`agentwatch init`: shows what it would change, changes it with --write, and takes it back with --remove.

A file that is plain JSON is read, and written anew with ours in it. Where more than values would be lost by that, as
comments, a person is shown what to add.
"""

from __future__ import annotations

import copy
import difflib
import errno
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentwatch.agents.hook.journal import Journal
from agentwatch.agents.programs import CLAUDE_SETTINGS, ByHand, Part, Program, programs, read_jsonc
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
Edited = Callable[[str], str]


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
    chosen = [known[agent]] if agent is not None else []
    if agent is None:
        read = sources()
        named = {name: one for name, one in known.items() if name != "generic"}
        chosen = [one for name, one in named.items() if one.is_in(workspace) or name in read]
        say(f"found: {', '.join(one.name for one in chosen)}" if chosen else _unrecognised(named))
    if not remove:
        say(f"this command starts agentwatch from any shell, until you move it: {command_line(command)}")
        if any(PathFinder.find_spec(name, command[-1].split(os.pathsep)) is None for name in _SDK):
            say(f"beware: the MCP server cannot start without its SDK; install that first: {install_line('mcp')}")
    wanted = chosen or [known["generic"]]
    # One after the other, as two of them may share a file.
    left = [program for program in wanted if _set_up(workspace, program, write=write, remove=remove)]
    if left:
        say(f"left for you: each step above that begins with `by hand`. Because of that the exit code is {BY_HAND}")
    return BY_HAND if left else 0


def _unrecognised(recognised: Mapping[str, Program]) -> str:
    looked = "; ".join(f"{', '.join(program.signs)} ({name})" for name, program in recognised.items())
    return (
        f"no agent program is recognised here. Looked for, in this directory: {looked}; and for sessions that were"
        f" begun in it.\nIf you use one of these, name it with --agent ({', '.join(recognised)}). What follows serves"
        " any other program that reads AGENTS.md"
    )


def _set_up(workspace: Path, program: Program, *, write: bool, remove: bool) -> bool:
    """Returns whether something is left to be done by hand."""
    steps = plan(workspace, program, remove=remove)
    edits = [step for step in steps if isinstance(step, Edit) and step.before != step.after]
    for step in steps:
        _show(step)
    if edits and not remove:
        paths = ", ".join(edit.path for edit in edits)
        say(
            f"{program.name}: what is added to {paths} names files of this machine. If you commit that, everybody who"
            " works with it must run `agentwatch init --write`, too"
        )
    if not edits:
        say(f"{program.name}: nothing to {'remove' if remove else 'change'}")
    elif not write:
        say(f"{program.name}: nothing is written yet; do it with --write")
    for edit in edits if write else ():
        try:
            _write(workspace, edit, keep_backup=not remove)
        except OSError as error:
            raise WorkspaceError(f"{edit.path}: cannot be written ({error}); what was written before stays") from error
        say(f"{program.name}: {'removed from' if remove else 'written to'} {edit.path}")
    for offer in () if remove else program.offers:
        say(f"{program.name}: you may add to {offer.place} ({offer.why}):")
        _show_lines(offer.lines)
    for words in () if remove else program.notes:
        say(f"{program.name}: {words}")
    return any(isinstance(step, ByHand) for step in steps)


def _show(step: Step) -> None:
    if isinstance(step, ByHand):
        say(f"by hand, to {clean(step.place)} ({clean(step.why)}):")
        _show_lines(step.lines)
        return
    before, after = step.before or "", step.after or ""
    names = ("/dev/null" if step.before is None else step.path, "/dev/null" if step.after is None else step.path)
    for line in difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm=""):
        say(clean(line))


def _show_lines(text: str) -> None:
    for line in text.splitlines():
        say(f"    {clean(line)}")


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


# What would be changed


def plan(workspace: Path, program: Program, *, remove: bool) -> list[Step]:
    """The steps of setting a program up, or of removing what was set up."""
    told = program.told
    steps = [_step(workspace, program.instructions, told, partial(_with_block, told), _without_block, remove=remove)]
    for file in program.files:
        path = next((one for one in file.paths if os.path.exists(workspace / one)), file.paths[-1])
        shown: dict[str, Any] = {}
        for part in file.parts:
            add_part(shown, part)
        do, undo = partial(edit_json, add_part, file.parts), partial(edit_json, remove_part, file.parts)
        steps.append(_step(workspace, path, _dumped(shown, ""), do, undo, remove=remove))
    return steps + list(() if remove else program.by_hand)


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


def _step(workspace: Path, path: str, lines: str, do: Edited, undo: Edited, *, remove: bool) -> Step:
    """The edit of one file, or `lines` for a person where it cannot be edited."""
    try:
        text, backup = _read(workspace, path), _read(workspace, path + BACKUP)
        return Edit(path, text, _undone(text, backup, do, undo) if remove else do(text or ""), backup)
    except UnicodeDecodeError:
        why = "it is not UTF-8"
    except NotEditableError as error:
        why = f"it cannot be edited safely: {error}"
    except OSError as error:
        is_link = isinstance(error, NotRegularError) or error.errno in (errno.ELOOP, errno.ENOTDIR)
        is_why = "it is a link or no file, and nothing is written through links"
        why = is_why if is_link else f"it cannot be read: {error}"
    return ByHand(path, lines, f"{why}; take this out of it" if remove else why)


def _undone(text: str | None, backup: str | None, do: Edited, undo: Edited) -> str | None:
    """The text of before: the very bytes where nobody else has changed it since, else without what is ours."""
    if text is None:
        return None
    # What an older agentwatch had written is nothing of before.
    is_before = backup is not None and undo(backup) == backup
    if backup is not None and is_before and do(backup) == text:
        return backup
    if not is_before and do("") == text:
        # We made it.
        return None
    return undo(text)


def _read(workspace: Path, path: str) -> str | None:
    with suppress(FileNotFoundError), _directory_of(workspace, path) as (directory, name):
        # Line ends are kept as they are.
        return directory.read(name, _LARGEST).decode()
    return None


def _with_block(block: str, text: str) -> str:
    """The text with the block: where it was before, else at the end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    new = newline.join((_BEGIN, *block.strip().split("\n"), _END))
    if _BLOCK.search(text):
        return _BLOCK.sub(lambda _: new, text, count=1)
    if not text:
        return new + newline
    gap = newline if text.endswith("\n") else newline * 2
    return f"{text}{gap}{new}{newline}"


def _without_block(text: str) -> str:
    """The text without the block."""
    gap = _WITH_GAP.search(text)
    if gap is None:
        return text
    before, behind = text[: gap.start()], text[gap.end() :]
    newline = "\r\n" if "\r\n" in text else "\n"
    return before + (newline if before else "") + behind


# JSON


def edit_json(change: Callable[[dict[str, Any], Part], None], parts: tuple[Part, ...], text: str) -> str:
    """The text with all parts changed; the same text where nothing is. Raises NotEditableError."""
    try:
        document, is_plain = json.loads(text or "{}", object_pairs_hook=_without_doubles), True
    except (ValueError, RecursionError):
        try:
            document, is_plain = read_jsonc(text), False
        except json.JSONDecodeError as error:
            raise NotEditableError(f"line {error.lineno}: {error.msg}") from error
        except RecursionError as error:
            raise NotEditableError("it is too deep") from error
    before = copy.deepcopy(document)
    for part in parts:
        change(_as(dict, document), part)
    if document == before:
        return text
    if not is_plain:
        raise NotEditableError("it has comments, trailing commas or keys twice, which would be lost")
    return _dumped(document, text)


def add_part(document: dict[str, Any], part: Part) -> None:
    """Put a part in, in the place of an older one of ours. Raises NotEditableError."""
    *above, key = part.path
    node = document
    for name in above:
        node = _as(dict, node.setdefault(name, {}))
    if part.is_ours is None:
        node[key] = part.value
        return
    entries = _as(list, node.setdefault(key, []))
    mine = [index for index, entry in enumerate(entries) if part.is_ours(entry)] or [len(entries)]
    entries[mine[0] : mine[0] + 1] = [part.value]
    entries[:] = [entry for index, entry in enumerate(entries) if index not in mine[1:]]


def remove_part(document: dict[str, Any], part: Part) -> None:
    """Take a part out, and the objects and arrays that held nothing else."""
    *above, key = part.path
    trail = [document]
    for name in above:
        trail.append(trail[-1].get(name, {}))
        if not isinstance(trail[-1], dict):
            return
    entries = trail[-1].get(key)
    if part.is_ours is not None and isinstance(entries, list):
        left = [entry for entry in entries if not part.is_ours(entry)]
        if len(left) == len(entries):
            return
        trail[-1][key] = left
    elif part.is_ours is None and entries is not None:
        trail[-1][key] = {}
    else:
        return
    for node, name in reversed(list(zip(trail, part.path, strict=True))):
        if node[name] in ({}, []):
            del node[name]


def _as(kind: type[Any], value: Any) -> Any:
    if not isinstance(value, kind):
        raise NotEditableError(f"there is no {'object' if kind is dict else 'array'} where one is expected")
    return value


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key stands there twice")
    return dict(pairs)


def _dumped(document: dict[str, Any], like: str) -> str:
    """As text, with the indent and the line ends of another one."""
    indent = _INDENT.search(like)
    text = json.dumps(document, indent=indent[1] if indent is not None else 2, ensure_ascii=False) + "\n"
    return text.replace("\n", "\r\n") if "\r\n" in like else text
