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
MAX_PARTS: Final = 20_000  # parts of a text whose places are looked for, about 30 ms

_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[][{},:]|[^][{},:"\s]++', re.DOTALL)
_BEFORE_PART: Final = ("{", "[", ",")
_DIGITS: Final = 4_000  # Python refuses to read integers of more.
# Half of a surrogate pair: the parser would make a character of it that no encoding can write.
_LONE_SURROGATE: Final = re.compile(
    r"(\\\\)|(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)


def _parse(text: str) -> tuple[Any, set[str]]:
    """(a value, the numbers in it that JSON does not have, read as null, and "" where a key stands twice)."""
    odd = set[str]()

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(made := dict(pairs)) != len(pairs):
            odd.add("")
        return made

    def number(text: str) -> float | None:
        if text.lstrip("-").isdigit() and len(text) < _DIGITS:
            return int(text)
        if math.isfinite(value := float(text)):
            return value
        odd.add(text)
        return None

    return json.loads(text, object_pairs_hook=members, parse_float=number, parse_int=number, parse_constant=number), odd


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


def _scan(text: str, most: float = math.inf) -> tuple[list[tuple[Location, int]], list[str], int, int | None]:
    """(parts as keys in quotes and indices with offsets, `most` of them; the brackets that would close the text; where
    the last whole part of the innermost ends; where it is too deep)."""
    parts: list[tuple[Location, int]] = [((), len(text) - len(text.lstrip()))]
    closing, steps = list[str](), list[Any]()
    before, whole = "", 0
    for match in _TOKEN.finditer(text):
        mark, at = match[0], match.start()
        if len(parts) > most or (mark in "{[" and len(closing) == MAX_DEPTH):
            return parts, closing, whole, at
        if closing and before in _BEFORE_PART and mark not in "]}":
            if closing[-1] == "}":
                steps[-1] = mark
            parts.append(((*steps,), at))
        if mark in "{[":
            closing.append("}" if mark == "{" else "]")
            steps.append(0)
        elif mark in "}]":
            del closing[-1:], steps[-1:]
        elif mark == "," and closing and closing[-1] == "]":
            steps[-1] += 1
        if mark in "{[}],":
            whole = at if mark == "," else match.end()
        before = mark
    return parts, closing, whole, None


class JsonSource:
    """One JSON text; `complete` unless it breaks off, and `whole` where `value` is all that it says."""

    def __init__(self, text: str, first_line: int = 1) -> None:
        if "\\ud" in text or "\\uD" in text:
            # The same length as before, so that offsets stay true.
            text = _LONE_SURROGATE.sub(lambda match: match[1] or match[2] or "\\ufffd", text)
        self._text, self._first_line = text, first_line
        self.value: Any = None
        self._odd = set[str]()
        self._broken: tuple[str, int] | None = None
        deep = _scan(text)[3] if text.count("{") + text.count("[") > MAX_DEPTH else None
        try:
            if deep is None:
                self.value, self._odd = _parse(text)
            else:
                self._broken = "DOC006", deep
        except json.JSONDecodeError as error:
            self._broken = _break_of(text, error)
            deep = error.pos
        if deep is not None:
            # Read it as far as it goes, with its brackets closed.
            _, closing, whole, _ = _scan(text[:deep])
            for part in (text[:whole], text[:deep]):
                with suppress(ValueError):
                    self.value = _parse(part + "".join(reversed(closing)))[0]
        self.whole = self._broken is None
        self.complete = self._broken is None or self._broken[0] == "DOC006"

    @cached_property
    def _parts(self) -> list[tuple[Location, int]]:
        """The parts of a sound text, by their places, with the offsets at which they begin."""
        parts = _scan(self._text, MAX_PARTS)[0]
        return [
            (tuple(json.loads(step, strict=False) if isinstance(step, str) else step for step in steps), at)
            for steps, at in parts
        ]

    def line_of(self, location: Location) -> int:
        """The 1-based line of a place: a key's line, an array element's line, of what encloses it, or at the top."""
        offsets = dict(self._parts)
        above = (location[:end] for end in range(len(location) - 1, -1, -1))
        # What the metadata lack may stand at the top.
        return self._line(next(offsets[one] for one in (location, location[-1:], *above) if one in offsets)) + 1

    def judge(self, findings: Findings) -> None:
        """Note what is wrong with the text itself, whatever contract it follows."""
        if self._broken is not None:
            findings.add(self._broken[0], self._line(self._broken[1]), limit=MAX_DEPTH)
            return
        known = set[Location]()
        for location, at in self._parts if "" in self._odd else ():
            if location in known:
                findings.add("DOC004", self._line(at), key=quoted(".".join(map(str, location)), 60))
            known.add(location)
        for match in _TOKEN.finditer(self._text) if self._odd else ():
            if match[0] in self._odd:
                findings.add("DOC005", self._line(match.start()))

    def _line(self, offset: int) -> int:
        """The index from 0 of the line in the file."""
        return self._first_line - 1 + self._text.count("\n", 0, offset)
