"""The source of all session stores of one workspace: a thread that asks their readers what has changed."""

from __future__ import annotations

import math
import os
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from agentwatch.background import let_others_work
from agentwatch.delegation.events import Event, Ran
from agentwatch.delegation.run import Run, RunState
from agentwatch.sources import Batch, Health, Problem, Source, health_of
from agentwatch.sources.sessions.following import RunTranscript
from agentwatch.sources.sessions.reader import Broken, Change, Found, Progress, SessionReader
from agentwatch.sources.sessions.runs import OPEN
from agentwatch.sources.sessions.selection import Selection
from agentwatch.text import words_of

_SLICE_SECONDS: Final = 0.05
"""What a reader may work at a stretch, so that what another one has found is not kept waiting."""
_PAUSE_SECONDS: Final = (0.2, 2.0)
"""Between two looks at all stores, soon after something has changed, and later. Transcripts become readable 0.1 s after
their time."""
_LIVELY_SECONDS: Final = 10.0
_GLANCE_SECONDS: Final = 0.04
"""Between two glances at the files of the sessions that work: what they write is read as soon as it is there."""
_GLANCE_COST: Final = 200.0
_READING_COST: Final = 4.0
"""How often as long as a glance took, and the reading of what it found, it rests before the next one."""
_AT_WORK_SECONDS: Final = 900.0
_MOST_AT_WORK: Final = 256
"""Such sessions are those with a sign of life in so many seconds; of more of them, only the last ones are."""
_SEARCH_SECONDS: Final = 10.0
"""Between two searches for stores that were not there before."""
_JOIN_SECONDS: Final = 1.0
_FUTURE_SECONDS: Final = 60.0

_Answer = TypeVar("_Answer")
_Stamps = dict[str, tuple[int, int] | None]

OpenReaders = Callable[[Collection[str], Broken], Iterable[SessionReader]]


