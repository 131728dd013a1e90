"""Runs the operator's editor and pager in the terminal, and finds the file of a task."""

import asyncio
import os
import shlex
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from agentwatch.delegation.task import Task
from agentwatch.monitor import Monitor
from agentwatch.shell import find_program, resolve_command
from agentwatch.sources.files.read import system_name
from agentwatch.sources.sessions.entries import Entry, EntryKind, RunTranscript, format_arguments
from agentwatch.text import clean, clean_lines
from agentwatch.view.words import format_local

_LINES = 100_000
_CHARACTERS = 4 * 1024 * 1024  # the most characters of one transcript entry; a note tells that a longer entry is cut
# The headings of transcript entries. Calls and results get a heading of their own.
HEADINGS = {
    EntryKind.WORDS: "words",
    EntryKind.PROMPT: "what it was told",
    EntryKind.THOUGHT: "a thought",
    EntryKind.NOTE: "a note of the program",
}


async def find_task_file(
    inspected: Path | None, task: Task | None, monitor: Monitor, *, name_suffices: bool = False
) -> Path | str:
    """Return the inspected file. If no file is inspected, return the file of the task's latest return or handoff.

    If no file can be opened on this machine, return a sentence that says why. With `name_suffices`, also return a file
    on another machine.
    """
    if inspected is not None and await asyncio.to_thread(os.path.isfile, inspected):
        return inspected
    if task is None:
        return "No task is selected."
    versions = (attempt.returned or attempt.handoff for attempt in reversed(task.attempts))
    if (version := next(filter(None, versions), None)) is None:
        return "No file speaks of this row."
    own = monitor.resolve_task(task.task_id)[0]
    path = own.workspace / system_name(version.path)
    if not version.stored and (name_suffices if own.host else await asyncio.to_thread(os.path.isfile, path)):
        return path
    where = f" on {clean(own.host, 60)}" if own.host else ""
    return f"{clean(version.path, 200)}{where} is no file that can be opened from here; the Raw tab has its text."


def choose_command(named: Iterable[str | None], usual: Iterable[str], path: str | None = None) -> list[str]:
    """Return the first command in `named`, split into words. If there is none, return the first installed program of
    `usual`. Return [] without any command, or if its quotation marks do not match. `path` replaces PATH."""
    found = (name for name in usual if find_program(name, path) is not None)
    with suppress(ValueError):
        return shlex.split(next(filter(None, named), "")) or list(found)[:1]
    return []


def open_in_editor(app: App[Any], configured: str | None, path: Path) -> str | None:
    """Open a file in the operator's editor and wait until the editor ends. Return an error sentence if this fails.
    The editor is the first that is set: `$VISUAL`, `$EDITOR`, or `configured`. If none is set, it is `vi`."""
    command = choose_command([os.environ.get("VISUAL"), os.environ.get("EDITOR"), configured], ["vi"])
    # No shell reads the file's name. An absolute path is never taken for an option.
    return _run_in_terminal(app, "$VISUAL, $EDITOR, or `editor` in config.toml", command, [str(path.absolute())])


def open_in_pager(app: App[Any], transcript: RunTranscript) -> str | None:
    """Show a whole transcript in the operator's pager and wait. Return an error sentence if this fails."""
    command = choose_command([os.environ.get("PAGER")], ["less", "more"])
    return _run_in_terminal(app, "$PAGER", command, lines=transcript_lines(transcript.entries()))


def _run_in_terminal(
    app: App[Any], setting_names: str, command: list[str], arguments: Iterable[str] = (), lines: Iterable[str] = ()
) -> str | None:
    if not command:
        return f"No usable program to open it is set: set {setting_names}."
    name, code, refused = clean(command[0], 80), 0, None
    try:
        with app.suspend():
            # Catch errors inside this block. If an error left the block, the app would not take the terminal back.
            try:
                code = run_program([*command, *arguments], lines)
            except OSError as error:
                refused = f"{name} could not be started: {error.strerror}. Set {setting_names}."
    except SuspendNotSupported:
        return f"The terminal cannot be handed over to {name} from here."
    return refused or (f"{name} ended with exit code {code}." if code else None)


def run_program(command: list[str], lines: Iterable[str] = ()) -> int:
    """Run a command with `lines` as its input, and return its exit code. Raises OSError if the command cannot start."""
    source = subprocess.PIPE if lines else None
    words = resolve_command(command)
    with subprocess.Popen(words, stdin=source, encoding="utf-8", errors="backslashreplace") as process:  # noqa: S603
        if process.stdin is not None:
            # The operator may leave the pager before all lines are written.
            with suppress(BrokenPipeError), process.stdin as pipe:
                pipe.writelines(f"{line}\n" for line in lines)
        return process.wait()


def transcript_lines(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield safe lines for entries of a transcript: a heading for each entry, and the entry's text indented below."""
    for entry in entries:
        if entry.kind is EntryKind.CALL:
            head, body = f"calls {clean(entry.tool, 200)}", format_arguments(entry.given)
        elif entry.kind is EntryKind.RESULT:
            how = "was refused" if entry.refused else "failed" if entry.failed else "came back"
            head, body = how, entry.text
        else:
            head, body = HEADINGS[entry.kind] + (", failed" if entry.failed else ""), entry.text
        yield f"{format_local(entry.at)}  {head}"
        lines, note = clean_lines(body, _LINES, _CHARACTERS)
        yield from (f"    {line}".rstrip() for line in (*lines, *([f"({note})"] if note else []), ""))
