"""The rows of the tree: whatever happens, they are the visible tasks in preorder, and the splices say what changed."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.app.scenes import Scene

from agentwatch.app.widgets.outline import Outline, Row, Rows, Splice
from agentwatch.delegation.task import Task
from agentwatch.delegation.tree import DelegationTree


class BareTree:
    """Tasks and their places, without files: what an outline needs of a delegation tree."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.roots: list[str] = []

    def ancestors(self, task_id: str) -> list[str]:
        above = []
        parent_id = self.tasks[task_id].parent_id
        while parent_id is not None:
            above.append(parent_id)
            parent_id = self.tasks[parent_id].parent_id
        return above

    def siblings_before(self, task: Task) -> Iterator[str]:
        siblings = self._siblings(task.parent_id)
        return reversed(siblings[: siblings.index(task.task_id)])

    def _siblings(self, parent_id: str | None) -> list[str]:
        return self.roots if parent_id is None else self.tasks[parent_id].children

    def _place(self, task: Task, parent_id: str | None) -> None:
        task.parent_id = parent_id
        siblings = self._siblings(parent_id)
        siblings.append(task.task_id)
        siblings.sort(key=lambda task_id: (self.tasks[task_id].first_seq, task_id))

    def add(self, number: int, parent_id: str | None) -> set[str]:
        task = Task(f"t{number}", title=f"t{number}", first_seq=number)
        self.tasks[task.task_id] = task
        self._place(task, parent_id)
        return {task.task_id} | ({parent_id} if parent_id else set())

    def remove(self, task_id: str) -> set[str]:
        """Its children move up."""
        task = self.tasks[task_id]
        changed = {task_id, *task.children}
        self._siblings(task.parent_id).remove(task_id)
        for child in list(task.children):
            self._place(self.tasks[child], task.parent_id)
        del self.tasks[task_id]
        return changed | ({task.parent_id} if task.parent_id else set())

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
        before = task.parent_id
        self._siblings(before).remove(task_id)
        self._place(task, parent_id)
        return {task_id} | {place for place in (before, parent_id) if place}


def visible(tree: BareTree, outline: Outline) -> list[tuple[str, int]]:
    """What the rows have to be: preorder without what is folded away."""
    found = []
    pending = [(root, 0) for root in reversed(tree.roots)]
    while pending:
        task_id, depth = pending.pop()
        found.append((task_id, depth))
        if not outline.is_folded(task_id):
            pending += [(child, depth + 1) for child in reversed(tree.tasks[task_id].children)]
    return found


def rows_of(outline: Outline) -> list[tuple[str, int]]:
    return [(row.task_id, row.depth) for row in outline.rows.slice(0, len(outline.rows))]


def check_splices(before: list[str], after: list[str], splices: list[Splice]) -> None:
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
        st.sampled_from(["add", "add", "remove", "move", "move", "reorder", "fold", "unfold", "unfold", "apply"]),
        st.integers(0, 11),
        st.integers(0, 11),
    ),
    min_size=10,
    max_size=50,
)


@given(_STEPS)
@settings(max_examples=250, deadline=None)
def test_rows_follow_the_tree_even_when_told_late(steps: list[tuple[str, int, int]]) -> None:
    tree = BareTree()
    outline = Outline(tree)  # type: ignore[arg-type]
    outline.settle()
    pending: set[str] = set()
    before: list[str] = []
    for number, (step, one, other) in enumerate(steps):
        ids = list(tree.tasks)
        some = ids[one % min(len(ids), 4)] if ids else None
        place = ids[other % min(len(ids), 4)] if ids and other % 5 else None
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
        elif step == "fold":
            splices = outline.fold(some)
        elif step == "unfold":
            splices = outline.unfold(some)
        else:
            splices = outline.apply(pending)
            pending = set()
            assert rows_of(outline) == visible(tree, outline)
        after = [task_id for task_id, _ in rows_of(outline)]
        check_splices(before, after, splices)
        before = after
    outline.apply(pending)
    assert rows_of(outline) == visible(tree, outline)


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
            rows.insert(at, [Row(task_id, None, 0, 0) for task_id in new])
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
    outline = Outline(tree)
    outline.apply(tree.tasks)
    outline.settle()
    assert [task_id for task_id, _ in rows_of(outline)] == ["done", "open", "open.one", "asks", "asks.one"]


def test_what_arrives_during_the_first_scan_opens_what_it_is_in() -> None:
    scene = Scene()
    tree = finished_and_open(scene)
    outline = Outline(tree)
    outline.apply(tree.tasks)
    scene.handoff("done.two")
    changed = set()
    for observation in scene.take():
        changed |= tree.apply(observation)
    outline.apply(changed)
    assert [task_id for task_id, _ in rows_of(outline)][:3] == ["done", "done.one", "done.two"]


def test_nothing_folds_by_itself_later() -> None:
    tree = DelegationTree()
    outline = Outline(tree)
    outline.settle()
    scene = Scene()
    scene.handoff("root")
    scene.handoff("root.one")
    scene.returned("root.one")
    scene.returned("root")
    for observation in scene.take():
        outline.apply(tree.apply(observation))
    assert [task_id for task_id, _ in rows_of(outline)] == ["root", "root.one"]


def test_a_fold_of_the_operator_is_left_alone_by_the_first_scan() -> None:
    tree = finished_and_open()
    outline = Outline(tree)
    outline.apply(tree.tasks)
    outline.unfold("done")
    outline.fold("open")
    outline.apply(tree.tasks)
    assert [task_id for task_id, _ in rows_of(outline)] == ["done", "done.one", "open", "asks", "asks.one"]


def test_what_fits_is_unfolded_when_the_first_scan_settles() -> None:
    tree = finished_and_open()
    outline = Outline(tree)
    outline.apply(tree.tasks)
    outline.fold("open")
    outline.settle(room=6)
    assert [task_id for task_id, _ in rows_of(outline)] == ["done", "done.one", "open", "asks", "asks.one"]


def test_a_lone_finished_root_shows_its_first_level() -> None:
    scene = Scene()
    for task_id in ("root", "root.one", "root.one.deep", "root.two"):
        scene.handoff(task_id)
        scene.returned(task_id)
    tree = DelegationTree()
    for observation in scene.take():
        tree.apply(observation)
    outline = Outline(tree)
    outline.apply(tree.tasks)
    assert [task_id for task_id, _ in rows_of(outline)] == ["root"]
    outline.settle()
    assert [task_id for task_id, _ in rows_of(outline)] == ["root", "root.one", "root.two"]


def test_folds_survive_a_filter() -> None:
    tree = finished_and_open()
    outline = Outline(tree)
    outline.apply(tree.tasks)
    outline.settle()
    outline.show_only({"done", "done.one"})
    assert [task_id for task_id, _ in rows_of(outline)] == ["done", "done.one"]
    outline.show_only(None)
    assert [task_id for task_id, _ in rows_of(outline)] == ["done", "open", "open.one", "asks", "asks.one"]
