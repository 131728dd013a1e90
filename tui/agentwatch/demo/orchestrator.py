"""Plays the demo's agents. One agent reads the operator's decisions. Another agent asks for a permission.

The decisions are real. The code of `agentwatch wait` finds decisions in the workspace, verifies them, and marks them as
read. The request for the permission is real, too: it goes through the code that holds requests of real programs. Only
the work after a decision is scripted.
"""

import json
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from string import Template
from urllib.parse import quote

from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Handoff
from agentwatch.decisions.delivery import MIRROR
from agentwatch.decisions.form import AmendError, amend_handoff
from agentwatch.decisions.reader import Question, Reader, file_ending
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import Action, Request, RequestKind, RequestStage
from agentwatch.demo.script import Player, Screenplay, Step
from agentwatch.requests.holding import Holder
from agentwatch.requests.store import Offer, RequestError, make_request
from agentwatch.state import workspace_id

NAME = "the demo's orchestrator"

TASK = "checkout.verify.e2e"
ASKS_AT = 60.0  # the agent asks for its permission at this second of the session, or earlier
# The agent asks so many seconds after the first decision, because a sooner request would disturb the operator.
ASKS_AFTER = 6.0
_COMMAND = "npx playwright test e2e/checkout.spec.ts --project=firefox --project=webkit"
_DESCRIPTION = "Walks the customer's way with a test card"
_RULE = "Bash(npx playwright test *)"

_NEED_HANDOFF = frozenset({Action.RETRY, Action.ESCALATE, Action.RESPOND})
# The most characters of the operator's words that children repeat, because their contract limits a summary.
_LONGEST = 160


class Orchestrator:
    """The agents of a demo. `state` has the demo's ledger. `configuration` has its keys."""

    def __init__(
        self,
        workspace: Path,
        state: Path,
        configuration: Path,
        screenplay: Screenplay,
        player: Player,
        *,
        clock: Callable[[], float] = time.time,
    ):
        self._workspace = workspace
        self._clock = clock
        self._screenplay = screenplay
        self._player = player
        # An empty environment, because the operator's own variables must not affect the demo.
        self._reader = Reader(workspace, "demo", state=state, configuration=configuration, environment={})
        self._read: set[str] = set()
        self._decided: set[str] = set()  # the tasks with a decision
        self._holder = Holder(workspace, name="the demo", state=state, configuration=configuration)
        self._offer: Offer | None = None
        self._has_asked = False
        self._asks_at = ASKS_AT

    def handle_news(self) -> None:
        """Read the new decisions, and begin to carry them out. Then ask for the permission, or take its answer."""
        delivered = {path.stem for path in (self._workspace / MIRROR).glob("*.json")}
        for decision_id in sorted(delivered - self._read):
            answer = self._reader.find(Question(None, decision_id=decision_id))
            if answer.record:
                self._read.add(decision_id)
                self._reader.write_receipt(answer, NAME)
                self._carry_out(answer.record)
        self._handle_request()

    def _carry_out(self, record: Record) -> None:
        task_id, action = record.task_id, record.action
        self._decided.add(task_id)
        handoff = self._next_handoff(record) if action in _NEED_HANDOFF else ""
        # If the next handoff cannot be made, no further attempt starts.
        scene = self._screenplay.scene_steps(action, task_id)
        steps = [] if handoff is None else _fill_steps(scene, _scene_variables(record, handoff))
        ends = action is not Action.ACCEPT
        below = action is Action.ABORT
        self._player.insert_steps(steps, lambda path: ends and self._screenplay.belongs_to(path, task_id, below=below))

    def _next_handoff(self, record: Record) -> str | None:
        """Return the handoff that the operator signed, or the last handoff with changes. Return None if that fails."""
        path = self._screenplay.handoff_of(record.task_id)
        if record.params.handoff is not None or path is None:
            return record.params.handoff
        try:
            return amend_handoff(
                (self._workspace / path).read_text(encoding="utf-8"),
                path,
                attempt=record.attempt + 1,
                decision_id=record.decision_id,
                note=_operator_words(record),
                mode=record.params.mode,
            )
        except (OSError, AmendError):
            return None

    def _handle_request(self) -> None:
        """Make the request if it is time, or take its answer. After a decision about the task, end the request."""
        if self._decided:
            self._asks_at = min(self._asks_at, self._player.position + ASKS_AFTER)
        if TASK in self._decided:
            self.end_request()
        elif not self._has_asked and self._player.position >= self._asks_at:
            self._has_asked = True
            with suppress(RequestError):
                self._offer = self._holder.store.offer(self._make_request())
        elif self._offer and (record := self._holder.take_answer(self._offer)):
            self._holder.record_delivered(record)
            self._offer.end(RequestStage.DELIVERED, by=record.operator)
            self._offer = None
            scene = self._screenplay.scene_steps(record.action, record.task_id)
            self._player.insert_steps(_fill_steps(scene, _scene_variables(record, "")))

    def end_request(self) -> None:
        """End the request if it is open."""
        if self._offer:
            self._offer.end(RequestStage.GONE)
            self._offer = None

    def _make_request(self) -> Request:
        return make_request(
            {"command": _COMMAND, "description": _DESCRIPTION},
            workspace_id(self._workspace),
            "claude-code",
            TASK,
            token_hex(8),
            kind=RequestKind.PERMISSION,
            tool="Bash",
            shown=_COMMAND,
            said=_DESCRIPTION,
            asked_at=self._clock(),
            actions=(Action.ALLOW, Action.DENY),
            words=True,
            rules=(_RULE,),
            covered_by=f"the rule {_RULE}",
        )


def _scene_variables(record: Record, handoff: str) -> dict[str, str]:
    """Return the variables of a scene. `handoff` and `report` are whole documents. Each other value is one line."""
    ending = file_ending(handoff)
    reading = read_document(handoff, f"next.handoff.{ending}")
    packet = reading.document if reading and isinstance(reading.document, Handoff) else None
    said = textwrap.shorten(_operator_words(record), _LONGEST, placeholder=" …") or "(nothing more)"
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


def _operator_words(record: Record) -> str:
    return " ".join([*(one.answer for one in record.params.answers), record.note]).strip()


def _fill_steps(steps: Iterable[Step], words: Mapping[str, str]) -> Iterator[Step]:
    documents = {name: words[name] for name in ("handoff", "report")}
    escaped = {name: json.dumps(word)[1:-1] for name, word in words.items()} | documents
    for step in steps:
        path = Template(step.path).safe_substitute(words)
        text = Template(step.text).safe_substitute(escaped if path.endswith(".json") else words)
        yield Step(step.at_seconds, path, text)
