"""The line at the top: what is watched, whether it is live, the tasks by state, how many need the operator."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from agentwatch.app.present import LOOKS, plural
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cells import clip, shown
from agentwatch.app.widgets.line import LineWidget, Part, Parts, width_of
from agentwatch.delegation.task import State

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor

# Good news first, as one reads; what needs the operator stands at the right end.
_ORDER: Final = (
    State.COMPLETED,
    State.WORKING,
    State.SUBMITTED,
    State.RETRYING,
    State.ESCALATED,
    State.PARTIAL,
    State.BLOCKED,
    State.FAILED,
    State.INVALID,
    State.CANCELED,
)


class _Detail(IntEnum):
    """How much the header says."""

    WORDS = 0
    FULL = 1
    TIGHT = 2
    FEW = 3
    BARE = 4


_MARKS: Final = {"live": "●", "starting": "○", "polling": "◍", "degraded": "▲"}
_MODE_COLORS: Final = {"live": "state-completed", "polling": "state-partial", "degraded": "state-failed"}


class Header(LineWidget):
    """The header of one monitor. `failure` says why watching ended, in words of ours; empty while it goes on."""

    DEFAULT_CSS = """
    Header { height: 1; width: 1fr; background: $background; color: $foreground; }
    """

    def __init__(self, monitor: Monitor) -> None:
        super().__init__()
        self._monitor = monitor
        self.failure = ""

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        right = self._needs(palette)
        # From the fullest to the barest: the first that fits.
        for detail in _Detail:
            left = self._left(width, detail, palette)
            gap = width - width_of(left) - width_of(right)
            if gap >= 2:
                break
        return [[*left, Part(" " * max(gap, 1)), *right]]

    def _left(self, width: int, detail: _Detail, palette: Palette) -> Parts:
        parts = [Part(" agentwatch" if detail < _Detail.FEW else " aw", palette.strong)]
        if detail < _Detail.FEW:
            folder = shown(self._monitor.workspace.name or str(self._monitor.workspace)) + "/"
            parts.append(Part("  " + clip(folder, max(width // 5, 8)), palette.muted))
        parts += [Part("   " if detail < _Detail.TIGHT else "  "), *self._health(detail, width, palette)]
        totals = self._monitor.tree.totals
        if detail is not _Detail.FEW:
            parts.append(Part("   " + plural(totals.tasks, "task")))
        if detail < _Detail.BARE:
            gap = "   " if detail < _Detail.TIGHT else " "
            parts.append(Part("  " if detail is _Detail.TIGHT else ""))
            for state in _ORDER:
                if count := totals.states.get(state):
                    face = LOOKS[state]
                    word = f" {face.word}" if detail is _Detail.WORDS else ""
                    tooltip = f"{count:,} {face.word}"
                    parts.append(Part(f"{gap}{face.glyph} ", palette.states[face.color], tooltip=tooltip))
                    parts.append(Part(f"{count:,}{word}", tooltip=tooltip))
            if notices := len(self._monitor.tree.notices):
                tooltip = "Files that could not be read or belong to no task. Press ! for the list."
                parts.append(Part(f"{gap}⚠ {notices:,}", palette.states["state-stale"], "screen.notices", tooltip))
        return parts

    def _health(self, detail: _Detail, width: int, palette: Palette) -> Parts:
        health = self._monitor.health
        mode, why = ("degraded", self.failure) if self.failure else (health.mode, health.detail)
        style = palette.states.get(_MODE_COLORS.get(mode, ""), palette.muted)
        tooltip = f"{mode}: {shown(why, 300)}" if why else mode
        parts = [Part(_MARKS[mode], style, tooltip=tooltip)]
        if detail < _Detail.FEW:
            parts.append(Part(" " + mode, palette.muted if mode == "live" else style, tooltip=tooltip))
            if why and mode in ("polling", "degraded"):
                room = width // 2 if detail < _Detail.TIGHT else width // 4
                parts.append(Part(": " + clip(shown(why, 300), room), palette.muted, tooltip=tooltip))
        return parts

    def _needs(self, palette: Palette) -> Parts:
        count = self._monitor.tree.totals.needs_operator
        if not count:
            return []
        words = f"{count:,} need you" if count > 1 else "1 needs you"
        return [Part(words, palette.needs, "screen.next_asking", "Go to the next task that needs you (n)."), Part(" ")]
