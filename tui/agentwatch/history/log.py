"""The state changes of a session in their order, for `agentwatch log`: derived from observations, one line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.delegation.events import Event, Gone, Seen
from agentwatch.delegation.request import Request, RequestStage
from agentwatch.delegation.run import Doing, DoingKind
from agentwatch.delegation.task import State, Task
from agentwatch.delegation.tree import Tree
from agentwatch.text import clean, exact
from agentwatch.view.pulse import activity_document
from agentwatch.view.requests import document as request_document
from agentwatch.view.requests import request_words, standing_words
from agentwatch.view.times import iso
from agentwatch.view.words import doing_words, state_words

if TYPE_CHECKING:
    from agentwatch.view.documents import lists

_ID: Final = 80
_REASON: Final = 200
_BY: Final = 60


@dataclass(frozen=True, slots=True)
class StateChange:
    """A task came (`before` is None), went (`after` is None), or changed its state or its attempt.

    `at` is the time of the observation that showed it, in seconds since the epoch. `attempt` is the number of the
    latest attempt. `contradicted`: a claim of its return is false; that it is now, or is no more, is a change as well.
    `task_id` and `reason` are foreign and unsanitised.
    """

    at: float
    task_id: str
    before: State | None
    after: State | None
    attempt: int
    reason: str
    contradicted: bool = False


class Activity(NamedTuple):
    """A working task does something else. `at` is as in `StateChange`; texts are foreign and unsanitised."""

    at: float
    task_id: str
    doing: Doing


class RequestChange(NamedTuple):
    """A request of a task has got further, or is new. `at` is as in `StateChange`; its texts are foreign."""

    at: float
    task_id: str
    request: Request


Change = StateChange | Activity | RequestChange


class StateChanges:
    """What changes in a tree, told in the order of what was observed; with `tells_activity` also what tasks do."""

    def __init__(self, tree: Tree, *, tells_activity: bool = False) -> None:
        self._tree = tree
        self._tells_activity = tells_activity
        self._did: dict[str, Doing] = {}
        """What each working task was told to do last."""
        self._known = {task.task_id: _stand(task) for task in tree.tasks.values()}
        self._asked: dict[str, tuple[RequestStage, bool | None]] = {}
        """How far each request was told to have got, and whether it was allowed."""
        self.touched = set[str]()
        """The tasks that were told of or looked at, until somebody empties it."""
        self._at = float("-inf")
        self._held: dict[str, str] = {}
        """By file, the digest of what it holds."""

    def tell(self, events: Iterable[Event]) -> Iterator[Change]:
        """Apply observations to the tree, and give every state change in its order."""
        for together in self._moves(events):
            changed = self._tree.apply(*together)
            yield from self.after(changed, max(one.at for one in together))

    def turn(self, tree: Tree, at: float) -> list[Change]:
        """Another tree of the same workspace takes the place of the one before. Returns the changes that this makes."""
        before, self._tree = self._tree, tree
        return self.after({*before.tasks, *tree.tasks}, at)

    def after(self, changed: Iterable[str], at: float) -> list[Change]:
        """The changes of these tasks since the call before, those first seen first; none is earlier than one before."""
        tasks = self._tree.tasks
        changes: list[Change] = []
        self._at = at = max(self._at, at)
        self.touched |= (changed := set(changed))
        for task_id in sorted(changed, key=lambda task_id: (task_id in tasks and tasks[task_id].first_seq, task_id)):
            before, number, lied, accepted = self._known.pop(task_id, (None, 0, False, False))
            if (task := tasks.get(task_id)) is not None:
                self._known[task_id] = now = _stand(task)
                if (before, number, lied, accepted) != now:
                    why = _why(task, lied=lied and (before, number) == now[:2])
                    changes.append(StateChange(at, task_id, before, task.state, task.attempt, why, task.contradicted))
                changes += self._requests(at, task_id, task.requests)
                if self._tells_activity and (doing := self._news(task_id, task.doing)) is not None:
                    changes.append(Activity(at, task_id, doing))
            elif before is not None:
                changes += self._requests(at, task_id, self._tree.requests_of(task_id))
                changes.append(StateChange(at, task_id, before, None, number, "nothing speaks of it any more"))
        return changes

    def _requests(self, at: float, task_id: str, requests: Iterable[Request]) -> Iterator[RequestChange]:
        for request in sorted(requests, key=lambda one: one.asked_at):
            now = request.stage, request.allowed
            if self._asked.get(request.request_id) != now:
                self._asked[request.request_id] = now
                yield RequestChange(at, task_id, request)

    def _news(self, task_id: str, doing: Doing | None) -> Doing | None:
        """What a task does, where that is not what was told last. That it is over is no news."""
        before = self._did.pop(task_id, None)
        if doing is None:
            return None
        self._did[task_id] = doing
        is_known = before is not None and doing._replace(at=before.at, over=before.over) == before
        is_ticked = doing.kind is DoingKind.TODO and before is not None and doing.over is not before.over
        return doing if not is_known or is_ticked else None

    def _moves(self, events: Iterable[Event]) -> Iterator[list[Event]]:
        """Each by itself, but files that are gone and those in which their contents are found again: a directory was
        renamed, and nobody saw half of it."""
        moving: list[Event] = []
        lost: set[str] = set()
        for one in events:
            if not (isinstance(one, Gone) or (isinstance(one, Seen) and one.digest in lost)) and moving:
                yield moving
                moving, lost = [], set()
            if isinstance(one, Seen):
                self._held[one.path] = one.digest
            elif isinstance(one, Gone):
                lost.add(self._held.pop(one.path, ""))
            if lost:
                moving.append(one)
            else:
                yield [one]
        if moving:
            yield moving


def _stand(task: Task) -> tuple[State | None, int, bool, bool]:
    """What is told of a task when it changes; that it is accepted may change no state."""
    return task.state, task.attempt, task.contradicted, task.is_accepted


def _why(task: Task, *, lied: bool) -> str:
    """Why it is in its state, or what is false; of one that `lied` and is as it was otherwise, that nothing is."""
    if task.contradicted:
        return task.question or task.why
    return "no claim is false any more" if lied else task.why


def changes(events: Iterable[Event], tree: Tree | None = None) -> Iterator[StateChange]:
    """Replay observations and give every state change in its order. `tree` is an empty one with other settings."""
    told = StateChanges(Tree() if tree is None else tree).tell(events)
    return (change for change in told if isinstance(change, StateChange))


def line(change: Change) -> str:
    """One line, safe to print."""
    if isinstance(change, Activity):
        does = clean(doing_words(change.doing), _REASON)
        return f"{iso(change.at) or '-':<20}  {exact(change.task_id, _ID)}  · {does}"
    if isinstance(change, RequestChange):
        words = f"{request_words(change.request)}: {standing_words(change.request, change.at)}"
        by = f", {clean(change.request.by, _BY)}" if change.request.by else ""
        return f"{iso(change.at) or '-':<20}  {exact(change.task_id, _ID)}  {clean(words, _REASON)}{by}"
    before = change.before or "new"
    after = state_words(change.after or "gone", contradicted=change.contradicted)
    number = f"  attempt {change.attempt}" if change.attempt > 1 else ""
    reason = f"  {clean(change.reason, _REASON)}" if change.reason else ""
    return f"{iso(change.at) or '-':<20}  {exact(change.task_id, _ID)}  {before} → {after}{number}{reason}"


def document(change: Change) -> lists.Logged:
    """The change for programs; the texts are as they were written. A time of no world is null."""
    if isinstance(change, Activity):
        does = activity_document(change.doing, change.at)
        return {"at": iso(change.at), "task_id": change.task_id, "activity": does}
    if isinstance(change, RequestChange):
        return {"at": iso(change.at), "task_id": change.task_id, "request": request_document(change.request)}
    return {
        "at": iso(change.at),
        "task_id": change.task_id,
        "before": change.before,
        "after": change.after,
        "attempt": change.attempt,
        "reason": change.reason,
        "contradicted": change.contradicted,
    }
