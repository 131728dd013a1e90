"""The steps of a transcript: what its records say, a line each, and of a call what came of it."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import Final, NamedTuple, TypeVar

from agentwatch.contracts.shapes import TodoStatus
from agentwatch.delegation.run import LONGEST_DOING
from agentwatch.sources.sessions.doing import Entry, EntryKind, about
from agentwatch.sources.sessions.fields import Fields, digest_of, listed, text, todos_in

Place = tuple[int, int]
"""Where a record stands, and which entry of it this is."""
place_of: Final = attrgetter("place")

_KEPT: Final = 5_000
"""Steps that are kept; those before them are read again when somebody asks for them."""
_MOST: Final = 20_000
"""The same, where somebody has asked."""
_AGAIN_SECONDS: Final = 5.0
_REMEMBERED: Final = 1_000
"""Calls without a result, and results without their call."""

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


T = TypeVar("T")


class Steps:
    """The steps that are known, in their order. Results find their calls, whichever of the two is read first."""

    def __init__(self) -> None:
        self.was_cut = False
        """The first ones were forgotten."""
        self._steps: list[Step] = []
        self._most = _KEPT
        self._open: dict[str, Place] = {}
        self._results: dict[str, tuple[Place, Entry]] = {}

    @property
    def is_full(self) -> bool:
        """Whether older ones are not to be had: what is known must not fill the memory."""
        return len(self._steps) >= _MOST

    def snapshot(self) -> tuple[Step, ...]:
        return tuple(self._steps)

    def add(self, place: int, entries: Iterable[Entry]) -> None:
        """Take in the record behind all others."""
        self._steps += self._made(place, entries, self._steps)
        if len(self._steps) > self._most + self._most // 10:
            del self._steps[: len(self._steps) - self._most]
            self.was_cut = True

    def add_before(self, records: Iterable[tuple[int, Iterable[Entry]]]) -> int:
        """Take in records, in their order, before all others; how many steps they make."""
        before: list[Step] = []
        for place, entries in records:
            before += self._made(place, entries, before)
        self._steps[:0] = before
        self._most = min(max(self._most, len(self._steps)), _MOST)
        return len(before)

    def _made(self, place: int, entries: Iterable[Entry], before: list[Step]) -> list[Step]:
        """The steps of a record that stands behind those `before`."""
        made: list[Step] = []
        for number, entry in enumerate(entries):
            if entry.kind is EntryKind.RESULT:
                if not self._answer((place, number), entry, (self._steps, made, before)):
                    kept = entry._replace(text=one_line(entry.text))
                    _remember(self._results, entry.call, ((place, number), kept))
                continue
            step = _step_of((place, number), entry)
            last = made or before
            if last and says_again(last[-1], step) and last[-1].about == step.about:
                continue
            if entry.kind is EntryKind.CALL:
                if (answer := self._results.pop(entry.call, None)) is not None:
                    step = _answered(step, *answer)
                else:
                    _remember(self._open, entry.call, step.place)
            made.append(step)
        return made

    def _answer(self, place: Place, result: Entry, known: Iterable[list[Step]]) -> bool:
        """Whether the call of a result is there."""
        asked = self._open.pop(result.call, None)
        for steps in known:
            if (at := index_of(steps, asked)) is not None:
                steps[at] = _answered(steps[at], place, result)
                return True
        return False


def index_of(steps: Sequence[Step], place: Place | None) -> int | None:
    """Which of these steps stands at a place, None where none does."""
    at = bisect_left(steps, place, key=place_of) if place is not None else len(steps)
    return at if at < len(steps) and steps[at].place == place else None


def _remember(known: dict[str, T], key: str, value: T) -> None:
    known[key] = value
    if len(known) > _REMEMBERED:
        del known[next(iter(known))]


def says_again(before: Step | Entry, after: Step | Entry) -> bool:
    """Whether these may be the same words twice: some programs write an answer again when the turn ends."""
    return before.kind is after.kind is EntryKind.WORDS and after.at - before.at < _AGAIN_SECONDS


def _step_of(place: Place, entry: Entry) -> Step:
    if entry.kind is not EntryKind.CALL:
        return Step(place, entry.kind, entry.at, about=one_line(entry.text), outcome=_outcome(entry))
    checklist, handed = _checklist(entry.given), text(entry.given, "prompt")
    return Step(
        place,
        entry.kind,
        entry.at,
        one_line(entry.tool),
        one_line(checklist or about(entry.tool, entry.given)),
        Outcome.OPEN,
        # No other tool has a whole prompt.
        handed=digest_of(handed) if handed is not None else "",
        is_checklist=bool(checklist),
    )


def step_of(place: Place, said: Entry, answered: Place | None = None, result: Entry | None = None) -> Step:
    """A step by itself, as its records say it."""
    step = _step_of(place, said)
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
