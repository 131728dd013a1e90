"""A reader of somebody else's package, at arm's length: whether it raises, hangs or talks rubbish, all others go on.

It is asked in a thread of its own. What it says becomes a value of ours or an error, so nothing of it reaches the tree
unseen. Once it has raised, or has not answered in time, it is asked no more, and the health line names it. Code that
never gives the interpreter back cannot be helped against from inside of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import Final, Generic, NamedTuple, NoReturn, TypeVar

from agentwatch.delegation.run import Run
from agentwatch.sources.sessions.checked import run_of
from agentwatch.sources.sessions.doing import Entry
from agentwatch.sources.sessions.following import HasTranscripts, Look, RunTranscript, WholeStep
from agentwatch.sources.sessions.reader import Change, Found, Progress, ReaderError, SessionReader
from agentwatch.sources.sessions.steps import Step
from agentwatch.sources.sessions.unheard import unheard
from agentwatch.text import words_of

PATIENCE: Final = 5.0
"""Seconds in which it has to answer, or to get on with its first look."""

_LONGEST_NAME: Final = 40

T = TypeVar("T")


def guarded(make: Callable[[], object], patience: float = PATIENCE) -> Guarded | None:
    """The reader that `make` gives, None where it gives None. Raises ReaderError and TimeoutError."""
    thread = _Thread(patience)
    reader = thread.asked(lambda: _reader(make()))
    if reader is None:
        thread.end()
        return None
    return Guarded(reader, thread.asked(lambda: _name(reader.name)), thread)


class Guarded:
    """A `SessionReader` that can be believed. Any method may raise."""

    def __init__(self, reader: SessionReader, name: str, thread: _Thread) -> None:
        self.name: Final = name
        self._reader = reader
        self._thread = thread
        self._looking: _Call[_Told] | None = None
        self._told = _Told((), Progress(0, 0), None)
        self._moved_at = time.monotonic()

    @property
    def trouble(self) -> str | None:
        return self._told.trouble

    @property
    def progress(self) -> Progress:
        return self._told.progress if self._looking is None else Progress(0, 1)

    def read(self, seconds: float) -> Sequence[Change]:
        """What has changed, if it says so in these seconds; else later."""
        call = self._looking or self._thread.ask(lambda: self._look(seconds))
        self._looking = None
        if not call.done.wait(seconds):
            if time.monotonic() - call.began_at > self._thread.patience:
                raise self._thread.silent()
            self._looking = call
            return ()
        before, self._told = self._told, call.answer()
        now, progress = time.monotonic(), self._told.progress
        if self._told.changes or progress != before.progress or progress.done >= progress.total:
            self._moved_at = now
        elif now - self._moved_at > self._thread.patience:
            raise TimeoutError(f"for {self._thread.patience:g} s it has more to read, as it says, and gives nothing")
        return self._told.changes

    def text(self, digest: str) -> str | None:
        """As in `SessionReader`: any thread may ask, so each does so in a thread of its own."""
        call = _Call(lambda: self._reader.text(digest))
        threading.Thread(target=call.run, name="agentwatch-foreign-text", daemon=True).start()
        return _text(self._thread.answer(call))

    def transcript(self, run: Run) -> RunTranscript | None:
        """That of a run, where the reader has any. What it shows is asked for by the thread that follows it."""
        return self._thread.asked(lambda: _transcript(self._reader, run))

    def found(self) -> Sequence[Found]:
        return self._thread.asked(lambda: [_found(one) for one in self._reader.found()])

    def close(self) -> None:
        """Nobody waits for one that is silent."""
        if self._looking is None:
            self._thread.asked(self._reader.close)
        self._thread.end()

    def _look(self, seconds: float) -> _Told:
        changes = tuple(_change(one, self.name) for one in self._reader.read(seconds))
        return _Told(changes, _progress(self._reader.progress), _text(self._reader.trouble))


class _Told(NamedTuple):
    """What a reader says after a look."""

    changes: Sequence[Change]
    progress: Progress
    trouble: str | None


class _Call(Generic[T]):
    """Something that another thread does."""

    def __init__(self, do: Callable[[], T]) -> None:
        self._do = do
        self.began_at = time.monotonic()
        self.done = threading.Event()
        self._result: list[T] = []
        self._error: ReaderError | None = None

    def run(self) -> None:
        """Do it. Never raises: not even a foreign `sys.exit` ends us. Its error is put in words here: that may hang."""
        with unheard():
            try:
                self._result.append(self._do())
            except BaseException as error:  # noqa: BLE001
                self._error = ReaderError(words_of(error))
        self.done.set()

    def answer(self) -> T:
        """What came of it. Raises ReaderError."""
        if self._error is not None:
            raise self._error
        return self._result[0]


class _Thread:
    """Does one call after the other."""

    def __init__(self, patience: float) -> None:
        self.patience: Final = patience
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._run, name="agentwatch-foreign", daemon=True).start()

    def ask(self, do: Callable[[], T]) -> _Call[T]:
        call = _Call(do)
        self._work.put(call.run)
        return call

    def asked(self, do: Callable[[], T]) -> T:
        """What comes of it. Raises ReaderError and TimeoutError."""
        return self.answer(self.ask(do))

    def answer(self, call: _Call[T]) -> T:
        if not call.done.wait(self.patience):
            raise self.silent()
        return call.answer()

    def silent(self) -> TimeoutError:
        return TimeoutError(f"it has not answered for {self.patience:g} s")

    def end(self) -> None:
        """End it once it has done what it is at."""
        self._work.put(None)

    def _run(self) -> None:
        while (do := self._work.get()) is not None:
            do()


def _refused(wanted: str, given: object) -> NoReturn:
    raise TypeError(f"it gives {type(given).__name__} and not {wanted}")


def _reader(one: object) -> SessionReader | None:
    if one is None or isinstance(one, SessionReader):
        return one
    raise TypeError("what it gives is no SessionReader")


def _name(name: object) -> str:
    if isinstance(name, str) and name.strip() and len(name) <= _LONGEST_NAME:
        return name
    raise TypeError(f"its name is no text of at most {_LONGEST_NAME} characters")


def _change(one: object, name: str) -> Change:
    key, given = map(_as_given, one) if isinstance(one, Change) else (None, one)
    if not isinstance(key, str) or not isinstance(given, Run | None):
        _refused("a Change of a Run", given)
    if given is None:
        return Change(key, None)
    run = run_of(asdict(given))
    if run.source != name:
        raise ValueError(f"it gives a run of {run.source[:_LONGEST_NAME]!r}, which it is not")
    return Change(key, run)


def _as_given(value: object) -> object:
    """The same: whatever its type says, it may be anything."""
    return value


def _progress(one: object) -> Progress:
    if isinstance(one, Progress) and all(type(number) is int for number in one):
        return one
    _refused("a Progress", one)


def _text(one: object) -> str | None:
    return one if one is None or isinstance(one, str) else _refused("a text", one)


def _found(one: object) -> Found:
    if isinstance(one, Found) and [type(value) for value in one] == [str, str, int, str, int]:
        return one
    _refused("a Found", one)


def _transcript(reader: SessionReader, run: Run) -> RunTranscript | None:
    made = _as_given(reader.transcript(run)) if isinstance(reader, HasTranscripts) else None
    if made is None:
        return None
    return _Shown(made) if isinstance(made, RunTranscript) else _refused("a RunTranscript", made)


class _Shown(RunTranscript):
    """A transcript that does not raise: what cannot be had of it is not there, and the *Live* tab says why."""

    def __init__(self, inner: RunTranscript) -> None:
        super().__init__(Path())
        self._inner = inner
        self._last = Look()

    @property
    def watched(self) -> Sequence[Path]:
        return self._or(lambda: [Path(one) for one in self._inner.watched], ())

    def look(self) -> Look | None:
        return self._looked(self._inner.look)

    def older(self) -> Look:
        return self._looked(self._inner.older) or self._last

    def whole(self, step: Step) -> WholeStep | None:
        return self._or(lambda: self._inner.whole(step), None)

    def entries(self) -> Iterator[Entry]:
        with suppress(Exception):
            yield from _each(self._inner.entries)

    def records(self) -> Iterator[tuple[int, Sequence[Entry]]]:
        return _each(self._inner.records)

    def _read(self) -> bool | None:
        return None

    def _entries_at(self, place: int) -> Sequence[Entry]:  # noqa: ARG002  nobody asks: `whole` is the inner one's
        return ()

    def _looked(self, look: Callable[[], Look | None]) -> Look | None:
        before, self._trouble = self._trouble, ""
        seen = self._or(look, None)
        if self._trouble:
            seen = self._last._replace(trouble=self._trouble) if self._trouble != before else None
        self._last = seen or self._last
        return seen

    def _or(self, do: Callable[[], T], otherwise: T) -> T:
        with unheard():
            try:
                return do()
            except (Exception, SystemExit) as error:  # noqa: BLE001
                self._trouble = f"It cannot be shown ({words_of(error)})"
                return otherwise


def _each(given: Callable[[], Iterable[T]]) -> Iterator[T]:
    """What is given, one after the other. Raises ReaderError."""
    try:
        with unheard():
            left = iter(given())
        while True:
            with unheard():
                one = next(left)
            yield one
    except StopIteration:
        return
    except (Exception, SystemExit) as error:
        with unheard():
            raise ReaderError(words_of(error)) from error
