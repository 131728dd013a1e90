"""The lines that say that a recording is played, or a demo: where it is, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from math import ceil, inf
from typing import TYPE_CHECKING, Final

from rich.style import Style

from agentwatch.app.actions import Home, command_of, commands_of
from agentwatch.app.decision_words import can_answer
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import LineWidget, Part, Parts, apart, width_of
from agentwatch.delegation.decision import Action
from agentwatch.view.words import is_on_its_way

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree
    from agentwatch.sources.playback import Playback, Position

_DEMO_PERIOD: Final = 0.5
_TOLD_BEFORE: Final = 30.0
"""Seconds before the demo starts over from which that is said."""
_REPLAY_PERIOD: Final = 0.1
"""Seconds between two looks."""
_REVERSED: Final = Style(reverse=True)
_SHORTEST: Final = 10
"""Cells from which the way that was played is drawn."""
_LONGEST: Final = 40
_DATED: Final = 72
"""Cells from which the day is said."""


class DemoBar(LineWidget):
    """What a newcomer can try in the demo now."""

    def __init__(self, tree: Tree, starts_over_in: Callable[[], float | None] = lambda: None) -> None:
        """`starts_over_in` gives the seconds until the demo starts over, infinite where it will not; None
        while it is played."""
        super().__init__()
        self._tree = tree
        self._starts_over_in = starts_over_in

    def on_mount(self) -> None:
        self.set_interval(_DEMO_PERIOD, self.redraw)

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        parts = [Part(" DEMO ", palette.needs + _REVERSED), Part("  ")]
        seconds = self._starts_over_in()
        if seconds == inf:
            parts += [Part("The demo is over: nothing more comes by itself. ")]
        elif seconds is not None and seconds <= _TOLD_BEFORE:
            parts += [Part("It starts over in "), Part(f"{ceil(seconds)} s", palette.strong), Part("; any key waits. ")]
        for sentence in self._sentences(palette):
            if width_of(parts) + width_of(sentence) <= width:
                parts += sentence
        return [parts]

    def _sentences(self, palette: Palette) -> list[Parts]:
        """What to do, and what to know of it if there is room."""
        selected = self._tree.tasks.get(getattr(self.screen, "task_id", None) or "")
        decisions = [one.decision for task in self._tree.tasks.values() for one in task.attempts if one.decision]
        if any(map(is_on_its_way, decisions)):
            return _said("Decided.", "Now see how far it gets: recorded, delivered, read, acted.")
        if selected is not None and selected.needs_operator:
            # Not for the first frame, in which nobody asks yet.
            from agentwatch.decisions import policy

            asks = Action.RESPOND if can_answer(selected) else None
            command = command_of(self.app, f"decide.{asks or policy.suggested(selected) or Action.ACCEPT}")
            key = Part(command.key_label, palette.strong, f"app.{command.action}")
            told = _said("Only ctrl+s records it.", "All of it is temporary.")
            return [[Part("Try it: "), key, Part(f" to {command.words}. ")], *told]
        if self._tree.totals.needs_operator:
            key = Part(command_of(self.app, "needs.next").key_label, palette.strong)
            return [[Part("Try it: "), key, Part(" goes to a child that needs you. ")]]
        if decisions:
            quit_key = command_of(self.app, "quit").key_label
            return _said("That was the whole loop.", f"Look around; {quit_key} leaves, and nothing of it is kept.")
        return _said("Agents build the checkout of a shop.", "Soon one of them will need you.")


def _said(*sentences: str) -> list[Parts]:
    return [[Part(f"{sentence} ")] for sentence in sentences]


class ReplayBar(LineWidget):
    """Where the playback of a recording is, how fast, and the keys that steer it."""

    def __init__(self, playback: Playback) -> None:
        super().__init__()
        self._playback = playback

    def on_mount(self) -> None:
        self.set_interval(_REPLAY_PERIOD, self.redraw)

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        position = self._playback.position
        number, count = f"{position.number:,}", f"{position.count:,}"
        moment = datetime.fromtimestamp(position.at, UTC)
        parts = [
            Part(" REPLAY ", palette.needs + _REVERSED),
            *_state(position, palette),
            Part(f"  {moment:{'%Y-%m-%d %H:%M:%S' if width >= _DATED else '%H:%M:%S'}}Z"),
            Part(f"  {number:>{len(count)}} of {count}"),
        ]
        room = width - width_of(parts) - 1
        keys: Parts = []
        for command in commands_of(self.app):
            if Home.REPLAY not in command.homes:
                continue
            words = "pause" if command.id == "replay.play" and position.playing else command.words
            hint = [
                Part(f" {command.key_label}", palette.strong, f"app.{command.action}"),
                Part(f" {words} ", palette.muted, f"app.{command.action}"),
            ]
            if width_of(keys) + width_of(hint) > room:
                break
            keys += hint
        room -= width_of(keys) + 2
        if room >= _SHORTEST:
            length = min(room, _LONGEST)
            played = round(length * position.number / position.count)
            parts += [Part("  "), Part("━" * played, palette.accent), Part("─" * (length - played), palette.line)]
        return [apart(parts, keys, width)]


def _state(position: Position, palette: Palette) -> Parts:
    at_rest = "■ at the end" if position.number == position.count else "‖ paused"
    words = "▶ playing" if position.playing else at_rest
    speed = f"{position.speed:.3g}×" if position.speed < 1000 else f"{position.speed:.0f}×"
    # As wide in each state: what stands behind it must not jump.
    return [Part(f" {words:<12}", palette.accent), Part(f" {speed:>5}")]
