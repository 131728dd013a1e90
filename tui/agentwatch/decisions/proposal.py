"""The document that a decision hands on, as it is proposed: the next handoff, or the final report. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from agentwatch.decisions.mending import mended
from agentwatch.decisions.packet_text import PacketText
from agentwatch.decisions.record import Mitigation, Subject
from agentwatch.delegation.retry import FITTER, is_line_fault
from agentwatch.delegation.task import Task, Version

Check = Callable[[str], list[str]]
"""Gives what is wrong with a text, in sentences: none where it can be handed on. It may take some milliseconds."""


@dataclass(frozen=True, slots=True)
class Proposal:
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
    check = handoff_check(task, subject, handoff.path, mode=mode, embedded=handoff.stored)

    def made(text: str, note: str, hint: str | None) -> str:
        number, decision_id = subject.attempt + 1, subject.decision_id
        return amended(
            text, handoff.path, attempt=number, decision_id=decision_id, note=note, retry_hint=hint, mode=mode
        )

    sound, keys = before, tuple[str, ...]()
    if check(made(before, note, hint)):
        sound, keys = mended(before, handoff.path, task_id=subject.task_id)
    plain = tuple(made(sound, "", one) for one in (None, task.retry.hint))
    return Proposal(made(sound, note, hint), handoff.path, before, check, keys, plain)


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


def _essence(text: str, name: str) -> tuple[object, ...] | None:
    """The packet and what stands around it, however it is laid out; None where there is none."""
    try:
        packet = PacketText(text, name)
    except ValueError:
        return None
    return packet.value, *(part.split() for part in packet.around)


def goes_to_fitter(task: Task, mode: str | None) -> bool:
    """Whether it is a fitter who is called, with a packet of its own, and not the station itself once more."""
    return mode == FITTER and is_line_fault(task)
