"""The delegation tree: a reducer over observations.

`apply` takes one observation and says which tasks changed. Its cost depends on the task concerned (its versions, its
depth, the tasks that wait for its id), never on how many tasks there are. The tree is a function of the observations
and their `seq`: any interleaving that keeps each file's own order gives the same one.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator

from agentwatch.contracts.shapes import Handoff, Return
from agentwatch.delegation import asks, identity
from agentwatch.delegation.attempts import fold
from agentwatch.delegation.claims import Claim, overall
from agentwatch.delegation.files import Files
from agentwatch.delegation.inference import Inference
from agentwatch.delegation.linking import Claims, Linking
from agentwatch.delegation.observation import Checked, Observation, Seen, Tick, Unreadable
from agentwatch.delegation.problems import found
from agentwatch.delegation.retry import DEFAULT_MAX_RETRIES, budget
from agentwatch.delegation.sums import Sums
from agentwatch.delegation.task import Below, PlacedFinding, State, Task, Version
from agentwatch.delegation.titles import title

STALE_AFTER = 600.0
"""Seconds of silence after which a working task counts as stale."""


class DelegationTree:
    """All tasks of a workspace and how they hang together.

    `strict` makes a return that breaks its contract count as failed; `stale_after` is in seconds; a completed report
    whose confidence is below `low_confidence` asks for a review.
    """

    def __init__(
        self,
        *,
        strict: bool = True,
        stale_after: float = STALE_AFTER,
        max_retries: int = DEFAULT_MAX_RETRIES,
        low_confidence: float = asks.LOW_CONFIDENCE,
    ) -> None:
        self.tasks: dict[str, Task] = {}
        self.structure = 0
        """Counts the additions, removals and moves of tasks."""
        self._strict = strict
        self._stale_after = stale_after
        self._max_retries = max_retries
        self._low_confidence = low_confidence
        self._files = Files()
        self._inference = Inference()
        self._linking = Linking()
        self._sums = Sums(self.tasks)
        self._own_findings: dict[str, list[PlacedFinding]] = {}
        self._unreadable: dict[str, PlacedFinding] = {}
        self._checked: dict[str, Checked] = {}
        self._restores: dict[str, str] = {}
        self._fitters: dict[str, set[str]] = defaultdict(set)
        self._asking: set[str] = set()
        self._removed: set[str] = set()
        self._now = float("-inf")
        self._silences: list[tuple[float, str]] = []
        self._listened: set[str] = set()

    @property
    def roots(self) -> list[str]:
        """Ids of the tasks without a parent, in the order first seen."""
        return self._sums.roots

    @property
    def totals(self) -> Below:
        """Sums over all tasks."""
        return self._sums.totals

    @property
    def notices(self) -> list[PlacedFinding]:
        """What is wrong with files that belong to no task."""
        return [placed for path, placed in self._unreadable.items() if not self._files.tasks_of(path)]

    def apply(self, observation: Observation) -> set[str]:
        """Take one observation in.

        Returns the ids of the tasks that were added, changed (also in the sums over what is below) or removed.
        """
        if isinstance(observation, Tick):
            self._now = max(self._now, observation.at)
            self._end_silences()
        else:
            dirty = self._take_in(observation)
            while dirty:
                dirty |= self._rebuild(dirty.pop())
        return self._settle()

    def asking(self) -> list[Task]:
        """The tasks that need the operator: who holds up most first, then who has waited longest."""
        tasks = [self.tasks[task_id] for task_id in self._asking]
        return sorted(tasks, key=lambda task: (-self.holds(task), task.ended_at or task.updated_at, task.task_id))

    def holds(self, task: Task) -> int:
        """How many tasks below have not ended and wait for this one's answer."""
        return task.below.open if task.below else 0

    def ancestors(self, task_id: str) -> list[str]:
        """Ids of the tasks above, nearest first."""
        above = []
        parent_id = self.tasks[task_id].parent_id
        while parent_id is not None:
            above.append(parent_id)
            parent_id = self.tasks[parent_id].parent_id
        return above

    def preorder(self) -> Iterator[tuple[Task, int]]:
        """Every task with its depth: a parent before its children, siblings in the order first seen."""
        pending = [(task_id, 0) for task_id in reversed(self.roots)]
        while pending:
            task_id, depth = pending.pop()
            task = self.tasks[task_id]
            yield task, depth
            pending.extend((child, depth + 1) for child in reversed(task.children))

    def _take_in(self, observation: Observation) -> set[str]:
        """Returns the tasks that have to be made anew."""
        if isinstance(observation, Tick):
            return set()
        path = observation.path
        if isinstance(observation, Unreadable):
            self._unreadable[path] = PlacedFinding(observation.finding, path)
            return self._files.tasks_of(path)
        if isinstance(observation, Checked):
            concerned = self._files.tasks_of(path)
            if concerned:
                self._checked[path] = observation
            return concerned
        self._unreadable.pop(path, None)
        # The tasks from before count too: a file may speak of another task now.
        before = self._files.tasks_of(path)
        return before | (self._files.see(observation) if isinstance(observation, Seen) else self._forget(path))

    def _forget(self, path: str) -> set[str]:
        self._checked.pop(path, None)
        return self._files.forget(path)

    def _rebuild(self, task_id: str) -> set[str]:
        """Make a task anew from its documents. Returns other tasks that have to be made anew because of it."""
        versions = self._files.versions(task_id)
        follow = self._inference.support(task_id, versions)
        if not versions and not self._inference.is_named(task_id):
            return follow | self._drop(task_id)
        task = self.tasks.get(task_id)
        if task is None:
            task = self.tasks[task_id] = Task(task_id, title=task_id)
            self.structure += 1
        was_completed = task.own_state is State.COMPLETED
        self._fill(task, versions)
        packet = task.packet
        restores = packet.restores if packet and packet.restores != task_id else None
        if restores != self._restores.get(task_id) or was_completed != (task.own_state is State.COMPLETED):
            follow |= self._set_restores(task_id, restores)
        claims = Claims(
            parent_task_id=packet.parent_task_id if packet else None,
            delegated_by=self._inference.delegated_by(task_id),
            directory=identity.place_of(versions),
        )
        self._hang(self._linking.place(task_id, claims) | {task_id})
        verdict = overall(task.claims) if task.own_state in (State.COMPLETED, State.PARTIAL) else None
        self._sums.change(task, task.own_state, asks.ask(task, verdict, self._low_confidence), verdict)
        return follow

    def _fill(self, task: Task, versions: list[Version]) -> None:
        """Everything about a task that its own documents say."""
        history = fold(versions, strict=self._strict)
        task.inferred = not versions
        task.attempts = history.attempts
        task.todos = history.todos
        packet, result = task.packet, task.result
        document = result or packet
        task.agent = _agent(task.task_id, result, packet)
        task.reported_state = result.reported_state if result else None
        task.contract = document.contract if document else None
        task.updated_at = max((version.at for version in versions), default=0.0)
        latest = task.latest
        task.own_state = latest.state if latest else State.SUBMITTED
        task.started_at = latest.started_at if latest else None
        has_ended = latest is not None and task.own_state not in (State.SUBMITTED, State.WORKING)
        task.ended_at = latest.returned.at if has_ended and latest and latest.returned else None
        task.claims = self._claims(latest.returned) if latest and latest.returned else ()
        current = (latest.handoff, latest.returned, history.checklist) if latest else ()
        self._own_findings[task.task_id] = history.problems + [
            PlacedFinding(finding, version.path) for version in current if version for finding in version.findings
        ]
        fitters = self._fitters.get(task.task_id, ())
        restored = sum(1 for fitter in fitters if self.tasks[fitter].own_state is State.COMPLETED)
        task.retry = budget(task, max_retries=self._max_retries, restored=restored)

    def _claims(self, returned: Version) -> tuple[Claim, ...]:
        """What was found about the claims of this very content; nothing where another one was checked last."""
        checked = self._checked.get(returned.path)
        return checked.claims if checked and checked.digest == returned.digest else ()

    def _hang(self, task_ids: set[str]) -> None:
        """Put tasks where their links say."""
        moving = []
        for task_id in task_ids:
            task = self.tasks[task_id]
            first_seq = self._first_seen(task)
            parent_id = self._linking.link(task_id).parent
            self._sums.touched.add(task_id)
            if not self._sums.is_placed(task, parent_id, first_seq):
                moving.append((task, parent_id, first_seq))
        # All leave before the first arrives: two tasks that change places must at no time be each other's parent.
        for task, _, _ in moving:
            if self._sums.holds(task):
                self._sums.remove(task)
        for task, parent_id, first_seq in moving:
            task.first_seq = first_seq
            self._sums.insert(task, parent_id)
            self.structure += 1

    def _first_seen(self, task: Task) -> int:
        if versions := self._files.versions(task.task_id):
            return versions[0].seq
        # A task that nothing speaks of any more keeps its place until its turn to go comes.
        return self._inference.first_seen(task.task_id) if self._inference.is_named(task.task_id) else task.first_seq

    def _drop(self, task_id: str) -> set[str]:
        """Forget a task. Returns other tasks that have to be made anew because of it."""
        task = self.tasks.get(task_id)
        if task is None:
            return set()
        self._hang(self._linking.remove(task_id))
        self._sums.remove(task)
        follow = self._set_restores(task_id, None)
        del self.tasks[task_id], self._own_findings[task_id]
        self._asking.discard(task_id)
        self._removed.add(task_id)
        self.structure += 1
        return follow

    def _set_restores(self, task_id: str, target: str | None) -> set[str]:
        """Remember which task this one repairs. Returns the tasks whose retries depend on it, before or now."""
        before = self._restores.pop(task_id, None)
        if before is not None:
            self._fitters[before].discard(task_id)
            if not self._fitters[before]:
                del self._fitters[before]
        if target is not None:
            self._restores[task_id] = target
            self._fitters[target].add(task_id)
        return {other for other in (before, target) if other in self.tasks and other != task_id}

    def _settle(self) -> set[str]:
        """Bring what depends on several tasks up to date for all that were touched. Returns the changed ids."""
        touched, summed = self._sums.touched, self._sums.summed
        self._sums.touched, self._sums.summed = set(), set()
        for task_id in touched:
            task = self.tasks.get(task_id)
            if task is None:
                continue
            link = self._linking.link(task_id)
            task.parent_basis = link.basis
            task.title = title(task)
            task.findings = self._findings(task)
            task.why = asks.why(task)
            task.stale = self._is_stale(task)
            if task.ask is None:
                self._asking.discard(task_id)
            else:
                self._asking.add(task_id)
        # Above them only what follows from the sums can be different.
        for task_id in summed - touched:
            task = self.tasks.get(task_id)
            if task is not None and task.own_state is State.SUBMITTED:
                task.why = asks.why(task)
            if task is not None and (task.stale or task.state is State.WORKING):
                task.stale = self._is_stale(task)
        changed = touched | summed | self._removed
        self._removed = set()
        return changed

    def _findings(self, task: Task) -> list[PlacedFinding]:
        findings = list(self._own_findings[task.task_id])
        versions = self._files.versions(task.task_id)
        if (problem := self._linking.link(task.task_id).problem) is not None:
            rule, other = problem
            findings.append(PlacedFinding(found(rule, other), versions[0].path if versions else ""))
        if self._unreadable:
            paths = dict.fromkeys(version.path for version in versions)
            findings.extend(self._unreadable[path] for path in paths if path in self._unreadable)
        return findings

    def _is_stale(self, task: Task) -> bool:
        """Working and silent for too long. A task with open tasks below it waits for them, it is not silent."""
        if task.state is not State.WORKING or task.inferred or (task.below and task.below.open):
            return False
        silent_since = max(task.updated_at, task.below.active_at if task.below else 0.0)
        due = silent_since + self._stale_after
        if self._now >= due:
            return True
        if task.task_id not in self._listened:
            self._listened.add(task.task_id)
            heapq.heappush(self._silences, (due, task.task_id))
        return False

    def _end_silences(self) -> None:
        """Look again at the tasks whose silence may have become too long."""
        while self._silences and self._silences[0][0] <= self._now:
            _, task_id = heapq.heappop(self._silences)
            self._listened.discard(task_id)
            if task_id in self.tasks:
                self._sums.touched.add(task_id)


def _agent(task_id: str, result: Return | None, packet: Handoff | None) -> str | None:
    """Who does a task: by the return, else the mode it runs in, else its place in a delegation path."""
    if result is None and packet is None:
        return task_id.rpartition("/")[2]
    agent = (identity.agent_of(result) or result.mode) if result else None
    return agent or (packet.mode if packet else None)
