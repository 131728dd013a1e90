"""The small protocol of every reader of a session store, and what these readers have in common."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeGuard, runtime_checkable

from agentwatch.contracts.shapes import Document, OpenDocument, Return
from agentwatch.delegation.events import Message, Run
from agentwatch.sources.sessions.fields import digest_of, first_sentence

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_LATEST = 253_402_300_800.0  # the year 10000, in seconds since the epoch

_OPENING = 200
_READ = 500  # texts whose documents are remembered: most stand in two or three places, and are checked soon

_DECISION = re.compile(r"\bdecision_id\b[^\n]{0,20}?\b([0-9a-f]{32})\b")

Broken = Callable[[str, BaseException], None]  # called with the name of a reader that cannot be used, and why


class Change(NamedTuple):
    """A run as it is now, None where the store no longer has it. `key` names the run in the store, for ever."""

    key: str
    run: Run | None


class Found(NamedTuple):
    """A store, or a part of one: `sessions` are those that a human began, `children` those that another session asked
    for, `skipped` says in one sentence why not all is read. Paths and texts are foreign."""

    source: str
    place: str
    sessions: int
    skipped: str = ""
    children: int = 0


class Progress(NamedTuple):
    """How far the first look has come, in bytes; equal once all has been read."""

    done: int
    total: int


@runtime_checkable
class SessionReader(Protocol):
    """Reads the sessions of one workspace out of one program's store, and never writes there. One thread at a time
    calls it. Nothing here raises for what a store holds: what cannot be read is told in `trouble`."""

    @property
    def name(self) -> str:
        """The name of the source: `claude-code`."""

    @property
    def trouble(self) -> str | None:
        """One sentence for the health line, None where all that should be readable is read."""

    def read(self, seconds: float) -> Sequence[Change]:
        """The last states of the runs that have changed since the call before, after so many seconds at most; whether
        there is more to read at once is told by `progress`."""

    @property
    def progress(self) -> Progress:
        """How far the reading has come."""

    def text(self, digest: str) -> str | None:
        """A text handed over or back, by its digest; None where it is not to be had any more."""

    def found(self) -> Sequence[Found]:
        """Stores that were found or skipped, and why."""

    def close(self) -> None:
        """Give back what is open."""


@lru_cache(_READ)
def read_stored(text: str, *, handed_over: bool = False) -> OpenDocument | None:
    """The return in a text of a session, else its packet; of one that was handed over the packet alone."""
    if "{" not in text and "#" not in text:
        # It follows no contract. Most sessions need not wait until the contracts are loaded.
        return None
    # In the source's thread: the models of the contracts take as long to load as a screen to appear.
    from agentwatch.contracts.reading import read_document

    return read_document(text, "", embedded=not handed_over, handed_over=handed_over)


def message(text: str, at: float) -> Message:
    """A text as it was handed over or back, judged by the contracts."""
    # The caller knows whether it asks or answers.
    reading = read_stored(text)
    both = reading is not None and isinstance(reading.document, Return) and "{" in text
    packet = read_stored(text, handed_over=True) if both else None
    # Their models stay only while somebody looks at them.
    light = [one and Document(one.document, one.findings, one.complete) for one in (reading, packet)]
    named = _DECISION.search(text) if packet is None and "decision_id" in text else None
    return Message(at, digest_of(text), first_sentence(text, _OPENING), light[0], light[1], named and named[1])


class StoreReader:
    """The base of our readers. Nothing is held open between two calls, and texts are kept compressed, by digest."""

    name: str
    trouble: str | None
    skipped: str = ""  # why not all that is there is read, where that is no trouble

    def __init__(self) -> None:
        self.given: Mapping[str, Run] = {}  # the runs as they were last given, by key
        self._texts: dict[str, bytes] = {}

    def message(self, text: str, at: float) -> Message:
        """A text as a message, as the function does it."""
        made = message(text, at)
        if made.digest not in self._texts:
            self._texts[made.digest] = zlib.compress(text.encode("utf-8", "surrogatepass"), 1)
        return made

    def text(self, digest: str) -> str | None:
        data = self._texts.get(digest)
        return None if data is None else zlib.decompress(data).decode("utf-8", "surrogatepass")

    def stores(self) -> Sequence[str]:
        """Where sessions of the workspace were looked for."""
        raise NotImplementedError

    def found(self) -> Sequence[Found]:
        """A row for each store that is there."""
        stores, rows = self.stores(), []
        for store in stores:
            runs = [run for run in self.given.values() if len(stores) == 1 or run.place.startswith(store)]
            children = sum(run.parent_session is not None for run in runs)
            reasons = (self.trouble, self.skipped, "" if runs else "no session of this workspace is there")
            rows.append(Found(self.name, store, len(runs) - children, "; ".join(filter(None, reasons)), children))
        return rows

    def close(self) -> None:
        """Nothing is open."""

    def give(self, runs: Mapping[str, Run]) -> list[Change]:
        """The changes, now that these are all runs there are."""
        before, self.given = self.given, runs
        gone = [Change(key, None) for key in before.keys() - runs.keys()]
        others = [(key, run) for key, run in runs.items() if before.get(key) is not run]
        return gone + [Change(key, run) for key, run in others if before.get(key) != run]


def several(count: int, noun: str) -> str:
    """A number of things: `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def checked_run(fields: object) -> Run:
    """A run as somebody else says it is, of its fields by name. Raises ValueError with the reason."""
    try:
        run: Run = shape_of(Run).validate_python(fields)
    except ValueError as error:
        raise ValueError("`run` is no run of a session") from error
    times = [run.started_at, run.updated_at, run.ended_at or 0.0, run.asked_at or 0.0]
    times += (at for one in run.rounds for at in (one.began_at, one.ended_at or 0.0))
    times += (message.at for message in messages(run))
    if not all(map(is_time, times)):
        raise ValueError("a time in `run` is none in seconds since 1970")
    return run


def messages(run: Run) -> list[Message]:
    """All that was said to a run, and by it."""
    told = (message for one in run.rounds for message in (one.prompt, one.said))
    return [message for message in (run.prompt, run.said, *told) if message]


@cache
def shape_of(shape: type) -> TypeAdapter[Any]:
    """A maker of a value from fields; it raises ValueError."""
    from pydantic import TypeAdapter  # Files alone need not wait for it.

    return TypeAdapter(shape)


def is_time(value: object) -> TypeGuard[int | float]:
    """Whether it is one in seconds since the epoch."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LATEST
