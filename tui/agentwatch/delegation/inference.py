"""Tasks that are only named in somebody's delegation path: who names them, and who delegated to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from agentwatch.contracts.shapes import Handoff, Return
from agentwatch.delegation.identity import in_directory, slot
from agentwatch.delegation.task import Version


class Inference:
    """The delegation paths of all tasks. Elements are told apart by task directory: the `planner` of one is not
    the `planner` of another."""

    def __init__(self) -> None:
        self._supporters: dict[str, dict[str, str | None]] = defaultdict(dict)
        self._chains: dict[str, tuple[str, ...]] = {}
        self._first_seen: dict[str, int] = {}

    def support(self, task_id: str, versions: Sequence[Version]) -> set[str]:
        """Take in the delegation path of a task, the latest that its versions have.

        Returns the ids of the tasks named in it, before or now.
        """
        chain = _chain(versions)
        before = self._chains.get(task_id, ())
        first = versions[0].seq if versions else None
        if chain == before and self._first_seen.get(task_id) == first:
            return set()
        for named in before:
            del self._supporters[named][task_id]
            if not self._supporters[named]:
                del self._supporters[named]
        self._chains.pop(task_id, None)
        self._first_seen.pop(task_id, None)
        if chain and first is not None:
            self._chains[task_id] = chain
            self._first_seen[task_id] = first
            for index, named in enumerate(chain):
                self._supporters[named].setdefault(task_id, chain[index - 1] if index else None)
        return {*before, *chain} - {task_id}

    def is_named(self, task_id: str) -> bool:
        """Whether some task's delegation path goes through this one."""
        return task_id in self._supporters

    def first_seen(self, task_id: str) -> int:
        """The `seq` of the first document of the tasks that name this one."""
        return min(self._first_seen[supporter] for supporter in self._supporters[task_id])

    def delegated_by(self, task_id: str) -> str | None:
        """The task before this one: by its own delegation path, else by that of who named it first."""
        if chain := self._chains.get(task_id):
            return chain[-1]
        supporters = self._supporters.get(task_id)
        if not supporters:
            return None
        return supporters[min(supporters, key=lambda supporter: (self._first_seen[supporter], supporter))]


def _chain(versions: Sequence[Version]) -> tuple[str, ...]:
    """The ids of the tasks above a task, outermost first, each once; none where a packet names the parent."""
    if any(isinstance(version.document, Handoff) and version.document.parent_task_id for version in versions):
        return ()
    for version in reversed(versions):
        document = version.document
        if isinstance(document, Return) and len(document.delegation_path) > 1:
            directory = slot(version.path)[0]
            ids = [in_directory(directory, element) for element in document.delegation_path[:-1] if element]
            return tuple(dict.fromkeys(ids))
    return ()
