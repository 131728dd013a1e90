"""The delegation tree: a reducer over observations.

`apply` takes one observation and says which tasks changed. Its cost depends on the task concerned (its versions, its
depth, the tasks that wait for its id), never on how many tasks there are. The tree is a function of the observations
and their `seq`: any interleaving that keeps each file's own order gives the same one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from agentwatch.delegation import identity, reasons, standing
from agentwatch.delegation.asks import LOW_CONFIDENCE, Asking, ask, ask_to_mend, is_past
from agentwatch.delegation.changes import Changes, CheckedReturns, Unclaimed
from agentwatch.delegation.claims import overall
from agentwatch.delegation.decision import Decision
from agentwatch.delegation.effects import Aborts, Fitters, Overruns
from agentwatch.delegation.files import Files, Unread
from agentwatch.delegation.fold import fold
from agentwatch.delegation.indexes import Deadlines
from agentwatch.delegation.linking import Claims, Inference, Linking
from agentwatch.delegation.observation import Checked, Decided, Gone, Observation, Ran, Seen, Tick, Unreadable
from agentwatch.delegation.problems import answered_in_prose, finding_of, missing_artifacts
from agentwatch.delegation.retry import DEFAULT_MAX_RETRIES, budget
from agentwatch.delegation.runs import Runs
from agentwatch.delegation.sums import Sums, ancestors, below
from agentwatch.delegation.task import PlacedFinding, State, Task, Version

STALE_AFTER = 600.0
"""Seconds of silence after which a working task counts as stale."""


class DelegationTree:
    """All tasks of a workspace and how they hang together.

    `strict` makes a return that breaks its contract count as failed; `stale_after` is in seconds; a completed report
    whose confidence is below `low_confidence` asks for a review. With `remembers`, the tasks of files that are gone
    stay; otherwise the tree converges to what is there. With `demands`, a child of a session that ends without a
    contract counts as failed. Tasks without a sign of life since `history_before` (epoch seconds) are past.
    """

    def __init__(
        self,
        *,
        strict: bool = True,
        stale_after: float = STALE_AFTER,
        max_retries: int = DEFAULT_MAX_RETRIES,
        low_confidence: float = LOW_CONFIDENCE,
        remembers: bool = False,
        demands: bool = False,
        history_before: float = float("-inf"),
    ) -> None:
        self.tasks: dict[str, Task] = {}
        self.structure = 0
        """Counts the additions, removals and moves of tasks."""
        self.queue = Asking()
        """The ids of the tasks that need the operator."""
        self.now = float("-inf")
        """The time of the last tick, in epoch seconds; minus infinity before the first."""
        self.history_before = history_before
        """The line that tells what is past, in epoch seconds."""
        self._strict = strict
        self._stale_after = stale_after
        self._max_retries = max_retries
        self._low_confidence = low_confidence
        self._demands = demands
        self._files = Files(remembers=remembers)
        self._unread = Unread(self._files)
        self._runs = Runs()
        self._decisions: dict[str, dict[str, Decision]] = defaultdict(dict)
        self._checks = CheckedReturns()
        self._inference = Inference()
        self._linking = Linking()
        self._sums = Sums(self.tasks)
        self.roots = self._sums.roots
        """Ids of the tasks without a parent, in the order first seen."""
        self.totals = self._sums.totals
        """Sums over all tasks."""
        self._changes = Changes(self.tasks, stale_after, lambda path: bool(self._files.tasks_of(path)))
        self._fitters = Fitters()
        self._aborts = Aborts(self.tasks)
        self._overruns = Overruns()
        self._silences = Deadlines()
        self._expiries = Deadlines()
        self._own_findings: dict[str, tuple[PlacedFinding, ...]] = {}
        self._removed: set[str] = set()

    @property
    def runs(self) -> list[Ran]:
        """Every run of a session store as it is now."""
        return self._runs.all()

    @property
    def decisions(self) -> list[Decided]:
        """Every decision as it is now."""
        known = (decision for decisions in self._decisions.values() for decision in decisions.values())
        return [Decided(0, decision.at, decision.decision_id, decision) for decision in known]

    @property
    def notices(self) -> list[PlacedFinding]:
        """What is wrong with files that belong to no task."""
        return self._unread.notices

    @property
    def troubled(self) -> set[str]:
        """The files that cannot be read or understood, of tasks and of nobody."""
        return self._unread.paths

    def apply(self, observation: Observation) -> set[str]:
        """Take one observation in. Returns the ids of the tasks that were added, changed (also in the sums over what is
        below) or removed."""
        self.take(observation)
        return self.settle()

    def take(self, observation: Observation) -> None:
        """Take one of many in: what depends on several tasks is not up to date until `settle` is called."""
        path = observation.path if not isinstance(observation, Tick) else ""
        match observation:
            case Seen():
                # The tasks from before count too: a file may speak of another task now.
                dirty = self._files.tasks_of(path) | self._unread.clear(path) | self._files.see(observation)
            case Gone():
                dirty = self._files.tasks_of(path) | self._unread.clear(path)
                dirty |= self._files.forget(path, undone=observation.undone)
                if not self._files.is_gone(path):
                    self._checks.drop(path)
            case Tick():
                dirty = self._tick(observation.at)
            case Ran():
                dirty = self._runs.see(observation)
            case Decided(decision=decision):
                self._decisions[decision.task_id][decision.decision_id] = decision
                dirty = {decision.task_id}
            case Checked():
                dirty = self._check(observation)
            case Unreadable():
                dirty = self._unread.see(observation)
        while dirty:
            dirty |= self._rebuild(dirty.pop())

    def settle(self) -> set[str]:
        """Bring what depends on several tasks up to date for all that were touched. Returns what `apply` does."""
        self._sums.flush()
        touched, summed = self._sums.touched, self._sums.summed
        self._sums.touched, self._sums.summed = set(), set()
        for task_id in [*touched, *self._removed]:
            touched |= self._overruns.take(task_id, self.tasks.get(task_id))
        for task_id in touched & self.tasks.keys():
            task = self.tasks[task_id]
            task.parent_basis = self._linking.link(task_id).basis
            task.title = standing.title(task)
            self._date_inferred(task)
            task.findings = self._findings(task)
            task.why = reasons.why(task)
            task.stale = self._is_stale(task)
            self._queue(task)
        # Above them only what follows from the sums can be different.
        for task_id in (summed - touched) & self.tasks.keys():
            task = self.tasks[task_id]
            self._date_inferred(task)
            if task.stale or task.state is State.WORKING:
                task.stale = self._is_stale(task)
            if task.ask is not None:
                self._queue(task)
        changed = touched | summed | self._removed
        self._removed = set()
        return changed

    def asking(self) -> list[Task]:
        """The tasks that need the operator: who holds up most first, then who has waited longest."""
        return [self.tasks[task_id] for task_id in self.queue]

    def past_questions(self) -> list[Task]:
        """The past tasks about which something is open, those last alive first. Costs a look at all tasks."""
        past = (task for task in self.tasks.values() if task.past and task.question is not None)
        return sorted(past, key=lambda task: (-task.updated_at, task.task_id))

    def holds(self, task: Task) -> int:
        """How many tasks below have not ended and wait for this one's answer."""
        return task.below.open if task.below else 0

    def over(self, task_id: str) -> frozenset[str]:
        """The ids of decisions about a task after which it can be decided anew, where they called a fitter: all fitters
        that name them and have ended, for whoever does not see the decisions themselves."""
        return self._fitters.over(task_id)

    def former_places(self, task_id: str, returned: Version) -> tuple[str, ...]:
        """Where a return lay before it was moved."""
        same = (one.path for one in self._files.versions(task_id) if one.digest == returned.digest)
        return tuple(dict.fromkeys(path for path in same if path != returned.path and self._files.is_gone(path)))

    def unclaimed(self, task: Task) -> Unclaimed | None:
        """The files that changed during the latest attempt and that no return claims; None where nothing is known.

        Worked out when asked for, from this task and all others that ran at the time: `apply` does not name a task
        for which only this is different.
        """
        return self._changes.unclaimed(task)

    def failed_below(self, task: Task) -> Iterator[Task]:
        """The tasks below that have failed or break their contract, in preorder."""
        for one in (self.tasks[task_id] for task_id in below(self.tasks, task.task_id)):
            if one.own_state in (State.FAILED, State.INVALID) and not one.inferred:
                yield one

    def siblings_before(self, task: Task) -> Iterator[str]:
        """Ids of the siblings before a task, nearest first."""
        return self._sums.before(task)

    def ancestors(self, task_id: str) -> list[str]:
        """Ids of the tasks above, nearest first."""
        return list(ancestors(self.tasks, task_id))

    def preorder(self) -> Iterator[tuple[Task, int]]:
        """Every task with its depth: a parent before its children, siblings in the order first seen."""
        pending = [(task_id, 0) for task_id in reversed(self.roots)]
        while pending:
            task_id, depth = pending.pop()
            task = self.tasks[task_id]
            yield task, depth
            pending.extend((child, depth + 1) for child in reversed(task.children))

    def _tick(self, now: float) -> set[str]:
        """Time has passed, or has gone back. Returns the tasks that have to be made anew."""
        dirty: set[str] = set()
        if now < self.now:
            # A replay or the clock has gone back: what has turned stale or expired since then was not so yet.
            self._sums.touched.update(task_id for task_id, task in self.tasks.items() if task.stale)
            dirty = {one.decision.task_id for one in self.decisions if one.decision.is_expired(self.now)}
        self.now = now
        # Whoever has been silent for long has to be looked at; what has expired changes what the task is.
        self._sums.touched |= self._silences.past(now) & self.tasks.keys()
        return (dirty & self.tasks.keys()) | self._expiries.past(now)

    def _check(self, checked: Checked) -> set[str]:
        """Take a check in. Returns the tasks that have to be made anew."""
        concerned = self._files.tasks_of(checked.path) | self._runs.tasks_of(checked.path)
        # A return by its name alone may get its handoff later.
        if concerned or self._files.holds(checked.path):
            latest = [self.tasks[task_id].latest for task_id in concerned & self.tasks.keys()]
            self._checks.take(checked, {one.returned.digest for one in latest if one and one.returned})
        return concerned

    def _rebuild(self, task_id: str) -> set[str]:
        """Make a task anew from its documents. Returns other tasks that have to be made anew because of it."""
        versions, runs = self._files.versions(task_id), self._runs.of(task_id)
        follow = self._inference.support(task_id, versions)
        if not versions and not runs and self._inference.first_seen(task_id) is None:
            return follow | self._drop(task_id)
        task = self.tasks.get(task_id)
        if task is None:
            task = self.tasks[task_id] = Task(task_id, title=task_id)
            self.structure += 1
        alive_before = task.updated_at
        self._fill(task, versions, runs)
        if task.updated_at < alive_before:
            self._sums.lower(task, alive_before)
        packet = task.packet
        claims = Claims(
            parent_task_id=packet.parent_task_id if packet else None,
            asked_by=self._runs.parent_of(task_id) if runs else None,
            delegated_by=self._inference.delegated_by(task_id),
            directory=identity.place_of(versions),
        )
        follow |= self._hang(self._linking.place(task_id, claims) | {task_id})
        follow |= self._aborts.end(task)
        follow |= self._fitters.take(task_id, task) & self.tasks.keys()
        verdict = overall(task.claims) if task.own_state in (State.COMPLETED, State.PARTIAL) else None
        hidden = self._unread.hidden(versions) if task.own_state is not State.CANCELED else {}
        task.question = ask_to_mend(next(iter(hidden))) if hidden else ask(task, verdict, self._low_confidence)
        if not task.inferred:
            task.past = is_past(task, self.history_before, *hidden.values())
        self._sums.change(task, task.own_state, None if task.past else task.question, verdict)
        return follow

    def _date_inferred(self, task: Task) -> None:
        """A task that is only named is as old as what is below it."""
        if task.inferred:
            task.past = is_past(task, self.history_before)

    def _fill(self, task: Task, versions: Sequence[Version], runs: list[Ran]) -> None:
        """Everything about a task that its own documents and runs say."""
        attempts = fold(
            versions,
            runs,
            self._decisions_on(task.task_id),
            strict=self._strict,
            demands=self._demands,
            is_gone=self._files.is_gone,
        )
        task.inferred = not versions and not runs
        task.deleted = bool(versions) and not runs and all(self._files.is_gone(version.path) for version in versions)
        task.attempts = tuple(attempts.all)
        task.todos = attempts.todos
        packet, result = task.packet, task.result
        task.agent = standing.agent_of(task)
        task.reported_state = result.reported_state if result else None
        task.contract = document.contract if (document := result or packet) else None
        lives = [version.at for version in versions] + [ran.run.updated_at for ran in runs if ran.run is not None]
        task.updated_at = max(lives, default=0.0)
        latest = task.latest
        task.own_state = standing.decided_state(latest) if latest else State.SUBMITTED
        task.started_at = latest.started_at if latest else None
        task.ended_at = standing.ended_at(latest) if latest else None
        checked = self._checks.of(latest.returned) if latest and latest.returned else None
        task.claims = checked.claims if checked else ()
        task.changed = checked.changed if checked else None
        self._changes.take(task)
        current = (latest.handoff, latest.returned, attempts.checklist) if latest else ()
        placed = (PlacedFinding(one, version.path) for version in current if version for one in version.findings)
        own = (*attempts.problems, *placed, *missing_artifacts(task), *answered_in_prose(task))
        self._own_findings.pop(task.task_id, None)
        if own:
            self._own_findings[task.task_id] = own
        task.retry = budget(task, max_retries=self._max_retries, restored=self._fitters.restored(task.task_id))

    def _hang(self, task_ids: set[str]) -> set[str]:
        """Put tasks where their links say. Returns the tasks that an abort above may end now, or no more."""
        moving = []
        for task in map(self.tasks.__getitem__, task_ids):
            place = self._linking.link(task.task_id).parent, self._first_seen(task)
            if task.task_id not in self._sums.placed or place != (task.parent_id, task.first_seq):
                moving.append((task, *place))
        self._sums.touched |= task_ids
        # All leave before the first arrives: two tasks that change places must at no time be each other's parent.
        for task, _, _ in moving:
            if task.task_id in self._sums.placed:
                self._sums.remove(task)
        for task, parent_id, first_seq in moving:
            task.first_seq = first_seq
            self._sums.insert(task, parent_id)
            self.structure += 1
        return self._aborts.moved([task.task_id for task, _, _ in moving])

    def _first_seen(self, task: Task) -> int:
        if versions := self._files.versions(task.task_id):
            return versions[0].seq
        if runs := self._runs.of(task.task_id):
            # By its time, and not by when it was observed: sources look at the newest session first.
            began = int(runs[0].run.began_at * 1e6) if runs[0].run is not None else 0
            return -began if task.is_session else began
        # A task that nothing speaks of any more keeps its place until its turn to go comes.
        named = self._inference.first_seen(task.task_id)
        return task.first_seq if named is None else named

    def _drop(self, task_id: str) -> set[str]:
        """Forget a task. Returns other tasks that have to be made anew because of it."""
        task = self.tasks.get(task_id)
        if task is None:
            return set()
        follow = self._hang(self._linking.remove(task_id))
        self._sums.remove(task)
        follow |= self._fitters.take(task_id, None) & self.tasks.keys()
        self._aborts.drop(task_id)
        self._changes.drop(task_id)
        self._own_findings.pop(task_id, None)
        del self.tasks[task_id]
        self.queue.discard(task_id)
        self._removed.add(task_id)
        self.structure += 1
        return follow

    def _findings(self, task: Task) -> tuple[PlacedFinding, ...]:
        findings = self._own_findings.get(task.task_id, ())
        versions = self._files.versions(task.task_id)
        if (problem := self._linking.link(task.task_id).problem) is not None:
            findings += (PlacedFinding(finding_of(*problem), versions[0].path if versions else ""),)
        return findings + self._overruns.of(task.task_id) + self._unread.of(versions)

    def _queue(self, task: Task) -> None:
        if task.ask is None:
            self.queue.discard(task.task_id)
        else:
            self.queue.ask(task.task_id, self.holds(task), task.ended_at or task.alive_at or 0.0)

    def _is_stale(self, task: Task) -> bool:
        """Working and silent for too long, with all that works below it. Who waits for somebody is not silent."""
        if task.state is not State.WORKING:
            return False
        if task.run is not None and task.run.process_gone:
            return True
        waits = task.below and any(state.is_open and state is not State.WORKING for state in task.below.states)
        if waits or task.alive_at is None:
            return False
        due = task.alive_at + self._stale_after
        if self.now < due:
            self._silences.put(task.task_id, due)
        return self.now >= due

    def _decisions_on(self, task_id: str) -> list[Decision]:
        """The decisions about a task, in the order in which they were made."""
        decisions = []
        for one in map(self._fitters.followed, self._decisions.get(task_id, {}).values()):
            expired = one.is_expired(self.now)
            if one.expires_at is not None and not expired:
                self._expiries.put(task_id, one.expires_at)
            decisions.append(replace(one, expired=expired and not one.over))
        return sorted(decisions, key=lambda one: one.at)
