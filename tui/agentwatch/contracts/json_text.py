"""Places in JSON texts. `Node` is for a sound one, and quick; `scan` reads what can be had of one that breaks off.

The C parser says neither where a key stands nor what came before an error. A node decodes what it is asked for, a
value at a time; the scanner is a loop some fifty times slower, and runs only where a text is broken.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from functools import cached_property
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]
from sys import maxsize
from typing import Any, Final, NamedTuple, NoReturn

Location = tuple[str | int, ...]
"""A place inside a document: keys and list indices from the top, `("metadata", "delegation_path", 2)`."""

MAX_DEPTH: Final = 100
"""Arrays and objects inside each other; the contracts need five. Far below any recursion limit."""

MAX_TOKENS: Final = 20_000
"""Tokens that are scanned, about 30 ms. A return has a few hundred; what stands behind them has no line."""

PLACE_DEPTH: Final = 5
"""Places are kept down to this depth: no rule speaks of anything deeper."""

TEXT_BEHIND: Final = "text behind the object"

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_COMMENT: Final = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA: Final = re.compile(r'("(?:[^"\\]|\\.)*"|[\[{]\s*,)|,(?=\s*[}\]])', re.DOTALL)
# What stands before a part (white space, the comma of the one before), and its key; behind the last there is none.
_PART: Final = re.compile(
    r'([ \t\n\r]*+(?:,[ \t\n\r]*+)?)(?:("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\n\r]*+:[ \t\n\r]*+)?(?=[^\]}])', re.DOTALL
)
_decode: Final = json.JSONDecoder(strict=False).scan_once  # type: ignore[attr-defined]
_WORD: Final = re.compile(r"[-+.0-9A-Za-z_]+")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?\Z")
_CUT_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)?(\.[0-9]*)?([eE][-+]?)?\Z")
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}
_NOT_FINITE: Final = frozenset({"NaN", "Infinity", "-Infinity"})
_MAX_DIGITS: Final = 400


class Node:
    """A value of a sound JSON text: what it is, from `start` to `end`, and what is in it.

    As a part of another it begins with its `step`, a key or an index: a member `begins` at its key, an entry at itself.
    `most` is how many parts of one object or array are looked at. Raises ValueError where no sound value starts.
    """

    def __init__(
        self, text: str, start: int, most: int = maxsize, step: str | int = "", begins: int | None = None
    ) -> None:
        self._text, self.start, self._most = text, start, most
        self.step, self.begins = step, start if begins is None else begins
        try:
            self.value, self.end = _decode(text, start)
        except StopIteration:
            raise ValueError("a value is missing") from None

    @cached_property
    def parts(self) -> list[Node]:
        """The members of an object, or the entries of an array."""
        found: list[Node] = []
        if not self.value or not isinstance(self.value, dict | list):
            return found
        text, behind = self._text, self.start + 1
        while (match := _PART.match(text, behind)) is not None and len(found) < self._most:
            key = match[2]
            step = len(found) if key is None else json.loads(key, strict=False) if "\\" in key else key[1:-1]
            found.append(Node(text, match.end(), self._most, step, match.end(1)))
            behind = found[-1].end
        return found

    def part(self, step: str | int) -> Node | None:
        """The member with a key, of one that stands twice the last; or the entry with an index."""
        return next((part for part in reversed(self.parts) if part.step == step), None)

    def offset_of(self, location: Location) -> int:
        """Where a place begins, or what encloses one that is not there."""
        node = self
        for step in location:
            part = node.part(step)
            if part is None:
                break
            node = part
        return node.begins


class BrokenError(ValueError):
    """The text is no JSON, even with comments. The message says where."""


def commented(text: str) -> Node:
    """JSON with the comments and trailing commas that some programs allow. Raises BrokenError."""
    bare = f" {text[1:]}" if text.startswith("\ufeff") else text
    plain = _LAST_COMMA.sub(_blanked, _COMMENT.sub(_blanked, bare))
    try:
        json.loads(plain, parse_constant=_refused)
    except JSONDecodeError as error:
        raise BrokenError(f"line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise BrokenError(f"it cannot be read: {error}") from error
    return Node(plain, space(plain, 0))


def _blanked(match: re.Match[str]) -> str:
    # The same length and the same lines, so that every offset stays true.
    return match[1] or re.sub(r"[^\n]", " ", match[0])


def _refused(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def space(text: str, at: int) -> int:
    """The offset behind white space."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


def nearest(places: dict[Location, int], location: Location) -> int | None:
    """What a place has, else what encloses it."""
    found = (places.get(location[:length]) for length in range(len(location), -1, -1))
    return next((each for each in found if each is not None), None)


class Break(NamedTuple):
    """Where a text stops being JSON. `at_end`: it only ends too early, nothing in it is wrong."""

    offset: int
    reason: str
    at_end: bool = False


@dataclass(slots=True)
class Scan:
    """What the scanner found. `value` holds all that stands before a break; offsets are characters of the text."""

    value: Any = None
    broken: Break | None = None
    places: dict[Location, int] = field(default_factory=dict)
    duplicates: list[tuple[Location, int]] = field(default_factory=list)
    not_finite: list[int] = field(default_factory=list)
    too_deep: int | None = None
    gave_up: bool = False
    """The text has more than MAX_TOKENS tokens; the rest was not looked at."""


