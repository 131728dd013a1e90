"""Children come in the order in which their parent asked for them, though the clock was set back meanwhile."""

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from agentwatch.delegation.events import Ran, Run
from agentwatch.delegation.tree import Tree
from tests.unit.claude_code import building
from tests.unit.sessions.store import packet, report

BACK = 3_600
"""Seconds by which the clock is set back after the second of four tasks."""
TASKS = ("shop", "shop.api", "shop.api", "shop.ui")
"""In the order in which they are asked for; the second of them fails and is tried again."""
STATES = ("SUCCESS", "ERROR", "SUCCESS", "SUCCESS")


def claude_code(place: Path) -> Iterable[Run]:
    store = building.Store(place)
    main = store.session()
    main.asked("Build the shop.")
    for number, (task, state) in enumerate(zip(TASKS, STATES, strict=True)):
        if number == 2:
            store.set_back(timedelta(seconds=BACK))
        main.delegated(f"toolu_{number}", packet(task))
        # Their names and the links beside them tell nothing of the order.
        child = store.agent(f"a{9 - number}", building.meta(f"toolu_{number}"))
        child.asked(packet(task))
        child.said(report(state))
        main.returned(f"toolu_{number}", f"a{9 - number}", report(state))
    return store.runs().values()


def test_a_retry_is_the_later_attempt_whatever_its_clock_says(tmp_path):
    runs = list(claude_code(tmp_path))
    began = sorted(run.started_at for run in runs if run.parent_session is not None)
    assert began[2] - began[1] > BACK / 2
    for order in (runs, runs[::-1]):
        tree = Tree()
        for seq, run in enumerate(order):
            tree.apply(Ran(seq, run.updated_at, f"{run.source}:{run.session_id}", run))
        tasks = [(task.task_id, [attempt.state.value for attempt in task.attempts]) for task, _ in tree.preorder()]
        assert tasks[1:] == [("shop", ["completed"]), ("shop.api", ["failed", "completed"]), ("shop.ui", ["completed"])]
