"""Several trees as one: every task under a key of its own, each tree below a top row."""

from collections.abc import Collection
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.delegation.events import Ruled, Rules, Tick
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import JoinedTree, Tree
from tests.unit.delegation.asking import decided, request, requested
from tests.unit.delegation.events import ROOT, Recorder, child, handoff, ran, returned, tree_of

MARK, ASKED = "\0mark.", request().request_id


def shop(*more: str) -> Tree:
    """Return a tree with a parent, a failed child, and `more` tasks that are only handed out."""
    see = Recorder().seen
    handed = [see(f"{name}.json", handoff(name)) for name in ("a", "a.b", *more)]
    return tree_of([*handed, see("b.md", returned("failed", task_id="a.b"))])


def test_the_same_id_in_two_trees_is_two_tasks():
    joined, one, two = JoinedTree(MARK), shop(), shop("c")
    first, _ = joined.add_tree(one, name="one", workspace="/w/one")
    second, _ = joined.add_tree(two, name="two", workspace="/w/two")
    assert joined.roots == [first, second]
    rows = [f"{depth} {task.own_id or task.title}" for task, depth in joined.preorder()]
    assert rows == ["0 one", "1 a", "2 a.b", "0 two", "1 a", "2 a.b", "1 c"]
    assert joined.ancestors(f"{second}a.b") == [f"{second}a", second]
    top = joined.tasks[first]
    assert (top.workspace, top.parent_id, top.state, top.needs_operator) == ("/w/one", None, State.FAILED, False)
    assert top.below is not None
    assert (top.below.tasks, top.below.needs_operator) == (2, 1)
    assert (joined.totals.tasks, joined.totals.needs_operator) == (5, 2)
    assert sorted(joined.queue) == [f"{first}a.b", f"{second}a.b"]
    places = {f"{first}a.b": (one, "a.b"), f"{second}c": (two, "c"), first: None, f"{MARK}9/a": None}
    assert {key: joined.locate(key) for key in places} == places
    gone = joined.remove_tree(first)
    assert gone == {first, f"{first}a", f"{first}a.b"}
    assert (joined.roots, joined.totals.tasks, gone & joined.tasks.keys()) == ([second], 3, set())


def test_a_copy_in_another_worktree_is_one_open_question():
    joined, others = JoinedTree(MARK), [shop(), shop(), shop("c")]
    for number, tree in enumerate(others):
        tree.apply(Ruled(0, 0.0, Rules(history_before=9e9)))
        joined.add_tree(tree, name=f"{number}" if number else None)
    assert [task.own_id for task in joined.past_questions()] == ["a.b", "a.b"]


def answers(tree: Tree) -> list[object]:
    """Return all that a face may ask of a tree."""
    told = tree.roots, tree.queue, tree.unseen, tree.now, tree.totals, tree.rules, list(tree.preorder())
    return [
        *told,
        tree.asking_tasks(),
        tree.past_questions(),
        tree.tasks_aside(),
        tree.ancestors("a.b"),
        tree.find_request(ASKED),
    ]


def test_a_single_tree_shows_the_same_as_unjoined():
    tree, joined = shop("c", "d"), JoinedTree(MARK)
    tree.apply(requested(request()), decided(request()))
    joined.add_tree(tree)
    assert answers(joined) == answers(tree)
    assert joined.tasks["a.b"] is tree.tasks["a.b"]
    scope, _ = joined.add_tree(tree_of([requested(request(2))]), name="other")
    assert joined.find_request(request(2).request_id) == (joined.tasks[f"{scope}s1"], request(2))
    joined.remove_tree(scope)
    assert answers(joined) == answers(tree)


@pytest.mark.parametrize("task_id", [f"{MARK}1/a", f"{MARK}", "\0", "/"])
def test_an_id_that_looks_like_a_key_is_no_task_of_another_tree(task_id):
    """The mark is random; even if it is known, only the key of an existing tree leads to that tree."""
    joined = JoinedTree("\0other.")
    joined.add_tree(shop(), name="one")
    joined.add_tree(tree_of([Recorder().seen("a.json", handoff(task_id))]))
    assert (joined.locate(task_id) or ())[1:] == (task_id,)


def test_a_top_row_counts_only_tasks_that_are_not_past():
    see, joined = Recorder(), JoinedTree(MARK)
    failed = see.seen("old.md", returned("failed", task_id="old"))
    tree = tree_of([failed, see.seen("new.json", handoff("new"))], history_before=1_001.5)
    scope, _ = joined.add_tree(tree, name="one", workspace="/w/one")
    top = joined.tasks[scope]
    assert (joined.roots, [*top.children]) == ([scope], [f"{scope}old", f"{scope}new"])
    assert (top.state, top.past, top.below.tasks if top.below else 0) == (State.SUBMITTED, False, 1)
    assert joined.totals.tasks == 2
    joined.update_tree(scope, tree, tree.apply(failed._replace(seq=9, at=1_009.0, digest="f")))
    assert (top.state, top.below.tasks if top.below else 0) == (State.FAILED, 2)
    scope, _ = joined.add_tree(tree_of([failed], history_before=9_999.0), name="all is history")
    assert (joined.tasks[scope].past, list(joined.tasks[scope].children)) == (True, [f"{scope}old"])


def shown(joined: JoinedTree) -> tuple[object, ...]:
    tasks = {key: replace(task, children=list(task.children)) for key, task in joined.tasks.items()}
    return tasks, joined.roots, joined.totals


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(("handoff", "failed", "completed", "gone")))))
def test_step_by_step_it_comes_to_the_same_as_all_at_once(steps):
    see, tree, joined = Recorder(), Tree(Rules(history_before=1_004.5)), JoinedTree(MARK)
    scope, _ = joined.add_tree(tree, name="one")

    def update(tree: Tree, changed: Collection[str]):
        before, anew = joined.tasks.copy(), JoinedTree(MARK)
        keys = joined.update_tree(scope, tree, changed)
        anew.add_tree(tree, name="one")
        assert shown(joined) == shown(anew)
        assert {key for key in before | joined.tasks if before.get(key) != joined.tasks.get(key)} <= keys

    for name, what in steps:
        path = f"{name}.json" if what == "handoff" else f"{name}.md"
        task_id = f"a.{name}" if name > "d" else name
        document = handoff(task_id) if what == "handoff" else returned(what.replace("gone", "failed"), task_id=task_id)
        update(tree, tree.apply(see.gone(path) if what == "gone" else see.seen(path, document)))
    # Another tree replaces this one under the same keys.
    update(shop("d"), {*tree.tasks, *shop("d").tasks})


def test_silent_tasks_and_tokens_are_counted_together():
    joined = JoinedTree(MARK)
    for _ in range(2):
        joined.add_tree(tree_of([*ran(ROOT, child("one", tokens=7)), Tick(9, 9_999.0)]), name="one")
    assert (joined.totals.stale, joined.totals.tokens) == (4, 14)
