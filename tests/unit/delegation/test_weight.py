"""What a task weighs: a workspace may have a hundred thousand."""

from __future__ import annotations

import gc
import tracemalloc

from tests.unit.delegation.events import Recorder, handoff, returned

from agentwatch.contracts.shapes import Contract
from agentwatch.delegation.events import Event
from agentwatch.delegation.rules import Rules
from agentwatch.delegation.task import Task
from agentwatch.delegation.tree import DelegationTree

_TASKS = 400


def workspace() -> list[Event]:
    """Tasks, each with a directory, a handoff and a return of its own that was found true."""
    recorder, events = Recorder(), list[Event]()
    for number in range(_TASKS):
        events.append(recorder.seen(f"jobs/t{number}/handoff.json", handoff(f"t{number}")))
        document = returned("completed", Contract.RETURN_FORMAT, task_id=f"t{number}")
        seen = recorder.seen(f"jobs/t{number}/return.md", document)
        events += [seen, recorder.checked(seen.path, seen.digest, "verified")]
    return events


def test_a_task_weighs_little_beside_what_its_documents_say() -> None:
    events = workspace()
    tracemalloc.start()
    try:
        tree = DelegationTree(Rules(), remembers=True)
        tree.take_all(events)
        tree.settle()
        gc.collect()
        weight, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert tree.totals.tasks == _TASKS
    assert weight < 2_750 * _TASKS


def test_what_nearly_every_task_has_alike_is_one() -> None:
    tree = DelegationTree(Rules(), remembers=True)
    tree.take_all(workspace())
    tree.settle()

    def alike(task: Task) -> tuple[int, ...]:
        return tuple(map(id, (task.children, task.answered, task.counted, task.retry, task.why, task.findings)))

    assert len({alike(task) for task in tree.tasks.values()}) == 1
