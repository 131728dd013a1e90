"""Which versions of which files speak of which task, and what cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from posixpath import dirname
from sys import intern
from typing import Final

from agentwatch.contracts.shapes import Contract, Document, Handoff, Return, Todo, TodoList
from agentwatch.delegation import identity
from agentwatch.delegation.events import Seen, Unreadable
from agentwatch.delegation.groups import Groups
from agentwatch.delegation.run import Activity, todo_moved
from agentwatch.delegation.task import PlacedFinding, Version

MAX_VERSIONS: Final = 256  # contents of one file that are remembered. The busiest real file seen had 104.

_REFUSED: Final = "SRC"  # how the ids of the rules begin that a file must keep to be read at all

_HANDOFF: Final = "handoff"
_FORMER: Final = "former"  # A handoff that is gone: what is returned after that still belongs to it
_HANDOFFS: Final = (_HANDOFF, _FORMER)


class _File:
    """The contents of one file, oldest first, and the task that each speaks of."""

    __slots__ = ("is_gone", "kind", "owner", "settled", "tasks", "versions")

    def __init__(self) -> None:
        self.versions: tuple[Version, ...] = ()
        self.tasks: tuple[str | None, ...] = ()
        self.settled = 0
        """So many versions stay with their task, because the file or the handoff that it belonged to is gone."""
        self.is_gone = False
        self.kind: str | None = None
        """A handoff, or of a file without a task id: a checklist and a return in one directory are no rivals."""
        self.owner: tuple[int, str] | None = None  # of a handoff: when it was first seen, and its task


class Files:
    """Every document that is there, and its earlier contents, by file and by task.

    With `remembers`, the contents of a file that is gone stay known, and stay with the tasks that they belonged to.
    """

    def __init__(self, *, remembers: bool = False) -> None:
        self._remembers = remembers
        self._files: dict[str, _File] = {}
        self._groups = Groups()
        """By task, by kind and slot or directory, by last content, and by slot those that cannot be read."""
        self._moved: dict[str, dict[str, None]] = {}
        """By file, those that are gone and whose last content it took over: they were renamed to it."""
        self._named: dict[str, None] = {}  # files that are returns by their names alone
        self._unread: dict[str, Unreadable] = {}

    def versions(self, task_id: str) -> tuple[Version, ...]:
        """The versions that speak of a task, in the order they were observed."""
        files = [self._files[path] for path in self._groups.of("task", task_id)]
        if len(files) == 1 and {*files[0].tasks} == {task_id}:
            return files[0].versions
        each = (zip(file.versions, file.tasks, strict=True) for file in files)
        return tuple(sorted((one for both in each for one, task in both if task == task_id), key=attrgetter("seq")))

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
    def notices(self) -> list[PlacedFinding]:
        """Findings of files that belong to no task, by their names."""
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
        self._groups.move(event.path, (), [("unread", *identity.slot(event.path))])
        return self._concerned(event.path)

    def hidden(self, versions: Sequence[Version]) -> dict[str, float]:
        """The handoffs and returns of a task, by their names, that are there and were refused, and when they were
        written (epoch seconds)."""
        refused = (one.path for one in self.problems(versions) if one.finding.rule.startswith(_REFUSED))
        return {path: self._unread[path].at for path in refused if identity.is_under_contract(path)}

    def problems(self, versions: Sequence[Version]) -> tuple[PlacedFinding, ...]:
        """Problems that keep the files of a task that has these versions, and those beside its handoffs, from
        being read."""
        if not self._unread:
            return ()
        paths = dict.fromkeys(version.path for version in versions)
        for version in versions:
            if isinstance(version.document, Handoff) and not self.is_gone(version.path):
                paths |= dict.fromkeys(sorted(self._groups.of("unread", *identity.slot(version.path))))
        return tuple(PlacedFinding(self._unread[path].finding, path) for path in paths if path in self._unread)

    def _concerned(self, path: str) -> set[str]:
        """The tasks that a file belongs to by its name alone, or whose file it was before."""
        return set[str]().union(*map(self.tasks_of, (path, *self._groups.of(_HANDOFF, *identity.slot(path)))))

    def _clear(self, path: str) -> set[str]:
        if self._unread.pop(path, None) is None:
            return set()
        self._groups.move(path, [("unread", *identity.slot(path))], ())
        return self._concerned(path)

    # Files that are there, and files that are gone

    def see(self, seen: Seen) -> set[str]:
        """A file has this content now. Returns the tasks that this concerns."""
        path, concerned = seen.path, self._clear(seen.path)
        file = self._files.setdefault(path, _File())
        concerned |= self.tasks_of(path) | self._find_again(path)
        last = file.versions[-1] if file.versions else None
        if last is None or not self._is_known(last, seen):
            versions, tasks = file.versions, file.tasks
            if last is not None and not _continues(last, seen):
                versions, tasks, file.settled = (), (), 0
            elif len(versions) >= MAX_VERSIONS:
                # The first version stays: it says when the task began.
                versions, tasks = versions[:1] + versions[2:], tasks[:1] + tasks[2:]
                file.settled -= file.settled > 1
            self._hold(path, (*versions, Version(*seen, moved=_moved(last, seen))), (*tasks, None))
        if seen.document.recognised:
            self._named.pop(path, None)
        else:
            self._named[path] = None
        for one in {path, *self._register(path)}:
            concerned |= self._assign(one)
        if self._remembers:
            digest = file.versions[-1].digest
            self._groups.move(path, (), [("digest", digest)])
            # Files that are gone and held this last were renamed to it.
            for other in [*self._groups.of("digest", digest)]:
                concerned |= self._rename(other, path) if self.is_gone(other) else set()
        return concerned

    def forget(self, path: str, *, undone: bool = False) -> set[str]:
        """The file is gone; `undone`: it never was there. Returns the tasks that this concerns."""
        concerned = self.tasks_of(path) | self._clear(path)
        file = self._files.get(path)
        if file is None or (self._remembers and not undone):
            return concerned if file is None or file.is_gone else concerned | self._lose(path, file)
        concerned |= self._find_again(path)
        self._hold(path, (), ())
        self._named.pop(path, None)
        self._moved.pop(path, None)
        followers = self._turn_into(path, None)
        del self._files[path]
        return concerned.union(*map(self._assign, followers - {path}))

    def _is_known(self, last: Version, seen: Seen) -> bool:
        """Whether a file holds what it held. A return that was written later may answer a newer handoff."""
        if held(last) != held(seen):
            return False
        return seen.at <= last.at if isinstance(seen.document, Return) else self._remembers

    def _lose(self, path: str, file: _File) -> set[str]:
        """Remember a file that is gone."""
        concerned, task = self.tasks_of(path), file.tasks[-1]
        followers = self._around(path) if file.kind == _HANDOFF else set()
        for one in (file, *(one for one in map(self._files.__getitem__, followers) if one.tasks[-1] in concerned)):
            one.settled = len(one.versions)
        file.is_gone, lost = True, {path: None}
        if isinstance(file.versions[-1].document, Handoff) and task is not None:
            followers |= self._turn_into(path, _FORMER, (file.versions[0].seq, task))
            # What was deleted before it may have been renamed together with it.
            lost = dict.fromkeys(version.path for version in self.versions(task) if self.is_gone(version.path))
        else:
            followers |= self._turn_into(path, None)
        concerned = concerned.union(*map(self._assign, followers))
        for name in lost:
            alike = self._groups.of("digest", self._files[name].versions[-1].digest)
            heir = next((other for other in alike if not self.is_gone(other)), None)
            concerned |= self._rename(name, heir) if heir is not None else set()
        return concerned

    def _find_again(self, path: str) -> set[str]:
        """A file that may have been gone is there. Returns the tasks that this concerns."""
        file = self._files[path]
        if self._remembers and file.versions:
            self._groups.move(path, [("digest", file.versions[-1].digest)], ())
        if not file.is_gone:
            return set()
        file.is_gone = False
        for moved in self._moved.values():
            if path in moved:
                del moved[path]
                # What it held is its own again, and not of the file that it was renamed to.
                file.settled = 0
        followers = self._turn_into(path, None) if file.kind == _FORMER else set()
        return set[str]().union(*map(self._assign, followers))

    def _rename(self, path: str, heir: str) -> set[str]:
        """Take a file that is gone for renamed to one with the same content."""
        task = self._files[path].tasks[-1]
        for version in self.versions(task) if task is not None else ():
            is_there = isinstance(version.document, Handoff) and not self.is_gone(version.path)
            if is_there or identity.own_id(version.document) == task:
                return set()
        return self._hand_on(path, heir)

    def _hand_on(self, path: str, heir: str) -> set[str]:
        """Give the versions of a file that is gone to the task of the one that it was renamed to."""
        self._moved.setdefault(heir, {})[path] = None
        given = self._give(path, [self._files[heir].tasks[-1]] * len(self._files[path].versions))
        return given.union(*(self._hand_on(one, path) for one in self._moved.get(path, ())))

    # Whose they are

    def _register(self, path: str) -> set[str]:
        """Heed what the file is now. Returns the files whose owner may have changed."""
        file = self._files[path]
        document = file.versions[-1].document
        if isinstance(document, Handoff):
            owner = file.versions[0].seq, identity.own_id(document) or identity.fallback_id(path, document)
            return self._turn_into(path, _HANDOFF, owner)
        kind = None
        if any(identity.own_id(version.document) is None for version in file.versions):
            kind = "todos" if isinstance(document, TodoList) else "return" if document.recognised else "named"
        return self._turn_into(path, kind)

    def _turn_into(self, path: str, kind: str | None, owner: tuple[int, str] | None = None) -> set[str]:
        """A file is of this kind from now on."""
        file, directory, affected = self._files[path], _directory(path), set[str]()
        if (file.kind, file.owner) == (kind, owner):
            return affected
        self._groups.move(path, _keys(path, file.kind), _keys(path, kind))
        for one in filter(None, (file.kind, kind)):
            others = self._groups.of(one, directory) - {path}
            affected |= self._around(path) if one in _HANDOFFS else others if len(others) == 1 else set()
        file.kind, file.owner = kind, owner
        return affected

    def _around(self, path: str) -> set[str]:
        """The files whose owner may change with the handoff in this one."""
        directory = _directory(path)
        affected = {*self._groups.of("file", *identity.slot(path)), *self._groups.of("file", directory, "")}
        for kind in ("return", "todos"):
            group = self._groups.of(kind, directory)
            affected |= group if len(group) == 1 else set()
        return affected

    def _assign(self, path: str) -> set[str]:
        """Give each version of a file to its task again. Returns the tasks that this concerns."""
        file = self._files[path]
        tasks = [*file.tasks[: file.settled]]
        for version in file.versions[file.settled :]:
            document = version.document
            task, is_named = identity.own_id(document), not document.recognised
            if not isinstance(document, Handoff):
                task = task or self._owner(path, file, by_stem=is_named)
                if task is None and is_named:
                    # What the file spoke of before it still speaks of; without that it is no task.
                    task = next((one for one in reversed(tasks) if one is not None), None)
            # A checklist beside no handoff may be anybody's.
            if task is None and not isinstance(document, TodoList) and (isinstance(document, Handoff) or not is_named):
                task = identity.fallback_id(path, document)
            tasks.append(task)
        return self._give(path, tasks).union(*(self._hand_on(one, path) for one in self._moved.get(path, ())))

    def _owner(self, path: str, file: _File, *, by_stem: bool) -> str | None:
        """The task of the handoff that a file without a task id belongs to: of the same stem, else the only one in its
        directory, where the file is alone there or has a general name; `by_stem`: of the same stem alone."""
        directory, slot = _directory(path), identity.slot(path)
        is_alone = not by_stem and (slot[1] == "" or len(self._groups.of(file.kind or "", directory)) == 1)
        for kind in _HANDOFFS:
            around = self._groups.of(kind, *slot)
            if not around and is_alone and len(only := self._groups.of(kind, directory)) == 1:
                around = only
            if around:
                return min(owner for one in around if (owner := self._files[one].owner) is not None)[1]
        return None

    def _give(self, path: str, tasks: Sequence[str | None]) -> set[str]:
        before = self._files[path].tasks
        self._hold(path, self._files[path].versions, tuple(tasks))
        return {
            one for pair in zip(before, tasks, strict=True) if pair[0] != pair[1] for one in pair if one is not None
        }

    def _hold(self, path: str, versions: tuple[Version, ...], tasks: tuple[str | None, ...]) -> None:
        file = self._files[path]
        before, after = ([("task", one) for one in {*each} if one is not None] for each in (file.tasks, tasks))
        self._groups.move(path, before, after)
        file.versions, file.tasks = versions, tasks


def _keys(path: str, kind: str | None) -> list[tuple[str, ...]]:
    if kind is None:
        return []
    return [(kind if kind in _HANDOFFS else "file", *identity.slot(path)), (kind, _directory(path))]


def held(version: Version | Seen) -> tuple[object, ...]:
    """The content of a file: the same twice tells nothing new."""
    return version.digest, version.incomplete, version.document


def _directory(path: str) -> str:
    """The directory that a file lies in; interned, for many lie in one."""
    return intern(dirname(path))


def _continues(before: Version, seen: Seen) -> bool:
    """Whether a file's earlier contents still count: not if it is something else now, nor if it is a checklist."""
    return type(before.document) is type(seen.document) and not isinstance(seen.document, TodoList)


def _moved(before: Version | None, seen: Seen) -> Activity | None:
    """The todo that was ticked or begun last in a file that has this content now."""
    known = _todos_in(before.document) if before is not None else None
    moved = todo_moved(known, _todos_in(seen.document), seen.at)
    return before.moved if moved is None and before is not None else moved


def _todos_in(document: Document) -> tuple[Todo, ...] | None:
    if isinstance(document, TodoList):
        return document.items
    return document.todos if isinstance(document, Handoff) else None
