"""The small protocol of every reader of a session store, and what these readers have in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple, Protocol, runtime_checkable

from agentwatch.contracts.shapes import Document, Return
from agentwatch.delegation.run import Message, Run
from agentwatch.sources.sessions.fields import digest_of, first_sentence, object_in, read_notification

_OPENING: Final = 200
_JUDGED: Final = 200
"""Texts whose judgement is remembered: most stand in two or three places."""

Broken = Callable[[str, BaseException], None]
"""Called with the name of a reader that cannot be used, and why."""


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

    One thread at a time calls it. Nothing here raises for what a store holds: what cannot be read is told in `trouble`.
    """

    @property
    def name(self) -> str:
        """The name of the source: `claude-code`."""

    @property
    def trouble(self) -> str | None:
        """One sentence for the health line, None where all that should be readable is read."""

    def read(self, seconds: float) -> Sequence[Change]:
        """Changes since the call before, working for about so many seconds at most.

        The last states of runs only: a run that changed twice is given once. Whether there is more to read at once
        is told by `progress`.
        """

    @property
    def progress(self) -> Progress:
        """How far the reading has come."""

    def text(self, digest: str) -> str | None:
        """A text handed over or back, by its digest; None where it is not to be had any more."""

    def found(self) -> Sequence[Found]:
        """Stores that were found or skipped, and why."""

    def close(self) -> None:
        """Give back what is open."""


def message(text: str, at: float, *, key: str) -> Message:
    """A text as it was handed over or back, judged by the contracts; `key` stands for its file name."""
    return replace(_judged(text, key), at=at)


@lru_cache(_JUDGED)
def _judged(text: str, key: str) -> Message:
    opening, digest = first_sentence(text, _OPENING), digest_of(text)
    if "{" not in text and "#" not in text:
        # It follows no contract. Most sessions need not wait until the contracts are loaded.
        return Message(0.0, digest, opening, None)
    # In the source's thread: the models of the contracts take as long to load as a screen to appear.
    from agentwatch.contracts.reading import read_document

    reading = read_document(text, key, embedded=True)
    # Who is asked and who answers is the caller's to know.
    both = reading is not None and isinstance(reading.document, Return) and "{" in text
    packet = read_document(text, key, handed_over=True) if both else None
    # Their models stay only while somebody looks at them.
    light = (one and Document(one.document, one.findings, one.complete) for one in (reading, packet))
    return Message(0.0, digest, opening, *light)


class Texts:
    """Where the texts of one store stand: they are not kept, but found again by `find`, which gives all texts in a
    place. What it raises as OSError or ValueError is no text."""

    def __init__(self, find: Callable[..., Iterable[str]]) -> None:
        self._find = find
        self._places: dict[str, dict[tuple[object, ...], None]] = {}
        """By digest: a copy may be there still where another is gone."""

    def message(self, text: str, at: float, *place: object, key: str) -> Message:
        """A text as a message, as the function does it."""
        made = message(text, at, key=key)
        self._places.setdefault(made.digest, {})[place] = None
        return made

    def get(self, digest: str) -> str | None:
        """The text, None where it is no longer there or was never known."""
        for place in reversed(self._places.get(digest, {})):
            with suppress(OSError, ValueError, RecursionError):
                for text in self._find(*place):
                    if digest_of(text) == digest:
                        return text
        return None


def texts_in(value: object) -> Iterator[str]:
    """All texts in a record that a message may be made of: its strings, also those in JSON that is written in a string,
    and the parts of a message together."""
    if isinstance(value, str):
        yield value
        if value.startswith("{"):
            yield from texts_in(object_in(value))
        elif (told := read_notification(value)) is not None:
            yield told.said or ""
    elif isinstance(value, dict):
        for one in value.values():
            yield from texts_in(one)
    elif isinstance(value, list):
        parts = [one for one in value if isinstance(one, dict) and one.get("thought") is not True]
        words = [said for one in parts if isinstance(said := one.get("text"), str)]
        yield from ("\n".join(words), "".join(words))
        for one in value:
            yield from texts_in(one)


class StoreReader:
    """The base of our readers; nothing is held open between two calls."""

    name: str

    def __init__(self, find_texts: Callable[..., Iterable[str]]) -> None:
        self.texts = Texts(find_texts)
        self.given: Mapping[str, Run] = {}
        """The runs as they were last given, by key."""

    def text(self, digest: str) -> str | None:
        return self.texts.get(digest)

    def close(self) -> None:
        """Nothing is open."""

    def give(self, runs: Mapping[str, Run]) -> list[Change]:
        """What has changed, now that these are all runs there are."""
        before, self.given = self.given, runs
        gone = [Change(key, None) for key in before.keys() - runs.keys()]
        changed = ((key, run) for key, run in runs.items() if before.get(key) is not run)
        return gone + [Change(key, run) for key, run in changed if before.get(key) != run]


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


def several(count: int, noun: str) -> str:
    """A number of things: `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
