"""The line at the top: what is watched, whether it is live, what goes on now, what is new, who needs the operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import cell_len

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cells import clip, shown
from agentwatch.app.widgets.line import LineWidget, Part, Parts, apart, width_of
from agentwatch.delegation.task import State
from agentwatch.view.groups import FALSE, SILENT, VERIFIED, Present, present_in
from agentwatch.view.looks import CONTRADICTED, LOOKS, STALE, Look
from agentwatch.view.words import plural, short_count

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor

# What goes on first, then what went wrong; what is over comes last.
_ORDER: Final = (
    *(
        State.WORKING,
        State.UNKNOWN,
        State.SUBMITTED,
        State.RETRYING,
        State.ESCALATED,
        State.BLOCKED,
        State.FAILED,
        State.INVALID,
    ),
    *(State.PARTIAL, State.COMPLETED, State.CANCELED),
)
_GAP: Final = 2
"""Cells at the right of the counts that stay free."""
_ROOMY: Final = 100
"""Cells from which the mark stands as far from the workspace's name as the counts do from each other."""
_WORDY: Final = 180
"""Cells from which each count has its word: narrower, the words would come and go with the counts."""


class _Detail(NamedTuple):
    """How much the header says: the program's name, wide gaps and what belongs to a count, the mode in words with its
    reason, all tasks, the tasks by state, the word of each state, the tokens of the last minute."""

    program: bool
    wide: bool
    health: bool
    total: bool
    counts: bool
    words: bool = False
    rate: bool = True


_FULL: Final = _Detail(program=True, wide=True, health=True, total=True, counts=True)
_TIGHT: Final = _FULL._replace(wide=False)
_NAMELESS: Final = _TIGHT._replace(program=False)
_UNCOUNTED: Final = _TIGHT._replace(counts=False)
_BARE: Final = _Detail(program=False, wide=False, health=False, total=True, counts=False, rate=False)
_DETAILS: Final = (
    _FULL._replace(words=True),
    _FULL,
    _TIGHT,
    _NAMELESS,
    _NAMELESS._replace(rate=False),
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


class Counted(NamedTuple):
    """So many tasks are counted, and what they are; `is_part`: there are others in the tree."""

    tasks: int
    present: Present
    is_part: bool = False


def _counts(present: Present) -> Iterator[tuple[Look, int]]:
    """How many tasks look like this."""
    for state in _ORDER:
        if state is State.COMPLETED:
            yield CONTRADICTED, present[FALSE]
        yield LOOKS[state], present[state]
        if state is State.WORKING:
            yield STALE, present[SILENT]


class Header(LineWidget):
    """The header of one monitor. `failure` says why watching ended, in words of ours; empty while it goes on."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__()
        self._monitor = monitor
        self.failure = ""
        self.counted: Callable[[], Counted] | None = None
        """The tasks to count, where those are not all of the tree."""
        self._reason_at = 0
        self._used = 0
        """The tokens of the last minute."""
        self._now = Counted(0, Present())
        """What is counted, while the line is made: for each way to fit it once."""
        self._notices = 0
        self._shown: object = None
        """What it was made of last."""

    def redraw(self) -> None:
        tree = self._monitor.tree
        counted, used = self._counted(), sum(spent.tokens for spent in tree.spent())
        shown = (
            *(self._monitor.title, self._mode, self._why, len(tree.notices) + len(self._monitor.messages), used),
            *(counted._replace(present=counted.present.copy()), tree.totals.tasks),
            *(tree.totals.needs_operator, len(tree.unseen), self.size.width, self._palette),
        )
        # To find that nothing reads differently takes ten times as long by making it.
        if shown != self._shown:
            self._shown = shown
            super().redraw()

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        right = self._needs(palette)
        why = self._why
        self._now = self._counted()
        self._notices = len(self._monitor.tree.notices) + len(self._monitor.messages)
        self._used = sum(spent.tokens for spent in self._monitor.tree.spent())
        for detail, reason in self._ways(width, cell_len(why) + 2 if why else 0):
            left = self._left(width, detail, palette)
            if width - width_of(left) - width_of(right) - _GAP >= reason:
                break
        else:
            if width_of(left) + width_of(right) >= width:
                right = self._needs(palette, short=True)
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
        folder = shown(self._monitor.title)
        parts = [Part(" agentwatch", palette.strong), Part("  ", palette.muted)] if detail.program else [Part(" ")]
        parts.append(Part(clip(folder, max(width // 5, 8)), palette.muted))
        # By the room alone: the mark stays where it is when the gaps behind it become tight.
        parts += [Part("   " if detail.program and width >= _ROOMY else "  "), *self._health(detail, palette)]
        self._reason_at = len(parts)
        if self._monitor.settings.read_only and detail.health:
            parts.append(Part("  read only", palette.muted, tooltip="Decisions are recorded, and not delivered."))
        counted = self._now
        if detail.total:
            every = plural(self._monitor.tree.totals.tasks, "task")
            words = f"now {counted.tasks:,}" if counted.is_part else every
            parts.append(Part(f"   {words}", tooltip=f"{every} in all"))
        if detail.counts:
            parts += self._counts(counted.present, detail, palette)
        if detail.rate and self._used:
            tooltip = f"{self._used:,} tokens were used in the last minute"
            parts.append(Part(f"   {short_count(self._used)} tok/min", palette.muted, tooltip=tooltip))
        return parts

    def _counts(self, present: Present, detail: _Detail, palette: Palette) -> Iterator[Part]:
        gap = "   " if detail.wide else " "
        yield Part("  " if detail.total and not detail.wide else "")
        for face, count in _counts(present):
            if not count:
                continue
            word = f" {face.word}" if detail.words else ""
            known = f" ({present[VERIFIED]:,} verified)" if present[VERIFIED] and face is LOOKS[State.COMPLETED] else ""
            tooltip = f"{count:,} {face.word}{known}"
            if face is CONTRADICTED:
                word, tooltip = f" {face.word}" if detail.wide else "", f"{plural(count, 'task')} with a false claim"
            yield Part(f"{gap}{face.glyph} ", palette.states[face.color], tooltip=tooltip)
            yield Part(f"{count:,}{word}{known if detail.wide else ''}", tooltip=tooltip)
        if self._notices:
            tooltip = "Files that could not be read or belong to no task. Press ! for the list."
            yield Part(f"{gap}⚠ {self._notices:,}", palette.states["state-stale"], "screen.notices", tooltip)

    def _counted(self) -> Counted:
        if self.counted is not None:
            return self.counted()
        totals = self._monitor.tree.totals
        return Counted(totals.tasks, present_in(totals))

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

    def _needs(self, palette: Palette, *, short: bool = False) -> Parts:
        count, new = self._monitor.tree.totals.needs_operator, len(self._monitor.tree.unseen)
        parts: Parts = []
        if new:
            tooltip = "They ended, failed or ask something else since you looked at them. Go to the next (u)."
            parts += [
                Part(f"•{new:,}" if short else f"{new:,} new", palette.accent, "screen.go_unseen(1)", tooltip),
                Part("  " if short and count else "   " if count else " "),
            ]
        if count:
            words = f"{count:,} need you" if count > 1 else "1 needs you"
            tooltip = "Go to the next task that needs you (n)."
            parts += [Part(words, palette.needs, "screen.go_asking(1)", tooltip), Part(" ")]
        return parts
