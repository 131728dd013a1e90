"""`agentwatch init`: shows what it would change, changes it with --write, and takes it back with --remove."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping, Set
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

from agentwatch.agents.setup.plan import BACKUP, Edit, Step, directory_of, plan
from agentwatch.agents.setup.programs import ByHand, Program, programs
from agentwatch.agents.setup.starts import starts, told, twice
from agentwatch.config import Settings
from agentwatch.errors import WorkspaceError
from agentwatch.shell import command_line, install_line, launcher
from agentwatch.text import clean, say

BY_HAND: Final = 1
_MODE: Final = 0o644
_SDK: Final = ("mcp", "mcp_types")


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
    read = sources() if agent is None else frozenset[str]()
    present = [
        program
        for program in known.values()
        if program.name != "generic" and (program.is_in(workspace) or program.name in read)
    ]
    chosen = [known[agent]] if agent is not None else present or [known["generic"]]
    if agent is None:
        named = ", ".join(program.name for program in present)
        say(f"found: {named}" if present else _unrecognised(known))
    if not remove:
        say(f"this command starts agentwatch from any shell, until you move it: {command_line(command)}")
        if any(PathFinder.find_spec(name, command[-1].split(os.pathsep)) is None for name in _SDK):
            say(f"beware: the MCP server cannot start without its SDK; install that first: {install_line('mcp')}")
    left, after = False, dict[str, str | None]()
    for program in chosen:
        # One after the other, as two of them may share a file.
        left |= _set_up(workspace, program, after, write=write, remove=remove)
    started = [] if remove else list(starts(workspace, after))
    for start in started:
        if start.fault:
            left = True
            say(clean(f"by hand, in {start.place}: {told(start)}"))
    if (said := twice(started)) is not None:
        say(clean(f"beware: {said}"))
    if left:
        say(f"left for you: each step above that begins with `by hand`. Because of that the exit code is {BY_HAND}")
    return BY_HAND if left else 0


def _unrecognised(known: Mapping[str, Program]) -> str:
    recognised = [program for program in known.values() if program.name != "generic"]
    looked = "; ".join(f"{', '.join(program.signs)} ({program.name})" for program in recognised)
    names = ", ".join(program.name for program in recognised)
    return (
        f"no agent program is recognised here. Looked for, in this directory: {looked}; and for sessions that were"
        f" begun in it.\nIf you use one of these, name it with --agent ({names}). What follows serves any other program"
        " that reads AGENTS.md"
    )


def _set_up(workspace: Path, program: Program, after: dict[str, str | None], *, write: bool, remove: bool) -> bool:
    """Returns whether something is left to be done by hand; `after` gets the texts that files have then."""
    steps = plan(workspace, program, remove=remove)
    after.update((step.path, step.after) for step in steps if isinstance(step, Edit))
    edits = [step for step in steps if isinstance(step, Edit) and step.changes]
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
    for note in () if remove else program.notes:
        say(f"{program.name}: {note}")
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
    with directory_of(workspace, edit.path, make=True) as (directory, name):
        mode = _MODE if edit.before is None else directory.status(name).st_mode & 0o777
        if keep_backup and edit.before is not None and edit.backup is None:
            directory.publish(name + BACKUP, edit.before.encode(), mode)
        if edit.after is None:
            directory.remove(name)
        else:
            directory.replace(name, edit.after.encode(), mode)
        if not keep_backup and edit.backup is not None:
            directory.remove(name + BACKUP)
