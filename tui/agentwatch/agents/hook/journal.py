"""Keeps a journal of hook calls, `hooks.jsonl`. A hook reads in it how often a child was sent back."""

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
_FULL = 512 * 1024  # bytes; a longer journal is deleted and begun again

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST = 500
SENT_BACK = "sent back"
LET_GO = "let go"
TOLD = "told the parent"
UNANSWERED = "not answered"


class JournalEntry(NamedTuple):
    """One call of a hook. `did` says what happened to the child, such as SENT_BACK. `why` is for people.
    `kind` says why the child was sent back, or which tool asked. `digests` are the digests of the child's return."""

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
    """Append a call to the journal. Ignore a failure to write."""
    texts = {name: value[:_LONGEST] if isinstance(value, str) else value for name, value in entry._asdict().items()}
    line = json.dumps(texts | {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}) + "\n"
    with suppress(OSError), Directory.open_or_make(state_directory(workspace), UNSYNCED) as directory:
        with suppress(FileNotFoundError):
            if directory.status(JOURNAL).st_size > _FULL:
                directory.remove(JOURNAL)
        descriptor = os.open(JOURNAL, _APPEND, 0o600, dir_fd=directory.descriptor)
        with os.fdopen(descriptor, "ab", buffering=0) as journal:
            journal.write(line.encode("ascii"))


def add_unanswered(workspace: Path, event: str, session_id: str, kind: str, why: str) -> None:
    """Record why an answer of the operator did not get through."""
    # The agent id is empty, so `latest_sent_back` skips this entry.
    add_entry(workspace, JournalEntry(event, session_id, "", session_id, UNANSWERED, kind, why))


def last_unanswered(workspace: Path) -> str | None:
    """Return when and why an answer of the operator last failed to get through. Return None if none failed."""
    return next((f"{one.at}: {one.why}" for one in _entries(workspace) if one.did == UNANSWERED), None)


def entries_of(workspace: Path, session_id: str, agent_id: str) -> list[JournalEntry]:
    """Return the calls about one agent, the newest first."""
    agent = session_id[:_LONGEST], agent_id[:_LONGEST]
    return [entry for entry in _entries(workspace) if (entry.session_id, entry.agent_id) == agent]


def latest_sent_back(workspace: Path, session_id: str, agent_id: str) -> list[JournalEntry]:
    """Return the latest calls, the newest first. Stop before the first call that did not send the agent back."""
    return list(takewhile(lambda entry: entry.did == SENT_BACK, entries_of(workspace, session_id, agent_id)))


def _entries(workspace: Path) -> Iterator[JournalEntry]:
    """Yield the readable entries of a workspace's journal, the newest first."""
    lines: list[bytes] = []
    with suppress(OSError), Directory.open(state_directory(workspace)) as directory:
        lines = directory.read(JOURNAL, 2 * _FULL).splitlines()
    for line in reversed(lines):
        with suppress(ValueError, TypeError, RecursionError):
            yield JournalEntry(**json.loads(line))
