"""Records one decision in the demo, as a terminal shows it: `decision.cast` (asciinema, version 2) and `decision.svg`.

Run `python -m screenshots.record` where the tests' packages are installed. The keys are typed into a real terminal; the
animated picture has a frame for each thing that happens, and needs no script and no font from the network.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from pyte.screens import Char

from tests.terminal.emulator import Terminal, agentwatch

HERE: Final = Path(__file__).parent
COLUMNS, LINES = 104, 30
LONGEST_PAUSE: Final = 1.6
"""Seconds of a pause in the cast: nobody wants to wait as long as the demo does."""
TYPED: Final = 0.07
"""Seconds between two keys."""

STILL: Final = 2
"""The frame that is shown where nothing moves."""

# Of the picture, in pixels.
WIDTH, HEIGHT, BASE, MARGIN = 8.4, 17.0, 13.0, 10
INK, PAPER = "#d8dee9", "#101418"
_COLOURS: Final = {
    "black": "#101418", "red": "#e06c75", "green": "#98c379", "brown": "#e5c07b", "blue": "#61afef",
    "magenta": "#c678dd", "cyan": "#56b6c2", "white": "#d8dee9",
}  # fmt: skip


class Frame(NamedTuple):
    """The content of the screen: its lines as runs of equal cells, and for how many seconds."""

    rows: list[list[tuple[str, Char]]]
    seconds: float


class Recorder(Terminal):
    """A terminal that notes when what was written, and takes a frame where it is told to."""

    def __init__(self, home: Path) -> None:
        places = {name: str(home / name) for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
        super().__init__(agentwatch("demo"), columns=COLUMNS, lines=LINES, environment=places)
        self.events: list[tuple[float, str]] = []
        self.frames: list[Frame] = []

    def _read(self, timeout: float) -> bool:
        before = len(self.written)
        has_read = super()._read(timeout)
        if len(self.written) > before:
            self.events.append((time.monotonic(), self.written[before:].decode("utf-8", "surrogateescape")))
        return has_read

    def look(self, seconds: float) -> None:
        """Read on for so long: what is there can be read by who watches."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._read(min(left, 0.05))

    def take(self, seconds: float) -> None:
        """A frame of the picture, to be shown for so long."""
        rows = []
        for number in range(LINES):
            cells = [self.screen.buffer[number][column] for column in range(COLUMNS)]
            runs = groupby(cells, key=lambda cell: cell._replace(data=""))
            rows.append([("".join(cell.data for cell in run), style) for style, run in runs])
        self.frames.append(Frame(rows, seconds))

    def type(self, keys: str) -> None:
        for key in keys:
            self.press(key)
            self.look(TYPED)


def record(home: Path) -> Recorder:
    """Play it: a child needs the operator, who retries it with a note and sees it through."""
    terminal = Recorder(home)
    with terminal:
        terminal.wait_for(r"checkout")
        terminal.look(1.0)
        terminal.take(2.0)
        terminal.wait_for(r"NEEDS YOU")
        terminal.look(1.2)
        terminal.take(2.5)
        terminal.press("n")
        terminal.wait_for(r"▌.*✗ api")
        terminal.look(1.5)
        terminal.take(3.0)
        terminal.press("r")
        terminal.wait_for(r"Retry")
        terminal.look(1.2)
        terminal.take(2.5)
        terminal.type("raise the time-out first, then migrate")
        terminal.wait_for(r"◆ ctrl\+s records this decision")
        terminal.look(0.8)
        terminal.take(3.0)
        terminal.press("\x13")
        terminal.wait_for(r"recorded")
        terminal.look(0.8)
        terminal.take(2.0)
        terminal.wait_for(r"· acted")
        terminal.look(1.5)
        terminal.take(3.0)
        terminal.press("q")
        terminal.wait_until_exit()
    return terminal


def cast(terminal: Recorder) -> Iterator[str]:
    """The lines of the cast."""
    header = {"version": 2, "width": COLUMNS, "height": LINES, "title": "agentwatch: one decision"}
    yield json.dumps({**header, "env": {"TERM": "xterm-256color"}})
    at, before = 0.0, terminal.events[0][0]
    for moment, text in terminal.events:
        at += min(moment - before, LONGEST_PAUSE)
        before = moment
        yield json.dumps([round(at, 3), "o", text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")])


def picture(frames: list[Frame]) -> Iterator[str]:
    """The lines of the animated picture."""
    width, height = COLUMNS * WIDTH + 2 * MARGIN, LINES * HEIGHT + 2 * MARGIN
    whole = sum(frame.seconds for frame in frames)
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}">'
    yield "<style>text{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}"
    yield f".f{{visibility:hidden;animation:{whole:g}s step-end infinite}}"
    began = 0.0
    for number, frame in enumerate(frames):
        start, end = 100 * began / whole, 100 * (began + frame.seconds) / whole
        hidden = "0%{visibility:hidden}" if number else ""
        yield f"@keyframes k{number}{{{hidden}{start:.3f}%{{visibility:visible}}{end:.3f}%{{visibility:hidden}}}}"
        began += frame.seconds
    yield f'</style><rect width="100%" height="100%" rx="8" fill="{PAPER}"/>'
    for number, frame in enumerate(frames):
        still = ";visibility:visible" if number == STILL else ""
        yield f'<g class="f" style="animation-name:k{number}{still}">'
        for line, row in enumerate(frame.rows):
            yield from _runs(row, MARGIN + line * HEIGHT)
        yield "</g>"
    yield "</svg>"


def _runs(row: list[tuple[str, Char]], top: float) -> Iterator[str]:
    column = 0
    for text, style in row:
        ink, paper = _colour(style.fg, INK), _colour(style.bg, PAPER)
        if style.reverse:
            ink, paper = paper, ink
        left, length = MARGIN + column * WIDTH, len(text) * WIDTH
        if paper != PAPER:
            yield f'<rect x="{left:.1f}" y="{top:.1f}" width="{length:.1f}" height="{HEIGHT}" fill="{paper}"/>'
        if text.strip():
            bold = ' font-weight="bold"' if style.bold else ""
            place = f'x="{left:.1f}" y="{top + BASE:.1f}" textLength="{length:.1f}" xml:space="preserve"'
            yield f'<text {place} fill="{ink}"{bold}>{escape(text)}</text>'
        column += len(text)


def _colour(name: str, default: str) -> str:
    return default if name == "default" else _COLOURS.get(name, f"#{name}")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="agentwatch-record-") as home:
        terminal = record(Path(home))
    (HERE / "decision.cast").write_text("\n".join(cast(terminal)) + "\n", "utf-8")
    (HERE / "decision.svg").write_text("\n".join(picture(terminal.frames)) + "\n", "utf-8")


if __name__ == "__main__":
    main()
