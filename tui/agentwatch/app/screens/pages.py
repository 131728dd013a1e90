"""Pages of our own words over the main screen: the keys, the glyphs and the manual, and what is wrong with files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap
from typing import ClassVar, Final

from textual import events
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agentwatch import manual
from agentwatch.app.actions import COMMANDS, Group
from agentwatch.app.markdown_safe import markdown
from agentwatch.app.widgets.details.blocks import Text, lay_out
from agentwatch.app.widgets.timeline import bars
from agentwatch.delegation.task import PlacedFinding
from agentwatch.text import clean
from agentwatch.view.looks import CONTRADICTED, LOOKS, STALE

_WIDTH: Final = 84
_EDGES: Final = 6
"""Cells of border, padding, and the scroll bar with a blank before it."""
_KEYS: Final = 15
"""Cells of the column with the keys and the states."""
_SHOWN: Final = 200
"""Files with a problem that are listed."""


class PageScreen(ModalScreen[None]):
    """Shows a text under a title of ours; `write` makes it, of safe text, for a width in cells. Escape closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "dismiss", show=False),
        Binding("ctrl+c", "copy_or_dismiss", show=False),
        Binding("j", "scroll('down')", show=False),
        Binding("k", "scroll('up')", show=False),
    ]

    DEFAULT_CSS = f"""
    PageScreen {{ align: center middle; background: $background 70%; }}
    PageScreen > #page {{
        width: {_WIDTH}; max-width: 100%; height: auto; max-height: 100%;
        border: round $line; background: $background; color: $foreground; padding: 0 1; scrollbar-size-vertical: 1;
        border-title-color: $foreground; border-title-style: bold; border-subtitle-color: $text-muted;
    }}
    PageScreen #page-text {{ height: auto; width: 1fr; }}
    """

    def __init__(self, title: str, write: Callable[[int], Content], hint: str = "esc back") -> None:
        super().__init__()
        self._title = title
        self._write = write
        self._hint = hint

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="page") as page:
            page.border_title = self._title
            page.border_subtitle = self._hint
            yield Static(id="page-text", markup=False)

    def on_mount(self) -> None:
        self.query_one("#page").focus()

    def on_resize(self, event: events.Resize) -> None:
        self._fill(event.size.width)

    def turn_to(self, title: str, write: Callable[[int], Content]) -> None:
        """Show another text from its beginning."""
        self._write = write
        page = self.query_one("#page", VerticalScroll)
        page.border_title = title
        page.scroll_home(animate=False)
        self._fill(self.size.width)

    def _fill(self, width: int) -> None:
        self.query_one("#page-text", Static).update(self._write(min(width, _WIDTH) - _EDGES))

    async def action_copy_or_dismiss(self) -> None:
        """Copy what is selected with the mouse, else close."""
        try:
            self.action_copy_text()
        except SkipAction:
            await self.action_dismiss()

    def action_scroll(self, direction: str) -> None:
        """Scroll a line, as in the tree."""
        page = self.query_one("#page", VerticalScroll)
        if direction == "down":
            page.scroll_down(animate=False)
        else:
            page.scroll_up(animate=False)


class NoticesScreen(PageScreen):
    """Each with what is wrong with it and what to do. `own` are sentences about what agentwatch itself keeps."""

    def __init__(self, notices: Sequence[PlacedFinding], own: Sequence[str] = ()) -> None:
        super().__init__("Problems", lambda width: _text(notices, own, width))


def _text(notices: Sequence[PlacedFinding], own: Sequence[str], width: int) -> Content:
    if not notices and not own:
        return Content("Every file that looks like a handoff or a return could be read and belongs to a task.")
    lines = [line for sentence in own for line in _hanging(("! ", "bold $text-warning"), clean(sentence, 500), width)]
    for placed in notices[:_SHOWN]:
        rule = placed.finding.rule + "  "
        lines += _hanging((rule, "bold $accent"), clean(placed.path, 300), width, "bold")
        lines += _hanging(("  ", ""), clean(placed.finding.message, 500), width, "$text-muted")
    if len(notices) > _SHOWN:
        lines.append(Content(f"and {len(notices) - _SHOWN:,} more: `agentwatch check` lists all"))
    return Content("\n").join(lines)


