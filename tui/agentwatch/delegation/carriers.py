"""Fitters: who restores whom, and by which of the operator's decisions."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Final, NamedTuple

from agentwatch.delegation.claims import Verdict, overall
from agentwatch.delegation.decision import Decision
from agentwatch.delegation.retry import calls_fitter
from agentwatch.delegation.task import State, Task

_HAVE_ENDED: Final = frozenset({State.COMPLETED, State.PARTIAL, State.CANCELED})
"""Of a fitter: nobody has to decide about it before its station can go on."""


class _Link(NamedTuple):
    """What the handoffs of a fitter point to: decisions, by their ids, with the times at which they were first seen
    (epoch seconds), and the task that it restores; its state, None where what it says is false, and its end."""

    carried: tuple[tuple[str, float], ...] = ()
    restores: str | None = None
    state: State | None = None
    ended_at: float | None = None


_NONE: Final = _Link()


class Carriers:
    """The fitters of all tasks, and what became through them of the decisions that called them."""

    def __init__(self) -> None:
        self._links: dict[str, _Link] = {}
        self._fitters: defaultdict[str, set[str]] = defaultdict(set)

    def take(self, task_id: str, task: Task | None) -> set[str]:
        """Take in a task that may be a fitter, None where it has gone. Returns the tasks that it restores, before or
        now, where something of that has changed."""
        link, before = _link(task_id, task), self._links.get(task_id, _NONE)
        if link == before:
            return set()
        if before.restores is not None:
            self._fitters[before.restores].discard(task_id)
        self._links.pop(task_id, None)
        if link != _NONE:
            self._links[task_id] = link
        if link.restores is not None:
            self._fitters[link.restores].add(task_id)
        return {other for other in (before.restores, link.restores) if other is not None}

    def restored(self, task_id: str) -> list[float]:
        """When fitters have restored a task, in no order."""
        fitters = (self._links[one] for one in self._fitters.get(task_id, ()))
        return [link.ended_at for link in fitters if link.state is State.COMPLETED and link.ended_at is not None]

    def over(self, task_id: str) -> frozenset[str]:
        """The ids that ended fitters of a task name: where such a decision called one, the task is decided anew."""
        fitters = (self._links[one] for one in self._fitters.get(task_id, ()))
        return frozenset(name for link in fitters if link.state in _HAVE_ENDED for name, _ in link.carried)

    def followed(self, decision: Decision) -> Decision:
        """A decision with what became of it in other tasks: only one that calls the fitter is carried out there, and
        only by a handoff that names both the decision and the task to restore."""
        if not calls_fitter(decision.action, decision.mode):
            return decision
        since, states = [], set()
        for link in (self._links[one] for one in self._fitters.get(decision.task_id, ())):
            called = [at for decision_id, at in link.carried if decision_id == decision.decision_id]
            since += called
            states |= {link.state} if called else set()
        if since:
            decision = decision.acted(min(since))
        return replace(decision, over=not states.isdisjoint(_HAVE_ENDED), restored=State.COMPLETED in states)


def _link(task_id: str, task: Task | None) -> _Link:
    if task is None or task.packet is None or task.packet.restores in (None, task_id):
        return _NONE
    # In reverse: of several handoffs with the same id, the first one tells when.
    carried = {
        attempt.packet.decision_id: attempt.handoff.at
        for attempt in reversed(task.attempts)
        if attempt.packet is not None and attempt.handoff is not None and attempt.packet.decision_id is not None
    }
    # A success of which a claim is false restores nothing, unless the operator accepted it as it is.
    is_false = task.binding is None and overall(task.claims) is Verdict.CONTRADICTED
    return _Link(tuple(carried.items()), task.packet.restores, None if is_false else task.own_state, task.ended_at)
