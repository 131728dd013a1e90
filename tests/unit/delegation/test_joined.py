"""Several trees as one: every task under a key of its own, each tree below a top row."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import cached_property

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.delegation.asking import decided, request, requested
from tests.unit.delegation.events import Recorder, handoff, meta, outline, returned, tree_of
from tests.unit.delegation.test_runs import ROOT, child, ran

from agentwatch.delegation.events import Rules, Tick
from agentwatch.delegation.request import Asked
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import JoinedTree, Tree

MARK = "\0mark."


def shop(*more: str) -> Tree:
    """A parent with a child that failed, and others that only were handed out."""
    see = Recorder().seen
    return tree_of(
        [
            see("a.json", handoff("a")),
            see("b.json", handoff("a.b")),
            see("b.md", returned("failed", task_id="a.b")),
            *(see(f"{name}.json", handoff(name)) for name in more),
        ]
    )


def test_the_same_id_in_two_trees_is_two_tasks_each_below_its_own_top_row() -> None:
    joined = JoinedTree(MARK)
    first, _ = joined.show(shop(), name="one", workspace="/w/one")
    second, _ = joined.show(shop("c"), name="two", workspace="/w/two")
    assert joined.roots == [first, second]
    assert [(task.own_id or task.title, depth) for task, depth in joined.preorder()] == [
        ("one", 0), ("a", 1), ("a.b", 2), ("two", 0), ("a", 1), ("a.b", 2), ("c", 1),
    ]  # fmt: skip
    assert joined.tasks[f"{first}a.b"].parent_id == f"{first}a"
    assert joined.ancestors(f"{second}a.b") == [f"{second}a", second]
    top = joined.tasks[first]
    assert (top.workspace, top.parent_id, top.state, top.needs_operator) == ("/w/one", None, State.FAILED, False)
    assert top.below is not None
    assert (top.below.tasks, top.below.needs_operator) == (2, 1)
    assert (joined.totals.tasks, joined.totals.needs_operator) == (5, 2)
    assert {task.own_id for task in joined.asking()} == {"a.b"}
    assert len(joined.queue) == 2


def test_a_key_says_which_tree_a_task_is_of() -> None:
    joined, one, two = JoinedTree(MARK), shop(), shop()
    scope, _ = joined.show(two, name="two")
    joined.show(one)
    assert joined.place(f"{scope}a.b") == (two, "a.b")
    assert joined.place("a.b") == (one, "a.b")
    assert joined.place(scope) is None
    assert joined.place(f"{MARK}9/a") is None


def test_only_what_has_changed_is_made_anew() -> None:
    joined, tree = JoinedTree(MARK), shop("c")
    scope, _ = joined.show(tree, name="one")
    before = joined.tasks[f"{scope}c"]
    see = Recorder()
    see.seq = 100
    changed = tree.apply(see.seen("b2.json", handoff("a.d")))
    assert joined.update(scope, tree, changed) == {scope, f"{scope}a", f"{scope}a.d"}
    assert joined.tasks[f"{scope}c"] is before
    assert list(joined.tasks[f"{scope}a"].children) == [f"{scope}a.b", f"{scope}a.d"]
    assert list(reversed(joined.tasks[f"{scope}a"].children)) == [f"{scope}a.d", f"{scope}a.b"]
    joined.update(scope, tree, tree.apply(see.gone("b2.json")._replace(undone=True)))
    assert f"{scope}a.d" not in joined.tasks


def test_what_asks_no_more_and_what_is_dropped_leaves_nothing() -> None:
    joined, tree = JoinedTree(MARK), shop()
    scope, _ = joined.show(tree, name="one")
    joined.show(shop())
    see = Recorder()
    see.seq = 100
    joined.update(scope, tree, tree.apply(see.seen("b.md", meta("completed", "a", "a.b"))))
    tree.apply(see.gone("b.md"))
    joined.update(scope, tree, tree.tasks)
    assert list(joined.queue) == ["a.b"]
    gone = joined.drop(scope)
    assert scope in gone
    assert not any(key.startswith(MARK) for key in joined.tasks)
    assert joined.roots == ["a"]
    assert joined.totals.tasks == 2


OF_ONE = {"apply", "add", "settle", "former_places", "leave_out"}
OF_ONE |= {"decisions", "holds_until", "left_out", "over", "requests", "requests_of", "troubled"}
"""Who watches or prints several workspaces asks each tree for these."""


def test_one_tree_alone_shows_what_it_shows_by_itself() -> None:
    """Whatever faces ask of a tree is answered alike: a method that looks elsewhere has to be one of both."""
    tree, joined = shop("c", "d"), JoinedTree(MARK)
    tree.apply(requested(request()))
    tree.apply(decided(request()))
    joined.show(tree)
    assert outline(joined) == outline(tree)
    task = tree.tasks["a.b"]
    assert joined.tasks["a.b"] is task
    given = {"task": task, "task_id": "a.b", "returned": task.latest.returned if task.latest else None}
    given |= {"roots": ["a.b"], "since": 0.0, "request_id": request().request_id, "path": "a.b.handoff.md"}
    asked = 0
    for name, member in inspect.getmembers(Tree):
        if name.startswith("_") or name in OF_ONE:
            continue
        if isinstance(member, property | cached_property):
            shown, own = getattr(joined, name), getattr(tree, name)
            assert shown == own or list(shown) == list(own), name
        else:
            wanted = [given[parameter] for parameter in list(inspect.signature(member).parameters)[1:]]
            answers = [getattr(one, name)(*wanted) for one in (joined, tree)]
            if hasattr(answers[0], "__iter__"):
                answers = [list(answer) for answer in answers]
            assert answers[0] == answers[1], name
        asked += 1
    assert asked > 5
    scope, _ = joined.show(tree_of([requested(request(2))]), name="other")
    assert joined.request(request(2).request_id) == Asked(f"{scope}s1", request(2))
    joined.drop(scope)
    for name in ("roots", "queue", "unseen", "now", "totals"):
        one, other = getattr(joined, name), getattr(tree, name)
        assert list(one) == list(other) if hasattr(one, "__iter__") else one == other, name


@pytest.mark.parametrize("task_id", [f"{MARK}1/a", f"{MARK}", "\0", "/"])
def test_an_id_that_looks_like_a_key_is_no_task_of_another_tree(task_id: str) -> None:
    """The mark is made of chance: here it is known, and still only a scope that there is names a tree."""
    joined = JoinedTree("\0other.")
    joined.show(shop(), name="one")
    joined.show(tree_of([Recorder().seen("a.json", handoff(task_id))]))
    assert (joined.place(task_id) or ())[1:] == (task_id,)


def test_what_is_silent_and_used_in_all_trees_is_counted_together() -> None:
    parts = [tree_of([*ran(ROOT, child("one", tokens=7)), Tick(9, 9_999.0)]) for _ in range(2)]
    joined = JoinedTree(MARK)
    for tree in parts:
        joined.show(tree, name="one")
    assert (joined.totals.stale, joined.totals.tokens) == (4, 14)


def test_a_top_row_heeds_only_what_is_not_past() -> None:
    see = Recorder()
    tree = tree_of(
        [
            see.seen("old.json", handoff("old")),
            see.seen("old.md", returned("failed", task_id="old")),
            see.seen("new.json", handoff("new")),
        ],
        history_before=1_002.5,
    )
    joined = JoinedTree(MARK)
    scope, _ = joined.show(tree, name="one", workspace="/w/one")
    top = joined.tasks[scope]
    assert joined.roots == [scope]
    assert list(top.children) == [f"{scope}old", f"{scope}new"]
    assert (top.state, top.past, top.below.tasks if top.below else 0) == (State.SUBMITTED, False, 1)
    assert joined.totals.tasks == 2
    joined.update(scope, tree, tree.apply(see.seen("old.md", returned("failed", task_id="old"))))
    assert (top.state, top.below.tasks if top.below else 0) == (State.FAILED, 2)


def test_a_workspace_in_which_all_is_history_is_history_as_a_whole() -> None:
    tree = tree_of([Recorder().seen("old.json", handoff("old"))], history_before=9_999.0)
    joined = JoinedTree(MARK)
    scope, _ = joined.show(tree, name="one")
    assert joined.roots == [scope]
    assert joined.tasks[scope].past
    assert list(joined.tasks[scope].children) == [f"{scope}old"]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(("handoff", "failed", "completed", "gone")))))
def test_step_by_step_it_comes_to_the_same_as_all_at_once(steps: list[tuple[str, str]]) -> None:
    see, tree, joined = Recorder(), Tree(Rules(history_before=1_004.5)), JoinedTree(MARK)
    scope, _ = joined.show(tree, name="one")
    for name, what in steps:
        path = f"{name}.json" if what == "handoff" else f"{name}.md"
        task_id = f"a.{name}" if name > "d" else name
        if what == "gone":
            step = see.gone(path)
        else:
            step = see.seen(path, handoff(task_id) if what == "handoff" else returned(what, task_id=task_id))
        joined.update(scope, tree, tree.apply(step))
        anew = JoinedTree(MARK)
        anew.show(tree, name="one")
        one, other = (
            {key: replace(task, children=list(task.children)) for key, task in each.tasks.items()}
            for each in (joined, anew)
        )
        assert one == other
        assert joined.roots == anew.roots
        assert joined.totals == anew.totals


def test_another_tree_of_the_same_workspace_takes_the_place_of_one_under_the_same_keys() -> None:
    joined, before = JoinedTree(MARK), shop("c")
    scope, _ = joined.show(before, name="one")
    joined.show(shop(), name="two")
    after = shop("d")
    keys = joined.update(scope, after, {*before.tasks, *after.tasks})
    assert keys == {scope, *(scope + task_id for task_id in ("a", "a.b", "c", "d"))}
    anew = JoinedTree(MARK)
    anew.show(after, name="one")
    anew.show(shop(), name="two")
    assert outline(joined) == outline(anew)
    assert joined.totals == anew.totals
    assert joined.place(f"{scope}d") is not None
