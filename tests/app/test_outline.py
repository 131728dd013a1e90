"""The rows of the tree: whatever happens, they are the visible tasks in preorder, and the splices say what changed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.app.scenes import NOW, Scene

from agentwatch.app.widgets.outline import Outline
from agentwatch.app.widgets.rows import Heading, Row, RowId, Rows, Splice
from agentwatch.contracts.shapes import Outcome
from agentwatch.delegation.below import Below, Counted
from agentwatch.delegation.task import State, Task
from agentwatch.delegation.tree import DelegationTree
from agentwatch.view.groups import GROUPS, Group, group_of

HISTORY = Heading(Group.HISTORY)


class BareTree:
    """Tasks and their places, without files: what an outline needs of a delegation tree."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.roots: list[str] = []
        self.history_before = float("-inf")

    def ancestors(self, task_id: str) -> list[str]:
        above: list[str] = []
        parent_id = self.tasks[task_id].parent_id
        while parent_id is not None:
            above.append(parent_id)
            parent_id = self.tasks[parent_id].parent_id
        return above

    def siblings_before(self, task: Task) -> Iterator[str]:
        siblings = self._siblings(task.parent_id)
        return reversed(siblings[: siblings.index(task.task_id)])

    def _siblings(self, parent_id: str | None) -> list[str]:
        if parent_id is None:
            return self.roots
        siblings = self.tasks[parent_id].children = [*self.tasks[parent_id].children]
        return siblings

    def _place(self, task: Task, parent_id: str | None) -> None:
        task.parent_id = parent_id
        siblings = self._siblings(parent_id)
        siblings.append(task.task_id)
        siblings.sort(key=lambda task_id: (self.tasks[task_id].first_seq, task_id))

    def _sum(self) -> None:
        """What an outline reads of the sums."""
        for task in self.tasks.values():
            task.below = None
        for task in self.tasks.values():
            for above in self.ancestors(task.task_id):
                below = self.tasks[above].below = self.tasks[above].below or Below()
                counted = Counted(task.state, task.state if task.ask else None)
                below.counts[counted] = below.counts.get(counted, 0) + 1
                below.active_at = max(below.active_at, task.updated_at)

    def turn(self, task_id: str, how: str, at: float) -> set[str]:
        """A task works, asks, ends, or only gives a sign of life."""
        task = self.tasks[task_id]
        task.updated_at = max(task.updated_at, at) if how == "beat" else at
        if how != "beat":
            task.state = {"live": State.WORKING, "ask": State.FAILED, "end": State.COMPLETED}[how]
            task.ask = "retry?" if how == "ask" else None
            task.past = how == "end" and at < NOW - 3 * 86_400
        self._sum()
        return {task_id, *self.ancestors(task_id)}

    def add(self, number: int, parent_id: str | None) -> set[str]:
        task = Task(f"t{number}", title=f"t{number}", first_seq=number)
        self.tasks[task.task_id] = task
        self._place(task, parent_id)
        self._sum()
        return {task.task_id, *self.ancestors(task.task_id)}

    def remove(self, task_id: str) -> set[str]:
        """Its children move up."""
        task = self.tasks[task_id]
        changed = {task_id, *task.children, *self.ancestors(task_id)}
        self._siblings(task.parent_id).remove(task_id)
        for child in list(task.children):
            self._place(self.tasks[child], task.parent_id)
        del self.tasks[task_id]
        self._sum()
        return changed

    def reorder(self, task_id: str, first_seq: int) -> set[str]:
        task = self.tasks[task_id]
        task.first_seq = first_seq
        self._siblings(task.parent_id).remove(task_id)
        self._place(task, task.parent_id)
        return {task_id}

    def move(self, task_id: str, parent_id: str | None) -> set[str]:
        task = self.tasks[task_id]
        if parent_id is not None and (parent_id == task_id or task_id in self.ancestors(parent_id)):
            return set()
        above = self.ancestors(task_id)
        self._siblings(task.parent_id).remove(task_id)
        self._place(task, parent_id)
        self._sum()
        return {task_id, *above, *self.ancestors(task_id)}


def outline_of(tree: DelegationTree | BareTree) -> Outline:
    return Outline(tree, lambda: NOW)  # type: ignore[arg-type]


def all_rows(outline: Outline) -> list[Row]:
    return outline.rows.slice(0, len(outline.rows))


def ids_of(outline: Outline) -> list[RowId]:
    return [row.row_id for row in all_rows(outline)]


