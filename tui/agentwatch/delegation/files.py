"""Which versions of which files speak of which task, and which files cannot be read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from posixpath import dirname
from sys import intern
from typing import Final

from agentwatch.contracts.shapes import Contract, Finding, Handoff, Return, TodoList
from agentwatch.delegation import links
from agentwatch.delegation.events import Seen, Unreadable

MAX_VERSIONS: Final = 256  # contents of one file that are remembered. The busiest real file seen had 104.

_HANDOFF: Final = "handoff"

_Handoffs = Mapping[tuple[object, ...], Sequence[tuple[int, str | None]]]
"""By whether they are gone and slot or directory: when they were first seen, and their task."""


@dataclass(slots=True, eq=False)
class _File:
    """The contents of one file, oldest first, and the task that each speaks of."""

    path: str
    slot: links.Slot
    directory: str
    versions: tuple[Seen, ...] = ()
    tasks: tuple[str | None, ...] = ()
    settled: tuple[str | None, ...] = ()  # those of the first versions, for the file or its handoff is gone
    kind: str | None = None  # None where all versions name their task, and none is a handoff


class Files:
    """Every document that was ever there, and its earlier contents, by file and by task."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._directories = defaultdict[str, dict[str, _File]](dict)  # by the directory of their slots
        self._paths: dict[str | None, tuple[str, ...]] = {}  # by task
        self._gone: dict[str, None] = {}
        self._heirs: dict[str, str] = {}  # by files that are gone, those that they were renamed to
        self._unread: dict[str, tuple[links.Slot, Unreadable]] = {}
        # Since the last assignment
        self._changed: dict[str, None] = {}  # directories
        self._concerned: dict[str | None, None] = {}  # tasks

    def versions(self, task_id: str) -> tuple[Seen, ...]:
        """The versions that speak of a task, in the order they were observed."""
        files = [self._files[path] for path in self._paths.get(task_id, ())]
        each = (both for file in files for both in zip(file.versions, file.tasks, strict=True))
        return tuple(sorted((version for version, task in each if task == task_id), key=attrgetter("seq")))

    def tasks_of(self, path: str) -> set[str]:
        """The tasks that the versions of a file speak of."""
        file = self._files.get(path)
        return set() if file is None else {task for task in file.tasks if task is not None}

    def is_gone(self, path: str) -> bool:
        """Whether a file whose contents are remembered is not there any more."""
        return path in self._gone

    # Files that cannot be read

    @property
    def notices(self) -> list[Finding]:
        """Findings of files that belong to no task, by their names."""
        taken = {file.slot for file in self._files.values() if any(file.tasks)} if self._unread else set()
        placed = [replace(one.finding, path=one.path) for slot, one in self._unread.values() if slot not in taken]
        for last in (file.versions[-1] for file in self._files.values() if file.tasks[-1] is None):
            # Other programs write reports, too.
            is_report = last.document.contract is Contract.REPORT_CONTRACT
            if not (last.document.recognised or is_report or last.path in self._gone):
                placed += (replace(finding, path=last.path) for finding in last.findings)
        return sorted(placed, key=attrgetter("path"))

    def refuse(self, path: str, event: Unreadable | None) -> None:
        """A file cannot be read; None: it can, or is gone."""
        before = self._unread.pop(path, None)
        if before is None and event is None:
            return
        slot = links.slot(path)
        if event is not None:
            self._unread[path] = slot, event
        for file in self._directories.get(slot[0], {}).values():
            if file.slot == slot:
                self._concerned |= dict.fromkeys(file.tasks)

    def unread(self, versions: Sequence[Seen]) -> list[Unreadable]:
        """The files of a task that has these versions, and those beside them, that cannot be read."""
        slots = {links.slot(version.path) for version in versions} if self._unread else set()
        return sorted((one for slot, one in self._unread.values() if slot in slots), key=attrgetter("path"))

    # Files that are there, and files that are gone

    def see(self, seen: Seen) -> None:
        """A file has this content now."""
        path, document = seen.path, seen.document
        self.refuse(path, None)
        if (file := self._files.get(path)) is None:
            file = self._files[path] = _File(path, links.slot(path), intern(dirname(path)))
            self._directories[file.slot[0]][path] = file
        self._concerned |= dict.fromkeys(file.tasks)
        self._changed[file.slot[0]] = None
        self._gone.pop(path, None)
        if self._heirs.pop(path, None) is not None:
            # Its contents are its own again, and not of the file that it was renamed to.
            file.settled = ()
        last = file.versions[-1] if file.versions else None
        now = seen.digest, seen.incomplete, document
        is_same = last is not None and (last.digest, last.incomplete, last.document) == now
        # A return that was written later may answer a newer handoff.
        if last is None or not is_same or (isinstance(document, Return) and seen.at > last.at):
            if last is not None and (type(last.document) is not type(document) or isinstance(document, TodoList)):
                # It is something else now, or a checklist.
                file.versions, file.settled = (), ()
            elif len(file.versions) >= MAX_VERSIONS:
                # The first version stays: it says when the task began.
                file.versions = file.versions[:1] + file.versions[2:]
                file.settled = file.settled[:1] + file.settled[2:]
            file.versions += (seen,)
            if isinstance(document, Handoff):
                file.kind = _HANDOFF
            elif all(links.own_id(version.document) for version in file.versions):
                file.kind = None
            else:
                file.kind = "todos" if isinstance(document, TodoList) else "return" if document.recognised else "named"
        if file.kind in (None, _HANDOFF):
            self._give(file, self._tasks_for(file, {}, is_alone=False))

    def forget(self, path: str, *, undone: bool) -> None:
        """The file is gone; `undone`: it never was there."""
        self.refuse(path, None)
        if (file := self._files.get(path)) is None:
            return
        self._concerned |= dict.fromkeys(file.tasks)
        self._changed[file.slot[0]] = None
        if undone:
            self._give(file, ())
            del self._files[path], self._directories[file.slot[0]][path]
            self._gone.pop(path, None)
            self._heirs = {gone: heir for gone, heir in self._heirs.items() if path not in (gone, heir)}
        elif path not in self._gone:
            self._assign_changed()
            self._changed[file.slot[0]] = self._gone[path] = None
            for one in self._directories[file.slot[0]].values():
                if one is file or (file.kind == _HANDOFF and one.tasks[-1] in file.tasks):
                    one.settled = one.tasks

    # Whose they are

    def assign(self) -> list[str]:
        """Give all versions to tasks where something has changed. Returns the tasks that this concerns."""
        lost = [path for path in self._gone if path not in self._heirs] if self._changed else ()
        self._assign_changed()
        there = [file for path, file in self._files.items() if path not in self._gone] if lost else ()
        heirs = {file.versions[-1].digest: file.path for file in there}
        for path in lost:
            last, task = self._files[path].versions[-1], self._files[path].tasks[-1]
            # It was renamed to a file that holds its last content, if nothing else holds its task.
            if last.digest in heirs and not any(
                (isinstance(version.document, Handoff) and version.path not in self._gone)
                or links.own_id(version.document) == task
                for version in self.versions(task or "")
            ):
                self._heirs[path] = heirs[last.digest]
        for path in self._heirs:
            heir = path
            while heir in self._heirs:
                heir = self._heirs[heir]
            self._give(self._files[path], self._files[heir].tasks[-1:] * len(self._files[path].versions))
        concerned, self._concerned = self._concerned, {}
        return [task for task in concerned if task is not None]

    def _assign_changed(self) -> None:
        for directory in self._changed:
            files = self._directories[directory]
            handoffs = defaultdict[tuple[object, ...], list[tuple[int, str | None]]](list)
            others = Counter[tuple[str | None, str]]()
            for path, file in files.items():
                if file.kind == _HANDOFF:
                    handoff, is_gone = (file.versions[0].seq, file.tasks[-1]), path in self._gone
                    handoffs[is_gone, file.slot].append(handoff)
                    handoffs[is_gone, file.directory].append(handoff)
                elif file.kind is not None and path not in self._gone:
                    # A checklist and a return in one directory are no rivals.
                    others[file.kind, file.directory] += 1
            for path, file in files.items():
                if file.kind not in (None, _HANDOFF) and path not in self._gone:
                    is_alone = file.slot[1] == "" or others[file.kind, file.directory] == 1
                    self._give(file, self._tasks_for(file, handoffs, is_alone=is_alone))
        self._changed.clear()

    def _tasks_for(self, file: _File, handoffs: _Handoffs, *, is_alone: bool) -> tuple[str | None, ...]:
        tasks = [*file.settled]
        for version in file.versions[len(tasks) :]:
            document = version.document
            task = links.own_id(document)
            if task is None and not isinstance(document, Handoff):
                task = _owner(file, handoffs, is_alone=is_alone and document.recognised)
            if task is None and not document.recognised and not isinstance(document, Handoff):
                # What the file spoke of before it still speaks of; without that it is no task.
                task = next((one for one in reversed(tasks) if one is not None), None)
            elif task is None and not isinstance(document, TodoList):
                # A checklist beside no handoff may be anybody's.
                task = links.fallback_id(file.path, document)
            tasks.append(task)
        return tuple(tasks)

    def _give(self, file: _File, tasks: tuple[str | None, ...]) -> None:
        if file.tasks == tasks:
            return
        self._concerned |= dict.fromkeys((*file.tasks, *tasks))
        for task in {*file.tasks, *tasks}:
            others = tuple(one for one in self._paths.get(task, ()) if one != file.path)
            self._paths[task] = (*others, file.path) if task in tasks else others
        file.tasks = tasks


def _owner(file: _File, handoffs: _Handoffs, *, is_alone: bool) -> str | None:
    """The task of the handoff that a file without a task id belongs to: of the same stem, else the only one there."""
    for is_gone in (False, True):
        around = handoffs.get((is_gone, file.slot), ())
        only = handoffs.get((is_gone, file.directory), ())
        if around or (is_alone and len(only) == 1):
            return min(around or only)[1]
    return None
