"""JSON text to value, with the line of each place, and whatever can be had of a text that breaks off.

The C parser says neither where a key stands nor what came before an error. A node decodes what it is asked for, and a
text that breaks off is closed behind its last whole value; both run only for a finding.
"""

from __future__ import annotations

import json
import math
import re
from functools import cached_property
from itertools import accumulate
from json import JSONDecodeError
from sys import maxsize
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from agentwatch.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentwatch.contracts.findings import Findings

Location = tuple[str | int, ...]
"""A place inside a document: keys and list indices from the top, `("metadata", "delegation_path", 2)`."""

REPLACEMENT: Final = "\ufffd"
MAX_DEPTH: Final = 100
"""Arrays and objects inside each other; the contracts need five. Far below any recursion limit."""
MAX_PARTS: Final = 20_000
"""Parts of one object or array in which places are looked for, about 30 ms."""
TEXT_BEHIND: Final = "text behind the object"

_SPACE: Final = re.compile(r"[ \t\n\r]*")
# What stands before a part (white space, the comma of the one before), and its key; behind the last there is none.
_PART: Final = re.compile(
    r'([ \t\n\r]*+(?:,[ \t\n\r]*+)?)(?:("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\n\r]*+:[ \t\n\r]*+)?(?=[^\]}])', re.DOTALL
)
_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[][{}:,"]|[^][{}:,"\s]+', re.DOTALL)
_NO_BRACKETS: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^][{}"]+', re.DOTALL)
_WORD_AT: Final = re.compile(r"[-+.0-9A-Za-z_]+")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z")
_CUT_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)?(\.[0-9]*)?([eE][-+]?)?\Z")
_WORDS: Final = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_REASONS: Final = (
    ("Expecting value", "a value is missing"),
    ("Expecting ',' delimiter", "a comma or a closing bracket is missing"),
    ("Expecting ':' delimiter", "a colon is missing behind a key"),
    ("Expecting property name", "a key in double quotes is missing"),
    ("Extra data", TEXT_BEHIND),
    ("Invalid", "a string holds a line break, a control character or a bad escape"),
)
"""Reasons by how the parser's messages begin."""
_NO_VALUE: Final = "a value is missing or is no JSON value"
_DIGITS: Final = 4_000
_HUGE: Final = re.compile(rf"\d{{{_DIGITS},}}")
# Half of a surrogate pair: the parser would make a character of it that no encoding can write.
_LONE_SURROGATE: Final = re.compile(
    r"(\\\\)|(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)


class _OddError(Exception):
    """Something stands in a sound text of which parsers make different things."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _OddError
    return made


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _OddError
    return number


def _constant(_name: str) -> NoReturn:
    raise _OddError


def _finite(text: str) -> float | None:
    number = float(text)
    return None if math.isinf(number) else number


def _integer(text: str) -> int | None:
    return int(text) if len(text) < _DIGITS else None


# Made once: to make one takes as long as to parse a handoff.
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)
_TOLERANT: Final = json.JSONDecoder(parse_int=_integer, parse_float=_finite, parse_constant=lambda _: None)
_decode: Final = json.JSONDecoder(strict=False).scan_once  # type: ignore[attr-defined]


class Node:
    """A value of a sound JSON text: what it is, from `start` to `end`, and what is in it.

    As a part of another it begins with its `step`, a key or an index: a member `begins` at its key, an entry at itself.
    `most` is how many parts of one object or array are looked at. Raises ValueError where no sound value starts.
    """

    __slots__ = ("_at", "_most", "_parts", "_text", "begins", "end", "start", "step", "value")

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
        self._at = start + 1 if self.value and text[start] in "{[" else self.end

    @property
    def parts(self) -> list[Node]:
        """The members of an object, or the entries of an array."""
        while self._next() is not None:
            pass
        return self._parts

    def _next(self) -> Node | None:
        """The part behind those that were read, None where there is no other."""
        known = len(self._parts)
        match = _PART.match(self._text, self._at) if self._at < self.end and known < self._most else None
        if match is None:
            return None
        key = match[2]
        step = known if key is None else json.loads(key, strict=False) if "\\" in key else key[1:-1]
        part = Node(self._text, match.end(), self._most, step, match.end(1))
        self._parts.append(part)
        self._at = part.end
        return part

    def part(self, step: str | int) -> Node | None:
        """The member with a key, of one that stands twice the last; or the entry with an index."""
        return next((part for part in reversed(self.parts) if part.step == step), None)

    def offset_of(self, location: Location) -> int:
        """Where a place begins, or what encloses one that is not there; of keys that stand twice all must be read."""
        node = self
        for step in location:
            part = next((part for part in reversed(node._parts) if part.step == step), None)
            while part is None and (further := node._next()) is not None:
                part = further if further.step == step else None
            if part is None:
                break
            node = part
        return node.begins

    def walk(self, location: Location = ()) -> Iterator[tuple[Location, Node]]:
        """This and all that is in it, with the place of each."""
        yield location, self
        for part in self.parts:
            yield from part.walk((*location, part.step))


def behind_space(text: str, at: int = 0) -> int:
    """The offset behind white space."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


class Break(NamedTuple):
    """Where a text stops being JSON. `at_end`: it only ends too early, nothing in it is wrong."""

    offset: int
    reason: str
    at_end: bool = False


def _break_of(error: JSONDecodeError) -> Break:
    """The break that an error of the parser tells, the same of every version of Python."""
    text, at, end = error.doc, error.pos, len(error.doc.rstrip(" \t\n\r"))
    # An escape cut in the middle looks invalid, and is only short.
    ends = end - at <= 6 if "escape" in error.msg else at >= end and not error.msg.startswith("Invalid")
    if ends or error.msg.startswith("Unterminated"):
        return Break(end, "the text ends", at_end=True)
    if error.msg.startswith("Illegal trailing comma"):
        at = behind_space(text, at + 1)
        return Break(at, "a key in double quotes is missing" if text[at] == "}" else "a value is missing")
    start = at
    is_in_word = error.msg.startswith("Ex") and _WORD_AT.match(text, at) is not None
    while is_in_word and start > 0 and _WORD_AT.match(text, start - 1, start):
        start -= 1
    word = _WORD_AT.match(text, start) if is_in_word else None
    if word and (start < at or error.msg.startswith("Expecting value")):
        is_cut = _CUT_NUMBER.match(word[0]) or any(each.startswith(word[0]) for each in _WORDS[:4])
        if word.end() >= end and is_cut:
            return Break(end, "the text ends", at_end=True)
        return Break(start, _NO_VALUE)
    return Break(at, next((reason for begin, reason in _REASONS if error.msg.startswith(begin)), error.msg))


def _is_too_deep(text: str) -> bool:
    brackets = _NO_BRACKETS.sub("", text)
    return max(accumulate(1 if each in "{[" else -1 for each in brackets), default=0) > MAX_DEPTH


def _closed(text: str, end: int) -> tuple[str, int | None]:
    """(the text up to its last whole value before `end`, its brackets closed; where it is nested too deep)."""
    closing: list[str] = []
    whole, before = 0, ""
    for match in _TOKEN.finditer(text, 0, end):
        part = match[0]
        if part in "{[" and len(closing) == MAX_DEPTH:
            return text[:whole] + "".join(reversed(closing)), match.start()
        if part == '"' or not (part[0] in '{[]}:,"' or part in _WORDS or _NUMBER.match(part)):
            break
        is_key = part[0] == '"' and before != ":" and closing[-1:] == ["}"]
        before = part
        if part in "{[":
            closing.append("}" if part == "{" else "]")
        elif part in "}]":
            closing.pop()
        if not (is_key or part in ",:"):
            whole = match.end()
    return text[:whole] + "".join(reversed(closing)), None


class JsonSource:
    """One JSON text. `value` is what was read of it, possibly only a part.

    `complete` is False where the text does not parse or ends in the middle. `whole` is False where `value` is not
    everything the text says, so that nothing can be said of what is missing. `first_line` is the number of the text's
    first line in the file it stands in.
    """

    def __init__(self, text: str, first_line: int = 1) -> None:
        if "\\ud" in text or "\\uD" in text:
            # The same length as before, so that offsets stay true.
            text = _LONE_SURROGATE.sub(lambda match: match[1] or match[2] or "\\ufffd", text)
        self._text = self._sound = text
        self._counted = self._first = (0, first_line)
        self._broken: Break | None = None
        self._odd = False
        self._too_deep: int | None = None
        self.value: Any = None
        end, is_deep = len(text), text.count("{") + text.count("[") > MAX_DEPTH and _is_too_deep(text)
        try:
            self.value = self._parsed(text)
        except JSONDecodeError as error:
            self._broken = _break_of(error)
            end = self._broken.offset if error.msg.startswith("Ex") else error.pos
        except RecursionError:
            pass
        if is_deep or self._broken is not None:
            self._sound, self._too_deep = _closed(text, end)
            self.value = self._parsed(self._sound) if self._sound.strip() else None
        if self._odd:
            # Python refuses to read integers of thousands of digits.
            self._sound = _HUGE.sub(lambda match: "1e999".ljust(len(match[0])), self._sound)

    def _parsed(self, text: str) -> Any:
        """The value of a sound text. Raises JSONDecodeError and RecursionError."""
        try:
            return _DECODER.decode(text)
        except JSONDecodeError:
            raise
        except (_OddError, ValueError):
            self._odd = True
            return _TOLERANT.decode(text)

    @property
    def complete(self) -> bool:
        return self._too_deep is not None or self._broken is None

    @property
    def whole(self) -> bool:
        return self._broken is None and self._too_deep is None

    @property
    def text_behind(self) -> int | None:
        """Offset of text that follows a sound value, None where there is none."""
        broken = self._broken
        return broken.offset if broken is not None and broken.reason == TEXT_BEHIND else None

    def line_of(self, location: Location) -> int | None:
        """The 1-based line of a place: a key's line, an array element's line, else that of what encloses it."""
        return self._line(self._node.offset_of(location)) if self._sound.strip() else None

    def judge(self, findings: Findings) -> None:
        """Note what is wrong with the text itself, whatever contract it follows."""
        text = self._text
        if REPLACEMENT in text or "\\ufffd" in text:
            offsets = (text.find(REPLACEMENT), text.find("\\ufffd"))
            findings.add("DOC003", self._line(min(offset for offset in offsets if offset >= 0)))
        if self._too_deep is not None:
            findings.add("DOC006", self._line(self._too_deep), limit=MAX_DEPTH)
        elif (broken := self._broken) is not None:
            rule = "DOC002" if broken.at_end else "DOC007" if broken.reason == TEXT_BEHIND else "DOC001"
            findings.add(rule, self._line(broken.offset), reason=broken.reason)
        if not self._odd or not self._sound.strip():
            return
        for location, node in self._node.walk():
            known: set[str | int] = set()
            for part in node.parts:
                if part.step in known:
                    key = quoted(".".join(map(str, (*location, part.step))), 60)
                    findings.add("DOC004", self._line(part.begins), key=key)
                known.add(part.step)
        for _, node in self._node.walk():
            if isinstance(node.value, float) and not math.isfinite(node.value):
                findings.add("DOC005", self._line(node.start))

    @cached_property
    def _node(self) -> Node:
        return Node(self._sound, behind_space(self._sound, 0), MAX_PARTS)

    def _line(self, offset: int) -> int:
        # Most questions come in the order of the text: counting on from the last one keeps many of them linear.
        start, line = self._counted if offset >= self._counted[0] else self._first
        line += self._text.count("\n", start, offset)
        self._counted = (offset, line)
        return line