def check_splices(before: list[RowId], after: list[RowId], splices: list[Splice]) -> None:
    """The splices turn the rows from before into those from after."""
    length = len(before)
    for splice in splices:
        assert 0 <= splice.position <= splice.position + splice.removed <= length
        length += splice.added - splice.removed
    assert length == len(after) == len(set(after))
    if len(splices) == 1:
        at, added = splices[0].position, splices[0].added
        assert before[:at] + after[at : at + added] + before[at + splices[0].removed :] == after
    elif not splices:
        assert before == after


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["add"] * 3
            + ["move"] * 2
            + ["unfold"] * 2
            + ["remove", "reorder", "name", "fold", "live", "ask", "end"]
            + ["beat", "time", "cursor", "apply"]
        ),
        st.integers(0, 11),
        st.integers(0, 11),
    ),
    min_size=10,
    max_size=60,
)


def shown_as(tree: BareTree, task_id: str) -> str:
    while tree.tasks[task_id].inferred and len(tree.tasks[task_id].children) == 1:
        task_id = tree.tasks[task_id].children[0]
    return task_id


def well_ordered(outline: Outline) -> None:
    """Each run stands in its group, below the heading of that; a chain has one row."""
    rows = outline.rows.slice(0, len(outline.rows))
    groups = [row.row_id.group for row in rows if isinstance(row.row_id, Heading)]
    assert groups == sorted(groups, key=GROUPS.index)
    # One heading alone says nothing, but that all of it is history.
    assert len(groups) != 1 or groups == [Group.HISTORY]
    heading: Group | None = None
    for row in rows:
        if isinstance(row.row_id, Heading):
            heading = row.row_id.group
            assert row.depth == -1
        elif row.parent_id is None:
            assert row.depth == 0
            assert groups == [] or outline.order.group(row.chain[0] if row.chain else row.row_id) is heading


@given(_STEPS, st.booleans())
@example([("add", 0, 0), ("end", 7, 11)], False)
@settings(max_examples=250, deadline=None)
def test_rows_follow_the_tree_even_when_told_late(steps: list[tuple[str, int, int]], few: bool) -> None:
    """Whatever happens, in whatever order it is heard of: rows made step by step are those that are made anew."""
    now = NOW
    tree = BareTree()
    outline = Outline(tree, lambda: now)  # type: ignore[arg-type]
    outline.settle()
    pending: set[str] = set()
    before: list[RowId] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agentwatch.view.order.LARGE", 3 if few else 20)
        for number, (step, one, other) in enumerate(steps):
            ids = list(tree.tasks)
            some = ids[one % min(len(ids), 5)] if ids else None
            place = ids[other % min(len(ids), 5)] if ids and other % 5 else None
            splices: list[Splice] = []
            if step == "add":
                pending |= tree.add(number if other % 2 else -number, place)
            elif some is None:
                continue
            elif step == "remove":
                pending |= tree.remove(some)
            elif step == "move":
                pending |= tree.move(some, place)
            elif step == "reorder":
                pending |= tree.reorder(some, other - 6)
            elif step == "name":
                tree.tasks[some].inferred = not tree.tasks[some].inferred
                pending |= {some, *tree.ancestors(some)}
            elif step == "fold":
                splices = outline.fold(outline.row_of(some))
            elif step == "unfold":
                splices = outline.unfold(HISTORY if other == 1 else outline.row_of(some))
            elif step in ("live", "ask", "end", "beat"):
                pending |= tree.turn(some, step, now - 3_600 * other * one)
            elif step == "cursor":
                splices = outline.hold(before[other % len(before)] if before and other else None)
            elif step == "time":
                now += 1_000.0 * one
                splices = outline.tick()
            else:
                splices = outline.apply(pending)
                pending = set()
                well_ordered(outline)
            after = ids_of(outline)
            check_splices(before, after, splices)
            before = after
        outline.hold(None)
        outline.apply(pending)
        made = [(row.row_id, row.parent_id, row.depth, row.order, row.chain) for row in all_rows(outline)]
        outline.show_only(None)
        anew = [(row.row_id, row.parent_id, row.depth, row.order, row.chain) for row in all_rows(outline)]
        assert made == anew
        well_ordered(outline)
        outline.unfold_all()
        assert {row_id for row_id in ids_of(outline) if not isinstance(row_id, Heading)} == {
            shown_as(tree, task_id) for task_id in tree.tasks
        }


