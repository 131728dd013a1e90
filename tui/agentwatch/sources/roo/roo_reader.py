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
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentwatch.delegation.run import Message, Run
from agentwatch.sources.roo.storages import storages
from agentwatch.sources.roo.task import entries, messages_in, run_in, texts_in
from agentwatch.sources.sessions.doing import Entry
from agentwatch.sources.sessions.fields import mapping, text
from agentwatch.sources.sessions.following import RunTranscript, WholeTranscript
from agentwatch.sources.sessions.reader import Change, Found, Progress, StoreReader, is_at
from agentwatch.sources.sessions.tail import Stamp, document, reason_of, stamp_of
from agentwatch.state import is_there, user_home

_MOST_BYTES: Final = 64 * 1024 * 1024
_ITEM: Final = "history_item.json"
_MESSAGES: Final = "ui_messages.json"
_SEARCH_SECONDS: Final = 2.0


@dataclass(slots=True)
class _Directory:
    """The directory of a task, and its run, None where it is of another workspace or its item cannot be read."""

    path: Path
    run: Run | None = None
    stamps: tuple[Stamp | None, ...] = ()
    """Of its files, as they were read."""
    is_elsewhere: bool = False
    refusal: str = ""
    """Why it, or what is in it, cannot be read."""


class RooReader(StoreReader):
    """Implements SessionReader. `storage` is a directory with `tasks/` in it; without one all editors are looked at."""

    name = "roo"

    def __init__(self, workspace: Path, storage: Path | None = None) -> None:
        super().__init__(self._texts_in)
        self.progress = Progress(0, 0)
        self._workspace = workspace
        self._storage = storage
        self._storages: list[Path] = []
        self._search_at = 0.0
        self._tasks: dict[Path, _Directory] = {}
        self._refused: dict[Path, str] = {}
        """Storages that cannot be listed, and why."""

    @property
    def trouble(self) -> str | None:
        """The first directory or file that cannot be read."""
        refused = self._refused | {path: task.refusal for path, task in self._tasks.items() if task.refusal}
        more = f" Neither can {len(refused) - 1} more." if len(refused) > 1 else ""
        return next((f"{path} cannot be read: {why}.{more}" for path, why in refused.items()), None)

    def read(self, seconds: float) -> Sequence[Change]:
        """The tasks that have changed. At least one is read, however short the time."""
        deadline = time.monotonic() + seconds
        self._find()
        done = total = 0
        for task in self._tasks.values():
            # A task stays in its workspace.
            stamps = task.stamps if task.is_elsewhere else self._stamps(task)
            size = sum(stamp[2] for stamp in stamps if stamp is not None)
            if stamps != task.stamps and (not done or time.monotonic() < deadline):
                self._read(task)
                task.stamps = stamps
            total, done = total + size, done + (size if stamps == task.stamps else 0)
        self.progress = Progress(done, total)
        tasks = reversed(self._tasks.values())
        return self.give({task.run.session_id: task.run for task in tasks if task.run is not None})

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

    def _find(self) -> None:
        """See which tasks there are now, those begun last first."""
        if time.monotonic() >= self._search_at:
            self._search_at = time.monotonic() + _SEARCH_SECONDS
            self._storages = [self._storage] if self._storage is not None else list(storages(user_home()))
        before, self._tasks, self._refused = self._tasks, {}, {}
        for place in (storage / "tasks" for storage in self._storages):
            paths = [path for path in before if path.parent == place]
            try:
                with os.scandir(place) as found:
                    paths = [Path(entry.path) for entry in found if entry.is_dir(follow_symlinks=False)]
            except (FileNotFoundError, NotADirectoryError):
                paths = []
            except OSError as error:
                self._refused[place] = reason_of(error)
            # Their names rise with time.
            self._tasks |= {path: before.get(path) or _Directory(path) for path in sorted(paths, reverse=True)}

    def _stamps(self, task: _Directory) -> tuple[Stamp | None, ...]:
        """Those of its files as they are now; none where that cannot be told."""
        paths = (task.path / _ITEM, task.path / _MESSAGES)
        try:
            return tuple(stamp_of(path.lstat()) if is_there(path) else None for path in paths)
        except OSError as error:
            task.refusal, task.stamps = reason_of(error), ()
            return ()

    def _read(self, task: _Directory) -> None:
        """Half a file, in an editor that does not replace it at once, changes nothing."""
        try:
            item = mapping(_document(task.path / _ITEM))
            workspace = text(item, "workspace")
            is_ours = workspace is not None and is_at(self._workspace, workspace)
            messages = _document(task.path / _MESSAGES) if is_ours else None
        except OSError as error:
            task.refusal = reason_of(error)
        except ValueError:
            task.refusal = "it is damaged, or not whole yet"
        else:
            task.refusal, task.is_elsewhere = "", workspace is not None and not is_ours
            run = run_in(item, messages, self._tell(task.path), source=self.name, place=str(task.path))
            task.run = run if is_ours and run.session_id else None

    def _texts_in(self, directory: Path) -> Iterator[str]:
        for name in (_ITEM, _MESSAGES):
            with suppress(OSError, ValueError):
                yield from texts_in(_document(directory / name))

    def _tell(self, directory: Path) -> Callable[[str, float], Message]:
        return lambda words, at: self.message(words, at, directory, key=directory.name)


class MessagesTranscript(WholeTranscript):
    """The messages of a task, a file that is replaced as a whole; half of it is no document yet."""

    def stamp(self) -> Stamp:
        return stamp_of(self._path.lstat())

    def load(self) -> Iterator[tuple[int, list[Entry]]]:
        return entries(messages_in(document(self._path, _MOST_BYTES)))


def _document(path: Path) -> object:
    """The JSON document in a file, None where there is none. Raises OSError and ValueError."""
    return document(path, _MOST_BYTES) if is_there(path) else None
