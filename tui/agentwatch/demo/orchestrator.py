"""The demo's orchestrator: it reads what the operator decided, as every agent does, and plays what comes of it.

The decisions are real ones: found in the workspace, verified with the operator's public key and held against the ledger
by the code of `agentwatch wait`, and marked as read. Only the work that follows is written beforehand.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from string import Template
from typing import Final
from urllib.parse import quote

from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Handoff
from agentwatch.decisions.delivery import MIRROR, ReceiptBook, ReceiptError
from agentwatch.decisions.handoff import AmendError, amended
from agentwatch.decisions.reader import Question, Reader, Verified
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import Action, Stage
from agentwatch.demo.script import Player, Screenplay, Step

NAME: Final = "the demo's orchestrator"

_HANDS_ON: Final = frozenset({Action.RETRY, Action.ESCALATE, Action.RESPOND})
_LONGEST: Final = 160
"""Characters of the operator's words that the children repeat: a summary may not be longer than its contract says."""


class Orchestrator:
    """The one agent of a demo. `state` and `configuration` are where the demo keeps its ledger and its keys."""

    def __init__(self, workspace: Path, state: Path, configuration: Path, play: Screenplay, player: Player) -> None:
        self._workspace = workspace
        self._play = play
        self._player = player
        # Nothing that is set for the operator's own agents counts here.
        self._reader = Reader(workspace, state=state, configuration=configuration, environment={})
        self._book = ReceiptBook(workspace, state)
        self._read: set[str] = set()
        self.decided: set[str] = set()
        """The tasks about which something was decided."""

    @property
    def was_told(self) -> bool:
        """Whether it has read a decision yet."""
        return bool(self._read)

    def attend(self) -> None:
        """Read the decisions that have come since the call before, and begin to carry them out."""
        delivered = {path.stem for path in (self._workspace / MIRROR).glob("*.json")}
        for decision_id in sorted(delivered - self._read):
            answer = self._reader.find(Question(None, decision_id=decision_id))
            if isinstance(answer, Verified):
                self._read.add(decision_id)
                with suppress(ReceiptError):
                    self._book.mark(decision_id, Stage.READ, NAME, since=answer.record.created_at)
                self._carry_out(answer.record)

    def go_on(self, record: Record) -> None:
        """An agent has got the answer to its request."""
        self._player.cut_in(_filled(self._play.scene(record.action, record.task_id), _words(record, "")))

    def _carry_out(self, record: Record) -> None:
        task_id, action = record.task_id, record.action
        self.decided.add(task_id)
        handoff = self._handoff(record) if action in _HANDS_ON else ""
        # Without a handoff there is nobody to be sent.
        steps = [] if handoff is None else _filled(self._play.scene(action, task_id), _words(record, handoff))
        ends = action is not Action.ACCEPT
        below = action is Action.ABORT
        self._player.cut_in(steps, lambda path: ends and self._play.belongs(path, task_id, below=below))

    def _handoff(self, record: Record) -> str | None:
        """What the next attempt is handed: what the operator signed, else the handoff of before with the answer."""
        path = self._play.handoff_of(record.task_id)
        if record.params.handoff is not None or path is None:
            return record.params.handoff
        try:
            return amended(
                (self._workspace / path).read_text(encoding="utf-8"),
                path,
                attempt=record.attempt + 1,
                decision_id=record.decision_id,
                note=_said(record),
                mode=record.params.mode,
            )
        except (OSError, AmendError):
            return None


def _words(record: Record, handoff: str) -> dict[str, str]:
    """What a scene can name. `handoff` and `report` are whole documents, the others words on one line."""
    ending = "json" if handoff.lstrip()[:1] == "{" else "md"
    reading = read_document(handoff, f"next.handoff.{ending}")
    packet = reading.document if reading is not None and isinstance(reading.document, Handoff) else None
    said = textwrap.shorten(_said(record), _LONGEST, placeholder=" …") or "(nothing more)"
    return {
        "answer": said,
        "attempt": str(record.attempt + 1),
        "ending": ending,
        "file": quote(record.task_id, safe=""),
        "handoff": handoff.rstrip("\n"),
        "mode": (packet and packet.mode) or "code",
        "report": (record.params.report or "").rstrip("\n"),
        "task": record.task_id,
    }


def _said(record: Record) -> str:
    return " ".join([*(one.answer for one in record.params.answers), record.note]).strip()


def _filled(steps: Iterable[Step], words: Mapping[str, str]) -> Iterator[Step]:
    documents = {name: words[name] for name in ("handoff", "report")}
    escaped = {name: json.dumps(word)[1:-1] for name, word in words.items()} | documents
    for step in steps:
        path = Template(step.path).safe_substitute(words)
        text = Template(step.text).safe_substitute(escaped if path.endswith(".json") else words)
        yield Step(step.at_seconds, path, text)
