"""The delegation tree. Events of different files may arrive in a wrong order; `seq` gives the right order."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from operator import attrgetter
from typing import NamedTuple

from agentwatch.contracts.shapes import Finding
from agentwatch.delegation import events, links, standing
from agentwatch.delegation.attempts import Attempts
from agentwatch.delegation.decision import Action, Decision, Request
from agentwatch.delegation.events import Aside, Checked, Decided, Event, Requested, Rules, Run, Seen
from agentwatch.delegation.links import Files, Requests, Runs, must_be_readable, task_directory_of
from agentwatch.delegation.task import AT_WORK, Basis, Place, Shown, State, Sums, Task, TaskKind, sum_tasks

# In these states, a fitter has ended, and the task that waits for its repair can go on.
_HAVE_ENDED = frozenset({State.COMPLETED, State.PARTIAL, State.CANCELED})

_make_kind = cache(TaskKind)  # cached, because very many tasks share a few kinds


class _Fitter(NamedTuple):
    """A task that repairs the production line for another task."""

    restores: str | None
    decision_id: str | None  # the decision that its handoff names
    at: float  # when its handoff was written, in epoch seconds
    state: State | None  # None if a claim is false
    ended_at: float | None


class Tree:
    """All tasks of a workspace with their links, judged by `rules`. A task stays when its files are gone."""

    def __init__(self, rules: Rules = Rules(), *, host: str = ""):  # noqa: B008  it is immutable
        self.rules, self.host = rules, host
        self.tasks: dict[str, Task] = {}
        self.roots: Sequence[str] = []  # ids of the tasks without a parent, in the order first seen
        self.totals = Sums()  # sums over all tasks
        self.queue: list[str] = []  # ids of the tasks that need the operator, sorted by `queue_rank`
        self.unseen: list[str] = []  # ids of the tasks with news that the operator has not seen, the newest first
        self.asides: dict[str, Aside] = {}  # by task: how the operator last put it aside and last looked at it
        self.looked_at = math.inf  # changes before this time (epoch seconds) are not new; infinity if nobody watches
        self.now = -math.inf  # the time of the last tick, in epoch seconds; minus infinity before the first
        self.lost_since: float | None = None  # since when the state is unknown (epoch seconds); None while it is known
        # Observations
        self._files = Files()
        self.runs = Runs()
        self._requests = Requests(self.runs)
        self._checks = defaultdict[str, dict[str, Checked]](dict)  # results of checks, by path and digest of the return
        self._decisions = defaultdict[str, dict[str, Decision]](dict)
        # Effects of one task on others
        self._named: dict[str, links.Named] = {}
        self._fitters: dict[str, _Fitter] = {}
        self._ended: dict[str, tuple[str, float]] = {}  # by task: the aborted task above it, and the time of the abort
        # Work that is still to be done
        self._dirty: dict[str, None] = {}  # tasks to build again
        self._touched: set[str] = set()  # tasks that were added, removed or changed
        self._moved = False  # whether a task was added, was removed, or has another place
        self._order: list[Task] = []  # all tasks, parents before children

    # Events

    def apply(self, *batch: Event) -> set[str]:
        """Apply a batch of events. Return the ids of the tasks that were added, removed, or may have changed."""
        self.add_events(batch)
        return self.finish_batch()

    def add_events(self, batch: Iterable[Event]) -> None:
        """Apply a part of a batch. Values that depend on several tasks are out of date until `finish_batch`."""
        for event in batch:
            self._dirty |= dict.fromkeys(self._store_event(event))
        self._dirty = dict.fromkeys(self._files.assign_tasks()) | self._dirty
        self._fold_all()

    def _store_event(self, event: Event) -> Iterable[str]:
        """Store the content of an event. Return the ids of the tasks to build again."""
        match event:
            case Seen():
                self._files.store(event)
            case events.Gone(path=path):
                self._files.forget(event)
                if not self._files.is_gone(path):
                    self._checks.pop(path, None)
            case events.Unreadable():
                self._files.set_unreadable(event.path, event)
            case events.Ran(run=run):
                sessions = [one.session for one in (self.runs.find_run(event.path), run) if one]
                before = [*map(self.runs.executing.get, sessions)]
                concerned = self.runs.store(event)
                self._moved |= before != [*map(self.runs.executing.get, sessions)]
                return concerned
            case Requested():
                return self._requests.store(event)
            case Decided(decision=decision) if decision.request_id:
                return self._requests.store_decision(decision)
            case Decided(decision=decision):
                self._decisions[decision.task_id][decision.decision_id] = decision
                again = self.runs.store_decision(decision.decision_id, decision.task_id)
                self._moved |= bool(again)
                return {decision.task_id, *again}
            case Checked(path=path):
                run, self._checks[path][event.digest] = self.runs.find_run(path), event
                return {*self._files.tasks_of(path), *([self.runs.task_of(run)] if run else [])}
            case events.Tick(at=at):
                # If a replay or the clock went back, build all tasks again, because their states depend on the time.
                is_back, self.now = at < self.now, at
                return [task.task_id for task in self.tasks.values() if is_back or task.due <= at]
            case events.Ruled(rules=rules) if rules != self.rules:
                self.rules = rules
                return self.tasks
            case events.Noted(path=task_id, aside=aside):
                self.asides[task_id] = aside
                self._touched |= {task_id} & self.tasks.keys()
            case events.Looked() | events.Lost() | events.Reached():
                if isinstance(event, events.Looked):
                    self.looked_at = event.at
                else:
                    self.lost_since = None if isinstance(event, events.Reached) else self.lost_since or event.at
                self._touched |= self.tasks.keys()
        return ()

    def _next_due(self, task: Task, *times: float) -> float:
        decided = [self._requests.decided.get(one.request_id) for one in task.requests]
        decided += self._decisions.get(task.task_id, {}).values()
        ends = (one.expires_at for one in decided if one and one.expires_at is not None)
        return min((at for at in (*times, *ends) if at > self.now), default=math.inf)

    # Each task by itself

    def _fold_all(self) -> None:
        while self._dirty:
            dirty, self._dirty = self._dirty, {}
            for task_id in dirty:
                self._fold_task(task_id)

    def _fold_task(self, task_id: str) -> None:
        """Build a task again from everything that is known about it."""
        versions, rans = self._files.versions_of(task_id), self.runs.runs_of_task(task_id)
        runs = [ran.run for ran in rans if ran.run]
        requests = self._requests.requests_of_task(task_id, self.now)
        if not (versions or runs or task_id in self._named or any(one.is_open for one in requests)):
            if self.tasks.pop(task_id, None):
                self._moved = True
                self._touched.add(task_id)
                self._set_fitter(task_id)
            return
        if not (task := self.tasks.get(task_id)):
            task = self.tasks[task_id] = Task(task_id, title=task_id, host=self.host)
            self._moved = True
        self._touched.add(task_id)
        task.requests, was_gone = requests, task.gone
        task.deleted_at = None if runs else self._files.deleted_at(versions)
        task.inferred = not (versions or runs or requests)
        attempts = Attempts(versions, rans, self._decisions_of(task_id), self.rules, self._files.is_gone)
        self._fill_task(task, versions, attempts, runs)
        first_seq = versions[0].seq if versions else None
        if first_seq is None and (runs or requests):
            # Without a document, siblings are sorted by time. Sessions of humans come first, beginning with the newest.
            # A session that is known only from a request is sorted like a human's session, because it may be a human's.
            began_at = runs[0].began_at if runs else min(one.asked_at for one in requests)
            first_seq = int(began_at * 1e6) * (-1 if task.is_session or not runs else 1)
        place = Place(
            task.packet.parent_task_id if task.packet else None,
            tuple((run.source, run.parent_session) for run in reversed(runs) if run.parent_session),
            links.ids_above(versions),
            task_directory_of(versions),
            versions[0].path if versions else "",
            first_seq,
        )
        self._moved |= place != task.place
        task.place = place
        self._set_fitter(task_id)
        if task.gone is not was_gone:
            # Whether a child asks about a gone process depends on this task.
            self._touched.update(task.children)

    def _fill_task(self, task: Task, versions: tuple[Seen, ...], attempts: Attempts, runs: list[Run]) -> None:
        """Set the fields of a task that follow from its own documents, runs, checks and decisions."""
        task.due = self._next_due(task)
        task.attempts = tuple(attempts.all)
        task.todos, task.todo_moved = attempts.todos, attempts.moved_todo
        task.agent = standing.agent_of(task)
        lives = [attempts.updated_at, *(run.updated_at for run in runs)]
        task.updated_at = max(*lives, *(one.ended_at or one.asked_at for one in task.requests), 0.0)
        given, returned = task.latest.handoff, task.latest.returned
        task.own_state, task.ended_at = standing.own_state(task), standing.ended_at(task.latest)
        task.ended_with, ended_at = self._ended.get(task.task_id, (None, 0.0))
        if task.ended_with and task.own_state.is_open:
            task.own_state, task.ended_at = State.CANCELED, ended_at
        fitters = self._fitters_of(task.task_id)
        restored = [one.ended_at for one in fitters if one.state is State.COMPLETED and one.ended_at is not None]
        task.retry = standing.retries_of(task, max_retries=self.rules.max_retries, restored=restored)
        used = [one.run.tokens for one in task.attempts if one.run and one.run.tokens is not None]
        task.tokens = sum(used) if used else None
        checked = self._checks.get(returned.path, {}).get(returned.digest) if returned else None
        task.claims, task.is_checked = checked.claims if checked else (), checked is not None
        task.verdict_at = checked.at if checked else None
        task.verdict = (
            events.overall_verdict(task.claims) if task.own_state in (State.COMPLETED, State.PARTIAL) else None
        )
        unread = self._files.unreadable_beside(versions)
        current = (given, returned, attempts.checklist)
        placed = (replace(one, path=version.path) for version in current if version for one in version.findings)
        prose = [links.make_finding(links.PROSE, task.task_id, given.path)] if given and task.answers_in_prose else []
        problems = (replace(one.finding, path=one.path) for one in unread)
        more = *standing.find_overrun(task), *prose, *links.missing_artifacts(task), *problems
        task.own_findings = (*attempts.problems, *placed, *more)
        hidden = [one for one in unread if one.finding.rule.startswith("SRC") and must_be_readable(one.path)]
        task.gone = standing.is_process_gone(task)
        task.own_question = standing.question_of(task, self.rules.low_confidence)
        if hidden and task.own_state is not State.CANCELED:
            task.own_question = f"{hidden[0].path} is not read, so its content is not known: correct or remove it"
        if not task.inferred:
            history_before = self.rules.history_before
            task.past = standing.is_past(task, history_before) and all(one.at < history_before for one in hidden)

    def _decisions_of(self, task_id: str) -> list[Decision]:
        """Return a task's decisions in order. A decision to call a fitter is carried out if a handoff names it."""
        decisions = []
        for one in sorted(self._decisions.get(task_id, {}).values(), key=attrgetter("at")):
            called = [fitter for fitter in self._fitters_of(task_id) if fitter.decision_id == one.decision_id]
            decision, ended = one, {fitter.state for fitter in called} & _HAVE_ENDED
            if called and standing.calls_fitter(one.action, one.mode):
                decision = one.as_carried_out(min(fitter.at for fitter in called))
                decision = replace(decision, over=bool(ended), restored=State.COMPLETED in ended)
            decisions.append(replace(decision, expired=one.is_expired(self.now) and not decision.over))
        return decisions

    def _fitters_of(self, task_id: str) -> list[_Fitter]:
        return [one for one in self._fitters.values() if one.restores == task_id]

    def _set_fitter(self, task_id: str) -> None:
        """Store whether a task is a fitter. If this changes, the task that waits for the fitter is built again."""
        task, before, fitter = self.tasks.get(task_id), self._fitters.pop(task_id, None), None
        given = next((one for one in reversed(task.attempts) if one.packet), None) if task else None
        packet, handoff = (given.packet, given.handoff) if given else (None, None)
        if task and packet and handoff and packet.restores not in (None, task_id):
            # A fitter with a false claim has repaired nothing, unless the operator decided about its return.
            restores_nothing = task.binding is None and events.has_false_claim(task.claims)
            state = None if restores_nothing else task.own_state
            fitter = _Fitter(packet.restores, packet.decision_id, handoff.at, state, task.ended_at)
            self._fitters[task_id] = fitter
        restored_ids = [one.restores for one in (before, fitter) if one and fitter != before]
        self._dirty |= dict.fromkeys(one for one in restored_ids if one in self.tasks)

    # All tasks together

    def finish_batch(self) -> set[str]:
        """Update the values that depend on several tasks and on the time. Return the same ids as `apply`."""
        is_open = True
        while is_open:
            self._fold_all()
            if self._moved:
                self._link_tasks()
            self._end_below_aborts()
            is_open = bool(self._dirty) or self._moved
        touched, self._touched = self._touched, set()
        return self._update_sums(touched) | (touched - self.tasks.keys()) if touched else set()

    def _link_tasks(self) -> None:
        """Find the parents and children of all tasks."""
        tasks = self.tasks
        self._named = links.find_named(tasks.values())
        unnamed = (task.task_id for task in tasks.values() if task.inferred and task.task_id not in self._named)
        self._dirty |= dict.fromkeys([*unnamed, *(one for one in self._named if one not in tasks)])
        if self._dirty:
            return
        self._moved = False
        for task, link in links.find_links(tasks, self._named, self.runs.executing):
            if link != (task.parent_id, task.parent_basis, task.problem, task.first_seq):
                task.parent_id, task.parent_basis, task.problem, task.first_seq = link
                self._touched.add(task.task_id)
        # If tasks form a cycle, all of them become roots.
        for task in map(tasks.__getitem__, links.find_cycles(tasks)):
            task.problem = links.make_finding(links.CYCLE, task.parent_id or task.task_id, task.place.file)
            task.parent_id, task.parent_basis = None, Basis.NONE
            self._touched.add(task.task_id)
        children = defaultdict[str | None, list[str]](list)
        for task in sorted(tasks.values(), key=attrgetter("first_seq", "task_id")):
            children[task.parent_id].append(task.task_id)
        self.roots = children[None]
        for task_id, task in tasks.items():
            below = children.get(task_id, ())
            if below != task.children:
                task.children = below
                self._touched.add(task_id)
        self._order = [task for task, _ in self.preorder()]

    def _end_below_aborts(self) -> None:
        """Find the tasks that end because a task above was aborted. Build a task again if this has changed for it."""
        decided_tasks = filter(None, map(self.tasks.get, self._decisions))
        bindings = ((task.task_id, task.binding) for task in decided_tasks)
        aborted = {task_id: one.at for task_id, one in bindings if one and one.action is Action.ABORT}
        ended: dict[str, tuple[str, float]] = {}
        for task in self._order if aborted else ():
            # Below two aborted tasks, a task ends with the nearer of the two.
            above = task.parent_id or ""
            if abort := (above, aborted[above]) if above in aborted else ended.get(above):
                ended[task.task_id] = abort
        different = ended.items() ^ self._ended.items()
        self._dirty |= dict.fromkeys(task_id for task_id, _ in different if task_id in self.tasks)
        self._ended = ended

    def _update_sums(self, touched: set[str]) -> set[str]:
        """Update the sums from the bottom up. Update and return the tasks that are touched or have new sums."""
        changed, tasks, stale = set[str](), self.tasks, set[str | None](touched)
        for task in reversed(self._order):
            if task.task_id not in stale:
                continue
            below = sum_tasks(map(tasks.__getitem__, task.children), deep=True) if task.children else None
            if task.task_id in touched or below != task.below:
                task.below, before = below, (task.shown, task.since)
                self._update_task(task)
                changed.add(task.task_id)
                stale.add(task.parent_id)
                above = tasks.get(task.parent_id or "")
                if above and (above.shown is Shown.WAITING or before != (task.shown, task.since)):
                    # Why a task waits, and since when, depends on the tasks below.
                    touched.add(above.task_id)
        self.totals = sum_tasks(map(tasks.__getitem__, self.roots), deep=True)
        self._update_queue()
        return changed

    def _update_queue(self) -> None:
        """Find the tasks that need the operator, and the tasks with news that the operator has not seen."""
        asking = [(standing.queue_rank(task), task.task_id) for task in self.tasks.values() if task.ask]
        unseen = [(-standing.changed_at(task), task.task_id) for task in self.tasks.values() if not task.seen]
        self.queue, self.unseen = ([task_id for _, task_id in sorted(some)] for some in (asking, unseen))

    def _update_task(self, task: Task) -> None:
        """Set the fields of a task that depend on the tasks around it, and on the time."""
        rules = self.rules
        task.state = standing.state_with_below(task)
        if self.lost_since is not None and task.state in AT_WORK:
            task.state = State.UNKNOWN
        if task.inferred:
            task.past = standing.is_past(task, rules.history_before)
        silence_begins = standing.silence_begins_at(task, rules.stale_after)
        task.stale = self.now >= silence_begins
        ends = silence_begins, task.updated_at + rules.stale_after, standing.idle_until(task)
        task.due = self._next_due(task, *ends)
        task.title = standing.title(task)
        task.findings = (*task.own_findings, task.problem) if task.problem else task.own_findings
        task.why = standing.reason_of(task)
        asks_for_process = standing.asks_about_process(task, self.tasks.get(task.parent_id or ""))
        task.question = task.own_question or (standing.gone_question(task) if asks_for_process else None)
        standing.update_attention(task, self.asides.get(task.task_id, Aside()), self.looked_at, self.now)
        task.ask = None if task.past or task.acknowledged or task.snoozed else task.question
        is_lost = not task.past and (task.state.is_open or task.ask)
        task.lost_since = self.lost_since if is_lost else None
        task.shown = standing.shown_state_of(task, self.now, rules.stale_after)
        task.since = standing.since_of(task, [self.tasks[one] for one in task.children])
        begins = task.since if task.shown is Shown.SUBMITTED else None
        late_from = math.inf if begins is None else begins + rules.stale_after
        task.late, task.due = not task.past and self.now >= late_from, self._next_due(task, task.due, late_from)
        verdict = task.verdict if task.contradicted or task.shown is Shown.COMPLETED else None
        counted = _make_kind(task.state, task.shown, task.ask is not None, verdict, task.stale, task.past)
        task.kind = None if task.shares_row else counted

    # Answers about a tree

    @property
    def next_change_at(self) -> float:
        """The next time (epoch seconds) at which a task may change without an event."""
        return min(map(attrgetter("due"), self.tasks.values()), default=math.inf)

    def asking_tasks(self) -> list[Task]:
        """Return the tasks that need the operator, the most urgent first."""
        return [self.tasks[task_id] for task_id in self.queue]

    def tasks_aside(self) -> list[Task]:
        """Return the tasks that the operator has put aside, the latest first."""
        known = [(one.put.at, self.tasks.get(task_id)) for task_id, one in self.asides.items() if one.put]
        aside = [(at, task) for at, task in known if task and (task.acknowledged or task.snoozed)]
        return [task for _, task in sorted(aside, key=lambda one: (-one[0], one[1].task_id))]

    def past_questions(self) -> list[Task]:
        """Return the past tasks with an open question. A task with copies in several worktrees is listed once."""
        found: dict[tuple[str, str], Task] = {}
        for task in self.tasks.values():
            if task.past and task.question and not task.acknowledged:
                returned = task.latest.returned
                found.setdefault((task.own_id, returned.digest if returned else task.scope), task)
        return [*found.values()]

    def failed_below(self, task: Task) -> list[Task]:
        """Return the failed tasks below a task, parents first. A task that breaks its contract has failed, too."""
        below = self.preorder(task.children)
        return [one for one, _ in below if one.own_state in standing.HAVE_FAILED and not one.inferred]

    def ancestors(self, task_id: str) -> list[str]:
        """Return the ids of the tasks above a task, the nearest first."""
        above: list[str] = []
        while parent_id := self.tasks[task_id].parent_id:
            above.append(task_id := parent_id)
        return above

    def preorder(self, roots: Sequence[str] | None = None) -> Iterator[tuple[Task, int]]:
        """Yield each task with its depth, parents before children. With `roots`, yield only these and tasks below."""
        pending = [(task_id, 0) for task_id in reversed(self.roots if roots is None else roots)]
        while pending:
            task_id, depth = pending.pop()
            task = self.tasks[task_id]
            yield task, depth
            pending += ((child, depth + 1) for child in reversed(task.children))

    @property
    def decisions(self) -> list[Decided]:
        """Every decision as it is now."""
        by_kind = (*self._decisions.values(), self._requests.decided)
        return [Decided(0, one.at, name, one) for decisions in by_kind for name, one in decisions.items()]

    @property
    def requests(self) -> list[Requested]:
        """Every request, as the hook or connection that holds it last reported it."""
        return [*self._requests.offered.values()]

    def find_request(self, request_id: str) -> tuple[Task, Request] | None:
        """Return (task of a request, the request as it is now). Return None if the request or its task is unknown."""
        known = ((task, one) for task in self.tasks.values() for one in task.requests)
        return next((both for both in known if both[1].request_id == request_id), None)

    def requests_of(self, task_id: str) -> tuple[Request, ...]:
        """Return the current requests of a task, even if the task has gone."""
        task = self.tasks.get(task_id)
        return self._requests.requests_of_task(task_id, self.now) if not task else task.requests

    def ended_escalations(self, task_id: str) -> frozenset[str]:
        """Return the ids of the decisions that called a fitter for a task, if the fitter has ended."""
        fitters = self._fitters_of(task_id)
        return frozenset(one.decision_id for one in fitters if one.decision_id and one.state in _HAVE_ENDED)

    @property
    def notices(self) -> list[Finding]:
        """Findings of files that belong to no task."""
        return self._files.notices

    def verdict_since(self, returned: Seen, claims: tuple[events.Claim, ...], now: float) -> float:
        """Return since when a return has its verdict. Return `now` if the verdict has changed since the last check.
        Return the time of the return if it was never checked."""
        last = self._checks.get(returned.path, {}).get(returned.digest)
        if not last:
            return returned.at
        return last.at if events.has_false_claim(last.claims) is events.has_false_claim(claims) else now

    def former_paths(self, task_id: str, returned: Seen) -> tuple[str, ...]:
        """Return the former paths of a return that was moved."""
        same = (one.path for one in self._files.versions_of(task_id) if one.digest == returned.digest)
        return tuple(dict.fromkeys(path for path in same if path != returned.path and self._files.is_gone(path)))


