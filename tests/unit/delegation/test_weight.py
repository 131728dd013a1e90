"""What a task weighs: a workspace may have a hundred thousand."""

from __future__ import annotations

import gc
import tracemalloc

from tests.unit.delegation.events import Recorder, handoff, returned

from agentwatch.contracts.shapes import Contract
from agentwatch.delegation.events import Event, Rules
from agentwatch.delegation.tree import Tree

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
        tree = Tree(Rules())
        tree.apply(*events)
        gc.collect()
        weight, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert tree.totals.tasks == _TASKS
    assert weight < 2_750 * _TASKS
