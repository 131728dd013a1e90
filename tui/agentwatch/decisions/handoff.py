"""The documents that a decision hands on: the next handoff, the fitter's packet, the final report. Pure.

Each is the text of a document that its contract finds no error in; an edited text can be checked again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from agentwatch.contracts.handoff import SCHEMA
from agentwatch.contracts.reading import WRAPPER, contract_of, leading_contract_of, read_document, unwrapped
from agentwatch.contracts.rules import is_relative
from agentwatch.contracts.shapes import Contract, Document, Handoff, Outcome, Return, Severity
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.record import Subject
from agentwatch.delegation.asks import FITTER, is_line_fault
from agentwatch.delegation.events import Seen
from agentwatch.delegation.task import Task
from agentwatch.text import clean

ABORTED: Final = "E_ABORTED_BY_OPERATOR"

_REPORT: Final = "final.return.md"
_MOST: Final = 20  # Failed tasks that a final report names
_OBJECT: Final = re.compile(r"^[ \t\ufeff]*\{", re.MULTILINE)
_MOST_OBJECTS: Final = 50  # Places where a packet could begin that are tried


class AmendError(DecisionError):
    """There is no packet that could be amended."""


class Proposal(NamedTuple):
    """A text that is handed on, the name of its file, the text of the last attempt's, and how it is checked: that gives
    what is wrong, in sentences, and may take some milliseconds."""

    text: str
    name: str
    before: str | None
    problems: Callable[[str], list[str]]


def next_handoff(
    task: Task,
    subject: Subject,
    text_of: Callable[[Seen], str | None],
    *,
    note: str = "",
    hint: str | None = None,
    mode: str | None = None,
) -> Proposal:
    """The amended handoff of the next attempt, or the packet of the fitter; blank where no handoff was ever seen.
    Raises AmendError where nothing can be made of the last."""
    if goes_to_fitter(task, mode):
        text = fitter_packet(task, decision_id=subject.decision_id, note=note)
        return Proposal(text, _FITTERS, None, partial(handoff_problems, task, subject, _FITTERS, mode=mode))
    handoff = next((attempt.handoff for attempt in reversed(task.attempts) if attempt.packet), None)
    if not handoff:
        return blank_handoff(task, subject)
    last = text_of(handoff)
    if last is None:
        raise AmendError(f"the text of {handoff.path} is not kept any more; write a new handoff")
    attempt, decision_id = subject.attempt + 1, subject.decision_id
    text = amended(last, handoff.path, attempt=attempt, decision_id=decision_id, note=note, retry_hint=hint, mode=mode)
    before = _spelled(*_packet_in(last, handoff.path))
    check = partial(handoff_problems, task, subject, handoff.path, mode=mode, embedded=handoff.stored)
    return Proposal(text, handoff.path, before, check)


def blank_handoff(task: Task, subject: Subject) -> Proposal:
    """A handoff that the operator may write; left blank, the next attempt gets the note only."""
    name = "next.handoff.json"
    return Proposal("", name, None, lambda text: handoff_problems(task, subject, name, text) if text.strip() else [])


def handoff_problems(
    task: Task, subject: Subject, name: str, text: str, *, mode: str | None = None, embedded: bool = False
) -> list[str]:
    """The faults of a handoff for the next attempt, in sentences; where it is `embedded` in a session, prose may stand
    around the packet."""
    reading = read_document(text, name, handed_over=embedded)
    packet = reading.document if reading else None
    if not reading or not isinstance(packet, Handoff) or not packet.recognised:
        return ["it is no handoff packet any more"]
    if not reading.complete:
        return _errors(reading)
    wanted = {"task_id": subject.task_id, "attempt": subject.attempt + 1, "decision_id": subject.decision_id}
    if goes_to_fitter(task, mode):
        wanted |= {"task_id": fitter_id(task), "attempt": 1}
    wrong = [f"{key} must be {clean(str(value), 80)}" for key, value in wanted.items() if getattr(packet, key) != value]
    return _errors(reading) + wrong


def amended(
    text: str,
    name: str,
    *,
    attempt: int,
    decision_id: str,
    note: str = "",
    retry_hint: str | None = None,
    mode: str | None = None,
) -> str:
    """The handoff of the next attempt, from the text of the last one's file, which is called `name`. Raises AmendError
    where there is no sound packet in the text."""
    head, packet, tail = _packet_in(text, name)
    packet |= {"attempt": attempt, "decision_id": decision_id} | ({} if mode is None else {"mode": mode})
    # A return of another session than the handoff's is invalid.
    packet.pop("session_id", None)
    notes = [f"Operator: {note.strip()}"] if note.strip() else []
    notes += [f"Hint of attempt {attempt - 1}: {retry_hint.strip()}"] if retry_hint and retry_hint.strip() else []
    if notes:
        before = packet.get("notes")
        packet["notes"] = [*(before if isinstance(before, list) else []), *notes]
    return _spelled(head, packet, tail)


def _packet_in(text: str, name: str) -> tuple[str, dict[str, Any], str]:
    """The packet in a text, bare or in a Markdown document, with the texts around it. Raises AmendError."""
    signature, decoder = leading_contract_of, json.JSONDecoder()
    for match in list(_OBJECT.finditer(text))[:_MOST_OBJECTS]:
        start = match.end() - 1
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if signature(value, name) is Contract.HANDOFF_PACKET:
            head, tail = text[:start], text[end:]
            if (packet := unwrapped(value)) is not value:
                head, tail = f'{head}{{"{WRAPPER}": ', f"}}{tail}"
            return head, packet, tail
        signature = contract_of
    raise AmendError("the last handoff cannot be amended: there is no sound packet in it; write a new one")


def _spelled(head: str, packet: dict[str, Any], tail: str) -> str:
    # Half a character, which JSON can spell and no file can hold, becomes a `?`.
    return f"{head}{json.dumps(packet, indent=2, ensure_ascii=False).encode(errors='replace').decode()}{tail}"


# The fitter

_FITTERS: Final = "fitter.handoff.json"


def goes_to_fitter(task: Task, mode: str | None) -> bool:
    """Whether it is a fitter who is called, with a packet of its own, and not the station itself once more."""
    return mode == FITTER and is_line_fault(task)


def fitter_id(task: Task) -> str:
    """The task id under which a fitter restores the line for a task."""
    return f"{task.task_id}.{FITTER}-{task.attempt}"


def fitter_packet(task: Task, *, decision_id: str, note: str = "") -> str:
    """The packet for the fitter who restores the line for a task; when that succeeds, the task gets one more retry."""
    result = task.result
    code = f" ({clean(result.error_code, 60)})" if result and result.error_code else ""
    packet: dict[str, object] = {
        "handoff_schema": SCHEMA,
        "task_id": fitter_id(task),
        "objective": f"Restore the line that stops {task.task_id}{code}",
        "evidence": [
            {"path": version.path, "purpose": purpose, "required": True}
            for version, purpose in _files(task)
            if is_relative(version.path)
        ],
        "success_criteria": ["The cause is named.", "The station can be run again."],
        "risks": [{"risk": "The fault comes back.", "mitigation": "Show a run of what failed."}],
        "notes": [f"Operator: {note.strip()}"] if note.strip() else [],
        "parent_task_id": task.parent_id or task.task_id,
        "attempt": 1,
        "mode": FITTER,
        "decision_id": decision_id,
        "restores": task.task_id,
    }
    return json.dumps(packet, indent=2, ensure_ascii=False) + "\n"


# The final report


def final_report(task: Task, failed: Sequence[Task] = (), *, note: str = "", operator: str = "") -> Proposal:
    """The error report that ends the chain, with the failures of the task and of those below it that have failed."""
    attempts = f"{task.attempt} attempt{'s' if task.attempt > 1 else ''}"
    failure = f": {words}" if (words := _failure(task)) else ""
    evidence = [f"{clean(version.path)} (sha256 {version.digest})" for version, _ in _files(task)]
    evidence += [f"failed below: {clean(one.task_id)}: {_failure(one) or one.own_state}" for one in failed[:_MOST]]
    evidence += [f"failed below: {len(failed) - _MOST} more"] if len(failed) > _MOST else []
    evidence += [clean(line) for line in note.splitlines() if line.strip()]
    listed = "\n".join(f"- {line}" for line in evidence or ["(none)"])
    text = f"""\
