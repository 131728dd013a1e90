"""One observation costs a plain pass over all tasks, however long the chain that they make."""

from __future__ import annotations

import itertools

from agentwatch.contracts.shapes import Contract, Handoff, Outcome, Return
from agentwatch.delegation.events import Seen
from agentwatch.delegation.tree import Tree
from tests.benchmarks.measuring import Row, interleaved
from tests.benchmarks.workspaces import events

SIZES = (200, 5_000, 20_000)


def run() -> list[Row]:
    trees = {size: Tree() for size in SIZES}
    for size, tree in trees.items():
        tree.apply(*events(size))
    numbers = itertools.count(10**6)

    def add(tree: Tree, size: int) -> None:
        number = next(numbers)
        handoff = Handoff(f"new{number}", "Do more", parent_task_id=f"t{size // 2}")
        tree.apply(Seen(number, 3_000.0, f"new{number}.handoff.json", f"{number:064x}", handoff))

    def update(tree: Tree, size: int) -> None:
        number = next(numbers)
        document = Return(Contract.RETURN_FORMAT, "SUCCESS", Outcome.COMPLETED, f"t{size // 2 + number % 50}")
        tree.apply(Seen(number, 3_000.0, f"{document.task_id}.return.md", f"{number:064x}", document))

    rows = []
    for name, action in (("add", add), ("update", update)):
        actions = [lambda tree=trees[size], size=size, action=action: action(tree, size) for size in SIZES]
        smallest, *others = interleaved(actions, 50)
        rows += [
            Row(f"{name} a task, {size:,} tasks", f"{SIZES[0]} tasks", smallest, other, size / SIZES[0])
            for size, other in zip(SIZES[1:], others, strict=True)
        ]
    return [*rows, *short()]


def short() -> list[Row]:
    flat, deep = interleaved([lambda: load(deep=False), lambda: load(deep=True)], 3)
    once, often = interleaved([lambda: corrected(1), lambda: corrected(40)], 3)
    return [
        Row("load a chain of 3,000 tasks", "3,000 side by side", flat, deep, 1.5),
        Row("correct a return that was corrected 40 times", "one that was corrected once", once, often, 1.5),
    ]


def corrected(times: int) -> None:
    """Take in 4,000 returns, so many in a row from one file."""
    tree = Tree(remembers=True)
    for number in range(4_000):
        task_id = f"t{number // times}"
        document = Return(Contract.RETURN_FORMAT, "SUCCESS", Outcome.COMPLETED, task_id)
        tree.apply(Seen(number, 3_000.0 + number, f"{task_id}.return.md", f"{number:064x}", document))


def load(*, deep: bool) -> None:
    """Take in 3,000 tasks, each handed over by the one before it or all by nobody."""
    tree = Tree()
    for number in range(3_000):
        parent = f"t{number - 1}" if deep and number else None
        handoff = Handoff(f"t{number}", "Do it", parent_task_id=parent)
        tree.add([Seen(number, 3_000.0, f"{number}.handoff.json", f"{number:064x}", handoff)])
    tree.settle()
