"""One row of the chart as cells: bars with eighths of a cell, waits, what is below, ticks, folds and the present."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor
from typing import Final, NamedTuple

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import Canvas, Part, Parts, width_of
from agentwatch.app.widgets.timeline.scale import Frame
from agentwatch.view.spans import Interval, Kind, Pause, Span
from agentwatch.view.times import duration

WORK: Final = "█"
BAD: Final = "▓"
RAIL: Final = "━"
BELOW: Final = "─"
QUEUE: Final = "╌"
SILENT: Final = "░"
WAIT: Final = "┄"
ASKED: Final = "■"
ANSWERED: Final = "◆"
OVER: Final = "◇"
FOLDED: Final = "╱"
TICK: Final = "┊"
NOW: Final = "│"
EARLIER: Final = "‹"
LATER: Final = "›"
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_LEAST: Final = 2
"""Eighths of a cell that the shortest bar has: fewer cannot be seen."""
_FILLS: Final = {Kind.QUEUE: QUEUE, Kind.SILENT: SILENT, Kind.WAIT: WAIT}
_BAD_WORDS: Final = frozenset({"failed", "invalid", "blocked", "false"})
_BLOCKED: Final = "state-blocked"
_FADED: Final = 0.5
"""How much of the background is in the colour of what is over."""
_BACKWARDS: Final = Style(reverse=True)


class Inks(NamedTuple):
    """The styles of one theme. What is over and asks for nothing is drawn in `faded`: it recedes."""

    palette: Palette
    faded: Mapping[str, Style]
    colorless: bool

    @classmethod
    def of(cls, palette: Palette, *, colorless: bool) -> Inks:
        """The inks of a palette. `colorless`: colours cannot be mixed, so that dim has to do."""
        background = None if colorless else palette.base.bgcolor
        return cls(palette, {name: _fade(style, background) for name, style in palette.states.items()}, colorless)


def _fade(style: Style, background: RichColor | None) -> Style:
    if style.color is None or background is None:
        return style + Style(dim=True)
    color = Color.from_rich_color(style.color).blend(Color.from_rich_color(background), _FADED)
    return Style(color=color.rich_color)


class Ground(NamedTuple):
    """What all rows of one picture share: the frame, the cells of its ticks and folds, and that of the present."""

    frame: Frame
    ticks: tuple[int, ...]
    folds: frozenset[int]
    present: int

    @classmethod
    def of(cls, frame: Frame, ticks: Sequence[float]) -> Ground:
        """The ground of a frame with ticks at these columns of its axis."""
        edges = [(floor(fold.left - frame.left), floor(fold.right - frame.left)) for fold in frame.axis.folds]
        folds = frozenset(x for left, right in edges for x in range(max(left + 1, 0), min(right, frame.width)))
        cells = (floor(column - frame.left) for column in ticks)
        lines = tuple(x for x in cells if 0 <= x < frame.width and x not in folds)
        return cls(frame, lines, folds, floor(frame.x(frame.now)))


class Bar(Canvas):
    """The cells of one row."""

    def __init__(self, ground: Ground, inks: Inks) -> None:
        super().__init__(ground.frame.width)
        self._ground = ground
        self._inks = inks
        self._palette = inks.palette
        for x in ground.ticks:
            self.put(x, TICK, self._palette.line)
        self.put(ground.present, NOW, self._palette.accent)

    def segments(self, base: Style) -> list[Segment]:
        """The row on a background."""
        return [Segment(text, base + style) for text, style in self.runs()]

    def draw(
        self, spans: Sequence[Span], below: Interval | None, *, asks: bool, note: str, pauses: Sequence[Pause] = ()
    ) -> None:
        """Draw a task: from the first to the last sign below it, its spans, in them its requests, and a note behind the
        present.

        `below` is None for a task without tasks below it; what is over fades unless the task `asks` for somebody.
        """
        frame = self._ground.frame
        edges = self._edges(spans)
        sides = edges
        if below is not None:
            start, end = frame.x(below[0]), frame.x(below[1])
            self._line(start, max(end, start + 1), BELOW, self._palette.muted)
            sides = [*edges, (start, end)]
        # Where all of it is out of sight, say at which side.
        if sides and max(right for _, right in sides) < 0:
            self.put(0, EARLIER, self._palette.muted)
        elif sides and min(left for left, _ in sides) >= self.width:
            self.put(self.width - 1, LATER, self._palette.muted)
        styles = [
            (self._palette.states if asks or span.end is None else self._inks.faded)[span.look.color] for span in spans
        ]
        drawn = sorted(zip(spans, edges, styles, strict=True), key=lambda one: one[0].kind is Kind.WORK)
        for span, (left, right), style in drawn:
            self._span(span, left, right, style, has_below=below is not None)
        for number, (span, (left, right), style) in enumerate(zip(spans, edges, styles, strict=True)):
            room = self._room_behind(spans[number + 1], edges[number + 1]) if number + 1 < len(spans) else self.width
            self._label(span, left, right, style, room)
        for pause in pauses:
            self._pause(pause)
        if note:
            self._write(self._ground.present + 2, [Part(note, self._palette.needs)], self.width)

    def _edges(self, spans: Sequence[Span]) -> list[Interval]:
        """From which cell to which; a wait begins where the bar before it is drawn to."""
        frame = self._ground.frame
        edges: list[Interval] = []
        for number, span in enumerate(spans):
            left, right = frame.x(span.start), frame.x(span.until(frame.now))
            if number and span.kind is not Kind.WORK:
                left = max(left, _behind(spans[number - 1], *edges[-1]))
            edges.append((left, right))
        return edges

    # Bars

    def _span(self, span: Span, left: float, right: float, style: Style, *, has_below: bool) -> None:
        if span.kind is not Kind.WORK:
            self._line(left, right, _FILLS[span.kind], style)
        elif right > left:
            if has_below:
                self._rail(left, right, style)
            elif _is_bad(span):
                self._line(*_whole(left, right), BAD, style)
            else:
                self._block(left, right, style)
        if not span.is_certain and (right > left or span.end is None):
            self.put(min(floor(left), self._ground.present) - 1, "?", self._palette.muted)

    def _pause(self, pause: Pause) -> None:
        frame, is_open = self._ground.frame, pause.end is None
        style = (self._palette.states if is_open else self._inks.faded)[_BLOCKED]
        left, right = floor(frame.x(pause.start)), floor(frame.x(frame.now if pause.end is None else pause.end))
        self._line(left + 1, right, WAIT, style)
        self.put(left, ASKED, style)
        if pause.end is not None and pause.end > pause.start:
            self.put(right, ANSWERED if pause.answered else OVER, style)

    def _line(self, left: float, right: float, glyph: str, style: Style) -> None:
        """Whole cells, up to the present."""
        for x in range(max(floor(left), 0), min(max(floor(right), 0), self._ground.present, self.width)):
            self.put(x, FOLDED if x in self._ground.folds else glyph, style)

    def _block(self, left: float, right: float, style: Style) -> None:
        """Whole cells, and eighths of a cell at both ends; up to the present."""
        start, end = _eighths(max(left, -1.0), min(right, self.width + 1.0))
        if self._inks.colorless:
            # A start within a cell needs reversed colours, and faint ones are not faint when reversed.
            start -= start % 8
        (first, before), (last, behind) = divmod(start, 8), divmod(min(end, self._ground.present * 8), 8)
        if first == last and behind > before:
            # A piece in the middle of a cell stands at the nearer side of it.
            if before + behind <= 8:
                self.put(first, _EIGHTHS[behind - before], style)
            else:
                self.put(first, _EIGHTHS[8 - behind + before], style + _BACKWARDS)
        elif first < last:
            self._line(first, last, WORK, style)
            if before and first not in self._ground.folds:
                self.put(first, _EIGHTHS[before], style + _BACKWARDS)
            if behind and last not in self._ground.folds:
                self.put(last, _EIGHTHS[behind], style)

    def _rail(self, left: float, right: float, style: Style) -> None:
        """A line over what is below, with half cells at both ends; up to the present."""
        start = floor(max(left, -1.0) * 2)
        end = max(round(min(right, self.width + 1.0) * 2), start + 1)
        (first, before), (last, behind) = divmod(start, 2), divmod(min(end, self._ground.present * 2), 2)
        self._line(first, last, RAIL, style)
        if before and first < self._ground.present and first not in self._ground.folds:
            self.put(first, "╺", style)
        if behind and not (before and first == last) and last not in self._ground.folds:
            self.put(last, "╸", style)

    # Words

    def _room_behind(self, following: Span, edges: Interval) -> int:
        """The cell that a label must not reach: the next attempt, or two cells of a wait before it."""
        if following.kind is Kind.WAIT:
            return min(floor(edges[1]), self._ground.present) - 2
        return floor(edges[0])

    def _label(self, span: Span, left: float, right: float, style: Style, room: int) -> None:
        """Glyph and length behind a bar; what goes on has them behind the present."""
        length = duration(span.until(self._ground.frame.now) - span.start) + ("" if span.is_certain else "+")
        face = [Part(span.look.glyph, style)]
        if span.end is None:
            words = f" {span.look.word} {length}" if span.kind is Kind.SILENT else f" {length}"
            label = [Part(f"NEEDS YOU {length}", self._palette.needs)] if span.asks else [*face, Part(words)]
            self._write(self._ground.present + 2, label, self.width)
        elif span.kind is Kind.WAIT:
            cells = floor(right) - floor(left)
            if cells >= len(length) + 12:
                self._write(floor(left) + (cells - len(length)) // 2, [Part(f" {length} ", self._palette.muted)], room)
        elif right >= 0:
            x = floor(left) if right <= left else _behind(span, left, right)
            timed = face if right <= left or length == "0s+" else [*face, Part(f" {length}", self._palette.muted)]
            if self._ground.present < x + width_of(timed):
                x = self._ground.present + 2
            if not self._write(x, timed, room):
                self._write(x, face, room + 2)

    def _write(self, x: int, label: Parts, room: int) -> bool:
        """Write where there is room, up to a cell. Returns whether there was."""
        if x < 0 or x + width_of(label) > min(room, self.width):
            return False
        for part in label:
            self.write(x, part.text, part.style)
            x += part.width
        return True


def _is_bad(span: Span) -> bool:
    return span.look.word in _BAD_WORDS


def _behind(span: Span, left: float, right: float) -> int:
    """The first cell behind a bar."""
    return _whole(left, right)[1] if _is_bad(span) else -(-_eighths(left, right)[1] // 8)


def _whole(left: float, right: float) -> tuple[int, int]:
    """The two ends of a shaded bar: shades have no parts of a cell."""
    return round(left), max(round(right), round(left) + 1)


def _eighths(left: float, right: float) -> tuple[int, int]:
    """The two ends of a bar in eighths of a cell, so far apart that it can be seen."""
    start = round(left * 8)
    return start, max(round(right * 8), start + _LEAST)
