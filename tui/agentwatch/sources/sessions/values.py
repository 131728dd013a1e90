"""Checklists and runs in what others wrote: a value of the wrong type makes a run no run."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeGuard

from agentwatch.contracts.shapes import Todo, TodoStatus
from agentwatch.delegation.run import Message, Run
from agentwatch.sources.sessions.fields import Fields, objects, text

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_LATEST = 253_402_300_800.0  # the year 10000, in seconds since the epoch
_MOST_TODOS = 1000
_LONGEST_TODO = 500
_STEP = ("content", "step", "description")  # the names of what is to be done
TODO_STATUSES = {
    "pending": TodoStatus.PENDING,
    "in_progress": TodoStatus.IN_PROGRESS,
    "completed": TodoStatus.DONE,
}


def todos_of(steps: Iterable[tuple[str, str]]) -> tuple[Todo, ...]:
    """The steps of a checklist: what is to be done, and `pending`, `in_progress` or `completed`."""
    return tuple(
        Todo(words[:_LONGEST_TODO], TODO_STATUSES.get(status, TodoStatus.PENDING), None, line)
        for line, (words, status) in enumerate(islice(steps, _MOST_TODOS), 1)
    )


def todos_in(given: Fields) -> tuple[Todo, ...]:
    """The checklist that a tool was given, without what was called off."""
    steps = [(text(item, "status") or "", item) for key in ("todos", "plan") for item in objects(given, key)]
    told = (
        (next(filter(None, (text(item, key) for key in _STEP)), ""), status)
        for status, item in steps
        if status != "cancelled"
    )
    return todos_of((words, status) for words, status in told if words)


def checked_run(fields: object) -> Run:
    """A run as somebody else says it is, of its fields by name. Raises ValueError with the reason."""
    try:
        run: Run = shape_of(Run).validate_python(fields)
    except ValueError as error:
        raise ValueError("`run` is no run of a session") from error
    times = [run.started_at, run.updated_at, run.ended_at or 0.0, run.asked_at or 0.0]
    times += (at for one in run.rounds for at in (one.began_at, one.ended_at or 0.0))
    times += (message.at for message in messages(run))
    if not all(map(is_time, times)):
        raise ValueError("a time in `run` is none in seconds since 1970")
    return run


def messages(run: Run) -> list[Message]:
    """All that was said to a run, and by it."""
    told = (message for one in run.rounds for message in (one.prompt, one.said))
    return [message for message in (run.prompt, run.said, *told) if message is not None]


@cache
def shape_of(shape: type) -> TypeAdapter[Any]:
    """A maker of a value from fields; it raises ValueError."""
    from pydantic import TypeAdapter  # Files alone need not wait for it.

    return TypeAdapter(shape)


def is_time(value: object) -> TypeGuard[int | float]:
    """Whether it is one in seconds since the epoch."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LATEST
