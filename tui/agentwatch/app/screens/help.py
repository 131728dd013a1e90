"""The help: all keys by what they are for, made from the command definitions, what the glyphs mean, and the manual."""

from __future__ import annotations

from textwrap import wrap
from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.content import Content

from agentwatch import manual
from agentwatch.app.actions import COMMANDS, Group
from agentwatch.app.markdown_safe import markdown
from agentwatch.app.screens.page import PageScreen
from agentwatch.app.widgets.details.blocks import Text, lay_out
from agentwatch.app.widgets.timeline import bars
from agentwatch.view.looks import CONTRADICTED, LOOKS, STALE

_KEYS: Final = 15
"""Cells of the column with the keys and the states."""


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
