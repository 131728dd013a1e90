"""The reader of Roo Code: the tasks of one workspace, each a few files that are replaced as a whole."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

from agentwatch.delegation.run import Message, Run, RunState
from agentwatch.sources.roo.storages import storages
from agentwatch.sources.roo.task import NAME, Item, Talk, item_of, run_of, talk_of, texts_in
from agentwatch.sources.sessions.reader import Change, Found, Progress, message
from agentwatch.sources.sessions.tail import open_regular

_ITEM: Final = "history_item.json"
_MESSAGES: Final = "ui_messages.json"
_MOST_BYTES: Final = 64 * 1024 * 1024
_SLOW: Final = 0.02
_SHARE: Final = 10.0
"""A task that works is written anew with each message; reading a long one may take a tenth of the time."""
_WATCHED: Final = 32

_Stamp = tuple[int, int, int]


@dataclass(slots=True)
class _Task:
    directory: Path
    item: Item | None = None
    item_stamp: _Stamp | None = None
    talk: Talk = field(default_factory=Talk)
    talk_stamp: _Stamp | None = None
    size: int = 0
    """Bytes of its messages that are there and not read."""
    next_at: float = 0.0


class RooReader:
    """Implements SessionReader. `storage` is a directory with `tasks/` in it; without one all editors are looked at."""

    def __init__(self, workspace: Path, storage: Path | None = None) -> None:
        self._workspace = os.path.realpath(workspace)
        self._storages = [storage] if storage is not None else list(storages(Path.home()))
        self._tasks: dict[Path, _Task] = {}
        self._given: dict[str, Run] = {}
        # Only the thread that reads writes it; the others look up one key.
        self._texts: dict[str, Path] = {}
        self._same: dict[str, bool] = {}
        self._done = 0
        self._trouble: dict[Path, str] = {}

    @property
    def name(self) -> str:
        """`roo`."""
        return NAME

    @property
    def trouble(self) -> str | None:
        """The first storage or file that cannot be read."""
        return next((f"{path} cannot be read: {reason}." for path, reason in self._trouble.items()), None)

    @property
    def progress(self) -> Progress:
        """In bytes of messages."""
        return Progress(self._done, self._done + sum(task.size for task in self._ours()))

    def read(self, seconds: float) -> Sequence[Change]:
        """The tasks that have changed. At least one file is read, however short the time."""
        deadline = time.monotonic() + seconds
        self._look()
        waiting = sorted(self._ours(), key=lambda task: task.item.at if task.item else 0.0, reverse=True)
        for task in waiting:
            if self._read_talk(task) and time.monotonic() > deadline:
                break
        runs = {run.session_id: run for run in self._runs()}
        changes = [Change(key, None) for key in self._given.keys() - runs.keys()]
        changes += [Change(key, run) for key, run in runs.items() if self._given.get(key) != run]
        self._given = runs
        return changes

    def places(self) -> Sequence[Path]:
        """The directories of tasks, and those of the youngest tasks that work."""
        above = list(dict.fromkeys(task.directory.parent for task in self._tasks.values()))
        above = above or [path / "tasks" for path in self._storages if os.path.isdir(path / "tasks")]
        working = [task for task in self._ours() if self._is_working(task)]
        working.sort(key=lambda task: task.item.at if task.item else 0.0, reverse=True)
        return [*above, *(task.directory for task in working)][: max(_WATCHED, len(above))]

    def text(self, digest: str) -> str | None:
        """Found again among the messages of its task."""
        path = self._texts.get(digest)
        if path is None:
            return None
        for text in texts_in(_document(path)):
            if sha256(text.encode("utf-8", "surrogatepass")).hexdigest() == digest:
                return text
        return None

    def found(self) -> Sequence[Found]:
        """Each storage that is there, and how many of its tasks were written by a version that is not read."""
        rows = []
        for storage in self._storages:
            tasks = [task for task in self._tasks.values() if task.directory.parent == storage / "tasks"]
            if tasks:
                older = sum(1 for task in tasks if task.item is None)
                skipped = f"{older} tasks have no history_item.json, as older versions wrote none." if older else ""
                ours = [task.item for task in tasks if task.item is not None and self._is_ours(task)]
                children = sum(item.parent is not None for item in ours)
                rows.append(Found(NAME, str(storage), len(ours) - children, self.trouble or skipped, children))
        return rows

    def close(self) -> None:
        """Nothing is kept open."""

    def _look(self) -> None:
        self._trouble.clear()
        present: dict[Path, _Task] = {}
        for storage in self._storages:
            try:
                with os.scandir(storage / "tasks") as entries:
                    names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self._trouble[storage] = os.strerror(error.errno or 0)
                continue
            for name in sorted(names):
                directory = storage / "tasks" / name
                present[directory] = self._tasks.get(directory) or _Task(directory)
        self._tasks = present
        for task in present.values():
            # A task stays in its workspace.
            if task.item is None or self._is_ours(task):
                self._look_at(task)

    def _look_at(self, task: _Task) -> None:
        """Read the history item of a task if it has changed, and see whether its messages have."""
        path = task.directory / _ITEM
        stamp = _stamp(path)
        if stamp != task.item_stamp:
            item = item_of(_document(path), partial(self._told, path)) if stamp is not None else None
            # Half a file, in an editor that does not replace it at once: what was read before stays.
            task.item = item or (task.item if stamp is not None else None)
            task.item_stamp = stamp
        if not self._is_ours(task):
            return
        stamp = _stamp(task.directory / _MESSAGES)
        task.size = stamp[2] if stamp is not None and stamp != task.talk_stamp else 0
        if time.monotonic() < task.next_at:
            task.size = 0

    def _read_talk(self, task: _Task) -> bool:
        """Read the messages of a task if they have changed; whether they were."""
        if not task.size:
            return False
        path = task.directory / _MESSAGES
        begun = time.monotonic()
        task.talk_stamp = _stamp(path)
        document = _document(path)
        if document is not None:
            task.talk = talk_of(document, partial(self._told, path))
        self._done += task.size
        task.size = 0
        took = time.monotonic() - begun
        task.next_at = begun + took * _SHARE if took > _SLOW else 0.0
        return True

    def _told(self, path: Path, text: str, at: float) -> Message:
        told = message(text, at, key=path.parent.name)
        self._texts[told.digest] = path
        return told

    def _runs(self) -> Iterator[Run]:
        for task in self._ours():
            if task.item is not None:
                yield run_of(task.item, task.talk, str(task.directory))

    def _ours(self) -> list[_Task]:
        return [task for task in self._tasks.values() if self._is_ours(task)]

    def _is_ours(self, task: _Task) -> bool:
        if task.item is None:
            return False
        directory = task.item.workspace
        known = self._same.get(directory)
        if known is None:
            try:
                known = bool(directory) and os.path.realpath(directory) == self._workspace
            except (OSError, ValueError):
                known = False
            self._same[directory] = known
        return known

    def _is_working(self, task: _Task) -> bool:
        run = self._given.get(task.item.id) if task.item is not None else None
        return run is not None and run.state is RunState.WORKING


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.stat(follow_symlinks=False)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _document(path: Path) -> object:
    """The JSON document in a file; None where there is none, or it is not whole."""
    try:
        descriptor = open_regular(path)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError:
        return None
    if len(data) > _MOST_BYTES:
        return None
    try:
        value: object = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value
