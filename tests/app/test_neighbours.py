"""What the rows around a row change in its line."""

from __future__ import annotations

from agentwatch.app.widgets.neighbours import before_titles
from agentwatch.app.widgets.rows import Row
from agentwatch.delegation.task import Task


def words(*tasks: Task, chains: dict[str, tuple[str, ...]] | None = None) -> list[str]:
    known = {task.task_id: task for task in tasks}
    inside = {one for chain in (chains or {}).values() for one in chain}
    rows = [
        Row(task.task_id, None, 0, chain=(chains or {}).get(task.task_id, ()))
        for task in tasks
        if task.task_id not in inside
    ]
    said = before_titles(rows, known)
    return [said[row.task_id] for row in rows if row.task_id is not None]


def test_of_the_same_titles_each_says_the_part_of_the_path_that_differs() -> None:
    assert words(Task("specs/9_x/run", title="9_x"), Task("specs/archive/9_x/run", title="9_x")) == ["", "archive"]
    assert words(Task("a/9_x/run", title="9_x"), Task("b/9_x/run", title="9_x")) == ["a", "b"]


def test_other_titles_and_sessions_say_nothing_more() -> None:
    assert words(Task("a/1/run", title="1"), Task("b/2/run", title="2")) == ["", ""]
    assert words(Task("f00d", title="Fix it"), Task("beef", title="Fix it")) == ["", ""]


def test_rows_of_chains_are_told_apart_too() -> None:
    tasks = []
    chains = {}
    for place in ("specs", "specs/archive"):
        above, below = f"{place}/9_x/orchestrator", f"{place}/9_x/builder"
        tasks += [Task(above, title="9_x", inferred=True), Task(below, title="builder", agent="builder")]
        chains[below] = (above,)
    assert words(*tasks, chains=chains) == ["9_x", "archive/9_x"]
