"""The document that a decision hands on, as it is proposed: the next handoff, or the final report. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentwatch.decisions.amend import (
    AmendError,
    amended,
    final_report,
    fitter_id,
    fitter_packet,
    handoff_problems,
    report_problems,
)
from agentwatch.decisions.record import Subject
from agentwatch.delegation.retry import FITTER, is_line_fault
from agentwatch.delegation.task import Task, Version

Check = Callable[[str], list[str]]
"""Gives what is wrong with a text, in sentences: none where it can be handed on. It may take some milliseconds."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A text that is handed on, the text of the last attempt's that it was made from, and how it is checked.

    `name` is that of a file.
    """

    text: str
    name: str
    before: str | None
    problems: Check


def next_handoff(
    task: Task,
    subject: Subject,
    text_of: Callable[[Version], str | None],
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
    text = amended(
        before,
        handoff.path,
        attempt=subject.attempt + 1,
        decision_id=subject.decision_id,
        note=note,
        retry_hint=hint,
        mode=mode,
    )
    check = handoff_check(task, subject, handoff.path, mode=mode, embedded=handoff.stored)
    return Proposal(text, handoff.path, before, check)


def blank_handoff(task: Task, subject: Subject) -> Proposal:
    """A handoff that the operator may write; left blank, the next attempt gets the note only."""
    name = "next.handoff.json"
    check = handoff_check(task, subject, name)
    return Proposal("", name, None, lambda text: check(text) if text.strip() else [])


def handoff_check(task: Task, subject: Subject, name: str, *, mode: str | None = None, embedded: bool = False) -> Check:
    """How a handoff for the next attempt is checked, whoever wrote it.

    `embedded` is for one from a session, where prose may stand around the packet, as no file has it.
    """
    fitter = goes_to_fitter(task, mode)
    task_id = fitter_id(task) if fitter else subject.task_id
    attempt = 1 if fitter else subject.attempt + 1

    def problems(text: str) -> list[str]:
        return handoff_problems(
            text, name, task_id=task_id, attempt=attempt, decision_id=subject.decision_id, embedded=embedded
        )

    return problems


def report(task: Task, failed: Sequence[Task], *, note: str, operator: str) -> Proposal:
    """The error report that ends the chain; `failed` are the tasks below that have failed."""
    return Proposal(final_report(task, failed, note=note, operator=operator), "final.return.md", None, report_problems)


def goes_to_fitter(task: Task, mode: str | None) -> bool:
    """Whether it is a fitter who is called, with a packet of its own, and not the station itself once more."""
    return mode == FITTER and is_line_fault(task)
