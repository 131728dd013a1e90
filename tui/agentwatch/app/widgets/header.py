"""The line at the top: what is watched, whether it is live, the tasks by state, how many need the operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import cell_len

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cells import clip, shown
from agentwatch.app.widgets.line import LineWidget, Part, Parts, apart, width_of
from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.task import State
from agentwatch.view.looks import CONTRADICTED, LOOKS
from agentwatch.view.words import plural

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor

# Good news first, as one reads; what needs the operator stands at the right end.
_ORDER: Final = (
    *(State.COMPLETED, State.WORKING, State.SUBMITTED, State.RETRYING, State.ESCALATED),
    *(State.PARTIAL, State.BLOCKED, State.FAILED, State.INVALID, State.CANCELED),
)
_GAP: Final = 2
"""Cells at the right of the counts that stay free."""
_WORDY: Final = 180
"""Cells from which each count has its word: narrower, the words would come and go with the counts."""


class _Detail(NamedTuple):
    """How much the header says: the program's name, wide gaps and what belongs to a count, the mode in words with its
    reason, all tasks, the tasks by state, the word of each state."""

    program: bool
    wide: bool
    health: bool
    total: bool
    counts: bool
    words: bool = False


_FULL: Final = _Detail(program=True, wide=True, health=True, total=True, counts=True)
_TIGHT: Final = _FULL._replace(wide=False)
_UNCOUNTED: Final = _TIGHT._replace(counts=False)
_BARE: Final = _Detail(program=False, wide=False, health=False, total=True, counts=False)
_DETAILS: Final = (
    _FULL._replace(words=True),
    _FULL,
    _TIGHT,
    _TIGHT._replace(program=False),
    _UNCOUNTED,
    _BARE._replace(total=False, counts=True),
    _BARE,
)
"""From the fullest to the barest."""
_MODES: Final = {
    "live": ("●", "state-completed"),
    "starting": ("○", ""),
    "polling": ("◍", "state-partial"),
    "degraded": ("▲", "state-failed"),
    "replay": ("▷", "state-partial"),
}
"""Mark and colour of each."""


class Header(LineWidget):
    """The header of one monitor. `failure` says why watching ended, in words of ours; empty while it goes on."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__()
        self._monitor = monitor
        self.failure = ""
        self._reason_at = 0

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        right = self._needs(palette)
        why = self._why
        for detail, reason in self._ways(width, cell_len(why) + 2 if why else 0):
            left = self._left(width, detail, palette)
            if width - width_of(left) - width_of(right) - _GAP >= reason:
                break
        if why and detail.health:
            room = width - width_of(left) - width_of(right) - _GAP
            left.insert(self._reason_at, Part(": " + clip(why, room - 2), palette.muted, tooltip=why))
        return [apart(left, right, width)]

    def _ways(self, width: int, reason: int) -> Iterator[tuple[_Detail, int]]:
        """From the fullest to the barest: the first that fits is taken. Each with the cells it must leave for a reason.

        The whole reason is worth more than the counts, and a few words of it more than the name.
        """
        details = _DETAILS[0 if width >= _WORDY else 1 :]
        if reason:
            yield from ((detail, reason) for detail in details if detail.health)
        for detail in details:
            if detail is not _UNCOUNTED or reason:
                yield detail, min(reason, width // 3) if detail.health else 0

    def _left(self, width: int, detail: _Detail, palette: Palette) -> Parts:
        folder = shown(self._monitor.workspace.name or str(self._monitor.workspace)) + "/"
        parts = [Part(" agentwatch", palette.strong), Part("  ", palette.muted)] if detail.program else [Part(" ")]
        parts.append(Part(clip(folder, max(width // 5, 8)), palette.muted))
        parts += [Part("   " if detail.wide else "  "), *self._health(detail, palette)]
        self._reason_at = len(parts)
        if self._monitor.settings.read_only and detail.health:
            parts.append(Part("  read only", palette.muted, tooltip="Decisions are recorded, and not delivered."))
        totals = self._monitor.tree.totals
        if detail.total:
            parts.append(Part("   " + plural(totals.tasks, "task")))
        if detail.counts:
            gap = "   " if detail.wide else " "
            parts.append(Part("  " if detail.total and not detail.wide else ""))
            for state in _ORDER:
                if count := totals.states.get(state):
                    face = LOOKS[state]
                    word = f" {face.word}" if detail.words else ""
                    verified = totals.verdicts.get(Verdict.VERIFIED) if state is State.COMPLETED else None
                    known = f" ({verified:,} verified)" if verified else ""
                    tooltip = f"{count:,} {face.word}{known}"
                    parts.append(Part(f"{gap}{face.glyph} ", palette.states[face.color], tooltip=tooltip))
                    words = word + known if detail.wide else word
                    parts.append(Part(f"{count:,}{words}", tooltip=tooltip))
            if false := totals.verdicts.get(Verdict.CONTRADICTED):
                tooltip = f"{plural(false, 'task')} with a false claim"
                parts.append(Part(f"{gap}{CONTRADICTED.glyph} ", palette.states[CONTRADICTED.color], tooltip=tooltip))
                parts.append(Part(f"{false:,}{' false' if detail.wide else ''}", tooltip=tooltip))
            if notices := len(self._monitor.tree.notices) + len(self._monitor.said):
                tooltip = "Files that could not be read or belong to no task. Press ! for the list."
                parts.append(Part(f"{gap}⚠ {notices:,}", palette.states["state-stale"], "screen.notices", tooltip))
        return parts

    def _health(self, detail: _Detail, palette: Palette) -> Parts:
        mode, why = self._mode, self._why
        mark, color = _MODES[mode]
        style = palette.states.get(color, palette.muted)
        tooltip = f"{mode}: {why}" if why else mode
        parts = [Part(mark, style, tooltip=tooltip)]
        if detail.health:
            parts.append(Part(" " + mode, palette.muted if mode == "live" else style, tooltip=tooltip))
        return parts

    @property
    def _mode(self) -> str:
        return "degraded" if self.failure else self._monitor.health.mode

    @property
    def _why(self) -> str:
        """Why it is not live."""
        why = self.failure or self._monitor.health.detail
        return shown(why, 300) if self._mode in ("polling", "degraded") else ""

    def _needs(self, palette: Palette) -> Parts:
        count = self._monitor.tree.totals.needs_operator
        if not count:
            return []
        words = f"{count:,} need you" if count > 1 else "1 needs you"
        return [Part(words, palette.needs, "screen.go_asking(1)", "Go to the next task that needs you (n)."), Part(" ")]
