"""What a check found, one line each, and what all of them together come to."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from agentwatch import exit_codes
from agentwatch.text import clean, say


class Mark(StrEnum):
    """How one thing that was looked at stands."""

    GOOD = "✓"
    NOTE = "!"
    BAD = "✗"


class Result(NamedTuple):
    """One thing that was checked, what was found, and what to do if it is wrong. `said` may quote foreign text."""

    mark: Mark
    about: str
    said: str


good = partial(Result, Mark.GOOD)
note = partial(Result, Mark.NOTE)
bad = partial(Result, Mark.BAD)


def tell(results: Iterable[Result]) -> int:
    """Print the results as they come. Returns 1 if one of them is bad, else 0."""
    code = exit_codes.DONE
    for one in results:
        say(f"{one.mark} {one.about}: {clean(one.said)}")
        code = exit_codes.NOT if one.mark is Mark.BAD else code
    return code
