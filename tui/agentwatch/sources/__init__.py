"""The sources of events: files, and the sessions of agent programs; here are the base and the results of every source.

Sources look, read and parse in threads of their own, and emit the whole state of a file or run after each change: so
order, chunks and restarts do not matter, and a key never waits for a disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from agentwatch.text import clean, print_error

if TYPE_CHECKING:
    from agentwatch.delegation.events import Event, Run
    from agentwatch.sources.files.source import HistorySnapshot
    from agentwatch.sources.sessions.entries import RunTranscript

Mode = Literal["starting", "live", "polling", "degraded", "replay"]
_WORST_FIRST = ("starting", "degraded", "polling", "live", "replay")

FILES = "files"  # the name of the source for the workspace itself


class Problem(NamedTuple):
    """Something unreadable: the place ("" for no single place), and the reason in a sentence; both are unsanitised."""

    source: str
    place: str
    message: str

    def __str__(self) -> str:
        return self.message if self.source == FILES else f"{self.source}: {self.message}"


class Health(NamedTuple):
    """The state of a source's view, and the reason; with a problem it is degraded once the first look is over.
    `notices` are messages for the operator about agentwatch's own files on the source's machine. Texts are foreign."""

    mode: Mode
    detail: str
    problems: tuple[Problem, ...] = ()
    notices: tuple[str, ...] = ()


def health_of(mode: Mode, detail: str, problems: Sequence[Problem]) -> Health:
    """Return the health of a source that sees everything except these problems."""
    if problems and mode != "starting":
        more = f", and {len(problems) - 1:,} more" if len(problems) > 1 else ""
        mode, detail = "degraded", str(problems[0]).rstrip(".") + more
    return Health(mode, detail, tuple(problems))


def combine_health(known: Sequence[Health]) -> Health:
    """Return the health of several sources (at least one): the worst of them."""
    problems = tuple(problem for health in known for problem in health.problems)
    worst = min(known, key=lambda health: _WORST_FIRST.index(health.mode))
    detail = health_of(worst.mode, worst.detail, problems).detail
    return Health(worst.mode, detail, problems)


def print_problems(problems: Sequence[Problem]) -> None:
    """Print on standard error the problems of a command that looks once."""
    for problem in problems:
        print_error(f"agentwatch: not all can be seen: {clean(str(problem), 600)}")


class Batch(NamedTuple):
    """Events in the order of their `seq`, and the health after the last one; `anew`: forget all earlier events."""

    events: tuple[Event, ...]
    health: Health
    starts_over: bool = False


class Source(Protocol):
    """A source of events, which runs on its own thread and never blocks the caller."""

    def remember(self, recalled: HistorySnapshot) -> None:  # noqa: ARG002
        """Take over the state of the files from agentwatch's last run; called before `start` or `scan`."""
        return

    def start(self, emit: Callable[[Batch], None]) -> None:  # noqa: ARG002
        """Begin to observe; `emit` is called on the source's thread, first with the current state."""
        return

    def scan(self) -> Batch:
        """Return the events of one look; for a source that was not started."""

    def stop(self) -> None:
        """End within a second; nothing is emitted afterwards."""
        return

    @property
    def connection_facts(self) -> Sequence[tuple[str, str]]:
        """Facts about the connection to the source's machine, for people, by labels; foreign."""
        return ()

    def reconnect(self) -> None:
        """Connect at once to the source's machine; blocks for a moment."""
        return

    def content(self, digest: str) -> str | None:
        """Return the text of an observed document, None if it is not kept any more.

        Raise NoAnswerError if only a host has the text and does not answer.
        """

    def transcript(self, run: Run) -> RunTranscript | None:  # noqa: ARG002
        """Return the transcript of a run, None if there is none; any thread may call it."""
        return None


class CombinedSource(Source):
    """All sources as one; the health is the worst of theirs, with the problems of all."""

    def __init__(self, sources: Sequence[Source]):
        self._sources = sources
        self._health: dict[int, Health] = {}
        self._emitting = threading.Lock()

    def remember(self, recalled: HistorySnapshot) -> None:
        for source in self._sources:
            source.remember(recalled)

    def start(self, emit: Callable[[Batch], None]) -> None:
        for number, source in enumerate(self._sources):
            source.start(partial(self._emit, emit, number))

    def stop(self) -> None:
        for source in self._sources:
            source.stop()

    def scan(self) -> Batch:
        batches = [source.scan() for source in self._sources]
        events = tuple(chain.from_iterable(batch.events for batch in batches))
        return Batch(events, combine_health([batch.health for batch in batches]))

    def content(self, digest: str) -> str | None:
        return next((text for source in self._sources if (text := source.content(digest)) is not None), None)

    def transcript(self, run: Run) -> RunTranscript | None:
        return next((found for source in self._sources if (found := source.transcript(run)) is not None), None)

    def _emit(self, emit: Callable[[Batch], None], number: int, batch: Batch) -> None:
        with self._emitting:
            self._health[number] = batch.health
            health = combine_health([health for _, health in sorted(self._health.items())])
            is_complete = len(self._health) == len(self._sources)
            emit(Batch(batch.events, health if is_complete else health._replace(mode="starting")))
