"""A whole transcript as a plain text in the operator's pager."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from textual.app import App

from agentwatch.app.editor import lend
from agentwatch.shell import find_program
from agentwatch.sources.sessions.entries import Entry, EntryKind
from agentwatch.sources.sessions.following import RunTranscript, written
from agentwatch.state import scratch_directory
from agentwatch.text import clean, clean_lines
from agentwatch.view import times

_USUAL: Final = ("less", "more")
_LINES: Final = 100_000
_CHARACTERS: Final = 4 * 1024 * 1024
"""Of one entry; what is cut is said."""
_HEADS: Final = {
    EntryKind.WORDS: "says",
    EntryKind.PROMPT: "is told",
    EntryKind.THOUGHT: "thinks",
    EntryKind.NOTE: "note",
}


def pager_command(environment: Mapping[str, str] | None = None) -> list[str]:
    """The words of the pager's command: `$PAGER`, else `less` or `more`; empty if there is none on this machine.

    Raises ValueError if the command's quotation marks do not match.
    """
    environment = os.environ if environment is None else environment
    words = shlex.split(environment.get("PAGER", ""))
    usual = (name for name in _USUAL if find_program(name, environment.get("PATH")) is not None)
    return words or list(usual)[:1]


def plain_lines(entries: Iterable[Entry]) -> Iterator[str]:
    """What entries say, as safe lines: a heading for each, and its text indented below."""
    for entry in entries:
        if entry.kind is EntryKind.CALL:
            head, body = f"calls {clean(entry.tool, 200)}", written(entry.given)
        elif entry.kind is EntryKind.RESULT:
            how = "was refused" if entry.refused else "failed" if entry.failed else "came back"
            head, body = how, entry.text
        else:
            head, body = _HEADS[entry.kind] + (", failed" if entry.failed else ""), entry.text
        yield f"{times.local(entry.at)}  {head}"
        lines, note = clean_lines(body, _LINES, _CHARACTERS)
        yield from (f"    {line}".rstrip() for line in lines)
        if note:
            yield f"    ({note})"
        yield ""


def _write(transcript: RunTranscript, path: Path) -> None:
    with path.open("x", encoding="utf-8", errors="backslashreplace") as file:
        file.writelines(f"{line}\n" for line in plain_lines(transcript.entries()))


async def open_in_pager(app: App[Any], transcript: RunTranscript) -> str | None:
    """Give the terminal to the pager until it ends. Returns what went wrong, a sentence; None if nothing did."""
    try:
        command = pager_command()
    except ValueError as error:
        return f"$PAGER cannot be understood ({error})."
    if not command:
        return "No pager is set, and there is no less: set $PAGER."
    try:
        # A directory that nobody else may enter: what agents say is nobody else's.
        with scratch_directory() as directory:
            path = directory / "transcript.txt"
            await asyncio.to_thread(_write, transcript, path)
            return lend(app, command, path, "Set $PAGER.")
    except OSError as error:
        return f"The transcript could not be written out: {error.strerror}."
