"""The rows of the tree, in groups and in their order: made anew after each change."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Final

from agentwatch.app.widgets.rows import Outline
from agentwatch.contracts.shapes import Contract, Handoff, Outcome, Return
from agentwatch.delegation.events import Rules, Seen, Tick
from agentwatch.delegation.tree import Tree
from agentwatch.view.order import Group
from tests.benchmarks.measuring import Row, interleaved

SIZES: Final = (200, 2_000, 20_000)
ROUNDS: Final = 500

_NOW: Final = 2_000_000_000.0
_DAY: Final = 86_400.0


def _tree(size: int) -> Tree:
    """So many tasks, ten to a run, most of them of late in sixty days: the oldest are history, the newest run works."""
    tree = Tree(Rules(history_before=_NOW - 30 * _DAY))
    for number in range(size):
        run, at = number - number % 10, _NOW - 60 * _DAY * (1 - number // 10 / (size // 10 - 1)) ** 3
        parent = f"t{run}" if number != run else None
        handoff = Handoff(f"t{number}", "Do it", parent_task_id=parent)
        tree.add([Seen(number, at, f"t{number}.handoff.json", f"{number:064x}", handoff)])
        if number < size - 10:
            document = Return(Contract.RETURN_FORMAT, "SUCCESS", Outcome.COMPLETED, f"t{number}")
            tree.add([Seen(number, at, f"t{number}.return.md", f"{number + 10**9:064x}", document)])
    tree.apply(Tick(size, _NOW))
    return tree


def _outline(tree: Tree) -> Outline:
    outline = Outline(tree, lambda: _NOW)
    outline.apply(list(tree.tasks))
    outline.settle(40)
    outline.build()
    return outline


def _adds(tree: Tree, size: int) -> Iterator[set[str]]:
    """What the tree says to one more task in the run that works, and so on."""
    for number in itertools.count(10**6):
        handoff = Handoff(f"new{number}", "Do more", parent_task_id=f"t{size - 10}")
        yield tree.apply(Seen(number, _NOW, f"new{number}.handoff.json", f"{number:064x}", handoff))


def _updates(tree: Tree, size: int) -> Iterator[set[str]]:
    """What the tree says to a return of one of the tasks that work, which is corrected again and again."""
    for number in itertools.count(2 * 10**6):
        task_id = f"t{size - 9 + number % 9}"
        outcome = Outcome.FAILED if number // 9 % 2 else Outcome.COMPLETED
        document = Return(Contract.RETURN_FORMAT, outcome.upper(), outcome, task_id)
        yield tree.apply(Seen(number, _NOW, f"{task_id}.return.md", f"{number:064x}", document))


def _walk(tree: Tree) -> list[str]:
    """All tasks, each before its children."""
    found, pending = list[str](), list(reversed(tree.roots))
    while pending:
        found.append(task_id := pending.pop())
        pending += reversed(tree.tasks[task_id].children)
    return found


def run() -> list[Row]:
    trees = {size: _tree(size) for size in SIZES}
    outlines = {size: _outline(tree) for size, tree in trees.items()}
    for outline in outlines.values():
        if not all(outline.order.groups[group] for group in Group):
            raise RuntimeError("a group has no run")
    rows = []
    for name, changes in (("add", _adds), ("update", _updates)):
        # The tree is further than its outline has heard: only that is measured.
        heard = {size: list(itertools.islice(changes(trees[size], size), ROUNDS)) for size in SIZES}
        rows += _side_by_side(f"rows of one {name}", [_next_of(outlines[size], heard[size]) for size in SIZES], ROUNDS)
    for size in SIZES:
        walked, made = interleaved([lambda size=size: _walk(trees[size]), lambda size=size: _outline(trees[size])], 3)
        rows.append(Row(f"make the rows of {size:,} tasks", "a walk through the tree", walked, made))
    return rows


def _next_of(outline: Outline, heard: list[set[str]]) -> Callable[[], object]:
    """Each call takes in the next change, and makes the rows."""
    left = iter(heard)

    def refresh() -> None:
        outline.apply(next(left))
        outline.build()

    return refresh


def _side_by_side(what: str, actions: list[Callable[[], object]], rounds: int) -> list[Row]:
    smallest, *others = interleaved(actions, rounds)
    return [
        Row(f"{what}, {size:,} tasks", f"{SIZES[0]} tasks", smallest, other)
        for size, other in zip(SIZES[1:], others, strict=True)
    ]
