"""Whether a host answers, and by how much its clock is ahead: each answer names what was said last."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from agentwatch.view.times import iso

SILENT_SECONDS: Final = 15.0
"""A host that has not answered for so long is lost."""
_TOLERATED: Final = 2.0
"""Seconds by which the clocks may differ: nobody sees it."""
_FIRST_YEAR: Final = 946_684_800.0
_LAST_YEAR: Final = 7_258_118_400.0
"""2000 and 2200, in epoch seconds: a clock that says anything else is wrong, and nothing can be dated by it."""
_MOST_SENT: Final = 16
_STEP: Final = 0.001


class Pulse:
    """What was said to a host and answered. `clock` gives epoch seconds, `steady` those of a clock that nobody sets."""

    def __init__(self, clock: Callable[[], float], steady: Callable[[], float]) -> None:
        self.offset = 0.0
        """So many whole seconds the host's clock is ahead of ours; 0 where nobody sees the difference."""
        self.heard_at: float | None = None
        """When it has answered last, in epoch seconds."""
        self.trouble = ""
        """What is wrong with the host's clock, and what to do."""
        self._clock, self._steady = clock, steady
        self._heard_steady = float("-inf")
        self._sent: dict[float, float] = {}
        """By what was said, when that was, by a clock that nobody sets."""
        self._measured: deque[tuple[float, float]] = deque(maxlen=8)
        """Round trips in seconds, and by how much the host's clock was ahead in each."""

    @property
    def is_alive(self) -> bool:
        """Whether the host has just answered."""
        return self._steady() < self._heard_steady + SILENT_SECONDS

    def send(self) -> float:
        """What to say now: it is said only once."""
        steady = self._steady()
        sent = max(steady, max(self._sent, default=0.0) + _STEP)
        self._sent[sent] = steady
        if len(self._sent) > _MOST_SENT:
            del self._sent[next(iter(self._sent))]
        return sent

    def hear(self, echo: float | None, now: float, *, is_known: bool) -> bool:
        """The host answers to what was said, at its time `now`; whether it has just said so, and nobody has kept that
        for long. It counts only where it `is_known` who speaks."""
        sent, steady = self._sent.get(-1.0 if echo is None else echo), self._steady()
        if sent is None or steady - sent >= SILENT_SECONDS:
            return False
        is_plausible = _FIRST_YEAR <= now < _LAST_YEAR
        self.trouble = "" if is_plausible else f"its clock is at {(iso(now) or 'no year of ours')[:10]}: set it there"
        if not is_plausible:
            return False
        if is_known:
            self.heard_at, self._heard_steady = self._clock(), steady
            self._measure(now, sent, steady)
        return True

    def _measure(self, now: float, sent: float, steady: float) -> None:
        """How far the host's clock is ahead, as this round trip shows it, within half of what it took."""
        took = steady - sent
        ahead = now - (self._clock() - took / 2)
        # What differs by more than the way can explain is from before somebody set a clock, here or there.
        kept = [one for one in self._measured if abs(one[1] - ahead) <= _TOLERATED + (one[0] + took) / 2]
        self._measured = deque([*kept, (took, ahead)], maxlen=self._measured.maxlen)
        took, ahead = min(self._measured)
        # What was measured while the way was slow may seem to be so much; it is put right once that is certain.
        is_needless = self.offset != 0 and abs(ahead) + took / 2 < _TOLERATED / 2
        if is_needless or abs(ahead - self.offset) > _TOLERATED + took / 2:
            self.offset = float(round(ahead)) if abs(ahead) > _TOLERATED else 0.0
