"""JSON text to value; the lines of places, and what can be had of a text that breaks off, only for a finding."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, NamedTuple, NoReturn

from agentwatch.contracts.rules import Findings, Location
from agentwatch.text import quoted

REPLACEMENT: Final = "\ufffd"
MAX_DEPTH: Final = 100  # arrays and objects inside each other; the contracts need five. Far below any recursion limit
MAX_PARTS: Final = 20_000  # parts of one object or array in which places are looked for, about 30 ms

_REPLACED: Final = re.compile(r"\ufffd|\\ufffd")
_SPACE: Final = re.compile(r"[ \t\n\r]*")
# What stands before a part (white space, the comma of the one before), and its key; behind the last there is none.
_PART: Final = re.compile(
    r'([ \t\n\r]*+(?:,[ \t\n\r]*+)?)(?:("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\n\r]*+:[ \t\n\r]*+)?(?=[^\]}])', re.DOTALL
)
_TOKEN: Final = re.compile(
    r'("(?:[^"\\\0-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+)("?)|[][{}:,]|[-+.0-9A-Za-z_]+', re.DOTALL
)
_NO_BRACKETS: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^][{}"]+', re.DOTALL)
_WORD: Final = re.compile(r"(?:true|false|null|NaN|-?Infinity|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)\Z")
_CUT: Final = re.compile(
    r"(?:t(?:r(?:ue?)?)?|f(?:a(?:l(?:se?)?)?)?|n(?:u(?:ll?)?)?|N(?:aN?)?|-?(?:0|[1-9][0-9]*)?(\.[0-9]*)?([eE][-+]?)?)\Z"
)
_ESCAPE: Final = 6  # characters of the longest escape: so near to the end a bad one may only be cut
_MISSING: Final = {
    "value": "a value is missing",
    "key": "a key in double quotes is missing",
    "colon": "a colon is missing behind a key",
    "comma": "a comma or a closing bracket is missing",
}
_DIGITS: Final = 4_000
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
    return number if math.isfinite(number := float(text)) else _refuse(text)


def _refuse(_text: str) -> NoReturn:
    raise _OddError


# Made once: to make one takes as long as to parse a handoff.
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_refuse)
_TOLERANT: Final = json.JSONDecoder(
    parse_int=lambda text: int(text) if len(text) < _DIGITS else None,
    parse_float=lambda text: number if math.isfinite(number := float(text)) else None,
    parse_constant=lambda _: None,
)
# Python refuses to read integers of thousands of digits.
_decode: Final = json.JSONDecoder(  # type: ignore[attr-defined]
    strict=False, parse_int=lambda text: int(text) if len(text) < _DIGITS else math.inf
).scan_once


class Node:
    """A sound JSON value from `start` to `end`; a part, with its `step`, `begins` at its key. May raise ValueError."""

    def __init__(self, text: str, start: int, step: str | int = "", begins: int | None = None) -> None:
        self._text, self.start = text, start
        self.step, self.begins = step, start if begins is None else begins
        try:
            self.value, self.end = _decode(text, start)
        except StopIteration:
            raise ValueError("a value is missing") from None

    @cached_property
    def parts(self) -> list[Node]:
        """The members of an object, or the entries of an array."""
        found: list[Node] = []
        at = self.start + 1 if self.value and self._text[self.start] in "{[" else self.end
        while at < self.end and len(found) < MAX_PARTS and (match := _PART.match(self._text, at)) is not None:
            key = match[2]
            step = len(found) if key is None else json.loads(key, strict=False) if "\\" in key else key[1:-1]
            found.append(Node(self._text, match.end(), step, match.end(1)))
            at = found[-1].end
        return found

    def part(self, step: str | int) -> Node | None:
        """The member with a key, of one that stands twice the last; or the entry with an index."""
        return next((part for part in reversed(self.parts) if part.step == step), None)

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
    """Where a text stops being JSON, and the rule that this breaks."""

    rule: str
    offset: int
    reason: str = ""


def _close(text: str) -> tuple[str, Break | None]:
    """The text up to its last whole value before it breaks, its brackets closed; and where it breaks."""
    closing: list[str] = []
    broken: Break | None = None
    # `fresh`: a bracket has just been opened, and may be closed at once.
    awaited, fresh, at, whole, end = "value", False, behind_space(text), 0, len(text.rstrip(" \t\n\r"))
    while at < end and broken is None:
        match = _TOKEN.match(text, at)
        part = match[0] if match else text[at]
        behind, is_string, is_fresh, fresh = at + len(part), part[0] == '"', fresh, False
        if awaited == "nothing":
            broken = Break("DOC007", at)
        elif match and match[1] and not match[2] and awaited in ("value", "key"):
            if behind == len(text) or (text[behind] == "\\" and end - behind <= _ESCAPE):
                break
            broken = Break("DOC001", behind, "a string holds a line break, a control character or a bad escape")
        elif (is_fresh or awaited == "comma") and part == closing[-1]:
            closing.pop()
            awaited, whole = "comma" if closing else "nothing", behind
        elif awaited == "value" and part in "{[":
            if len(closing) == MAX_DEPTH:
                broken = Break("DOC006", at)
            else:
                closing.append("}" if part == "{" else "]")
                awaited, fresh, whole = "key" if part == "{" else "value", True, behind
        elif awaited == "value" and (is_string or _WORD.match(part)):
            awaited, whole = "comma" if closing else "nothing", behind
        elif awaited == "key" and is_string:
            awaited = "colon"
        elif awaited == "colon" and part == ":":
            awaited = "value"
        elif awaited == "comma" and part == ",":
            awaited = "key" if closing[-1] == "}" else "value"
        elif awaited == "value" and (part[0].isalnum() or part[0] in "-+._"):
            if behind >= end and _CUT.match(part):
                break
            broken = Break("DOC001", at, "a value is missing or is no JSON value")
        else:
            broken = Break("DOC001", at, _MISSING[awaited])
        at = behind_space(text, behind)
    is_whole = broken is None and awaited == "nothing" and at >= end
    return text[:whole] + "".join(reversed(closing)), None if is_whole else broken or Break(
        "DOC002", end, "the text ends"
    )


class JsonSource:
    """One JSON text; `complete` unless it breaks off, and `whole` where `value` is all that it says."""

    def __init__(self, text: str, first_line: int = 1) -> None:
        if "\\ud" in text or "\\uD" in text:
            # The same length as before, so that offsets stay true.
            text = _LONE_SURROGATE.sub(lambda match: match[1] or match[2] or "\\ufffd", text)
        self._text = self._sound = text
        self._first_line = first_line
        self._odd = False
        self.value: Any = None
        broken = text.count("{") + text.count("[") > MAX_DEPTH and (
            max(accumulate(1 if each in "{[" else -1 for each in _NO_BRACKETS.sub("", text)), default=0) > MAX_DEPTH
        )
        if not broken:
            try:
                self.value = self._parsed(text)
            except json.JSONDecodeError:
                broken = True
        self._broken: Break | None = None
        if broken:
            self._sound, self._broken = _close(text)
            self.value = self._parsed(self._sound) if self._sound.strip() else None
        self.whole = self._broken is None
        self.complete = self._broken is None or self._broken.rule == "DOC006"

    def _parsed(self, text: str) -> Any:
        """The value of a sound text. Raises JSONDecodeError."""
        try:
            return _DECODER.decode(text)
        except json.JSONDecodeError:
            raise
        except (_OddError, ValueError):
            self._odd = True
            return _TOLERANT.decode(text)

    def line_of(self, location: Location) -> int | None:
        """The 1-based line of a place: a key's line, an array element's line, else that of what encloses it."""
        if not self._sound.strip():
            return None
        node = self._node
        for step in location:
            if (part := node.part(step)) is None:
                break
            node = part
        return self._line(node.begins)

    def judge(self, findings: Findings) -> None:
        """Note what is wrong with the text itself, whatever contract it follows."""
        if (bad := _REPLACED.search(self._text)) is not None:
            findings.add("DOC003", self._line(bad.start()))
        if (broken := self._broken) is not None:
            findings.add(broken.rule, self._line(broken.offset), reason=broken.reason, limit=MAX_DEPTH)
        if not self._odd or not self._sound.strip():
            return
        for location, node in self._node.walk():
            if isinstance(node.value, float) and not math.isfinite(node.value):
                findings.add("DOC005", self._line(node.start))
            known: set[str | int] = set()
            for part in node.parts:
                if part.step in known:
                    key = quoted(".".join(map(str, (*location, part.step))), 60)
                    findings.add("DOC004", self._line(part.begins), key=key)
                known.add(part.step)

    @cached_property
    def _node(self) -> Node:
        return Node(self._sound, behind_space(self._sound))

    def _line(self, offset: int) -> int:
        return self._first_line + self._text.count("\n", 0, offset)
