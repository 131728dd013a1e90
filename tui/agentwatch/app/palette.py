"""The palette of commands, which ctrl+c closes as it closes every other dialog."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.command import CommandPalette


class Palette(CommandPalette):
    """Finds any command by its name."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "escape", show=False)]
