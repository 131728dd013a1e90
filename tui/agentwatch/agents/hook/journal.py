"""The calls of hooks, a line each in `<state directory>/hooks.jsonl`: so they know how often a child was sent back."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from agentwatch.disk import UNSYNCED, Directory
from agentwatch.state import state_directory

JOURNAL = "hooks.jsonl"
_FULL = 512 * 1024  # Bytes after which the journal begins anew

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST = 500
SENT_BACK = "sent back"
LET_GO = "let go"
TOLD = "told the parent"
UNANSWERED = "not answered"


class JournalEntry(NamedTuple):
    """One call. `did` is one of the constants above; `why` is for people, and `kind` says what the child was sent back
    for, or what asked. `digests` are those of the return that it had ended with."""

    event: str
    session_id: str
    agent_id: str
    task_id: str
    did: str
    kind: str = ""
    why: str = ""
    decision_id: str | None = None
    digests: tuple[str | None, ...] = ()
    at: str = ""


def add_entry(workspace: Path, entry: JournalEntry) -> None:
    """Write a call down, where something can be written."""
    texts = {name: value[:_LONGEST] if isinstance(value, str) else value for name, value in entry._asdict().items()}
    line = json.dumps(texts | {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}) + "\n"
    with suppress(OSError), Directory.make(state_directory(workspace), UNSYNCED) as directory:
        with suppress(FileNotFoundError):
            if directory.status(JOURNAL).st_size > _FULL:
                directory.remove(JOURNAL)
        descriptor = os.open(JOURNAL, _APPEND, 0o600, dir_fd=directory.descriptor)
        with os.fdopen(descriptor, "ab", buffering=0) as journal:
            journal.write(line.encode("ascii"))


def add_unanswered(workspace: Path, event: str, session_id: str, kind: str, why: str) -> None:
    """Write down why an answer of the operator's did not get through."""
    # Under no agent's name: how often one was sent back in a row is counted there.
    add_entry(workspace, JournalEntry(event, session_id, "", session_id, UNANSWERED, kind, why))


def last_unanswered(workspace: Path) -> str | None:
    """When an answer of the operator's did not get through last, and why; None where none is known."""
    return next((f"{one.at}: {one.why}" for one in _entries(workspace) if one.did == UNANSWERED), None)


def entries_of(workspace: Path, session_id: str, agent_id: str) -> list[JournalEntry]:
    """The calls about this agent, the last first."""
    agent = session_id[:_LONGEST], agent_id[:_LONGEST]
    return [entry for entry in _entries(workspace) if (entry.session_id, entry.agent_id) == agent]


def row_of(workspace: Path, session_id: str, agent_id: str) -> list[JournalEntry]:
    """How often this agent was sent back in a row until now, the last first."""
    return list(takewhile(lambda entry: entry.did == SENT_BACK, entries_of(workspace, session_id, agent_id)))


def _entries(workspace: Path) -> Iterator[JournalEntry]:
    """The journal of a workspace, the last first. A line that cannot be read is not there."""
    lines: list[bytes] = []
    with suppress(OSError), Directory.open(state_directory(workspace)) as directory:
        lines = directory.read(JOURNAL, 2 * _FULL).splitlines()
    for line in reversed(lines):
        with suppress(ValueError, TypeError, RecursionError):
            yield JournalEntry(**json.loads(line))
