"""The steps of a transcript: what its records say, a line each, and of a call what came of it."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import Final, NamedTuple

from agentwatch.contracts.shapes import TodoStatus
from agentwatch.delegation.run import LONGEST_DOING
from agentwatch.sources.sessions.doing import Entry, EntryKind, about
from agentwatch.sources.sessions.fields import Fields, digest_of, listed, text, todos_in

Place = tuple[int, int]
"""Where a record stands, and which entry of it this is."""
place_of: Final = attrgetter("place")

_MOST: Final = 20_000
"""Steps that are known at once, the last ones: what is known must not fill the memory."""
_AGAIN_SECONDS: Final = 5.0

_CHECKLISTS: Final = (("todos", "content"), ("plan", "step"))
"""Where the calls of checklist tools have the list, and each item its words."""


class Outcome(StrEnum):
    """How a call came out. `refused`: a human, or a rule of theirs, did not allow it."""

    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"


class Step(NamedTuple):
    """A line of a transcript, as far as it is known by now. Texts are foreign, of one line and at most 200 characters.

    Steps are ordered by `place`; `answered` is that of the result. `about` is the main argument of the tool, the words,
    or how far a checklist is. `handed` is the digest of what a call hands to another agent, else "". Times are epoch
    seconds.
    """

    place: Place
    kind: EntryKind
    at: float
    tool: str = ""
    about: str = ""
    outcome: Outcome = Outcome.DONE
    result: str = ""
    ended_at: float | None = None
    answered: Place | None = None
    handed: str = ""
    is_checklist: bool = False


class Steps:
    """The steps that are known, in their order; a result belongs to the step of its call."""

    def __init__(self) -> None:
        self._steps: dict[Place, Step] = {}
        self._open: dict[str, Place] = {}

    @property
    def is_full(self) -> bool:
        """Whether older ones are not to be had."""
        return len(self._steps) >= _MOST

    def snapshot(self) -> tuple[Step, ...]:
        return tuple(self._steps.values())[-_MOST:]

    def add(self, place: int, entries: Iterable[Entry]) -> None:
        """Take in the record behind all others."""
        for number, entry in enumerate(entries):
            at = place, number
            if entry.kind is EntryKind.RESULT:
                asked = self._open.pop(entry.call, None)
                if asked is not None and asked in self._steps:
                    self._steps[asked] = _answered(self._steps[asked], at, entry)
                continue
            step, last = step_of(at, entry), next(reversed(self._steps.values()), None)
            if last is not None and says_again(last, step) and last.about == step.about:
                continue
            self._steps[at] = step
            if entry.kind is EntryKind.CALL:
                self._open[entry.call] = at
        if len(self._steps) > 2 * _MOST:
            self._steps = dict(list(self._steps.items())[-_MOST:])


def index_of(steps: Sequence[Step], place: Place | None) -> int | None:
    """Which of these steps stands at a place, None where none does."""
    at = bisect_left(steps, place, key=place_of) if place is not None else len(steps)
    return at if at < len(steps) and steps[at].place == place else None


def says_again(before: Step | Entry, after: Step | Entry) -> bool:
    """Whether these may be the same words twice: some programs write an answer again when the turn ends."""
    return before.kind is after.kind is EntryKind.WORDS and after.at - before.at < _AGAIN_SECONDS


def step_of(place: Place, said: Entry, answered: Place | None = None, result: Entry | None = None) -> Step:
    """A step by itself, as its records say it."""
    step = Step(place, said.kind, said.at, about=one_line(said.text), outcome=_outcome(said))
    if said.kind is EntryKind.CALL:
        checklist, handed = _checklist(said.given), text(said.given, "prompt")
        step = step._replace(
            tool=one_line(said.tool),
            about=one_line(checklist or about(said.tool, said.given)),
            outcome=Outcome.OPEN,
            # No other tool has a whole prompt.
            handed=digest_of(handed) if handed is not None else "",
            is_checklist=bool(checklist),
        )
    return step if answered is None or result is None else _answered(step, answered, result)


def _answered(step: Step, place: Place, result: Entry) -> Step:
    return step._replace(outcome=_outcome(result), result=one_line(result.text), ended_at=result.at, answered=place)


def one_line(words: str) -> str:
    """The beginning of a text in one line: the marks that Markdown sets before its lines say nothing here."""
    lines = (line.strip().lstrip("#").lstrip() for line in words[: LONGEST_DOING * 3].splitlines())
    return " ".join(line for line in lines if line and not line.startswith("```"))[:LONGEST_DOING]


def _outcome(entry: Entry) -> Outcome:
    return Outcome.REFUSED if entry.refused else Outcome.FAILED if entry.failed else Outcome.DONE


def _checklist(given: Fields) -> str:
    """A checklist in one line: how many are done, and which one is worked on, else was done last. "" for no list."""
    todos = next(filter(None, (todos_in(listed(given, key), words) for key, words in _CHECKLISTS)), ())
    done = [todo.text for todo in todos if todo.status is TodoStatus.DONE]
    now = [todo.text for todo in todos if todo.status is TodoStatus.IN_PROGRESS][:1] or done[-1:]
    return " ".join([f"{len(done)}/{len(todos)}", *now]) if todos else ""


def written(given: Fields) -> str:
    """The arguments of a call as people read them: one below the other, long ones on lines of their own."""
    only = next(iter(given.values()), "")
    if len(given) == 1 and isinstance(only, str):
        return only
    parts = []
    for key, value in given.items():
        words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        parts.append(f"{key}:\n{words}\n" if "\n" in words else f"{key}: {words}")
    return "\n".join(parts)
