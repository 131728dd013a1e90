"""The source of all session stores of one workspace: a thread that asks their readers what has changed."""

from __future__ import annotations

import math
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, TypeVar

from agentwatch.background import let_others_work
from agentwatch.delegation.events import Event, Ran
from agentwatch.delegation.run import Run, RunState
from agentwatch.sources import Batch, Health, Mode, Problem, Source, health_of
from agentwatch.sources.sessions.following import RunTranscript
from agentwatch.sources.sessions.outliving import Outliving
from agentwatch.sources.sessions.reader import Broken, Found, HasTranscripts, Progress, ReaderError, SessionReader
from agentwatch.sources.sessions.selection import Selection
from agentwatch.text import words_of

_SLICE_SECONDS: Final = 0.05
"""What a reader may work at a stretch, so that what another one has found is not kept waiting."""
_PAUSE_SECONDS: Final = (0.2, 2.0)
"""Between two looks at the stores, least and most. Transcripts become readable 0.1 s after their time."""
_SHARE: Final = 0.002
"""The part of one core that looking may take while nothing happens: the pause grows with what a look costs."""
_LIVELY_SECONDS: Final = 10.0
"""For so long after something has changed, the next change is looked for without a longer pause."""
_QUIET_SECONDS: Final = 2.0
"""The least pause after that where no session works: each worktree of a repository has a thread that looks."""
_REST: Final = 4.0
"""How often as long as such reading took it rests before the next."""
_SEARCH_SECONDS: Final = 10.0
"""Between two searches for stores that were not there before."""
_RETRY_SECONDS: Final = 30.0
"""So long a reader that raised is left alone."""
_JOIN_SECONDS: Final = 1.0
_FUTURE_SECONDS: Final = 60.0

_GLANCE_SECONDS: Final = 0.04
"""Between two glances at the files of the sessions that work: what they write is read as soon as it is there."""
_GLANCE_SHARE: Final = 0.005
"""The part of one core that these may take."""
_AT_WORK_SECONDS: Final = 900.0
_MOST_AT_WORK: Final = 256
"""Such sessions are those with a sign of life in so many seconds; of more of them, only the last ones are."""

_Answer = TypeVar("_Answer")

OpenReaders = Callable[[Collection[str], Broken], Iterable[SessionReader]]


class LiveFiles:
    """The files in which sessions that work are written, and who reads them."""

    def __init__(self) -> None:
        self.pause = _GLANCE_SECONDS
        """Seconds until the next look."""
        self.places: dict[tuple[str, str], str] = {}
        """By reader and run, where it is written; the last to change are the last."""
        self._stamps: dict[str, tuple[int, int] | None] = {}

    def update(self, reader: str, key: str, run: Run | None, now: float) -> None:
        """A run is like this now."""
        self.places.pop((reader, key), None)
        if run is None or run.state is not RunState.WORKING or run.process_gone:
            return
        if run.updated_at > now - _AT_WORK_SECONDS:
            self.places[reader, key] = run.place
            if len(self.places) > _MOST_AT_WORK:
                del self.places[next(iter(self.places))]

    def look(self) -> set[str]:
        """The readers of the files that were written since the look before."""
        began = time.perf_counter()
        before, self._stamps = self._stamps, {}
        written: set[str] = set()
        for (reader, _), place in self.places.items():
            for path in _files_of(place):
                if path not in self._stamps:
                    self._stamps[path] = _stamp(path)
                if path in before and before[path] != self._stamps[path]:
                    written.add(reader)
        self.pause = max(_GLANCE_SECONDS, (time.perf_counter() - began) / _GLANCE_SHARE)
        return written


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


