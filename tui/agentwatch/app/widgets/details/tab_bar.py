"""The row of tab titles: one widget and no animation, so that a new count costs one line of drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from agentwatch.app.markdown_safe import FAINT

TABS: Final[tuple[tuple[str, str], ...]] = (
    ("overview", "Overview"),
    ("handoff", "Handoff"),
    ("return", "Return"),
    ("attestation", "Attestation"),
    ("findings", "Findings"),
    ("attempts", "Attempts"),
    ("raw", "Raw"),
)
"""Id and title of every tab, in their order."""


class Count(NamedTuple):
    """What stands behind a title: the words and their style."""

    text: str
    style: str


class _Place(NamedTuple):
    tab_id: str
    start: int
    end: int


class TabBar(Widget):
    """The titles with a line under the active one. If they do not fit, those around the active one are shown."""

    ALLOW_SELECT = False

    DEFAULT_CSS = """
    TabBar {
        height: 2;
        padding: 0 1;
        text-wrap: nowrap;
        pointer: pointer;
    }
    """

    active: reactive[str] = reactive("")
    counts: reactive[dict[str, Count]] = reactive[dict[str, Count]](dict)

    class Chosen(Message):
        """A title was clicked."""

        def __init__(self, tab_id: str) -> None:
            super().__init__()
            self.tab_id = tab_id

    def __init__(self, tabs: Sequence[tuple[str, str]] = TABS) -> None:
        super().__init__()
        self._tabs = tabs
        self.set_reactive(TabBar.active, tabs[0][0])

    def render(self) -> Content:
        content, places = self._titles()
        line = Content.styled("─" * self.content_size.width, "$border-blurred")
        active = next((place for place in places if place.tab_id == self.active), None)
        if active:
            under = Content.styled("━" * (active.end - active.start), "$text-accent")
            line = line[: active.start] + under + line[active.end :]
        return Content("\n").join([content, line])

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        for place in self._titles()[1]:
            if place.start - 1 <= offset.x <= place.end:
                self.post_message(self.Chosen(place.tab_id))
                return

    def _titles(self) -> tuple[Content, list[_Place]]:
        """The titles that fit and where they stand, in cells of the content."""
        titles = [(tab_id, self._title(tab_id, title, quiet=True)) for tab_id, title in self._tabs]
        width = self.content_size.width
        for gap in (3, 2, 1):
            if sum(len(title) + gap for _, title in titles) - gap <= width:
                return _placed(titles, gap, 0)
        # Counts that call for nobody go before a title does.
        titles = [(tab_id, self._title(tab_id, title, quiet=False)) for tab_id, title in self._tabs]
        if sum(len(title) + 1 for _, title in titles) - 1 <= width:
            return _placed(titles, 1, 0)
        first, last = self._window(titles, width - 4)
        before = Content.styled("‹ ", FAINT) if first else Content("")
        content, places = _placed(titles[first:last], 1, len(before))
        return before + content + Content.styled(" ›" if last < len(titles) else "", FAINT), places

    def _window(self, titles: list[tuple[str, Content]], room: int) -> tuple[int, int]:
        """The range of titles around the active one that fits: it grows to the right first, then to the left."""
        first = next(number for number, (tab_id, _) in enumerate(titles) if tab_id == self.active)
        last = first + 1
        used = len(titles[first][1])
        while True:
            if last < len(titles) and used + 1 + len(titles[last][1]) <= room:
                used += 1 + len(titles[last][1])
                last += 1
            elif first and used + 1 + len(titles[first - 1][1]) <= room:
                first -= 1
                used += 1 + len(titles[first][1])
            else:
                return first, last

    def _title(self, tab_id: str, title: str, *, quiet: bool) -> Content:
        content = Content.styled(title, "bold" if tab_id == self.active else FAINT)
        count = self.counts.get(tab_id)
        return content + Content.assemble(" ", count) if count and (quiet or count.style != FAINT) else content


def _placed(titles: list[tuple[str, Content]], gap: int, start: int) -> tuple[Content, list[_Place]]:
    places = []
    for tab_id, title in titles:
        places.append(_Place(tab_id, start, start + len(title)))
        start += len(title) + gap
    return Content(" " * gap).join([title for _, title in titles]), places
