"""What a check found, one line each, and what all of them together come to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from agentwatch import exit_codes
from agentwatch.text import clean, say


class Mark(StrEnum):
    """How one thing that was looked at stands."""

    GOOD = "✓"
    NOTE = "!"
    BAD = "✗"


@dataclass(frozen=True, slots=True)
class Result:
    """One thing that was checked, what was found, and what to do if it is wrong.

    `said` may quote foreign text.
    """

    mark: Mark
    about: str
    said: str


def good(about: str, said: str) -> Result:
    return Result(Mark.GOOD, about, said)


def note(about: str, said: str) -> Result:
    return Result(Mark.NOTE, about, said)


def bad(about: str, said: str) -> Result:
    return Result(Mark.BAD, about, said)


def tell(results: Iterable[Result]) -> int:
    """Print the results as they come. Returns 1 if one of them is bad, else 0."""
    code = exit_codes.DONE
    for one in results:
        say(f"{one.mark} {one.about}: {clean(one.said)}")
        code = exit_codes.NOT if one.mark is Mark.BAD else code
    return code
