"""How times are said, how long an attempt took, and in which group of the screen a run stands."""

from datetime import datetime

import pytest

from agentwatch.delegation.task import Attempt, Shown, State, Task
from agentwatch.view.rows import Group, day, group_of
from agentwatch.view.words import Took, ago, clock, duration, in_units, local, seconds_of, took, utc

DAY = 86_400.0
NOW = datetime(2024, 6, 19, 12).timestamp()  # noqa: DTZ001 - noon of a Wednesday, wherever this runs


def test_a_time_is_said_in_few_characters():
    spans = {None: "-", -5: "0s", 59.9: "59s", 860: "14m", 3 * 3_600 + 59: "3h", 999 * DAY: "999d", 1_000 * DAY: "2y"}
    assert {seconds: duration(seconds) for seconds in spans} == spans
    spans = {200: "3m 20s", 7_500: "2h 5m", 12 * DAY + 14_460: "12d 4h", 3_605: "1h"}
    assert {seconds: in_units(seconds) for seconds in spans} == spans
    assert (ago(NOW - 4.9, NOW), ago(NOW - 5, NOW)) == ("just now", "5s ago")
    assert (clock(NOW - 62, NOW), clock(NOW - DAY, NOW), clock(1e20, NOW)) == ("11:58:58", "2024-06-18 12:00", "?")
    texts = {"90s": 90, "1.5h": 5_400, "2d": 2 * DAY, "10": None, "-3m": None, "nand": None, "infd": None, "": None}
    assert {text: seconds_of(text) for text in texts} == texts
    assert (utc(None), utc(0.0), local(1e20)) == ("-", "1970-01-01 00:00:00", "?")
    days = {-1: "today", 0: "today", 1: "yesterday", 6: "Thursday", 7: "12 Jun", 366: "Jun 2023"}
    assert {count: day(NOW - count * DAY, NOW) for count in days} == days


@pytest.mark.parametrize(
    ("fields", "so_far"),
    [
        ({"own_state": State.WORKING}, Took(100.0, so_far=True)),
        ({"own_state": State.WORKING, "lost_since": NOW - 60}, Took(40.0, so_far=True)),
        ({"own_state": State.WORKING, "shown": Shown.SILENT, "since": NOW - 30}, Took(70.0)),
        ({"own_state": State.FAILED, "ended_at": NOW - 20}, Took(80.0)),
        ({"own_state": State.FAILED}, None),
    ],
)
def test_how_long_the_last_attempt_took(fields, so_far):
    attempts = [Attempt(1, started_at=NOW - 200), Attempt(2, started_at=NOW - 100)]
    task = Task("a", "a", attempts=attempts, **fields)
    assert (took(task, attempts[1], NOW), took(task, attempts[0], NOW)) == (so_far, None)


@pytest.mark.parametrize(
    ("ago", "fields", "group"),
    [
        (9 * DAY, {"ask": "retry?"}, Group.NOW),
        (9 * DAY, {"past": True}, Group.HISTORY),
        (9 * DAY, {"shown": Shown.IDLE}, Group.NOW),
        (9 * DAY, {"state": State.RETRYING}, Group.NOW),
        (9 * DAY, {"workspace": "/w", "lost_since": NOW}, Group.NOW),
        (9 * DAY, {"workspace": "/w", "host": "build1"}, Group.NOW),
        (9 * DAY, {"workspace": "/w"}, Group.EARLIER),
        (599, {}, Group.NOW),
        (601, {}, Group.TODAY),
        (3_599, {"state": State.WORKING}, Group.NOW),
        (3_601, {"state": State.WORKING}, Group.TODAY),
        (DAY, {}, Group.EARLIER),
    ],
)
def test_where_a_run_stands(ago, fields, group):
    assert group_of(Task("a", "a", updated_at=NOW - ago, **fields), NOW) is group
