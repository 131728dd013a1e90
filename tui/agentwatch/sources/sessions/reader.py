"""The small protocol of every reader of a session store, and the common base of our readers."""

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
_READ = 500  # texts whose documents are remembered: most occur in two or three places, soon after each other

_DECISION = re.compile(r"\bdecision_id\b[^\n]{0,20}?\b([0-9a-f]{32})\b")

Broken = Callable[[str, BaseException], None]  # called with the name of an unusable reader, and the reason


class Change(NamedTuple):
    """A run as it is now, None if the store no longer has it; `key` is the run's permanent name in the store."""

    key: str
    run: Run | None


class Found(NamedTuple):
    """A store, or a part of one; `sessions` counts those that a human began, `children` those that sessions asked for.
    `skipped` says in one sentence why some are not read. Paths and texts are foreign."""

    source: str
    place: str
    sessions: int
    skipped: str = ""
    children: int = 0


class Progress(NamedTuple):
    """The progress of the first look, in bytes; both are equal once everything was read."""

    done: int
    total: int


@runtime_checkable
class SessionReader(Protocol):
    """Reads the sessions of one workspace from one program's store, never writing there; one thread at a time calls it.
    No content of a store makes it raise: unreadable content is reported in `trouble`."""

    @property
    def name(self) -> str:
        """The name of the source: `claude-code`."""

    @property
    def trouble(self) -> str | None:
        """One sentence for the health line, None if everything that should be readable is read."""

    def read(self, seconds: float) -> Sequence[Change]:
        """Return the latest states of the runs that have changed since the last call, after at most `seconds`.
        `progress` says whether there is more to read at once."""

    @property
    def progress(self) -> Progress:
        """The progress of reading."""

    def text(self, digest: str) -> str | None:
        """Return a text handed over or back, by its digest; None if it is no longer available."""

    def found(self) -> Sequence[Found]:
        """Return the stores that were found or skipped, with the reasons."""

    def close(self) -> None:
        """Close what is open."""


@lru_cache(_READ)
def read_stored(text: str, *, handed_over: bool = False) -> OpenDocument | None:
    """Return the return in a session's text, else its packet; `handed_over`: the packet alone."""
    if "{" not in text and "#" not in text:
        # It follows no contract, so most sessions need not wait until the contracts are loaded.
        return None
    # In the source's thread: the models of the contracts take as long to load as a screen to appear.
    from agentwatch.contracts.reading import read_document

    return read_document(text, "", embedded=not handed_over, handed_over=handed_over)


def message(text: str, at: float) -> Message:
    """Return a text that was handed over or back, as a message judged by the contracts."""
    # Whether the message is a prompt or an answer is not known here, so both are looked for.
    reading = read_stored(text)
    both = reading is not None and isinstance(reading.document, Return) and "{" in text
    packet = read_stored(text, handed_over=True) if both else None
    # Their models stay only while somebody looks at them.
    light = [one and Document(one.document, one.findings, one.complete) for one in (reading, packet)]
    named = _DECISION.search(text) if packet is None and "decision_id" in text else None
    return Message(at, digest_of(text), first_sentence(text, _OPENING), light[0], light[1], named and named[1])


class StoreReader:
    """The base of our readers; nothing stays open between two calls, and texts are kept compressed, by digest."""

    name: str
    trouble: str | None
    skipped: str = ""  # the reason why some content is not read, if that is no trouble

    def __init__(self) -> None:
        self.last_runs: Mapping[str, Run] = {}  # the runs as they were last given, by key
        self._texts: dict[str, bytes] = {}

    def keep_message(self, text: str, at: float) -> Message:
        """Return a text as a message, as the function `message` does, and keep the text."""
        made = message(text, at)
        if made.digest not in self._texts:
            self._texts[made.digest] = zlib.compress(text.encode("utf-8", "surrogatepass"), 1)
        return made

    def text(self, digest: str) -> str | None:
        data = self._texts.get(digest)
        return None if data is None else zlib.decompress(data).decode("utf-8", "surrogatepass")

    def stores(self) -> Sequence[str]:
        """Return the places where sessions of the workspace were looked for."""
        raise NotImplementedError

    def found(self) -> Sequence[Found]:
        """Return a row for each existing store."""
        stores, rows = self.stores(), []
        for store in stores:
            runs = [run for run in self.last_runs.values() if len(stores) == 1 or run.place.startswith(store)]
            children = sum(run.parent_session is not None for run in runs)
            reasons = (self.trouble, self.skipped, "" if runs else "no session of this workspace is there")
            rows.append(Found(self.name, store, len(runs) - children, "; ".join(filter(None, reasons)), children))
        return rows

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def update_runs(self, runs: Mapping[str, Run]) -> list[Change]:
        """Return the changes, given that these are now all runs."""
        before, self.last_runs = self.last_runs, runs
        gone = [Change(key, None) for key in before.keys() - runs.keys()]
        others = [(key, run) for key, run in runs.items() if before.get(key) is not run]
        return gone + [Change(key, run) for key, run in others if before.get(key) != run]


def count_noun(count: int, noun: str) -> str:
    """Return a number of things: `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def validate_run(fields: object) -> Run:
    """Return a run from foreign fields, by name; raise ValueError with the reason."""
    try:
        run: Run = adapter_of(Run).validate_python(fields)
    except ValueError as error:
        raise ValueError("`run` is no run of a session") from error
    times = [run.started_at, run.updated_at, run.ended_at or 0.0, run.asked_at or 0.0]
    times += (at for one in run.rounds for at in (one.began_at, one.ended_at or 0.0))
    times += (message.at for message in messages_of(run))
    if not all(map(is_time, times)):
        raise ValueError("a time in `run` is none in seconds since 1970")
    return run


def messages_of(run: Run) -> list[Message]:
    """Return everything that was said to a run, and by it."""
    told = (message for one in run.rounds for message in (one.prompt, one.said))
    return [message for message in (run.prompt, run.said, *told) if message]


@cache
def adapter_of(shape: type) -> TypeAdapter[Any]:
    """Return a maker of values from fields, which raises ValueError."""
    from pydantic import TypeAdapter  # not needed for files alone

    return TypeAdapter(shape)


def is_time(value: object) -> TypeGuard[int | float]:
    """Tell whether a value is a time in seconds since the epoch."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LATEST
