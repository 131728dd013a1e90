"""Runs and requests as JSON says them, and strictly back. Whatever is read is foreign."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeGuard

from agentwatch.delegation.request import Request
from agentwatch.delegation.run import Message, Run

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_LATEST: Final = 253_402_300_800.0
"""The year 10000, in seconds since the epoch."""


def run_of(fields: object) -> Run:
    """A run as it was written. Raises ValueError with the reason."""
    try:
        run: Run = _shape(Run).validate_python(fields)
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


def request_fields(request: Request) -> dict[str, Any]:
    """What is remembered of a request."""
    return asdict(request.remembered)


def request_of(fields: object) -> Request:
    """What is remembered of a request. Raises ValueError with the reason."""
    try:
        request: Request = _shape(Request).validate_python(fields)
    except ValueError as error:
        raise ValueError("`request` is none of a program") from error
    if not all(map(is_time, (request.asked_at, request.until or 0.0, request.ended_at or 0.0))):
        raise ValueError("a time in `request` is none in seconds since 1970")
    return request.remembered


@cache
def _shape(shape: type) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # Files alone need not wait for it.

    return TypeAdapter(shape)


def is_time(value: object) -> TypeGuard[int | float]:
    """Whether it is one in seconds since the epoch."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LATEST


def parsed(line: str | bytes) -> dict[str, object]:
    """The JSON object in a text. Raises ValueError with the reason."""
    try:
        fields = json.loads(line, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"no JSON ({error})") from error
    if not isinstance(fields, dict):
        raise ValueError("no JSON object")  # noqa: TRY004  all reasons are of one kind
    return fields


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")
