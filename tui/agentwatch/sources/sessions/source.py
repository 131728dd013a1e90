"""The source of all session stores of one workspace. Its thread asks the readers of the stores for changes."""

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, replace
from heapq import nlargest
from operator import attrgetter
from typing import TypeVar

from agentwatch.background import BackgroundThread, let_others_work
from agentwatch.delegation.decision import Session
from agentwatch.delegation.events import Event, Ran, Run, RunState
from agentwatch.disk import fingerprint_at
from agentwatch.sources import Batch, Health, Problem, Source, health_of
from agentwatch.sources.sessions.entries import RunTranscript
from agentwatch.sources.sessions.reader import Broken, Change, Found, Progress, SessionReader, validate_run
from agentwatch.text import describe_error

_SLICE_SECONDS = 0.05  # the time that one reader may take before the next reader gets its turn
_PAUSE_SECONDS = (0.2, 2.0)  # seconds between two reads of all stores: a short time after a change, and later
_LIVELY_SECONDS = 10.0  # the shorter pause is used for so many seconds after a change
_GLANCE_SECONDS = 0.04  # seconds between two checks for changes in the files of working sessions
_COST = 4.0  # the rest before the next check, as a multiple of the last read's duration
_AT_WORK_SECONDS = 900.0  # a working session is checked often until so many seconds after its last sign of life
_MOST_AT_WORK = 256  # at most so many sessions are checked often
_SEARCH_SECONDS = 10.0  # seconds between two searches for new stores
_FUTURE_SECONDS = 60.0

_Answer = TypeVar("_Answer")

OpenReaders = Callable[[Collection[str], Broken], Iterable[SessionReader]]


