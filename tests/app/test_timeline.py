"""The timeline without a screen: the axis, its folds and ticks, the window over it, and the spans of a bar."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwatch.app.screens.timeline import (
    FOLD,
    IDLE,
    Axis,
    Frame,
    View,
    fit_scale,
    latest_span,
    make_frame,
    spans_of,
    stretches_of,
    tick_labels,
)
from agentwatch.contracts.shapes import Outcome
from agentwatch.delegation.decision import RequestStage, Stage
from agentwatch.delegation.events import Event, StartedBy, Tick
from agentwatch.delegation.tree import Tree
from tests.app.scenes import NOW, Scene
from tests.unit.delegation.asking import decided, permit, request, requested, session
from tests.unit.delegation.asking import ran as ran_session
from tests.unit.delegation.test_attempts import DONE, FAILED, child, decision, ran

MONDAY = 1_800_258_000.0
"""Monday, 18 January 2027, 07:40 in UTC."""
HOUR = 3_600.0
END = MONDAY + HOUR


pytestmark = pytest.mark.usefixtures("utc")


def _stretches(parts: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return idle and busy seconds, in turn, as stretches."""
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
    axis = Axis(stretches, now, *fit_scale(stretches, now, room))
    assert axis.column_at(now) <= room + 1e-6
    moments = sorted([moment for stretch in stretches for moment in stretch] + [now, now + 100, MONDAY])
    columns = [axis.column_at(moment) for moment in moments]
    assert columns == sorted(columns)
    for (start, end), (left, right) in zip(pairwise(moments), pairwise(columns), strict=True):
        middle = (left + right) / 2
        assert start - 1 <= axis.time_at(middle) <= end + 1
        assert abs(axis.column_at(axis.time_at(middle)) - middle) < 1e-3
    assert all(right - left <= FOLD + 1e-6 for left, right in axis.folds)


def labels(start: float, seconds: float, width: int) -> list[tuple[int, str]]:
    stretches, now = [(start, start + seconds)], start + seconds
    axis = Axis(stretches, now, *fit_scale(stretches, now, width))
    return list(tick_labels(Frame(axis, 0, width, now)).items())


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
    frame = make_frame(View(), stretches, END + 31 * HOUR, 100)
    named = tick_labels(frame)
    assert frame.folded_cells
    assert not frame.folded_cells & set(named)
    assert next(label for x, label in named.items() if x > max(frame.folded_cells)) == "19 Jan 15:00"
    assert not make_frame(View(folds_idle=False), stretches, END + 31 * HOUR, 100).folded_cells


def zoomed(scale: float, moment: float, x: float | None) -> Frame:
    return make_frame(View(True, scale, moment, x), [(MONDAY, END)], END, 100)


def test_a_moment_stays_at_its_cell_until_all_of_time_fits():
    moment = MONDAY + 1_000
    assert zoomed(20.0, moment, 30).cell_at(moment) == pytest.approx(30)
    assert (zoomed(20.0, moment, 30).fits, zoomed(1e4, moment, 30).fits) == (False, True)


def test_the_first_sign_and_the_present_end_the_way():
    assert zoomed(10.0, MONDAY, 500).cell_at(MONDAY) == 1
    assert zoomed(10.0, END + HOUR, 0).cell_at(END) == 1


def test_new_time_scrolls_in_while_the_present_is_followed():
    here = zoomed(10.0, 0.0, None)
    later = make_frame(View(True, 10.0), [(MONDAY, END + HOUR)], END + HOUR, 100)
    assert later.left > here.left
    assert later.cell_at(END + HOUR) == here.cell_at(END) == 83


def tree_of(*events: Event) -> Tree:
    tree = Tree()
    tree.apply(*events, Tick(10_000, NOW))
    return tree


Step = Callable[[Scene], None]


def seen(steps: Iterable[Step]) -> Tree:
    scene = Scene()
    for step in steps:
        step(scene)
    return tree_of(*scene.take())


def handed(ago: float, task_id: str = "a", **more: Any) -> Step:
    return lambda scene: scene.handoff(task_id, ago=ago, **more)


