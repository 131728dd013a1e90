"""The checklist that an agent keeps with the program's own tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from agentwatch.contracts.shapes import Todo, TodoStatus
from agentwatch.sources.sessions.fields import inner, listed, mapping, text

_STATUSES: Final = {
    "pending": TodoStatus.PENDING,
    "in_progress": TodoStatus.IN_PROGRESS,
    "completed": TodoStatus.DONE,
}
_CREATED: Final = re.compile(r"\bTask #(\d{1,9})\b")
_MOST: Final = 500

TOOLS: Final = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate"})


class Checklist:
    """Follows `TodoWrite`, which gives the whole list, and `TaskCreate` and `TaskUpdate`, which change one item."""

    def __init__(self) -> None:
        self._written: list[tuple[str, TodoStatus]] | None = None
        self._items: dict[str, tuple[str, TodoStatus]] = {}
        self._asked: dict[str, str] = {}

    @property
    def todos(self) -> tuple[Todo, ...] | None:
        """None where no list was ever kept."""
        items = self._written if self._written is not None else list(self._items.values())
        if self._written is None and not items:
            return None
        return tuple(Todo(words, status, None, line) for line, (words, status) in enumerate(items, 1))

    def used(self, tool: str, tool_use_id: str, given: Mapping[str, object]) -> bool:
        """A tool was used; True where its result is needed to know which item it made."""
        if tool == "TodoWrite":
            todos = [mapping(item) for item in listed(given, "todos")[:_MOST]]
            self._written = [
                (words, _STATUSES.get(str(item.get("status")), TodoStatus.PENDING))
                for item in todos
                if (words := text(item, "content"))
            ]
        elif tool == "TaskCreate":
            subject = text(given, "subject")
            if subject is not None and len(self._items) + len(self._asked) < _MOST:
                self._asked[tool_use_id] = subject
                return True
        elif tool == "TaskUpdate":
            self._update(str(given.get("taskId")), given)
        return False

    def made(self, tool_use_id: str, blocks: list[str], result: Mapping[str, object]) -> None:
        """The result of a `TaskCreate`: from here on its item has a number."""
        subject = self._asked.pop(tool_use_id, None)
        if subject is None:
            return
        number = inner(result, "task").get("id")
        if not isinstance(number, str):
            found = _CREATED.search(blocks[0]) if blocks else None
            number = found[1] if found else None
        if number is not None:
            self._items[number] = subject, TodoStatus.PENDING

    def _update(self, number: str, given: Mapping[str, object]) -> None:
        if number not in self._items:
            return
        words, status = self._items[number]
        if given.get("status") == "deleted":
            del self._items[number]
            return
        self._items[number] = (
            text(given, "subject") or words,
            _STATUSES.get(str(given.get("status")), status),
        )
