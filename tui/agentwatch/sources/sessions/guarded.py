"""A reader of somebody else's package: whether it raises or talks rubbish, all others go on.

What it gives becomes a value of ours or an error, so nothing of it reaches the tree unchecked. Once it has raised, it
is asked no more, and the health line names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Final, NoReturn, TypeVar

from agentwatch.delegation.run import Run
from agentwatch.sources.sessions.checked import run_of
from agentwatch.sources.sessions.doing import Entry
from agentwatch.sources.sessions.following import Look, RunTranscript, WholeStep
from agentwatch.sources.sessions.reader import Change, Found, HasTranscripts, Progress, ReaderError, SessionReader
from agentwatch.sources.sessions.steps import Step
from agentwatch.sources.sessions.unheard import unheard
from agentwatch.text import words_of

_LONGEST_NAME: Final = 40

T = TypeVar("T")


def guarded(make: Callable[[], object]) -> Guarded | None:
    """The reader that `make` gives, None where it gives None. Raises ReaderError."""
    reader = _asked(lambda: _reader(make()))
    return None if reader is None else Guarded(reader, _asked(lambda: _name(reader.name)))


class Guarded:
    """A `SessionReader` that can be believed. Any method may raise ReaderError."""

    def __init__(self, reader: SessionReader, name: str) -> None:
        self.name: Final = name
        self._reader = reader

    @property
    def trouble(self) -> str | None:
        return _asked(lambda: _text(self._reader.trouble))

    @property
    def progress(self) -> Progress:
        return _asked(lambda: _progress(self._reader.progress))

    def read(self, seconds: float) -> Sequence[Change]:
        """What has changed."""
        return _asked(lambda: [_change(one, self.name) for one in self._reader.read(seconds)])

    def text(self, digest: str) -> str | None:
        """As in `SessionReader`."""
        return _asked(lambda: _text(self._reader.text(digest)))

    def transcript(self, run: Run) -> RunTranscript | None:
        """That of a run, where the reader has any."""
        return _asked(lambda: _transcript(self._reader, run))

    def found(self) -> Sequence[Found]:
        return _asked(lambda: [_found(one) for one in self._reader.found()])

    def close(self) -> None:
        _asked(self._reader.close)


def _asked(do: Callable[[], T]) -> T:
    """What a foreign function gives. Raises ReaderError: not even a foreign `sys.exit` ends us."""
    with unheard():
        try:
            return do()
        except (Exception, SystemExit) as error:
            raise ReaderError(words_of(error)) from error


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