def _hanging(first: tuple[str, str], words: str, width: int, style: str = "") -> Iterator[Content]:
    """The words behind what stands in front of their first line."""
    under = " " * len(first[0])
    for number, line in enumerate(Content.styled(words, style).wrap(max(width - len(under), 8))):
        yield Content.assemble(under if number else first, line)


class HelpScreen(PageScreen):
    """The keys and the glyphs, then the topics of the manual."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "topic(1)", show=False),
        Binding("left,h", "topic(-1)", show=False),
    ]

    def __init__(self) -> None:
        super().__init__("Keys", help_text, hint="← → manual   esc back")
        self._topics = ("keys", *(topic for topic in manual.topics() if topic != "keys"))
        self._shown = 0

    def action_topic(self, step: int) -> None:
        """Go on to the next topic, or back."""
        self._shown = (self._shown + step) % len(self._topics)
        topic = self._topics[self._shown]
        self.turn_to(topic.capitalize(), lambda width: topic_text(topic, width) if self._shown else help_text(width))


def topic_text(topic: str, width: int) -> Content:
    """A page of the manual, in lines of at most `width` cells."""
    lines = lay_out((Text(paragraph) for paragraph in markdown(manual.unwrapped(topic))), width)
    return Content("\n").join(line.content for line in lines)


def help_text(width: int) -> Content:
    """What the help shows, in lines of at most `width` cells."""
    lines: list[Content] = []
    for group in Group:
        commands = [command for command in COMMANDS if command.group is group]
        _section(lines, width, group.value, [(command.keys_label, command.tooltip) for command in commands])
    _section(lines, width, "Mouse", [("click", "Select a task; twice opens it."), ("click ▸", "Fold or unfold.")])
    _section(lines, width, "Timeline", _BARS)
    lines += [Content(""), Content.styled("States", "bold $accent")]
    for face in (*LOOKS.values(), STALE, CONTRADICTED):
        entry = [(f"{face.glyph} {face.word}", _MEANINGS[face.word])]
        _entries(lines, width, entry, f"${face.color}")
    return Content("\n").join(lines)


def _section(lines: list[Content], width: int, title: str, entries: list[tuple[str, str]]) -> None:
    if lines:
        lines.append(Content(""))
    lines.append(Content.styled(title, "bold $accent"))
    _entries(lines, width, entries, "bold")


def _entries(lines: list[Content], width: int, entries: list[tuple[str, str]], style: str) -> None:
    for name, words in entries:
        first, *rest = wrap(words, max(width - _KEYS - 2, 16))
        lines.append(Content.assemble("  ", (f"{name:<{_KEYS}}", style), (first, "$text-muted")))
        lines += [Content.styled(" " * (_KEYS + 2) + line, "$text-muted") for line in rest]


_BARS: Final = [
    (bars.WORK, "an attempt; bright while it runs or needs you"),
    (bars.BAD, "an attempt that failed, is invalid, blocked or contradicted"),
    (bars.RAIL, "an attempt of a task that has handed work on"),
    (bars.BELOW, "something happened below the task"),
    (bars.WAIT, "waits for the next attempt, or for you"),
    (bars.QUEUE, "handed off, no sign of life yet"),
    (bars.SILENT, "working, and silent for too long"),
    ("?", "its start is not known: drawn from the first sign of it; 3m+ says: at least"),
    (bars.FOLDED * 3, "ten minutes and more in which nobody did anything, folded"),
    (f"{bars.EARLIER} {bars.LATER}", "all of it is earlier, or later, than what is shown"),
]

_MEANINGS: Final = {
    "submitted": "handed off, no sign of life yet",
    "working": "a sign of life was seen",
    "completed": "the return says that it is done",
    "partial": "the return says that a part is done",
    "blocked": "the return asks for something",
    "failed": "the return says that it failed",
    "invalid": "the return breaks its contract; counts as failed",
    "retrying": "a retry is decided, not seen yet",
    "escalated": "given to another mode, not seen yet",
    "canceled": "aborted by the operator",
    "stale": "working, and silent for too long",
    "contradicted": "something that it claims is false",
}
