"""The decisions about one child, as a hook asks for them."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.agents.hook.child import Child
from agentwatch.config import Settings
from agentwatch.decisions.asking import hand_out, note_read
from agentwatch.decisions.reader import Expired, Forged, Found, Pending, Question, Reader, Verified
from agentwatch.decisions.receipts import Claim, ReceiptBook, ReceiptError
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import Stage
from agentwatch.place import state_directory
from agentwatch.presence import is_shown

READER: Final = "hook-claude"
_PAUSE_SECONDS: Final = 0.25


class Inbox(NamedTuple):
    """The reading side of one workspace."""

    workspace: Path
    settings: Settings

    @property
    def state(self) -> Path:
        return state_directory(self.workspace)

    @property
    def somebody_is_asked(self) -> bool:
        """Whether it is worth to wait for a decision."""
        when = self.settings.hook_when
        return when == "always" or (when == "watched" and is_shown(self.state))

    def find(self, child: Child, carried_out: frozenset[str], seconds: float = 0.0) -> Found:
        """The decision about exactly what this child gave back, after so many seconds at most.

        The decisions that it has `carried_out` before are about what it did before that, though the words be the same.
        """
        reader = Reader(self.workspace)
        end = time.monotonic() + seconds
        while True:
            found = _look(reader, child, carried_out)
            left = end - time.monotonic()
            if isinstance(found, Verified) or left <= 0:
                return found
            time.sleep(min(_PAUSE_SECONDS, left))

    def claim(self, record: Record, by: str) -> Claim | None:
        """Ask to be the one who carries it out; None where no claim can be written."""
        with suppress(ReceiptError):
            return self._book.claim(record.decision_id, by, since=record.created_at)
        return None

    def note_read(self, found: Verified, by: str) -> None:
        """Tell that a decision was read. Where nothing can be written it was read all the same."""
        with suppress(ReceiptError):
            note_read(self.workspace, self.settings, found, by, READER)

    def note_acted(self, decision_id: str, by: str) -> None:
        """Tell that a decision was carried out. Where nothing can be written it was all the same."""
        found = Reader(self.workspace).find(Question(None, decision_id=decision_id))
        if isinstance(found, Verified | Expired):
            with suppress(ReceiptError):
                self._book.mark(decision_id, Stage.ACTED, by, since=found.record.created_at, reader=READER)

    def hand_out(self, record: Record) -> str | None:
        """The file with the amended handoff, None where there is none."""
        return hand_out(self.workspace, self.settings, record)

    @property
    def _book(self) -> ReceiptBook:
        return ReceiptBook(self.workspace, self.state, read_only=self.settings.read_only)


def _look(reader: Reader, child: Child, carried_out: frozenset[str]) -> Found:
    found: Found = Pending("")
    for digest in child.digests:
        asked = Question(child.task_id, return_sha256=digest, since=child.attempt, carried_out=carried_out)
        found = reader.find(asked)
        if isinstance(found, Verified | Expired) and found.record.return_sha256 == digest:
            return found
    return found if isinstance(found, Forged) else Pending("the operator has not decided yet")
