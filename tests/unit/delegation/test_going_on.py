"""Runs that go on: their checklists, and the tokens that they use."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.delegation.events import Recorder, handoff, todos, tree_of
from tests.unit.delegation.test_runs import ROOT, child, message, ran

from agentwatch.contracts.shapes import Handoff
from agentwatch.delegation.events import Ran, Tick
from agentwatch.delegation.joined import JoinedTree
from agentwatch.delegation.run import Activity, ActivityKind, Run
from agentwatch.view.document import tree_document
from agentwatch.view.pulse import cost_of, rates

MAKE = Activity(150.0, ActivityKind.TOOL, "Bash", "make")
TODOS = todos("x", "-").items


def alive(run: Run, **more: object) -> Ran:
    """The run goes on."""
    run = replace(run, **more)  # type: ignore[arg-type]
    return Ran(50, run.updated_at, f"agents:{run.session_id}", run)


def test_of_two_checklists_the_one_of_the_run_counts_from_its_next_sign_of_life_on() -> None:
    one = child("one", prompt=message(Handoff("t", "Do it.")), todos=TODOS)
    see = Recorder().seen
    files = see("t.handoff.json", handoff("t")), see("t.todos.md", todos("x", "x"))
    tree = tree_of([*ran(ROOT, one), *files])
    assert tree.tasks["t"].progress == (2, 2)
    tree.apply(alive(one, doing=MAKE, updated_at=2_000.0))
    assert (tree.tasks["t"].progress, tree.tasks["t"].doing) == ((1, 2), MAKE)


def test_tokens_per_minute_are_those_of_the_last_minute_with_all_that_is_below() -> None:
    old = child("old", tokens=50_000, updated_at=1_000.0)
    tree = tree_of([*ran(replace(ROOT, updated_at=1_000.0), old), Tick(9, 1_000.0)])
    assert rates(tree) == (0, {}), "nobody knows when it used them"
    young = child("young", parent="old", started_at=990.0, updated_at=1_000.0, tokens=300)
    tree.apply(Ran(3, 1_000.0, "agents:young", young))
    tree.apply(alive(old, tokens=50_100, updated_at=1_010.0))
    tree.apply(alive(old, tokens=50_200, updated_at=1_030.0))
    tree.apply(Tick(9, 1_031.0))
    assert rates(tree) == (500, {"young": 300, "old": 500, "root": 500})
    tree.apply(Tick(9, 1_065.0))
    assert rates(tree) == (200, {"old": 200, "root": 200})
    tree.apply(Tick(9, 1_091.0))
    assert rates(tree).total == 0
    assert next(one for one in tree_document(tree, "/w")["tasks"] if one["task_id"] == "old")["tokens"] == 50_200


def test_tokens_that_are_read_again_were_not_used_again() -> None:
    root, one = replace(ROOT, updated_at=1_000.0), child("one", tokens=500, updated_at=1_000.0)
    tree = tree_of([*ran(root, one), Tick(9, 1_000.0)])
    for number, tokens in enumerate((None, 600)):
        tree.apply(alive(one, tokens=tokens, updated_at=1_001.0 + number))
    assert rates(tree).total == 100


def test_the_rate_of_a_tree_falls_with_its_time_also_where_it_is_one_of_several() -> None:
    one = child("one", tokens=500, updated_at=1_000.0)
    tree, joined = tree_of([*ran(replace(ROOT, updated_at=1_000.0), one), Tick(9, 1_000.0)]), JoinedTree("/")
    joined.show(tree)
    joined.update("", tree.apply(alive(one, tokens=600, updated_at=1_010.0)), moved=False)
    assert rates(joined).total == 100
    assert not tree.apply(Tick(9, 1_071.0)), "nothing else happens"
    assert rates(joined).total == 0


def test_a_task_costs_what_the_operator_says_a_million_tokens_of_its_model_cost() -> None:
    runs = child("one", tokens=500_000, model="acme/small"), child("two", tokens=1, model="other"), child("three")
    tasks = tree_of(ran(ROOT, *runs)).tasks
    assert [cost_of(tasks[name], {"small": 3.0}) for name in ("one", "two", "three")] == [1.5, None, None]
    assert cost_of(tasks["one"], {}) is None
