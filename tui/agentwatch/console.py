"""Prints lines. On a terminal, the lines have colours, and long lines wrap between words."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from agentwatch.shell import resolve_command
from agentwatch.text import Check, Mark, clean, print_text

# A safe text and its ink. The ink is a key of `_INKS`, or "" for plain text.
Part = tuple[str, str]

NEEDS = "needs-you"
STRONG = "strong"
MUTED = "text-muted"
# The terminal's codes (SGR) for the inks. These colours are readable on dark and on light backgrounds.
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
_READABLE = 100  # the most columns of a row of the manual
_LEAST = 20  # the fewest columns that a wrapped row may have


def is_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def has_colors() -> bool:
    """Whether the output may have colours, by the rules of https://no-color.org."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def print_line(*parts: Part | str, hang: int = 2, wraps: bool = True) -> None:
    """Print a line. On a terminal, a long line wraps, and its later rows are indented by `hang` columns."""
    print_text("\n".join(_rows_of(parts, hang, wraps=wraps)))


def print_checks(checks: Iterable[Check]) -> int:
    """Print each check as a line. Return 1 if a check is bad, else 0."""
    code = 0
    for one in checks:
        print_line((one.mark, _CHECKS[one.mark]), f" {one.about}: {clean(one.found)}")
        code |= one.mark is Mark.BAD
    return code


def ask_to_confirm(question: str) -> bool:
    """Ask a question at the terminal. Return True if the operator types `y` or `yes`."""
    import termios

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    sys.stdout.write(f"\n{question} [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def print_pages(lines: Iterable[Sequence[Part | str]]) -> None:
    """Print lines. If the lines do not fit on the screen, show them in the operator's pager."""
    rows = [row for line in lines for row in _rows_of(line, 0, most=_READABLE)]
    if not is_terminal() or len(rows) < _terminal_size().lines or not _show_in_pager("\n".join(rows)):
        print_text("\n".join(rows))


def _show_in_pager(text: str) -> bool:
    """Show a text in the operator's pager. Return False if the pager cannot be started."""
    import shlex
    import signal
    import subprocess

    # While the pager runs, ignore ctrl+c. The pager handles the key and restores the terminal.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        pager = resolve_command(shlex.split(os.environ.get("PAGER") or "less"))
        # Without the option R, `less` would show colour codes as characters.
        environment = {"LESS": "R", **os.environ}
        subprocess.run(pager, input=text, env=environment, text=True, errors="replace", check=False)  # noqa: S603
    except (OSError, ValueError, IndexError):
        return False
    finally:
        signal.signal(signal.SIGINT, before)
    return True


def _terminal_size() -> os.terminal_size:
    import shutil  # imported late, because JSON output does not need it

    return shutil.get_terminal_size()


def _rows_of(parts: Sequence[Part | str], hang: int, *, wraps: bool = True, most: int = 10_000) -> list[str]:
    """Return a line as rows of the terminal. In a list entry (`- text`), later rows align with the text."""
    pairs = [(part, "") if isinstance(part, str) else part for part in parts]
    text = "".join(words for words, _ in pairs)
    if not is_terminal():
        return [text]
    lead = len(text) - len(text.lstrip(" "))
    hang += lead + 2 * text[lead:].startswith("- ")
    known = _INKS if has_colors() else {}
    inks = [known.get(ink, "") for words, ink in pairs for _ in words]
    rows = [
        "".join(
            f"\x1b[{ink}m{words}\x1b[0m" if ink else words
            for ink, places in groupby(range(start, end), key=inks.__getitem__)
            if (words := "".join(text[place] for place in places))
        )
        for start, end in (_wrap(text, lead, hang, min(_terminal_size().columns, most)) if wraps else [(0, len(text))])
    ]
    return [rows[0], *(" " * hang + row for row in rows[1:])]


def _wrap(text: str, lead: int, hang: int, width: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each row of a text. A word that is longer than a row is not split."""
    start, room = 0, width
    while width - hang >= _LEAST and (fits := _end_of_row(text, start, room)) < len(text):
        end = text.rfind(" ", max(start, lead) + 1, fits + 1)
        if end < 0 and (end := text.find(" ", fits)) < 0:
            break
        yield start, len(text[:end].rstrip())
        start, room = end + len(text[end:]) - len(text[end:].lstrip()), width - hang
    yield start, len(text)


def _end_of_row(text: str, start: int, room: int) -> int:
    """Return the index of the first character after `start` that does not fit into `room` columns."""
    if text.isascii():
        return start + room
    from unicodedata import combining, east_asian_width

    for place in range(start, len(text)):
        room -= 0 if combining(text[place]) else 2 if east_asian_width(text[place]) in "WF" else 1
        if room < 0:
            return place
    return len(text)
