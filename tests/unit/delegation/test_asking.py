"""The queue of those who need the operator."""

from __future__ import annotations

import pytest

from agentwatch.delegation.asks import Asking


@pytest.fixture
def queue() -> Asking:
    queue = Asking()
    for task_id, holds, since in (("late", 0, 9.0), ("early", 0, 1.0), ("holding", 3, 5.0)):
        queue.ask(task_id, holds, since, 0)
    return queue


def test_who_holds_up_most_is_first_then_who_has_asked_last(queue: Asking) -> None:
    assert list(queue) == ["holding", "late", "early"]


def test_of_those_who_hold_up_as_many_since_then_the_first_in_the_tree_is_first(queue: Asking) -> None:
    queue.ask("b", 0, 9.0, -2)
    queue.ask("a", 0, 9.0, 2)
    assert list(queue) == ["holding", "b", "late", "a", "early"]


def test_a_task_moves_when_more_wait_for_it_and_stands_there_once(queue: Asking) -> None:
    queue.ask("late", 4, 9.0, 0)
    assert list(queue) == ["late", "holding", "early"]
    assert len(queue) == 3


def test_who_asks_no_more_is_gone(queue: Asking) -> None:
    queue.discard("early")
    queue.discard("unknown")
    assert "early" not in queue
    assert list(queue) == ["holding", "late"]


@pytest.mark.parametrize(
    ("count", "first", "ids"),
    [
        (2, None, ["holding", "late"]),
        (2, "early", ["early", "holding"]),
        (9, "late", ["late", "early", "holding"]),
        (1, "unknown", ["holding"]),
    ],
)
def test_some_of_it_begin_anywhere_and_go_around(queue: Asking, count: int, first: str | None, ids: list[str]) -> None:
    assert queue.some(count, first) == ids


def test_where_nobody_asks_there_is_none() -> None:
    assert Asking().some(3) == []
