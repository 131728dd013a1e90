"""The sources of events: the base class of all sources, and what a source reports.

A source reads files, or the sessions of agent programs, in a thread of its own. Each event holds the whole state of a
file or run. So a restart, or another order of events, does no harm."""

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
    """Something that cannot be read. `place` is where, or "" if there is no single place. `message` gives the reason in
    a sentence. Both texts are untrusted."""

    source: str
    place: str
    message: str

    def __str__(self) -> str:
        return self.message if self.source == FILES else f"{self.source}: {self.message}"


class Health(NamedTuple):
    """How well a source sees, and the reason in `detail`. A source with a problem is degraded, once its first look is
    over. `notices` tell the operator about agentwatch's own files on the source's machine. All texts are untrusted."""

    mode: Mode
    detail: str
    problems: tuple[Problem, ...] = ()
    notices: tuple[str, ...] = ()


def health_of(mode: Mode, detail: str, problems: Sequence[Problem]) -> Health:
    """Return the health of a source that reads everything except the places of these problems."""
    if problems and mode != "starting":
        more = f", and {len(problems) - 1:,} more" if len(problems) > 1 else ""
        mode, detail = "degraded", str(problems[0]).rstrip(".") + more
    return Health(mode, detail, tuple(problems))


def combine_health(known: Sequence[Health]) -> Health:
    """Return the health of several sources, at least one: the worst mode of all, with the problems of all."""
    problems = tuple(problem for health in known for problem in health.problems)
    worst = min(known, key=lambda health: _WORST_FIRST.index(health.mode))
    detail = health_of(worst.mode, worst.detail, problems).detail
    return Health(worst.mode, detail, problems)


def print_problems(problems: Sequence[Problem]) -> None:
    """Print on standard error what a command could not read."""
    for problem in problems:
        print_error(f"agentwatch: not all can be seen: {clean(str(problem), 600)}")


class Batch(NamedTuple):
    """Events in the order of their `seq`, and the health after the last one. `starts_over`: forget earlier events."""

    events: tuple[Event, ...]
    health: Health
    starts_over: bool = False


class Source(Protocol):
    """A source of events. It runs in a thread of its own and never blocks the caller."""

    def remember(self, recalled: HistorySnapshot) -> None:  # noqa: ARG002
        """Take over the state of the files from agentwatch's last run. This is called before `start` or `scan`."""
        return

    def start(self, emit: Callable[[Batch], None]) -> None:  # noqa: ARG002
        """Begin to observe. The source's thread calls `emit`, first with the current state."""
        return

    def scan(self) -> Batch:
        """Read everything once and return the events. Call this only if the source was not started."""

    def stop(self) -> None:
        """End within a second. Nothing is emitted afterwards."""
        return

    @property
    def connection_facts(self) -> Sequence[tuple[str, str]]:
        """Labels and values that describe the connection to the source's machine. The values are untrusted."""
        return ()

    def reconnect(self) -> None:
        """Connect to the source's machine at once. The call blocks for a moment."""
        return

    def content(self, digest: str) -> str | None:
        """Return the text of an observed document, or None if the text is no longer kept.

        Raise NoAnswerError if only a host has the text, and the host does not answer."""

    def transcript(self, run: Run) -> RunTranscript | None:  # noqa: ARG002
        """Return the transcript of a run, or None if the run has none. Any thread may call this."""
        return None


class CombinedSource(Source):
    """All sources as one. The mode is the worst of all sources, and the problems are those of all sources."""

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
