"""Handoffs that carry the operator's decisions out: who carries which, and which fitters restore whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set
from typing import Final, NamedTuple

from agentwatch.delegation.decision import Action, Decision
from agentwatch.delegation.task import State, Task

_HAVE_ENDED: Final = frozenset({State.COMPLETED, State.PARTIAL, State.CANCELED})
"""Of a fitter: nobody has to decide about it before its station can go on."""


class _Link(NamedTuple):
    """What the handoffs of one task point to: decisions, by their ids, with the times at which they were first seen
    (epoch seconds), and the task that it restores; its state and its end, where they matter to another task."""

    carried: tuple[tuple[str, float], ...] = ()
    restores: str | None = None
    state: State | None = None
    ended_at: float | None = None


_NONE: Final = _Link()


class Carriers:
    """What other tasks have to do with a decision: they carry its id, or restore the task that it is about."""

    def __init__(self) -> None:
        self._links: dict[str, _Link] = {}
        self._carriers: defaultdict[str, set[str]] = defaultdict(set)
        self._fitters: defaultdict[str, set[str]] = defaultdict(set)
        self._about: dict[str, str] = {}
        """By decision id, the task that was decided about."""

    def decide(self, decision: Decision) -> None:
        """A decision is known."""
        self._about[decision.decision_id] = decision.task_id

    def take(self, task_id: str, task: Task | None) -> set[str]:
        """Take in what a task points to, None where it has gone. Returns the other tasks that depend on it, before or
        now, where that has changed."""
        link, before = _link(task_id, task), self._links.get(task_id, _NONE)
        if link == before:
            return set()
        for decision_id, _ in before.carried:
            self._carriers[decision_id].discard(task_id)
        if before.restores is not None:
            self._fitters[before.restores].discard(task_id)
        self._links.pop(task_id, None)
        if link != _NONE:
            self._links[task_id] = link
        for decision_id, _ in link.carried:
            self._carriers[decision_id].add(task_id)
        if link.restores is not None:
            self._fitters[link.restores].add(task_id)
        concerned = {self._about.get(decision_id) for decision_id, _ in (*before.carried, *link.carried)}
        return {other for other in (*concerned, before.restores, link.restores) if other not in (None, task_id)}

    def restored(self, task_id: str) -> list[float]:
        """When fitters have restored a task, in no order."""
        fitters = (self._links[one] for one in self._fitters.get(task_id, ()))
        return [link.ended_at for link in fitters if link.state is State.COMPLETED and link.ended_at is not None]

    def over(self, task_id: str) -> frozenset[str]:
        """The ids of the decisions about a task that called a fitter who has ended: it can be decided anew."""
        return self._called(task_id, _HAVE_ENDED)

    def followed(self, decision: Decision) -> Decision:
        """A decision with what became of it in other tasks."""
        others = self._carriers.get(decision.decision_id, set()) - {decision.task_id}
        since = [at for one in others for carried, at in self._links[one].carried if carried == decision.decision_id]
        if since:
            decision = decision.acted(min(since))
        if decision.action is not Action.ESCALATE or decision.decision_id not in self.over(decision.task_id):
            return decision
        restored = decision.decision_id in self._called(decision.task_id, {State.COMPLETED})
        return decision._replace(over=True, restored=restored)

    def _called(self, task_id: str, states: Set[State]) -> frozenset[str]:
        """The decisions that called fitters of a task who are in one of these states."""
        fitters = (self._links[one] for one in self._fitters.get(task_id, ()))
        return frozenset(name for link in fitters if link.state in states for name, _ in link.carried)


def _link(task_id: str, task: Task | None) -> _Link:
    if task is None or task.packet is None:
        return _NONE
    # In reverse: of several handoffs with the same id, the first one tells when.
    carried = {
        attempt.packet.decision_id: attempt.handoff.at
        for attempt in reversed(task.attempts)
        if attempt.packet is not None and attempt.handoff is not None and attempt.packet.decision_id is not None
    }
    restores = task.packet.restores if task.packet.restores != task_id else None
    if not carried and restores is None:
        return _NONE
    if restores is None:
        return _Link(tuple(carried.items()))
    return _Link(tuple(carried.items()), restores, task.own_state, task.ended_at)