class JoinedTree(Tree):
    """Several trees as one. The key of a task is its id in its tree, after the scope (a prefix, or "") of that tree."""

    def __init__(self, mark: str):
        super().__init__()
        self._mark = mark
        self._trees: dict[str, Tree] = {}  # by scope, in the order in which they were added
        self._scopes = 0

    def add_tree(self, tree: Tree, name: str | None = None, workspace: str = "", why: str = "") -> tuple[str, set[str]]:
        """Add a tree, with a top row if `name` is given. Return the scope of the tree and the keys of its tasks."""
        self._scopes += 1
        scope = ""
        if name is not None:
            scope = f"{self._mark}{self._scopes}/"
            self.tasks[scope] = Task(scope, name, inferred=True, workspace=workspace, scope=scope, host=tree.host)
            # A top row comes after all tasks without a top row.
            self.tasks[scope].first_seq = (1 << 80) + self._scopes
        return scope, self.update_tree(scope, tree, tree.tasks, why)

    def remove_tree(self, scope: str) -> set[str]:
        """Remove a tree. Return the keys of its tasks."""
        gone = {scope + task_id for task_id in self._trees.pop(scope).tasks} | ({scope} if scope else set())
        for key in gone:
            self.tasks.pop(key, None)
        self._join_values()
        return gone

    def update_tree(self, scope: str, tree: Tree, changed: Collection[str], why: str = "") -> set[str]:
        """Update some tasks of a tree, and return their keys. `why` (untrusted) says why its state is unknown."""
        self._trees[scope] = tree
        keys = {scope + task_id for task_id in changed}
        for task_id in changed:
            key, task = scope + task_id, tree.tasks.get(task_id)
            if not task:
                self.tasks.pop(key, None)
            elif not scope:
                self.tasks[key] = task
            else:
                children, parent_id = [scope + child for child in task.children], scope + (task.parent_id or "")
                self.tasks[key] = replace(task, task_id=key, parent_id=parent_id, children=children, scope=scope)
        if scope:
            keys.add(scope)
            top = self.tasks[scope]
            # The top row sums up the tasks that are not past, or all tasks if all are past.
            tasks = [task for task in tree.tasks.values() if not task.past] or tree.tasks.values()
            top.children = [scope + task_id for task_id in tree.roots]
            top.below = sum_tasks(tasks) if tasks else None
            top.own_state = standing.state_with_below(top)
            top.why, top.lost_since = why, tree.lost_since
            top.state = State.UNKNOWN if why or top.lost_since is not None else top.own_state
            top.past = standing.is_past(top, tree.rules.history_before)
            top.shown = standing.shown_state_of(top, tree.now, tree.rules.stale_after)
            top.since = standing.since_of(top, [tree.tasks[one] for one in tree.roots])
        self._join_values()
        return keys

    def locate(self, key: str) -> tuple[Tree, str] | None:
        """Return the tree of a task and its id in that tree. Return None for a top row or an unknown key."""
        scope = key[: key.find("/") + 1] if key.startswith(self._mark) else ""
        tree = self._trees.get(scope)
        return None if tree is None or key == scope else (tree, key[len(scope) :])

    def _join_values(self) -> None:
        """Update the values that depend on all trees."""
        trees = self._trees.values()
        self.now = max([tree.now for tree in trees], default=self.now)
        history_starts = [tree.rules.history_before for tree in trees]
        self.rules = self.rules._replace(history_before=max(history_starts, default=-math.inf))
        if [*self._trees] == [""]:
            # Usually there is only one tree. Then take its values.
            tree = self._trees[""]
            self.roots, self.totals, self.queue, self.unseen = tree.roots, tree.totals, tree.queue, tree.unseen
        else:
            self.roots = [*(self._trees[""].roots if "" in self._trees else ()), *filter(None, self._trees)]
            self.totals = sum_tasks(self.tasks.values())
            self._update_queue()

    # Answers about all trees

    @property
    def notices(self) -> list[Finding]:
        return [
            replace(placed, path=f"{self.tasks[scope].title}: {placed.path}") if scope else placed
            for scope, tree in self._trees.items()
            for placed in tree.notices
        ]
