"""The source of all session stores of one workspace: a thread that asks their readers what has changed."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from agentwatch.background import in_step, let_others_work
from agentwatch.delegation.events import Event, Ran
from agentwatch.delegation.run import Run
from agentwatch.sources import Batch, Health, Mode, Problem, Source, health_of
from agentwatch.sources.files.bell import BELL
from agentwatch.sources.sessions.at_work import AtWork
from agentwatch.sources.sessions.following import HasTranscripts, RunTranscript
from agentwatch.sources.sessions.outliving import Outliving
from agentwatch.sources.sessions.reader import Broken, Change, Found, Progress, ReaderError, SessionReader
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

_SEARCH_SECONDS: Final = (5.0, 60.0)
"""Between two searches for stores that were not there before: at least, and at most where most of them are heard."""

_JOIN_SECONDS: Final = 1.0
_FUTURE_SECONDS: Final = 60.0

_Answer = TypeVar("_Answer")

OpenReaders = Callable[[Collection[str], Broken], Iterable[SessionReader]]


class SessionsSource(Source):
    """Reads the stores that `open_readers` gives, called in the source's thread with the names of those it has. In one
    of the directories `heard` something happens when there may be others; without any, only a search tells."""

    def __init__(
        self,
        open_readers: OpenReaders,
        selection: Selection | None = None,
        clock: Callable[[], float] = time.time,
        heard: Callable[[], Sequence[Path]] = list,
    ) -> None:
        self._open_readers = open_readers
        self._heard = heard
        self._selection = selection or Selection()
        self._clock = clock
        self._readers: dict[str, SessionReader] = {}
        self._searched_at = -math.inf
        self._rung = False
        self._changed_at = 0.0
        self._broken: dict[str, str] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._seq = 0
        self._told: Health | None = None
        self._at_work = AtWork()
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
        troubles = {name: self._ask(name, lambda reader: reader.trouble, None) for name in self._readers}
        told = (Problem(name, self._place(name), said) for name, said in troubles.items() if said is not None)
        return (*(Problem(name, "", said) for name, said in self._broken.items()), *told)

    def found(self) -> list[Found]:
        """What the last look found, reader by reader."""
        return [row for name in self._readers for row in self._found_by(name)]

    def _found_by(self, name: str) -> Sequence[Found]:
        none: Sequence[Found] = ()
        return self._ask(name, lambda reader: reader.found(), none)

    def _place(self, name: str) -> str:
        """Where what a reader does not read lies, as far as it says so."""
        rows = self._found_by(name)
        return next((row.place for row in rows if row.skipped), rows[0].place if rows else "")

    def _run(self, emit: Callable[[Batch], None]) -> None:
        heard = self._heard()
        with BELL.heard(heard, self._ring):
            self._look_on(emit, hears=bool(heard))

    def _ring(self) -> None:
        self._rung = True

    def _look_on(self, emit: Callable[[Batch], None], *, hears: bool) -> None:
        try:
            while not self._stopping.is_set():
                rests = hears and BELL.works and not self._rung
                if time.monotonic() >= self._searched_at + _SEARCH_SECONDS[rests]:
                    self._search()
                self._at_work.glance()
                began = time.perf_counter()
                busy = self._read_all(self._readers, emit)
                if busy is None:
                    return
                if not busy:
                    least, most = _PAUSE_SECONDS
                    cost = time.perf_counter() - began
                    if time.monotonic() - self._changed_at < _LIVELY_SECONDS:
                        pause = least
                    else:
                        pause = min(max(cost / _SHARE, least if self._at_work else _QUIET_SECONDS), most)
                    now = time.monotonic()
                    until = in_step(now, pause) if pause >= _QUIET_SECONDS else now + pause
                    if not self._follow(until, emit):
                        return
        finally:
            self.close()

    def _read_all(self, names: Iterable[str], emit: Callable[[Batch], None]) -> bool | None:
        """Have these readers tell what has changed. Whether one of them has more to read; None if nobody listens."""
        busy = False
        for name in names:
            events = self._read(name, _SLICE_SECONDS)
            busy = busy or self._is_busy(name)
            if not self._tell(events, emit):
                return None
        return busy if self._tell([], emit) else None

    def _follow(self, until: float, emit: Callable[[Batch], None]) -> bool:
        """Until it is time to look at everything, read what sessions at work write. False if nobody listens."""
        cost = 0.0
        while (left := until - time.monotonic()) > 0:
            # A session with hundreds of agents takes a while to be told anew.
            if self._stopping.wait(min(left, max(self._at_work.pause, cost * _REST))):
                break
            written, began = self._at_work.glance(), time.perf_counter()
            busy = self._read_all(sorted(written), emit) if written else False
            cost = time.perf_counter() - began if written else cost
            if busy is not False:
                return busy is not None
        return True

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
        events: list[Event] = []
        nothing: Sequence[Change] = ()
        for change in self._ask(name, lambda reader: reader.read(seconds), nothing):
            self._changed_at = time.monotonic()
            self._seq += 1
            run, now = change.run, self._clock()
            if run is not None and run.updated_at > now + _FUTURE_SECONDS:
                # A time that is still to come would keep a dead run from going stale.
                run = replace(run, updated_at=now)
            self._at_work.take(name, change.key, run, now)
            outliving = self._outliving
            for key, one in outliving.take(name, change.key, run) if outliving is not None else [(change.key, run)]:
                at = one.updated_at if one is not None else now
                events += self._selection.take(Ran(self._seq, at, f"{name}:{key}", one))
            let_others_work()
        return events

    def _ask(self, name: str, question: Callable[[SessionReader], _Answer], otherwise: _Answer) -> _Answer:
        """What a reader says; `otherwise` once it has broken."""
        if name in self._broken:
            return otherwise
        try:
            return question(self._readers[name])
        except Exception as error:  # noqa: BLE001  what one program wrote must not hide the sessions of the others
            self._note_broken(name, error)
            return otherwise

    def _progress(self, name: str) -> Progress:
        return self._ask(name, lambda reader: reader.progress, Progress(0, 0))

    def _is_busy(self, name: str) -> bool:
        progress = self._progress(name)
        return progress.done < progress.total

    def _search(self) -> None:
        self._searched_at, self._rung = time.monotonic(), False
        for reader in self._open_readers(frozenset(self._readers), self._note_broken):
            self._readers.setdefault(reader.name, reader)

    def _note_broken(self, name: str, error: Exception) -> None:
        said = str(error) if isinstance(error, ReaderError) else words_of(error)
        self._broken[name] = f"cannot be used ({said})"

    def _health(self) -> Health:
        looked = [self._progress(name) for name in self._readers]
        done, total = sum(one.done for one in looked), sum(one.total for one in looked)
        mode: Mode = "live"
        detail = "Sessions are read as they are written" if self._readers else "No agent's sessions are found"
        if done < total:
            mode, detail = "starting", f"Reading the agents' sessions, {100 * done // total} %"
        return health_of(mode, detail, self.problems)

    def close(self) -> None:
        """Give the stores back, after a `scan`."""
        for reader in self._readers.values():
            # What broke has something open as well, and nobody is left to be told.
            with suppress(Exception):
                reader.close()


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
