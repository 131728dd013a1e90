"""Changes single keys of a handoff packet in its text: every other byte stays as its author wrote it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from agentwatch.contracts.json_text import Node
from agentwatch.contracts.shapes import Contract
from agentwatch.contracts.signatures import WRAPPER, contract_of, leading_contract_of, unwrapped

_OBJECT: Final = re.compile(r"^[ \t\ufeff]*\{", re.MULTILINE)
_MOST: Final = 50
"""Places where a packet could begin that are tried."""


class PacketText:
    """A text with a handoff packet in it: bare JSON, or a block of a Markdown document.

    Raises ValueError where there is no sound packet in it.
    """

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self._start = _start_of(text, name)

    @property
    def value(self) -> dict[str, Any]:
        """The packet."""
        found: dict[str, Any] = Node(self.text, self._start).value
        return found

    @property
    def around(self) -> tuple[str, str]:
        """What stands before the packet, and behind it."""
        return self.text[: self._start], self.text[Node(self.text, self._start).end :]

    def put(self, key: str, value: object) -> None:
        """Set a key of the packet; a new one comes last."""
        packet = Node(self.text, self._start)
        there = packet.part(key)
        if there is not None:
            self._splice(there.start, there.end, _written(value))
            return
        last = packet.parts[-1]
        colon = self.text[Node(self.text, last.begins).end : last.start]
        new = f",{self._gap(last.begins)}{_written(key)}{colon}{_written(value)}"
        self._splice(last.end, last.end, new)

    def append(self, key: str, entries: Sequence[str]) -> None:
        """Append texts to a list of the packet; a list that is missing, empty or no list is made of them alone."""
        there = Node(self.text, self._start).part(key)
        if there is None or not isinstance(there.value, list) or not there.parts:
            self.put(key, list(entries))
            return
        last = there.parts[-1]
        gap = self._gap(last.start)
        self._splice(last.end, last.end, "".join(f",{gap}{_written(entry)}" for entry in entries))

    def remove(self, key: str) -> None:
        """Take a key out, if it is there; not the only one."""
        parts = Node(self.text, self._start).parts
        index = next((index for index, part in enumerate(parts) if part.step == key), None)
        if index:
            self._splice(parts[index - 1].end, parts[index].end, "")
        elif index == 0 and len(parts) > 1:
            self._splice(parts[0].begins, parts[1].begins, "")

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
        try:
            node = Node(text, match.end() - 1)
        except (ValueError, RecursionError):
            continue
        if signature(node.value, name) is Contract.HANDOFF_PACKET:
            inner = None if unwrapped(node.value) is node.value else node.part(WRAPPER)
            return inner.start if inner else node.start
        signature = contract_of
    raise ValueError("no sound handoff packet in it")


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
