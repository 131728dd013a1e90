"""The protocol for readers of session stores, and the base class of our own readers."""

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
_READ = 500  # so many texts are kept with their documents, because most texts are read two or three times in a row

_DECISION = re.compile(r"\bdecision_id\b[^\n]{0,20}?\b([0-9a-f]{32})\b")

Broken = Callable[[str, BaseException], None]  # called if a reader fails, with the reader's name and the error


class Change(NamedTuple):
    """The new state of a run. `run` is None if the store no longer has the run. `key` always names the same run."""

    key: str
    run: Run | None


class Found(NamedTuple):
    """A store, or a part of a store. `sessions` counts the sessions that a human began. `children` counts the sessions
    that an agent began. `skipped` is the reason why some sessions are not read. Paths and texts are untrusted."""

    source: str
    place: str
    sessions: int
    skipped: str = ""
    children: int = 0


class Progress(NamedTuple):
    """The progress of the first read, in bytes. Both numbers are equal when everything has been read."""

    done: int
    total: int


@runtime_checkable
class SessionReader(Protocol):
    """Reads the sessions of one workspace from one program's store. It never writes in the store. One thread at a time
    calls its methods. They do not raise errors for unreadable content, but report this content in `trouble`."""

    @property
    def name(self) -> str:
        """The name of the source, such as `claude-code`."""

    @property
    def trouble(self) -> str | None:
        """One sentence about content that could not be read, or None. It is shown as the health of the source."""

    def read(self, seconds: float) -> Sequence[Change]:
        """Return the new state of each run that has changed since the last call. Take at most `seconds`. If more is to
        be read, `progress` shows this, and the caller calls again at once."""

    @property
    def progress(self) -> Progress:
        """The progress of reading."""

    def text(self, digest: str) -> str | None:
        """Return the prompt or answer that has this digest. Return None if its text is no longer available."""

    def found(self) -> Sequence[Found]:
        """Return the stores that were found. Include skipped stores, with the reasons."""

    def close(self) -> None:
        """Close all open files and databases."""


@lru_cache(_READ)
def read_stored(text: str, *, handed_over: bool = False) -> OpenDocument | None:
    """Parse the return in a session's text, or else the packet (the JSON of a handoff). With `handed_over`, parse only
    the packet. Return None if the text has neither."""
    if "{" not in text and "#" not in text:
        # A text without these characters follows no contract. So most sessions do not need the slow import below.
        return None
    from agentwatch.contracts.reading import read_document

    return read_document(text, "", embedded=not handed_over, handed_over=handed_over)


def message(text: str, at: float) -> Message:
    """Make a message from a prompt or an answer: its time, its digest, its beginning, and the documents in the text."""
    # It is not known whether the text is a prompt or an answer. So look for a return and for a packet.
    reading = read_stored(text)
    both = reading is not None and isinstance(reading.document, Return) and "{" in text
    packet = read_stored(text, handed_over=True) if both else None
    # Leave out the pydantic models of the documents, to save memory.
    found = [one and Document(one.document, one.findings, one.complete) for one in (reading, packet)]
    match = _DECISION.search(text) if packet is None and "decision_id" in text else None
    return Message(at, digest_of(text), first_sentence(text, _OPENING), found[0], found[1], match and match[1])


class StoreReader:
    """The base class of our readers. It keeps the texts of prompts and answers in memory, compressed, by digest."""

    name: str
    trouble: str | None
    skipped: str = ""  # the reason why some content is left out on purpose

    def __init__(self) -> None:
        self.last_runs: Mapping[str, Run] = {}  # the runs of the last call, by key
        self._texts: dict[str, bytes] = {}

    def keep_message(self, text: str, at: float) -> Message:
        """Make a message from a text, and keep the text for the method `text`."""
        made = message(text, at)
        if made.digest not in self._texts:
            self._texts[made.digest] = zlib.compress(text.encode("utf-8", "surrogatepass"), 1)
        return made

    def text(self, digest: str) -> str | None:
        data = self._texts.get(digest)
        return None if data is None else zlib.decompress(data).decode("utf-8", "surrogatepass")

    def stores(self) -> Sequence[str]:
        """Return the paths that were searched for sessions of the workspace."""
        raise NotImplementedError

    def found(self) -> Sequence[Found]:
        """Return a row for each of the `stores`."""
        stores, rows = self.stores(), []
        for store in stores:
            runs = [run for run in self.last_runs.values() if len(stores) == 1 or run.place.startswith(store)]
            children = sum(run.parent_session is not None for run in runs)
            reasons = (self.trouble, self.skipped, "" if runs else "no session of this workspace is there")
            rows.append(Found(self.name, store, len(runs) - children, "; ".join(filter(None, reasons)), children))
        return rows

    def close(self) -> None:
        """Do nothing, because no file stays open between two calls."""

    def update_runs(self, runs: Mapping[str, Run]) -> list[Change]:
        """Store the new state of all runs, and return the changes since the last call."""
        before, self.last_runs = self.last_runs, runs
        gone = [Change(key, None) for key in before.keys() - runs.keys()]
        others = [(key, run) for key, run in runs.items() if before.get(key) is not run]
        return gone + [Change(key, run) for key, run in others if before.get(key) != run]


def count_noun(count: int, noun: str) -> str:
    """Return a number with a noun, such as `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def validate_run(fields: object) -> Run:
    """Make a run from untrusted fields. Raise ValueError with the reason if a field is wrong."""
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
    """Return all prompts and answers of a run."""
    told = (message for one in run.rounds for message in (one.prompt, one.said))
    return [message for message in (run.prompt, run.said, *told) if message]


@cache
def adapter_of(shape: type) -> TypeAdapter[Any]:
    """Return the pydantic adapter for a type. The adapter raises ValueError for wrong fields."""
    from pydantic import TypeAdapter  # imported late, because the files source does not need it

    return TypeAdapter(shape)


def is_time(value: object) -> TypeGuard[int | float]:
    """Tell whether a value is a time in seconds since 1970."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LATEST
