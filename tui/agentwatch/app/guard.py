"""The second line of defence: nothing that the app draws, wherever it comes from, reaches the terminal as a command."""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter


class TerminalGuard(LineFilter):
    """Replaces what is not printable and takes links away: a link's address would be written as it is.

    `agentwatch.text` shows such characters better; what it has cleaned passes unchanged.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 - Textual's signature
        return [
            segment
            if segment.control or (segment.text.isprintable() and (segment.style is None or segment.style.link is None))
            else _harmless(segment)
            for segment in segments
        ]


def _harmless(segment: Segment) -> Segment:
    text = "".join(
        character if character.isprintable() else " " if character.isspace() else "�" for character in segment.text
    )
    style = segment.style
    return Segment(text, style.update_link(None) if style is not None and style.link else style)
