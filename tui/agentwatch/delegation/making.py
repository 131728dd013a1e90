"""The tasks of a tree, each made of all that is known of it: its files, its runs, and what was decided and checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from functools import partial

from agentwatch.delegation import identity, standing
from agentwatch.delegation.aside import Asides
from agentwatch.delegation.asks import ask, ask_to_mend, is_past
from agentwatch.delegation.changes import Changes, CheckedReturns
from agentwatch.delegation.claims import overall
from agentwatch.delegation.decision import Action
from agentwatch.delegation.effects import Aborts, Decisions, Fitters
from agentwatch.delegation.events import Ran
from agentwatch.delegation.files import Files
from agentwatch.delegation.fold import counting, fold
from agentwatch.delegation.indexes import NOBODY, Deadlines
from agentwatch.delegation.linking import Claims, Inference, Linking
from agentwatch.delegation.pulse import Spending, go_on
from agentwatch.delegation.reading import LeftOut, TaskTree
from agentwatch.delegation.requests import Requests
from agentwatch.delegation.retry import budget
from agentwatch.delegation.rules import Rules
from agentwatch.delegation.runs import Runs
from agentwatch.delegation.sums import Sums
from agentwatch.delegation.task import PlacedFinding, State, Task, Version
from agentwatch.delegation.unread import Unread


class Making(TaskTree):
    """All that is known, by kind, and the tasks that are made of it. What follows from several of them is not here."""

    def __init__(self, rules: Rules, *, remembers: bool, host: str) -> None:
        super().__init__(rules.history_before)
        self.host = host
        self.rules = rules
        self._due = Deadlines()
        """When a task has to be looked at again because time has passed."""
        self.asides = Asides(self.tasks, self._due)
        """What the operator has put aside and looked at."""
        self.unseen = self.asides.unseen
        self._files = Files(remembers=remembers)
        self._unread = Unread(self._files)
        self._runs = Runs()
        gone, began_in = self._files.is_gone, self._runs.began_in
        self._fold = partial(fold, is_gone=gone, began_in=began_in)
        self._requests = Requests(self._runs)
        self._checks = CheckedReturns()
        self._inference = Inference()
        self._linking = Linking()
        self._sums = Sums(self.tasks)
        self.roots, self.totals = self._sums.roots, self._sums.totals
        self._changes = Changes(self.tasks, rules.stale_after, lambda path: bool(self._files.tasks_of(path)))
        self._fitters = Fitters()
        self._decisions = Decisions(self._fitters)
        self._aborts = Aborts(self.tasks)
        self._spending = Spending()
        self._own_findings: dict[str, tuple[PlacedFinding, ...]] = {}
        """Of the tasks that have some, what their own documents and attempts break."""
        self._left_out = LeftOut()
        self._removed: set[str] = set()
        self._going_on: set[str] = set()
        """The tasks of which a run only went on."""

    @property
    def left_out(self) -> Set[str]:
        """The ids of the tasks that are known, and left out for being old."""
        return self._left_out.ids

    def _rebuild_all(self, task_ids: Iterable[str]) -> None:
        """Make these tasks anew, in their order, and others because of them, until there is none."""
        dirty = dict.fromkeys([*task_ids][::-1])
        while dirty:
            task_id, _ = dirty.popitem()
            dirty.update(dict.fromkeys(self._rebuild(task_id)))

    def _rebuild(self, task_id: str) -> set[str]:
        """Make a task anew from its documents. Returns other tasks that have to be made anew because of it."""
        versions, runs = self._files.versions(task_id), self._runs.of(task_id)
        follow = set[str]()
        if task_id in self.left_out:
            if not runs and versions and not self._left_out.is_news(task_id, versions):
                return follow
            follow = self._left_out.come_back(task_id) - {task_id}
        follow |= self._inference.support(task_id, versions)
        requests = self._requests.of(task_id, self.now)
        is_known = versions or runs or self._inference.first_seen(task_id) is not None
        if not is_known and not any(one.is_open for one in requests):
            return follow | self._drop(task_id)
        task = self.tasks.get(task_id)
        if task is None:
            task = self.tasks[task_id] = Task(task_id, title=task_id, host=self.host)
            self.structure += 1
        task.requests = requests
        self._fill(task, versions, runs)
        claims = Claims(
            parent_task_id=task.packet.parent_task_id if task.packet else None,
            asked_by=self._runs.parent_of(task_id) if runs else None,
            delegated_by=self._inference.delegated_by(task_id),
            directory=identity.place_of(versions),
        )
        if self.left_out:
            for named in (claims.parent_task_id, claims.asked_by, claims.delegated_by):
                follow |= self._left_out.come_back(named)
        follow |= self._hang(self._linking.place(task_id, claims) | {task_id})
        follow |= self._aborts.end(task)
        return follow | self._judge(task)

    def _goes_on(self, ran: Ran) -> bool:
        """Take in that a run only goes on, as most observations say; False where more may follow from it."""
        before, run = self._runs.known(ran.path), ran.run
        task = self.tasks.get(next(iter(self._runs.tasks_of(ran.path)), ""))
        used = task.tokens if task is not None else None
        if before is None or run is None or task is None or not go_on(task, before, run):
            return False
        self._runs.go_on(ran)
        self._changes.take(task)
        task.tokens = standing.tokens_of(task)
        self._sums.count(task)
        self._spending.take(task, used, self.now)
        self._going_on.add(task.task_id)
        return True

    def _fill(self, task: Task, versions: Sequence[Version], runs: list[Ran]) -> None:
        """Everything about a task that its own documents and runs say, whatever was checked."""
        decisions = self._decisions.of(task.task_id, self.now)
        versions = counting(versions, decisions)
        attempts = self._fold(versions, runs, decisions, strict=self.rules.strict, demands=self.rules.demands)
        task.deleted = bool(versions) and not runs and all(self._files.is_gone(version.path) for version in versions)
        standing.fill(task, attempts, versions, runs)
        latest = task.latest
        current = (latest.handoff, latest.returned, attempts.checklist) if latest else ()
        placed = (PlacedFinding(one, version.path) for version in current if version for one in version.findings)
        self._own_findings.pop(task.task_id, None)
        if own := (*attempts.problems, *placed):
            self._own_findings[task.task_id] = own
        answers = (one for one in decisions if one.action is Action.RESPOND and not one.expired)
        task.answered = frozenset(one.attempt for one in answers) if decisions else NOBODY
        task.retry = budget(task, max_retries=self.rules.max_retries, restored=self._fitters.restored(task.task_id))

    def _judge(self, task: Task) -> set[str]:
        """What was checked of a task, and what it comes to with that. Returns other tasks that have to be made anew
        because of it."""
        latest = task.latest
        checked = self._checks.of(latest.returned) if latest and latest.returned else None
        task.claims, task.changed, task.unsaid = (
            (checked.claims, checked.changed, checked.unsaid) if checked else ((), None, ())
        )
        task.is_checked = checked is not None
        self._changes.take(task)
        restored = self._fitters.take(task.task_id, task)
        verdict = overall(task.claims) if task.own_state in (State.COMPLETED, State.PARTIAL) else None
        versions = self._files.versions(task.task_id)
        hidden = self._unread.hidden(versions) if task.own_state is not State.CANCELED else {}
        task.question = ask_to_mend(next(iter(hidden))) if hidden else ask(task, verdict, self.rules.low_confidence)
        task.alarms, task.verdict = (), verdict
        if not task.inferred:
            task.past = is_past(task, self.history_before, *hidden.values())
        used, task.tokens = task.tokens, standing.tokens_of(task)
        self._spending.take(task, used, self.now)
        self._sums.touched.add(task.task_id)
        self._sums.count(task)
        return restored & self.tasks.keys() if restored else restored

    def _hang(self, task_ids: set[str]) -> set[str]:
        """Put tasks where their links say. Returns the tasks that an abort above may end now, or no more."""
        moving = []
        for task in map(self.tasks.__getitem__, task_ids):
            place = self._linking.link(task.task_id).parent, self._first_seen(task)
            if task.counted is None or place != (task.parent_id, task.first_seq):
                moving.append((task, *place))
        self._sums.touched |= task_ids
        # All leave before the first arrives: two tasks that change places must at no time be each other's parent.
        for task, _, _ in moving:
            if task.counted is not None:
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
        if named is None and task.requests:
            # As a session that a human began, which it may turn out to be.
            return -int(min(one.asked_at for one in task.requests) * 1e6)
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
        self.asides.unseen.discard(task_id)
        self._removed.add(task_id)
        self.structure += 1
        return follow
