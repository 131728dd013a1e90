"""Runs that go on: their checklists, and the tokens that they use."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.delegation.events import Recorder, handoff, todos, tree_of
from tests.unit.delegation.test_runs import ROOT, child, message, ran

from agentwatch.contracts.shapes import Handoff
from agentwatch.delegation.events import Ran
from agentwatch.delegation.run import Activity, ActivityKind, Run
from agentwatch.view.words import cost_of

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


def test_a_task_costs_what_the_operator_says_a_million_tokens_of_its_model_cost() -> None:
    runs = child("one", tokens=500_000, model="acme/small"), child("two", tokens=1, model="other"), child("three")
    tasks = tree_of(ran(ROOT, *runs)).tasks
    assert [cost_of(tasks[name], {"small": 3.0}) for name in ("one", "two", "three")] == [1.5, None, None]
    assert cost_of(tasks["one"], {}) is None
