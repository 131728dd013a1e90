"""What a decision hands on: the amended handoff of the next attempt, the fitter's packet, the final error report. Pure.

Each is the text of a document that its contract finds no error in; whoever edits it can have it checked again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from agentwatch.contracts.handoff import SCHEMA
from agentwatch.contracts.paths import why_not_relative
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Contract, Handoff, Outcome, Reading, Return, Severity
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.packet_text import PacketText
from agentwatch.delegation.retry import FITTER
from agentwatch.delegation.task import Task, Version
from agentwatch.text import clean

ABORTED: Final = "E_ABORTED_BY_OPERATOR"
_REPORT: Final = "final.return.md"
_MOST: Final = 20
"""Failed tasks that a final report names."""


class AmendError(DecisionError):
    """There is no packet that could be amended."""


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
    """The handoff of the next attempt, from the text of the last one's file, which is called `name`.

    Only the keys that must change do: `attempt`, `decision_id`, `mode` where it is escalated, and `notes`, which gets
    the operator's note and the child's hint. `session_id` goes: the next attempt has a session of its own, and a return
    of another session than the handoff's is invalid. Raises AmendError where there is no sound packet in the text.
    """
    try:
        packet = PacketText(text, name)
    except ValueError as error:
        raise AmendError(
            "the last handoff cannot be amended: there is no sound packet in it; write a new one"
        ) from error
    packet.put("attempt", attempt)
    packet.put("decision_id", decision_id)
    if mode is not None:
        packet.put("mode", mode)
    packet.remove("session_id")
    notes = [f"Operator: {note.strip()}"] if note.strip() else []
    notes += [f"Hint of attempt {attempt - 1}: {retry_hint.strip()}"] if retry_hint and retry_hint.strip() else []
    if notes:
        packet.append("notes", notes)
    return packet.text


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
            if not why_not_relative(version.path)
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


def handoff_problems(
    text: str, name: str, *, task_id: str, attempt: int, decision_id: str, embedded: bool = False
) -> list[str]:
    """What is wrong with an amended handoff, in sentences; nothing where it can be handed on.

    `embedded` is for one from a session, where prose may stand around the packet.
    """
    reading = read_document(text, name, handed_over=embedded)
    if reading is None or not isinstance(reading.document, Handoff) or not reading.document.recognised:
        return ["it is no handoff packet any more"]
    if not reading.complete:
        return _errors(reading)
    packet = reading.document
    wanted = {"task_id": task_id, "attempt": attempt, "decision_id": decision_id}
    found = {"task_id": packet.task_id, "attempt": packet.attempt, "decision_id": packet.decision_id}
    wrong = [f"{key} must be {clean(str(value), 80)}" for key, value in wanted.items() if found[key] != value]
    return _errors(reading) + wrong


def final_report(task: Task, failed: Sequence[Task] = (), *, note: str = "", operator: str = "") -> str:
    """The error report that ends the chain, as a return-format document.

    It carries the failure that led to the abort, and those of `failed`: the tasks below that have failed.
    """
    attempts = f"{task.attempt} attempt{'s' if task.attempt > 1 else ''}"
    failure = f": {words}" if (words := _failure(task)) else ""
    evidence = [f"- {clean(version.path)} (sha256 {version.digest})" for version, _ in _files(task)]
    evidence += [f"- failed below: {clean(one.task_id)}: {_failure(one) or one.own_state}" for one in failed[:_MOST]]
    evidence += [f"- failed below: {len(failed) - _MOST} more"] if len(failed) > _MOST else []
    evidence += [f"- {clean(line)}" for line in note.splitlines() if line.strip()]
    lines = [
        "## Status",
        "state: ERROR",
        f"summary: Aborted by the operator after {attempts}{failure}",
        f"error_code: {ABORTED}",
        "retry_recommended: no",
        f"task_id: {clean(task.task_id)}",
        f"attempt: {task.attempt}",
        "",
        "## Deliverables",
        "- (none)",
        "",
        "## Evidence",
        *(evidence or ["- (none)"]),
        "",
        "## Runtime Attestation",
        f"runtime_model_reported: {clean(operator).strip() or 'operator'}",
        "runtime_mode_reported: operator",
        "files_created:",
        "- (none)",
        "files_modified:",
        "- (none)",
        "",
    ]
    return "\n".join(lines)


def _failure(task: Task) -> str:
    """What a task failed with, in one line: error code and message, as its latest return has them; "" for neither."""
    result = task.result
    said = (result.error_code, *(result.errors or (result.error_message,))) if result else ()
    return ": ".join(clean(part, 300) for part in said if part)


def is_final_report(returned: Return | None) -> bool:
    """Whether a return says that the operator has ended the chain. It proves nothing: anybody can write it."""
    return returned is not None and returned.outcome is Outcome.FAILED and returned.error_code == ABORTED


def report_problems(text: str) -> list[str]:
    """What is wrong with a final error report, in sentences; nothing where it can be given out."""
    reading = read_document(text, _REPORT)
    document = reading.document if reading is not None else None
    if reading is None or not isinstance(document, Return) or not _is_return_format(document):
        return ["it is no return-format document: it needs the sections Status, Deliverables, Evidence and Attestation"]
    said = [] if document.reported_state == "ERROR" else ["state must be ERROR"]
    return _errors(reading) + said


def _is_return_format(document: Return) -> bool:
    return document.contract is Contract.RETURN_FORMAT and document.recognised


def _files(task: Task) -> list[tuple[Version, str]]:
    """The files of the latest attempt's handoff and return, each with what it is."""
    latest = task.latest
    if latest is None:
        return []
    both = (latest.handoff, "What the station was given."), (latest.returned, "What it returned.")
    return [(version, purpose) for version, purpose in both if version is not None and not version.stored]


def _errors(reading: Reading) -> list[str]:
    return [
        finding.message if finding.line is None else f"line {finding.line}: {finding.message}"
        for finding in reading.findings
        if finding.severity is Severity.ERROR
    ]
