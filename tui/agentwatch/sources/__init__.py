"""The base class of all sources of events, and the types of their results.

A source reads files, or the sessions of agent programs, in a thread of its own. Each event holds the whole state of a
file or a run. So events may be repeated after a restart, or come in another order."""

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

FILES = "files"  # the name of the source for the workspace's own files


class Problem(NamedTuple):
    """Something that cannot be read. `place` is its path, or "" if the problem has no single path. `message` is a
    sentence with the reason. Both texts are untrusted."""

    source: str
    place: str
    message: str

    def __str__(self) -> str:
        return self.message if self.source == FILES else f"{self.source}: {self.message}"


class Health(NamedTuple):
    """How well a source works. `detail` explains the mode. After the first read, a source with problems is degraded.
    `notices` are messages about agentwatch's own files on the source's machine. All texts are untrusted."""

    mode: Mode
    detail: str
    problems: tuple[Problem, ...] = ()
    notices: tuple[str, ...] = ()


def health_of(mode: Mode, detail: str, problems: Sequence[Problem]) -> Health:
    """Return the health of a source. If there are problems, a source that is not starting becomes degraded."""
    if problems and mode != "starting":
        more = f", and {len(problems) - 1:,} more" if len(problems) > 1 else ""
        mode, detail = "degraded", str(problems[0]).rstrip(".") + more
    return Health(mode, detail, tuple(problems))


def combine_health(known: Sequence[Health]) -> Health:
    """Combine the health of several sources: take the worst of their modes, and all their problems."""
    problems = tuple(problem for health in known for problem in health.problems)
    worst = min(known, key=lambda health: _WORST_FIRST.index(health.mode))
    detail = health_of(worst.mode, worst.detail, problems).detail
    return Health(worst.mode, detail, problems)


def print_problems(problems: Sequence[Problem]) -> None:
    """Print each problem on standard error."""
    for problem in problems:
        print_error(f"agentwatch: not all can be seen: {clean(str(problem), 600)}")


class Batch(NamedTuple):
    """Events in the order of their `seq`, and the source's health. If `starts_over`, all earlier events are void."""

    events: tuple[Event, ...]
    health: Health
    starts_over: bool = False


class Source(Protocol):
    """A source of events. It runs in a thread of its own and never blocks the caller."""

    def remember(self, recalled: HistorySnapshot) -> None:  # noqa: ARG002
        """Take over the files' state, as stored when agentwatch last ran. This is called before `start` or `scan`."""
        return

    def start(self, emit: Callable[[Batch], None]) -> None:  # noqa: ARG002
        """Start to observe. The source's thread calls `emit` with the current state, and later with each change."""
        return

    def scan(self) -> Batch:
        """Read everything once and return the events. Call this only if the source was not started."""

    def stop(self) -> None:
        """Stop the thread within a second. After that, `emit` is not called again."""
        return

    @property
    def connection_facts(self) -> Sequence[tuple[str, str]]:
        """Labels and values that describe the connection to the source's machine. The values are untrusted."""
        return ()

    def reconnect(self) -> None:
        """Connect to the source's machine again at once. The call blocks for a moment."""
        return

    def content(self, digest: str) -> str | None:
        """Return the text with this digest from an observed document. Return None if the text is no longer kept.

        Raise NoAnswerError if the text is on another machine, and that machine does not answer."""

    def transcript(self, run: Run) -> RunTranscript | None:  # noqa: ARG002
        """Return the transcript of a run, or None if the run has none. Any thread may call this."""
        return None


class CombinedSource(Source):
    """Several sources in the form of a single source. Its health combines the health of all sources."""

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
