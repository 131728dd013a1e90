"""The document that a decision hands on, as it is proposed: the next handoff, or the final report. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agentwatch.decisions.amend import (
    amended,
    final_report,
    fitter_packet,
    handoff_problems,
    report_problems,
)
from agentwatch.decisions.policy import FITTER, is_line_fault
from agentwatch.decisions.record import Subject
from agentwatch.delegation.task import Task, Version

LARGEST: Final = 128 * 1024
"""Characters up to which a document is edited on the screen; a larger one takes seconds to lay out."""
LONGEST: Final = 4_000
"""The same for one line."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A text that is handed on, the text of the last attempt's that it was made from, and how it is checked.

    `problems` gives sentences, none where the text can be handed on; it may take some milliseconds. `name` is that of
    a file.
    """

    text: str
    name: str
    before: str | None
    problems: Callable[[str], list[str]]

    @property
    def fits_screen(self) -> bool:
        """Whether it can be edited on the screen."""
        return fits_screen(self.text)


def fits_screen(text: str) -> bool:
    """Whether a text is small enough to be edited on the screen."""
    return len(text) <= LARGEST and all(len(line) <= LONGEST for line in text.splitlines())


def last_handoff(task: Task) -> Version | None:
    """The handoff that the next one is made from."""
    return next((attempt.handoff for attempt in reversed(task.attempts) if attempt.packet is not None), None)


def next_handoff(
    task: Task,
    subject: Subject,
    text_of: Callable[[Version], str | None],
    *,
    note: str = "",
    hint: str | None = None,
    mode: str | None = None,
) -> Proposal | None:
    """The amended handoff of the next attempt, or the packet of the fitter; None where no handoff was ever seen.

    `text_of` gives the text of a version; it may read a file. Raises AmendError where nothing can be made of the last.
    """
    if goes_to_fitter(task, mode):
        text = fitter_packet(task, decision_id=subject.decision_id, note=note, mode=FITTER)
        name, task_id, attempt = "fitter.handoff.json", f"{task.task_id}.{FITTER}-{task.attempt}", 1
        return Proposal(text, name, None, _check(name, task_id, attempt, subject))
    handoff = last_handoff(task)
    if handoff is None:
        return None
    before, attempt = text_of(handoff) or "", subject.attempt + 1
    text = amended(
        before, handoff.path, attempt=attempt, decision_id=subject.decision_id, note=note, retry_hint=hint, mode=mode
    )
    # In a session there may be prose around it, which no file has.
    check = _unchecked if handoff.stored else _check(handoff.path, subject.task_id, attempt, subject)
    return Proposal(text, handoff.path, before, check)


def empty_handoff(subject: Subject) -> Proposal:
    """Nothing yet: the operator writes the handoff of the next attempt."""
    name = "next.handoff.json"
    return Proposal("", name, None, _check(name, subject.task_id, subject.attempt + 1, subject))


def report(task: Task, *, note: str, operator: str) -> Proposal:
    """The error report that ends the chain."""
    return Proposal(final_report(task, note=note, operator=operator), "final.return.md", None, report_problems)


def goes_to_fitter(task: Task, mode: str | None) -> bool:
    """Whether it is a fitter who is called, with a packet of its own, and not the station itself once more."""
    return mode == FITTER and is_line_fault(task)


def _check(name: str, task_id: str, attempt: int, subject: Subject) -> Callable[[str], list[str]]:
    def problems(text: str) -> list[str]:
        return handoff_problems(text, name, task_id=task_id, attempt=attempt, decision_id=subject.decision_id)

    return problems


def _unchecked(_text: str) -> list[str]:
    return []
