"""How much one host may have this machine hold. What is more is dropped, and shown as a problem of that host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from agentwatch.contracts.shapes import Document, Handoff, Return
from agentwatch.delegation.events import Ran, Requested, Seen
from agentwatch.remote.observed import Told
from agentwatch.sources.sessions.fields import messages

MEBIBYTE: Final = 1024 * 1024

MOST: Final[Mapping[str, int]] = MappingProxyType(
    {
        # Four times what a screen is made for.
        "tasks": 20_000,
        # Two attempts of each task.
        "runs": 40_000,
        # A program asks one thing at a time, and nobody answers a thousand. A tree's time grows with the square.
        "requests": 1_000,
        # Some 12 KiB for a task with its handoff, its return, its checks and its run.
        "MiB": 256 * MEBIBYTE,
    }
)
"""What may be held of one run of a relay. Bytes are those that are taken here, about."""

MOST_WORKSPACES: Final = 1_000
"""Each has a copy and a place in every beat; people work in dozens."""
LARGEST_HELLO: Final = 8 * MEBIBYTE
"""Bytes that a hello takes here: 8 KiB for the names and paths of each workspace."""
LARGEST_ANSWER: Final = 16 * MEBIBYTE
"""Characters of a text or a transcript that is fetched: twice the largest message, and nobody reads so much."""
LARGEST_TEXTS: Final = 32 * MEBIBYTE
"""Characters of all fetched texts that are held, so that two of the largest are at hand."""
MOST_RESULTS: Final = 1_000
"""Results of decisions that nobody has looked at yet: an operator signs a few a minute."""
LARGEST_RESULT: Final = 4 * MEBIBYTE
"""Bytes that the result of a decision takes: more than the largest envelope that is read."""

MOST_NEWS: Final = 256 * MEBIBYTE
"""Bytes of news that a tree is told before it is made anew of what is held: what is gone stays in it until then. An
hour or more of many agents at work."""
BUSY_SECONDS: Final = 60.0
"""A host that says so much in less time floods: its tree is made anew only now and then."""

_ENTRY: Final = 512
"""Bytes that the tree and the book need for an entry besides what is in it."""


def weight(value: Any) -> int:
    """The bytes that a value takes in memory, about; what several places share counts in each."""
    if isinstance(value, str):
        return 56 + len(value)
    if isinstance(value, tuple | list):
        return 56 + sum(map(weight, value))
    if isinstance(value, Mapping):
        return 232 + sum(weight(key) + weight(one) for key, one in value.items())
    fields = getattr(value, "__dataclass_fields__", None)
    return 32 if fields is None else 56 + sum(weight(getattr(value, name)) for name in fields)


def load_of(event: Told) -> Counter[str]:
    """What an observation adds to what is held, without its tasks."""
    load = Counter({"MiB": _ENTRY + weight(event)})
    if isinstance(event, Ran):
        load["runs"] = 1
    elif isinstance(event, Requested):
        load["requests"] = 1
    return load


def tasks_in(event: Told) -> Iterator[str]:
    """What the tasks are called that an observation speaks of."""
    if isinstance(event, Seen):
        yield from _named(event.document, event.path)
    elif isinstance(event, Ran) and event.run is not None:
        readings = (one for said in messages(event.run) for one in (said.reading, said.packet))
        for reading in readings:
            if isinstance(reading, Document):
                yield from _named(reading.document, event.path)


def _named(document: object, place: str) -> Iterator[str]:
    if isinstance(document, Handoff | Return):
        yield document.task_id or place
    if isinstance(document, Handoff) and document.parent_task_id:
        yield document.parent_task_id
    if isinstance(document, Return):
        yield from document.delegation_path


def excess(held: Mapping[str, int]) -> list[str]:
    """The kinds of which more is held than may be."""
    return [kind for kind, most in MOST.items() if held.get(kind, 0) > most]


def dropped_words(label: str, kind: str) -> str:
    """Says that more of this kind was dropped, in a sentence without its full stop."""
    most = MOST[kind] // MEBIBYTE if kind == "MiB" else MOST[kind]
    return f"{label} sends more than {most:,} {kind}: the rest is not taken in, so not all of it is shown"