def back(ago: float, outcome: Outcome = Outcome.COMPLETED, task_id: str = "a", **more: Any) -> Step:
    return lambda scene: scene.returned(task_id, outcome, ago=ago, **more)


ATTEMPTS = [handed(90), back(60, Outcome.FAILED, attempt=1), handed(40, attempt=2), back(10, attempt=2)]
SPANS: dict[str, tuple[list[Step], list[tuple[str, str, float, float | None]]]] = {
    "returned": ([handed(90), back(30)], [("WORK", "completed", 90, 30)]),
    "two attempts": (ATTEMPTS, [("WORK", "failed", 90, 60), ("WAIT", "failed", 60, 40), ("WORK", "completed", 40, 10)]),
    "needs the operator": (
        [handed(90), back(60, Outcome.BLOCKED, blockers=("Which one?",))],
        [("WORK", "blocked", 90, 60), ("WAIT", "blocked", 60, None)],
    ),
    "working": ([handed(90), back(20, Outcome.WORKING)], [("WORK", "working", 90, None)]),
    "no sign of life": ([handed(90)], [("QUEUE", "submitted", 90, None)]),
    "silent": (
        [handed(5_000), back(4_000, Outcome.WORKING)],
        [("WORK", "working", 5_000, 4_000), ("SILENT", "silent", 4_000, None)],
    ),
    "waits for one below": (
        [handed(90), handed(60, "a.b"), back(20, task_id="a.b"), handed(10, "a.c")],
        [("WORK", "working", 90, 10), ("WAIT", "waiting", 10, None)],
    ),
    "a return alone": ([back(30)], [("WORK", "completed", 30, 30)]),
}


@pytest.mark.parametrize("name", SPANS)
def test_a_bar_is_made_of_what_was_seen(name):
    steps, expected = SPANS[name]
    found = spans_of(seen(steps).tasks["a"])
    ends = [(NOW - one.start, None if one.end is None else NOW - one.end) for one in found]
    assert [(one.kind.name, one.look.word, *both) for one, both in zip(found, ends, strict=True)] == expected


APART = [handed(9_000), back(8_000), handed(8_000 - IDLE, "b"), back(7_000, task_id="b"), handed(100, "c")]
# The idle time of child tasks stays idle although their parent waits for them.
WAITS = [handed(9_000), handed(8_900, "a.b"), back(8_500, Outcome.BLOCKED, "a.b", blockers=("?",)), back(100)]


@pytest.mark.parametrize(("steps", "until"), [(APART, 7_000), (WAITS, 8_500)])
def test_idle_time_is_where_nobody_gave_a_sign(steps, until):
    assert stretches_of(seen(steps)) == [(NOW - 9_000, NOW - until), (NOW - 100, NOW - 100)]


def test_a_retry_in_the_same_session_is_a_span_of_its_own():
    told = ran(child((StartedBy.PARENT, FAILED), (StartedBy.HOOK, DONE)))
    task = tree_of(*told, decision(FAILED, 117.0)).tasks["a"]
    told = [(span.number, span.kind.name, span.start, span.end) for span in spans_of(task)]
    assert told == [(1, "WORK", 110.0, 115.0), (1, "WAIT", 115.0, 120.0), (2, "WORK", 120.0, 125.0)]


def test_the_wait_for_an_answer_lasts_from_the_ask_to_the_answer():
    asked = [request(1), request(2, asked_at=1_110.0, stage=RequestStage.GONE, ended_at=1_115.0)]
    run = session(permit(at=1_130.0), updated_at=1_200.0, process_gone=False)
    answered = tree_of(ran_session(run), *map(requested, asked), decided(asked[0], stage=Stage.DELIVERED))
    told = [(span.kind.name, span.start, span.end, span.look.glyph) for span in spans_of(answered.tasks["s1"])]
    assert told == [
        ("WORK", 1_000.0, 1_100.0, "■"),
        ("WAIT", 1_100.0, 1_130.0, "■"),
        ("WORK", 1_130.0, 1_200.0, "◐"),
        ("SILENT", 1_200.0, None, "◌"),
    ]
    assert latest_span(spans_of(answered.tasks["s1"])[:-1])[:2] == (1_000.0, 1_200.0)  # fmt: skip
