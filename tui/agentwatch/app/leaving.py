"""Leaving a screen."""

from __future__ import annotations

from textual.screen import Screen, ScreenResultType


def leave(screen: Screen[ScreenResultType], result: ScreenResultType | None = None) -> None:
    """Dismiss a screen that is on top. Any other was left before, or Textual would dismiss the one above it."""
    if screen.is_active:
        screen.dismiss(result)
