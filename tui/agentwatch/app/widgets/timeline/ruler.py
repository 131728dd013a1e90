"""The axis above the chart: dates and times, folded stretches with their length, the present; beside it the legend."""

from __future__ import annotations

import time
from itertools import groupby
from math import floor
from typing import Final

from rich.cells import cell_len
from rich.style import Style

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import LineWidget, Part, Parts, width_of
from agentwatch.app.widgets.timeline import bars
from agentwatch.app.widgets.timeline.chart import TimelineChart
from agentwatch.app.widgets.timeline.ticks import day
from agentwatch.view.times import duration

_LEGEND: Final = (
    (bars.WORK, "work"),
    (bars.BAD, "failed"),
    (bars.WAIT, "waits"),
    (bars.SILENT, "silent"),
    (bars.QUEUE, "queued"),
)


class Ruler(LineWidget):
    """The axis of a chart, two lines."""

    DEFAULT_CSS = """
    Ruler { height: 2; }
    """

    def __init__(self, chart: TimelineChart) -> None:
        super().__init__()
        self._chart = chart

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:  # noqa: ARG002 - the chart's widths count
        frame, ticks = self._chart.picture
        names = self._chart.names_width
        labels, line = _Cells(frame.width, " ", palette.muted), _Cells(frame.width, "─", palette.line)
        present = floor(frame.x(frame.now))
        now = self._now()
        word = max(min(present - 1, frame.width - len(now)), 0) if 0 <= present < frame.width else frame.width
        for tick in ticks:
            x = floor(tick.column - frame.left)
            line.write(x, "┬", palette.line)
            if x + len(tick.label) < word:
                labels.write(x, tick.label, palette.strong if tick.is_day else palette.muted)
        for fold in frame.axis.folds:
            left, right = floor(fold.left - frame.left) + 1, floor(fold.right - frame.left)
            line.write(left, bars.FOLDED * (right - left), palette.line)
            length = duration(fold.seconds)
            words = next((words for words in (f" ⋯{length}⋯ ", length) if len(words) <= right - left), "")
            if left >= 0 and right <= frame.width:
                line.write(left + (right - left - len(words)) // 2, words, palette.muted)
        line.write(present, "┬", palette.accent)
        labels.write(word, now, palette.accent)
        title = [Part(" Timeline", palette.strong), Part(f"  {self._first_day()}", palette.muted)]
        return [
            [*_filled(title, names), *labels.parts()],
            [*_filled(_legend(names, palette), names), *line.parts()],
        ]

    def _first_day(self) -> str:
        """The date at the left edge."""
        frame, _ = self._chart.picture
        return day(frame.axis.moment(max(frame.left, 0.0)), frame.now)

    def _now(self) -> str:
        """The present, with its date where that is another one."""
        now = self._chart.picture[0].now
        date = day(now, now)
        clock = time.strftime("%H:%M", time.localtime(now))
        return f"now {clock}" if date == self._first_day() else f"now {date} {clock}"


def _legend(width: int, palette: Palette) -> Parts:
    parts: Parts = []
    for glyphs, word in _LEGEND:
        entry = [Part(f" {glyphs} ", palette.muted), Part(word, palette.muted)]
        if width_of(parts) + width_of(entry) >= width:
            break
        parts += entry
    return parts


def _filled(parts: Parts, width: int) -> Parts:
    return [*parts, Part(" " * (width - width_of(parts)))]


class _Cells:
    """A line that is written upon; what would not fit is cut."""

    def __init__(self, width: int, glyph: str, style: Style) -> None:
        self._cells = [(glyph, style)] * width

    def write(self, x: int, text: str, style: Style) -> None:
        for glyph in text:
            if 0 <= x < len(self._cells):
                self._cells[x] = (glyph, style)
            x += cell_len(glyph)

    def parts(self) -> Parts:
        return [
            Part("".join(glyph for glyph, _ in run), style)
            for style, run in groupby(self._cells, key=lambda cell: cell[1])
        ]
