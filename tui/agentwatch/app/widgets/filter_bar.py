"""The line in which a filter is written, and which says what is filtered while one is on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from agentwatch.app.actions import Home, bindings
from agentwatch.app.widgets.search import Filter
from agentwatch.delegation.task import State
from agentwatch.view.looks import LOOKS

_SOUGHT: Final = "id, title, agent or objective"


class FilterInput(Input):
    """The text field. Its keys are those of the filter's commands."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.FILTER)

    class Left(Message):
        """The operator is done with it; `drop` asks to clear the filter."""

        def __init__(self, *, drop: bool) -> None:
            super().__init__()
            self.drop = drop

    def on_focus(self) -> None:
        self.placeholder = _SOUGHT

    def on_blur(self) -> None:
        # Beside a filter by state, it would look like what is sought.
        self.placeholder = ""

    def action_done(self) -> None:
        self.post_message(self.Left(drop=False))

    def action_down(self) -> None:
        self.post_message(self.Left(drop=False))

    def action_drop(self) -> None:
        self.post_message(self.Left(drop=True))


class FilterBar(Horizontal):
    """The filter's line; hidden while no filter is on."""

    DEFAULT_CSS = """
    FilterBar { height: 1; background: $background; display: none; }
    FilterBar > #filter-mark { width: 3; color: $accent; text-style: bold; }
    FilterBar > FilterInput {
        width: 1fr; height: 1; border: none; padding: 0;
        background: $background; color: $foreground;
    }
    FilterBar > FilterInput:focus { background-tint: transparent; border: none; }
    FilterBar > #filter-state { width: auto; padding: 0 1; color: $accent; }
    FilterBar > #filter-count { width: auto; padding: 0 1; color: $text-muted; }
    """

    class Changed(Message):
        """Another filter is asked for."""

        def __init__(self, sought: Filter) -> None:
            super().__init__()
            self.sought = sought

    def __init__(self) -> None:
        super().__init__()
        self._sought = Filter()

    def compose(self) -> ComposeResult:
        yield Static(" / ", id="filter-mark", markup=False)
        yield FilterInput(compact=True, select_on_focus=False, max_length=200)
        yield Static("", id="filter-state", markup=False)
        yield Static("", id="filter-count", markup=False)

    @property
    def sought(self) -> Filter:
        """The filter that is on."""
        return self._sought

    def write(self, text: str | None = None) -> None:
        """Let the operator write, or go on behind a text."""
        self.display = True
        self.query_one(FilterInput).focus()
        if text is not None:
            self.seek(replace(self._sought, text=text))

    def step(self, states: Iterable[State], by: int, *, asks: bool) -> None:
        """Ask for the next of: everything, what needs the operator where somebody `asks`, each state, urgent first."""
        text = self._sought.text
        choices = [Filter(text), *([Filter(text, needs_operator=True)] if asks else [])]
        choices += [Filter(text, state) for state in sorted(states, key=lambda state: -state.urgency)]
        position = choices.index(self._sought) if self._sought in choices else 0
        self.seek(choices[(position + by) % len(choices)])

    def seek(self, sought: Filter) -> None:
        """Ask for another filter."""
        field = self.query_one(FilterInput)
        with field.prevent(Input.Changed):
            field.value = sought.text
        self._ask_for(sought)

    def _ask_for(self, sought: Filter) -> None:
        self._sought = sought
        words = "needs you" if sought.needs_operator else ""
        if sought.state is not None:
            words = f"{LOOKS[sought.state].glyph} {LOOKS[sought.state].word}"
        self.query_one("#filter-state", Static).update(Content(words))
        self.display = bool(sought) or self.query_one(FilterInput).has_focus
        self.post_message(self.Changed(sought))

    def show_count(self, found: int | None) -> None:
        """Say how many tasks match."""
        words = "" if found is None else "nothing matches" if not found else f"{found:,} found"
        self.query_one("#filter-count", Static).update(Content(words))

    @on(Input.Changed)
    def _take_text(self, event: Input.Changed) -> None:
        event.stop()
        self._ask_for(Filter(event.value, self._sought.state, self._sought.needs_operator))
