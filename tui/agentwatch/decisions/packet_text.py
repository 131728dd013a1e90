"""Changes single keys of a handoff packet in its text: every other byte stays as its author wrote it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from agentwatch.contracts.shapes import Contract
from agentwatch.contracts.signatures import WRAPPER, contract_of, leading_contract_of, unwrapped

_OBJECT: Final = re.compile(r"^[ \t\ufeff]*\{", re.MULTILINE)
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_MOST: Final = 50
"""Places where a packet could begin that are tried."""

_decode: Final = json.JSONDecoder().raw_decode


class Member(NamedTuple):
    """One key of an object. `start` is the offset of the key's quotation mark; the value is `first` up to `behind`."""

    key: str
    start: int
    first: int
    behind: int


class PacketText:
    """A text with a handoff packet in it: bare JSON, or a block of a Markdown document.

    Raises ValueError where there is no sound packet in it.
    """

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self._start = _start_of(text, name)

    def put(self, key: str, value: object) -> None:
        """Set a key of the packet; a new one comes last."""
        for member in self._members():
            if member.key == key:
                self._splice(member.first, member.behind, _written(value))
                return
        last = self._members()[-1]
        colon = self.text[_behind(self.text, last.start) : last.first]
        self._splice(last.behind, last.behind, f",{self._gap(last.start)}{_written(key)}{colon}{_written(value)}")

    def append(self, key: str, entries: Sequence[str]) -> None:
        """Append texts to a list of the packet; a list that is missing, empty or no list is made of them alone."""
        found = next((member for member in self._members() if member.key == key), None)
        elements = _elements(self.text, found.first) if found and self.text[found.first] == "[" else []
        if not elements:
            self.put(key, list(entries))
            return
        first, behind = elements[-1]
        gap = self._gap(first)
        self._splice(behind, behind, "".join(f",{gap}{_written(entry)}" for entry in entries))

    def remove(self, key: str) -> None:
        """Take a key out, if it is there; not the only one."""
        members = self._members()
        for index, member in enumerate(members):
            if member.key != key:
                continue
            if index:
                self._splice(members[index - 1].behind, member.behind, "")
            elif len(members) > 1:
                self._splice(member.start, members[1].start, "")
            return

    def _members(self) -> list[Member]:
        return _members_of(self.text, self._start)

    def _gap(self, offset: int) -> str:
        """The white space in front of a place."""
        start = offset
        while self.text[start - 1] in " \t\r\n":
            start -= 1
        return self.text[start:offset]

    def _splice(self, first: int, behind: int, new: str) -> None:
        self.text = self.text[:first] + new + self.text[behind:]


def _start_of(text: str, name: str) -> int:
    """The offset of the packet's brace."""
    signature = leading_contract_of
    for match in list(_OBJECT.finditer(text))[:_MOST]:
        start = match.end() - 1
        try:
            value, _ = _decode(text, start)
        except (ValueError, RecursionError):
            continue
        if signature(value, name) is Contract.HANDOFF_PACKET:
            if unwrapped(value) is value:
                return start
            return next(member.first for member in _members_of(text, start) if member.key == WRAPPER)
        signature = contract_of
    raise ValueError("no sound handoff packet in it")


def _members_of(text: str, start: int) -> list[Member]:
    """The members of a sound object that begins at an offset."""
    found = []
    at = _skip(text, start + 1)
    while text[at] != "}":
        key, behind = _decode(text, at)
        first = _skip(text, _skip(text, behind) + 1)
        end = _behind(text, first)
        found.append(Member(key, at, first, end))
        at = _after_comma(text, end)
    return found


def _elements(text: str, start: int) -> list[tuple[int, int]]:
    """Where the elements of a sound array begin and end."""
    found = []
    at = _skip(text, start + 1)
    while text[at] != "]":
        end = _behind(text, at)
        found.append((at, end))
        at = _after_comma(text, end)
    return found


def _after_comma(text: str, offset: int) -> int:
    offset = _skip(text, offset)
    return _skip(text, offset + 1) if text[offset] == "," else offset


def _behind(text: str, start: int) -> int:
    """The offset behind the value that begins at one."""
    end: int = _decode(text, start)[1]
    return end


def _skip(text: str, offset: int) -> int:
    match = _SPACE.match(text, offset)
    return match.end() if match else offset


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
