"""A page of our own words over the main screen: title, scrolling text, footer."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from textual import events
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

_WIDTH: Final = 84
_EDGES: Final = 6
"""Cells of border, padding, and the scroll bar with a blank before it."""


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
