"""How a task stands and since when, with those below it: the one state and the one age that every face shows. Pure."""

import math
from collections.abc import Iterable, Sequence

from agentwatch.delegation.decision import ENDING, SPECS
from agentwatch.delegation.run import Activity, ActivityKind
from agentwatch.delegation.task import Attempt, Shown, State, Task

IDLE = 3_600.0
"""Seconds for which the turn is the operator's after a session has ended its own, where nobody knows of its process."""

_HAND_ON = frozenset({"task", "agent", "spawn_agent", "wait", "wait_agent", "new_task", "invoke_agent"})
"""Tools, in small letters, with which an agent hands work on, and which return when that is done."""


def state_with_below(task: Task) -> State:
    """The state with those below: a task that has handed work on works; a mere name has the most urgent one below."""
    if task.inferred:
        states = (one.state for one in task.below.counts) if task.below else ()
        return max(states, key=lambda state: state.urgency, default=State.SUBMITTED)
    if task.deleted and task.own_state in (State.SUBMITTED, State.WORKING) and not task.open_below:
        # Whoever handed it out has taken it back.
        return State.CANCELED
    if task.below and (task.own_state is State.SUBMITTED or task.waits_for_work):
        return State.WORKING
    return task.own_state


def is_process_gone(task: Task) -> bool:
    """Whether a task works, and its process is gone."""
    run = task.run
    if not run or not run.process_gone or task.own_state is not State.WORKING:
        return False
    # A sign of the task itself, a minute after the last one of its session, says that somebody works on it.
    return task.updated_at <= run.updated_at + 60.0


def silent_from(task: Task, seconds: float) -> float:
    """When a working task has been silent for so long, with all below it; infinity if it waits, or does not work."""
    if task.state is not State.WORKING:
        return math.inf
    if task.run and task.run.process_gone:
        return -math.inf
    waits = task.below and any(one.state.is_open and one.state is not State.WORKING for one in task.below.counts)
    return math.inf if waits or task.alive_at is None else task.alive_at + seconds


def is_handing_on(doing: Activity | None) -> bool:
    """Whether an agent does nothing but wait for those to whom it has handed work."""
    return not doing or (doing.kind is ActivityKind.TOOL and not doing.over and doing.what.casefold() in _HAND_ON)


def shown_of(task: Task, now: float, stale_after: float) -> Shown:
    """How a task is shown: by what was decided and returned, what is asked, its process, and who works."""
    state, counts = task.state, task.below.counts if task.below else ()
    if task.inferred and state is not State.UNKNOWN:
        return max((one.shown for one in counts), key=lambda one: one.urgency, default=Shown(state))
    if task.contradicted and not task.binding:
        return Shown.FALSE
    ended_turn = task.is_session and task.own_state is State.COMPLETED and state is not State.UNKNOWN
    if not ended_turn and state not in (State.SUBMITTED, State.WORKING):
        return Shown(state)
    if task.gone:
        return Shown.GONE
    if any(one.shown is Shown.WORKING for one in counts):
        return Shown.WORKING
    awaited = any((one.shown.is_open and not one.past) or (one.asks and not ended_turn) for one in counts)
    if awaited and not _works_itself(task, now - stale_after):
        return Shown.WAITING
    if ended_turn:
        return Shown.IDLE if now < idle_until(task) else Shown.COMPLETED
    return Shown.SUBMITTED if state is State.SUBMITTED else Shown.SILENT if task.stale else Shown.WORKING


def _works_itself(task: Task, line: float) -> bool:
    """Whether a task with others below has given a sign of work of its own since a time, and after theirs."""
    if task.own_state is not State.WORKING or task.updated_at < line:
        return False
    if task.run:
        return not is_handing_on(task.did)
    return task.updated_at > (task.below.active_at if task.below else 0.0)


def idle_until(task: Task) -> float:
    """Until when the turn is the operator's, of a session that has ended its own."""
    run = task.run
    if not run or run.process_gone or run.one_shot:
        return -math.inf
    return math.inf if run.process_gone is False else (run.ended_at or run.updated_at) + IDLE


