"""The delegation tree: a reducer over observations.

`apply` takes one observation and says which tasks changed. Its cost depends on the task concerned (its versions, its
depth, the tasks that wait for its id), never on how many tasks there are. The tree is a function of the observations
and their `seq`: any interleaving that keeps each file's own order gives the same one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from agentwatch.delegation import events as observed
from agentwatch.delegation import reasons, standing
from agentwatch.delegation.alarms import Alarms, alarmed_at
from agentwatch.delegation.aside import is_aside
from agentwatch.delegation.asks import is_past
from agentwatch.delegation.changes import Unclaimed
from agentwatch.delegation.claims import Call
from agentwatch.delegation.decision import Decision
from agentwatch.delegation.effects import Overruns
from agentwatch.delegation.events import (
    Checked,
    Decided,
    Event,
    Gone,
    Ran,
    Requested,
    Seen,
    Tick,
    Unreadable,
)
from agentwatch.delegation.making import Making
from agentwatch.delegation.problems import answered_in_prose, finding_of, missing_artifacts
from agentwatch.delegation.pulse import WINDOW, Spent
from agentwatch.delegation.request import Request
from agentwatch.delegation.requests import Asked
from agentwatch.delegation.rules import Rules
from agentwatch.delegation.run import Run
from agentwatch.delegation.task import PlacedFinding, Task, Version


class DelegationTree(Making):
    """All tasks of a workspace and how they hang together, judged by the `rules`.

    With `remembers`, the tasks of files that are gone stay; otherwise the tree converges to what is there. `host` is
    what the operator calls the machine that the workspace is on, "" for this one.
    """

    def __init__(self, rules: Rules = Rules(), *, remembers: bool = False, host: str = "") -> None:  # noqa: B008  it is immutable
        super().__init__(rules, remembers=remembers, host=host)
        self.lost_since: float | None = None
        """Since when nothing is known of it (epoch seconds), None while it is."""
        self._alarms = Alarms(self.tasks, rules.limits, self._due)
        self._overruns = Overruns()

    @property
    def runs(self) -> list[Ran]:
        """Every run of a session store as it is now."""
        return self._runs.all()

    def run(self, path: str) -> Run | None:
        """The run of this path as it is now; None where it is not known any more."""
        return self._runs.known(path)

    def run_of(self, call: Call) -> Run | None:
        """The run in whose transcript a call stands; None where it is not known any more."""
        return next(iter(self._runs.of_session((call.source, call.session_id))), None)

    def runs_below(self, run: Run) -> Iterator[Run]:
        """The runs that were asked for by the session of this one, and by theirs."""
        return self._runs.below(run)

    @property
    def decisions(self) -> list[Decided]:
        """Every decision as it is now."""
        of_attempts = [Decided(0, decision.at, decision.decision_id, decision) for decision in self._decisions.all()]
        return of_attempts + self._requests.decisions

    @property
    def requests(self) -> list[Requested]:
        """Every request as its holder told it last."""
        return self._requests.all

    @property
    def notices(self) -> list[PlacedFinding]:
        """What is wrong with files that belong to no task."""
        return self._unread.notices

    @property
    def troubled(self) -> set[str]:
        """The files that cannot be read or understood, of tasks and of nobody."""
        return self._unread.paths

    def leave_out(self, since: float) -> set[str]:
        """Leave out what has shown no sign of life since then (epoch seconds), each until something new speaks of it or
        names it as its parent. What sessions did stays, with what is above it. Returns what `apply` does."""
        changed, kept = self.settle(), set[str]()
        for task_id, task in self.tasks.items():
            hidden = self._unread.hidden(self._files.versions(task_id)).values()
            is_old = (task.alive_at or since) < since and is_past(task, since, *hidden)
            if task_id not in kept and (not is_old or self._runs.of(task_id)):
                kept.update((task_id, *self.ancestors(task_id)))
        old = [task for task, _ in self.preorder() if task.task_id not in kept]
        for task in old:
            self._left_out.add(task, self._files.versions(task.task_id))
        for task in reversed(old):
            self._rebuild_all(self._drop(task.task_id) if task.task_id in self.left_out else set())
        return changed | self.settle()

    def take_over(self, other: DelegationTree) -> None:
        """Take over what the operator has put aside in a tree of the same workspace."""
        self._sums.touched |= self.asides.take_over(other.asides)

    def apply(self, event: Event) -> set[str]:
        """Take one observation in. Returns the ids of the tasks that were added, changed (also in the sums over what is
        below) or removed."""
        self.take(event)
        return self.settle()

    def take_all(self, events: Iterable[Event]) -> None:
        """Take many in. Of the files that are seen one after the other, each task is made once."""
        seen: dict[str, None] = {}
        for event in events:
            if isinstance(event, Seen):
                seen.update(dict.fromkeys(self._see(event)))
                continue
            self._rebuild_all(seen)
            seen.clear()
            self.take(event)
        self._rebuild_all(seen)

    def take(self, event: Event) -> None:
        """Take one of many in: what depends on several tasks is not up to date until `settle` is called."""
        dirty: set[str] = set()
        match event:
            case Seen():
                dirty = self._see(event)
            case Gone(path=path):
                dirty = self._files.tasks_of(path) | self._unread.clear(path)
                dirty |= self._files.forget(path, undone=event.undone)
                if not self._files.is_gone(path):
                    self._checks.drop(path)
            case Tick():
                dirty = self._tick(event.at)
            case Ran(path=key, run=run):
                if not self._goes_on(event):
                    before = self._runs.known(key)
                    dirty = self._runs.see(event)
                    for session in {(one.source, one.session_id) for one in (before, run) if one is not None}:
                        dirty |= self._requests.follow(session)
            case Requested():
                dirty = self._requests.take(event)
            case Decided(decision=decision) if decision.request_id is not None:
                dirty = self._requests.decide(decision)
            case Decided(decision=decision):
                self._decisions.take(decision)
                dirty = {decision.task_id}
            case Checked():
                for task_id in self._check(event) & self.tasks.keys():
                    dirty |= self._judge(self.tasks[task_id])
            case Unreadable():
                dirty = self._unread.see(event)
            case observed.Noted(path=task_id, aside=aside):
                self._sums.touched |= self.asides.note(task_id, aside)
            case observed.Looked(at=at):
                self._sums.touched |= self.asides.look_since(at)
            case observed.Lost(at=at):
                self._lose(at if self.lost_since is None else self.lost_since)
            case observed.Reached():
                self._lose(None)
            case observed.Ruled(rules=rules):
                dirty = self._rule(rules)
        self._rebuild_all(dirty)

    def settle(self) -> set[str]:
        """Bring what depends on several tasks up to date for all that were touched. Returns what `apply` does."""
        self._sums.flush()
        touched, summed = self._sums.touched, self._sums.summed
        self._sums.touched, self._sums.summed = set(), set()
        for task_id in [*touched, *self._removed]:
            touched |= self._overruns.take(task_id, self.tasks.get(task_id))
        going_on, self._going_on = self._going_on & self.tasks.keys(), set()
        touched |= self._alarms.turn(touched | going_on | self._removed, summed)
        for task_id in touched & self.tasks.keys():
            task = self.tasks[task_id]
            task.parent_basis = self._linking.link(task_id).basis
            task.title = standing.title(task)
            task.findings = self._findings(task)
            task.why = reasons.why(task)
        attended = touched | going_on
        for task_id in (attended | summed) & self.tasks.keys():
            task = self.tasks[task_id]
            self._mark(task)
            # Where only the sums are different, only this can be, too.
            if task_id in attended or task.alarms or self._alarms.depends_on_below(task_id):
                self._attend(task)
            elif task.ask is not None:
                self._queue(task)
            is_lost = not task.past and (task.state.is_open or task.ask is not None)
            task.lost_since = self.lost_since if is_lost else None
        # How many are silent, and ask, stands above them, too; nothing else follows from that.
        self._sums.flush()
        changed = attended | summed | self._sums.summed | self._removed
        self._sums.summed, self._removed = set(), set()
        return changed

    @property
    def holds_until(self) -> float:
        """When time alone may change something; epoch seconds."""
        soonest = (one.soonest for one in (self._due, self._decisions.expiries, self._requests.expiries))
        return min(*soonest, min((one.at + WINDOW for one in self.spent()), default=math.inf))

    def signs(self) -> Iterator[float]:
        """The times by which it is judged what is past; epoch seconds."""
        for task in self.tasks.values():
            yield task.updated_at
            yield task.alive_at or 0.0
        yield from (one.at for one in self._decisions.all())
        yield from self._unread.times

    def spent(self) -> Iterator[Spent]:
        """Who used tokens in the last minute, as far as was told what time it is."""
        return self._spending.since(self.now - WINDOW)

    def request(self, request_id: str) -> Asked | None:
        """A request as it stands, and the task that asks it; None where it is not known, or its task has gone."""
        task = self.tasks.get(self._requests.place(request_id) or "")
        known = (one for one in task.requests if one.request_id == request_id) if task is not None else ()
        request = next(iter(known), None)
        return None if task is None or request is None else Asked(task.task_id, request)

    def requests_of(self, task_id: str) -> tuple[Request, ...]:
        """The requests of a task as they stand, also where it has gone with the last that was open."""
        task = self.tasks.get(task_id)
        return self._requests.of(task_id, self.now) if task is None else task.requests

    def answer_to(self, request_id: str) -> Decision | None:
        """What was decided about a request."""
        return self._requests.decision(request_id)

    def over(self, task_id: str) -> frozenset[str]:
        """The ids of decisions about a task after which it can be decided anew, where they called a fitter: all fitters
        that name them and have ended, for those that do not see the decisions themselves."""
        return self._fitters.over(task_id)

    def former_places(self, task_id: str, returned: Version) -> tuple[str, ...]:
        """Where a return lay before it was moved."""
        same = (one.path for one in self._files.versions(task_id) if one.digest == returned.digest)
        return tuple(dict.fromkeys(path for path in same if path != returned.path and self._files.is_gone(path)))

    def unclaimed(self, task: Task) -> Unclaimed | None:
        """The files that changed during the latest attempt and that no return claims; None where nothing is known.
        `apply` does not name a task for which only this is different."""
        return self._changes.unclaimed(task)

    def siblings_before(self, task: Task) -> Iterator[str]:
        """Ids of the siblings before a task, nearest first."""
        return self._sums.before(task)

    def _tick(self, now: float) -> set[str]:
        """Time has passed, or has gone back. Returns the tasks that have to be made anew."""
        dirty, due = set[str](), self._due.past(now)
        if now < self.now:
            # A replay or the clock has gone back: what has turned stale or expired since then was not so yet.
            due |= {task_id for task_id, task in self.tasks.items() if task.stale or task.alarms}
            due |= self.asides.again(now, self.now)
            dirty = {one.task_id for one in self._decisions.all() if one.is_expired(self.now)}
            dirty |= self._requests.expired(self.now)
        self.now = now
        self._sums.touched |= due & self.tasks.keys()
        return (dirty & self.tasks.keys()) | self._decisions.expiries.past(now) | self._requests.expiries.past(now)

    def _lose(self, at: float | None) -> None:
        """Nothing is known since then, or all is (None)."""
        self.lost_since = at
        self._sums.is_lost = at is not None
        for task in self.tasks.values():
            if task.state.is_open or task.ask is not None or task.lost_since is not None:
                self._sums.touched.add(task.task_id)
                self._sums.count(task)

    def _rule(self, rules: Rules) -> set[str]:
        """Judge by these rules from now on. Returns the tasks that have to be made anew."""
        if rules == self.rules:
            return set()
        self.rules, self.history_before, self._changes.silence = rules, rules.history_before, rules.stale_after
        self._alarms.limit(rules.limits)
        return set(self.tasks)

    def _check(self, checked: Checked) -> set[str]:
        """Take a check in. Returns the tasks that it is about."""
        concerned = self._files.tasks_of(checked.path) | self._runs.tasks_of(checked.path)
        # A return by its name alone may get its handoff later.
        if concerned or self._files.holds(checked.path):
            latest = [self.tasks[task_id].latest for task_id in concerned & self.tasks.keys()]
            self._checks.take(checked, {one.returned.digest for one in latest if one and one.returned})
        return concerned

    def _see(self, seen: Seen) -> set[str]:
        """A file holds this now. Returns the tasks that have to be made anew."""
        return self._unread.clear(seen.path) | self._files.see(seen)

    def _mark(self, task: Task) -> None:
        """What follows from the time and from what is below a task: it is silent, or, where it is only named, past."""
        past = is_past(task, self.history_before) if task.inferred else task.past
        silent_from = standing.silent_from(task, self.rules.stale_after)
        if silent_from is not None and self.now < silent_from:
            self._due.put(task.task_id, silent_from)
        stale = silent_from is not None and self.now >= silent_from
        if (past, stale) != (task.past, task.stale):
            task.past, task.stale = past, stale
            self._sums.count(task)

    def _attend(self, task: Task) -> None:
        """What a task asks: what is open about it, else its alarms, unless it was put aside."""
        # Where something else is open, that comes first.
        if task.alarms or task.question is None:
            task.alarms = self._alarms.of(task, self.now)
            task.question = self._alarms.words(task) if task.alarms else None
        task.alarmed_at = alarmed_at(task)
        self.asides.lay(task, self.now)
        task.ask = None if task.past or is_aside(task) else task.question
        self._sums.count(task)
        self._queue(task)
        self.asides.look(task)

    def _queue(self, task: Task) -> None:
        if task.ask is None:
            self.queue.discard(task.task_id)
        else:
            since = task.alarmed_at or task.ended_at or task.alive_at or 0.0
            is_lost = self.lost_since is not None
            self.queue.ask(task.task_id, self.holds(task), since, task.first_seq, task.request, is_lost=is_lost)

    def _findings(self, task: Task) -> tuple[PlacedFinding, ...]:
        own, versions = self._own_findings.get(task.task_id, ()), self._files.versions(task.task_id)
        findings = (*own, *missing_artifacts(task), *answered_in_prose(task))
        if (problem := self._linking.link(task.task_id).problem) is not None:
            findings += (PlacedFinding(finding_of(*problem), versions[0].path if versions else ""),)
        return findings + self._overruns.of(task.task_id) + self._unread.of(versions)
