"""The line that says that a recording is played: where it is, how fast, and the keys that steer it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rich.style import Style

from agentwatch.app.actions import COMMANDS, Home
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import LineWidget, Part, Parts, width_of

if TYPE_CHECKING:
    from agentwatch.sources.playback import Playback, Position

_PERIOD: Final = 0.1
"""Seconds between two looks at the playback."""

_REVERSED: Final = Style(reverse=True)

_SHORTEST: Final = 10
"""Cells from which the way that was played is drawn."""
_LONGEST: Final = 40

_DATED: Final = 72
"""Cells from which the day is said."""


class ReplayBar(LineWidget):
    """The line of one playback."""

    DEFAULT_CSS = """
    ReplayBar { height: 1; width: 1fr; background: $background; color: $foreground; }
    """

    def __init__(self, playback: Playback) -> None:
        super().__init__()
        self._playback = playback

    def on_mount(self) -> None:
        self.set_interval(_PERIOD, self.redraw)

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        position = self._playback.position
        number, count = f"{position.number:,}", f"{position.count:,}"
        parts = [Part(" REPLAY ", palette.needs + _REVERSED), *_state(position, palette)]
        parts += [
            Part(f"  {_time(position.at, with_date=width >= _DATED)}"),
            Part(f"  {number:>{len(count)}} of {count}"),
        ]
        room = width - width_of(parts) - 1
        keys: Parts = []
        for command in COMMANDS:
            if Home.REPLAY not in command.homes:
                continue
            words = "pause" if command.id == "replay.play" and position.playing else command.words
            hint = [
                Part(f" {command.key_label}", palette.strong, f"app.{command.action}", command.tooltip),
                Part(f" {words} ", palette.muted, f"app.{command.action}", command.tooltip),
            ]
            if width_of(keys) + width_of(hint) > room:
                break
            keys += hint
        room -= width_of(keys) + 2
        if room >= _SHORTEST:
            parts += [Part("  "), *_way(position, min(room, _LONGEST), palette)]
        return [[*parts, Part(" " * max(width - width_of(parts) - width_of(keys), 0)), *keys]]


def _state(position: Position, palette: Palette) -> Parts:
    at_rest = "■ at the end" if position.number == position.count else "‖ paused"
    words = "▶ playing" if position.playing else at_rest
    # As wide in each state: what stands behind it must not jump.
    return [Part(f" {words:<12}", palette.accent), Part(f" {_speed(position.speed):>5}")]


def _speed(speed: float) -> str:
    return f"{speed:.3g}×" if speed < 1000 else f"{speed:.0f}×"


def _way(position: Position, width: int, palette: Palette) -> Parts:
    """How much of the recording was played, by its observations."""
    played = round(width * position.number / position.count)
    return [Part("━" * played, palette.accent), Part("─" * (width - played), palette.line)]


def _time(at: float, *, with_date: bool) -> str:
    moment = datetime.fromtimestamp(at, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}Z" if with_date else f"{moment:%H:%M:%S}Z"