# Since when


def since_of(task: Task, children: Sequence[Task]) -> float | None:
    """When a task came to stand as it is shown (epoch seconds); None where no sign of that is known."""
    since = task.lost_since if task.shown is Shown.UNKNOWN else _since(task, children)
    return task.alive_at if since is None else since


def _since(task: Task, children: Sequence[Task]) -> float | None:
    shown, latest, run = task.shown, task.latest, task.run
    if task.inferred:
        # One that goes on or went wrong is enough to stand so; the others do when the last one of them does.
        pick = min if shown.urgency > Shown.FALSE.urgency else max
        return pick(_known(one.since for one in children if one.shown is shown), default=None)
    if (decided := decided_at(task)) is not None:
        return decided
    match shown:
        case Shown.CANCELED if task.deleted and task.own_state is not State.CANCELED:
            return task.deleted_at
        case Shown.SUBMITTED:
            return latest.started_at
        case Shown.WORKING:
            return _works_since(task, children)
        case Shown.WAITING:
            # Since the last one has stopped, and not before there was one to wait for.
            own = task.updated_at if not run else task.did.at if task.did else None
            given = (one.attempts[0].started_at for one in children if one.shown.is_open and one.attempts)
            first = min(_known(given), default=None)
            return max(_known([first, own, task.ended_at, *map(_stopped_at, children)]), default=None)
        case Shown.GONE:
            return max([task.updated_at, *_known(one.since for one in children if one.shown is shown)])
        case Shown.SILENT:
            return None
        case Shown.BLOCKED if task.request:
            return min(one.asked_at for one in task.requests if one.is_open)
    ended = task.ended_at if task.ended_at is not None or not run else run.updated_at
    if shown in (Shown.FALSE, Shown.COMPLETED, Shown.PARTIAL):
        # A claim may turn false, or true again, long after the return.
        return max(_known([ended, task.verdict_at]), default=None)
    return ended


def ended_at(attempt: Attempt) -> float | None:
    """When an attempt ended (epoch seconds): with its return, its run or a decision; None where nobody knows."""
    returned, run, decision = attempt.returned, attempt.run, attempt.binding
    if attempt.state not in (State.SUBMITTED, State.WORKING):
        if returned:
            return returned.at
        if run and run.ended_at is not None:
            return run.ended_at
    return decision.at if decision and decision.action in ENDING else None


def _stopped_at(task: Task) -> float | None:
    """When a task stopped to work; None where it never began."""
    if task.shown is not Shown.SUBMITTED:
        return task.ended_at or task.since
    return ended_at(task.attempts[-2]) if len(task.attempts) > 1 else None


def _works_since(task: Task, children: Sequence[Task]) -> float | None:
    """When the work that goes on began, or went on after an answer."""
    run, latest = task.run, task.latest
    began = latest.began_at
    if run and task.is_session and run.rounds:
        began = run.rounds[-1].began_at
    own = max(_known([began, *(one.ended_at for one in task.requests)]), default=None)
    working = (one for one in children if one.shown is Shown.WORKING and one.since)
    first = min(working, key=lambda one: one.since or 0.0, default=None)
    # A child that began while it worked is a part of that; one that went on after an answer has held it up until then.
    is_part = first and first.attempt == 1 and first.since == first.latest.began_at
    if not first or (task.own_state is State.WORKING and (is_part or not is_handing_on(task.did))):
        return own
    return first.since


def _known(times: Iterable[float | None]) -> list[float]:
    return [one for one in times if one is not None]


def decided_at(task: Task) -> float | None:
    """When the operator decided that a task stands as it does (epoch seconds); None where its files say so."""
    decision = task.binding
    state = SPECS[decision.action].state if decision else None
    # An acceptance leaves it as its return has it, and an open request stands above that.
    return decision.at if decision and (state == task.own_state or not (state or task.request)) else None
