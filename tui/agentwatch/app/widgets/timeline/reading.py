"""The selected task's times in words, below the chart: exact, and saying what is not known."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cells import clip, clip_sentence, shown, summary
from agentwatch.app.widgets.line import LineWidget, Part, Parts, width_of
from agentwatch.app.widgets.timeline.chart import TimelineChart
from agentwatch.app.widgets.timeline.ticks import day
from agentwatch.delegation.task import Task
from agentwatch.view.looks import look
from agentwatch.view.spans import Interval, Kind, Span

_ROOMY: Final = 80
"""Cells from which the agent is named beside what it asks."""

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


class Reading(LineWidget):
    """Two lines about the selected task of a chart."""

    DEFAULT_CSS = """
    Reading { height: 2; }
    Reading.-tall { height: 3; border-top: solid $line; }
    """

    def __init__(self, chart: TimelineChart, clock: Callable[[], float]) -> None:
        super().__init__()
        self._chart = chart
        self._clock = clock

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        task = self._chart.cursor_task
        if task is None:
            return []
        now = self._clock()
        face = look(task)
        color = palette.states.get(face.color, palette.strong)
        head = [
            Part(f" {face.glyph} ", color),
            Part(clip(summary(task.title), width // 3), palette.strong),
            Part(f"  {face.word}", color),
        ]
        # Where there is little room, what is asked goes before who asks it.
        if task.agent and task.agent != task.title and (task.ask is None or width >= _ROOMY):
            head.append(Part("  " + clip(shown(task.agent), 24), palette.muted))
        if task.ask is not None:
            head += [Part("  "), Part("NEEDS YOU", palette.needs), Part(f" {summary(task.ask)}")]
        return [_cut(head, width), self._times(task, now, width, palette)]

    def _times(self, task: Task, now: float, width: int, palette: Palette) -> Parts:
        """The latest attempts and waits, as many as there is room for."""
        spans = self._chart.spans_of(task)
        if not spans:
            return [Part(_below(self._chart.below(task, now), now), palette.muted)]
        parts: Parts = []
        for span in reversed(spans):
            words = _said(span, now, several=len(task.attempts) > 1)
            piece = [Part("   "), Part(words, palette.needs if span.asks else palette.muted)]
            if parts and width_of(parts) + width_of(piece) > width - 4:
                return _cut([Part("  …", palette.muted), *parts], width)
            parts = piece + parts
        return _cut(parts, width)


def _below(times: Interval | None, now: float) -> str:
    words = "   no file speaks of it"
    if times is None:
        return words
    end = "now" if times[1] >= now else clock(times[1], now, times[0])
    return f"{words}; below it {clock(times[0], now)} → {end}  {precisely(times[1] - times[0])}"


def _said(span: Span, now: float, *, several: bool) -> str:
    length = precisely(span.until(now) - span.start)
    start = clock(span.start, now)
    end = "now" if span.end is None else clock(span.end, now, span.start)
    if span.asks:
        return f"waits for you since {start}, {length}"
    if span.kind is Kind.WAIT:
        return f"waited {length}" if span.end is not None else f"waits since {start}, {length}"
    attempt = f"{span.look.glyph} attempt {span.number}  " if several else ""
    if span.kind is Kind.SILENT:
        return f"{attempt}silent since {start}, {length}"
    if span.kind is Kind.QUEUE:
        return f"{attempt}handed off {start}, no sign of life for {length}"
    if span.is_certain:
        return f"{attempt}{start} → {end}  {length}"
    if span.end == span.start:
        return f"{attempt}start unknown, returned {end}"
    return f"{attempt}start unknown, first sign {start} → {end}"


def clock(moment: float, now: float, before: float | None = None) -> str:
    """A moment to the second, with its date where that is not that of the moment named before it, else not today's.

    One from the future is as good as now.
    """
    moment = min(moment, now)
    words = time.strftime("%H:%M:%S", time.localtime(moment))
    known = now if before is None else min(before, now)
    return words if day(moment, now) == day(known, now) else f"{day(moment, now)} {words}"


def precisely(seconds: float) -> str:
    """A span in its two greatest units: `2m 10s`, `3h 5m`."""
    rest = int(max(seconds, 0.0))
    parts: list[str] = []
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if count or parts or unit == "s":
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])


def _cut(parts: Parts, width: int) -> Parts:
    """The parts in at most `width` cells."""
    cut: Parts = []
    for part in parts:
        room = width - width_of(cut)
        if room <= 0:
            break
        cut.append(Part(clip_sentence(part.text, room), part.style))
    return cut
