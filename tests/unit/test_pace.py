"""What goes on and on takes its share of one core, and a burst is not waited for."""

from __future__ import annotations

import pytest

from agentwatch import background
from agentwatch.background import Pace


class Clock:
    """Stands in for the module `time`."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(background, "time", clock)
    return clock


def test_there_is_no_rest_until_the_credit_is_used_up(clock: Clock) -> None:
    pace = Pace(0.25, 1.0, 10.0)
    pace.spend(1.0)
    assert pace.rest == 0.0
    pace.spend(0.5)
    assert pace.rest == 2.0
    clock.now += 2.0
    assert pace.rest == 0.0


def test_what_goes_on_takes_its_share(clock: Clock) -> None:
    pace, taken = Pace(0.25, 1.0, 10.0), 0.0
    while clock.now < 1_100.0:
        pace.spend(0.1)
        taken += 0.1
        clock.now += 0.1 + pace.rest
    assert taken == pytest.approx(250.0, rel=0.02)


def test_credit_does_not_pile_up_and_debt_is_forgotten(clock: Clock) -> None:
    pace = Pace(0.25, 1.0, 0.4)
    clock.now += 1_000.0
    pace.spend(1.1)
    assert pace.rest == pytest.approx(0.4)
    pace.spend(1_000.0)
    assert pace.rest == 0.4
    clock.now += 4.0
    assert pace.rest == 0.0
