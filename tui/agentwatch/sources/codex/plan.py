"""The plan that an agent of Codex keeps, as todos."""

from __future__ import annotations

from typing import Final

from agentwatch.contracts.shapes import Todo, TodoStatus
from agentwatch.sources.codex.texts import arguments_of
from agentwatch.sources.sessions.fields import Fields, listed, mapping, text

_STATUSES: Final = {"completed": TodoStatus.DONE, "in_progress": TodoStatus.IN_PROGRESS}
_MOST: Final = 1000
_LONGEST: Final = 500


def plan_in(payload: Fields) -> tuple[Todo, ...] | None:
    """The steps of a call of `update_plan`, None where it is another call."""
    if text(payload, "name") != "update_plan":
        return None
    steps = [mapping(step) for step in listed(arguments_of(payload), "plan")[:_MOST]]
    return tuple(
        Todo(
            (text(step, "step") or "")[:_LONGEST],
            _STATUSES.get(text(step, "status") or "", TodoStatus.PENDING),
            None,
            number,
        )
        for number, step in enumerate(steps, 1)
    )
