"""Places in JSON texts. `Node` is for a sound one, and quick; `Scan` reads what can be had of one that breaks off.

The C parser says neither where a key stands nor what came before an error. A node decodes what it is asked for, a
value at a time; the scanner is a loop some fifty times slower, and runs only where a text is broken.
"""

from __future__ import annotations

import json
import math
import re
from functools import partial
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]
from sys import maxsize
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

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

    __slots__ = ("_behind", "_most", "_parts", "_text", "begins", "end", "start", "step", "value")

    def __init__(
        self, text: str, start: int, most: int = maxsize, step: str | int = "", begins: int | None = None
    ) -> None:
        self._text, self.start, self._most = text, start, most
        self.step, self.begins = step, start if begins is None else begins
        try:
            self.value, self.end = _decode(text, start)
        except StopIteration:
            raise ValueError("a value is missing") from None
        self._parts: list[Node] = []
        self._behind = start + 1 if self.value and text[start] in "{[" else self.end
        """Where the parts are read on."""

    @property
    def parts(self) -> list[Node]:
        """The members of an object, or the entries of an array."""
        while self._next() is not None:
            pass
        return self._parts

    def _next(self) -> Node | None:
        """The part behind those that were read, None where there is no other."""
        known = len(self._parts)
        if self._behind >= self.end or known >= self._most:
            return None
        match = _PART.match(self._text, self._behind)
        if match is None:
            return None
        key = match[2]
        step = known if key is None else json.loads(key, strict=False) if "\\" in key else key[1:-1]
        part = Node(self._text, match.end(), self._most, step, match.end(1))
        self._parts.append(part)
        self._behind = part.end
        return part

    def part(self, step: str | int) -> Node | None:
        """The member with a key, of one that stands twice the last; or the entry with an index."""
        return next((part for part in reversed(self.parts) if part.step == step), None)

    def offset_of(self, location: Location) -> int:
        """Where a place begins, or what encloses one that is not there. No key may stand twice."""
        node = self
        for step in location:
            part = next((part for part in node._parts if part.step == step), None)
            while part is None and (further := node._next()) is not None:
                part = further if further.step == step else None
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


class _ScanError(Exception):
    """Ends a scan, with where the text broke; without where what follows is not looked at."""

    def __init__(self, *where: Any) -> None:
        self.broken = Break(*where) if where else None


class Scan:
    """What can be read of one JSON text. Never raises; a text without any value has the value None and is broken.

    `value` holds all that stands before a break; offsets are characters of the text. `gave_up`: it has more than
    MAX_TOKENS tokens, and the rest was not looked at.
    """

    def __init__(self, text: str) -> None:
        self.value: Any = None
        self.broken: Break | None = None
        self.places: dict[Location, int] = {}
        self.duplicates: list[tuple[Location, int]] = []
        self.not_finite: list[int] = []
        self.too_deep: int | None = None
        self.gave_up = False
        self._text, self._end = text, len(text.rstrip(" \t\n\r"))
        self._at = self._tokens = self._depth = 0
        try:
            self._read(partial(setattr, self, "value"), ())
            self._at = space(text, self._at)
            if self._at < self._end:
                self.broken = Break(self._at, TEXT_BEHIND)
        except _ScanError as end:
            self.broken = end.broken

    def _next(self) -> str:
        """The next character that is no space."""
        if self._tokens == MAX_TOKENS:
            self.gave_up = True
            raise _ScanError
        self._tokens += 1
        if self._text[self._at : self._at + 1] <= " ":
            self._at = space(self._text, self._at)
            if self._at >= self._end:
                raise _ScanError(self._end, "the text ends", True)
        return self._text[self._at]

    def _read(self, put: Callable[[Any], object], location: Location, *, member: bool = False) -> None:
        """Read a value and put it where it belongs, an array or object before what is in it."""
        character = self._next()
        if not member and len(location) <= PLACE_DEPTH:
            self.places[location] = self._at
        if character not in "{[":
            value, self._at = _scalar(self._text, self._at, self._end, self.not_finite)
            put(value)
            return
        made: Any = {} if character == "{" else []
        put(made)
        if self._depth == MAX_DEPTH:
            self.too_deep = self._at
            raise _ScanError
        self._depth += 1
        self._at += 1
        closing = "}" if character == "{" else "]"
        goes_on = self._next() != closing
        while goes_on:
            if character == "{":
                key = self._key(made, location)
                self._read(partial(made.__setitem__, key), (*location, key), member=True)
            else:
                self._read(made.append, (*location, len(made)))
            goes_on = self._next() == ","
            if not goes_on and self._text[self._at] != closing:
                raise _ScanError(self._at, "a comma or a closing bracket is missing")
            self._at += goes_on
        self._at += 1
        self._depth -= 1

    def _key(self, made: dict[str, Any], location: Location) -> str:
        """Read a key and its colon."""
        if self._next() != '"':
            raise _ScanError(self._at, "a key in double quotes is missing")
        here = self._at
        key, self._at = _string(self._text, here, self._end)
        if key in made:
            self.duplicates.append(((*location, key), here))
        if len(location) < PLACE_DEPTH:
            self.places[(*location, key)] = here
        if self._next() != ":":
            raise _ScanError(self._at, "a colon is missing behind a key")
        self._at += 1
        return key


def _string(text: str, position: int, end: int) -> tuple[str, int]:
    try:
        value, behind = scanstring(text, position + 1, True)
    except JSONDecodeError as error:
        # An escape cut in the middle looks invalid, and is only short.
        cut = error.msg.startswith("Unterminated") or ("escape" in error.msg and end - error.pos <= 6)
        if cut:
            raise _ScanError(end, "the text ends inside a string", True) from None
        raise _ScanError(error.pos, "a string holds a line break, a control character or a bad escape") from None
    return value, behind


def _scalar(text: str, position: int, end: int, not_finite: list[int]) -> tuple[Any, int]:
    if text[position] == '"':
        return _string(text, position, end)
    match = _WORD.match(text, position)
    if match is None:
        raise _ScanError(position, "a value is missing")
    word = match[0]
    behind = match.end()
    if word in _WORDS:
        return _WORDS[word], behind
    if word in _NOT_FINITE:
        not_finite.append(position)
        return None, behind
    number = _NUMBER.match(word)
    if number is not None and len(word) <= _MAX_DIGITS and not number[1] and not number[2]:
        return int(word), behind
    if number is not None:
        if math.isinf(value := float(word)):
            not_finite.append(position)
        return (None if math.isinf(value) else value), behind
    if behind >= end and (_CUT_NUMBER.match(word) or any(whole.startswith(word) for whole in (*_WORDS, "NaN"))):
        raise _ScanError(end, "the text ends inside a value", True)
    raise _ScanError(position, "a value is missing or is no JSON value")