class SessionsSource(Source):
    """Reads the stores that `open_readers` gives, called in the source's thread with the names of those it has.
    One thread at a time asks a reader anything. One that raises is a problem, and is asked again a while later.
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
        self._locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        """By reader: one that hangs keeps nobody waiting for another."""
        self._searched_at = -math.inf
        self._changed_at = 0.0
        self._broken: dict[str, tuple[str, float]] = {}
        """Problems of readers that raised, and when to try them again."""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._seq = 0
        self._told: Health | None = None
        self._live = LiveFiles()
        self._outliving: Outliving | None = None

    def start(self, emit: Callable[[Batch], None]) -> None:
        """Begin. Once `emit` raises RuntimeError, as a closed event loop does, nobody listens and the source ends.

        From now on a run outlives its transcript: what it did is shown, as with a task whose files are gone.
        """
        self._outliving = Outliving()
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
            while True:
                events += self._read(name, 1.0)
                if not self._is_busy(name):
                    break
        return Batch(tuple(events), self._health())

    def content(self, digest: str) -> str | None:
        """A text handed over or back. Any thread may call it."""
        texts = (self._ask(name, lambda reader: reader.text(digest), None) for name in list(self._readers))
        return next((text for text in texts if text is not None), None)

    def transcript(self, run: Run) -> RunTranscript | None:
        """What stands in the transcript of a run. Any thread may call it."""

        def of(reader: SessionReader) -> RunTranscript | None:
            return reader.transcript(run) if isinstance(reader, HasTranscripts) else None

        return self._ask(run.source, of, None) if run.source in self._readers else None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is not read, and why: one for each reader that says so."""
        troubles = {name: self._ask(name, lambda reader: reader.trouble, None) for name in list(self._readers)}
        told = (Problem(name, self._place(name), said) for name, said in troubles.items() if said is not None)
        return (*(Problem(name, "", said) for name, (said, _) in list(self._broken.items())), *told)

    def found(self) -> list[Found]:
        """What the last look found, reader by reader."""
        return [row for name in list(self._readers) for row in self._found_by(name)]

    def close(self) -> None:
        """Give the stores back, after a `scan`."""
        for name, reader in self._readers.items():
            # What broke has something open as well, and nobody is left to be told.
            with suppress(Exception), self._locks[name]:
                reader.close()

    def _found_by(self, name: str) -> Sequence[Found]:
        none: Sequence[Found] = ()
        return self._ask(name, lambda reader: reader.found(), none)

    def _place(self, name: str) -> str:
        """Where what a reader does not read lies, as far as it says so."""
        rows = self._found_by(name)
        return next((row.place for row in rows if row.skipped), rows[0].place if rows else "")

    def _run(self, emit: Callable[[Batch], None]) -> None:
        try:
            while not self._stopping.is_set() and self._look(emit):
                pass
        finally:
            self.close()

    def _look(self, emit: Callable[[Batch], None]) -> bool:
        """Look at everything once, and then, until that is due again, at what sessions at work write. False once nobody
        listens."""
        if time.monotonic() >= self._searched_at + _SEARCH_SECONDS:
            self._search()
        self._live.look()
        began = time.perf_counter()
        busy = self._read_all(self._readers, emit)
        if busy is not False:
            return busy is not None
        cost = time.perf_counter() - began
        least, most = _PAUSE_SECONDS
        now = time.monotonic()
        pause = least
        if now - self._changed_at >= _LIVELY_SECONDS:
            pause = min(max(cost / _SHARE, least if self._live.places else _QUIET_SECONDS), most)
        until = now + pause
        cost = 0.0
        while (left := until - time.monotonic()) > 0:
            # A session with hundreds of agents takes a while to be told anew.
            rest = max(self._live.pause, cost * _REST) if self._live.places else left
            if self._stopping.wait(min(left, rest)):
                break
            if written := self._live.look():
                began = time.perf_counter()
                busy = self._read_all(sorted(written), emit)
                cost = time.perf_counter() - began
                if busy is not False:
                    return busy is not None
        return True

    def _read_all(self, names: Iterable[str], emit: Callable[[Batch], None]) -> bool | None:
        """Have these readers tell what has changed. Whether one of them has more to read; None if nobody listens."""
        busy = False
        for name in names:
            events = self._read(name, _SLICE_SECONDS)
            busy = busy or self._is_busy(name)
            if not self._tell(events, emit):
                return None
        return busy if self._tell([], emit) else None

    def _tell(self, events: list[Event], emit: Callable[[Batch], None]) -> bool:
        """False once nobody listens any more, as after the receiver's event loop was closed."""
        health = self._health()
        if not events and health == self._told:
            return True
        self._told = health
        try:
            emit(Batch(tuple(events), health))
        except RuntimeError:
            return False
        return True

    def _read(self, name: str, seconds: float) -> list[Event]:
        news: list[Ran] = []
        changes = self._ask(name, lambda reader: list(reader.read(seconds)), None)
        if changes is not None:
            self._broken.pop(name, None)
        for key, given in changes or ():
            self._changed_at = time.monotonic()
            self._seq += 1
            run, now = given, self._clock()
            if run is not None and run.updated_at > now + _FUTURE_SECONDS:
                # A time that is still to come would keep a dead run from going stale.
                run = replace(run, updated_at=now)
            self._live.update(name, key, run, now)
            outliving = self._outliving
            for shown, one in outliving.update(name, key, run) if outliving is not None else [(key, run)]:
                news.append(Ran(self._seq, one.updated_at if one is not None else now, f"{name}:{shown}", one))
            let_others_work()
        return list(self._selection.choose(news))

    def _ask(self, name: str, question: Callable[[SessionReader], _Answer], otherwise: _Answer) -> _Answer:
        """The result of a reader; `otherwise` while it is broken."""
        if name in self._broken and time.monotonic() < self._broken[name][1]:
            return otherwise
        try:
            with self._locks[name]:
                return question(self._readers[name])
        except Exception as error:  # noqa: BLE001  what one program wrote must not hide the sessions of the others
            self._note_broken(name, error)
            return otherwise

    def _is_busy(self, name: str) -> bool:
        progress = self._progress(name)
        return progress.done < progress.total

    def _progress(self, name: str) -> Progress:
        return self._ask(name, lambda reader: reader.progress, Progress(0, 0))

    def _search(self) -> None:
        self._searched_at = time.monotonic()
        for reader in self._open_readers(frozenset(self._readers), self._note_broken):
            self._readers.setdefault(reader.name, reader)
            self._broken.pop(reader.name, None)

    def _note_broken(self, name: str, error: Exception) -> None:
        said = str(error) if isinstance(error, ReaderError) else words_of(error)
        self._broken[name] = f"cannot be used ({said})", time.monotonic() + _RETRY_SECONDS

    def _health(self) -> Health:
        looked = [self._progress(name) for name in list(self._readers)]
        done, total = sum(one.done for one in looked), sum(one.total for one in looked)
        mode: Mode = "live"
        detail = "Sessions are read as they are written" if self._readers else "No agent's sessions are found"
        if done < total:
            mode, detail = "starting", f"Reading the agents' sessions, {100 * done // total} %"
        return health_of(mode, detail, self.problems)


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
