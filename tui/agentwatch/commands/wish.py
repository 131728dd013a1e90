"""A decision as it is asked for on the command line, made into what would be recorded. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from agentwatch.decisions.amend import AmendError
from agentwatch.decisions.proposal import cautions, final_report, handoff_check, next_handoff
from agentwatch.decisions.record import Answer, Mitigation, Params, Record, Subject
from agentwatch.delegation.decision import Action
from agentwatch.delegation.task import Task, Version
from agentwatch.errors import UsageError

_MOST_PROBLEMS: Final = 5


@dataclass(frozen=True, slots=True)
class Wish:
    """What the operator asks for. `answers` are in the order of the blockers; `handoff` is a text and its name."""

    action: Action
    mode: str | None = None
    answers: tuple[str, ...] = ()
    mitigation: Mitigation | None = None
    note: str = ""
    handoff: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.mitigation is not None and self.action is not Action.RETRY:
            raise UsageError("--mitigation belongs to --retry: it is what makes another retry worth it")
        if self.handoff is not None and self.action not in (Action.RETRY, Action.ESCALATE):
            raise UsageError("--handoff belongs to --retry and --escalate: nothing else begins another attempt")


def agrees(wish: Wish, record: Record) -> bool:
    """Whether a wish agrees with what is recorded. What it does not mention agrees."""
    recorded = record.params
    pairs = (
        (wish.note, record.note),
        (wish.mitigation, recorded.mitigation),
        (wish.mode, recorded.mode),
        (wish.answers, tuple(one.answer for one in recorded.answers)),
        (wish.handoff and wish.handoff[0], recorded.handoff),
    )
    return wish.action is record.action and all(said == known for said, known in pairs if said)


def plain_params(wish: Wish, task: Task) -> Params:
    """The parameters without the documents: all that the policy wants to see."""
    return Params(mitigation=wish.mitigation, mode=wish.mode, answers=_answers(wish, task))


def params_of(
    wish: Wish,
    task: Task,
    subject: Subject,
    operator: str,
    text_of: Callable[[Version], str | None],
    *,
    failed: Sequence[Task] = (),
    beware: list[str] | None = None,
) -> Params:
    """All parameters, with the amended handoff of the next attempt, or the final error report; `beware`, if it is
    given, gets what the operator should know of that handoff, in sentences.

    `text_of` gives the text of a version, `failed` are the tasks below that have failed. Raises AmendError if no
    sound handoff can be made, UsageError where one was given that is not sound.
    """
    plain = plain_params(wish, task)
    if wish.action is Action.ABORT:
        return Params(report=final_report(task, failed, note=wish.note, operator=operator))
    if wish.action not in (Action.RETRY, Action.ESCALATE):
        return plain
    text, said = _handoff(wish, task, subject, text_of)
    if beware is not None:
        beware += said
    return Params(plain.mitigation, text, plain.mode)


def _handoff(
    wish: Wish, task: Task, subject: Subject, text_of: Callable[[Version], str | None]
) -> tuple[str | None, list[str]]:
    """The text, None if no handoff of the task was ever seen and none was given, and what is to be known of it."""
    mode = wish.mode if wish.action is Action.ESCALATE else None
    proposal, trouble = None, None
    try:
        proposal = next_handoff(task, subject, text_of, note=wish.note, hint=task.retry.hint, mode=mode)
    except AmendError as error:
        trouble = error
    if wish.handoff is not None:
        text, name = wish.handoff
        if problems := handoff_check(task, subject, name, mode=mode)(text):
            raise UsageError(f"{name} cannot be handed on:{_shown(problems)}")
        is_plain = proposal is not None and proposal.is_plain(text, name)
        return text, list(cautions(mended=(), is_plain=is_plain, mitigation=wish.mitigation))
    if proposal is None:
        raise AmendError(f"{trouble}, and give --handoff FILE") from trouble
    if problems := proposal.problems(proposal.text):
        raise AmendError(
            f"the last handoff is not sound, so it cannot be amended; give --handoff FILE:{_shown(problems)}"
        )
    is_plain = proposal.is_plain(proposal.text)
    return proposal.text or None, list(cautions(mended=proposal.mended, is_plain=is_plain, mitigation=wish.mitigation))


def _shown(problems: list[str]) -> str:
    return "".join(f"\n  {problem}" for problem in problems[:_MOST_PROBLEMS])


def _answers(wish: Wish, task: Task) -> tuple[Answer, ...]:
    blockers = task.result.blockers if task.result else ()
    if blockers and len(wish.answers) > len(blockers):
        raise UsageError(
            f"{len(wish.answers)} answers are given, and it asks {len(blockers)}; put them into one --respond"
        )
    questions = (*blockers, *(None for _ in wish.answers))
    return tuple(Answer(question, answer) for question, answer in zip(questions, wish.answers, strict=False))
