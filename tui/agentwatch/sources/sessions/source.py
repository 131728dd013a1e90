"""The source of all session stores of one workspace: a thread that asks their readers what has changed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, TypeVar

from agentwatch.delegation.observation import Observation, Ran
from agentwatch.sources.health import Batch, Health, Mode, Problem, health_of
from agentwatch.sources.sessions.reader import Broken, Change, Found, Progress, SessionReader
from agentwatch.sources.sessions.selection import Selection
from agentwatch.sources.source import Source

_SLICE_SECONDS: Final = 0.05
"""What a reader may work at a stretch, so that what another one has found is not kept waiting."""

_PAUSE_SECONDS: Final = (0.2, 2.0)
"""Between two looks at the stores, least and most. Transcripts become readable 0.1 s after their time."""

_SHARE: Final = 0.002
"""The part of one core that looking may take while nothing happens: the pause grows with what a look costs."""

_LIVELY_SECONDS: Final = 10.0
"""For so long after something has changed, the next change is looked for without a longer pause."""

_SEARCH_SECONDS: Final = 2.0
"""Between two searches for stores that were not there before."""

_JOIN_SECONDS: Final = 1.0
_FUTURE_SECONDS: Final = 60.0

_Answer = TypeVar("_Answer")

OpenReaders = Callable[[Collection[str], Broken], Iterable[SessionReader]]


class SessionsSource(Source):
    """Reads the stores that `open_readers` gives, called in the source's thread with the names of those it has."""

    def __init__(
        self, open_readers: OpenReaders, selection: Selection | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._open_readers = open_readers
        self._selection = selection or Selection()
        self._clock = clock
        self._readers: dict[str, SessionReader] = {}
        self._search_at = 0.0
        self._changed_at = 0.0
        self._broken: dict[str, str] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._seq = 0
        self._told: Health | None = None

    def start(self, emit: Callable[[Batch], None]) -> None:
        """Begin. Once `emit` raises RuntimeError, as a closed event loop does, nobody listens and the source ends."""
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
        observations: list[Observation] = []
        for name in self._readers:
            while True:
                observations += self._read(name, 1.0)
                if not self._is_busy(name):
                    break
        return Batch(tuple(observations), self._health())

    def content(self, digest: str) -> str | None:
        """A text handed over or back. Any thread may call it."""
        texts = (self._ask(name, lambda reader: reader.text(digest), None) for name in list(self._readers))
        return next((text for text in texts if text is not None), None)

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
        try:
            while not self._stopping.is_set():
                if time.monotonic() >= self._search_at:
                    self._search()
                busy, began = False, time.perf_counter()
                for name in self._readers:
                    observations = self._read(name, _SLICE_SECONDS)
                    busy = busy or self._is_busy(name)
                    if not self._tell(observations, emit):
                        return
                if not self._tell([], emit):
                    return
                if not busy:
                    least, most = _PAUSE_SECONDS
                    cost = time.perf_counter() - began
                    is_lively = time.monotonic() - self._changed_at < _LIVELY_SECONDS
                    self._stopping.wait(least if is_lively else min(max(cost / _SHARE, least), most))
        finally:
            self.close()

    def _tell(self, observations: list[Observation], emit: Callable[[Batch], None]) -> bool:
        """False once nobody listens any more, as after the receiver's event loop was closed."""
        health = self._health()
        if not observations and health == self._told:
            return True
        self._told = health
        try:
            emit(Batch(tuple(observations), health))
        except RuntimeError:
            return False
        return True

    def _read(self, name: str, seconds: float) -> list[Observation]:
        observations: list[Observation] = []
        nothing: Sequence[Change] = ()
        for change in self._ask(name, lambda reader: reader.read(seconds), nothing):
            self._changed_at = time.monotonic()
            self._seq += 1
            run, now = change.run, self._clock()
            if run is not None and run.updated_at > now + _FUTURE_SECONDS:
                # A time that is still to come would keep a dead run from going stale.
                run = replace(run, updated_at=now)
            at = run.updated_at if run is not None else now
            observations += self._selection.take(Ran(self._seq, at, f"{name}:{change.key}", run))
        return observations

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
        self._search_at = time.monotonic() + _SEARCH_SECONDS
        for reader in self._open_readers(frozenset(self._readers), self._note_broken):
            self._readers.setdefault(reader.name, reader)

    def _note_broken(self, name: str, error: Exception) -> None:
        self._broken[name] = f"cannot be used ({type(error).__name__}: {error})"

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
    """Each `scan` gives all runs there are, whoever asks and however often. Any thread may call."""

    def __init__(self, source: SessionsSource) -> None:
        self._source = source
        self._runs: dict[str, Observation] = {}
        self._scanning = threading.Lock()

    def scan(self) -> Batch:
        """What the stores hold now."""
        with self._scanning:
            batch = self._source.scan()
            for observation in batch.observations:
                if isinstance(observation, Ran):
                    self._runs.pop(observation.path, None)
                    if observation.run is not None:
                        self._runs[observation.path] = observation
            return Batch(tuple(self._runs.values()), batch.health)

    def content(self, digest: str) -> str | None:
        return self._source.content(digest)
