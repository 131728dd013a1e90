"""Lines for a person at a terminal: in colours, and wrapped by words. A pipe or a file gets each whole, and plain."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from agentwatch.shell import resolve_command
from agentwatch.text import Check, Mark, clean, say

# A safe text, and its ink: the name of a colour, `state-…` or `text-…`, or one of ours; "" for plain text.
Part = tuple[str, str]

NEEDS = "needs-you"
STRONG = "strong"
MUTED = "text-muted"
# Of the sixteen colours of a terminal, those that can be read on a dark and on a light ground.
_INKS = {
    NEEDS: "1;35",
    STRONG: "1",
    MUTED: "2",
    "text-error": "31",
    "text-warning": "35",
    "state-working": "36",
    "state-retrying": "36",
    "state-completed": "32",
    "state-partial": "35",
    "state-stale": "35",
    "state-blocked": "1;35",
    "state-escalated": "35",
    "state-failed": "31",
    "state-invalid": "31",
    "state-contradicted": "31",
    "state-canceled": "2",
}
_CHECKS = {Mark.GOOD: "state-completed", Mark.NOTE: "text-warning", Mark.BAD: "text-error"}
_READABLE = 100  # Columns of a page at most
_LEAST = 20  # Columns that a row has at least where a line is wrapped


def is_terminal() -> bool:
    """Whether a person reads the output."""
    return sys.stdout is not None and sys.stdout.isatty()


def has_colors() -> bool:
    """Whether the output may have colours, as https://no-color.org has it."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def say_line(*parts: Part | str, hang: int = 2, wraps: bool = True) -> None:
    """Print a line; on a terminal its further rows are indented by `hang` columns, if it `wraps`."""
    say("\n".join(_rows_of(parts, hang, wraps=wraps)))


def say_checks(checks: Iterable[Check]) -> int:
    """Print checks as they come, a line each. Returns 1 if one of them is bad, else 0."""
    code = 0
    for one in checks:
        say_line((one.mark, _CHECKS[one.mark]), f" {one.about}: {clean(one.found)}")
        code |= one.mark is Mark.BAD
    return code


def confirms(question: str) -> bool:
    """Whether the operator says yes at the terminal: only `y` or `yes`, and nothing that was typed before."""
    import termios

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    sys.stdout.write(f"\n{question} [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def say_pages(lines: Iterable[Sequence[Part | str]]) -> None:
    """Print lines, through the pager of the operator where they are longer than the screen."""
    rows = [row for line in lines for row in _rows_of(line, 0, most=_READABLE)]
    if not is_terminal() or len(rows) < _size().lines or not _is_paged("\n".join(rows)):
        say("\n".join(rows))


def _is_paged(text: str) -> bool:
    """Whether a pager has shown a text."""
    import shlex
    import signal
    import subprocess

    # ctrl+c is for the pager, which gives the terminal back as it was.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        pager = resolve_command(shlex.split(os.environ.get("PAGER") or "less"))
        # Without R, less would show the colours as signs.
        environment = {"LESS": "R", **os.environ}
        subprocess.run(pager, input=text, env=environment, text=True, errors="replace", check=False)  # noqa: S603
    except (OSError, ValueError, IndexError):
        return False
    finally:
        signal.signal(signal.SIGINT, before)
    return True


def _size() -> os.terminal_size:
    import shutil  # what prints JSON needs none of it

    return shutil.get_terminal_size()


def _rows_of(parts: Sequence[Part | str], hang: int, *, wraps: bool = True, most: int = 10_000) -> list[str]:
    """The rows of a line, as they are printed. Those of a list stand below its words."""
    told = [(part, "") if isinstance(part, str) else part for part in parts]
    text = "".join(words for words, _ in told)
    if not is_terminal():
        return [text]
    lead = len(text) - len(text.lstrip(" "))
    hang += lead + 2 * text[lead:].startswith("- ")
    known = _INKS if has_colors() else {}
    inks = [known.get(ink, "") for words, ink in told for _ in words]
    rows = [
        "".join(
            f"\x1b[{ink}m{words}\x1b[0m" if ink else words
            for ink, places in groupby(range(start, end), key=inks.__getitem__)
            if (words := "".join(text[place] for place in places))
        )
        for start, end in (_wrapped(text, lead, hang, min(_size().columns, most)) if wraps else [(0, len(text))])
    ]
    return [rows[0], *(" " * hang + row for row in rows[1:])]


def _wrapped(text: str, lead: int, hang: int, width: int) -> Iterator[tuple[int, int]]:
    """Where each row of a text begins and ends. A word that is longer than a row, such as a path, stays whole."""
    start, room = 0, width
    while width - hang >= _LEAST and (fits := _fits(text, start, room)) < len(text):
        end = text.rfind(" ", max(start, lead) + 1, fits + 1)
        if end < 0 and (end := text.find(" ", fits)) < 0:
            break
        yield start, len(text[:end].rstrip())
        start, room = end + len(text[end:]) - len(text[end:].lstrip()), width - hang
    yield start, len(text)


def _fits(text: str, start: int, room: int) -> int:
    """The place up to which a text fits into so many cells."""
    if text.isascii():
        return start + room
    from unicodedata import combining, east_asian_width

    for place in range(start, len(text)):
        room -= 0 if combining(text[place]) else 2 if east_asian_width(text[place]) in "WF" else 1
        if room < 0:
            return place
    return len(text)
