"""Time to columns: the axis, its folds and ticks, and the window over it, without a screen."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwatch.app.screens.timeline import FOLD, Window, fit, ticks
from agentwatch.view.axis import Axis

MONDAY = 1_800_258_000.0
"""Monday, 18 January 2027, 07:40 in UTC."""
HOUR = 3_600.0
END = MONDAY + HOUR


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def _stretches(parts: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Idle and busy seconds in turn, as stretches."""
    found, at = [], MONDAY
    for idle, busy in parts:
        at += 601 + idle
        found.append((at, at + busy))
        at += busy
    return found


_PARTS = st.lists(st.tuples(st.floats(0, 1e7), st.floats(0, 1e5)), min_size=1, max_size=30)


@given(_PARTS, st.floats(0, 1e6), st.integers(20, 200))
@settings(deadline=None)
def test_all_of_time_has_room_in_its_order_and_a_column_leads_back_to_its_moment(
    parts: list[tuple[float, float]], tail: float, room: int
) -> None:
    stretches = _stretches(parts)
    now = stretches[-1][1] + tail
    axis = Axis(stretches, now, *fit(stretches, now, room))
    assert axis.column(now) <= room + 1e-6
    moments = sorted([moment for stretch in stretches for moment in stretch] + [now, now + 100, MONDAY])
    columns = [axis.column(moment) for moment in moments]
    assert columns == sorted(columns)
    for (start, end), (left, right) in zip(pairwise(moments), pairwise(columns), strict=True):
        middle = (left + right) / 2
        assert start - 1 <= axis.moment(middle) <= end + 1
        assert abs(axis.column(axis.moment(middle)) - middle) < 1e-3
    assert all(one.right - one.left <= FOLD + 1e-6 for one in axis.folds)


def labels(start: float, seconds: float, width: int) -> list[tuple[int, str]]:
    stretches, now = [(start, start + seconds)], start + seconds
    axis = Axis(stretches, now, *fit(stretches, now, width))
    return [(round(tick.column), tick.label) for tick in ticks(axis, 0, width, now)]


@pytest.mark.parametrize("seconds", [3, 40, 130, 900, 5_000, 40_000, 200_000, 3e6, 5e7])
@pytest.mark.parametrize("width", [20, 60, 200])
def test_labels_do_not_touch_and_there_are_some(seconds: float, width: int) -> None:
    found = labels(MONDAY, seconds, width)
    assert found
    assert all(column + len(label) < following for (column, label), (following, _) in pairwise(found))


def test_ticks_are_round_moments_of_local_time_and_a_day_begins_with_its_date() -> None:
    assert [label for _, label in labels(MONDAY, HOUR, 60)][:3] == ["07:40", "07:50", "08:00"]
    assert [label for _, label in labels(MONDAY + 7, 90, 60)][:2] == ["07:40:30", "07:41"]
    found = [label for _, label in labels(MONDAY, 40 * HOUR, 80)]
    assert (found[0], "19 Jan" in found) == ("12:00", True)


def window() -> Window:
    made = Window()
    made.width, made.reserve = 100, 10
    return made


def test_zooming_keeps_the_moment_at_its_cell_and_ends_in_the_fitted_window() -> None:
    view, stretches = window(), [(MONDAY, END)]
    frame = view.frame(stretches, END)
    moment = frame.axis.moment(frame.left + 30)
    for steps in (1, 1, 1, -1, 1):
        view.zoom(frame, steps, 30)
        frame = view.frame(stretches, END)
        assert (view.fits, frame.x(moment)) == (False, pytest.approx(30))
    view.zoom(frame, -5, 30)
    view.frame(stretches, END)
    assert view.fits


def test_new_time_scrolls_in_while_the_present_is_in_sight_and_not_when_the_operator_has_left() -> None:
    view = window()
    whole = view.frame([(MONDAY, END)], END)
    view.zoom(whole, 4, whole.x(END))
    frame = view.frame([(MONDAY, END)], END)
    assert view.follows
    later = view.frame([(MONDAY, END + HOUR)], END + HOUR)
    assert later.left > frame.left
    assert 0 < later.x(END + HOUR) <= 90
    view.pan(later, -8)
    gone = view.frame([(MONDAY, END + HOUR)], END + HOUR)
    assert not view.follows
    still = view.frame([(MONDAY, END + 2 * HOUR)], END + 2 * HOUR)
    assert (still.left, still.axis.scale) == pytest.approx((gone.left, gone.axis.scale))
    view.follow(still)
    back = view.frame([(MONDAY, END + 2 * HOUR)], END + 2 * HOUR)
    assert 0 < back.x(END + 2 * HOUR) <= 90


def test_panning_ends_at_the_first_sign_and_at_the_present() -> None:
    view, stretches = window(), [(MONDAY, END)]
    view.zoom(view.frame(stretches, END), 4, 0)
    view.pan(view.frame(stretches, END), -100)
    assert view.frame(stretches, END).x(MONDAY) == 1
    view.pan(view.frame(stretches, END), 100)
    assert view.frame(stretches, END).x(END) > 0


def test_hundreds_of_idle_stretches_leave_half_the_width_to_the_work() -> None:
    stretches = _stretches([(86_400.0, 300.0)] * 400)
    frame = window().frame(stretches, stretches[-1][1])
    assert frame.x(stretches[-1][1]) <= 90
    assert 400 * 300.0 / frame.axis.scale >= 35
