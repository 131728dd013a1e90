"""What a long chain of handoffs costs: lines of code that run, which no other process can slow down."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from random import Random
from types import FrameType
from typing import Any

import pytest
from tests.app.scenes import Scene

from agentwatch.delegation.events import Event
from agentwatch.delegation.tree import DelegationTree


def lines_of(work: Callable[[], object]) -> int:
    """How many lines run while this does."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def chain(depth: int) -> list[Event]:
    scene = Scene()
    for number in range(depth):
        scene.handoff(f"n{number}", parent=f"n{number - 1}" if number else None)
    return list(scene.take())


def shuffled(events: Sequence[Event]) -> list[Event]:
    return Random(5).sample(events, len(events))


@pytest.mark.parametrize(
    "order", [list, lambda chain: chain[::-1], shuffled], ids=["root first", "leaf first", "mixed"]
)
def test_a_chain_costs_as_much_a_task_however_long_it_is(
    order: Callable[[list[Event]], list[Event]],
) -> None:
    def load(depth: int) -> int:
        tree, events = DelegationTree(), order(chain(depth))

        def work() -> None:
            for event in events:
                tree.take(event)
            tree.settle()

        count = lines_of(work)
        assert tree.totals.tasks == depth
        assert tree.tasks["n0"].below is not None
        assert tree.tasks["n0"].below.tasks == depth - 1
        return count

    assert load(400) < 2.4 * load(200)


def test_one_more_event_costs_a_few_lines_a_level() -> None:
    def event(depth: int) -> int:
        tree = DelegationTree()
        *above, last = chain(depth)
        for event in above:
            tree.take(event)
        tree.settle()
        return lines_of(lambda: tree.apply(last))

    assert event(600) - event(300) < 300 * 65


def test_a_chain_that_moves_as_a_whole_counts_once_at_its_new_place() -> None:
    scene = Scene()
    scene.handoff("other")
    for number in range(300):
        scene.handoff(f"n{number}", parent=f"n{number - 1}" if number else "nobody")
    tree = DelegationTree()
    for event in scene.take():
        tree.take(event)
    tree.settle()
    scene.handoff("n0", parent="other")
    (moved,) = scene.take()
    assert lines_of(lambda: tree.apply(moved)) < 2_000
    assert tree.roots == ["other"]
    assert tree.tasks["other"].below is not None
    assert tree.tasks["other"].below.tasks == 300