class SessionsSource(BackgroundThread[Batch], Source):
    """Emits the runs in all session stores. `open_readers` gets the names of the known readers and opens new readers.

    If `session` is given, only sessions whose ids begin with this text are emitted, with all their agents. One thread
    at a time calls the readers. A reader that raises an error is shown as a problem until its next success."""

    thread_name = "agentwatch-sessions"

    _seq = 0
    _emitted_health: Health | None = None

    def __init__(self, open_readers: OpenReaders, session: str | None = None, clock: Callable[[], float] = time.time):
        super().__init__()
        self._open_readers = open_readers
        self._session = session
        self._clock = clock
        self._readers: dict[str, SessionReader] = {}
        self._lock = threading.RLock()
        self._progress: dict[str, Progress] = {}
        self._troubles: dict[str, str | None] = {}
        self._search_at = self._changed_at = -math.inf
        self._runs: dict[str, Run] = {}  # all runs of the readers, by `<reader's name>:<key of the run>`
        self._emitted: dict[str, Run] = {}  # the runs that were emitted, by the same key

    def scan(self) -> Batch:
        """Read all stores once, and return their runs. Any thread may call this."""
        with self._lock:
            self._open_new_readers()
            for name in self._readers:
                self._read_changes(name, 1.0)
                while self._is_busy(name):
                    self._read_changes(name, 1.0)
            self._emitted = {}
            return Batch(self._make_events(), self._health())

    def content(self, digest: str) -> str | None:
        """Return the prompt or answer that has this digest. Any thread may call this."""
        texts = (self._call_reader(name, lambda reader: reader.text(digest)) for name in list(self._readers))
        return next((text for text in texts if text is not None), None)

    def transcript(self, run: Run) -> RunTranscript | None:
        """Return the transcript of a run. Any thread may call this."""
        if (read_transcript := getattr(self._readers.get(run.source), "transcript", None)) is None:
            return None
        return self._call_reader(run.source, lambda _: read_transcript(run))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """A problem for each reader that reports one. Its place is the reader's first store."""
        problems = []
        for name, trouble in list(self._troubles.items()):
            if trouble is not None:
                rows = self._list_stores(name) if name in self._readers else ()
                problems.append(Problem(name, rows[0].place if rows else "", trouble))
        return tuple(problems)

    def found(self) -> list[Found]:
        """Return the stores that all readers have found."""
        return [row for name in list(self._readers) for row in self._list_stores(name)]

    def close(self) -> None:
        """Close the stores. This is called after a `scan`."""
        for name in self._readers:
            self._call_reader(name, lambda reader: reader.close())

    def _run(self, emit: Callable[[Batch], None]) -> None:
        while not self._stopped:
            if time.monotonic() >= self._search_at:
                self._open_new_readers()
            files, began = self._working_files(), time.monotonic()
            stamps = [*map(fingerprint_at, files)]
            for name in self._readers:
                if self._read_changes(name, _SLICE_SECONDS):
                    self._emit(self._make_events(), emit)
            self._emit((), emit)
            if not any(map(self._is_busy, self._readers)):
                spent = (time.monotonic() - began) * _COST
                self._rest_until_written(files, stamps, max(spent, _GLANCE_SECONDS))
        self.close()

    def _rest_until_written(self, files: Sequence[str], stamps: Sequence[object], rest: float) -> None:
        """Rest until a working session has written something, or until it is time to read all stores."""
        now = time.monotonic()
        until = now + _PAUSE_SECONDS[now > self._changed_at + _LIVELY_SECONDS]
        while not self._stopped and (left := until - time.monotonic()) > 0:
            self._rest(min(left, rest) if files else left)
            if [*map(fingerprint_at, files)] != stamps:
                return

    def _working_files(self) -> Sequence[str]:
        since = self._clock() - _AT_WORK_SECONDS
        working = [run for run in self._runs.values() if run.state is RunState.WORKING and not run.process_gone]
        latest = nlargest(_MOST_AT_WORK, working, key=attrgetter("updated_at"))
        return [*{path: None for run in latest if run.updated_at > since for path in _files_to_watch(run.place)}]

    def _emit(self, news: tuple[Event, ...], emit: Callable[[Batch], None]) -> None:
        health = self._health()
        if news or health != self._emitted_health:
            self._emitted_health = health
            try:
                emit(Batch(news, health))
            except RuntimeError:  # the receiver's event loop is closed, so nobody receives events any more
                self._stopped = True

    def _make_events(self) -> tuple[Event, ...]:
        """Return an event for each run of the chosen session that has changed or gone since the last call."""
        before, session, runs = self._emitted, self._session or "", {run.session: run for run in self._runs.values()}
        self._emitted = {
            path: run for path, run in self._runs.items() if not session or _root_id(run, runs).startswith(session)
        }
        changed = [(path, run.updated_at, run) for path, run in self._emitted.items() if before.get(path) is not run]
        gone = [(path, self._clock(), None) for path in before if path not in self._emitted]
        first, self._seq = self._seq + 1, self._seq + len(changed) + len(gone)
        return tuple(Ran(seq, at, path, run) for seq, (path, at, run) in enumerate([*changed, *gone], first))

    def _read_changes(self, name: str, seconds: float) -> bool:
        """Store the changes of a reader, and tell whether there were any."""

        def read_reader(reader: SessionReader) -> tuple[list[Change], Progress, str | None]:
            is_ours = type(reader).__module__.startswith("agentwatch.")
            changes = [one if is_ours else _check_change(one, name) for one in reader.read(seconds)]
            return changes, Progress(*map(int, reader.progress)), reader.trouble and str(reader.trouble)

        changes: list[Change] = []
        self._progress[name] = Progress(0, 0)
        if (looked := self._call_reader(name, read_reader)) is not None:
            changes, self._progress[name], self._troubles[name] = looked
        now = self._clock()
        for key, run in changes:
            self._changed_at, path = time.monotonic(), f"{name}:{key}"
            self._runs.pop(path, None)
            if run:
                # If a dead run had a time in the future, it would seem to be active for a long time.
                is_to_come = run.updated_at > now + _FUTURE_SECONDS
                self._runs[path] = replace(run, updated_at=now) if is_to_come else run
            let_others_work()
        return bool(changes)

    def _call_reader(self, name: str, question: Callable[[SessionReader], _Answer]) -> _Answer | None:
        """Return a reader's answer to a question. If the reader raises an error, record the error and return None."""
        try:
            with self._lock:
                return question(self._readers[name])
        except (Exception, SystemExit) as error:  # noqa: BLE001
            self._record_failure(name, error)
            return None

    def _list_stores(self, name: str) -> Sequence[Found]:
        return self._call_reader(name, lambda reader: [Found(*row) for row in reader.found()]) or ()

    def _is_busy(self, name: str) -> bool:
        done, total = self._progress[name]
        return done < total

    def _open_new_readers(self) -> None:
        self._search_at = time.monotonic() + _SEARCH_SECONDS
        for reader in self._open_readers(frozenset(self._readers), self._record_failure):
            self._readers.setdefault(reader.name, reader)

    def _record_failure(self, name: str, error: BaseException) -> None:
        self._troubles[name] = f"cannot be used ({describe_error(error)})"

    def _health(self) -> Health:
        progress = list(self._progress.values())
        done, total = sum(one.done for one in progress), sum(one.total for one in progress)
        if done < total:
            return health_of("starting", f"Reading the agents' sessions, {100 * done // total} %", self.problems)
        detail = "Sessions are read as they are written" if self._readers else "No agent's sessions are found"
        return health_of("live", detail, self.problems)


def _check_change(change: Change, name: str) -> Change:
    """Check a change from a reader of another package. Raise ValueError or TypeError if a field is wrong."""
    key, run = change
    run = None if run is None else validate_run(asdict(run))
    if run and run.source != name:
        raise ValueError(f"it gives a run of {run.source[:40]!r}, which it is not")
    return Change(str(key), run)


def _root_id(run: Run, runs: dict[Session, Run]) -> str:
    """Return the id of the session at the top: the last known ancestor of a run. A cycle of parents is cut."""
    seen = {run.session}
    while (above := runs.get((run.source, run.parent_session or ""))) is not None and above.session not in seen:
        run = above
        seen.add(run.session)
    return run.session_id


def _files_to_watch(place: str) -> tuple[str, ...]:
    """Return the paths whose mtimes change when a run or its agents write something."""
    above, _, name = place.rpartition("/")
    if name.endswith(".db"):
        return place, f"{place}-wal"
    return (place, above, f"{place.removesuffix('.jsonl')}/subagents") if "." in name else (place,)
