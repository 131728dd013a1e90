"""A run that only goes on takes a short way through the tree, and the tree is as if it had taken the long one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.delegation.events import Recorder, handoff, todos, tree_of
from tests.unit.delegation.test_alarms import LIMITS, SESSIONS, doings
from tests.unit.delegation.test_runs import ROOT, child, message, ran

from agentwatch.contracts.shapes import Handoff
from agentwatch.delegation.events import Ran, Seen, Tick
from agentwatch.delegation.joined import JoinedTree
from agentwatch.delegation.rules import Rules
from agentwatch.delegation.run import Doing, DoingKind, Round, Run, RunState
from agentwatch.delegation.tree import DelegationTree
from agentwatch.view.document import tree_document
from agentwatch.view.pulse import cost_of, rates

MAKE = Doing(150.0, DoingKind.TOOL, "Bash", "make")
TODOS = todos("x", "-").items


def alive(run: Run, **more: object) -> Ran:
    """The run goes on."""
    run = replace(run, **more)  # type: ignore[arg-type]
    return Ran(50, run.updated_at, f"agents:{run.session_id}", run)


def test_what_only_goes_on_is_named_and_nothing_of_it_is_made_anew() -> None:
    one = child("one", parent="root", tokens=10)
    tree = tree_of([*ran(ROOT, one), Tick(9, 130.0)])
    findings, attempts = tree.tasks["one"].findings, tree.tasks["one"].attempts
    with patch.object(DelegationTree, "_rebuild", side_effect=AssertionError("made anew")):
        assert tree.apply(alive(one, doing=MAKE)) == {"one"}
        assert tree.tasks["one"].doing == MAKE
        assert tree.apply(alive(one, doing=MAKE, tokens=25, updated_at=131.0)) == {"one", "root"}
        assert tree.apply(alive(ROOT, tokens=5)) == {"root"}
    task, root = tree.tasks["one"], tree.tasks["root"]
    assert (task.findings, task.attempts) == (findings, attempts)
    assert (task.tokens, task.updated_at) == (25, 131.0)
    assert root.below is not None
    assert (root.below.tokens, root.below.active_at, tree.totals.tokens) == (25, 131.0, 30)
    assert [one.run.doing for one in tree.runs if one.run is not None] == [None, MAKE]


def test_of_two_checklists_the_one_of_the_run_counts_from_its_next_sign_of_life_on() -> None:
    one = child("one", prompt=message(Handoff("t", "Do it.")), todos=TODOS)
    see = Recorder().seen
    files = see("t.handoff.json", handoff("t")), see("t.todos.md", todos("x", "x"))
    tree = tree_of([*ran(ROOT, one), *files])
    assert tree.tasks["t"].progress == (2, 2)
    tree.apply(alive(one, doing=MAKE, updated_at=2_000.0))
    assert (tree.tasks["t"].progress, tree.tasks["t"].doing) == ((1, 2), MAKE)


CHANGES = st.builds(
    lambda session, more: child(session, parent="root" if session != "root" else "", **more),
    st.sampled_from(SESSIONS),
    st.fixed_dictionaries(
        {},
        optional={
            "state": st.sampled_from([RunState.WORKING, RunState.WORKING, RunState.WORKING, RunState.ENDED]),
            "tokens": st.none() | st.integers(0, 30),
            "doing": doings,
            "updated_at": st.sampled_from([120.0, 130.0, 1_080.0]),
            "todos": st.sampled_from([None, TODOS]),
            "prompt": st.sampled_from([message(None), message(Handoff("t", "Do it.", todos=TODOS))]),
            "waiting": st.sampled_from(["", "", "", "an answer"]),
            "rounds": st.sampled_from([(), (Round(110.0, state=RunState.ENDED), Round(115.0))]),
            "process_gone": st.sampled_from([None, False, True]),
        },
    ),
)
SIGNS = st.builds(
    lambda session, tokens, doing, at: (session, {"tokens": tokens, "doing": doing, "updated_at": at}),
    st.sampled_from(SESSIONS),
    st.none() | st.integers(0, 30),
    doings,
    st.sampled_from([120.0, 131.0, 132.0, 1_090.0]),
)
FILES = st.sampled_from([("t.handoff.json", handoff("t")), ("t.todos.md", todos("x", "x"))])


@given(st.lists(st.one_of(CHANGES, SIGNS, SIGNS, SIGNS, FILES, st.sampled_from([130.0, 140.0, 1_100.0])), max_size=20))
def test_the_short_way_comes_to_the_same_as_the_long_one(steps: list[Any]) -> None:
    short, long = (DelegationTree(Rules(limits=LIMITS, stale_after=5.0, history_before=125.0)) for _ in range(2))
    known: dict[str, Run] = {}
    for number, step in enumerate(steps):
        event: Any = Tick(number, step) if isinstance(step, float) else None
        if isinstance(step, Run):
            known[step.session_id] = step
            event = alive(step)
        elif isinstance(step, tuple) and step[0] in known:
            known[step[0]] = replace(known[step[0]], **step[1])
            event = alive(known[step[0]])
        elif isinstance(step, tuple) and isinstance(step[1], tuple):
            event = Seen(number, 131.0, step[0], str(number), step[1])
        if event is None:
            continue
        one = short.apply(event)
        with patch.object(DelegationTree, "_goes_on", return_value=False):
            other = long.apply(event)
        assert one <= other
        assert tree_document(short, "/w") == tree_document(long, "/w")
        assert list(short.queue) == list(long.queue)
        assert [task.below for task, _ in short.preorder()] == [task.below for task, _ in long.preorder()]


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