class _BrokenError(Exception):
    """Carries a Break out of the loop."""

    def __init__(self, offset: int, reason: str, *, at_end: bool = False) -> None:
        self.found = Break(offset, reason, at_end)


def scan(text: str) -> Scan:
    """Scan one JSON text. Never raises; a text without any value has the value None and is broken."""
    found = Scan()
    try:
        _run(text, found)
    except _BrokenError as broken:
        found.broken = broken.found
    return found


def _run(text: str, found: Scan) -> None:  # noqa: PLR0915 - one loop over one state reads best in one piece
    end = len(text.rstrip(" \t\n\r"))
    places = found.places
    stack: list[tuple[Any, Location]] = []
    container: Any = None
    location: Location = ()
    key: str | None = None
    wants_value = True
    may_close = False
    position = 0
    for _ in range(MAX_TOKENS):
        position = space(text, position)
        if position >= end:
            raise _BrokenError(end, "the text ends", at_end=True)
        character = text[position]
        if isinstance(container, dict) and key is None and wants_value:
            if character == "}" and may_close:
                wants_value = False
            else:
                here = position
                key, position = _key(text, position, end)
                if key in container:
                    found.duplicates.append(((*location, key), here))
                if len(location) < PLACE_DEPTH:
                    places[(*location, key)] = here
                may_close = False
                continue
        elif wants_value and not (character == "]" and may_close):
            step: Location = (*location, key if key is not None else len(container)) if stack else ()
            if key is None and len(step) <= PLACE_DEPTH:
                places[step] = position
            if character in "{[":
                made: Any = {} if character == "{" else []
                _put(found, container, key, made)
                stack.append((container, location))
                if len(stack) > MAX_DEPTH:
                    found.too_deep = position
                    return
                container, location, key, may_close = made, step, None, True
                position += 1
                continue
            value, position = _scalar(text, position, end, found)
            _put(found, container, key, value)
            key, wants_value, may_close = None, False, False
            if not stack:
                _expect_end(text, position, end)
                return
            continue
        # Behind a value, or at the end of an empty array or object.
        if character == "," and not may_close:
            wants_value = True
        elif character == ("}" if isinstance(container, dict) else "]"):
            container, location = stack.pop()
            key, wants_value = None, False
            if not stack:
                _expect_end(text, position + 1, end)
                return
        else:
            raise _BrokenError(position, "a comma or a closing bracket is missing")
        position += 1
        may_close = False
    found.gave_up = True


def _put(found: Scan, container: Any, key: str | None, value: Any) -> None:
    if container is None:
        found.value = value
    elif key is None:
        container.append(value)
    else:
        container[key] = value


def _expect_end(text: str, position: int, end: int) -> None:
    position = space(text, position)
    if position < end:
        raise _BrokenError(position, TEXT_BEHIND)


def _key(text: str, position: int, end: int) -> tuple[str, int]:
    """A key and its colon: (key, offset behind the colon)."""
    if text[position] != '"':
        raise _BrokenError(position, "a key in double quotes is missing")
    key, position = _string(text, position, end)
    position = space(text, position)
    if position >= end:
        raise _BrokenError(end, "the text ends", at_end=True)
    if text[position] != ":":
        raise _BrokenError(position, "a colon is missing behind a key")
    return key, position + 1


def _string(text: str, position: int, end: int) -> tuple[str, int]:
    try:
        value, behind = scanstring(text, position + 1, True)
    except JSONDecodeError as error:
        # An escape cut in the middle looks invalid, and is only short.
        cut = error.msg.startswith("Unterminated") or ("escape" in error.msg and end - error.pos <= 6)
        if cut:
            raise _BrokenError(end, "the text ends inside a string", at_end=True) from None
        raise _BrokenError(error.pos, "a string holds a line break, a control character or a bad escape") from None
    return value, behind


def _scalar(text: str, position: int, end: int, found: Scan) -> tuple[Any, int]:
    if text[position] == '"':
        return _string(text, position, end)
    match = _WORD.match(text, position)
    if match is None:
        raise _BrokenError(position, "a value is missing")
    word = match[0]
    behind = match.end()
    if word in _WORDS:
        return _WORDS[word], behind
    if word in _NOT_FINITE:
        found.not_finite.append(position)
        return None, behind
    number = _NUMBER.match(word)
    if number is not None:
        return _number(word, number, position, found), behind
    if behind >= end and (_CUT_NUMBER.match(word) or any(whole.startswith(word) for whole in (*_WORDS, "NaN"))):
        raise _BrokenError(end, "the text ends inside a value", at_end=True)
    raise _BrokenError(position, "a value is missing or is no JSON value")


def _number(word: str, match: re.Match[str], position: int, found: Scan) -> float | int | None:
    if len(word) > _MAX_DIGITS or (match[1] or match[2]):
        value = float(word)
        if math.isinf(value):
            found.not_finite.append(position)
            return None
        return value
    return int(word)
