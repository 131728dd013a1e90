"""What one look at a workspace knows of its documents: each is parsed once, for the tree and for the evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentwatch.contracts.reading import read_and_open
from agentwatch.evidence.claims import Told, told_by, told_in

if TYPE_CHECKING:
    from agentwatch.contracts.shapes import Reading


class OneLook:
    """Reads the documents of files, and remembers of each what the evidence asks for later, while they fit into
    `room` characters."""

    def __init__(self, room: int = 64 * 1024 * 1024) -> None:
        self._room = room
        self._parsed: dict[str, tuple[str, Told]] = {}

    def read(self, text: str, name: str) -> Reading | None:
        """Recognise a text, as `read_document` does."""
        opened = read_and_open(text, name)
        if opened is None:
            return None
        self._room -= len(text)
        if self._room > 0:
            self._parsed[name] = text, told_by(opened)
        return opened.reading

    def tell(self, text: str, name: str) -> Told:
        """What the text of a file says, by what was parsed where it was."""
        known = self._parsed.get(name)
        return known[1] if known is not None and known[0] == text else told_in(text, name)
