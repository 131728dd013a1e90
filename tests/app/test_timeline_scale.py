"""Time to columns: the axis, its folds and ticks, and the window over it, without a screen."""

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwatch.app.screens.timeline import FOLD, Frame, View, fit, frame_of, ticks
from agentwatch.view.spans import Axis

MONDAY = 1_800_258_000.0
"""Monday, 18 January 2027, 07:40 in UTC."""
HOUR = 3_600.0
END = MONDAY + HOUR


@pytest.fixture(autouse=True)
def _utc(monkeypatch):
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
def test_all_of_time_has_room_and_a_column_leads_to_its_moment(parts, tail, room):
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
    assert all(right - left <= FOLD + 1e-6 for left, right in axis.folds)


def labels(start: float, seconds: float, width: int) -> list[tuple[int, str]]:
    stretches, now = [(start, start + seconds)], start + seconds
    axis = Axis(stretches, now, *fit(stretches, now, width))
    return list(ticks(Frame(axis, 0, width, now)).items())


@pytest.mark.parametrize("seconds", [3, 40, 130, 900, 5_000, 40_000, 200_000, 3e6, 5e7])
@pytest.mark.parametrize("width", [20, 60, 200])
def test_labels_do_not_touch_and_there_are_some(seconds, width):
    found = labels(MONDAY, seconds, width)
    assert found
    assert all(column + len(label) < following for (column, label), (following, _) in pairwise(found))


def test_ticks_are_round_moments_and_another_day_has_its_date():
    assert [label for _, label in labels(MONDAY, HOUR, 60)][:3] == ["07:40", "07:50", "08:00"]
    assert [label for _, label in labels(MONDAY + 7, 90, 60)][:2] == ["07:40:30", "07:41:00"]
    found = [label for _, label in labels(MONDAY, 40 * HOUR, 80)]
    assert (found[0], "19 Jan 00:00" in found) == ("12:00", True)


def test_a_long_idle_stretch_is_folded_and_has_no_names():
    stretches = [(MONDAY, END), (END + 30 * HOUR, END + 31 * HOUR)]
    frame = frame_of(View(), stretches, END + 31 * HOUR, 100)
    named = ticks(frame)
    assert frame.folded
    assert not frame.folded & set(named)
    assert next(label for x, label in named.items() if x > max(frame.folded)) == "19 Jan 15:00"
    assert not frame_of(View(folds_idle=False), stretches, END + 31 * HOUR, 100).folded


def zoomed(scale: float, moment: float, x: float | None) -> Frame:
    return frame_of(View(True, scale, moment, x), [(MONDAY, END)], END, 100)


def test_a_moment_stays_at_its_cell_until_all_of_time_fits():
    moment = MONDAY + 1_000
    assert zoomed(20.0, moment, 30).x(moment) == pytest.approx(30)
    assert (zoomed(20.0, moment, 30).fits, zoomed(1e4, moment, 30).fits) == (False, True)


def test_the_first_sign_and_the_present_end_the_way():
    assert zoomed(10.0, MONDAY, 500).x(MONDAY) == 1
    assert zoomed(10.0, END + HOUR, 0).x(END) == 1


def test_new_time_scrolls_in_while_the_present_is_followed():
    here = zoomed(10.0, 0.0, None)
    later = frame_of(View(True, 10.0), [(MONDAY, END + HOUR)], END + HOUR, 100)
    assert later.left > here.left
    assert later.x(END + HOUR) == here.x(END) == 83
