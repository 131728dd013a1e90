"""The line at the top: the workspace, whether it is live, the tasks that go on now, those that are new or need you."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cells import clip, shown
from agentwatch.app.widgets.line import LineWidget, Part, Parts, apart, width_of
from agentwatch.delegation.task import State
from agentwatch.view.looks import CONTRADICTED, LOOKS, STALE, Look
from agentwatch.view.order import FALSE, SILENT, VERIFIED, Present, present_in
from agentwatch.view.words import plural

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor

# The states that go on first, then those that went wrong; those that are over come last.
_GOING_ON: Final = (State.UNKNOWN, State.SUBMITTED, State.RETRYING, State.ESCALATED)
_WRONG: Final = (State.BLOCKED, State.FAILED, State.INVALID, State.PARTIAL)
_COUNTED: Final[tuple[tuple[Look, str], ...]] = (
    (LOOKS[State.WORKING], State.WORKING),
    (STALE, SILENT),
    *((LOOKS[state], state) for state in (*_GOING_ON, *_WRONG)),
    (CONTRADICTED, FALSE),
    (LOOKS[State.COMPLETED], State.COMPLETED),
    (LOOKS[State.CANCELED], State.CANCELED),
)
_GAP: Final = 2
"""Cells at the right of the counts that stay free."""
_ROOMY: Final = 100
"""Cells from which the mark stands as far from the workspace's name as the counts do from each other."""
_MODES: Final = {
    "live": ("●", "state-completed"),
    "starting": ("○", ""),
    "polling": ("◍", "state-partial"),
    "degraded": ("▲", "state-failed"),
    "replay": ("▷", "state-partial"),
}
"""Mark and colour of each."""
_WAYS: Final = (
    "wide program health total counts",
    "program health total counts",
    "health total counts",
    "health",
    "counts",
    "",
)
"""The parts of the line, from the fullest to the barest: wide gaps with all that belongs to a count, the program's
name, the mode in words with its reason, all tasks, and those by state."""


class Header(LineWidget):
    """The header of one monitor. `failure` says why watching ended, in words of ours; empty while it goes on."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__()
        self._monitor = monitor
        self.failure = ""
        self.counted: Callable[[], tuple[int, Present]] = lambda: (
            monitor.tree.totals.tasks,
            present_in(monitor.tree.totals.counts),
        )
        """How many tasks to count, and what they are: those that go on now, where those are not all of the tree."""

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        health = self._monitor.health
        mode, detail = ("degraded", self.failure) if self.failure else (health.mode, health.detail)
        why = shown(detail, 300) if mode in ("polling", "degraded") else ""
        right, counted = self._needs(palette), self.counted()
        # A third of the line is for the reason, before which the counts give way.
        least = min(cell_len(why) + 2, width // 3) if why else 0
        for way in (one for one in _WAYS if why or one != "health"):
            before, behind = self._health(way, mode, width, palette), self._tasks(way, *counted, palette)
            room = width - width_of([*before, *behind, *right]) - _GAP
            if room >= (least if "health" in way else 0):
                break
        else:
            right = self._needs(palette, short=True)
        if why and "health" in way:
            before.append(Part(": " + clip(why, room - 2), palette.muted))
        return [apart([*before, *behind], right, width)]

    def _health(self, way: str, mode: str, width: int, palette: Palette) -> Parts:
        parts = [Part(" agentwatch", palette.strong), Part("  ")] if "program" in way else [Part(" ")]
        parts.append(Part(clip(shown(self._monitor.title), max(width // 5, 8)), palette.muted))
        # By the room alone: the mark stays where it is when the gaps behind it become tight.
        parts.append(Part("   " if "program" in way and width >= _ROOMY else "  "))
        mark, color = _MODES[mode]
        style = palette.states.get(color, palette.muted)
        parts.append(Part(mark, style))
        if "health" in way:
            parts.append(Part(f" {mode}", palette.muted if mode == "live" else style))
        return parts

    def _tasks(self, way: str, count_now: int, present: Present, palette: Palette) -> Parts:
        tree, parts, is_wide = self._monitor.tree, list[Part](), "wide" in way
        if self._monitor.settings.read_only and "health" in way:
            parts.append(Part("  read only", palette.muted))
        if "total" in way:
            every = plural(tree.totals.tasks, "task")
            parts.append(Part(f"   {f'now {count_now:,}' if count_now < tree.totals.tasks else every}"))
        if "counts" not in way:
            return parts
        gap = "   " if is_wide else " "
        parts.append(Part("  " if "total" in way and not is_wide else ""))
        for face, key in _COUNTED:
            if count := present[key]:
                words = f" {face.word}" if is_wide and face is CONTRADICTED else ""
                if is_wide and key == State.COMPLETED and present[VERIFIED]:
                    words = f" ({present[VERIFIED]:,} verified)"
                parts += [Part(f"{gap}{face.glyph} ", palette.states[face.color]), Part(f"{count:,}{words}")]
        if notices := len(tree.notices) + len(self._monitor.messages):
            parts.append(Part(f"{gap}⚠ {notices:,}", palette.states["state-stale"], "screen.notices"))
        return parts

    def _needs(self, palette: Palette, *, short: bool = False) -> Parts:
        count, new = self._monitor.tree.totals.needs_operator, len(self._monitor.tree.unseen)
        parts: Parts = []
        if new:
            gap = "  " if short and count else "   " if count else " "
            parts += [Part(f"•{new:,}" if short else f"{new:,} new", palette.accent, "screen.go_unseen(1)"), Part(gap)]
        if count:
            words = f"{count:,} need you" if count > 1 else "1 needs you"
            parts += [Part(words, palette.needs, "screen.go_asking(1)"), Part(" ")]
        return parts
