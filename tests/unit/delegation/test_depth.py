"""What a long chain of handoffs costs: lines of code that run, which no other process can slow down."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from random import Random
from types import FrameType
from typing import Any

import pytest
from tests.app.scenes import Scene

from agentwatch.delegation.observation import Observation
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


def chain(depth: int) -> list[Observation]:
    scene = Scene()
    for number in range(depth):
        scene.handoff(f"n{number}", parent=f"n{number - 1}" if number else None)
    return list(scene.take())


def shuffled(observations: Sequence[Observation]) -> list[Observation]:
    return Random(5).sample(observations, len(observations))


@pytest.mark.parametrize(
    "order", [list, lambda chain: chain[::-1], shuffled], ids=["root first", "leaf first", "mixed"]
)
def test_a_chain_costs_as_much_a_task_however_long_it_is(
    order: Callable[[list[Observation]], list[Observation]],
) -> None:
    def load(depth: int) -> int:
        tree, observations = DelegationTree(), order(chain(depth))

        def work() -> None:
            for observation in observations:
                tree.take(observation)
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
        for observation in above:
            tree.take(observation)
        tree.settle()
        return lines_of(lambda: tree.apply(last))

    assert event(600) - event(300) < 300 * 65


def test_a_chain_that_moves_as_a_whole_counts_once_at_its_new_place() -> None:
    scene = Scene()
    scene.handoff("other")
    for number in range(300):
        scene.handoff(f"n{number}", parent=f"n{number - 1}" if number else "nobody")
    tree = DelegationTree()
    for observation in scene.take():
        tree.take(observation)
    tree.settle()
    scene.handoff("n0", parent="other")
    (moved,) = scene.take()
    assert lines_of(lambda: tree.apply(moved)) < 2_000
    assert tree.roots == ["other"]
    assert tree.tasks["other"].below is not None
    assert tree.tasks["other"].below.tasks == 300