## Status
state: ERROR
summary: Aborted by the operator after {attempts}{failure}
error_code: {ABORTED}
retry_recommended: no
task_id: {clean(task.task_id)}
attempt: {task.attempt}

## Deliverables
- (none)

## Evidence
{listed}

## Runtime Attestation
runtime_model_reported: {clean(operator).strip() or "operator"}
runtime_mode_reported: operator
files_created:
- (none)
files_modified:
- (none)
"""
    return Proposal(text, _REPORT, None, _report_problems)


def is_final_report(returned: Return | None) -> bool:
    """Whether a return says that the operator has ended the chain. It proves nothing: anybody can write it."""
    return returned is not None and returned.outcome is Outcome.FAILED and returned.error_code == ABORTED


def _report_problems(text: str) -> list[str]:
    reading = read_document(text, _REPORT)
    document = reading.document if reading else None
    is_report = isinstance(document, Return) and document.recognised and document.contract is Contract.RETURN_FORMAT
    if not reading or not isinstance(document, Return) or not is_report:
        return ["it is no return-format document: it needs the sections Status, Deliverables, Evidence and Attestation"]
    return _errors(reading) + ([] if document.reported_state == "ERROR" else ["state must be ERROR"])


def _failure(task: Task) -> str:
    """The failure in one line: error code and message, as its latest return has them; "" for neither."""
    result = task.result
    said = (result.error_code, *(result.errors or (result.error_message,))) if result else ()
    return ": ".join(clean(part, 300) for part in said if part)


def _files(task: Task) -> list[tuple[Seen, str]]:
    """The files of the latest attempt's handoff and return, each with its purpose."""
    latest = task.latest
    both = ((latest.handoff, "What the station was given."), (latest.returned, "What it returned."))
    return [(version, purpose) for version, purpose in both if version and not version.stored]


def _errors(reading: Document) -> list[str]:
    return [
        f"line {finding.line}: {finding.message}" if finding.line else finding.message
        for finding in reading.findings
        if finding.severity is Severity.ERROR
    ]
