"""Recalls what was observed before, and records what a running monitor observes, in a thread of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Final

from agentwatch.background import let_others_work
from agentwatch.delegation.events import Event, Requested
from agentwatch.delegation.request import Request, RequestStage
from agentwatch.delegation.task import Task
from agentwatch.delegation.tree import Tree
from agentwatch.history.database import last_written
from agentwatch.history.errors_file import Failure, append, failures
from agentwatch.history.store import History
from agentwatch.place import state_directory
from agentwatch.sources.files.documents import KnownFile

_TOGETHER: Final = 1_000
"""Observations that are recorded in one transaction."""

_End = tuple[RequestStage, bool | None, str, float | None]


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was known when agentwatch last ended: every observation in its order, and the files as they were then."""

    events: Sequence[Event] = ()
    files: Mapping[str, KnownFile] = field(default_factory=dict)
    notice: str | None = None
    looked_at: float | None = None
    """When the workspace was last watched, in seconds since the epoch; None where it never was."""


def recall(workspace: Path) -> Recalled:
    """The history of a workspace, for those who look once. Blocks, and writes nothing."""
    looked_at = last_written(state_directory(workspace))
    with closing(History.open_read_only(workspace)) as history:
        return Recalled(history.events(), history.files(), history.notice, looked_at)


def recall_text(workspace: Path, digest: str) -> str | None:
    """The text of a version that lies on the disk no more, None where it is not kept. Blocks, and writes nothing."""
    with closing(History.open_read_only(workspace)) as history:
        return history.text(digest)


class Keeper:
    """The history of one workspace while it is watched, from `start` to `stop`.

    `text_of` gives the text of a digest, None where it is lost; any thread may call it. With `read_only`, nothing is
    written into the workspace: the history is the user's, but errors.json lies there.
    """

    def __init__(self, workspace: Path, text_of: Callable[[str], str | None], *, read_only: bool = False) -> None:
        self._workspace = workspace
        self._text_of = text_of
        self._read_only = read_only
        self._ended: dict[str, _End] = {}
        """Of each request that is recorded, or soon will be."""
        self._failed: dict[str, list[Failure]] = {}
        self._unwritten: deque[Failure] = deque()
        """What errors.json is still to get. It is written whole: what comes meanwhile is written together."""
        self._unrecorded: deque[Event] = deque()
        self._recalled: Future[Recalled] | None = None
        self._trouble: str | None = None
        self._stopped = False
        self._history = History(workspace)
        # One thread, so that everything is recorded in its order.
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="agentwatch-history")

    @property
    def notice(self) -> str | None:
        """What the operator must know of the history: set aside, not kept, too large. May quote foreign text."""
        return self._history.notice or self._trouble

    def start(self, tree: Tree) -> Future[Recalled]:
        """Open the history, soon, and have the tree take it in; nobody else looks at that meanwhile. Returns what is in
        it."""
        self._recalled = self._worker.submit(self._open, tree)
        return self._recalled

    def text(self, digest: str) -> str | None:
        """A text that was recorded, None where it is not (any more). Any thread may call it."""
        return self._history.text(digest)

    def keep_files(self, files: Mapping[str, KnownFile]) -> None:
        """Remember the files as they are now for the next start."""
        self._worker.submit(self._history.keep_files, files)

    def keep(self, events: Sequence[Event]) -> None:
        """Record these, in the order of the calls. What comes after the end is read again at the next start."""
        self._unrecorded.extend(events)
        with suppress(RuntimeError):
            self._worker.submit(self._record)

    def keep_requests(self, requests: Iterable[Request], now: float) -> None:
        """Record those of these that have ended, as they stand `now`."""
        new = [one for one in requests if not one.is_open and self._ended.get(one.request_id) != _end(one)]
        if new:
            self._ended |= {one.request_id: _end(one) for one in new}
            self.keep([Requested(0, one.ended_at or now, one.request_id, one.remembered) for one in new])

    def report(self, tasks: Iterable[Task]) -> None:
        """Append the returns of these tasks that break their contract to errors.json, each once."""
        if self._read_only:
            return
        for task in tasks:
            before, self._failed[task.task_id] = self._failed.get(task.task_id, ()), failures(task)
            self._unwritten.extend(one for one in self._failed[task.task_id] if one not in before)
        if self._unwritten:
            self._worker.submit(self._append)

    def stop(self) -> None:
        """Record what was given, and give the file back. Blocks, but for a history that is still being opened, which
        another process may keep from it: it is given back as soon as it is."""
        self._stopped = True
        self._worker.submit(self._history.close)
        self._worker.shutdown(wait=self._recalled is None or self._recalled.done())

    def _open(self, tree: Tree) -> Recalled:
        looked_at = last_written(state_directory(self._workspace))
        history = self._history
        history.begin()
        events = history.events()
        asked = (one.request for one in events if isinstance(one, Requested))
        self._ended = {one.request_id: _end(one) for one in asked if one is not None}
        # Who leaves meanwhile does not wait for it.
        tree.apply(*takewhile(lambda _: not self._stopped, events))
        return Recalled(events, history.files(), history.notice, looked_at)

    def _record(self) -> None:
        """What came while the last was recorded is recorded together, and not while others have work: nobody waits for
        it."""
        if self._unrecorded or self._history.waiting:
            let_others_work()
            given = [self._unrecorded.popleft() for _ in range(min(len(self._unrecorded), _TOGETHER))]
            self._history.record(given, self._text_of)

    def _append(self) -> None:
        new = [self._unwritten.popleft() for _ in range(len(self._unwritten))]
        if new:
            self._trouble = append(self._workspace, new)


def _end(request: Request) -> _End:
    return request.stage, request.allowed, request.by, request.ended_at
