"""A reader of somebody else's package: whether it raises or talks rubbish, all others go on.

What it gives becomes a value of ours or an error, so nothing of it reaches the tree unchecked. What it prints goes
nowhere: in the output of a command it is taken for ours, on a terminal it acts. `contextlib.redirect_stdout` would take
what our own threads print, too; so the standard streams are wrapped, once, and ask which thread it is.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from agentwatch.delegation.run import Run
from agentwatch.sources.sessions.checked import run_of
from agentwatch.sources.sessions.doing import Entry
from agentwatch.sources.sessions.following import Look, RunTranscript, WholeStep
from agentwatch.sources.sessions.reader import Change, Found, HasTranscripts, Progress, ReaderError, SessionReader
from agentwatch.sources.sessions.steps import Step
from agentwatch.text import words_of

_LONGEST_NAME: Final = 40

T = TypeVar("T")


class _Thread(threading.local):
    runs_code_of_others = False


_thread = _Thread()


class _Stream:
    """A standard stream, or nowhere, method by method: also `buffer` and `fileno()`."""

    def __init__(self, stream: object) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(_nowhere() if _thread.runs_code_of_others else self._stream, name)


@cache
def _nowhere() -> IO[str]:
    return open(os.devnull, "w", encoding="utf-8", errors="backslashreplace")  # noqa: PTH123  never closed


@contextmanager
def _unheard() -> Iterator[None]:
    """Until then, what this thread prints goes nowhere. Raises ReaderError: not even a foreign `sys.exit` ends us."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, _Stream):
            setattr(sys, name, _Stream(stream))
    before, _thread.runs_code_of_others = _thread.runs_code_of_others, True
    try:
        yield
    except StopIteration:
        raise
    except (Exception, SystemExit) as error:
        raise ReaderError(words_of(error)) from error
    finally:
        _thread.runs_code_of_others = before


def guarded(make: Callable[[], object]) -> Guarded | None:
    """The reader that `make` gives, None where it gives None. Raises ReaderError."""
    with _unheard():
        reader = make()
        if reader is None:
            return None
        if not isinstance(reader, SessionReader):
            raise TypeError("what it gives is no SessionReader")
        name: object = reader.name
        if isinstance(name, str) and name.strip() and len(name) <= _LONGEST_NAME:
            return Guarded(reader, name)
        raise TypeError(f"its name is no text of at most {_LONGEST_NAME} characters")


class Guarded:
    """A `SessionReader` that can be believed. Any method may raise ReaderError."""

    def __init__(self, reader: SessionReader, name: str) -> None:
        self.name: Final = name
        self._reader = reader

    @property
    def trouble(self) -> str | None:
        with _unheard():
            return _text(self._reader.trouble)

    @property
    def progress(self) -> Progress:
        with _unheard():
            one: object = self._reader.progress
            if isinstance(one, Progress) and all(type(number) is int for number in one):
                return one
            raise _refused("a Progress", one)

    def read(self, seconds: float) -> Sequence[Change]:
        """What has changed."""
        with _unheard():
            return [_change(one, self.name) for one in self._reader.read(seconds)]

    def text(self, digest: str) -> str | None:
        """As in `SessionReader`."""
        with _unheard():
            return _text(self._reader.text(digest))

    def transcript(self, run: Run) -> RunTranscript | None:
        """That of a run, where the reader has any."""
        with _unheard():
            made: object = self._reader.transcript(run) if isinstance(self._reader, HasTranscripts) else None
            if made is None or isinstance(made, RunTranscript):
                return None if made is None else _Shown(made)
            raise _refused("a RunTranscript", made)

    def found(self) -> Sequence[Found]:
        with _unheard():
            rows: list[object] = [*self._reader.found()]
            for row in rows:
                if not isinstance(row, Found) or [type(value) for value in row] != [str, str, int, str, int]:
                    raise _refused("a Found", row)
            return [row for row in rows if isinstance(row, Found)]

    def close(self) -> None:
        with _unheard():
            self._reader.close()


def _refused(wanted: str, given: object) -> TypeError:
    return TypeError(f"it gives {type(given).__name__} and not {wanted}")


def _text(one: object) -> str | None:
    if one is None or isinstance(one, str):
        return one
    raise _refused("a text", one)


def _change(one: object, name: str) -> Change:
    key: object = one.key if isinstance(one, Change) else None
    given: object = one.run if isinstance(one, Change) else one
    if not isinstance(key, str) or not isinstance(given, Run | None):
        raise _refused("a Change of a Run", given)
    run = run_of(asdict(given)) if given is not None else None
    if run is not None and run.source != name:
        raise ValueError(f"it gives a run of {run.source[:_LONGEST_NAME]!r}, which it is not")
    return Change(key, run)


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
        with suppress(ReaderError):
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
        try:
            with _unheard():
                return do()
        except ReaderError as error:
            self._trouble = f"It cannot be shown ({error})"
            return otherwise


def _each(given: Callable[[], Iterator[T]]) -> Iterator[T]:
    """What is given, one after the other. Raises ReaderError."""
    with _unheard():
        left = iter(given())
    while True:
        try:
            with _unheard():
                one = next(left)
        except StopIteration:
            return
        yield one
