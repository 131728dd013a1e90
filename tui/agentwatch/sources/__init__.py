"""Where events come from: files, and the sessions of agent programs. Here is what every source does and hands over.

Sources look, read and parse in threads of their own, and give the whole state of a file or run whenever it has changed:
so order, chunks and restarts cannot matter, and a key never waits for a disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from agentwatch.text import clean, complain

if TYPE_CHECKING:
    from agentwatch.delegation.events import Event, Run
    from agentwatch.sources.files.source import Recalled
    from agentwatch.sources.sessions.entries import RunTranscript

Mode = Literal["starting", "live", "polling", "degraded", "replay"]
_WORST_FIRST = ("starting", "degraded", "polling", "live", "replay")

FILES = "files"  # The name of the source that is the workspace itself


class Problem(NamedTuple):
    """Something that cannot be read: where ("" for no single place), and why, in a sentence. Both are unsanitised."""

    source: str
    place: str
    message: str

    def __str__(self) -> str:
        return self.message if self.source == FILES else f"{self.source}: {self.message}"


class Health(NamedTuple):
    """How well a source sees, and why. With a problem, it is degraded once its first look is over. `notices` are what
    the operator must know of what agentwatch keeps where the source is. Texts are foreign."""

    mode: Mode
    detail: str
    problems: tuple[Problem, ...] = ()
    notices: tuple[str, ...] = ()


def health_of(mode: Mode, detail: str, problems: Sequence[Problem]) -> Health:
    """The health of a source that sees all but these."""
    if problems and mode != "starting":
        more = f", and {len(problems) - 1:,} more" if len(problems) > 1 else ""
        mode, detail = "degraded", str(problems[0]).rstrip(".") + more
    return Health(mode, detail, tuple(problems))


def together(known: Sequence[Health]) -> Health:
    """The health of several, one at least: that of the one that sees worst."""
    problems = tuple(problem for health in known for problem in health.problems)
    worst = min(known, key=lambda health: _WORST_FIRST.index(health.mode))
    detail = health_of(worst.mode, worst.detail, problems).detail
    return Health(worst.mode, detail, problems)


def complain_of(problems: Sequence[Problem]) -> None:
    """Say on standard error what could not be read, for a command that looks once."""
    for problem in problems:
        complain(f"agentwatch: not all can be seen: {clean(str(problem), 600)}")


class Batch(NamedTuple):
    """Events in the order of their `seq`, and the health at the last of them. `anew`: nothing before them counts."""

    events: tuple[Event, ...]
    health: Health
    anew: bool = False


class Source(Protocol):
    """Where events come from. It runs on its own thread and never blocks the caller."""

    def remember(self, recalled: Recalled) -> None:  # noqa: ARG002
        """Take over what was known of the files when agentwatch last ran; called before `start` or `scan`."""
        return

    def start(self, emit: Callable[[Batch], None]) -> None:  # noqa: ARG002
        """Begin to observe; `emit` is called on the source's thread, with what was there first."""
        return

    def scan(self) -> Batch:
        """The events of one look; for a source that was not started."""

    def stop(self) -> None:
        """End within a second. Nothing is emitted afterwards."""
        return

    @property
    def about(self) -> Sequence[tuple[str, str]]:
        """The way to the machine that it is on, for people, by labels; foreign."""
        return ()

    def reconnect(self) -> None:
        """Try at once to reach that machine. Blocks for a moment."""
        return

    def content(self, digest: str) -> str | None:
        """The text of a document that was observed, None where it is not kept any more.

        Raises NoAnswerError where only a host has it, which does not answer.
        """

    def transcript(self, run: Run) -> RunTranscript | None:  # noqa: ARG002
        """The transcript of a run, None where there is none to be had. Any thread may call it."""
        return None


class CombinedSource(Source):
    """The batches of all sources. The health is that of the one that sees worst; each says why in its words."""

    def __init__(self, sources: Sequence[Source]):
        self._sources = sources
        self._health: dict[int, Health] = {}
        self._emitting = threading.Lock()

    def remember(self, recalled: Recalled) -> None:
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
        return Batch(events, together([batch.health for batch in batches]))

    def content(self, digest: str) -> str | None:
        return next((text for source in self._sources if (text := source.content(digest)) is not None), None)

    def transcript(self, run: Run) -> RunTranscript | None:
        return next((found for source in self._sources if (found := source.transcript(run)) is not None), None)

    def _emit(self, emit: Callable[[Batch], None], number: int, batch: Batch) -> None:
        with self._emitting:
            self._health[number] = batch.health
            health = together([health for _, health in sorted(self._health.items())])
            is_complete = len(self._health) == len(self._sources)
            emit(Batch(batch.events, health if is_complete else health._replace(mode="starting")))
