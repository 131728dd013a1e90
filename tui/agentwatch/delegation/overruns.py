"""Children that were retried more often than the policy allows, kept for the parents who did it."""

from __future__ import annotations

from collections import defaultdict

from agentwatch.delegation.problems import OVERRUN, finding_of
from agentwatch.delegation.retry import overrun
from agentwatch.delegation.task import PlacedFinding, Task


class Overruns:
    """By parent, what is said of its children; a task without a parent answers for itself."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._by_parent: defaultdict[str, dict[str, PlacedFinding]] = defaultdict(dict)

    def of(self, task_id: str) -> tuple[PlacedFinding, ...]:
        """What is said of this parent."""
        return tuple(self._by_parent[task_id].values()) if task_id in self._by_parent else ()

    def take(self, task_id: str, task: Task | None) -> set[str]:
        """Take in how often a task was tried, None where it has gone. Returns the parents for whom that is new."""
        finding = _finding(task) if task is not None and len(task.attempts) > 1 else None
        parent_id = None if finding is None or task is None else task.parent_id or task_id
        before = self._parents.get(task_id)
        if parent_id == before and (before is None or self._by_parent[before][task_id] == finding):
            return set()
        if before is not None:
            del self._parents[task_id], self._by_parent[before][task_id]
            if not self._by_parent[before]:
                del self._by_parent[before]
        if parent_id is not None and finding is not None:
            self._parents[task_id] = parent_id
            self._by_parent[parent_id][task_id] = finding
        return {one for one in (before, parent_id) if one is not None}


def _finding(task: Task) -> PlacedFinding | None:
    counted = overrun(task)
    if counted is None:
        return None
    retries, allowed = counted
    latest = next((one for attempt in reversed(task.attempts) if (one := attempt.returned or attempt.handoff)), None)
    words = f"{task.task_id} was retried {retries} times, and the policy allows {allowed},"
    return PlacedFinding(finding_of(OVERRUN, words), latest.path if latest is not None else "")
