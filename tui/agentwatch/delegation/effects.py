"""What one task does to others: an abort ends those below, a fitter restores its station, and a child that was retried
too often is held against its parent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from agentwatch.delegation.claims import Verdict, overall
from agentwatch.delegation.decision import Action, Decision
from agentwatch.delegation.indexes import Deadlines
from agentwatch.delegation.problems import OVERRUN, finding_of
from agentwatch.delegation.retry import calls_fitter, overrun
from agentwatch.delegation.sums import ancestors, below
from agentwatch.delegation.task import PlacedFinding, State, Task


class Aborts:
    """The tasks that the operator aborted. Costs nothing as long as there is none."""

    def __init__(self, tasks: dict[str, Task]) -> None:
        self._tasks = tasks
        self._at: dict[str, float] = {}
        """When, in epoch seconds."""

    def end(self, task: Task) -> set[str]:
        """End a placed task that is open and stands below an abort. Returns the tasks below it for which that is
        different now, because it was aborted itself, or is so no more."""
        decision = task.binding
        at = decision.at if decision is not None and decision.action is Action.ABORT else None
        concerned = set(below(self._tasks, task.task_id)) if at != self._at.get(task.task_id) else set()
        self.drop(task.task_id)
        if at is not None:
            self._at[task.task_id] = at
        above = ancestors(self._tasks, task.task_id) if self._at else ()
        task.ended_with = next((one for one in above if one in self._at), None)
        if task.ended_with is not None and task.own_state.is_open:
            task.own_state = State.CANCELED
            task.ended_at = self._at[task.ended_with]
        return concerned

    def moved(self, task_ids: Iterable[str]) -> set[str]:
        """The tasks that an abort may end now, or no more, because these have another parent."""
        if not self._at:
            return set()
        return {one for task_id in task_ids for one in (task_id, *below(self._tasks, task_id))}

    def drop(self, task_id: str) -> None:
        """Forget a task."""
        self._at.pop(task_id, None)


_HAVE_ENDED: Final = frozenset({State.COMPLETED, State.PARTIAL, State.CANCELED})
"""Of a fitter: nobody has to decide about it before its station can go on."""


class _Fitter(NamedTuple):
    """What the handoffs of a fitter point to: decisions, by their ids, with the times at which they were first seen
    (epoch seconds), and the task that it restores; its state, None where what it says is false, and its end."""

    restores: str
    carried: dict[str, float]
    state: State | None
    ended_at: float | None


class Fitters:
    """The fitters of all tasks, and what became through them of the decisions that called them."""

    def __init__(self) -> None:
        self._by_station: defaultdict[str, dict[str, _Fitter]] = defaultdict(dict)
        self._stations: dict[str, str] = {}
        """By fitter, the task that it restores."""

    def take(self, task_id: str, task: Task | None) -> set[str]:
        """Take in a task that may be a fitter, None where it has gone. Returns the tasks that it restores, before or
        now, where something of that has changed."""
        fitter = None if task is None else _fitter(task)
        before = None
        if (station := self._stations.pop(task_id, None)) is not None:
            before = self._by_station[station].pop(task_id)
            if not self._by_station[station]:
                del self._by_station[station]
        if fitter is not None:
            self._stations[task_id] = fitter.restores
            self._by_station[fitter.restores][task_id] = fitter
        return set() if fitter == before else {one.restores for one in (before, fitter) if one is not None}

    def restored(self, task_id: str) -> list[float]:
        """When fitters have restored a task, in no order."""
        return [one.ended_at for one in self._of(task_id) if one.state is State.COMPLETED and one.ended_at is not None]

    def over(self, task_id: str) -> frozenset[str]:
        """The ids that ended fitters of a task name: where such a decision called one, the task is decided anew."""
        return frozenset(name for one in self._of(task_id) if one.state in _HAVE_ENDED for name in one.carried)

    def followed(self, decision: Decision) -> Decision:
        """A decision with what became of it in other tasks: only one that calls the fitter is carried out there, and
        only by a handoff that names both the decision and the task to restore."""
        if not calls_fitter(decision.action, decision.mode):
            return decision
        called = [one for one in self._of(decision.task_id) if decision.decision_id in one.carried]
        if called:
            decision = decision.acted(min(one.carried[decision.decision_id] for one in called))
        states = {one.state for one in called}
        return replace(decision, over=not states.isdisjoint(_HAVE_ENDED), restored=State.COMPLETED in states)

    def _of(self, task_id: str) -> Iterable[_Fitter]:
        return self._by_station[task_id].values() if task_id in self._by_station else ()


def _fitter(task: Task) -> _Fitter | None:
    packet = task.packet
    restores = packet.restores if packet is not None else None
    if restores is None or restores == task.task_id:
        return None
    # In reverse: of several handoffs with the same id, the first one tells when.
    carried = {
        attempt.packet.decision_id: attempt.handoff.at
        for attempt in reversed(task.attempts)
        if attempt.packet is not None and attempt.handoff is not None and attempt.packet.decision_id is not None
    }
    # A success of which a claim is false restores nothing, unless the operator accepted it as it is.
    is_false = task.binding is None and overall(task.claims) is Verdict.CONTRADICTED
    return _Fitter(restores, carried, None if is_false else task.own_state, task.ended_at)


class Decisions:
    """The decisions about all tasks, and what became of them through `fitters`."""

    def __init__(self, fitters: Fitters) -> None:
        self._fitters = fitters
        self._by_task: defaultdict[str, dict[str, Decision]] = defaultdict(dict)
        self.expiries = Deadlines()

    def take(self, decision: Decision) -> None:
        """A decision was made, or has got further."""
        self._by_task[decision.task_id][decision.decision_id] = decision

    def all(self) -> list[Decision]:
        """Every decision as it is now."""
        return [decision for decisions in self._by_task.values() for decision in decisions.values()]

    def of(self, task_id: str, now: float) -> list[Decision]:
        """The decisions about a task, in the order in which they were made."""
        decisions: list[Decision] = []
        if task_id not in self._by_task:
            return decisions
        for one in map(self._fitters.followed, self._by_task[task_id].values()):
            expired = one.is_expired(now)
            if one.expires_at is not None and not expired:
                self.expiries.put(task_id, one.expires_at)
            decisions.append(replace(one, expired=expired and not one.over))
        return sorted(decisions, key=lambda one: one.at)


class Overruns:
    """By parent, the children that were retried more often than the policy allows; a root answers for itself."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._by_parent: defaultdict[str, dict[str, PlacedFinding]] = defaultdict(dict)

    def of(self, task_id: str) -> tuple[PlacedFinding, ...]:
        """What is said of this parent."""
        return tuple(self._by_parent[task_id].values()) if task_id in self._by_parent else ()

    def take(self, task_id: str, task: Task | None) -> set[str]:
        """Take in how often a task was tried, None where it has gone. Returns the parents for whom that is new."""
        finding = _overrun(task) if task is not None and len(task.attempts) > 1 else None
        parent_id = None if finding is None or task is None else task.parent_id or task_id
        before = self._parents.get(task_id)
        if parent_id == before and (before is None or self._by_parent[before][task_id] == finding):
            return set()
        if before is not None:
            del self._parents[task_id], self._by_parent[before][task_id]
            if not self._by_parent[before]:
                del self._by_parent[before]
        if parent_id is not None and finding is not None:
            self._parents[task_id] = parent_id
            self._by_parent[parent_id][task_id] = finding
        return {one for one in (before, parent_id) if one is not None}


def _overrun(task: Task) -> PlacedFinding | None:
    counted = overrun(task)
    if counted is None:
        return None
    retries, allowed = counted
    latest = next((one for attempt in reversed(task.attempts) if (one := attempt.returned or attempt.handoff)), None)
    words = f"{task.task_id} was retried {retries} times, and the policy allows {allowed},"
    return PlacedFinding(finding_of(OVERRUN, words), latest.path if latest is not None else "")
