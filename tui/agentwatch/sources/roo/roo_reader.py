"""The reader of Roo Code, the extensions that were made of it, and their command lines: tasks of a few files each.

Taken from public sources and files (Roo Code 2025-11 to 2026-10, Zoo Code), not from running them:

`tasks/<id>/history_item.json`   {id, parentTaskId?, ts, task, tokensIn, tokensOut, workspace, mode?, status}, with
                                 status one of active, delegated, completed, interrupted, aborted
`ui_messages.json` beside it     a list of {ts, type: ask | say, ask?, say?, text?, partial?}. The first is the prompt;
                                 a `newTask` is handed on, a `completion_result` handed back

Times are in milliseconds. All are replaced as a whole, and read again as a whole.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agentwatch.delegation.run import Message, Run
from agentwatch.sources.roo.storages import storages
from agentwatch.sources.roo.task import Task, entries, messages_in, texts_in
from agentwatch.sources.sessions.doing import Entry
from agentwatch.sources.sessions.fields import mapping, text
from agentwatch.sources.sessions.following import RunTranscript, WholeTranscript
from agentwatch.sources.sessions.reader import Change, Found, Progress, StoreReader, Workspace
from agentwatch.sources.sessions.tail import Stamp, document, stamp_of
from agentwatch.state import user_home

_MOST_BYTES: Final = 64 * 1024 * 1024
_ITEM: Final = "history_item.json"
_MESSAGES: Final = "ui_messages.json"
_DAMAGED: Final = "it is damaged, or not whole yet"
_SEARCH_SECONDS: Final = 2.0


@dataclass(slots=True)
class _Directory:
    """The directory of a task, and its run, None where it is of another workspace or its item cannot be read."""

    path: Path
    run: Run | None = None
    stamps: tuple[Stamp | None, ...] = ()
    is_unread: bool = True
    is_elsewhere: bool = False
    refused: dict[Path, str] = field(default_factory=dict)
    """What in it cannot be read, and why."""

    @property
    def size(self) -> int:
        return sum(stamp[2] for stamp in self.stamps if stamp is not None)


class RooReader(StoreReader):
    """Implements SessionReader. `storage` is a directory with `tasks/` in it; without one all editors are looked at."""

    name = "roo"

    def __init__(self, workspace: Path, storage: Path | None = None) -> None:
        super().__init__(self._texts_in)
        self._workspace = Workspace(workspace)
        self._storage = storage
        self._storages: list[Path] = []
        self._search_at = 0.0
        self._tasks: dict[Path, _Directory] = {}
        self._refused: dict[Path, str] = {}
        """Storages that cannot be listed, and why."""

    @property
    def trouble(self) -> str | None:
        """The first directory or file that cannot be read."""
        refused = self._refused | {path: why for task in self._tasks.values() for path, why in task.refused.items()}
        more = f" Neither can {len(refused) - 1} more." if len(refused) > 1 else ""
        return next((f"{path} cannot be read: {why}.{more}" for path, why in refused.items()), None)

    @property
    def progress(self) -> Progress:
        """In bytes of the tasks."""
        tasks = self._tasks.values()
        return Progress(sum(one.size for one in tasks if not one.is_unread), sum(one.size for one in tasks))

    def read(self, seconds: float) -> Sequence[Change]:
        """The tasks that have changed. At least one is read, however short the time."""
        deadline = time.monotonic() + seconds
        self._look()
        unread = [task for task in self._tasks.values() if task.is_unread]
        for task in sorted(unread, key=lambda task: max(stamp[3] for stamp in task.stamps if stamp), reverse=True):
            self._read(task)
            if time.monotonic() > deadline:
                break
        return self.give({task.run.session_id: task.run for task in self._tasks.values() if task.run is not None})

    def transcript(self, run: Run) -> RunTranscript:
        """What stands in the messages of a task."""
        return MessagesTranscript(Path(run.place) / _MESSAGES)

    def found(self) -> Sequence[Found]:
        """Each storage with a task of the workspace, or one that cannot be read."""
        rows = []
        for storage in self._storages:
            runs = [task.run for path, task in self._tasks.items() if path.parent.parent == storage and task.run]
            if runs or self.trouble:
                children = sum(run.parent_session is not None for run in runs)
                rows.append(Found(self.name, str(storage), len(runs) - children, self.trouble or "", children))
        return rows

    def _look(self) -> None:
        """See which tasks there are now, and whether their files have changed."""
        if time.monotonic() >= self._search_at:
            self._search_at = time.monotonic() + _SEARCH_SECONDS
            self._storages = [self._storage] if self._storage is not None else list(storages(user_home()))
        before, self._tasks, self._refused = self._tasks, {}, {}
        for place in (storage / "tasks" for storage in self._storages):
            try:
                with os.scandir(place) as found:
                    paths = sorted(Path(entry.path) for entry in found if entry.is_dir(follow_symlinks=False))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self._refused[place] = os.strerror(error.errno or 0)
                paths = [path for path in before if path.parent == place]
            for path in paths:
                task = self._tasks[path] = before.get(path) or _Directory(path)
                # A task stays in its workspace.
                if not task.is_elsewhere:
                    self._look_at(task)

    def _look_at(self, task: _Directory) -> None:
        try:
            stamps = tuple(_stamp(task.path / name) for name in (_ITEM, _MESSAGES))
        except OSError as error:
            task.refused, task.stamps, task.is_unread = {task.path: os.strerror(error.errno or 0)}, (), False
            return
        if stamps[0] is None:
            task.run, task.stamps, task.is_unread = None, (), False
        elif stamps != task.stamps:
            task.stamps, task.is_unread = stamps, True

    def _read(self, task: _Directory) -> None:
        task.refused, task.is_unread = {}, False
        item = mapping(self._document(task, _ITEM))
        name, workspace = text(item, "id"), text(item, "workspace")
        if name is None:
            return
        task.is_elsewhere = not self._workspace.is_at(workspace or "")
        if task.is_elsewhere:
            task.run = None
        else:
            messages = self._document(task, _MESSAGES)
            # Half a file, in an editor that does not replace it at once: what was read before stays.
            if not task.refused or task.run is None:
                task.run = Task(item, messages, self._tell(task.path)).run(self.name, str(task.path))

    def _document(self, task: _Directory, name: str) -> object:
        """The JSON document in a file; None where it cannot be read, which is told."""
        path = task.path / name
        try:
            return document(path, _MOST_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            task.refused[path] = os.strerror(error.errno or 0)
        except ValueError:
            task.refused[path] = _DAMAGED
        return None

    def _texts_in(self, directory: Path) -> Iterator[str]:
        for name in (_ITEM, _MESSAGES):
            with suppress(OSError, ValueError):
                yield from texts_in(document(directory / name, _MOST_BYTES))

    def _tell(self, directory: Path) -> Callable[[str, float], Message]:
        return lambda words, at: self.texts.message(words, at, directory, key=directory.name)


class MessagesTranscript(WholeTranscript):
    """The messages of a task, a file that is replaced as a whole; half of it is no document yet."""

    def stamp(self) -> Stamp:
        return stamp_of(self._path.stat(follow_symlinks=False))

    def load(self) -> Iterator[tuple[int, list[Entry]]]:
        return entries(messages_in(document(self._path, _MOST_BYTES)))


def _stamp(path: Path) -> Stamp | None:
    try:
        return stamp_of(path.stat(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return None
