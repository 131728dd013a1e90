"""A reader of somebody else's package: what it gives is a value of ours, or an error that names it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from agentwatch.delegation.run import Run
from agentwatch.sources.sessions.checked import run_of, shape_of
from agentwatch.sources.sessions.reader import Change, Found, Progress, SessionReader

_LONGEST_NAME: Final = 40


class Guarded:
    """A `SessionReader` whose values have the types that they should have. Any method may raise anything."""

    def __init__(self, reader: object) -> None:
        if not isinstance(reader, SessionReader):
            raise TypeError("what it gives is no SessionReader")
        name: object = reader.name
        if not (isinstance(name, str) and name.strip() and len(name) <= _LONGEST_NAME):
            raise TypeError(f"its name is no text of at most {_LONGEST_NAME} characters")
        self.name: Final = name
        self._reader = reader
        self.close = reader.close

    @property
    def trouble(self) -> str | None:
        return _text(self._reader.trouble)

    @property
    def progress(self) -> Progress:
        progress: Progress = shape_of(Progress).validate_python(self._reader.progress)
        return progress

    def read(self, seconds: float) -> Sequence[Change]:
        return [self._change(one) for one in self._reader.read(seconds)]

    def text(self, digest: str) -> str | None:
        return _text(self._reader.text(digest))

    def found(self) -> Sequence[Found]:
        return [shape_of(Found).validate_python(row) for row in self._reader.found()]

    def _change(self, one: object) -> Change:
        key, given = one if isinstance(one, Change) else (None, None)
        if not isinstance(key, str) or not isinstance(given, Run | None):
            raise TypeError("it gives no Change of a Run")
        run = run_of(asdict(given)) if given is not None else None
        if run is not None and run.source != self.name:
            raise ValueError(f"it gives a run of {run.source[:_LONGEST_NAME]!r}, which it is not")
        return Change(key, run)


def _text(one: object) -> str | None:
    if one is None or isinstance(one, str):
        return one
    raise TypeError(f"it gives {type(one).__name__} and not a text")