@given(_STEPS, st.integers(0, 11))
@settings(max_examples=150, deadline=None)
def test_no_sign_of_life_moves_anything(steps: list[tuple[str, int, int]], which: int) -> None:
    now = NOW
    tree = BareTree()
    outline = Outline(tree, lambda: now)  # type: ignore[arg-type]
    for number, (_, one, other) in enumerate(steps):
        ids = list(tree.tasks)
        tree.add(number, ids[other % len(ids)] if ids and other % 4 else None)
        tree.turn(f"t{number}", "live" if one % 2 else "end", now - 3_600 * other * one)
    outline.apply(list(tree.tasks))
    outline.settle()
    alive = [root for root in tree.roots if outline.order.group(root) in (Group.NOW, Group.TODAY)]
    if alive:
        root = alive[which % len(alive)]
        is_now = outline.order.group(root) is Group.NOW
        beat = tree.turn(root, "beat", now if is_now else max(tree.tasks[root].alive_at or 0, now - 660))
        is_same = group_of(tree.tasks[root], now) is outline.order.group(root)  # type: ignore[arg-type]
        assert not is_same or outline.apply(beat) == []


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 5000), st.integers(1, 700)), max_size=30),
)
@settings(max_examples=60, deadline=None)
def test_a_chunked_list_is_a_list(steps: list[tuple[bool, int, int]]) -> None:
    rows, plain, number = Rows(), [], 0
    for insert, place, count in steps:
        if insert:
            at = place % (len(plain) + 1)
            new = [f"r{number + step}" for step in range(count)]
            number += count
            rows.insert(at, [Row(task_id, None, 0) for task_id in new])
            plain[at:at] = new
        elif plain:
            at = place % len(plain)
            gone = min(count, len(plain) - at)
            rows.delete(at, gone)
            del plain[at : at + gone]
        assert len(rows) == len(plain)
        assert [row.task_id for row in rows.slice(0, len(rows))] == plain
        if plain:
            at = place % len(plain)
            assert rows[at].task_id == plain[at]
            assert rows.index(plain[at]) == at
            assert [row.task_id for row in rows.slice(at, at + 40)] == plain[at : at + 40]


def test_a_filter_that_was_never_on_is_left_without_making_the_rows_anew() -> None:
    tree = finished_and_open()
    outline = Outline(tree, lambda: NOW)
    outline.begin()
    assert outline.show_only(None) == []
    assert outline.show_only({"open"})
    assert outline.show_only(None)
    assert outline.show_only(None) == []


def test_rows_that_are_taken_away_hold_each_other_no_more() -> None:
    rows, one = Rows(), Row("a", None, 0)
    rows.insert(0, [one, Row("b", None, 0, chain=("c",))])
    assert rows.clear() == 2
    assert (len(rows), rows.standing_for("c"), one.chunk) == (0, None, [])
    rows.insert(0, [Row("d", None, 0)])
    assert rows.index("d") == 0


def finished_and_open(scene: Scene | None = None) -> DelegationTree:
    """One root whose work is done, one that goes on, one in which somebody waits."""
    scene = scene or Scene()
    for root in ("done", "open", "asks"):
        scene.handoff(root)
        scene.handoff(f"{root}.one")
    for task_id in ("done", "done.one"):
        scene.returned(task_id)
    scene.returned("asks")
    scene.returned("asks.one", invalid=True)
    tree = DelegationTree()
    for observation in scene.take():
        tree.apply(observation)
    return tree


def test_finished_subtrees_of_the_first_scan_start_folded() -> None:
    tree = finished_and_open()
    outline = outline_of(tree)
    outline.apply(tree.tasks)
    outline.settle()
    assert ids_of(outline) == ["asks", "asks.one", "open", "open.one", "done"]


def test_what_arrives_during_the_first_scan_opens_what_it_is_in() -> None:
    scene = Scene()
    tree = finished_and_open(scene)
    outline = outline_of(tree)
    outline.apply(tree.tasks)
    scene.handoff("done.two")
    changed = set()
    for observation in scene.take():
        changed |= tree.apply(observation)
    outline.apply(changed)
    assert {"done", "done.one", "done.two"} <= set(ids_of(outline))


def test_nothing_folds_by_itself_later() -> None:
    tree = DelegationTree()
    outline = outline_of(tree)
    outline.settle()
    scene = Scene()
    scene.handoff("root")
    scene.handoff("root.one")
    scene.returned("root.one")
    scene.returned("root")
    for observation in scene.take():
        outline.apply(tree.apply(observation))
    assert ids_of(outline) == ["root", "root.one"]


