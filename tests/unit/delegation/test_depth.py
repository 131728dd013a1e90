"""Chains of thousands of tasks, each below the one before."""

from __future__ import annotations

from random import Random

from tests.unit.delegation.events import Recorder, handoff

from agentwatch.delegation.tree import Tree


def test_a_long_chain_in_any_order_counts_all_that_is_below() -> None:
    see, tree = Recorder().seen, Tree()
    chain = [see(f"{n}.json", handoff(f"n{n}", parent_task_id=f"n{n - 1}" if n else None)) for n in range(3_000)]
    tree.apply(*Random(5).sample(chain, len(chain)))
    assert tree.roots == ["n0"]
    assert tree.tasks["n0"].below is not None
    assert tree.tasks["n0"].below.tasks == tree.totals.tasks - 1 == 2_999
    moved = see("0.json", handoff("n0", parent_task_id="n2999"))
    assert {"n0", "n2999"} <= tree.apply(moved)
    assert len(tree.roots) == 3_000, "a cycle is not followed"
