"""Which versions of which files speak of which task, kept right while handoffs and returns come and go."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from operator import attrgetter
from typing import Final

from agentwatch.contracts.shapes import Handoff, TodoList
from agentwatch.delegation import identity
from agentwatch.delegation.observation import Seen
from agentwatch.delegation.ownership import Ownership
from agentwatch.delegation.task import Version

MAX_VERSIONS: Final = 256
"""Contents of one file that are remembered. The busiest real file seen had 104."""

_by_seq = attrgetter("seq")


class Files:
    """Every document that is there, and its earlier contents, by file and by task."""

    def __init__(self) -> None:
        self._versions: dict[str, list[Version]] = {}
        self._keys: dict[str, list[str | None]] = {}
        self._by_task: dict[str, list[Version]] = defaultdict(list)
        self._ownership = Ownership()

    def versions(self, task_id: str) -> list[Version]:
        """The versions that speak of a task, in the order they were observed."""
        return self._by_task.get(task_id, [])

    def tasks_of(self, path: str) -> set[str]:
        """The tasks that the versions of a file speak of."""
        return {key for key in self._keys.get(path, ()) if key is not None}

    def see(self, seen: Seen) -> set[str]:
        """A file has this content now. Returns the tasks that this concerns."""
        version = Version(seen.seq, seen.at, seen.path, seen.digest, seen.document, seen.findings, seen.incomplete)
        versions = self._versions.setdefault(seen.path, [])
        concerned: set[str] = set()
        if versions and not _continues(versions[-1], seen):
            while versions:
                concerned |= self._forget_version(seen.path, 0)
        elif len(versions) >= MAX_VERSIONS:
            # The first version stays: it says when the task began.
            concerned |= self._forget_version(seen.path, 1)
        versions.append(version)
        self._keys.setdefault(seen.path, []).append(None)
        followers = self._register(seen.path, version)
        for path in {seen.path, *followers}:
            concerned |= self._assign(path)
        return concerned

    def forget(self, path: str) -> set[str]:
        """The file is gone. Returns the tasks that this concerns."""
        if path not in self._versions:
            return set()
        concerned: set[str] = set()
        while self._versions[path]:
            concerned |= self._forget_version(path, 0)
        del self._versions[path], self._keys[path]
        for follower in self._ownership.drop_handoff(path) | self._ownership.drop_follower(path):
            concerned |= self._assign(follower)
        return concerned

    def _register(self, path: str, version: Version) -> set[str]:
        """Tell the index of handoffs what the file is now. Returns the files whose owner may have changed."""
        document = version.document
        if isinstance(document, Handoff):
            task_id = identity.own_id(document) or identity.fallback_id(path, document)
            first = self._versions[path][0].seq
            return self._ownership.drop_follower(path) | self._ownership.set_handoff(path, first, task_id)
        affected = self._ownership.drop_handoff(path)
        if all(identity.own_id(earlier.document) is not None for earlier in self._versions[path]):
            return affected | self._ownership.drop_follower(path)
        kind = "todos" if isinstance(document, TodoList) else "return"
        return affected | self._ownership.add_follower(path, kind)

    def _assign(self, path: str) -> set[str]:
        """Give each version of a file to its task again. Returns the tasks that this concerns."""
        concerned: set[str] = set()
        versions, keys = self._versions[path], self._keys[path]
        for index, version in enumerate(versions):
            key = self._task_of(version)
            if key == keys[index]:
                continue
            concerned |= self._take(version, keys[index])
            if key is not None:
                insort(self._by_task[key], version, key=_by_seq)
                concerned.add(key)
            keys[index] = key
        return concerned

    def _task_of(self, version: Version) -> str | None:
        document = version.document
        if (task_id := identity.own_id(document)) is not None:
            return task_id
        if not isinstance(document, Handoff) and (owner := self._ownership.owner(version.path)) is not None:
            return owner
        # A checklist beside no handoff may be anybody's: it is no task by itself.
        return None if isinstance(document, TodoList) else identity.fallback_id(version.path, document)

    def _forget_version(self, path: str, index: int) -> set[str]:
        return self._take(self._versions[path].pop(index), self._keys[path].pop(index))

    def _take(self, version: Version, key: str | None) -> set[str]:
        if key is None:
            return set()
        held = self._by_task[key]
        held.remove(version)
        if not held:
            del self._by_task[key]
        return {key}


def _continues(before: Version, seen: Seen) -> bool:
    """Whether a file's earlier contents still count: not if it is something else now, nor if it is a checklist."""
    return type(before.document) is type(seen.document) and not isinstance(seen.document, TodoList)
