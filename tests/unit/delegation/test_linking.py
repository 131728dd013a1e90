"""Which task is whose child, on what basis, and what is said where the claims do not hold together."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

import pytest
from tests.unit.delegation.observations import Recorder, handoff, meta, outline, returned, todos, tree_of

from agentwatch.delegation.observation import Observation
from agentwatch.delegation.tree import DelegationTree


def link(tree: DelegationTree, task_id: str) -> tuple[str | None, str]:
    task = tree.tasks[task_id]
    return task.parent_id, task.parent_basis


def rules(tree: DelegationTree, task_id: str) -> list[str]:
    return [placed.finding.rule for placed in tree.tasks[task_id].findings]


def test_the_packet_names_the_parent_before_anything_else() -> None:
    see = Recorder().seen
    tree = tree_of(
        [
            see("a.handoff.json", handoff("a")),
            see("b.handoff.json", handoff("b")),
            see("a.x.handoff.json", handoff("a.x", parent_task_id="b")),
        ]
    )
    assert link(tree, "a.x") == ("b", "packet")


def test_the_longest_known_dotted_prefix_is_the_parent() -> None:
    see = Recorder().seen
    tree = tree_of([see("1.json", handoff("a")), see("2.json", handoff("a.b.c.d"))])
    assert link(tree, "a.b.c.d") == ("a", "dotted_prefix")
    tree.apply(see("3.json", handoff("a.b.c")))
    assert link(tree, "a.b.c.d") == ("a.b.c", "dotted_prefix")
    assert tree.tasks["a.b.c.d"].title == "d"


def test_a_slash_in_a_stated_id_belongs_to_the_name() -> None:
    tree = tree_of([Recorder().seen("1.json", handoff("team/api"))])
    assert tree.tasks["team/api"].title == "team/api"


def test_a_dash_or_slash_is_no_dotted_prefix() -> None:
    see = Recorder().seen
    tree = tree_of([see("1.json", handoff("a")), see("2.json", handoff("a-b")), see("3.json", handoff("ab.c"))])
    assert [link(tree, task_id)[0] for task_id in ("a-b", "ab.c")] == [None, None]


def test_the_delegation_path_makes_inferred_tasks_within_the_task_directory() -> None:
    see = Recorder().seen
    tree = tree_of(
        [
            see("specs/7_x/.return-meta.json", meta("completed", "orchestrator", "plan", "planner")),
            see("specs/8_y/.return-meta.json", meta("partial", "orchestrator", "implement", "coder")),
        ]
    )
    assert outline(tree) == [
        "specs/7_x/orchestrator completed",
        "  specs/7_x/plan completed",
        "    specs/7_x/planner completed",
        "specs/8_y/orchestrator partial",
        "  specs/8_y/implement partial",
        "    specs/8_y/coder partial",
    ]
    assert [tree.tasks[root].title for root in tree.roots] == ["7_x", "8_y"]
    assert link(tree, "specs/7_x/planner") == ("specs/7_x/plan", "delegation_path")
    assert tree.tasks["specs/7_x/plan"].inferred


@pytest.mark.parametrize("name", [".return-meta-multi.sess_5.json", ".return-meta-multi-sess_5.json"])
def test_a_session_in_a_file_name_is_not_part_of_the_task(name: str) -> None:
    tree = tree_of([Recorder().seen(f"specs/7/{name}", meta("completed", agent="coder"))])
    assert list(tree.tasks) == ["specs/7/coder#multi"]


def test_an_element_that_a_file_speaks_of_is_not_inferred() -> None:
    see = Recorder().seen
    tree = tree_of(
        [
            see("j/.return-meta-a.json", meta("completed", "orchestrator", "planner")),
            see("j/.return-meta.json", meta("working", agent="orchestrator")),
        ]
    )
    assert outline(tree) == ["j/orchestrator working", "  j/planner#a completed"]
    assert not tree.tasks["j/orchestrator"].inferred


def test_nothing_is_inferred_where_the_packet_names_the_parent() -> None:
    see = Recorder().seen
    tree = tree_of(
        [
            see("a.handoff.json", handoff("a")),
            see("job/handoff.json", handoff("b", parent_task_id="a")),
            see("job/.return-meta.json", meta("completed", "orchestrator", "plan", "planner")),
        ]
    )
    assert outline(tree) == ["a working", "  b completed"]


def test_a_name_that_shares_the_row_of_the_task_below_it_is_not_counted() -> None:
    recorder = Recorder()
    tree = tree_of([recorder.seen("j/.return-meta-a.json", meta("failed", "orchestrator", "plan", "planner"))])
    assert (len(tree.tasks), tree.totals.tasks, tree.totals.states) == (3, 1, {"failed": 1})
    tree.apply(recorder.seen("j/.return-meta-b.json", meta("completed", "orchestrator", "plan", "checker")))
    # `plan` has a row of its own now, and `orchestrator` shares it.
    assert (len(tree.tasks), tree.totals.tasks, tree.totals.states) == (4, 3, {"failed": 2, "completed": 1})
    tree.apply(recorder.gone("j/.return-meta-b.json"))
    assert (len(tree.tasks), tree.totals.tasks, tree.totals.states) == (3, 1, {"failed": 1})


def test_inferred_tasks_go_when_nobody_names_them_any_more() -> None:
    recorder = Recorder()
    tree = tree_of([recorder.seen("j/.return-meta.json", meta("completed", "orchestrator", "planner"))])
    tree.apply(recorder.gone("j/.return-meta.json"))
    assert tree.tasks == {}


def test_the_enclosing_task_directory_is_the_last_resort() -> None:
    see = Recorder().seen
    tree = tree_of([see("job/handoff.json", handoff("big")), see("job/deep/er/handoff.json", handoff("small"))])
    assert link(tree, "small") == ("big", "directory")


def test_a_directory_with_two_tasks_encloses_nothing() -> None:
    recorder = Recorder()
    see = recorder.seen
    tree = tree_of(
        [
            see("job/one.handoff.json", handoff("one")),
            see("job/sub/handoff.json", handoff("small")),
            see("job/two.handoff.json", handoff("two")),
        ]
    )
    assert link(tree, "small") == (None, "none")
    tree.apply(recorder.gone("job/two.handoff.json"))
    assert link(tree, "small") == ("one", "directory")


@pytest.mark.parametrize(
    "returned_path",
    ["api.return.md", "api-return.json", "return-api.md", "returns/api.md"],
)
def test_a_return_without_id_belongs_to_the_handoff_with_its_stem(returned_path: str) -> None:
    see = Recorder().seen
    tree = tree_of(
        [
            see("j/api.handoff.json", handoff("t-1")),
            see("j/web.handoff.json", handoff("t-2")),
            see(f"j/{returned_path}", returned("completed")),
        ]
    )
    assert outline(tree) == ["t-1 completed", "t-2 submitted"]


def test_handoffs_and_returns_folders_beside_each_other_belong_together() -> None:
    see = Recorder().seen
    tree = tree_of(
        [
            see("j/handoffs/api.md", handoff("t-1")),
            see("j/handoffs/web.md", handoff("t-2")),
            see("j/returns/web.md", returned("blocked", blockers=("which one?",))),
        ]
    )
    assert outline(tree) == ["t-1 submitted", "t-2 blocked"]
    assert tree.tasks["t-2"].ask == "answer: which one?"


def test_a_return_alone_with_the_only_handoff_belongs_to_it_whatever_its_name() -> None:
    see = Recorder().seen
    tree = tree_of([see("j/task.json", handoff("t-1")), see("j/outcome.md", returned("completed"))])
    assert outline(tree) == ["t-1 completed"]


def test_one_of_several_returns_without_id_cannot_be_told_and_stands_alone() -> None:
    recorder = Recorder()
    see = recorder.seen
    observations: list[Observation] = [
        see("j/task.json", handoff("t-1")),
        see("j/first.md", returned("completed")),
        see("j/second.md", returned("failed")),
    ]
    tree = tree_of(observations)
    assert sorted(tree.tasks) == ["j/first", "j/second", "t-1"]
    tree.apply(recorder.gone("j/second.md"))
    assert outline(tree) == ["t-1 completed"]


def test_a_checklist_beside_a_return_is_no_rival_of_it() -> None:
    see = Recorder().seen
    tree = tree_of(
        [
            see("j/task.json", handoff("t-1")),
            see("j/steps.todos.md", todos("x", " ")),
            see("j/outcome.md", returned("completed")),
        ]
    )
    assert outline(tree) == ["t-1 completed"]
    assert tree.tasks["t-1"].progress == (1, 2)


def test_a_checklist_beside_no_handoff_is_no_task() -> None:
    assert tree_of([Recorder().seen("todos.md", todos(" "))]).tasks == {}


def test_the_handoff_may_come_after_its_return() -> None:
    see = Recorder().seen
    tree = tree_of([see("j/api.return.md", returned("failed"))])
    assert outline(tree) == ["j/api failed"]
    tree.apply(see("j/api.handoff.json", handoff("t-1")))
    assert outline(tree) == ["t-1 failed"]


def test_a_task_that_is_its_own_parent_is_a_root_with_a_finding() -> None:
    tree = tree_of([Recorder().seen("a.json", handoff("a", parent_task_id="a"))])
    assert (link(tree, "a"), rules(tree, "a")) == ((None, "none"), ["LNK002"])


def test_the_members_of_a_cycle_are_roots_with_findings_until_it_is_broken() -> None:
    see = Recorder().seen
    tree = tree_of(
        [
            see("a.json", handoff("a", parent_task_id="c")),
            see("b.json", handoff("b", parent_task_id="a")),
            see("c.json", handoff("c", parent_task_id="b")),
            see("d.json", handoff("d", parent_task_id="b")),
        ]
    )
    assert outline(tree) == ["a submitted", "b working", "  d submitted", "c submitted"]
    assert [rules(tree, task_id) for task_id in "abcd"] == [["LNK001"]] * 3 + [[]]
    tree.apply(see("a.json", handoff("a")))
    assert outline(tree) == ["a working", "  b working", "    c submitted", "    d submitted"]
    assert [rules(tree, task_id) for task_id in "abcd"] == [[]] * 4


def test_an_orphan_is_linked_by_its_next_basis_until_its_parent_comes() -> None:
    see = Recorder().seen
    tree = tree_of([see("a.json", handoff("a")), see("b.json", handoff("a.b", parent_task_id="late"))])
    assert (link(tree, "a.b"), rules(tree, "a.b")) == (("a", "dotted_prefix"), ["LNK003"])
    tree.apply(see("late.json", handoff("late")))
    assert (link(tree, "a.b"), rules(tree, "a.b")) == (("late", "packet"), [])


@pytest.fixture
def low_limit() -> Iterator[int]:
    """The recursion limit is so many frames from here: a chain that is deeper need not be long."""
    before, frames = sys.getrecursionlimit(), 300
    sys.setrecursionlimit(len(inspect.stack(0)) + frames)
    yield frames
    sys.setrecursionlimit(before)


def test_a_chain_deeper_than_the_recursion_limit_is_no_problem(low_limit: int) -> None:
    recorder, length = Recorder(), low_limit + 100
    ids = [f"t{number}" for number in range(length)]
    tree = tree_of(
        recorder.seen(f"{task_id}.json", handoff(task_id, parent_task_id=parent))
        for parent, task_id in zip([None, *ids], ids, strict=False)
    )
    assert tree.tasks["t0"].below is not None
    assert tree.tasks["t0"].below.tasks == length - 1
    assert sum(1 for _ in tree.preorder()) == length