def test_a_fold_of_the_operator_is_left_alone_by_the_first_scan() -> None:
    tree = finished_and_open()
    outline = outline_of(tree)
    outline.apply(tree.tasks)
    outline.unfold("done")
    outline.fold("open")
    outline.apply(tree.tasks)
    assert ids_of(outline) == ["asks", "asks.one", "open", "done", "done.one"]


def test_what_fits_is_unfolded_when_the_first_scan_settles() -> None:
    tree = finished_and_open()
    outline = outline_of(tree)
    outline.apply(tree.tasks)
    outline.fold("open")
    outline.settle(room=6)
    assert ids_of(outline) == ["asks", "asks.one", "open", "done", "done.one"]


def test_a_lone_finished_root_shows_its_first_level() -> None:
    scene = Scene()
    for task_id in ("root", "root.one", "root.one.deep", "root.two"):
        scene.handoff(task_id)
        scene.returned(task_id)
    tree = DelegationTree()
    for observation in scene.take():
        tree.apply(observation)
    outline = outline_of(tree)
    outline.apply(tree.tasks)
    assert ids_of(outline) == ["root"]
    outline.settle()
    assert ids_of(outline) == ["root", "root.one", "root.two"]


def test_folds_survive_a_filter() -> None:
    tree = finished_and_open()
    outline = outline_of(tree)
    outline.apply(tree.tasks)
    outline.settle()
    outline.show_only({"done", "done.one"})
    assert ids_of(outline) == ["done", "done.one"]
    outline.show_only(None)
    assert ids_of(outline) == ["asks", "asks.one", "open", "open.one", "done"]


def test_an_event_costs_no_look_at_the_other_tasks() -> None:
    """Of 4,000 tasks below 80 runs, an update, a tick and a move of the cursor look at a few."""
    tree = BareTree()
    for number in range(80):
        tree.tasks[f"r{number}"] = Task(f"r{number}", title="run", first_seq=number, updated_at=NOW - number)
        tree.roots.append(f"r{number}")
        for child in range(49):
            name = f"r{number}.{child}"
            tree.tasks[name] = Task(name, title="child", parent_id=f"r{number}", first_seq=child, updated_at=NOW)
        tree.tasks[f"r{number}"].children = [f"r{number}.{child}" for child in range(49)]
    outline = outline_of(tree)
    outline.apply(list(tree.tasks))
    outline.settle()
    outline.unfold_all()
    looked: list[str] = []

    class Watched(dict[str, Task]):
        def __getitem__(self, key: str) -> Task:
            looked.append(key)
            return super().__getitem__(key)

        def get(self, key: str, default: object = None) -> Task | None:  # type: ignore[override]
            looked.append(key)
            return super().get(key)

    tree.tasks = outline._tree.tasks = outline.order._tree.tasks = Watched(tree.tasks)
    outline.apply({"r5.7", "r5"})
    outline.tick()
    outline.hold("r7.3")
    assert len(looked) < 60, looked
    outline.hold(None)
    tree.tasks["r9"].state, tree.tasks["r9"].ask = State.FAILED, "retry?"
    looked.clear()
    outline.apply({"r9"})
    assert outline.rows[0].task_id == "r9"
    # Its own children have rows, which go with it.
    assert len(looked) < 400


def test_in_a_workspace_what_asks_and_works_comes_first_and_what_is_past_last() -> None:
    scene = Scene()
    for name in ("top", "top.past", "top.done", "top.open", "top.asks"):
        scene.handoff(name)
    for name in ("top.past", "top.done"):
        scene.returned(name)
    scene.returned("top.open", Outcome.WORKING)
    scene.returned("top.asks", invalid=True)
    tree = DelegationTree()
    for observation in scene.take():
        tree.apply(observation)
    outline = outline_of(tree)
    outline.apply(tree.tasks)
    outline.settle()
    assert list(outline.order.children("top")) == ["top.past", "top.done", "top.open", "top.asks"]
    tree.tasks["top"].workspace, tree.tasks["top.past"].past = "/shop", True
    outline = outline_of(tree)
    outline.apply(tree.tasks)
    outline.settle()
    assert ids_of(outline) == ["top", "top.asks", "top.open", "top.done", "top.past"]
    # A sign of life moves nothing there, an end does.
    tree.tasks["top.open"].updated_at = NOW + 60.0
    assert outline.apply(["top.open"]) == []
    tree.tasks["top.open"].state = tree.tasks["top.done"].state
    outline.apply(["top.open"])
    assert ids_of(outline)[-1] == "top.past"
