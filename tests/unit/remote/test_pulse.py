"""By how much a host's clock is ahead, whoever sets one, here or there, and whenever."""

from __future__ import annotations

import pytest

from agentwatch.remote.host import SILENT_SECONDS, Pulse

HOUR = 3600.0


class Clocks:
    """Ours, the host's, and one that nobody sets."""

    def __init__(self) -> None:
        self.steady, self.here, self.there = 100.0, 1e9, 1e9
        self.pulse = Pulse(lambda: self.here, lambda: self.steady)

    def passes(self, seconds: float) -> None:
        self.steady, self.here, self.there = self.steady + seconds, self.here + seconds, self.there + seconds

    def beat(self, way: float = 0.01, back: float = 0.01) -> None:
        """Something is said, and answered."""
        sent = self.steady
        self.passes(way)
        now = self.there
        self.passes(back)
        assert self.pulse.hear(sent, now)
        self.passes(5)


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_a_clock_that_is_set_counts_with_the_next_answer_however_slow_that_is(ahead: float) -> None:
    for there in (True, False):
        clocks = Clocks()
        for _ in range(8):
            clocks.beat()
        if there:
            clocks.there += ahead
        else:
            clocks.here -= ahead
        clocks.beat(way=1.0, back=1.0)
        assert clocks.pulse.offset == ahead


def test_what_a_slow_way_has_shown_wrongly_a_quick_one_puts_right() -> None:
    clocks = Clocks()
    clocks.there += HOUR
    clocks.beat()
    clocks.there -= HOUR
    clocks.beat(way=6.0, back=0.5)
    assert clocks.pulse.offset != 0.0
    clocks.beat()
    assert clocks.pulse.offset == 0.0


def test_what_was_answered_too_late_or_never_said_is_no_answer() -> None:
    clocks = Clocks()
    sent = clocks.steady
    assert not clocks.pulse.hear(sent + 1, clocks.there)
    assert not clocks.pulse.hear(None, clocks.there)
    clocks.passes(SILENT_SECONDS)
    assert not clocks.pulse.hear(sent, clocks.there)
    assert clocks.pulse.heard_at is None


@pytest.mark.parametrize("now", [253_402_300_800.0, -62_135_596_800.0, 0.0])
def test_by_a_clock_that_says_no_year_of_ours_nothing_is_dated_and_that_is_said(now: float) -> None:
    clocks = Clocks()
    assert not clocks.pulse.hear(clocks.steady, now)
    assert not clocks.pulse.is_alive
    assert clocks.pulse.trouble.endswith(": set it there")
    clocks.beat()
    assert (clocks.pulse.trouble, clocks.pulse.offset) == ("", 0.0)
