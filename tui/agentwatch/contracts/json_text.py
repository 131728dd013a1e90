"""JSON text to value; the lines of places, and what can be had of a text that breaks off, only for a finding."""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

from agentwatch.contracts.rules import Findings, Location
from agentwatch.text import quoted

MAX_DEPTH: Final = 100  # arrays and objects inside each other; the contracts need five. Far below any recursion limit
MAX_PARTS: Final = 20_000  # parts of one object or array in which places are looked for, about 30 ms

# What stands before a part (white space, the comma of the one before), and its key; behind the last there is none.
_PART: Final = re.compile(
    r'([ \t\n\r]*+(?:,[ \t\n\r]*+)?)(?:("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\n\r]*+:[ \t\n\r]*+)?(?=[^\]}])', re.DOTALL
)
_MARK: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[][{},]', re.DOTALL)
_DIGITS: Final = 4_000
# Half of a surrogate pair: the parser would make a character of it that no encoding can write.
_LONE_SURROGATE: Final = re.compile(
    r"(\\\\)|(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)


def _parse(text: str) -> tuple[Any, bool]:
    """(a value, whether parsers make different things of it), numbers that JSON does not have as null."""
    odd: list[object] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(made := dict(pairs)) != len(pairs):
            odd.append(made)
        return made

    def number(text: str) -> float | None:
        if text.lstrip("-").isdigit() and len(text) < _DIGITS:
            return int(text)
        if math.isfinite(value := float(text)):
            return value
        odd.append(text)
        return None

    value = json.loads(text, object_pairs_hook=members, parse_float=number, parse_int=number, parse_constant=number)
    return value, bool(odd)


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


def _break_of(text: str, error: json.JSONDecodeError) -> tuple[str, int]:
    """(the rule that a break breaks, its offset): a text that ends there, or inside of a word, is only cut off."""
    if error.msg == "Extra data":
        return "DOC007", error.pos
    end = len(text.rstrip(" \t\n\r"))
    if error.msg.startswith("Unterminated") or re.fullmatch(r"[\w.+-]{0,5}", text[error.pos : end]):
        return "DOC002", end
    if error.msg.startswith("Illegal"):
        # Newer versions of Python name the comma, older ones the bracket behind it.
        return "DOC001", len(text) - len(text[error.pos + 1 :].lstrip())
    return "DOC001", error.pos


def _scan(text: str) -> tuple[list[str], int, int | None]:
    """(the brackets that would close a text, where the last whole part of the innermost ends, where it is too deep)."""
    closing: list[str] = []
    whole = 0
    for match in _MARK.finditer(text):
        mark = match[0]
        if mark in "{[":
            if len(closing) == MAX_DEPTH:
                return closing, whole, match.start()
            closing.append("}" if mark == "{" else "]")
        elif mark in "}]":
            del closing[-1:]
        if mark in "{[}],":
            whole = match.start() if mark == "," else match.end()
    return closing, whole, None


class JsonSource:
    """One JSON text; `complete` unless it breaks off, and `whole` where `value` is all that it says."""

    def __init__(self, text: str, first_line: int = 1) -> None:
        if "\\ud" in text or "\\uD" in text:
            # The same length as before, so that offsets stay true.
            text = _LONE_SURROGATE.sub(lambda match: match[1] or match[2] or "\\ufffd", text)
        self._text = self._sound = text
        self._first_line = first_line
        self.value: Any = None
        self._odd = False
        self._broken: tuple[str, int] | None = None
        deep = _scan(text)[2] if text.count("{") + text.count("[") > MAX_DEPTH else None
        try:
            if deep is None:
                self.value, self._odd = _parse(text)
            else:
                self._broken = "DOC006", deep
        except json.JSONDecodeError as error:
            self._broken = _break_of(text, error)
            deep = error.pos
        if deep is not None:
            self._parse_part(text[:deep])
        self.whole = self._broken is None
        self.complete = self._broken is None or self._broken[0] == "DOC006"

    def _parse_part(self, text: str) -> None:
        """Read a text that breaks off, with its brackets closed."""
        closing, whole, _ = _scan(text)
        for part in (text, text[:whole]):
            self._sound = part + "".join(reversed(closing))
            with suppress(ValueError):
                self.value, self._odd = _parse(self._sound)
                return
        self._sound = ""

    def line_of(self, location: Location) -> int | None:
        """The 1-based line of a place: a key's line, an array element's line, of what encloses it, or at the top."""
        if not self._sound:
            return None
        node = self._node
        for step in location:
            if (part := node.part(step) or self._node.part(location[-1])) is None:
                break
            node = part
        return self._line(node.begins) + 1

    def judge(self, findings: Findings) -> None:
        """Note what is wrong with the text itself, whatever contract it follows."""
        if (broken := self._broken) is not None:
            findings.add(broken[0], self._line(broken[1]), limit=MAX_DEPTH)
        nodes: list[tuple[Location, Node]] = [((), self._node)] if self._odd else []
        for location, node in nodes:
            if isinstance(node.value, float) and not math.isfinite(node.value):
                findings.add("DOC005", self._line(node.start))
            known: set[str | int] = set()
            for part in node.parts:
                if part.step in known:
                    key = quoted(".".join(map(str, (*location, part.step))), 60)
                    findings.add("DOC004", self._line(part.begins), key=key)
                known.add(part.step)
                nodes.append(((*location, part.step), part))

    @cached_property
    def _node(self) -> Node:
        return Node(self._sound, len(self._sound) - len(self._sound.lstrip()))

    def _line(self, offset: int) -> int:
        """The index from 0 of the line in the file."""
        return self._first_line - 1 + self._text.count("\n", 0, offset)
