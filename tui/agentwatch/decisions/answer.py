"""What an agent is told that asks for a decision: one JSON document, and in it one sentence of what to do now. Pure."""

from __future__ import annotations

import re
from typing import Any, Final

from agentwatch.contracts.shapes import Handoff
from agentwatch.decisions.reader import Expired, Forged, Found, Verified
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import Action
from agentwatch.delegation.retry import FITTER
from agentwatch.text import clean, exact, quoted

_NAME: Final = re.compile(r"[\w./:@+-]+")
_CALL_AGAIN = "call `agentwatch wait` again; this is neither an approval nor a refusal"


def answer(found: Found, *, handoff_path: str | None = None) -> dict[str, Any]:
    """The document. `pending` is False only where there is a decision that holds.

    Then it has all keys of the record, `place` (`ledger` or `mirror`), `handoff_path` (a file with the amended
    handoff, or null) and `do_now`; else `do_now` and what is known: `detail`, `refused` or `expired`.
    """
    if isinstance(found, Verified):
        told = {"place": found.place.value, "handoff_path": handoff_path, "do_now": do_now(found.record, handoff_path)}
        return {"pending": False, **found.record.document(), **told}
    if isinstance(found, Expired):
        record = found.record
        known = {name: getattr(record, name) for name in ("decision_id", "task_id", "attempt", "expires_at")}
        again = "do not act on it: tell the operator to decide again"
        return {"pending": True, "expired": known, "do_now": f"the decision held until {record.expires_at}; {again}"}
    if isinstance(found, Forged):
        refused = [{"name": one.name, "kind": one.kind.value, "message": one.message} for one in found.refused]
        return {"pending": True, "refused": refused, "do_now": f"do not act on the refused files; {_CALL_AGAIN}"}
    return {"pending": True, "detail": found.detail, "do_now": _CALL_AGAIN}


def do_now(record: Record, handoff_path: str | None = None) -> str:
    """What an agent that was told of a decision has to do, in one sentence."""
    # An id of several words could pass for a part of the sentence.
    task, after = exact(record.task_id), record.attempt + 1
    if not _NAME.fullmatch(task):
        task = quoted(record.task_id, 200)
    if record.action is Action.RETRY:
        return f"run {task} once more, as attempt {after}, {_given(record, handoff_path)}"
    if record.action is Action.ESCALATE and _restores(record):
        fitter = f"start the {FITTER} {_given(record, handoff_path)}"
        return f"{fitter}, and once it has returned, wait for the next decision about {task}"
    if record.action is Action.ESCALATE:
        return f"hand {task} to the mode {clean(record.params.mode or '')}, {_given(record, handoff_path)}"
    if record.action is Action.ABORT:
        all_of_it = f"stop {task} and what is below it, start no other attempt of it"
        return f"{all_of_it}, and hand params.report up as its return: it is the final error report"
    if record.action is Action.RESPOND:
        again = f"a new handoff, with `attempt` {after} and `decision_id` {record.decision_id}"
        return f"give params.answers to the child of {task}: in its session, or with {again}"
    next_one = f"the handoff that goes on from it carries `decision_id` {record.decision_id}"
    return f"go on as if {task} had succeeded: the operator accepts its return as it is; {next_one}"


def _restores(record: Record) -> bool:
    """Whether what is handed on is for a fitter, and not for the station itself."""
    # Only now: most answers need none of the contracts.
    from agentwatch.contracts.reading import read_document

    reading = read_document(record.params.handoff or "", "fitter.handoff.json")
    packet = reading.document if reading is not None else None
    return isinstance(packet, Handoff) and packet.restores == record.task_id


def _given(record: Record, handoff_path: str | None) -> str:
    if handoff_path is not None:
        return "with the handoff in the file handoff_path"
    if record.params.handoff is not None:
        return "with the handoff in params.handoff"
    return f"with the last handoff, its decision_id set to {record.decision_id}"
