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
from agentwatch.delegation.tree import Tree


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
        tree, events = Tree(), order(chain(depth))

        def work() -> None:
            for event in events:
                tree.add([event])
            tree.settle()

        count = lines_of(work)
        assert tree.totals.tasks == depth
        assert tree.tasks["n0"].below is not None
        assert tree.tasks["n0"].below.tasks == depth - 1
        return count

    assert load(400) < 2.4 * load(200)
