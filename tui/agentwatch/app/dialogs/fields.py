"""The rows of a dialog: labels of ours with fields of the operator's, and the line that says what the key would do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from agentwatch.text import clean

if TYPE_CHECKING:
    from agentwatch.decisions.face import OperatorDesk

LABEL: Final = 10
"""Cells of the column with the labels."""
_GAP: Final = 2


def line_input(placeholder: str, **options: object) -> Input:
    """One line in which the operator writes."""
    return Input(placeholder=placeholder, compact=True, select_on_focus=False, **options)  # type: ignore[arg-type]


class _Spot(NamedTuple):
    """Where an option stands, in cells."""

    line: int
    start: int
    end: int


class Choice(Widget, can_focus=True):
    """One of a few options in safe words, in as many lines as they need. Arrow keys take the next one.

    `chosen` is the place of the one that is taken, from 0 on, None if none is yet.
    """

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
        self._options = options
        self.chosen = chosen

    def render(self) -> Content:
        lines: list[Content] = []
        for number, spot in enumerate(self._spots(self.content_size.width)):
            taken = number == self.chosen
            words = f"{'●' if taken else '○'} {self._options[number]}"
            option = Content.styled(words, "bold $text-accent" if taken else "$text-muted")
            if spot.line == len(lines):
                lines.append(option)
            else:
                lines[-1] = Content.assemble(lines[-1], " " * _GAP, option)
        return Content("\n").join(lines)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        return self._spots(width)[-1].line + 1

    def action_step(self, by: int) -> None:
        """Take the next one, or the one before."""
        before = self.chosen if self.chosen is not None else -1 if by > 0 else 0
        self._take((before + by) % len(self._options))

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        for number, spot in enumerate(self._spots(self.content_size.width)):
            if offset is not None and offset.y == spot.line and spot.start <= offset.x < spot.end:
                self._take(number)

    def _spots(self, width: int) -> list[_Spot]:
        spots: list[_Spot] = []
        line = start = 0
        for words in self._options:
            size = 2 + cell_len(words)
            if start and start + size > width:
                line, start = line + 1, 0
            spots.append(_Spot(line, start, start + size))
            start += size + _GAP
        return spots

    def _take(self, number: int) -> None:
        if number != self.chosen:
            self.chosen = number
            self.refresh()
            self.post_message(self.Changed())


class Options(Choice):
    """The options of an asker, one below the other: label and description, cleaned, behind a mark and a bar of ours.

    Where `several` can be taken, arrow keys move, and space takes the one they are at, or gives it back.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "take", "Take", show=False)]

    def __init__(self, options: Sequence[tuple[str, str]], *, several: bool) -> None:
        super().__init__([label for label, _ in options], None)
        self._descriptions = [description for _, description in options]
        self._several = several
        self._taken: set[int] = set()

    @property
    def taken(self) -> list[int]:
        """The places of those that are taken, in their order."""
        return sorted(self._taken)

    def render(self) -> Content:
        return Content("\n").join(line for option in self._lines(self.content_size.width) for line in option)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        return sum(map(len, self._lines(width)))

    def action_take(self) -> None:
        """Take the one under the cursor, or give it back."""
        if not self._several or self.chosen is None:
            self.action_step(1)
        if self._several and self.chosen is not None:
            self._toggle(self.chosen)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None:
            lines = self._lines(self.content_size.width)
            places = [number for number, option in enumerate(lines) for _ in option]
            self._take(places[offset.y])
            if self._several:
                self._toggle(places[offset.y])

    def _take(self, number: int) -> None:
        if not self._several:
            self._taken = {number}
        super()._take(number)

    def _toggle(self, number: int) -> None:
        self._taken ^= {number}
        self.refresh()
        self.post_message(self.Changed())

    def _lines(self, width: int) -> list[list[Content]]:
        """Of each option, its lines."""
        options: list[list[Content]] = []
        marks = ("□", "■") if self._several else ("○", "●")
        for number, (label, description) in enumerate(zip(self._options, self._descriptions, strict=True)):
            taken = number in self._taken
            style = "bold $text-accent" if taken else ""
            here = "›" if self._several and number == self.chosen else " "
            room = max(width - 5, 8)
            words = [Content.styled(line.plain, style) for line in Content(label).wrap(room)]
            words += [Content.styled(line.plain, "$text-muted") for line in Content(description).wrap(room)]
            first = Content.assemble((f"{here}{marks[taken]} ", style or "$text-muted"), words[0])
            options.append([first, *(Content.assemble(("  ┊ ", "$text-muted"), line) for line in words[1:] if line)])
        return options


class Row(Horizontal):
    """A label of ours and a field of the operator's."""

    # Textual looks at the children anew only where the row itself has a rule for its focus.
    DEFAULT_CSS = f"""
    Row {{ height: auto; }}
    Row:focus-within {{ text-style: none; }}
    Row > .label {{ width: {LABEL}; color: $text-muted; }}
    Row:focus-within > .label {{ color: $text-accent; text-style: bold; }}
    """

    def __init__(self, label: str, field: Input | Choice | Static) -> None:
        super().__init__()
        self._label = label
        self._field = field

    def compose(self) -> ComposeResult:
        yield Static(self._label, classes="label", markup=False)
        yield self._field


class Unlock(Row):
    """Asks for the passphrase of the key that signs, once that key is found locked."""

    def __init__(self, desk: OperatorDesk) -> None:
        self._passphrase = Input(
            placeholder="the passphrase of the key that signs decisions", password=True, compact=True
        )
        super().__init__("unlock", self._passphrase)
        self.display = False
        self._desk = desk

    async def open(self) -> str | None:
        """Unlock the key with what was typed. Returns why it cannot sign yet, a sentence; None if it can.

        Raises KeyProblemError.
        """
        if not self._passphrase.value:
            why = await asyncio.to_thread(self._desk.why_locked)
            if why is None:
                return None
            self.display = True
            self._passphrase.focus()
            return f"{clean(why[:1].upper() + why[1:], 1_000)}: type its passphrase, then press ctrl+s."
        with self._passphrase.prevent(Input.Changed):
            passphrase, self._passphrase.value = self._passphrase.value, ""
        await asyncio.to_thread(self._desk.unlock, passphrase)
        self.display = False
        return None


class Facts(Widget):
    """Lines of ours. Where a clock runs in one of them, no other is painted again."""

    def __init__(self) -> None:
        super().__init__(id="facts")
        self._lines: list[Content] = []

    def tell(self, lines: Sequence[Content]) -> None:
        """Show these lines from now on."""
        before, self._lines = self._lines, list(lines)
        if len(before) != len(lines):
            self.refresh(layout=True)
            return
        for y, (one, other) in enumerate(zip(before, lines, strict=True)):
            if not one.is_same(other):
                self.refresh(Region(0, y, self.size.width, 1))

    def render(self) -> Content:
        return Content("\n").join(self._lines)


class Standing(Static):
    """The line that says what the key would do. It looks like something to click, and is not."""

    _said = Content()

    def tell(self, words: Content) -> None:
        """Say this from now on."""
        if not words.is_same(self._said):
            self._said = words
            self.update(words)

    def on_click(self) -> None:
        self.app.notify("A click decides nothing: press ctrl+s.", markup=False, timeout=3)
