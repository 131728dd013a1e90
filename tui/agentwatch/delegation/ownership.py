"""Which handoff a file without a task id belongs to: same stem, or the only handoff in its directory.

An index, so that a new file asks only about the files that it can change.
"""

from __future__ import annotations

from functools import lru_cache
from posixpath import dirname
from sys import intern

from agentwatch.delegation.identity import Slot, slot
from agentwatch.delegation.indexes import Groups


class Ownership:
    """Handoff files, and the files without an id (followers) that lie around them.

    A follower has a kind (`return`, `todos`, `named` for what is a return by its name alone): a checklist and a return
    in one directory are no rivals.
    """

    def __init__(self) -> None:
        self._handoffs: dict[str, tuple[int, str]] = {}
        self._by_slot = Groups[Slot]()
        self._by_directory = Groups[str]()
        self._kinds: dict[str, str] = {}
        self._followers_by_slot = Groups[Slot]()
        self._followers_by_group = Groups[tuple[str, str]]()

    def set_handoff(self, path: str, seq: int, task_id: str) -> set[str]:
        """A handoff of `task_id` is in this file; `seq` is when it was first seen.

        Returns the followers whose owner may have changed.
        """
        if self._handoffs.get(path) == (seq, task_id):
            return set()
        self._handoffs[path] = (seq, task_id)
        self._by_slot.add(slot(path), path)
        self._by_directory.add(_directory(path), path)
        return self._followers_around(path)

    def drop_handoff(self, path: str) -> set[str]:
        """The file is no handoff any more. Returns the followers whose owner may have changed."""
        if self._handoffs.pop(path, None) is None:
            return set()
        self._by_slot.discard(slot(path), path)
        self._by_directory.discard(_directory(path), path)
        return self._followers_around(path)

    def add_follower(self, path: str, kind: str) -> set[str]:
        """A file without an id. Returns the other followers whose owner it may have changed."""
        if self._kinds.get(path) == kind:
            return set()
        affected = self.drop_follower(path)
        self._kinds[path] = kind
        self._followers_by_slot.add(slot(path), path)
        self._followers_by_group.add((_directory(path), kind), path)
        return affected | self._rivals(path, kind)

    def drop_follower(self, path: str) -> set[str]:
        """The file is gone or has an id now. Returns the other followers whose owner it may have changed."""
        kind = self._kinds.pop(path, None)
        if kind is None:
            return set()
        self._followers_by_slot.discard(slot(path), path)
        self._followers_by_group.discard((_directory(path), kind), path)
        return self._rivals(path, kind)

    def owner(self, path: str, *, by_stem: bool = False) -> str | None:
        """The task id of the handoff that a follower belongs to, None where there is none.

        `by_stem`: that it lies in the directory of only one handoff is not enough.
        """
        beside = self._by_slot.of(slot(path))
        if not beside and not by_stem:
            around = self._by_directory.of(_directory(path))
            # Alone with the only handoff, a file belongs to it whatever its name; among others it cannot be told.
            alike = self._followers_by_group.of((_directory(path), self._kinds.get(path, "")))
            beside = around if len(around) == 1 and (slot(path)[1] == "" or len(alike) == 1) else frozenset()
        return min(self._handoffs[handoff] for handoff in beside)[1] if beside else None

    def beside(self, path: str) -> set[str]:
        """The handoffs whose file names say that this file belongs to them, whatever it holds."""
        return set(self._by_slot.of(slot(path)))

    def _followers_around(self, path: str) -> set[str]:
        if not self._kinds:
            return set()
        directory = _directory(path)
        affected = {*self._followers_by_slot.of(slot(path)), *self._followers_by_slot.of((directory, ""))}
        for kind in ("return", "todos"):
            group = self._followers_by_group.of((directory, kind))
            if len(group) == 1:
                affected.update(group)
        return affected

    def _rivals(self, path: str, kind: str) -> set[str]:
        """The follower that was, or is again, alone in its directory."""
        group = self._followers_by_group.of((_directory(path), kind))
        others = group - {path}
        return {*others} if len(group) <= 2 and len(others) == 1 else set()


@lru_cache(maxsize=64)  # of one file, it is asked for of each of its versions
def _directory(path: str) -> str:
    """The directory that a file lies in; interned, for many lie in one."""
    return intern(dirname(path))
