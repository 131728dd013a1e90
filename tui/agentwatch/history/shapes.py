"""Requests as JSON says them, and strictly back. Whatever is read is foreign."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, NoReturn

from agentwatch.delegation.request import Request
from agentwatch.sources.sessions.checked import is_time, shape_of


def request_fields(request: Request) -> dict[str, Any]:
    """What is remembered of a request."""
    return asdict(request.remembered)


def request_of(fields: object) -> Request:
    """What is remembered of a request. Raises ValueError with the reason."""
    try:
        request: Request = shape_of(Request).validate_python(fields)
    except ValueError as error:
        raise ValueError("`request` is none of a program") from error
    if not all(map(is_time, (request.asked_at, request.until or 0.0, request.ended_at or 0.0))):
        raise ValueError("a time in `request` is none in seconds since 1970")
    return request.remembered


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
