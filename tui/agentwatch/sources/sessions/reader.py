"""The small protocol of every reader of a session store, and what these readers have in common."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple, Protocol, runtime_checkable

from agentwatch.contracts.shapes import Return
from agentwatch.delegation.run import Message, Run
from agentwatch.sources.sessions.fields import Fields, first_sentence
from agentwatch.sources.sessions.tail import line_at, records

_OPENING: Final = 200
_KNOWN: Final = 200_000
_JUDGED: Final = 2000

Broken = Callable[[str, Exception], None]
"""Takes the name of a reader, or of an entry point, that does not work, and what it raised."""


class ReaderError(Exception):
    """What a reader of somebody else's package raised, in words that name its type."""


Find = Callable[..., Iterable[str]]
"""All texts that stand in a place, such as a file and the offset of a line: among them the one that is looked for."""


class Change(NamedTuple):
    """A run as it is now, None where the store no longer has it. `key` names the run in the store, for ever."""

    key: str
    run: Run | None


class Found(NamedTuple):
    """A store, or a part of one, that was looked at: for `agentwatch sources`.

    `sessions` are those that a human began, `children` those that another session asked for. `skipped` says in one
    sentence why something is not read, "" where all is. Paths and texts are foreign.
    """

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
    """Reads the sessions of one workspace out of one program's store, and never writes there.

    One thread calls it. Nothing here raises for what a store holds: what cannot be read is told in `trouble`.
    """

    @property
    def name(self) -> str:
        """The name of the source: `claude-code`."""

    @property
    def trouble(self) -> str | None:
        """One sentence for the health line, None where all that should be readable is read."""

    def read(self, seconds: float) -> Sequence[Change]:
        """What has changed since the call before, working for about so many seconds at most.

        The last states of runs only: a run that changed twice is given once. Whether there is more to read at once
        is told by `progress`.
        """

    @property
    def progress(self) -> Progress:
        """How far the reading has come."""

    def text(self, digest: str) -> str | None:
        """A text handed over or back, by its digest; None where it is not to be had any more. Any thread may call."""

    def found(self) -> Sequence[Found]:
        """What was found, and what was skipped and why."""

    def close(self) -> None:
        """Give back what is open."""


def digest_of(text: str) -> str:
    """The sha256, in hex, that a text handed over or back is known by; half a character is one, too."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def may_follow_contract(text: str) -> bool:
    """Whether a text has an object or a heading: without, it follows no contract."""
    return "{" in text or "#" in text


def message(text: str, at: float, *, key: str, digest: str | None = None) -> Message:
    """A text as it was handed over or back, judged by the contracts; `key` stands for its file name."""
    opening = first_sentence(text, _OPENING)
    digest = digest or digest_of(text)
    if not may_follow_contract(text):
        # Most sessions need not wait until the contracts are loaded.
        return Message(at, digest, opening, None)
    # In the source's thread: the models of the contracts take as long to load as a screen to appear.
    from agentwatch.contracts.reading import read_document

    reading = read_document(text, key, embedded=True)
    # Who is asked and who answers is the caller's to know.
    both = reading is not None and isinstance(reading.document, Return) and "{" in text
    return Message(at, digest, opening, reading, read_document(text, key, handed_over=True) if both else None)


class StoreReader:
    """What many a `SessionReader` begins with; nothing is held open between two calls."""

    def __init__(self, name: str, texts: Texts) -> None:
        self.name: Final = name
        self._texts = texts
        self._given: Mapping[str, Run] = {}
        """The runs as they were last given, by key."""

    def text(self, digest: str) -> str | None:
        return self._texts.get(digest)

    def close(self) -> None:
        """Nothing is open."""

    def _give(self, runs: Mapping[str, Run]) -> list[Change]:
        """What has changed, now that these are all runs there are."""
        before, self._given = self._given, runs
        return changes_between(before, runs)

    def _found(self, place: object, skipped: str, runs: Iterable[Run]) -> Found:
        asked_for = [run.parent_session is not None for run in runs]
        return Found(self.name, str(place), asked_for.count(False), skipped, asked_for.count(True))


class Workspace:
    """The directory in which the agents work, whatever others call it."""

    def __init__(self, path: Path) -> None:
        self.path = os.path.realpath(path)
        self._same: dict[str, bool] = {}

    def is_at(self, directory: str) -> bool:
        """Whether this, as a foreign file names it, is the workspace."""
        known = self._same.get(directory)
        if known is None:
            try:
                known = os.path.isabs(directory) and os.path.realpath(directory) == self.path  # noqa: PTH117
            except (OSError, ValueError):
                known = False
            self._same[directory] = known
        return known


def spellings(workspace: Path) -> list[str]:
    """How a workspace may stand in a store: resolved, as programs do it, or as it is called."""
    names = dict.fromkeys((os.path.realpath(workspace), str(workspace.absolute())))
    return [os.fsencode(name).decode("utf-8", "replace") for name in names]


def changes_between(before: Mapping[str, Run], after: Mapping[str, Run]) -> list[Change]:
    """What turns these runs, by key, into those."""
    gone = [Change(key, None) for key in before.keys() - after.keys()]
    return gone + [Change(key, run) for key, run in after.items() if before.get(key) != run]


def several(count: int, noun: str) -> str:
    """A number of things: `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


class Texts:
    """Where the texts of one store stand: they are not kept, but found again. Any thread may call it.

    What `find` raises as OSError or ValueError is no text.
    """

    def __init__(self, find: Find) -> None:
        self._find = find
        self._places: dict[str, tuple[object, ...]] = {}
        self._made: dict[tuple[str, str], Message] = {}
        self._lock = threading.Lock()

    def message(self, text: str, at: float, *place: object, key: str) -> Message:
        """A text as a message, as the function does it. A copy of it is not judged again."""
        digest = digest_of(text)
        made = self._made.pop((digest, key), None)
        made = message(text, at, key=key, digest=digest) if made is None else replace(made, at=at)
        self._made[digest, key] = made
        if len(self._made) > _JUDGED:
            del self._made[next(iter(self._made))]
        self.note(digest, *place)
        return made

    def note(self, digest: str, *place: object) -> None:
        """A text with this digest stands in a place."""
        with self._lock:
            self._places.pop(digest, None)
            self._places[digest] = place
            if len(self._places) > _KNOWN:
                del self._places[next(iter(self._places))]

    def get(self, digest: str) -> str | None:
        """The text, None where it is no longer there or was never known."""
        with self._lock:
            place = self._places.get(digest)
        try:
            texts = self._find(*place) if place is not None else ()
            return next((text for text in texts if digest_of(text) == digest), None)
        except (OSError, ValueError):
            return None


def in_lines(
    texts_in: Callable[[Fields], Iterable[str]], line_at: Callable[[Path, int], bytes | None] = line_at
) -> Callable[[Path, int], Iterable[str]]:
    """Finds texts in the records of files of JSON lines."""

    def find(path: Path, offset: int) -> Iterator[str]:
        for fields in records(line_at(path, offset) or b""):
            yield from texts_in(fields)

    return find
