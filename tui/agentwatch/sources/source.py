"""What every source does: the protocol between those who observe and the monitor; and several sources as one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from agentwatch.sources.files.documents import KnownFile
from agentwatch.sources.health import Batch, Health, together

if TYPE_CHECKING:
    from agentwatch.delegation.run import Run
    from agentwatch.sources.sessions.following import RunTranscript

Stirred = Callable[[bool], None]


class Source(Protocol):
    """Where observations come from. It runs on its own thread and never blocks the caller.
    A subclass need not say that it keeps nothing of files, or that it never begins."""

    def remember(self, files: Mapping[str, KnownFile], looked_at: float | None = None) -> None:  # noqa: ARG002
        """Take over what was known of the files when agentwatch last ran; called before `start` or `scan`."""
        return

    def known(self) -> Mapping[str, KnownFile]:
        """What to remember of the files for the next time, nothing where it cannot be told. Any thread may call it."""
        return {}

    def hear(self, stirred: Stirred) -> None:  # noqa: ARG002
        """Called before `start`: `stirred` is called on the source's thread when something may have happened to any
        file below the workspace, with whether it is told of all that does. One that watches no files never calls."""
        return

    def start(self, emit: Callable[[Batch], None]) -> None:  # noqa: ARG002
        """Begin to observe; `emit` is called on the source's thread, with what was there first."""
        return

    def scan(self) -> Batch:
        """What is there now, looked at once; for a source that was not started."""

    def stop(self) -> None:
        """End within a second. Nothing is emitted afterwards."""
        return

    def content(self, digest: str) -> str | None:
        """The text of a document that was observed, None where it is not kept any more.

        Raises NoAnswerError where only a host has it, which does not answer.
        """

    def transcript(self, run: Run) -> RunTranscript | None:  # noqa: ARG002
        """What stands in the transcript of a run, None where there is none to be had. Any thread may call it."""
        return None


class CombinedSource(Source):
    """What all of the sources observe. The health is that of the one that sees worst; each says why in its words."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._health: dict[int, Health] = {}
        self._telling = threading.Lock()

    def remember(self, files: Mapping[str, KnownFile], looked_at: float | None = None) -> None:
        for source in self._sources:
            source.remember(files, looked_at)

    def known(self) -> Mapping[str, KnownFile]:
        return dict(chain.from_iterable(source.known().items() for source in self._sources))

    def hear(self, stirred: Stirred) -> None:
        for source in self._sources:
            source.hear(stirred)

    def start(self, emit: Callable[[Batch], None]) -> None:
        for number, source in enumerate(self._sources):
            source.start(partial(self._tell, emit, number))

    def stop(self) -> None:
        for source in self._sources:
            source.stop()

    def scan(self) -> Batch:
        batches = [source.scan() for source in self._sources]
        self._health = {number: batch.health for number, batch in enumerate(batches)}
        return Batch(tuple(chain.from_iterable(batch.events for batch in batches)), self._together())

    def content(self, digest: str) -> str | None:
        return next((text for source in self._sources if (text := source.content(digest)) is not None), None)

    def transcript(self, run: Run) -> RunTranscript | None:
        return next((found for source in self._sources if (found := source.transcript(run)) is not None), None)

    def _tell(self, emit: Callable[[Batch], None], number: int, batch: Batch) -> None:
        with self._telling:
            self._health[number] = batch.health
            emit(Batch(batch.events, self._together()))

    def _together(self) -> Health:
        health = together([health for _, health in sorted(self._health.items())])
        return health if len(self._health) == len(self._sources) else health._replace(mode="starting")
