"""Which versions of which files speak of which task, and what cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from operator import attrgetter
from posixpath import dirname
from sys import intern
from typing import Any, Final, Generic, TypeVar

from agentwatch.contracts.shapes import Contract, Document, Handoff, Return, Todo, TodoList
from agentwatch.delegation import identity
from agentwatch.delegation.events import Seen, Unreadable
from agentwatch.delegation.run import Doing, todo_moved
from agentwatch.delegation.task import PlacedFinding, Version

MAX_VERSIONS: Final = 256
"""Contents of one file that are remembered. The busiest real file seen had 104."""

_REFUSED: Final = "SRC"
"""How the ids of the rules begin that a file must keep to be read at all."""

_Key = TypeVar("_Key")
_NONE: Final[frozenset[Any]] = frozenset()


class Groups(Generic[_Key]):
    """Paths by key, in the order in which they came. Nearly every key has one, which is stored as it is."""

    def __init__(self) -> None:
        self._groups: dict[_Key, str | dict[str, None]] = {}

    def of(self, key: _Key) -> Set[str]:
        group = self._groups.get(key)
        return _NONE if group is None else {group} if isinstance(group, str) else group.keys()

    def add(self, key: _Key, name: str) -> None:
        group = self._groups.setdefault(key, name)
        if isinstance(group, dict):
            group[name] = None
        elif group != name:
            self._groups[key] = {group: None, name: None}

    def discard(self, key: _Key, name: str) -> None:
        group = self._groups.get(key)
        if isinstance(group, dict):
            group.pop(name, None)
        if not group or group == name:
            self._groups.pop(key, None)


class _Handoffs:
    """Handoff files, by slot and by directory: when each was first seen, and of which task it is."""

    def __init__(self) -> None:
        self._owners: dict[str, tuple[int, str]] = {}
        self._by_slot = Groups[identity.Slot]()
        self._by_directory = Groups[str]()

    def put(self, path: str, owner: tuple[int, str] | None) -> bool:
        """The file is a handoff of this task, or none (None). Returns whether that is new."""
        if self._owners.get(path) == owner:
            return False
        if owner is None:
            del self._owners[path]
            self._by_slot.discard(identity.slot(path), path)
            self._by_directory.discard(_directory(path), path)
        else:
            self._owners[path] = owner
            self._by_slot.add(identity.slot(path), path)
            self._by_directory.add(_directory(path), path)
        return True

    def beside(self, path: str) -> Set[str]:
        """The handoffs that a file belongs to by its name, whatever it holds."""
        return self._by_slot.of(identity.slot(path))

    def owner(self, path: str, is_alone: bool) -> str | None:
        """The task of the handoff that a file without a task id belongs to: of the same stem, else the only one in its
        directory, where the file `is_alone` or has a general name."""
        around = self.beside(path)
        if not around and is_alone:
            around = self._by_directory.of(_directory(path))
            around = around if len(around) == 1 else _NONE
        return min(self._owners[one] for one in around)[1] if around else None


class _File:
    """The contents of one file, oldest first, and the task that each speaks of."""

    __slots__ = ("is_gone", "kind", "settled", "tasks", "versions")

    def __init__(self) -> None:
        self.versions: tuple[Version, ...] = ()
        self.tasks: tuple[str | None, ...] = ()
        self.settled = 0
        """So many versions stay with their task, because the file or the handoff that it belonged to is gone."""
        self.is_gone = False
        self.kind: str | None = None
        """Of a file without a task id: a checklist and a return in one directory are no rivals."""


class Files:
    """Every document that is there, and its earlier contents, by file and by task.

    With `remembers`, the contents of a file that is gone stay known, and stay with the tasks that they belonged to.
    """

    def __init__(self, *, remembers: bool = False) -> None:
        self._remembers = remembers
        self._files: dict[str, _File] = {}
        self._by_task: dict[str, tuple[Version, ...]] = {}
        self._handoffs = _Handoffs()
        self._former = _Handoffs()
        """The handoffs that are gone: what is returned after its handoff was deleted still belongs to it."""
        self._by_slot = Groups[identity.Slot]()
        """The files without a task id."""
        self._by_kind = Groups[tuple[str, str]]()
        """The same by directory and kind."""
        self._by_digest = Groups[str]()
        """The files that hold a content now, or held it last; only while contents are remembered."""
        self._moved: dict[str, dict[str, None]] = {}
        """By file, those that are gone and whose last content it took over: they were renamed to it."""
        self._named: dict[str, None] = {}
        """Files that are returns by their names alone."""
        self._unread: dict[str, Unreadable] = {}
        self._unread_by_slot = Groups[identity.Slot]()

    def versions(self, task_id: str) -> tuple[Version, ...]:
        """The versions that speak of a task, in the order they were observed."""
        return self._by_task.get(task_id, ())

    def tasks_of(self, path: str) -> set[str]:
        """The tasks that the versions of a file speak of."""
        file = self._files.get(path)
        return set() if file is None else {task for task in file.tasks if task is not None}

    def is_known(self, path: str) -> bool:
        """Whether any content of a file is known."""
        return path in self._files

    def is_gone(self, path: str) -> bool:
        """Whether a file whose contents are remembered is not there any more."""
        file = self._files.get(path)
        return file is not None and file.is_gone

    # Files that cannot be read

    @property
    def unread(self) -> Iterable[Unreadable]:
        """The files that cannot be read."""
        return self._unread.values()

    @property
    def notices(self) -> list[PlacedFinding]:
        """What is wrong with files that belong to no task, by their names."""
        unread = [PlacedFinding(one.finding, path) for path, one in self._unread.items() if not self._concerned(path)]
        return sorted(unread + self._nobodys, key=attrgetter("path"))

    @property
    def troubled(self) -> set[str]:
        """Every file that cannot be read, and those that are returns by their names alone and are nobody's."""
        return {*self._unread, *(placed.path for placed in self._nobodys)}

    @property
    def _nobodys(self) -> list[PlacedFinding]:
        placed = []
        for path in self._named:
            file = self._files[path]
            # Other programs write reports, too.
            is_report = file.versions[-1].document.contract is Contract.REPORT_CONTRACT
            if file.tasks[-1] is None and not file.is_gone and not is_report:
                placed += [PlacedFinding(finding, path) for finding in file.versions[-1].findings]
        return placed

    def refuse(self, event: Unreadable) -> set[str]:
        """A file cannot be read. Returns the tasks that this concerns."""
        self._unread[event.path] = event
        self._unread_by_slot.add(identity.slot(event.path), event.path)
        return self._concerned(event.path)

    def hidden(self, versions: Sequence[Version]) -> dict[str, float]:
        """The handoffs and returns of a task, by their names, that are there and were refused, and when they were
        written (epoch seconds)."""
        refused = (one.path for one in self.problems(versions) if one.finding.rule.startswith(_REFUSED))
        return {path: self._unread[path].at for path in refused if identity.is_under_contract(path)}

    def problems(self, versions: Sequence[Version]) -> tuple[PlacedFinding, ...]:
        """What keeps the files of a task that has these versions, and those beside its handoffs, from being read."""
        if not self._unread:
            return ()
        paths = dict.fromkeys(version.path for version in versions)
        for version in versions:
            if isinstance(version.document, Handoff) and not self.is_gone(version.path):
                paths |= dict.fromkeys(sorted(self._unread_by_slot.of(identity.slot(version.path))))
        return tuple(PlacedFinding(self._unread[path].finding, path) for path in paths if path in self._unread)

    def _concerned(self, path: str) -> set[str]:
        """The tasks that a file belongs to by its name alone, or whose file it was before."""
        return set[str]().union(*map(self.tasks_of, (path, *self._handoffs.beside(path))))

    def _clear(self, path: str) -> set[str]:
        if self._unread.pop(path, None) is None:
            return set()
        self._unread_by_slot.discard(identity.slot(path), path)
        return self._concerned(path)

    # Files that are there, and files that are gone

    def see(self, seen: Seen) -> set[str]:
        """A file has this content now. Returns the tasks that this concerns."""
        path, concerned = seen.path, self._clear(seen.path)
        file = self._files.setdefault(path, _File())
        concerned |= self.tasks_of(path) | self._find_again(path)
        last = file.versions[-1] if file.versions else None
        if last is not None and self._is_known(last, seen):
            concerned |= self.tasks_of(path)
        else:
            if last is not None and not _continues(last, seen):
                concerned |= self._forget_versions(file, 0, len(file.versions))
            elif len(file.versions) >= MAX_VERSIONS:
                # The first version stays: it says when the task began.
                concerned |= self._forget_versions(file, 1, 2)
            file.versions += (Version(*seen, moved=_moved(last, seen)),)
            file.tasks += (None,)
        if seen.document.recognised:
            self._named.pop(path, None)
        else:
            self._named[path] = None
        for one in {path, *self._register(path)}:
            concerned |= self._assign(one)
        if self._remembers:
            digest = file.versions[-1].digest
            self._by_digest.add(digest, path)
            # Files that are gone and held this last were renamed to it.
            for other in [*self._by_digest.of(digest)]:
                concerned |= self._rename(other, path) if self.is_gone(other) else set()
        return concerned

    def forget(self, path: str, *, undone: bool = False) -> set[str]:
        """The file is gone; `undone`: it never was there. Returns the tasks that this concerns."""
        concerned = self.tasks_of(path) | self._clear(path)
        file = self._files.get(path)
        if file is None or (self._remembers and not undone):
            return concerned if file is None or file.is_gone else concerned | self._lose(path, file)
        concerned |= self._find_again(path) | self._forget_versions(file, 0, len(file.versions))
        self._named.pop(path, None)
        self._moved.pop(path, None)
        followers = self._around(path) if self._handoffs.put(path, None) else set()
        followers |= self._follow(path, None)
        del self._files[path]
        return concerned.union(*map(self._assign, followers))

    def _is_known(self, last: Version, seen: Seen) -> bool:
        """Whether a file holds what it held. A return that was written later may answer a newer handoff."""
        if held(last) != held(seen):
            return False
        return seen.at <= last.at if isinstance(seen.document, Return) else self._remembers

    def _lose(self, path: str, file: _File) -> set[str]:
        """Remember a file that is gone."""
        concerned = self.tasks_of(path)
        file.is_gone = True
        followers = self._around(path) if self._handoffs.put(path, None) else set()
        for settling in (file, *(one for one in map(self._files.__getitem__, followers) if one.tasks[-1] in concerned)):
            settling.settled = len(settling.versions)
        followers |= self._follow(path, None)
        lost, task = {path: None}, file.tasks[-1]
        if isinstance(file.versions[-1].document, Handoff) and task is not None:
            followers |= self._around(path) if self._former.put(path, (file.versions[0].seq, task)) else set()
            # What was deleted before it may have been renamed together with it.
            lost = dict.fromkeys(version.path for version in self.versions(task) if self.is_gone(version.path))
        concerned = concerned.union(*map(self._assign, followers))
        for one in lost:
            alike = self._by_digest.of(self._files[one].versions[-1].digest)
            heir = next((other for other in alike if not self.is_gone(other)), None)
            concerned |= self._rename(one, heir) if heir is not None else set()
        return concerned

    def _find_again(self, path: str) -> set[str]:
        """A file that may have been gone is there. Returns the tasks that this concerns."""
        file = self._files[path]
        if self._remembers and file.versions:
            self._by_digest.discard(file.versions[-1].digest, path)
        if not file.is_gone:
            return set()
        file.is_gone = False
        for moved in self._moved.values():
            if path in moved:
                del moved[path]
                # What it held is its own again, and not of the file that it was renamed to.
                file.settled = 0
        return set[str]().union(*map(self._assign, self._around(path) if self._former.put(path, None) else ()))

    def _rename(self, path: str, heir: str) -> set[str]:
        """Take a file that is gone for renamed to one with the same content. Not where its task goes by more than the
        place of the file: two tasks may fail in the same words, and the past of each stays with it."""
        task = self._files[path].tasks[-1]
        for version in self.versions(task) if task is not None else ():
            is_there = isinstance(version.document, Handoff) and not self.is_gone(version.path)
            if is_there or identity.own_id(version.document) == task:
                return set()
        return self._hand_on(path, heir)

    def _hand_on(self, path: str, heir: str) -> set[str]:
        """Give the versions of a file that is gone to the task of the one that it was renamed to."""
        self._moved.setdefault(heir, {})[path] = None
        file, task = self._files[path], self._files[heir].tasks[-1]
        given = [self._give(file, index, task) for index in range(len(file.versions))]
        return set[str]().union(*given, *(self._hand_on(one, path) for one in self._moved.get(path, ())))

    # Whose they are

    def _register(self, path: str) -> set[str]:
        """Have the indexes know what the file is now. Returns the files whose owner may have changed."""
        file = self._files[path]
        document = file.versions[-1].document
        if isinstance(document, Handoff):
            owner = file.versions[0].seq, identity.own_id(document) or identity.fallback_id(path, document)
            affected = self._follow(path, None)
            return affected | self._around(path) if self._handoffs.put(path, owner) else affected
        affected = self._around(path) if self._handoffs.put(path, None) else set()
        kind = None
        if any(identity.own_id(version.document) is None for version in file.versions):
            kind = "todos" if isinstance(document, TodoList) else "return" if document.recognised else "named"
        return affected | self._follow(path, kind)

    def _follow(self, path: str, kind: str | None) -> set[str]:
        """A file without a task id is of this kind, or of none. Returns the others whose owner that may change: one
        that was, or is again, alone in its directory."""
        file, affected = self._files[path], set[str]()
        if file.kind == kind:
            return affected
        for one in (file.kind, kind):
            if one is None:
                continue
            change = Groups.discard if one is file.kind else Groups.add
            change(self._by_slot, identity.slot(path), path)
            change(self._by_kind, (_directory(path), one), path)
            others = self._by_kind.of((_directory(path), one)) - {path}
            affected |= others if len(others) == 1 else set()
        file.kind = kind
        return affected

    def _around(self, path: str) -> set[str]:
        """The files whose owner may change with the handoff in this one."""
        directory = _directory(path)
        affected = {*self._by_slot.of(identity.slot(path)), *self._by_slot.of((directory, ""))}
        for kind in ("return", "todos"):
            group = self._by_kind.of((directory, kind))
            affected |= group if len(group) == 1 else set()
        return affected

    def _assign(self, path: str) -> set[str]:
        """Give each version of a file to its task again. Returns the tasks that this concerns."""
        file, concerned, owners = self._files[path], set[str](), dict[bool, str | None]()
        for index in range(file.settled, len(file.versions)):
            document = file.versions[index].document
            task, is_named = identity.own_id(document), not document.recognised
            if task is None and not isinstance(document, Handoff):
                if is_named not in owners:
                    owners[is_named] = self._owner(path, file, by_stem=is_named)
                task = owners[is_named]
            if task is None and is_named and not isinstance(document, Handoff):
                # What the file spoke of before it still speaks of; without that it is no task.
                task = next((one for one in reversed(file.tasks[:index]) if one is not None), None)
            elif task is None and not isinstance(document, TodoList):
                # A checklist beside no handoff may be anybody's.
                task = identity.fallback_id(path, document)
            concerned |= self._give(file, index, task)
        return concerned.union(*(self._hand_on(one, path) for one in self._moved.get(path, ())))

    def _owner(self, path: str, file: _File, *, by_stem: bool) -> str | None:
        """The task of the handoff beside a file; `by_stem`: that it is the only one around is not enough."""
        is_alone = len(self._by_kind.of((_directory(path), file.kind or ""))) == 1
        is_alone = not by_stem and (identity.slot(path)[1] == "" or is_alone)
        return self._handoffs.owner(path, is_alone) or self._former.owner(path, is_alone)

    def _give(self, file: _File, index: int, task: str | None) -> set[str]:
        before, version = file.tasks[index], file.versions[index]
        if task == before:
            return set()
        self._take(version, before)
        if task is not None:
            held = (*self.versions(task), version)
            is_last = len(held) == 1 or held[-2].seq <= version.seq
            self._by_task[task] = held if is_last else tuple(sorted(held, key=attrgetter("seq")))
        file.tasks = (*file.tasks[:index], task, *file.tasks[index + 1 :])
        return {one for one in (before, task) if one is not None}

    def _take(self, version: Version, task: str | None) -> None:
        if task is not None:
            held = self._by_task.pop(task)
            if len(held) > 1:
                index = held.index(version)
                self._by_task[task] = held[:index] + held[index + 1 :]

    def _forget_versions(self, file: _File, first: int, end: int) -> set[str]:
        tasks = file.tasks[first:end]
        for version, task in zip(file.versions[first:end], tasks, strict=True):
            self._take(version, task)
        file.settled -= sum(index < file.settled for index in range(first, end))
        file.versions = file.versions[:first] + file.versions[end:]
        file.tasks = file.tasks[:first] + file.tasks[end:]
        return {task for task in tasks if task is not None}


def held(version: Version | Seen) -> tuple[object, ...]:
    """What a file held: the same twice tells nothing new."""
    return version.digest, version.incomplete, version.document


def _directory(path: str) -> str:
    """The directory that a file lies in; interned, for many lie in one."""
    return intern(dirname(path))


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
