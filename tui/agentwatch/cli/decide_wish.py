"""What `agentwatch decide` is asked for, made into what would be recorded, and into lines that an operator reads. Pure.

What agents wrote is indented behind a bar, so that nothing in it can look like a line of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from agentwatch.cli.shared import refuse_placeholder
from agentwatch.decisions.errors import NoAnswerError
from agentwatch.decisions.form import DecisionForm
from agentwatch.decisions.handoff import AmendError, cautions, goes_to_fitter, handoff_check
from agentwatch.decisions.record import Answer, Mitigation, Params, Record, Subject
from agentwatch.delegation.decision import Action
from agentwatch.delegation.events import Seen
from agentwatch.delegation.retry import FITTER, is_retry, mitigated
from agentwatch.delegation.task import Task
from agentwatch.errors import UsageError
from agentwatch.text import clean, clean_lines, exact, whole
from agentwatch.view.words import plural, retries_left

_MOST_PROBLEMS: Final = 5
_DIGITS: Final = 12
"""Hex digits of a digest that are shown; what is compared is all of it."""
_WIDTH: Final = 11
_MOST_LINES: Final = 40
_LONGEST: Final = 300
PLACE_OF_MODE: Final = "MODE"
"""What stands in a printed line for a mode."""


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
        refuse_placeholder(self.note, *self.answers)
        if self.mode == PLACE_OF_MODE:
            raise UsageError(f"not recorded: {PLACE_OF_MODE} stands for a mode; name one in its place")


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
    text_of: Callable[[Seen], str | None],
    *,
    failed: Sequence[Task] = (),
    beware: list[str] | None = None,
) -> Params:
    """All parameters, with the amended handoff of the next attempt, or the final error report; `beware`, if it is
    given, gets what the operator should know of that handoff, in sentences.

    `text_of` gives the text of a version, `failed` are the tasks below that have failed. Raises AmendError if no
    sound handoff can be made, UsageError where one was given that is not sound.
    """
    form = DecisionForm(task, subject, wish.action)
    form.choose(mitigation=wish.mitigation, mode=wish.mode)
    if not form.face.document:
        return plain_params(wish, task)
    trouble, proposal = None, None
    try:
        proposal = form.propose(text_of, wish.note, failed, operator)
    except (AmendError, NoAnswerError) as error:
        trouble = error
    if wish.handoff is not None:
        text, name = wish.handoff
        if problems := handoff_check(task, subject, name, mode=form.mode)(text):
            raise UsageError(f"{name} cannot be handed on:{_shown(problems)}")
    elif proposal is None:
        raise AmendError(f"{trouble}, and give --handoff FILE") from trouble
    else:
        text, name = proposal.text, proposal.name
        if wish.action is not Action.ABORT and (problems := proposal.problems(text)):
            raise AmendError(
                f"the last handoff is not sound, so it cannot be amended; give --handoff FILE:{_shown(problems)}"
            )
    if beware is not None and wish.action is not Action.ABORT:
        mended = proposal.mended if proposal is not None and wish.handoff is None else ()
        is_plain = proposal is not None and proposal.is_plain(text, name)
        beware += cautions(mended=mended, is_plain=is_plain, mitigation=wish.mitigation)
    return form.recorded(text)


def _shown(problems: list[str]) -> str:
    return "".join(f"\n  {problem}" for problem in problems[:_MOST_PROBLEMS])


def _answers(wish: Wish, task: Task) -> tuple[Answer, ...]:
    blockers = task.result.blockers if task.result else ()
    if wish.action is Action.RESPOND and len(blockers) > 1 and len(wish.answers) < len(blockers):
        given = f"{plural(len(wish.answers), 'answer')} to {plural(len(blockers), 'question')}"
        asked = "".join(f"\n  {number}. {clean(one, _LONGEST)}" for number, one in enumerate(blockers, 1))
        raise UsageError(f"not recorded: {given}; give one --respond for each, in this order:{asked}")
    if blockers and len(wish.answers) > len(blockers):
        raise UsageError(
            f"{len(wish.answers)} answers are given, and it asks {len(blockers)}; put them into one --respond"
        )
    questions = (*blockers, *(None for _ in wish.answers))
    return tuple(Answer(question, answer) for question, answer in zip(questions, wish.answers, strict=False))


def lines(
    task: Task, subject: Subject, wish: Wish, params: Params, *, warnings: Sequence[str], places: Sequence[str]
) -> list[str]:
    """What will be recorded. `places` say where it is written."""
    facts = [
        ("task", f"{exact(task.task_id, _LONGEST)}, attempt {task.attempt}, {task.own_state}"),
        ("decision", _decision(wish)),
        ("return", _return(task, subject)),
        ("retries", _budget(task, wish)),
        ("next", _next(task, wish, params)),
    ]
    facts += [("note", line) for line in clean_lines(wish.note, _MOST_LINES)[0]]
    facts += [("answer", clean(f"{one.question or ''} → {one.answer}", _LONGEST)) for one in params.answers]
    facts += [("writes", place) for place in places]
    facts += [("beware", warning) for warning in warnings]
    shown, before = [], ""
    for name, value in facts:
        if value:
            shown.append(f"  {name if name != before else '':<{_WIDTH}}{value}")
            before = name
    if params.report is not None:
        shown += ["", "  The final error report:", *_signed(params.report)]
    if params.handoff is not None:
        shown += ["", "  The handoff for the next attempt:", *_signed(params.handoff)]
    if said := list(_said(task)):
        shown += [
            "",
            f"  What {clean(task.agent or 'the child', 60)} says, in its own words:",
            *_quoted("\n".join(said)),
        ]
    return shown


def _decision(wish: Wish) -> str:
    if wish.mode is not None:
        return f"{wish.action} to the mode {clean(wish.mode, 60)}"
    return f"{wish.action}, with {wish.mitigation} as mitigation" if wish.mitigation else str(wish.action)


def _return(task: Task, subject: Subject) -> str:
    returned = task.latest.returned if task.latest else None
    if returned is None or subject.return_sha256 is None:
        return "none yet"
    return f"{clean(returned.path, _LONGEST)}, sha256 {subject.return_sha256[:_DIGITS]}…"


def _budget(task: Task, wish: Wish) -> str:
    left = retries_left(task.retry)
    if goes_to_fitter(task, wish.mode):
        return f"{left}, exactly one once the {FITTER} has restored the line"
    if wish.action is not Action.ESCALATE and not is_retry(wish.action, task.latest):
        return f"{left}, before and after"
    retry = mitigated(task) if wish.mitigation else task.retry
    return f"{retries_left(retry)}, {max(retry.remaining - 1, 0)} after it"


def _next(task: Task, wish: Wish, params: Params) -> str:
    if wish.action is Action.ACCEPT:
        return "it has nothing more to do"
    if wish.action is Action.ABORT:
        return "no other attempt; its parent gets the final error report below"
    if wish.action is Action.RESPOND:
        return f"attempt {task.attempt + 1}, with your answer"
    if params.handoff is None:
        return f"attempt {task.attempt + 1}; no handoff was seen, so it gets your note only"
    size = f"{len(params.handoff.encode()):,} bytes"
    if goes_to_fitter(task, wish.mode):
        return f"a packet of {size} for the {FITTER}, who restores the line"
    given = "your handoff" if wish.handoff else "the amended handoff"
    return f"attempt {task.attempt + 1}, with {given} ({size})"


def _said(task: Task) -> Iterator[str]:
    result = task.result
    if result is None:
        return
    facts = (
        ("summary", result.summary),
        ("error", result.error_code),
        ("message", result.error_message if result.error_message != result.summary else None),
        ("hint", result.retry_hint),
        ("review", result.review_reason),
    )
    yield from (f"{name}: {value}" for name, value in facts if value)
    yield from (f"blocker: {blocker}" for blocker in result.blockers)


def _quoted(text: str) -> list[str]:
    shown, cut = clean_lines(text.removesuffix("\n"), _MOST_LINES)
    return [f"    │ {clean(line, _LONGEST)}" for line in shown] + ([f"    ({cut})"] if cut else [])


def _signed(text: str) -> list[str]:
    """All of a text that is signed."""
    return [f"    │ {piece.text}" for piece in whole(text)]
