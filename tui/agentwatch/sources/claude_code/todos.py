"""The checklist that an agent keeps with the program's own tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from agentwatch.contracts.shapes import Todo
from agentwatch.sources.sessions.fields import TODO_STATUSES, inner, listed, mapping, text, todos_in, todos_of

_CREATED: Final = re.compile(r"\bTask #(\d{1,9})\b")
_MOST: Final = 500

TOOLS: Final = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate"})


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

    def used(self, tool: str, tool_use_id: str, given: Mapping[str, object]) -> bool:
        """A tool was used; True where its result is needed to know which item it made."""
        if tool == "TodoWrite":
            self._written = todos_in(
                [item for item in listed(given, "todos") if text(mapping(item), "content")], "content"
            )
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
            self._items[number] = subject, "pending"

    def _update(self, number: str, given: Mapping[str, object]) -> None:
        if number not in self._items:
            return
        words, status = self._items[number]
        if given.get("status") == "deleted":
            del self._items[number]
            return
        said = text(given, "status")
        self._items[number] = text(given, "subject") or words, said if said in TODO_STATUSES else status
