"""The rows of a dialog: labels of ours with fields of the operator's, and the line that says what the key would do."""

from __future__ import annotations

from typing import Final

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Static

from agentwatch.app.dialogs.choice import Choice

LABEL: Final = 10
"""Cells of the column with the labels."""


class Row(Horizontal):
    """A label of ours and a field of the operator's."""

    # Textual looks at the children anew only where the row itself has a rule for its focus.
    DEFAULT_CSS = f"""
    Row {{ height: auto; }}
    Row:focus-within {{ text-style: none; }}
    Row > .label {{ width: {LABEL}; color: $text-muted; }}
    Row:focus-within > .label {{ color: $text-accent; text-style: bold; }}
    Row > Input {{ width: 1fr; height: 1; border: none; padding: 0; background: $panel; }}
    Row > Input:focus {{ border: none; background: $cursor-row; background-tint: transparent; }}
    Row:ansi > Input {{ text-style: underline; }}
    """

    def __init__(self, label: str, field: Input | Choice | Static, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._label = label
        self._field = field

    def compose(self) -> ComposeResult:
        yield Static(self._label, classes="label", markup=False)
        yield self._field


class Standing(Static):
    """The line that says what the key would do. It looks like something to click, and is not."""

    def on_click(self) -> None:
        self.app.notify("A click decides nothing: press ctrl+s.", markup=False, timeout=3)
