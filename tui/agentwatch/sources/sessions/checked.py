"""A run as somebody else says it is: each field of the right type, each time one that a clock can show."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from agentwatch.delegation.run import Message, Run

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_LATEST: Final = 253_402_300_800.0
"""The year 10000, in seconds since the epoch."""


def run_of(fields: object) -> Run:
    """A run of its fields, by their names, those of what is in it likewise. Raises ValueError with the reason."""
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
    """What makes a value of a type out of fields, or raises ValueError."""
    from pydantic import TypeAdapter  # Files alone need not wait for it.

    return TypeAdapter(shape)


def is_time(value: object) -> TypeGuard[int | float]:
    """Whether it is one in seconds since the epoch."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LATEST
