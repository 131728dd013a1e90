"""The delegation tree: events in, tasks out.

`Tree.apply` takes a batch of events and says which tasks changed. The tree is a function of the events and their `seq`:
any interleaving that keeps each file's own order gives the same one.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from operator import attrgetter
from typing import Final, NamedTuple

from agentwatch.delegation import events as events_
from agentwatch.delegation import links, states
from agentwatch.delegation.asks import (
    Asides,
    ask,
    ask_to_mend,
    asks_for_process,
    changed_at,
    gone_words,
    is_aside,
    is_past,
    is_process_gone,
    queue_rank,
)
from agentwatch.delegation.attempts import counting, fold
from agentwatch.delegation.claims import Verdict, overall
from agentwatch.delegation.decision import Action, Decision
from agentwatch.delegation.events import Checked, Decided, Event, Ran, Requested, Rules, Seen, Unreadable
from agentwatch.delegation.files import Files
from agentwatch.delegation.identity import place_of
from agentwatch.delegation.request import Asked, Request, Requests
from agentwatch.delegation.retry import budget, calls_fitter
from agentwatch.delegation.run import Runs
from agentwatch.delegation.task import (
    AT_WORK,
    NOWHERE,
    Below,
    Link,
    Place,
    PlacedFinding,
    State,
    Task,
    Version,
    kind_of,
    sums_with_below,
)

_NOBODY: Final = frozenset[int]()

_HAVE_ENDED: Final = frozenset({State.COMPLETED, State.PARTIAL, State.CANCELED})
"""Of a fitter: nobody has to decide about it before its station can go on."""


class Ids(dict[str, None]):
    """Ids in an order."""

    def some(self, count: int, first: str | None = None) -> list[str]:
        """At most so many, from this one on and then around; from the first on where this one is not there."""
        names = [*self]
        start = names.index(first) if first in self else 0
        return [*names[start:], *names[:start]][:count]


class _Fitter(NamedTuple):
    """Targets of the handoffs of a fitter: decisions, by their ids, with the times at which they were first seen
    (epoch seconds), and the task that it restores; its state, None where what it says is false, and its end."""

    restores: str
    carried: dict[str, float]
    state: State | None
    ended_at: float | None


class Tree:
    """All tasks of a workspace and how they hang together, judged by the `rules`.

    With `remembers`, the tasks of files that are gone stay; otherwise the tree converges to what is there. `host` is
    what the operator calls the machine that the workspace is on, "" for this one.
    """

    def __init__(self, rules: Rules = Rules(), *, remembers: bool = False, host: str = "") -> None:  # noqa: B008  it is immutable
        self.rules, self.host = rules, host
        self.tasks: dict[str, Task] = {}
        self.structure = 0  # is another number when tasks have come, gone or moved
        self.roots: Sequence[str] = []  # ids of the tasks without a parent, in the order first seen
        self.asides = Asides(self.tasks)  # what the operator has put aside and looked at
        self.now = -math.inf  # the time of the last tick, in epoch seconds; minus infinity before the first
        self.lost_since: float | None = None  # since when nothing is known of it (epoch seconds), None while it is
        # What was observed
        self._files = Files(remembers=remembers)
        self.runs = Runs()
        """Runs of session stores."""
        self._requests = Requests(self.runs)
        self._checks = defaultdict[str, dict[str, Checked]](dict)  # what was found about returns, by path and digest
        self._decisions = defaultdict[str, dict[str, Decision]](dict)
        # What one task does to others
        self._fitters: dict[str, _Fitter] = {}
        self._aborts: dict[str, float] = {}  # the tasks that the operator aborted, and when
        self._ended: dict[str, tuple[str, float]] = {}  # the tasks below them: by which abort, and when
        self._links = links.Links(self.tasks, self.runs.task_of)
        # What is to be worked out again
        self._dirty: dict[str, None] = {}  # the tasks to be folded
        self._touched: set[str] = set()  # the tasks that were folded, or of which something else has changed
        self._removed: set[str] = set()

    # Events

    def apply(self, *events: Event) -> set[str]:
        """Apply a batch."""
        self.add(events)
        return self.settle()

    def add(self, events: Iterable[Event]) -> None:
        """Apply a part of a batch: what depends on several tasks is not up to date until `settle` is called."""
        checked = set[str]()
        for event in events:
            self._dirty |= dict.fromkeys(self._store(event))
            if isinstance(event, Checked):
                checked.add(event.path)
        self._fold_all()
        for path in checked:
            self._drop_old_checks(path)

    def _store(self, event: Event) -> Iterable[str]:
        """Keep what an event says. Returns the tasks that have to be folded again."""
        match event:
            case Seen():
                return self._files.see(event)
            case events_.Gone(path=path):
                concerned = self._files.forget(path, undone=event.undone)
                if not self._files.is_gone(path):
                    self._checks.pop(path, None)
                return concerned
            case Unreadable():
                return self._files.refuse(event)
            case events_.Tick():
                return self._tick(event.at)
            case Ran():
                before = self.runs.known(event.path)
                concerned = self.runs.see(event)
                executes, executed = (one and (one.session, one.task_id) for one in (event.run, before))
                for session in {one.session for one in (before, event.run) if one is not None}:
                    if executes != executed:
                        self._links.touch(session)
                    concerned |= self._requests.follow(session)
                return concerned
            case Requested():
                return self._requests.see(event)
            case Decided(decision=decision) if decision.request_id is not None:
                return self._requests.decide(decision)
            case Decided(decision=decision):
                self._decisions[decision.task_id][decision.decision_id] = decision
                return {decision.task_id}
            case Checked():
                concerned = self._tasks_of(event.path)
                # A return by its name alone may get its handoff later.
                if concerned or self._files.is_known(event.path):
                    checks = self._checks[event.path]
                    checks.pop(event.digest, None)
                    checks[event.digest] = event
                return concerned & self.tasks.keys()
            case events_.Noted(path=task_id, aside=aside):
                self.asides.known[task_id] = aside
                self._touched.add(task_id)
            case events_.Looked(at=at):
                self.asides.looked_at = at
                self._touched |= self.tasks.keys()
            case events_.Lost(at=at):
                self.lost_since = at if self.lost_since is None else self.lost_since
                self._touched |= self.tasks.keys()
            case events_.Reached():
                self.lost_since = None
                self._touched |= self.tasks.keys()
            case events_.Ruled(rules=rules) if rules != self.rules:
                self.rules = rules
                return self.tasks
        return ()

    def _tick(self, now: float) -> list[str]:
        before, self.now = self.now, now
        tasks = self.tasks.items()
        if now >= before:
            due = [task_id for task_id, task in tasks if task.facts.due <= now]
            self._touched.update(due)
            return [task_id for task_id in due if self.tasks[task_id].facts.expires_at <= now]
        # A replay or the clock has gone back: what has expired or turned stale since then was not so yet.
        aside = self.asides.known
        self._touched.update(one for one, task in tasks if task.stale or one in aside)
        return [task_id for task_id in self.tasks if any(now < at <= before for at in self._expiries(task_id))]

    def _expiries(self, task_id: str) -> list[float]:
        """When what was decided about a task, or about what it asks, expires (epoch seconds)."""
        decided = (one.expires_at for one in self._decisions.get(task_id, {}).values())
        return [*self._requests.expiring(task_id), *(at for at in decided if at is not None)]

    def _tasks_of(self, path: str) -> set[str]:
        """The tasks that the versions of a file, or a run, speak of."""
        run = self.runs.known(path)
        return self._files.tasks_of(path) | ({run.task_id} if run is not None else set())

    def _drop_old_checks(self, path: str) -> None:
        """Of the checks of a file, the last stays, and those of the latest returns of tasks: it may have held those of
        several, one after the other."""
        tasks = [self.tasks[task_id] for task_id in self._tasks_of(path) & self.tasks.keys()]
        latest = {task.latest.returned.digest for task in tasks if task.latest and task.latest.returned}
        checks = self._checks.get(path, {})
        for digest in [*checks][:-1]:
            if digest not in latest:
                del checks[digest]

    # Each task by itself

    def _fold_all(self) -> None:
        while self._dirty:
            dirty, self._dirty = self._dirty, {}
            for task_id in dirty:
                self._fold(task_id)

    def _fold(self, task_id: str) -> None:
        """Make a task anew from all that is known of it."""
        versions, runs = self._files.versions(task_id), self.runs.of_task(task_id)
        requests = self._requests.of_task(task_id, self.now)
        is_named = task_id in self._links.named
        if not (versions or runs or is_named or any(one.is_open for one in requests)):
            self._drop(task_id)
            return
        task = self.tasks.get(task_id)
        if task is None:
            task = self.tasks[task_id] = Task(task_id, title=task_id, host=self.host)
        self._touched.add(task_id)
        task.requests = requests
        self._fill(task, versions, runs)
        self._place(task, versions, runs)
        self._judge(task, versions)

    def _fill(self, task: Task, versions: tuple[Version, ...], runs: list[Ran]) -> None:
        """All that a task's own documents, runs and decisions say."""
        facts, decisions = task.facts, self._decisions_of(task.task_id)
        expiries = (at for at in self._expiries(task.task_id) if at > self.now)
        facts.expires_at = facts.due = min(expiries, default=math.inf)
        versions = counting(versions, decisions)
        is_gone, began_in = self._files.is_gone, self.runs.began_in
        attempts = fold(versions, runs, decisions, self.rules, is_gone=is_gone, began_in=began_in)
        task.inferred = not versions and not runs and not task.requests
        task.deleted = bool(versions) and not runs and all(is_gone(one.path) for one in versions)
        task.attempts = tuple(attempts.all)
        task.todos, task.todo_moved = attempts.todos, attempts.moved
        packet, result, latest = task.packet, task.result, task.latest
        task.agent = states.agent_of(task, packet, result)
        task.reported_state = result.reported_state if result else None
        task.contract = document.contract if (document := result or packet) else None
        lives = [version.at for version in versions]
        lives += [ran.run.updated_at for ran in runs if ran.run is not None]
        lives += [at for one in task.requests for at in (one.asked_at, one.ended_at) if at is not None]
        task.updated_at = max(lives, default=0.0)
        task.own_state = states.waiting_state(task, states.decided_state(latest) if latest else State.SUBMITTED)
        task.started_at = latest.started_at if latest else None
        task.ended_at = states.ended_at(latest) if latest else None
        current = (latest.handoff, latest.returned, attempts.checklist) if latest else ()
        placed = (PlacedFinding(one, version.path) for version in current if version for one in version.findings)
        facts.findings = (*attempts.problems, *placed)
        answers = (one for one in decisions if one.action is Action.RESPOND and not one.expired)
        task.answered = frozenset(one.attempt for one in answers) if decisions else _NOBODY
        restored = [
            one.ended_at
            for one in self._fitters_of(task.task_id)
            if one.state is State.COMPLETED and one.ended_at is not None
        ]
        task.retry = budget(task, max_retries=self.rules.max_retries, restored=restored)
        used = [one.run.tokens for one in task.attempts if one.run is not None and one.run.tokens is not None]
        task.tokens = sum(used) if used else None
        facts.overrun = links.overrun_of(task)

    def _place(self, task: Task, versions: tuple[Version, ...], runs: list[Ran]) -> None:
        """Work out the place of a task, and its effect on others."""
        task_id, first_seq = task.task_id, None
        if versions:
            first_seq = versions[0].seq
        elif runs and (run := runs[0].run) is not None:
            # By its time, and not by when it was observed: sources look at the newest session first.
            first_seq = int(run.began_at * 1e6) * (-1 if task.is_session else 1)
        place = Place(
            task.packet.parent_task_id if task.packet else None,
            tuple(
                (ran.run.source, ran.run.parent_session)
                for ran in reversed(runs)
                if ran.run is not None and ran.run.parent_session is not None
            ),
            links.path_of(versions),
            place_of(versions),
            first_seq,
            versions[0].seq if versions else 0,
            min((one.asked_at for one in task.requests), default=None),
        )
        binding = task.binding
        aborted_at = binding.at if binding is not None and binding.action is Action.ABORT else None
        if (before := task.facts.place) is NOWHERE or place != before:
            named = self._links.move(task_id, None if before is NOWHERE else before, place)
            self._dirty |= dict.fromkeys(one for one in named if one not in self.tasks)
            task.facts.place = place
        if aborted_at != self._aborts.get(task_id):
            self._links.moved.add(task_id)
        if aborted_at is None:
            self._aborts.pop(task_id, None)
        else:
            self._aborts[task_id] = aborted_at
        task.ended_with, ended_at = self._ended.get(task_id, (None, 0.0))
        if task.ended_with is not None and task.own_state.is_open:
            task.own_state, task.ended_at = State.CANCELED, ended_at

    def _judge(self, task: Task, versions: tuple[Version, ...]) -> None:
        """Apply the checks of a task, and work out its question."""
        returned = task.latest.returned if task.latest is not None else None
        checked = self._checks.get(returned.path, {}).get(returned.digest) if returned is not None else None
        task.claims = checked.claims if checked else ()
        task.unsaid = checked.unsaid if checked else ()
        task.is_checked = checked is not None
        task.verdict = overall(task.claims) if task.own_state in (State.COMPLETED, State.PARTIAL) else None
        hidden = self._files.hidden(versions) if task.own_state is not State.CANCELED else {}
        task.gone = False
        task.question = ask_to_mend(next(iter(hidden))) if hidden else ask(task, self.rules.low_confidence)
        if not task.inferred:
            task.past = is_past(task, self.rules.history_before, *hidden.values())
        self._set_fitter(task.task_id, _fitter(task))
        if task.facts.is_gone is not (gone := is_process_gone(task)):
            # Which of the tasks that a process ran asks depends on the one above.
            task.facts.is_gone = gone
            self._touched |= set(task.children)

    def _drop(self, task_id: str) -> None:
        if (task := self.tasks.pop(task_id, None)) is None:
            return
        self._links.move(task_id, task.facts.place, None)
        self._set_children(task, with_it=False)
        self._removed.add(task_id)
        self._aborts.pop(task_id, None)
        self._set_fitter(task_id, None)

    def _decisions_of(self, task_id: str) -> list[Decision]:
        """The decisions about a task, in the order in which they were made, with what became of them: one that calls
        the fitter is carried out by a handoff that names both the decision and the task to restore."""
        decisions = map(self._followed, self._decisions.get(task_id, {}).values())
        return sorted(
            (replace(one, expired=one.is_expired(self.now) and not one.over) for one in decisions), key=attrgetter("at")
        )

    def _followed(self, decision: Decision) -> Decision:
        if not calls_fitter(decision.action, decision.mode):
            return decision
        called = [one for one in self._fitters_of(decision.task_id) if decision.decision_id in one.carried]
        if called:
            decision = decision.acted(min(one.carried[decision.decision_id] for one in called))
        has_ended = {one.state for one in called} & _HAVE_ENDED
        return replace(decision, over=bool(has_ended), restored=State.COMPLETED in has_ended)

    def _fitters_of(self, task_id: str) -> list[_Fitter]:
        return [one for one in self._fitters.values() if one.restores == task_id]

    def _set_fitter(self, task_id: str, fitter: _Fitter | None) -> None:
        """A task is a fitter, or none: the tasks that it restores, before and now, are to be folded."""
        before = self._fitters.pop(task_id, None)
        if fitter is not None:
            self._fitters[task_id] = fitter
        if fitter != before:
            stations = [one.restores for one in (before, fitter) if one is not None]
            self._dirty |= dict.fromkeys(one for one in stations if one in self.tasks)

    # All tasks together

    def settle(self) -> set[str]:
        """Bring what depends on several tasks, and on the time, up to date. Returns what `apply` does."""
        while self._links.moved or self._links.all_moved or self._dirty:
            self._fold_all()
            self._link()
        touched, self._touched = self._touched & self.tasks.keys(), set()
        removed, self._removed = self._removed, set()
        if not touched and not removed:
            return set()
        for name in ("totals", "queue", "unseen"):
            self.__dict__.pop(name, None)
        return self._work_out(touched) | removed

    @cached_property
    def totals(self) -> Below:
        """Sums over all tasks."""
        tasks = self.tasks.values()
        counts = Counter(kind for task in tasks if (kind := task.facts.kind) is not None)
        active_at = max(map(attrgetter("updated_at"), tasks), default=0.0)
        return Below(counts, sum(task.tokens for task in tasks if task.tokens), active_at)

    @cached_property
    def queue(self) -> Ids:
        """The ids of the tasks that need the operator: who holds up most first, then who has asked last."""
        is_lost = self.lost_since is not None
        asking = [(queue_rank(task, is_lost=is_lost), task.task_id) for task in self.tasks.values() if task.ask]
        return Ids(dict.fromkeys(task_id for _, task_id in sorted(asking)))

    @cached_property
    def unseen(self) -> Ids:
        """The ids of the tasks that the operator has not looked at since they became what they are, newest first."""
        unseen = sorted((-changed_at(task), task.task_id) for task in self.tasks.values() if not task.seen)
        return Ids(dict.fromkeys(task_id for _, task_id in unseen))

    def _link(self) -> None:
        """Hang the tasks that moved below their parents, and end what is below an abort."""
        tasks, hung = self.tasks, self._links
        hung.all_moved |= len(hung.moved) * 8 > len(tasks)
        if hung.all_moved:
            for task_id in hung.name_all():
                if task_id not in hung.named and task_id in tasks:
                    self._dirty[task_id] = None
            self._dirty |= dict.fromkeys(one for one in hung.named if one not in tasks)
        if self._dirty:
            return
        moved, hung.moved = hung.moved & tasks.keys(), set()
        if hung.all_moved or not all(map(self._hang, moved)):
            self._hang_all()
        self.structure += bool(self._removed)
        self._end_aborted()

    def _hang(self, task_id: str) -> bool:
        """Hang a task below its parent. Returns whether that leaves all others where they are."""
        task = self.tasks[task_id]
        before, link = task.facts.link, self._links.link(task)
        above = (link[0], *self.ancestors(link[0])) if link[0] is not None else ()
        if task_id in above or any(one and one[2] and one[2][0] is links.CYCLE for one in (before, link)):
            return False
        if before != link or self._first_seq(task) != task.first_seq:
            self._set_children(task, with_it=False)
            self._set_link(task, link)
            self._set_children(task, with_it=True)
        return True

    def _hang_all(self) -> None:
        tasks = self.tasks
        for task_id, link in self._links.link_all().items():
            self._set_link(tasks[task_id], link)
        children: dict[str | None, list[str]] = {}
        for task in sorted(tasks.values(), key=_seq_and_id):
            children.setdefault(task.parent_id, []).append(task.task_id)
        self.roots = children.get(None, [])
        for task_id, task in tasks.items():
            below = children.get(task_id, ())
            if below != task.children and (below or task.children):
                task.children = below
                self._touched.add(task_id)

    def _set_link(self, task: Task, link: Link) -> None:
        first_seq = self._first_seq(task)
        if link != task.facts.link or first_seq != task.first_seq:
            self._touched.update(one for one in (task.task_id, task.parent_id, link[0]) if one is not None)
            task.parent_id, task.parent_basis, _ = task.facts.link = link
            task.first_seq = first_seq
            self.structure += 1

    def _set_children(self, task: Task, *, with_it: bool) -> None:
        """A task is among the children of its parent, in its place, or it is not."""
        parent = self.tasks.get(task.parent_id) if task.parent_id is not None else None
        siblings = [one for one in (self.roots if parent is None else parent.children) if one != task.task_id]
        if with_it:
            insort(siblings, task.task_id, key=lambda one: _seq_and_id(self.tasks[one]))
        if parent is None:
            self.roots = siblings
        else:
            parent.children = siblings
            self._touched.add(parent.task_id)

    def _first_seq(self, task: Task) -> int:
        """Of a task of which only paths and requests speak, by those. Else it keeps its place until it goes."""
        if (first_seq := task.facts.place.first_seq) is not None:
            return first_seq
        if (named := self._links.named.get(task.task_id)) is not None:
            return named.seq
        # As a session that a human began, which it may turn out to be.
        return -int(min(one.asked_at for one in task.requests) * 1e6) if task.requests else task.first_seq

    def _end_aborted(self) -> None:
        """Find the tasks that stand below an abort; those for which that is new are to be folded."""
        ended: dict[str, tuple[str, float]] = {}
        for task_id, at in self._aborts.items():
            pending = [*self.tasks[task_id].children]
            while pending:
                ended[one := pending.pop()] = task_id, at
                # What is below another abort ends with that.
                pending += self.tasks[one].children if one not in self._aborts else ()
        before, self._ended = self._ended, ended
        if before or ended:
            different = (one for one in before.keys() | ended.keys() if before.get(one) != ended.get(one))
            self._dirty |= dict.fromkeys(one for one in different if one in self.tasks)

    def _work_out(self, touched: Iterable[str]) -> set[str]:
        """Work out again what follows for these tasks from others and from the time, and for those above them as far as
        that makes a difference there: from the bottom up, each once. Returns all that were."""
        done, depths = set[str](), dict[str | None, int]({None: -1})
        levels = defaultdict[int, set[str]](set)
        for task_id in touched:
            above = list[Task]()
            one: str | None = task_id
            while one is not None and one not in depths:
                above.append(self.tasks[one])
                one = above[-1].parent_id
            for task in reversed(above):
                depths[task.task_id] = depths[task.parent_id] + 1
            levels[depths[task_id]].add(task_id)
        for depth in range(max(levels, default=-1), -1, -1):
            for task in map(self.tasks.__getitem__, levels[depth]):
                parent = self.tasks[task.parent_id] if task.parent_id is not None else None
                self._update(task, parent)
                facts, before = task.facts, task.facts.counted
                facts.kind = kind_of(task)
                facts.counted = facts.kind, task.tokens, task.updated_at, task.below, facts.overrun
                if parent is not None and facts.counted != before:
                    levels[depth - 1].add(parent.task_id)
            done |= levels[depth]
        return done

    def _update(self, task: Task, parent: Task | None) -> None:
        facts, rules = task.facts, self.rules
        children = [self.tasks[child] for child in task.children]
        task.below = sums_with_below(children)
        task.state = states.state_with_below(task)
        if self.lost_since is not None and task.state in AT_WORK:
            task.state = State.UNKNOWN
        if task.inferred:
            task.past = is_past(task, rules.history_before)
        silent_from = states.silent_from(task, rules.stale_after)
        task.stale = silent_from is not None and self.now >= silent_from
        facts.due = facts.expires_at if silent_from is None or task.stale else min(facts.expires_at, silent_from)
        task.title = states.title(task)
        task.findings = self._findings(task, children)
        task.why = states.why(task)
        if task.gone or task.question is None:
            # Where something else is open, that comes first.
            task.gone = asks_for_process(task, parent)
            task.question = gone_words(task) if task.gone else None
        self.asides.lay(task, self.now)
        task.ask = None if task.past or is_aside(task) else task.question
        is_lost = not task.past and (task.state.is_open or task.ask is not None)
        task.lost_since = self.lost_since if is_lost else None

    def _findings(self, task: Task, children: list[Task]) -> tuple[PlacedFinding, ...]:
        facts = task.facts
        findings = [*facts.findings, *links.missing_artifacts(task), *links.answered_in_prose(task)]
        if (problem := facts.link and facts.link[2]) is not None:
            versions = self._files.versions(task.task_id)
            findings.append(PlacedFinding(links.finding_of(*problem), versions[0].path if versions else ""))
        # A root answers for itself.
        overruns = [facts.overrun if task.parent_id is None else None, *(child.facts.overrun for child in children)]
        findings += [one for one in overruns if one is not None]
        return (*findings, *self._files.problems(self._files.versions(task.task_id)))

    def take_over(self, other: Tree) -> None:
        """Take over what the operator has put aside in a tree of the same workspace."""
        self.asides.known, self.asides.looked_at = dict(other.asides.known), other.asides.looked_at
        self._touched |= self.tasks.keys()

    # What faces ask

    @property
    def holds_until(self) -> float:
        """When time alone may change something; epoch seconds."""
        return min((task.facts.due for task in self.tasks.values()), default=math.inf)

    def asking(self) -> list[Task]:
        """The tasks that need the operator: who holds up most first, then who has asked last."""
        return [self.tasks[task_id] for task_id in self.queue]

    def past_questions(self) -> list[Task]:
        """The past tasks about which something is open that was not acknowledged, those last alive first."""
        past = (task for task in self.tasks.values() if task.past and task.question and not task.acknowledged)
        return sorted(past, key=lambda task: (-task.updated_at, task.task_id))

    def failed_below(self, task: Task) -> Iterator[Task]:
        """The tasks below that have failed or break their contract, in preorder."""
        for one in (self.tasks[task_id] for task_id in links.below(self.tasks, task.task_id)):
            if one.own_state in (State.FAILED, State.INVALID) and not one.inferred:
                yield one

    def ancestors(self, task_id: str) -> list[str]:
        """Ids of the tasks above, nearest first."""
        return list(links.ancestors(self.tasks, task_id))

    def siblings_before(self, task: Task) -> Iterator[str]:
        """Ids of the siblings before a task, nearest first."""
        siblings = self.roots if task.parent_id is None else self.tasks[task.parent_id].children
        return reversed(siblings[: siblings.index(task.task_id)])

    def preorder(self) -> Iterator[tuple[Task, int]]:
        """Every task with its depth: a parent before its children, siblings in the order first seen."""
        pending = [(task_id, 0) for task_id in reversed(self.roots)]
        while pending:
            task_id, depth = pending.pop()
            task = self.tasks[task_id]
            yield task, depth
            if task.children:
                pending.extend((child, depth + 1) for child in reversed(task.children))

    @property
    def decisions(self) -> list[Decided]:
        """Every decision as it is now."""
        by_kind = (*self._decisions.values(), self._requests.decided)
        return [Decided(0, one.at, name, one) for decisions in by_kind for name, one in decisions.items()]

    @property
    def requests(self) -> list[Requested]:
        """Every request as its holder told it last."""
        return [*self._requests.offered.values()]

    def request(self, request_id: str) -> Asked | None:
        """A request as it stands, and the task that asks it; None where it is not known, or its task has gone."""
        task = self.tasks.get(self._requests.asker(request_id) or "")
        known = (one for one in task.requests if one.request_id == request_id) if task is not None else ()
        request = next(iter(known), None)
        return None if task is None or request is None else Asked(task.task_id, request)

    def requests_of(self, task_id: str) -> tuple[Request, ...]:
        """The requests of a task as they stand, also where it has gone with the last that was open."""
        task = self.tasks.get(task_id)
        return self._requests.of_task(task_id, self.now) if task is None else task.requests

    def over(self, task_id: str) -> frozenset[str]:
        """The ids of decisions about a task after which it can be decided anew, where they called a fitter: all fitters
        that name them and have ended, for those that do not see the decisions themselves."""
        ended = (one for one in self._fitters_of(task_id) if one.state in _HAVE_ENDED)
        return frozenset(name for one in ended for name in one.carried)

    @property
    def notices(self) -> list[PlacedFinding]:
        """Findings of files that belong to no task."""
        return self._files.notices

    @property
    def troubled(self) -> set[str]:
        """The files that cannot be read or understood, of tasks and of nobody."""
        return self._files.troubled

    def former_places(self, task_id: str, returned: Version) -> tuple[str, ...]:
        """Where a return lay before it was moved."""
        same = (one.path for one in self._files.versions(task_id) if one.digest == returned.digest)
        return tuple(dict.fromkeys(path for path in same if path != returned.path and self._files.is_gone(path)))


def _seq_and_id(task: Task) -> tuple[int, str]:
    return task.first_seq, task.task_id


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
