"""Sorts the events of a workspace by time, and finds the changes of its tasks' states."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from agentwatch.delegation.decision import Request, RequestStage
from agentwatch.delegation.events import (
    Activity,
    ActivityKind,
    Checked,
    Decided,
    Event,
    Gone,
    Ran,
    Requested,
    Run,
    RunState,
    Seen,
    Tick,
)
from agentwatch.delegation.task import Shown, State
from agentwatch.delegation.tree import Tree


def order_events(events: Iterable[Event], now: float) -> list[Event]:
    """Sort the events by time. A run, a request or a decision is split into several events, one for each step."""
    latest: dict[str, float] = {}
    returned: dict[str | None, float] = {}
    seen_until = lost_at = float("-inf")
    timed: list[tuple[float, Event]] = []
    for event in _date_losses(list(events)):
        for one in _split_event(event, now):
            at = one.at
            if path := getattr(one, "path", ""):
                at = max(at, latest.get(path, at))
                # A verdict does not move later events, because it may be older than the reading of its session.
                latest |= {path: at} if not isinstance(one, Checked) else {}
            if isinstance(one, Seen):
                # A restored or renamed file keeps its old time. But it appeared after the last loss of a file.
                at = max(at, lost_at)
                seen_until = max(seen_until, at)
                returned.setdefault(one.digest, at)
            elif isinstance(one, Decided):
                # A decision's time has whole seconds. But the decision came after its return.
                at = max(at, returned.get(one.decision.return_sha256, at))
            elif isinstance(one, Gone):
                lost_at = at = max(at, seen_until)
            timed.append((at, one))
    # At equal times, put the decision before the end of its request, and a return before its verdict.
    timed.sort(key=lambda pair: (pair[0], isinstance(pair[1], Requested | Checked)))
    return [one for _, one in timed]


def _date_losses(events: Sequence[Event]) -> list[Event]:
    """Return the events. Set the time of each loss of a file to at most the time of the next new file."""
    # A file is new only if its content is new, because a renamed file keeps its old time.
    first = {one.digest: one.seq for one in reversed(events) if isinstance(one, Seen)}
    timed: list[Event] = []
    following = float("inf")
    for one in reversed(events):
        if isinstance(one, Seen) and first[one.digest] == one.seq:
            following = one.at
        timed.append(one._replace(at=min(one.at, following)) if isinstance(one, Gone) else one)
    return timed[::-1]


def _split_event(event: Event, now: float) -> Iterator[Event]:
    match event:
        case Ran(run=Run() as run):
            yield from _split_run(event, run)
        case Requested(request=Request() as request):
            yield event._replace(at=request.asked_at, request=request.as_first_asked)
            if not request.is_open:
                yield event._replace(at=request.ended_at or event.at)
        case Decided(decision=decision):
            for count, receipt in enumerate(decision.receipts, 1):
                at = max(receipt.at, decision.at)
                yield event._replace(at=at, decision=replace(decision, receipts=decision.receipts[:count]))
        case _:
            yield event
    if isinstance(event, Decided) and event.decision.is_expired(now):
        yield Tick(event.seq, event.decision.expires_at or now)


def _split_run(ran: Ran, run: Run) -> Iterator[Ran]:
    def ran_at(at: float | None, run: Run) -> Ran:
        # A session store may have a time in the future. The event's own time is the limit.
        return ran._replace(at=ran.at if at is None else min(at, ran.at), run=run)

    yield ran_at(run.started_at, _run_at_start(run, run))
    for number, one in enumerate(run.rounds[:-1], 1):
        following = run.rounds[number].began_at
        yield ran_at(
            following if one.ended_at is None else one.ended_at,
            replace(run.cut_rounds(0, number), updated_at=run.updated_at),
        )
        yield ran_at(following, _run_at_start(run, run.cut_rounds(0, number + 1)))
    yield ran_at(run.ended_at, run)


def _run_at_start(run: Run, part: Run) -> Run:
    """Return a run as it was when it, or the last round of its beginning `part`, had just begun."""
    began = run.started_at if part is run else part.rounds[-1].began_at
    # A run whose start was refused never lived. It has no model, because no model was called.
    lived = run.state is not RunState.SUBMITTED and (run.state is not RunState.FAILED or run.model is not None)
    return replace(
        part,
        updated_at=run.updated_at,
        state=RunState.WORKING if lived else RunState.SUBMITTED,
        ended_at=None,
        reason=("its session began" if part is run else "its next turn began") if lived else "",
        said=None,
        rounds=part.rounds if part is not run else (),
        todos=None,
        tokens=None,
        doing=None,
        process_gone=False,
        waiting="",
        permits=tuple(one for one in part.permits if one.at < began),
    )


class StateChange(NamedTuple):
    """A task changed its state at a time (epoch seconds). A new task has no `before`, a vanished task no `after`."""

    at: float
    task_id: str
    before: State | None
    after: State | None
    attempt: int
    reason: str
    contradicted: bool = False
    was_contradicted: bool = False


class ActivityChange(NamedTuple):
    """A working task began another activity, at a time in epoch seconds. The texts are untrusted."""

    at: float
    task_id: str
    doing: Activity


class RequestChange(NamedTuple):
    """A request of a task is new or reached another stage, at a time in epoch seconds. The texts are untrusted."""

    at: float
    task_id: str
    request: Request


Change = StateChange | ActivityChange | RequestChange


class StateChanges:
    """Finds the changes of a tree of tasks while events are applied. If `with_activity`, finds new activities, too."""

    def __init__(self, tree: Tree, *, with_activity: bool = False):
        self._tree = tree
        self._with_activity = with_activity
        # The last activity of each task, without its time. Its end is left out, too, except for todos.
        self._did: dict[str, Activity | None] = {}
        self.touched = set[str]()  # tasks that changed; the caller empties the set
        # By task: its state, its attempt, whether a claim is false, and whether the operator accepted the result.
        self._known: dict[str, tuple[State | None, int, bool, bool]] = {}
        # By request: its stage, and whether it was allowed.
        self._asked: dict[str, tuple[RequestStage, bool | None]] = {}
        self._at = float("-inf")

    def apply(self, events: Iterable[Event]) -> Iterator[Change]:
        """Apply the events to the tree one by one, and yield the changes."""
        for one in events:
            yield from self.changes_of(self._tree.apply(one), one.at)

    def changes_of(self, changed: Iterable[str], at: float) -> list[Change]:
        """Return the changes of these tasks since the last call, the oldest task first."""
        tasks = self._tree.tasks
        self._at = at = max(self._at, at)
        self.touched |= (changed := set(changed))
        changes: list[Change] = []
        for task_id in sorted(changed, key=lambda task_id: (task_id in tasks and tasks[task_id].first_seq, task_id)):
            task, known = tasks.get(task_id), self._known.pop(task_id, None)
            before, number, was_false = known[:3] if known is not None else (None, 0, False)
            if task:
                is_false = task.shown is Shown.FALSE
                now = self._known[task_id] = task.state, task.attempt, is_false, task.is_accepted
                if known != now:
                    why = task.question or task.why if is_false else task.why
                    if was_false and known is not None and (*known[:2], False, known[3]) == now:
                        why = "a claim was false, and none is any more"
                    change = StateChange(at, task_id, before, task.state, task.attempt, why, is_false, was_false)
                    changes.append(change)
            elif known is not None:
                gone = StateChange(at, task_id, before, None, number, "nothing speaks of it any more")
                changes.append(gone._replace(was_contradicted=was_false))
            requests = task.requests if task else self._tree.requests_of(task_id)
            for request in sorted(requests, key=lambda one: one.asked_at):
                stands = request.stage, request.allowed
                if self._asked.get(request.request_id) != stands:
                    self._asked[request.request_id] = stands
                    changes.append(RequestChange(at, task_id, request))
            doing = task.doing if task and self._with_activity else None
            did = doing and doing._replace(at=0.0, over=doing.over and doing.kind is ActivityKind.TODO)
            if doing and did != self._did.get(task_id):
                changes.append(ActivityChange(at, task_id, doing))
            self._did[task_id] = did
        return changes


def replay_state_changes(events: Iterable[Event], tree: Tree) -> Iterator[StateChange]:
    """Apply the events to an empty tree, and yield every state change."""
    return (change for change in StateChanges(tree).apply(events) if isinstance(change, StateChange))
