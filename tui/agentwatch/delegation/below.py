"""What is summed up of the tasks below a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.task import CONTRADICTED, State

_What = TypeVar("_What")


class Counted(NamedTuple):
    """As what the sums above count a task."""

    state: State
    waits_as: str | None = None
    """Its state, or `CONTRADICTED`, where it needs the operator."""
    verdict: Verdict | None = None
    """Of a completed task, and of a contradicted one."""
    silent: bool | None = None
    """Whether it is past, where it is stale."""


@dataclass(slots=True)
class Below:
    """Sums over the tasks below one task, itself not included."""

    counts: dict[Counted, int] = field(default_factory=dict)
    tokens: int = 0
    """Used by all attempts below."""
    active_at: float = 0.0
    """The last sign of life below."""

    @property
    def tasks(self) -> int:
        return sum(self.counts.values())

    @property
    def states(self) -> dict[State, int]:
        return self._by(lambda one: one.state)

    @property
    def waiting(self) -> dict[str, int]:
        """By state, or `CONTRADICTED`, the tasks below that need the operator."""
        return self._by(lambda one: one.waits_as)

    @property
    def verdicts(self) -> dict[Verdict, int]:
        """How many completed tasks below are verified, and how many tasks below are contradicted."""
        return self._by(lambda one: one.verdict)

    def _by(self, what: Callable[[Counted], _What | None]) -> dict[_What, int]:
        counts: dict[_What, int] = {}
        for one, count in self.counts.items():
            if (key := what(one)) is not None:
                counts[key] = counts.get(key, 0) + count
        return counts

    @property
    def open(self) -> int:
        """Tasks that have not ended."""
        return sum(count for one, count in self.counts.items() if one.state.is_open)

    @property
    def ended(self) -> int:
        return self.tasks - self.open

    @property
    def completed(self) -> int:
        return self.states.get(State.COMPLETED, 0)

    @property
    def stale(self) -> int:
        """Tasks that work and are silent, without those that are past."""
        return sum(count for one, count in self.counts.items() if one.silent is False)

    @property
    def needs_operator(self) -> int:
        return sum(count for one, count in self.counts.items() if one.waits_as is not None)

    @property
    def worst_waiting(self) -> str | None:
        """The most urgent state below that waits for someone, or `CONTRADICTED`."""
        # A lie is more urgent than the results that claim it, and less than what has no result.
        lie = State.PARTIAL.urgency + 0.5
        return max(self.waiting, key=lambda word: lie if word == CONTRADICTED else State(word).urgency, default=None)
