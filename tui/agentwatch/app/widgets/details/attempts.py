"""The attempts tab: every execution of a task, and what was changed from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from textual.content import Content

from agentwatch.app.decision_words import receipt_line, warning
from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.cells import left
from agentwatch.app.widgets.details.blocks import Block, Gap, Heading, Line, caution, faint, plain, text
from agentwatch.app.widgets.details.listing import Difference, compare
from agentwatch.app.widgets.details.view import READING, View
from agentwatch.delegation.run import Message
from agentwatch.delegation.task import Attempt, State, Task, Version
from agentwatch.view import looks, times

_DIGITS: Final = 12
"""Hex digits of a digest that are shown."""
_SUMMARY: Final = 400
_STATE: Final = 2 + max(len(state.value) for state in State)
_NEVER: Final = "Only one attempt is known. After a retry, what changed in the handoff and in the return is shown here."
_UNSEEN: Final = "They differ only in what cannot be seen, such as line breaks."


def write(view: View) -> Iterator[Block]:
    """The blocks of the tab: the newest attempt first."""
    attempts = view.task.attempts
    if not attempts:
        yield text(faint("No file speaks of this task, so no attempt is known."))
    digits = len(str(max((attempt.number for attempt in attempts), default=0)))
    for attempt in reversed(attempts):
        yield Gap()
        yield from _attempt(view.task, attempt, view.now, digits)
    if len(attempts) == 1:
        yield Gap()
        yield text(faint(_NEVER))
    until = [attempt for attempt in attempts if attempt.number <= compared_attempt(view)]
    yield from _changes("Handoff", view, until, _handed)
    yield from _changes("Return", view, until, _returned)


def comparable(attempts: Sequence[Attempt]) -> list[int]:
    """The numbers of the attempts that have one before them, in order."""
    return [attempt.number for attempt in attempts[1:]]


def compared_attempt(view: View) -> int:
    """The number of the attempt that is compared with the one before."""
    numbers = comparable(view.task.attempts)
    return view.compared if view.compared in numbers else max(numbers, default=0)


def _attempt(task: Task, attempt: Attempt, now: float, digits: int) -> Iterator[Block]:
    look = looks.LOOKS[attempt.state]
    state = Content.styled(left(f"{look.glyph} {look.word}", _STATE), f"${look.color}")
    started = times.clock(attempt.started_at, now) if attempt.started_at is not None else "?"
    end = times.ended_at(task, attempt)
    ended = times.clock(end, now) if end is not None else "not yet" if attempt.state.is_open else "-"
    lasted = Content.assemble(started, (" → ", FAINT), ended, "   ", took(task, attempt, now))
    yield text(Content.assemble(f"{attempt.number:>{digits}}  ", state, "   ", lasted))
    below = digits + 2
    digests = [_digest("handoff", _handed(attempt)), _digest("return", _returned(attempt))]
    yield text(Content("   ").join(digests), below)
    if attempt.session_id:
        yield text(Content.assemble(("session ", FAINT), plain(attempt.session_id, 60)), below)
    said = attempt.run.said.opening if attempt.run and attempt.run.said else None
    if summary := attempt.result.summary if attempt.result else said:
        yield _OneLine(plain(summary, _SUMMARY), below)
    for decision in attempt.decisions:
        yield text(Content.assemble(("decided ", FAINT), receipt_line(decision, now)), below)
        if trouble := warning(decision, now):
            yield caution(trouble, below)


def took(task: Task, attempt: Attempt, now: float) -> Content:
    """How long an attempt took, or has been running; `-` where that is not known."""
    lasted = times.took(task, attempt, now)
    if lasted is None:
        return Content(times.duration(None))
    return Content.assemble(times.duration(lasted.seconds), (" so far" if lasted.so_far else "", FAINT))


def _handed(attempt: Attempt) -> Version | Message | None:
    """What the attempt was given; if it was no packet, the words that a session store has."""
    return attempt.handoff or (attempt.run.prompt if attempt.run else None)


def _returned(attempt: Attempt) -> Version | Message | None:
    return attempt.returned or (attempt.run.said if attempt.run else None)


def _digest(label: str, version: Version | Message | None) -> Content:
    digest = Content(version.digest[:_DIGITS]) if version else faint("none")
    return Content.assemble((f"{label} ", FAINT), digest)


class _OneLine(NamedTuple):
    """A paragraph of which one line is shown, indented."""

    content: Content
    indent: int

    def lines(self, width: int) -> Iterator[Line]:
        yield Line(Content(" " * self.indent) + self.content.truncate(max(width - self.indent, 1), ellipsis=True))


def _changes(
    title: str, view: View, attempts: Sequence[Attempt], version_of: Callable[[Attempt], Version | Message | None]
) -> Iterator[Block]:
    """What changed between the last two handoffs, or returns, of these attempts."""
    versions = [(attempt.number, version) for attempt in attempts if (version := version_of(attempt)) is not None]
    if len(versions) < 2:
        return
    (first, before), (second, after) = versions[-2:]
    between = Content.assemble((f"attempt {first} → {second}", FAINT))
    if before.digest == after.digest:
        yield Heading(title, note=between)
        yield text(faint("The same, byte for byte."))
        return
    content = view.content
    compared = view.reads.later((before.digest, after.digest), lambda: _compare(content(before), content(after)))
    difference = compared.difference if compared else None
    if difference is not None and difference.rows:
        yield Heading(title, note=Content.assemble(between, "   ", difference.counted))
        yield from difference.noted
        return
    yield Heading(title, note=between)
    if compared is None:
        yield READING
    else:
        gone = f"The text of attempt {first if compared.is_first_gone else second} is not kept any more."
        yield text(faint(_UNSEEN if compared else gone))


class _Comparison(NamedTuple):
    """What changed from one text to another; None if one of them is gone."""

    difference: Difference | None
    is_first_gone: bool = False

    def __bool__(self) -> bool:
        return self.difference is not None


def _compare(before: str | None, after: str | None) -> _Comparison:
    if before is None or after is None:
        return _Comparison(None, before is None)
    return _Comparison(compare(before, after))
