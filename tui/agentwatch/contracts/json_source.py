"""JSON text to Python value, with the line of each place, and whatever can be had of a text that breaks off."""

from __future__ import annotations

import json
import math
import re
from functools import cached_property
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any, Final, NoReturn

from agentwatch.contracts.json_text import (
    MAX_DEPTH,
    MAX_TOKENS,
    TEXT_BEHIND,
    Break,
    Location,
    Node,
    Scan,
    nearest,
    space,
)
from agentwatch.text import quoted

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement

REPLACEMENT: Final = "\ufffd"

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


# Made once: to make one takes as long as to parse a handoff.
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)
_TOLERANT: Final = json.JSONDecoder(parse_float=_finite, parse_constant=lambda _: None)


class JsonSource:
    """One JSON text. `value` is what was read of it, possibly only a part.

    `complete` is False where the text does not parse or ends in the middle. `whole` is False where `value` is not
    everything the text says, so that nothing can be said of what is missing. `first_line` is the number of the text's
    first line in the file it stands in.
    """

    def __init__(self, text: str, first_line: int = 1) -> None:
        if "\\ud" in text or "\\uD" in text:
            text = _LONE_SURROGATE.sub(_replace_lone_surrogate, text)
        self._text = text
        self._first_line = first_line
        self._counted = (0, first_line)
        self._suspicious = False
        self._broken: Break | None = None
        self.value: Any = None
        try:
            self.value = self._parsed()
        except JSONDecodeError as error:
            self._take_scan(Break(error.pos, error.msg, at_end=error.pos >= len(text.rstrip())))
        except (ValueError, RecursionError):
            # An integer of thousands of digits, or brackets without end: sound JSON that nobody can use.
            self._take_scan(None)

    @property
    def complete(self) -> bool:
        return self._broken is None

    @property
    def whole(self) -> bool:
        return self._broken is None and not self._too_deep

    @property
    def text_behind(self) -> int | None:
        """Offset of text that follows a sound value, None where there is none."""
        broken = self._broken
        return broken.offset if broken is not None and broken.reason == TEXT_BEHIND else None

    def line_of(self, location: Location) -> int | None:
        """The 1-based line of a place: a key's line, an array element's line, else that of what encloses it."""
        if not self._suspicious and not self._too_deep:
            return self._line(self._node.offset_of(location))
        offset = nearest(self._scan.places, location)
        return None if offset is None else self._line(offset)

    def judge(self, judgement: Judgement) -> None:
        """Note what is wrong with the text itself, whatever contract it follows."""
        if REPLACEMENT in self._text or "\\ufffd" in self._text:
            offsets = (self._text.find(REPLACEMENT), self._text.find("\\ufffd"))
            judgement.add_at("DOC003", self._line(min(offset for offset in offsets if offset >= 0)))
        if not self._suspicious and not self._too_deep:
            return
        found = self._scan
        if self._too_deep:
            judgement.add_at("DOC006", self._line(found.too_deep or 0), limit=MAX_DEPTH)
        elif self._broken is not None:
            self._judge_break(self._broken, judgement)
        for location, offset in found.duplicates:
            key = quoted(".".join(str(step) for step in location), 60)
            judgement.add_at("DOC004", self._line(offset), key=key)
        for offset in found.not_finite:
            judgement.add_at("DOC005", self._line(offset))

    def _judge_break(self, broken: Break, judgement: Judgement) -> None:
        line = self._line(broken.offset)
        if broken.at_end:
            judgement.add_at("DOC002", line)
        elif broken.reason == TEXT_BEHIND:
            judgement.add_at("DOC007", line)
        else:
            judgement.add_at("DOC001", line, reason=broken.reason)

    def _take_scan(self, broken: Break | None) -> None:
        """The C parser failed at `broken`, or gave up without a place: read what the scanner can."""
        self._suspicious = True
        found = self._scan
        self.value = found.value
        self._too_deep = found.too_deep is not None
        if not self._too_deep:
            self._broken = found.broken or (broken if found.gave_up else None)

    def _parsed(self) -> Any:
        try:
            return _DECODER.decode(self._text)
        except _OddError:
            self._suspicious = True
            return _TOLERANT.decode(self._text)

    @cached_property
    def _too_deep(self) -> bool:
        return self._text.count("{") + self._text.count("[") > MAX_DEPTH and _is_too_deep(self.value)

    @cached_property
    def _scan(self) -> Scan:
        return Scan(self._text)

    @cached_property
    def _node(self) -> Node:
        return Node(self._text, space(self._text, 0), MAX_TOKENS)

    def _line(self, offset: int) -> int:
        # Most questions come in the order of the text: counting on from the last one keeps many of them linear.
        start, line = self._counted if offset >= self._counted[0] else (0, self._first_line)
        line += self._text.count("\n", start, offset)
        self._counted = (offset, line)
        return line


def _replace_lone_surrogate(match: re.Match[str]) -> str:
    # The same length as before, so that offsets stay true.
    return match[1] or match[2] or "\\ufffd"


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True
