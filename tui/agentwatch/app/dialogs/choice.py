"""One of a few: choices in a line, or in as many as they need, one of them taken. Arrow keys take the next one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

_GAP: Final = 2


class _Place(NamedTuple):
    """Where an option stands, in cells."""

    line: int
    start: int
    end: int


class Choice(Widget, can_focus=True):
    """Options in safe words; `chosen` is the place of the one that is taken, from 0 on, None if none is yet."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,down,l,j,space", "step(1)", "Next", show=False),
        Binding("left,up,h,k", "step(-1)", "Previous", show=False),
    ]

    DEFAULT_CSS = """
    Choice { height: auto; width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    Choice:focus { background: $cursor-row; }
    Choice:focus:ansi { text-style: underline; }
    """

    class Changed(Message):
        """Another one was taken."""

    def __init__(self, options: Sequence[str], chosen: int | None = 0, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._options = list(options)
        self.chosen = chosen

    def render(self) -> Content:
        lines: list[Content] = []
        for number, place in enumerate(self._places(self.content_size.width)):
            taken = number == self.chosen
            words = f"{'●' if taken else '○'} {self._options[number]}"
            option = Content.styled(words, "bold $text-accent" if taken else "$text-muted")
            if place.line == len(lines):
                lines.append(option)
            else:
                lines[-1] = Content.assemble(lines[-1], " " * _GAP, option)
        return Content("\n").join(lines)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        return self._places(width)[-1].line + 1

    def action_step(self, by: int) -> None:
        """Take the next one, or the one before."""
        before = self.chosen if self.chosen is not None else -1 if by > 0 else 0
        self._take((before + by) % len(self._options))

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        for number, place in enumerate(self._places(self.content_size.width)):
            if offset is not None and offset.y == place.line and place.start <= offset.x < place.end:
                self._take(number)

    def _places(self, width: int) -> list[_Place]:
        places: list[_Place] = []
        line = start = 0
        for words in self._options:
            size = 2 + cell_len(words)
            if start and start + size > width:
                line, start = line + 1, 0
            places.append(_Place(line, start, start + size))
            start += size + _GAP
        return places

    def _take(self, number: int) -> None:
        if number != self.chosen:
            self.chosen = number
            self.refresh()
            self.post_message(self.Changed())