class ShownRuns:
    """The runs of a screen by path. One whose transcript is gone, or emptied, stays as it was."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}

    def update(self, path: str, run: Run | None) -> bool:
        """A reader says that a run is like this now. Returns whether that is to be shown."""
        before = self._runs.get(path)
        if before is not None:
            is_newer = run is not None and run.updated_at >= before.updated_at
            if (
                run is not None
                and run.state in OPEN
                and before.state not in OPEN
                and run.updated_at <= before.updated_at
            ):
                # That it has ended perhaps only its parent had heard, whose transcript is gone.
                return False
            if not (run is not None and is_newer and run.place == before.place) and before.place.endswith(".jsonl"):
                # One that was moved has its new place for itself; else it is others that tell of it.
                places = (one.place for one in self._runs.values())
                is_moved = run is not None and _is_there(run.place) and run.place not in places
                if not is_moved and not _is_there(before.place):
                    return False
        if run is None:
            self._runs.pop(path, None)
        else:
            self._runs[path] = run
        return True


def _is_there(place: str) -> bool:
    """Whether something is in a file, or it cannot be told."""
    try:
        status = os.lstat(place)
    except OSError as error:
        return not isinstance(error, FileNotFoundError | NotADirectoryError)
    return not place.endswith(".jsonl") or (stat.S_ISREG(status.st_mode) and status.st_size > 0)


class SessionsSource(Source):
    """Reads the stores that `open_readers` gives, called in the source's thread with the names of those it has.

    One thread at a time asks any reader anything. One that raises is a problem until it does not.
    """

    def __init__(
        self,
        open_readers: OpenReaders,
        selection: Selection | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._open_readers = open_readers
        self._selection = selection or Selection()
        self._clock = clock
        self._readers: dict[str, SessionReader] = {}
        self._lock = threading.RLock()
        self._progress: dict[str, Progress] = {}
        self._troubles: dict[str, str | None] = {}
        """By reader, why not all of it is read."""
        self._search_at = self._changed_at = -math.inf
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._seq = 0
        self._told: Health | None = None
        self._at_work: dict[str, str] = {}
        """By path, the place of a run that works; the last to change are the last."""
        self._shown: ShownRuns | None = None

    def start(self, emit: Callable[[Batch], None]) -> None:
        """Begin. Once `emit` raises RuntimeError, as a closed event loop does, nobody listens and the source ends.

        From now on a run outlives its transcript: what it did is shown, as with a task whose files are gone.
        """
        self._shown = ShownRuns()
        self._thread = threading.Thread(target=self._run, args=(emit,), name="agentwatch-sessions", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, within a second."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_JOIN_SECONDS)

    def scan(self) -> Batch:
        """What the stores hold now."""
        self._search()
        events: list[Event] = []
        for name in self._readers:
            events += self._read(name, 1.0)
            while self._is_busy(name):
                events += self._read(name, 1.0)
        return Batch(tuple(events), self._health())

    def content(self, digest: str) -> str | None:
        """A text handed over or back. Any thread may call it."""
        texts = (self._ask(name, lambda reader: reader.text(digest)) for name in list(self._readers))
        return next((text for text in texts if text is not None), None)

    def transcript(self, run: Run) -> RunTranscript | None:
        """What stands in the transcript of a run. Any thread may call it."""
        if (of := getattr(self._readers.get(run.source), "transcript", None)) is None:
            return None
        transcript: RunTranscript | None = self._ask(run.source, lambda _: of(run))
        return transcript

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Unread places, and why: one for each reader that says so."""
        problems = []
        for name, trouble in list(self._troubles.items()):
            if trouble is not None:
                rows = self._found(name)
                place = next((row.place for row in rows if row.skipped), rows[0].place if rows else "")
                problems.append(Problem(name, place, trouble))
        return tuple(problems)

    def found(self) -> list[Found]:
        """Stores that the last look found, reader by reader."""
        return [row for name in list(self._readers) for row in self._found(name)]

    def close(self) -> None:
        """Give the stores back, after a `scan`."""
        for name in self._readers:
            self._ask(name, lambda reader: reader.close())

    def _run(self, emit: Callable[[Batch], None]) -> None:
        while not self._stopping.is_set():
            if time.monotonic() >= self._search_at:
                self._search()
            stamps, began = self._stamps(), time.monotonic()
            for name in self._readers:
                self._tell(self._read(name, _SLICE_SECONDS), emit)
            self._tell([], emit)
            if not any(map(self._is_busy, self._readers)):
                self._rest(stamps, (time.monotonic() - began) * _READING_COST)
        self.close()

    def _rest(self, stamps: _Stamps, rest: float) -> None:
        """Until a session at work has written something, or it is time to look at all stores again."""
        now = time.monotonic()
        until = now + _PAUSE_SECONDS[now > self._changed_at + _LIVELY_SECONDS]
        while (left := until - time.monotonic()) > 0:
            if self._stopping.wait(min(left, max(_GLANCE_SECONDS, rest)) if self._at_work else left):
                return
            began = time.monotonic()
            if self._stamps() != stamps:
                return
            rest = (time.monotonic() - began) * _GLANCE_COST

    def _stamps(self) -> _Stamps:
        """What tells that a session that works has written, by file."""
        return {path: _stamp(path) for path in {path for place in self._at_work.values() for path in _files_of(place)}}

    def _tell(self, events: list[Event], emit: Callable[[Batch], None]) -> None:
        health = self._health()
        if events or health != self._told:
            self._told = health
            try:
                emit(Batch(tuple(events), health))
            except RuntimeError:
                self._stopping.set()

    def _read(self, name: str, seconds: float) -> list[Event]:
        def look(reader: SessionReader) -> tuple[list[Change], Progress, str | None]:
            return list(reader.read(seconds)), reader.progress, reader.trouble

        changes: list[Change] = []
        self._progress[name] = Progress(0, 0)
        if (looked := self._ask(name, look)) is not None:
            changes, self._progress[name], self._troubles[name] = looked
        news: list[Ran] = []
        for key, run in changes:
            self._changed_at, now, path = time.monotonic(), self._clock(), f"{name}:{key}"
            if run is not None and run.updated_at > now + _FUTURE_SECONDS:
                # A time that is still to come would keep a dead run from going stale.
                run = replace(run, updated_at=now)  # noqa: PLW2901
            self._at_work.pop(path, None)
            is_working = run is not None and run.state is RunState.WORKING and not run.process_gone
            if run is not None and is_working and run.updated_at > now - _AT_WORK_SECONDS:
                self._at_work[path] = run.place
                if len(self._at_work) > _MOST_AT_WORK:
                    del self._at_work[next(iter(self._at_work))]
            if self._shown is None or self._shown.update(path, run):
                self._seq += 1
                news.append(Ran(self._seq, run.updated_at if run is not None else now, path, run))
            let_others_work()
        return list(self._selection.choose(news))

    def _ask(self, name: str, question: Callable[[SessionReader], _Answer]) -> _Answer | None:
        """The answer of a reader, None where it raises: it must not hide the sessions of the others."""
        try:
            with self._lock:
                return question(self._readers[name])
        except (Exception, SystemExit) as error:  # noqa: BLE001
            self._note_broken(name, error)
            return None

    def _found(self, name: str) -> Sequence[Found]:
        return (self._ask(name, lambda reader: reader.found()) or ()) if name in self._readers else ()

    def _is_busy(self, name: str) -> bool:
        done, total = self._progress[name]
        return done < total

    def _search(self) -> None:
        self._search_at = time.monotonic() + _SEARCH_SECONDS
        self._troubles = {name: why for name, why in self._troubles.items() if name in self._readers}
        for reader in self._open_readers(frozenset(self._readers), self._note_broken):
            self._readers.setdefault(reader.name, reader)

    def _note_broken(self, name: str, error: BaseException) -> None:
        self._troubles[name] = f"cannot be used ({words_of(error)})"

    def _health(self) -> Health:
        looked = list(self._progress.values())
        done, total = sum(one.done for one in looked), sum(one.total for one in looked)
        if done < total:
            return health_of("starting", f"Reading the agents' sessions, {100 * done // total} %", self.problems)
        detail = "Sessions are read as they are written" if self._readers else "No agent's sessions are found"
        return health_of("live", detail, self.problems)


def _files_of(place: str) -> tuple[str, ...]:
    """What to look at for a run: a database is written in its log first, a directory by a file in it, and beside a
    transcript, or below its name, lie those of the agents that it asks."""
    above, _, name = place.rpartition("/")
    if name.endswith(".db"):
        return place, f"{place}-wal"
    return (place, above, f"{place.removesuffix('.jsonl')}/subagents") if "." in name else (place,)


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116  twenty times a second
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size


class KeptSessions(Source):
    """Each `scan` gives all runs there are, however often it is asked. Any thread may call."""

    def __init__(self, source: SessionsSource) -> None:
        self._source = source
        self._runs: dict[str, Event] = {}
        self._scanning = threading.Lock()

    def scan(self) -> Batch:
        """What the stores hold now."""
        with self._scanning:
            batch = self._source.scan()
            for event in batch.events:
                if isinstance(event, Ran):
                    self._runs.pop(event.path, None)
                    if event.run is not None:
                        self._runs[event.path] = event
            return Batch(tuple(self._runs.values()), batch.health)

    def content(self, digest: str) -> str | None:
        return self._source.content(digest)

    def transcript(self, run: Run) -> RunTranscript | None:
        return self._source.transcript(run)
