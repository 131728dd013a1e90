"""The sessions for somebody who looks again and again: what was read stays known, and only what is new is read."""

from __future__ import annotations

import threading

from agentwatch.delegation.observation import Observation, Ran
from agentwatch.sources.health import Batch
from agentwatch.sources.sessions.source import SessionsSource
from agentwatch.sources.source import Source


class KeptSessions(Source):
    """Each `scan` gives all runs there are, whoever asks and however often. Any thread may call."""

    def __init__(self, source: SessionsSource) -> None:
        self._source = source
        self._runs: dict[str, Observation] = {}
        self._scanning = threading.Lock()

    def scan(self) -> Batch:
        """What the stores hold now."""
        with self._scanning:
            batch = self._source.scan()
            for observation in batch.observations:
                if isinstance(observation, Ran):
                    self._runs.pop(observation.path, None)
                    if observation.run is not None:
                        self._runs[observation.path] = observation
            return Batch(tuple(self._runs.values()), batch.health)

    def content(self, digest: str) -> str | None:
        return self._source.content(digest)
