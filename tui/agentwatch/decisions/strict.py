"""JSON in one spelling, and the strict way back: what is not exactly as it must be is refused, in words."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Any, Final, TypeVar

from agentwatch.decisions.errors import RecordError

_LARGEST_INTEGER: Final = 2**53 - 1
"""What every reader of JSON can hold."""

_HEX: Final = re.compile(r"[0-9a-f]+\Z")

Word = TypeVar("Word", bound=StrEnum)


def parsed(data: bytes) -> Any:
    """JSON without a key twice, and without what is none. Raises RecordError, ValueError and RecursionError."""
    return json.loads(data.decode(), object_pairs_hook=_object, parse_constant=_refuse_constant)


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise RecordError("a key stands in it twice")
    return made


def _refuse_constant(name: str) -> None:
    raise RecordError(f"{name} is not JSON")


def exactly(value: object, keys: tuple[str, ...], what: str) -> dict[str, Any]:
    """A copy of an object that has exactly these keys."""
    if not isinstance(value, dict) or set(value) != set(keys):
        raise RecordError(f"{what} must be an object with exactly {', '.join(keys)}")
    return dict(value)


def one_of(words: type[Word], value: object) -> Word:
    if not isinstance(value, str) or value not in list(words):
        raise RecordError(f"{str(value)[:40]!r} is none of {', '.join(words)}")
    return words(value)


def text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise RecordError(f"{name} must be a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise RecordError(f"{name} holds half a character, which cannot be written; remove it") from error


def named(name: str, value: object) -> None:
    text(name, value)
    if not value:
        raise RecordError(f"{name} must not be empty")


def positive(name: str, value: object) -> None:
    # `True` is an int, and JSON's `true` would be one, too.
    if type(value) is not int or not 1 <= value <= _LARGEST_INTEGER:
        raise RecordError(f"{name} must be a whole number, 1 or more")


def hex_digits(digits: int, name: str, value: object) -> None:
    if not (isinstance(value, str) and len(value) == digits and _HEX.match(value)):
        raise RecordError(f"{name} must be {digits} hex digits")
