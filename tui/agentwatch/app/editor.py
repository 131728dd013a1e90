"""The operator's editor and pager, to which the terminal is lent, and the file that commands are about."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from textual.app import App, SuspendNotSupported
from textual.screen import Screen

from agentwatch.shell import find_program, resolve_command
from agentwatch.sources.files.walk import to_name
from agentwatch.sources.sessions.entries import Entry, EntryKind
from agentwatch.sources.sessions.following import RunTranscript, written
from agentwatch.text import clean, clean_lines
from agentwatch.view import times

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor

_LINES: Final = 100_000
_CHARACTERS: Final = 4 * 1024 * 1024
"""Of one entry; what is cut is said."""
HEADS: Final = {
    EntryKind.WORDS: "words",
    EntryKind.PROMPT: "what it was told",
    EntryKind.THOUGHT: "a thought",
    EntryKind.NOTE: "a note of the program",
}
"""The entries that are no calls."""


async def file_at_hand(screen: Screen[object], monitor: Monitor, *, names: bool = False) -> Path | str:
    """The file that is inspected; else the return of the selected task's latest attempt, else its handoff.

    If there is none, a sentence that says why; so it is with one on another machine, unless what `names` it is enough.
    The disk is asked in a thread.
    """
    inspected, task_id = getattr(screen, "inspected", None), getattr(screen, "task_id", None)
    task = monitor.tree.tasks.get(task_id) if isinstance(task_id, str) else None
    versions = (attempt.returned or attempt.handoff for attempt in reversed(task.attempts if task else []))
    version = next(filter(None, versions), None)
    if isinstance(inspected, Path) and await asyncio.to_thread(os.path.isfile, inspected):
        return inspected
    if task is None:
        return "No task is selected."
    if version is None:
        return "No file speaks of this row."
    own = monitor.of(task.task_id)[0]
    path = own.workspace / to_name(version.path)
    if version.stored:
        return "A session store keeps it, not a file of its own: the Raw tab has its text."
    if own.host:
        where = f"{clean(version.path, 200)} is on {clean(own.host, 60)}"
        return path if names else f"{where}: it cannot be opened from here; the Raw tab has its text."
    if await asyncio.to_thread(os.path.isfile, path):
        return path
    return f"{clean(version.path, 200)} is no longer there; the Raw tab has its last content."


def editor_command(configured: str | None, environment: Mapping[str, str] | None = None) -> list[str]:
    """The words of the editor's command: `$VISUAL`, `$EDITOR`, the configured one, `vi`; empty if there is none here.

    Raises ValueError if the command's quotation marks do not match.
    """
    environment = os.environ if environment is None else environment
    return _command(environment.get("VISUAL") or environment.get("EDITOR") or configured, ("vi",), environment)


def pager_command(environment: Mapping[str, str] | None = None) -> list[str]:
    """The words of the pager's command: `$PAGER`, else `less` or `more`; empty if there is none on this machine.

    Raises ValueError if the command's quotation marks do not match.
    """
    environment = os.environ if environment is None else environment
    return _command(environment.get("PAGER"), ("less", "more"), environment)


def _command(wanted: str | None, usual: Iterable[str], environment: Mapping[str, str]) -> list[str]:
    names = (name for name in usual if find_program(name, environment.get("PATH")) is not None)
    return shlex.split(wanted or "") or list(names)[:1]


def hand_over(app: App[Any], configured: str | None, path: Path) -> str | None:
    """Give the terminal to the operator's editor on a file, until it ends.

    Returns what went wrong, a sentence; None if nothing did.
    """
    try:
        command = editor_command(configured)
    except ValueError as error:
        return f"The editor's command cannot be understood ({error}): correct it where it is set, or set $VISUAL."
    if not command:
        return "No editor is set, and there is no vi: set $VISUAL or $EDITOR, or `editor` in agentwatch's config.toml."
    # No shell: neither the file's name nor anything in it is ever a command. An absolute path is never an option.
    return lend(app, [*command, str(path.absolute())], (), "Set $VISUAL or $EDITOR.")


def open_in_pager(app: App[Any], transcript: RunTranscript) -> str | None:
    """Give the terminal to the pager on a whole transcript, until it ends. Returns what went wrong, as `hand_over`."""
    try:
        command = pager_command()
    except ValueError as error:
        return f"$PAGER cannot be understood ({error})."
    if not command:
        return "No pager is set, and there is no less: set $PAGER."
    return lend(app, command, plain_lines(transcript.entries()), "Set $PAGER.")


def lend(app: App[Any], command: list[str], lines: Iterable[str], advice: str) -> str | None:
    """Give the terminal to a command until it ends, with lines on its standard input, where there are any.

    Returns what went wrong, a sentence, with advice where it cannot be started; None if nothing did.
    """
    name, code, refused = clean(command[0], 80), 0, None
    try:
        with app.suspend():
            # The app takes the terminal back only where its block ends without an error.
            try:
                code = run(command, lines)
            except OSError as error:
                refused = f"{name} could not be started: {error.strerror}. {advice}"
    except SuspendNotSupported:
        return f"The terminal cannot be handed over to {name} from here."
    return refused or (f"{name} ended with exit code {code}." if code else None)


def run(command: list[str], lines: Iterable[str] = ()) -> int:
    """Run a command and wait for it; its exit code. Raises OSError if it cannot be started."""
    source = subprocess.PIPE if lines else None
    words = resolve_command(command)
    with subprocess.Popen(words, stdin=source, encoding="utf-8", errors="backslashreplace") as process:  # noqa: S603
        if process.stdin is not None:
            # An operator who has seen enough ends it before the end.
            with suppress(BrokenPipeError), process.stdin as pipe:
                pipe.writelines(f"{line}\n" for line in lines)
        return process.wait()


def plain_lines(entries: Iterable[Entry]) -> Iterator[str]:
    """Entries as safe lines: a heading for each, and its text indented below."""
    for entry in entries:
        if entry.kind is EntryKind.CALL:
            head, body = f"calls {clean(entry.tool, 200)}", written(entry.given)
        elif entry.kind is EntryKind.RESULT:
            how = "was refused" if entry.refused else "failed" if entry.failed else "came back"
            head, body = how, entry.text
        else:
            head, body = HEADS[entry.kind] + (", failed" if entry.failed else ""), entry.text
        yield f"{times.local(entry.at)}  {head}"
        lines, note = clean_lines(body, _LINES, _CHARACTERS)
        yield from (f"    {line}".rstrip() for line in lines)
        if note:
            yield f"    ({note})"
        yield ""
