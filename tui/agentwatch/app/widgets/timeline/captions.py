"""The lines around the chart: above it the axis and the legend, below it the selected task's times in words."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import starmap
from math import floor
from typing import Final

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cells import clip, clip_sentence, shown
from agentwatch.app.widgets.line import Canvas, LineWidget, Part, Parts, apart, width_of
from agentwatch.app.widgets.timeline import bars
from agentwatch.app.widgets.timeline.chart import TimelineChart
from agentwatch.app.widgets.timeline.scale import day
from agentwatch.delegation.request import Request
from agentwatch.delegation.task import Task
from agentwatch.view import times
from agentwatch.view.looks import look
from agentwatch.view.requests import ended_words, standing_words
from agentwatch.view.spans import Interval, Kind, Span
from agentwatch.view.words import in_line, name_of

_LEGEND: Final = (
    (bars.WORK, "work"),
    (bars.BAD, "failed"),
    (bars.WAIT, "waits"),
    (bars.ASKED + bars.ANSWERED, "asked"),
    (bars.SILENT, "silent"),
    (bars.QUEUE, "queued"),
    (bars.RAIL, "parts"),
    ("?", "unsure"),
)
_ROOMY: Final = 80
"""Cells from which the agent is named beside what it asks."""


class Ruler(LineWidget):
    """The axis of a chart, two lines: dates and times, folded stretches with their length, the present."""

    DEFAULT_CSS = """
    Ruler { height: 2; }
    """

    def __init__(self, chart: TimelineChart) -> None:
        super().__init__()
        self._chart = chart

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:  # noqa: ARG002 - the chart's widths count
        frame, ticks = self._chart.picture
        names = self._chart.names_width
        labels, line = Canvas(frame.width, " ", palette.muted), Canvas(frame.width, "─", palette.line)
        present = floor(frame.x(frame.now))
        first_day, today = day(frame.axis.moment(max(frame.left, 0.0)), frame.now), day(frame.now, frame.now)
        clock = time.strftime("%H:%M", time.localtime(frame.now))
        now = f"now {clock}" if today == first_day else f"now {today} {clock}"
        word = max(min(present - 1, frame.width - len(now)), 0) if 0 <= present < frame.width else frame.width
        for tick in ticks:
            x = floor(tick.column - frame.left)
            line.write(x, "┬", palette.line)
            if x + len(tick.label) < word:
                labels.write(x, tick.label, palette.strong if tick.is_day else palette.muted)
        for fold in frame.axis.folds:
            left, right = floor(fold.left - frame.left) + 1, floor(fold.right - frame.left)
            line.write(left, bars.FOLDED * (right - left), palette.line)
            length = times.duration(fold.seconds)
            words = next((words for words in (f" ⋯{length}⋯ ", length) if len(words) <= right - left), "")
            if left >= 0 and right <= frame.width:
                line.write(left + (right - left - len(words)) // 2, words, palette.muted)
        line.write(present, "┬", palette.accent)
        labels.write(word, now, palette.accent)
        title = [Part(" Timeline", palette.strong), Part(f"  {first_day}", palette.muted)]
        legend: Parts = []
        more: Parts = []
        for glyphs, meaning in _LEGEND:
            entry = Part(f" {glyphs} {meaning}", palette.muted)
            if not more and width_of(legend) + entry.width < names:
                legend.append(entry)
            elif width_of(title) + width_of(more) + entry.width + 2 < names:
                # Beside the title is room for those that come last.
                more.append(entry)
        return [
            [*apart(title, more, names - 1), Part(" "), *starmap(Part, labels.runs())],
            [*apart(legend, [], names), *starmap(Part, line.runs())],
        ]


class Reading(LineWidget):
    """Two lines about the selected task of a chart: exact, and saying what is not known."""

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
        face = look(task)
        color = palette.states[face.color]
        head = [
            Part(f" {face.glyph} ", color),
            Part(clip(name_of(task), width // 3), palette.strong),
            Part(f"  {face.word}", color),
        ]
        # Where there is little room, what is asked goes before who asks it.
        if task.agent and task.agent != task.title and (task.ask is None or width >= _ROOMY):
            head.append(Part("  " + clip(shown(task.agent), 24), palette.muted))
        if task.ask is not None:
            head += [Part("  "), Part("NEEDS YOU", palette.needs), Part(f" {in_line(task, task.ask)}")]
        return [_cut(head, width), _cut(self._times(task, self._clock(), width, palette), width)]

    def _times(self, task: Task, now: float, width: int, palette: Palette) -> Parts:
        """The latest attempts and waits, as many as there is room for."""
        spans = self._chart.spans_of(task)
        if not spans:
            return [Part(_below(self._chart.below(task, now), now), palette.muted)]
        # An open request says itself who waits for whom.
        is_asked = task.request is not None
        told = [
            (span.start, _said(span, now, several=len(task.attempts) > 1), span.asks)
            for span in spans
            if not (span.asks and is_asked)
        ]
        told += [(one.asked_at, _asked(one, now), one.waits_for_operator) for one in task.requests]
        told.sort(key=lambda one: one[0])
        parts: Parts = []
        for _, words, asks in reversed(told):
            piece = [Part("   "), Part(words, palette.needs if asks else palette.muted)]
            if parts and width_of(parts) + width_of(piece) > width - 4:
                return [Part("  …", palette.muted), *parts]
            parts = piece + parts
        return parts


def _below(interval: Interval | None, now: float) -> str:
    words = "   no file speaks of it"
    if interval is None:
        return words
    start, end = interval
    until = "now" if end >= now else _clock(end, now, start)
    return f"{words}; below it {_clock(start, now)} → {until}  {times.span(end - start)}"


def _asked(request: Request, now: float) -> str:
    """What a request of its program came to, and by whom."""
    what = f"{bars.ASKED} {shown(request.tool, 20)} asked {_clock(request.asked_at, now)}"
    if request.is_open:
        return f"{what}, {standing_words(request, now)}"
    took = "" if request.ended_at is None else f" after {times.span(request.ended_at - request.asked_at)}"
    return f"{what}, {ended_words(request)}{took}"


def _said(span: Span, now: float, *, several: bool) -> str:
    length = times.span(span.until(now) - span.start)
    start = _clock(span.start, now)
    end = "now" if span.end is None else _clock(span.end, now, span.start)
    if span.asks:
        return f"waits for you since {start}, {length}"
    if span.kind is Kind.WAIT:
        return f"waited {length}" if span.end is not None else f"waits since {start}, {length}"
    attempt = f"{span.look.glyph} attempt {span.number}  " if several else ""
    if span.kind is Kind.SILENT:
        return f"{attempt}{span.look.word} since {start}, {length}"
    if span.kind is Kind.QUEUE:
        return f"{attempt}handed off {start}, no sign of life for {length}"
    if span.is_certain:
        return f"{attempt}{start} → {end}  {length}"
    if span.end == span.start:
        return f"{attempt}start unknown, returned {end}"
    return f"{attempt}start unknown, first sign {start} → {end}"


def _clock(moment: float, now: float, before: float | None = None) -> str:
    """A moment to the second, with its date where that is not that of the moment named before it, else not today's.

    One from the future is as good as now.
    """
    moment = min(moment, now)
    words = time.strftime("%H:%M:%S", time.localtime(moment))
    known = now if before is None else min(before, now)
    return words if day(moment, now) == day(known, now) else f"{day(moment, now)} {words}"


def _cut(parts: Parts, width: int) -> Parts:
    """The parts in at most `width` cells."""
    cut: Parts = []
    for part in parts:
        room = width - width_of(cut)
        if room <= 0:
            break
        cut.append(Part(clip_sentence(part.text, room), part.style))
    return cut
