"""The file of a request that is offered: its one spelling in bytes, and the strict way back."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, Final

from agentwatch.decisions.errors import RecordError
from agentwatch.decisions.strict import compact, exactly, hex_digits, named, one_of, parsed, text
from agentwatch.delegation.decision import OF_REQUESTS, Action
from agentwatch.delegation.request import (
    Given,
    Option,
    Query,
    Request,
    RequestKind,
    RequestStage,
    input_text,
    request_id_of,
)

LARGEST: Final = 1024 * 1024
"""Bytes of a file: what is larger is answered in its program."""

_VERSION: Final = 1
_FIELDS: Final = tuple(field.name for field in fields(Request) if field.name != "allowed")
"""Whether it was allowed stands in the ledger and in the program's records."""
_KEYS: Final = ("version", "workspace_id", *_FIELDS)
_NAMED: Final = ("source", "session_id", "nonce")
_TEXTS: Final = ("tool", "input", "shown", "said", "why_not", "covered_by", "by")
_FLAGS: Final = ("prompt_hidden", "words", "ends_turn")
_MOST: Final = 2**31
_MOST_SECONDS: Final = 2**40
_STAGES: Final = frozenset(RequestStage) - {RequestStage.DECIDED, RequestStage.ACTED}
"""What a file says. That it is decided stands in the ledger; that a program acted, in its own records."""


def to_bytes(request: Request, workspace_id: str) -> bytes:
    """The file of a request. Raises RecordError where it is none that could be answered, or too large."""
    try:
        data = _spelled(request, workspace_id)
    except UnicodeEncodeError as error:
        raise RecordError("it holds half a character, which cannot be written") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(f"it cannot be written ({error})") from error
    if len(data) > LARGEST:
        raise RecordError(f"it has {len(data):,} bytes, {LARGEST:,} are allowed")
    # As it will be read: what nobody accepts must not be offered.
    parse(data, workspace_id)
    return data


def _spelled(request: Request, workspace_id: str) -> bytes:
    values = {name: getattr(request, name) for name in _FIELDS}
    queries = [one._asdict() | {"options": [option._asdict() for option in one.options]} for one in request.queries]
    document = {"version": _VERSION, "workspace_id": workspace_id, **values, "queries": queries}
    return compact(document).encode() + b"\n"


def parse(data: bytes, workspace_id: str) -> Request:
    """The request in a file. Raises RecordError for anything else than what `to_bytes` writes for this workspace."""
    try:
        document = parsed(data)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"it is not JSON ({error})") from error
    if isinstance(document, dict) and document.get("version") != _VERSION:
        raise RecordError(f"version {str(document.get('version'))[:20]} of it is not known here; update agentwatch")
    values = exactly(document, _KEYS, "it")
    if (values.pop("version"), values.pop("workspace_id")) != (_VERSION, workspace_id):
        raise RecordError("it is of another workspace")
    request = _request(values)
    if _input_of(request) != request.input_sha256:
        raise RecordError("its digest is not that of its input")
    identity = workspace_id, request.source, request.session_id, request.nonce, request.input_sha256
    if request.request_id != request_id_of(*identity):
        raise RecordError("its id is not that of its input")
    if _spelled(request, workspace_id) != data:
        raise RecordError("it is not spelled as agentwatch spells it")
    return request


def _input_of(request: Request) -> str:
    """The sha256 of the input, if it is spelled as it must be."""
    try:
        spelled, digest = input_text(json.loads(request.input))
    except (ValueError, RecursionError) as error:
        raise RecordError(f"its input is no JSON ({error})") from error
    if spelled != request.input:
        raise RecordError("its input is not in the one spelling")
    return digest


def _request(values: dict[str, Any]) -> Request:
    hex_digits(32, "request_id", values["request_id"])
    hex_digits(64, "input_sha256", values["input_sha256"])
    for name in _NAMED:
        named(name, values[name])
    for name in _TEXTS:
        text(name, values[name])
    for name in _FLAGS:
        if type(values[name]) is not bool:
            raise RecordError(f"{name} must be true or false")
    if values["call_id"] is not None:
        text("call_id", values["call_id"])
    _time("asked_at", values["asked_at"])
    for name in ("until", "ended_at"):
        if values[name] is not None:
            _time(name, values[name])
    if type(values["ends_others"]) is not int or not 0 <= values["ends_others"] < _MOST:
        raise RecordError("ends_others must be a whole number")
    made = {
        "kind": one_of(RequestKind, values["kind"]),
        "stage": one_of(RequestStage, values["stage"]),
        "actions": tuple(one_of(Action, one) for one in _list("actions", values["actions"])),
        "beside": tuple(_given(one) for one in _list("beside", values["beside"])),
        "rules": tuple(_text("a rule", one) for one in _list("rules", values["rules"])),
        "queries": tuple(_query(one) for one in _list("queries", values["queries"])),
    }
    request = Request(**(values | made))
    if not set(request.actions) <= set(OF_REQUESTS) or len(set(request.actions)) != len(request.actions):
        raise RecordError("its actions are not those of a request")
    if request.stage not in _STAGES or (request.stage is RequestStage.OFFERED) != (request.ended_at is None):
        raise RecordError("its end is not what it must be")
    return request


def _given(value: object) -> Given:
    name, given = values if len(values := _list("an argument", value)) == len(Given._fields) else (None, None)
    return Given(_text("its name", name), _text("its value", given))


def _query(value: object) -> Query:
    raw = exactly(value, Query._fields, "a query")
    for name in ("question", "header", "key"):
        text(name, raw[name])
    if type(raw["several"]) is not bool:
        raise RecordError("several must be true or false")
    return Query(**(raw | {"options": tuple(_option(one) for one in _list("options", raw["options"]))}))


def _option(value: object) -> Option:
    raw = exactly(value, Option._fields, "an option")
    return Option(_text("a label", raw["label"]), _text("a description", raw["description"]))


def _list(name: str, value: object) -> list[Any]:
    if not isinstance(value, list):
        raise RecordError(f"{name} must be a list")
    return value


def _text(name: str, value: Any) -> str:
    text(name, value)
    return str(value)


def _time(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST_SECONDS:
        raise RecordError(f"{name} must be a time in seconds")
