"""What a decision hands on, proposed and checked: the next handoff, the fitter's packet, the final report. Pure.

Each is the text of a document that its contract finds no error in; what is edited can be checked again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

from agentwatch.contracts.handoff import SCHEMA
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.rules import is_relative
from agentwatch.contracts.shapes import Contract, Document, Handoff, Outcome, Return, Severity
from agentwatch.decisions.amend import AmendError, PacketText, amended, mended
from agentwatch.decisions.record import Mitigation, Subject
from agentwatch.delegation.events import Seen
from agentwatch.delegation.retry import FITTER, is_line_fault
from agentwatch.delegation.task import Task
from agentwatch.text import clean

ABORTED: Final = "E_ABORTED_BY_OPERATOR"
_REPORT: Final = "final.return.md"
_MOST: Final = 20
"""Failed tasks that a final report names."""

Check = Callable[[str], list[str]]
"""Gives what is wrong with a text, in sentences: none where it can be handed on. It may take some milliseconds."""


class Proposal(NamedTuple):
    """A text that is handed on, the text of the last attempt's that it was made from, and how it is checked.

    `name` is that of a file. `mended` are the keys that were filled in or corrected, for the last handoff broke its
    contract; `plain` are the texts in which nothing is the operator's.
    """

    text: str
    name: str
    before: str | None
    problems: Check
    mended: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()

    def is_plain(self, text: str, name: str | None = None) -> bool:
        """Whether nothing is changed in a handoff (in a file of this name) but what each next attempt changes."""
        essence = _essence(text, name or self.name)
        return essence is not None and any(essence == _essence(one, self.name) for one in self.plain)


def cautions(*, mended: Sequence[str], is_plain: bool, mitigation: Mitigation | None) -> Iterator[str]:
    """What the operator should know of a handoff before it is handed on, in sentences."""
    if mended:
        yield f"the last handoff broke its contract: {', '.join(mended)} filled in or corrected here, so look at it"
    if is_plain and mitigation is not None:
        yield "a mitigation, and nothing is changed in the handoff: change it, or say in a note what is other now"


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

    `text_of` gives the text of a version; it may read a file. Raises AmendError where nothing can be made of the last.
    """
    if goes_to_fitter(task, mode):
        name = "fitter.handoff.json"
        text = fitter_packet(task, decision_id=subject.decision_id, note=note)
        return Proposal(text, name, None, handoff_check(task, subject, name, mode=mode))
    handoff = next((attempt.handoff for attempt in reversed(task.attempts) if attempt.packet is not None), None)
    if handoff is None:
        return blank_handoff(task, subject)
    before = text_of(handoff)
    if before is None:
        raise AmendError(f"the text of {handoff.path} is not kept any more; write a new handoff")
    check = handoff_check(task, subject, handoff.path, mode=mode, embedded=handoff.stored)
    about: dict[str, Any] = {"attempt": subject.attempt + 1, "decision_id": subject.decision_id, "mode": mode}
    made: Callable[..., str] = partial(amended, name=handoff.path, **about)
    sound, keys = before, tuple[str, ...]()
    if check(made(before, note=note, retry_hint=hint)):
        sound, keys = mended(before, handoff.path, task_id=subject.task_id)
    plain = tuple(made(sound, retry_hint=one) for one in (None, task.retry.hint))
    return Proposal(made(sound, note=note, retry_hint=hint), handoff.path, before, check, keys, plain)


def blank_handoff(task: Task, subject: Subject) -> Proposal:
    """A handoff that the operator may write; left blank, the next attempt gets the note only."""
    name = "next.handoff.json"
    check = handoff_check(task, subject, name)
    return Proposal("", name, None, lambda text: check(text) if text.strip() else [])


def handoff_check(task: Task, subject: Subject, name: str, *, mode: str | None = None, embedded: bool = False) -> Check:
    """How a handoff for the next attempt is checked, the operator's too; `embedded` as in `handoff_problems`."""
    wanted: dict[str, Any] = {"task_id": subject.task_id, "attempt": subject.attempt + 1}
    if goes_to_fitter(task, mode):
        wanted = {"task_id": fitter_id(task), "attempt": 1}
    return partial(handoff_problems, name=name, **wanted, decision_id=subject.decision_id, embedded=embedded)


def report(task: Task, failed: Sequence[Task], *, note: str, operator: str) -> Proposal:
    """The error report that ends the chain; `failed` are the tasks below that have failed."""
    return Proposal(final_report(task, failed, note=note, operator=operator), _REPORT, None, report_problems)


def _essence(text: str, name: str) -> tuple[object, ...] | None:
    """The packet and what stands around it, however it is laid out; None where there is none."""
    with suppress(ValueError):
        packet = PacketText(text, name)
        return packet.value, *(part.split() for part in packet.around)
    return None


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
    wrong = [f"{key} must be {clean(str(value), 80)}" for key, value in wanted.items() if getattr(packet, key) != value]
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
    said = "\n".join(evidence or ["- (none)"])
    return f"""\
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
{said}

## Runtime Attestation
runtime_model_reported: {clean(operator).strip() or "operator"}
runtime_mode_reported: operator
files_created:
- (none)
files_modified:
- (none)
"""


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
    is_report = isinstance(document, Return) and document.recognised and document.contract is Contract.RETURN_FORMAT
    if reading is None or not isinstance(document, Return) or not is_report:
        return ["it is no return-format document: it needs the sections Status, Deliverables, Evidence and Attestation"]
    return _errors(reading) + ([] if document.reported_state == "ERROR" else ["state must be ERROR"])


def _files(task: Task) -> list[tuple[Seen, str]]:
    """The files of the latest attempt's handoff and return, each with what it is."""
    latest = task.latest
    both = ((latest.handoff, "What the station was given."), (latest.returned, "What it returned.")) if latest else ()
    return [(version, purpose) for version, purpose in both if version is not None and not version.stored]


def _errors(reading: Document) -> list[str]:
    return [
        finding.message if finding.line is None else f"line {finding.line}: {finding.message}"
        for finding in reading.findings
        if finding.severity is Severity.ERROR
    ]
