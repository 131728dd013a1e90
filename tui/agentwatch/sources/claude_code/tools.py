"""What an agent's uses of tools show: the checklist that it keeps, and what it asks the person at its terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.contracts.shapes import Todo
from agentwatch.sources.sessions.fields import (
    TODO_STATUSES,
    Fields,
    first_line,
    inner,
    listed,
    question_in,
    text,
    todos_in,
    todos_of,
)

if TYPE_CHECKING:
    from agentwatch.sources.sessions.processes import Wait

QUESTIONS: Final = frozenset({"AskUserQuestion", "ExitPlanMode"})
"""Tools that do nothing but ask; a use of any other may need a permission."""

TOOLS: Final = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate"})
"""Those with which an agent keeps its checklist."""

_SUBJECTS: Final = ("command", "file_path", "notebook_path", "path", "pattern", "url", "query", "skill")
_LONGEST: Final = 200

_SLACK: Final = 2.0
"""Seconds from the use of a tool to the question about it. It is longer where hooks or a classifier judge first, and
for the later ones of several in one message."""

_CREATED: Final = re.compile(r"\bTask #(\d{1,9})\b")
_MOST: Final = 500


class Use(NamedTuple):
    """A use of a tool that has no result yet. `words` is what a question asks, else the use in a few words.

    `at` is in seconds since the epoch. Texts are foreign and unsanitised.
    """

    at: float
    words: str
    is_question: bool


def use_of(tool: str, given: Fields, at: float) -> Use:
    """A use of a tool as the transcript has it."""
    if tool in QUESTIONS:
        return Use(at, "an approval of its plan" if tool == "ExitPlanMode" else question_in(given), True)
    subject = next((found for key in _SUBJECTS if (found := text(given, key))), "")
    return Use(at, f"{tool} {first_line(subject, _LONGEST)}".strip(), False)


def asker(open_uses: Mapping[str, Sequence[Use]], wait: Wait) -> tuple[str | None, str]:
    """Who waits, out of the agents that work, and for what. None where it cannot be told.

    The program does not say it. A use that came long before it began to wait is at work, unless there is no other.
    """
    for earliest in (wait.since - _SLACK, 0.0):
        recent = {agent: [use for use in uses if use.at >= earliest] for agent, uses in open_uses.items()}
        chosen = {agent: uses for agent, uses in recent.items() if uses}
        if len(chosen) == 1:
            ((agent, (first, *others)),) = chosen.items()
            if first.is_question:
                return agent, first.words
            # Several of one message are asked about in their order, but some of them may be at work.
            return agent, f"{wait.what}{', it seems' if others else ''}: {first.words}"
        if chosen:
            return None, f"{wait.what}; which of its agents asks is not known"
    return None, wait.what


class Checklist:
    """Follows `TodoWrite`, which gives the whole list, and `TaskCreate` and `TaskUpdate`, which change one item."""

    def __init__(self) -> None:
        self._written: tuple[Todo, ...] | None = None
        self._items: dict[str, tuple[str, str]] = {}
        self._asked: dict[str, str] = {}

    @property
    def todos(self) -> tuple[Todo, ...] | None:
        """None where no list was ever kept."""
        return self._written if self._written is not None else todos_of(self._items.values()) or None

    def used(self, tool: str, tool_use_id: str, given: Fields) -> bool:
        """A tool was used; True where its result is needed to know which item it made."""
        if tool == "TodoWrite":
            self._written = todos_in(listed(given, "todos"), "content")
        elif tool == "TaskCreate":
            subject = text(given, "subject")
            if subject is not None and len(self._items) + len(self._asked) < _MOST:
                self._asked[tool_use_id] = subject
                return True
        elif tool == "TaskUpdate":
            number, status = str(given.get("taskId")), text(given, "status")
            if status == "deleted":
                self._items.pop(number, None)
            elif number in self._items:
                words, before = self._items[number]
                status = status if status in TODO_STATUSES else before
                self._items[number] = text(given, "subject") or words, status
        return False

    def made(self, tool_use_id: str, blocks: list[str], result: Fields) -> None:
        """The result of a `TaskCreate`: from here on its item has a number."""
        subject = self._asked.pop(tool_use_id, None)
        number = inner(result, "task").get("id")
        if not isinstance(number, str) and (match := _CREATED.search(blocks[0] if blocks else "")) is not None:
            number = match[1]
        if subject is not None and isinstance(number, str):
            self._items[number] = subject, "pending"
