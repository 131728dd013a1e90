"""The reader of Roo Code: the tasks of one workspace, each a few files that are replaced as a whole."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.delegation.run import Message, Run, RunState
from agentwatch.sources.roo.storages import storages
from agentwatch.sources.roo.task import (
    CANCELED,
    LONG,
    MOST_BYTES,
    SHARE,
    Item,
    Talk,
    TalkTranscript,
    item_of,
    talk_of,
    texts_in,
)
from agentwatch.sources.sessions.following import RunTranscript
from agentwatch.sources.sessions.reader import Change, Found, Progress, StoreReader, Workspace, several
from agentwatch.sources.sessions.tail import Stamp, document, stamp_of
from agentwatch.state import user_home

NAME: Final = "roo"

_BY_WORDS: Final = "its first message is what its parent handed over"
_STATES: Final = {
    "active": RunState.WORKING,
    "delegated": RunState.WORKING,
    "completed": RunState.ENDED,
    "interrupted": RunState.CANCELED,
    "aborted": RunState.CANCELED,
}
_SLACK: Final = 1.0
"""Seconds by which the clock may step back between a call and the first word of the child."""
_ITEM: Final = "history_item.json"
_MESSAGES: Final = "ui_messages.json"
_DAMAGED: Final = "it is damaged, or not whole yet"
_SEARCH_SECONDS: Final = 2.0


class Handing(NamedTuple):
    """Who handed a task on, and by which call: `at` is when that was made, None where it is not known.
    `is_said`: the history item names the parent. `asked_at` is that of a run."""

    parent: str
    at: float | None
    is_said: bool
    asked_at: float | None


@dataclass(slots=True)
class _Task:
    directory: Path
    item: Item | None = None
    item_stamp: Stamp | None = None
    talk: Talk = field(default_factory=Talk)
    talk_stamp: Stamp | None = None
    size: int = 0
    """Bytes of its messages that are there and not read."""
    next_at: float = 0.0


class RooReader(StoreReader):
    """Implements SessionReader. `storage` is a directory with `tasks/` in it; without one all editors are looked at."""

    name = NAME

    def __init__(self, workspace: Path, storage: Path | None = None) -> None:
        super().__init__(lambda path: texts_in(document(path, MOST_BYTES)))
        self._workspace = Workspace(workspace)
        self._storage = storage
        self._storages: list[Path] = []
        self._search_at = 0.0
        self._tasks: dict[Path, _Task] = {}
        self._done = 0
        self._refused: dict[Path, str] = {}
        """Directories and files that cannot be read, and why."""

    @property
    def trouble(self) -> str | None:
        """The first directory or file that cannot be read."""
        more = f" Neither can {len(self._refused) - 1} more." if len(self._refused) > 1 else ""
        return next((f"{path} cannot be read: {why}.{more}" for path, why in self._refused.items()), None)

    @property
    def progress(self) -> Progress:
        """In bytes of messages."""
        return Progress(self._done, self._done + sum(task.size for task in self._tasks.values()))

    def read(self, seconds: float) -> Sequence[Change]:
        """The tasks that have changed. At least one file is read, however short the time."""
        deadline = time.monotonic() + seconds
        self._look()
        waiting = [task for task in self._tasks.values() if task.size]
        for task in sorted(waiting, key=lambda task: task.item.at if task.item else 0.0, reverse=True):
            self._read_talk(task)
            if time.monotonic() > deadline:
                break
        return self.give(self._runs())

    def transcript(self, run: Run) -> RunTranscript:
        """What stands in the messages of a task."""
        return TalkTranscript(Path(run.place) / _MESSAGES)

    def found(self) -> Sequence[Found]:
        """Each storage that is there, and how many of its tasks tell no workspace."""
        rows = []
        for storage in self._storages:
            tasks = [task for task in self._tasks.values() if task.directory.parent == storage / "tasks"]
            unknown = sum(task.item is None and os.path.exists(task.directory / _MESSAGES) for task in tasks)
            skipped = f"{several(unknown, 'task')} of an unknown workspace: not read." if unknown else ""
            if unknown or self.trouble or any(task.item is not None for task in tasks):
                runs = [run for task in tasks if (run := self.given.get(task.directory.name)) is not None]
                children = sum(run.parent_session is not None for run in runs)
                rows.append(Found(NAME, str(storage), len(runs) - children, self.trouble or skipped, children))
        return rows

    def _look(self) -> None:
        """See which tasks there are now, read their history items, and see whether their messages have changed."""
        if time.monotonic() >= self._search_at:
            self._search_at = time.monotonic() + _SEARCH_SECONDS
            self._storages = [self._storage] if self._storage is not None else list(storages(user_home()))
        before, self._tasks = self._tasks, {}
        for storage in self._storages:
            for directory in self._directories(storage / "tasks", before):
                self._tasks[directory] = before.get(directory) or _Task(directory)
        kept = {place for task in self._tasks for place in (task, task / _ITEM, task / _MESSAGES)}
        kept |= {storage / "tasks" for storage in self._storages}
        self._refused = {path: why for path, why in self._refused.items() if path in kept}
        for task in self._tasks.values():
            # A task stays in its workspace.
            if task.item is None or self._is_ours(task):
                self._refused.pop(task.directory, None)
                try:
                    self._look_at(task)
                except OSError as error:
                    self._refused[task.directory] = os.strerror(error.errno or 0)

    def _directories(self, place: Path, known: Mapping[Path, _Task]) -> list[Path]:
        self._refused.pop(place, None)
        try:
            with os.scandir(place) as entries:
                return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self._refused[place] = os.strerror(error.errno or 0)
            return [path for path in known if path.parent == place]

    def _look_at(self, task: _Task) -> None:
        path = task.directory / _ITEM
        stamp = _stamp(path)
        if stamp is None:
            task.item = task.item_stamp = None
        elif stamp != task.item_stamp:
            # Half a file, in an editor that does not replace it at once: what was read before stays.
            task.item = item_of(self._read(path), self._teller(path)) or task.item
            task.item_stamp = stamp
        if self._is_ours(task):
            stamp = _stamp(task.directory / _MESSAGES)
            is_new = stamp is not None and stamp != task.talk_stamp and time.monotonic() >= task.next_at
            task.size = stamp[2] if is_new and stamp is not None else 0

    def _read_talk(self, task: _Task) -> None:
        """Read the messages of a task, which have changed."""
        path, begun = task.directory / _MESSAGES, time.monotonic()
        try:
            task.talk_stamp = _stamp(path)
        except OSError:
            task.talk_stamp = None
        if (messages := self._read(path)) is not None:
            task.talk = talk_of(messages, self._teller(path))
        task.next_at = begun + (time.monotonic() - begun) * SHARE if task.size > LONG else 0.0
        self._done, task.size = self._done + task.size, 0

    def _read(self, path: Path) -> object:
        """The JSON document in a file; None where it cannot be read, which is told."""
        self._refused.pop(path, None)
        try:
            return document(path, MOST_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._refused[path] = os.strerror(error.errno or 0)
        except ValueError:
            self._refused[path] = _DAMAGED
        return None

    def _teller(self, path: Path) -> Callable[[str, float], Message]:
        return lambda words, at: self.texts.message(words, at, path, key=path.parent.name)

    def _is_ours(self, task: _Task) -> bool:
        return task.item is not None and self._workspace.is_at(task.item.workspace)

    def _runs(self) -> dict[str, Run]:
        tasks = [(task.directory, task.item, task.talk) for task in self._tasks.values() if self._is_ours(task)]
        known = [(directory, item, talk) for directory, item, talk in tasks if item is not None]
        handed = link_tasks([(item, talk) for _, item, talk in known])
        begun = {(handing.parent, handing.at) for handing in handed.values()}
        runs = {}
        for directory, item, talk in known:
            # Its last call of `new_task` has become a task.
            is_waited_for = bool(talk.calls) and (item.id, talk.calls[-1].at) in begun
            runs[item.id] = _run_of(item, talk, str(directory), handed.get(item.id), is_waited_for)
        return runs


def link_tasks(tasks: Sequence[tuple[Item, Talk]]) -> Mapping[str, Handing]:
    """How each task that another one handed on came to be, by its id.

    History items of late name the parent. Before, the words told it: a parent's messages hold each call of `new_task`
    with its message, and that is the first message of the child."""
    calls: defaultdict[str, list[tuple[float, str, float]]] = defaultdict(list)
    for item, talk in tasks:
        for call in talk.calls:
            calls[call.words].append((call.at, item.id, call.asked_at))
    handed: dict[str, Handing] = {}
    for item, talk in tasks:
        until = (talk.began_at or 0.0) + _SLACK
        same = (call for call in calls.get(talk.words, ()) if call[0] <= until and call[1] != item.id)
        # The same words may be handed over again, for a retry: the last call before is the one.
        above = (call for call in same if item.parent in (None, call[1]))
        at, caller, asked_at = max(above, default=(None, item.parent, None))
        if caller is not None:
            handed[item.id] = Handing(caller, at, item.parent is not None, asked_at)
    return handed


def _run_of(item: Item, talk: Talk, place: str, handing: Handing | None, is_waited_for: bool) -> Run:
    # Before 2025-11 no task had a status: what it said last tells how it is.
    implied = "completed" if talk.finished else "active"
    state = _STATES.get(item.status or implied, RunState.WORKING)
    if state is RunState.WORKING and talk.canceled and item.status != "delegated":
        state = RunState.CANCELED
    is_delegating = item.status == "delegated" or (talk.calling and is_waited_for)
    said = talk.rounds[-2].said if state is RunState.ENDED and talk.rounds else None
    link = ""
    if handing is not None:
        link = "its history item names the parent" if handing.is_said else _BY_WORDS
    updated_at = max(item.at, talk.last_at or 0.0)
    return Run(
        source=NAME,
        session_id=item.id,
        parent_session=handing.parent if handing is not None else None,
        state=state,
        place=place,
        started_at=talk.began_at or item.at,
        updated_at=updated_at,
        ended_at=updated_at if state is not RunState.WORKING else None,
        link=link,
        reason=(CANCELED if talk.canceled else item.status or "") if state is RunState.CANCELED else "",
        agent=item.mode,
        mode=item.mode,
        prompt=talk.prompt or item.task,
        said=said,
        rounds=tuple(talk.rounds if said is None else talk.rounds[:-1]),
        todos=talk.todos,
        tokens=item.tokens or talk.tokens or None,
        doing=talk.doing,
        waiting=talk.waiting if state is RunState.WORKING and not is_delegating else "",
        asked_at=handing.asked_at if handing is not None else None,
    )


def _stamp(path: Path) -> Stamp | None:
    try:
        return stamp_of(path.stat(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return None
