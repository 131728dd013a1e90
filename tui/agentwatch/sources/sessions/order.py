"""What was asked for one after the other keeps that order, whatever the clock was set to meanwhile."""

from __future__ import annotations

from typing import Final

_STEP: Final = 0.001
"""Seconds between two of the same moment: as fine as the times in the stores."""


class Rising:
    """Called with the times, in seconds, of what stands one below the other: makes each later than the one before.

    >>> rising = Rising()
    >>> [rising(at) for at in (10.0, 11.0, 7.0)]
    [10.0, 11.0, 11.001]
    """

    def __init__(self) -> None:
        self._last = float("-inf")

    def __call__(self, at: float) -> float:
        self._last = max(at, self._last + _STEP)
        return self._last
