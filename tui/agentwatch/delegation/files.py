"""Which versions of which files speak of which task."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from operator import attrgetter
from typing import Final

from agentwatch.contracts.shapes import Contract, Document, Handoff, Return, Todo, TodoList
from agentwatch.delegation import identity
from agentwatch.delegation.events import Seen
from agentwatch.delegation.indexes import Groups
from agentwatch.delegation.ownership import Ownership
from agentwatch.delegation.run import Doing, todo_moved
from agentwatch.delegation.task import PlacedFinding, Version

MAX_VERSIONS: Final = 256
"""Contents of one file that are remembered. The busiest real file seen had 104."""


class Files:
    """Every document that is there, and its earlier contents, by file and by task.

    With `remembers`, the contents of a file that is gone stay known, and stay with the tasks that they belonged to.
    """

    def __init__(self, *, remembers: bool = False) -> None:
        self._remembers = remembers
        # Tuples, for nearly all of these hold one: a list of one weighs twice as much.
        self._versions: dict[str, tuple[Version, ...]] = {}
        self._keys: dict[str, tuple[str | None, ...]] = {}
        self._by_task: dict[str, tuple[Version, ...]] = {}
        self._ownership = Ownership()
        self._former = Ownership()
        """The handoffs that are gone: what is returned after its handoff was deleted still belongs to it."""
        self._settled: dict[str, int] = {}
        """How many of a file's versions stay with their task, because it or the handoff that it belonged to is gone."""
        self._holders = Groups[str]()
        """By digest, the files that are there and hold it now; kept only while contents are remembered."""
        self._lost = Groups[str]()
        """By digest, the files that are gone and held it last."""
        self._gone: set[str] = set()
        self._named: dict[str, None] = {}
        """Files that are returns by their names alone."""
        self._moved: dict[str, set[str]] = {}
        """By file, those that are gone and whose last content it took over: they were renamed to it."""

    def versions(self, task_id: str) -> tuple[Version, ...]:
        """The versions that speak of a task, in the order they were observed."""
        return self._by_task.get(task_id, ())

    def tasks_of(self, path: str) -> set[str]:
        """The tasks that the versions of a file speak of."""
        return {key for key in self._keys.get(path, ()) if key is not None}

    @property
    def nobodys(self) -> list[PlacedFinding]:
        """What is wrong with files that are returns by their names alone, and belong to no task."""
        placed = []
        for path in self._named:
            version, key = self._versions[path][-1], self._keys[path][-1]
            # Other programs write reports, too.
            if key is None and path not in self._gone and version.document.contract is not Contract.REPORT_CONTRACT:
                placed += [PlacedFinding(finding, path) for finding in version.findings]
        return placed

    def tasks_beside(self, path: str) -> set[str]:
        """The tasks that a file belongs to by its name alone, or whose file it was before."""
        return set().union(*map(self.tasks_of, (path, *self._ownership.beside(path))))

    def holds(self, path: str) -> bool:
        """Whether any content of a file is known."""
        return path in self._versions

    def is_gone(self, path: str) -> bool:
        """Whether a file whose contents are remembered is not there any more."""
        return path in self._gone

    def see(self, seen: Seen) -> set[str]:
        """A file has this content now. Returns the tasks that this concerns."""
        path = seen.path
        versions = self._versions.setdefault(path, ())
        concerned = self.tasks_of(path) | self._find_again(path)
        if versions and self._is_known(versions[-1], seen):
            concerned |= self.tasks_of(path)
        else:
            moved = _moved(versions[-1] if versions else None, seen)
            if versions and not _continues(versions[-1], seen):
                while self._versions[path]:
                    concerned |= self._forget_version(path, 0)
            elif len(versions) >= MAX_VERSIONS:
                # The first version stays: it says when the task began.
                concerned |= self._forget_version(path, 1)
            self._versions[path] = (*self._versions[path], Version(*seen, moved=moved))
            self._keys[path] = (*self._keys.get(path, ()), None)
        if seen.document.recognised:
            self._named.pop(path, None)
        else:
            self._named[path] = None
        for one in {path, *self._register(path, self._versions[path][-1])}:
            concerned |= self._assign(one)
        if self._remembers:
            concerned |= self._hold(path)
        return concerned

    def _is_known(self, last: Version, seen: Seen) -> bool:
        """Whether a file holds what it held. A return that was written later may answer a newer handoff."""
        if held(last) != held(seen):
            return False
        return seen.at <= last.at if isinstance(seen.document, Return) else self._remembers

    def forget(self, path: str, *, undone: bool = False) -> set[str]:
        """The file is gone; `undone`: it never was there. Returns the tasks that this concerns."""
        if path not in self._versions:
            return set()
        if self._remembers and not undone:
            return self._lose(path) if path not in self._gone else set()
        concerned = self._find_again(path)
        self._settled.pop(path, None)
        self._moved.pop(path, None)
        while self._versions[path]:
            concerned |= self._forget_version(path, 0)
        del self._versions[path], self._keys[path]
        self._named.pop(path, None)
        followers = self._ownership.drop_handoff(path) | self._ownership.drop_follower(path)
        return concerned.union(*map(self._assign, followers | self._former.drop_follower(path)))

    def _lose(self, path: str) -> set[str]:
        """Remember a file that is gone."""
        concerned = self.tasks_of(path)
        self._gone.add(path)
        last = self._versions[path][-1]
        self._holders.discard(last.digest, path)
        self._lost.add(last.digest, path)
        followers = self._ownership.drop_handoff(path)
        for settling in (path, *(one for one in followers if self._keys[one][-1] in concerned)):
            self._settled[settling] = len(self._versions[settling])
        followers |= self._ownership.drop_follower(path) | self._former.drop_follower(path)
        if isinstance(last.document, Handoff) and (key := self._keys[path][-1]) is not None:
            followers |= self._former.set_handoff(path, self._versions[path][0].seq, key)
            # What was deleted before it may have been renamed together with it.
            lost = dict.fromkeys(version.path for version in self.versions(key) if version.path in self._gone)
        else:
            lost = {path: None}
        concerned = concerned.union(*map(self._assign, followers))
        for one in lost:
            if holders := self._holders.of(self._versions[one][-1].digest):
                concerned |= self._rename(one, next(iter(holders)))
        return concerned

    def _find_again(self, path: str) -> set[str]:
        """A file that may have been gone is there. Returns the tasks that this concerns."""
        if path not in self._gone:
            if self._remembers and self._versions[path]:
                self._holders.discard(self._versions[path][-1].digest, path)
            return set()
        self._gone.discard(path)
        self._lost.discard(self._versions[path][-1].digest, path)
        for lost in self._moved.values():
            if path in lost:
                lost.discard(path)
                # What it held is its own again, and not of the file that it was renamed to.
                self._settled.pop(path, None)
        return set[str]().union(*map(self._assign, self._former.drop_handoff(path)))

    def _hold(self, path: str) -> set[str]:
        """The file holds its last content now: files that are gone and held it last were renamed to it."""
        digest = self._versions[path][-1].digest
        self._holders.add(digest, path)
        concerned: set[str] = set()
        for lost in list(self._lost.of(digest)):
            concerned |= self._rename(lost, path)
        return concerned

    def _rename(self, path: str, heir: str) -> set[str]:
        """Take a file that is gone for renamed to one with the same content. Not where its task goes by more than the
        place of the file: two tasks may fail in the same words, and the past of each stays with it."""
        key = self._keys[path][-1]
        for version in self.versions(key) if key is not None else ():
            is_there = isinstance(version.document, Handoff) and version.path not in self._gone
            if is_there or identity.own_id(version.document) == key:
                return set()
        return self._hand_on(path, heir)

    def _hand_on(self, path: str, heir: str) -> set[str]:
        """Give the versions of a file that is gone to the task of the one that it was renamed to."""
        self._moved.setdefault(heir, set()).add(path)
        key = self._keys[heir][-1]
        given = [self._give(path, index, version, key) for index, version in enumerate(self._versions[path])]
        return set[str]().union(*given, *[self._hand_on(one, path) for one in self._moved.get(path, ())])

    def _register(self, path: str, version: Version) -> set[str]:
        """Tell the index of handoffs what the file is now. Returns the files whose owner may have changed."""
        document = version.document
        if isinstance(document, Handoff):
            task_id = identity.own_id(document) or identity.fallback_id(path, document)
            first = self._versions[path][0].seq
            affected = self._ownership.drop_follower(path) | self._former.drop_follower(path)
            return affected | self._ownership.set_handoff(path, first, task_id)
        affected = self._ownership.drop_handoff(path)
        if all(identity.own_id(earlier.document) is not None for earlier in self._versions[path]):
            return affected | self._ownership.drop_follower(path) | self._former.drop_follower(path)
        kind = "todos" if isinstance(document, TodoList) else "return" if document.recognised else "named"
        return affected | self._ownership.add_follower(path, kind) | self._former.add_follower(path, kind)

    def _assign(self, path: str) -> set[str]:
        """Give each version of a file to its task again. Returns the tasks that this concerns."""
        concerned: set[str] = set()
        first = self._settled.get(path, 0)
        owner_of: Callable[[bool], str | None] = partial(self._owner, path)
        versions = self._versions[path][first:]
        if len(versions) > 1:
            owner_of = cache(owner_of)  # the same for all versions, of which there may be many
        for index, version in enumerate(versions, first):
            stated = identity.own_id(version.document)
            if stated is None or stated != self._keys[path][index]:
                task_id = self._task_of(version, self._keys[path][:index], owner_of)
                concerned |= self._give(path, index, version, task_id)
        for lost in self._moved.get(path, ()):
            concerned |= self._hand_on(lost, path)
        return concerned

    def _give(self, path: str, index: int, version: Version, key: str | None) -> set[str]:
        before = self._keys[path][index]
        if key == before:
            return set()
        concerned = self._take(version, before)
        if key is not None:
            held = (*self.versions(key), version)
            if len(held) > 1 and held[-2].seq > version.seq:
                held = tuple(sorted(held, key=attrgetter("seq")))
            self._by_task[key] = held
            concerned.add(key)
        keys = self._keys[path]
        self._keys[path] = (*keys[:index], key, *keys[index + 1 :])
        return concerned

    def _owner(self, path: str, by_stem: bool) -> str | None:
        return self._ownership.owner(path, by_stem=by_stem) or self._former.owner(path, by_stem=by_stem)

    def _task_of(
        self, version: Version, before: tuple[str | None, ...], owner_of: Callable[[bool], str | None]
    ) -> str | None:
        """The task that a version speaks of; `before` are those of the earlier versions of its file, `owner_of` says
        which its handoff is of."""
        document = version.document
        if (task_id := identity.own_id(document)) is not None:
            return task_id
        if not isinstance(document, Handoff):
            by_stem = not document.recognised
            if (owner := owner_of(by_stem)) is not None:
                return owner
            if by_stem:
                # What the file spoke of before it still speaks of; without that it is no task.
                return next((key for key in reversed(before) if key is not None), None)
        # A checklist beside no handoff may be anybody's: it is no task by itself.
        return None if isinstance(document, TodoList) else identity.fallback_id(version.path, document)

    def _forget_version(self, path: str, index: int) -> set[str]:
        if index < self._settled.get(path, 0):
            self._settled[path] -= 1
        versions, keys = self._versions[path], self._keys[path]
        self._versions[path] = versions[:index] + versions[index + 1 :]
        self._keys[path] = keys[:index] + keys[index + 1 :]
        return self._take(versions[index], keys[index])

    def _take(self, version: Version, key: str | None) -> set[str]:
        if key is None:
            return set()
        held = self._by_task.pop(key)
        if len(held) > 1:
            index = held.index(version)
            self._by_task[key] = held[:index] + held[index + 1 :]
        return {key}


def _continues(before: Version, seen: Seen) -> bool:
    """Whether a file's earlier contents still count: not if it is something else now, nor if it is a checklist."""
    return type(before.document) is type(seen.document) and not isinstance(seen.document, TodoList)


def _moved(before: Version | None, seen: Seen) -> Doing | None:
    """The todo that was ticked or begun last in a file that has this content now."""
    known = _todos_in(before.document) if before is not None else None
    moved = todo_moved(known, _todos_in(seen.document), seen.at)
    return before.moved if moved is None and before is not None else moved


def _todos_in(document: Document) -> tuple[Todo, ...] | None:
    if isinstance(document, TodoList):
        return document.items
    return document.todos if isinstance(document, Handoff) else None


def held(version: Version | Seen) -> tuple[object, ...]:
    """What a file held: the same twice tells nothing new."""
    return version.digest, version.incomplete, version.document
