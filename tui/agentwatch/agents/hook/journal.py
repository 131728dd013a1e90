"""What the hooks did, a line each in `<state directory>/hooks.jsonl`: so they know how often a child was sent back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.disk import UNSYNCED, Directory
from agentwatch.state import state_directory

NAME: Final = "hooks.jsonl"
_BEFORE: Final = "hooks.1.jsonl"
_LARGEST: Final = 512 * 1024
"""Bytes after which the journal goes on in a new file; one before is kept."""

_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST: Final = 500
SENT_BACK: Final = "sent back"
LET_GO: Final = "let go"
TOLD: Final = "told the parent"
UNANSWERED: Final = "not answered"


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


class Journal:
    """The journal of one workspace. What cannot be read is not there."""

    def __init__(self, workspace: Path) -> None:
        self._state = state_directory(workspace)

    def add(self, entry: JournalEntry) -> None:
        """Write it down, where something can be written."""
        texts = {name: value[:_LONGEST] if isinstance(value, str) else value for name, value in entry._asdict().items()}
        line = json.dumps(texts | {"at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}) + "\n"
        with suppress(OSError), Directory.make(self._state, UNSYNCED) as directory:
            with suppress(FileNotFoundError):
                if directory.status(NAME).st_size > _LARGEST:
                    directory.move(NAME, directory, _BEFORE)
            descriptor = os.open(NAME, _APPEND, 0o600, dir_fd=directory.descriptor)
            with os.fdopen(descriptor, "ab", buffering=0) as journal:
                journal.write(line.encode("ascii"))

    def add_unanswered(self, event: str, session_id: str, kind: str, why: str) -> None:
        """Write down why an answer of the operator's did not get through."""
        # Under no agent's name: how often one was sent back in a row is counted there.
        self.add(JournalEntry(event, session_id, "", session_id, UNANSWERED, kind, why))

    def unanswered(self) -> str | None:
        """When an answer of the operator's did not get through last, and why; None where none is known."""
        return next((f"{one.at}: {one.why}" for one in self._read() if one.did == UNANSWERED), None)

    def row(self, session_id: str, agent_id: str) -> list[JournalEntry]:
        """How often this agent was sent back in a row until now, oldest first."""
        return list(takewhile(lambda entry: entry.did == SENT_BACK, self._of(session_id, agent_id)))[::-1]

    def carried_out(self, session_id: str, agent_id: str) -> frozenset[str]:
        """The ids of the decisions that this agent was sent back with: they say nothing of what it did since."""
        sent = (entry.decision_id for entry in self._of(session_id, agent_id) if entry.did == SENT_BACK)
        return frozenset(one for one in sent if one is not None)

    def _of(self, session_id: str, agent_id: str) -> Iterator[JournalEntry]:
        agent = session_id[:_LONGEST], agent_id[:_LONGEST]
        return (entry for entry in self._read() if (entry.session_id, entry.agent_id) == agent)

    def _read(self) -> Iterator[JournalEntry]:
        """All of it, the last first."""
        lines: list[bytes] = []
        with suppress(OSError), Directory.open(self._state) as directory:
            for name in (_BEFORE, NAME):
                with suppress(OSError):
                    lines += directory.read(name, 2 * _LARGEST).splitlines()
        for line in reversed(lines):
            with suppress(ValueError, TypeError, RecursionError):
                yield JournalEntry(**json.loads(line))
