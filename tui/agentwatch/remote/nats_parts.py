"""Messages that are larger than a server takes: cut into parts, and put together again."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Final

from agentwatch.remote.wire import LARGEST_MESSAGE

HEADER: Final = "Agentwatch-Part"
_ROOM: Final = 1024
"""What a server counts besides: the header."""
_MOST_HELD: Final = 4 * LARGEST_MESSAGE
_KEEPING: Final = 512
"""Bytes that a part takes besides its own: empty ones fill the memory, too."""


def cut(data: bytes, largest: int) -> Iterator[tuple[int, bytes, dict[str, str] | None]]:
    """The number of each part, its bytes and its header; None for what is one whole."""
    if len(data) <= largest - _ROOM:
        yield 0, data, None
        return
    size = largest - _ROOM
    name, count = secrets.token_hex(8), -(-len(data) // size)
    for number in range(count):
        yield number, data[number * size : (number + 1) * size], {HEADER: f"{name} {number} {count}"}


class Joiner:
    """Puts parts together, which may come in any order, doubled, or not at all. What is never whole goes in the end."""

    def __init__(self) -> None:
        self._open: OrderedDict[tuple[str, str, int], dict[int, bytes]] = OrderedDict()
        self.held = 0
        """Bytes of parts that wait for others."""

    def add(self, host: str, data: bytes, headers: Mapping[str, str] | None) -> bytes | None:
        """The whole that this is, or completes; None where something of it is still to come."""
        part = headers.get(HEADER) if headers else None
        if part is None:
            return data
        name, number, count = [*part.split(" "), "", ""][:3]
        if not (number.isdecimal() and count.isdecimal() and int(number) < int(count) <= _MOST_HELD // _ROOM):
            return None
        parts = self._open.setdefault((host, name, int(count)), {})
        if int(number) not in parts:
            parts[int(number)] = data
            self.held += len(data) + _KEEPING
        if len(parts) < int(count):
            while self.held > _MOST_HELD:
                self._close(next(iter(self._open)))
            return None
        whole = b"".join(parts[at] for at in range(int(count)))
        self._close((host, name, int(count)))
        return whole

    def _close(self, which: tuple[str, str, int]) -> None:
        self.held -= sum(len(part) + _KEEPING for part in self._open.pop(which).values())
