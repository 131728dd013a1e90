"""Several sources as one: files and session stores of the same workspace."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Final

from agentwatch.delegation.observation import Observation
from agentwatch.sources.files.documents import KnownFile
from agentwatch.sources.health import Batch, Health, Mode, health_of
from agentwatch.sources.source import Source

_WORST_FIRST: Final[tuple[Mode, ...]] = ("starting", "degraded", "polling", "live")


class CombinedSource:
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

    def start(self, emit: Callable[[Batch], None]) -> None:
        for number, source in enumerate(self._sources):
            source.start(self._teller(number, emit))

    def stop(self) -> None:
        for source in self._sources:
            source.stop()

    def scan(self) -> Batch:
        observations: list[Observation] = []
        for number, source in enumerate(self._sources):
            batch = source.scan()
            observations += batch.observations
            self._health[number] = batch.health
        return Batch(tuple(observations), self._together())

    def content(self, digest: str) -> str | None:
        return next((text for source in self._sources if (text := source.content(digest)) is not None), None)

    def _teller(self, number: int, emit: Callable[[Batch], None]) -> Callable[[Batch], None]:
        def tell(batch: Batch) -> None:
            with self._telling:
                self._health[number] = batch.health
                emit(Batch(batch.observations, self._together()))

        return tell

    def _together(self) -> Health:
        known = [self._health[number] for number in sorted(self._health)]
        problems = tuple(chain.from_iterable(health.problems for health in known))
        worst = min(known, key=lambda health: _WORST_FIRST.index(health.mode))
        detail = health_of(worst.mode, worst.detail, problems).detail
        return Health(
            worst.mode if len(known) == len(self._sources) else "starting",
            detail,
            sum(health.directories for health in known),
            sum(health.files for health in known),
            problems,
        )
