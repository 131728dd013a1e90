"""`agentwatch init`: shows what it would change, changes it with --write, and takes it back with --remove."""

from __future__ import annotations

import difflib
import shutil
import sys
from pathlib import Path
from typing import Final

from agentwatch.agents.setup.plan import BACKUP, Edit, Step, directory_of, plan
from agentwatch.agents.setup.programs import ByHand, Program, programs
from agentwatch.config import Settings
from agentwatch.errors import WorkspaceError
from agentwatch.text import clean, say

BY_HAND: Final = 1
_MODE: Final = 0o644


def run(workspace: Path, agent: str | None, settings: Settings, *, write: bool, remove: bool) -> int:
    """Set up the programs that are there, or the one that is named. Returns 0, or BY_HAND where something is left."""
    known = programs(command(), settings)
    if agent is not None:
        chosen = [known[agent]]
    else:
        found = [program for program in known.values() if program.name != "generic" and program.is_in(workspace)]
        chosen = found or [known["generic"]]
        named = ", ".join(program.name for program in chosen)
        say(f"found: {named}" if found else "no agent program is recognised here; give one with --agent")
    left = False
    for program in chosen:
        # One after the other, as two of them may share a file.
        left |= _set_up(workspace, program, write=write, remove=remove)
    return BY_HAND if left else 0


def command() -> tuple[str, ...]:
    """What starts agentwatch from an agent's program: by name where that is on the PATH."""
    return ("agentwatch",) if shutil.which("agentwatch") else (sys.executable, "-m", "agentwatch")


def _set_up(workspace: Path, program: Program, *, write: bool, remove: bool) -> bool:
    """Returns whether something is left to be done by hand."""
    steps = plan(workspace, program, remove=remove)
    edits = [step for step in steps if isinstance(step, Edit) and step.changes]
    for step in steps:
        _show(step)
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
    if program.note and not remove:
        say(f"{program.name}: {program.note}")
    return any(isinstance(step, ByHand) for step in steps)


def _show(step: Step) -> None:
    if isinstance(step, ByHand):
        say(f"by hand, to {clean(step.place)} ({clean(step.why)}):")
        for line in step.lines.splitlines():
            say(f"    {clean(line)}")
        return
    before, after = step.before or "", step.after or ""
    names = ("/dev/null" if step.before is None else step.path, "/dev/null" if step.after is None else step.path)
    for line in difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm=""):
        say(clean(line))


def _write(workspace: Path, edit: Edit, *, keep_backup: bool) -> None:
    """Raises OSError."""
    with directory_of(workspace, edit.path, make=True) as (directory, name):
        mode = _MODE if edit.before is None else directory.look(name).st_mode & 0o777
        if keep_backup and edit.before is not None and edit.backup is None:
            directory.publish(name + BACKUP, edit.before.encode(), mode)
        if edit.after is None:
            directory.remove(name)
        else:
            directory.replace(name, edit.after.encode(), mode)
        if not keep_backup and edit.backup is not None:
            directory.remove(name + BACKUP)
