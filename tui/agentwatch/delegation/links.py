"""Links between tasks: who handed a task over, and the rules of what can be wrong between documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from posixpath import dirname
from typing import Final, NamedTuple

from agentwatch.contracts.rules import Rule, read_rules
from agentwatch.contracts.shapes import Contract, Finding, Handoff, Outcome, Return
from agentwatch.delegation.identity import dotted_prefixes, in_directory, slot
from agentwatch.delegation.retry import overrun
from agentwatch.delegation.run import Session
from agentwatch.delegation.task import Basis, Link, Place, PlacedFinding, Task, Version

RULES: Final = tuple(rule for rule in read_rules().values() if rule.id.startswith("LNK"))
(
    CYCLE,
    SELF_PARENT,
    ORPHAN,
    DUPLICATE_HANDOFF,
    DUPLICATE_RETURN,
    SESSION_MISMATCH,
    ARTIFACT_MISSING,
    TASK_MISMATCH,
    OVERRUN,
    PROSE,
    UNASKED,
) = RULES


def finding_of(rule: Rule, other: str) -> Finding:
    """The finding of a rule; `other` is the other party: a task id, a path or a session id."""
    return Finding(rule.id, rule.severity, rule.message.format(other=other))


def answered_in_prose(task: Task) -> list[PlacedFinding]:
    """That the latest attempt was handed a packet and came back with words that follow no contract."""
    handoff = task.latest.handoff if task.latest is not None else None
    if not task.answers_in_prose or handoff is None:
        return []
    return [PlacedFinding(finding_of(PROSE, task.task_id), handoff.path)]


def overrun_of(task: Task) -> PlacedFinding | None:
    """That a task was retried more often than the policy allows."""
    counted = overrun(task) if len(task.attempts) > 1 else None
    if counted is None:
        return None
    retries, allowed = counted
    latest = next((one for attempt in reversed(task.attempts) if (one := attempt.returned or attempt.handoff)), None)
    words = f"{task.task_id} was retried {retries} times, and the policy allows {allowed},"
    return PlacedFinding(finding_of(OVERRUN, words), latest.path if latest is not None else "")


def promises_artifacts(result: Return) -> bool:
    """Whether all artifacts that a return names have to exist."""
    has_artifacts = result.contract in (Contract.SUBAGENT_RETURN, Contract.RETURN_META)
    return has_artifacts and result.outcome is Outcome.COMPLETED


def missing_artifacts(task: Task) -> list[PlacedFinding]:
    """Artifacts that the latest return says are there, as far as its claims were checked: rule 6 of subagent-return."""
    result, latest = task.result, task.latest
    if result is None or latest is None or latest.returned is None or not promises_artifacts(result):
        return []
    missing = (claim for claim in task.claims if claim.kind == "artifact" and claim.is_missing)
    paths = {claim.file or claim.path: claim.path for claim in missing}
    return [PlacedFinding(finding_of(ARTIFACT_MISSING, path), latest.returned.path) for path in paths.values()]


def ancestors(tasks: Mapping[str, Task], task_id: str) -> Iterator[str]:
    """The ids of the tasks above one, nearest first."""
    while (parent_id := tasks[task_id].parent_id) is not None:
        yield (task_id := parent_id)


def below(tasks: Mapping[str, Task], task_id: str) -> Iterator[str]:
    """The ids of the tasks below one, in preorder."""
    pending = [*reversed(tasks[task_id].children)]
    while pending:
        yield (task_id := pending.pop())
        pending += reversed(tasks[task_id].children)


class Named(NamedTuple):
    """Where a task was named first in somebody's delegation path: the `seq` of the first document of that task, its id,
    and the task that stands before there."""

    seq: int
    by: str
    above: str | None


def path_of(versions: Sequence[Version]) -> tuple[str, ...]:
    """The ids of the tasks above a task by its latest delegation path, outermost first, each once; none where a packet
    names the parent."""
    ids: tuple[str, ...] | None = None
    for version in reversed(versions):
        document = version.document
        if isinstance(document, Handoff) and document.parent_task_id:
            return ()
        if ids is None and isinstance(document, Return) and len(document.delegation_path) > 1:
            directory = slot(version.path)[0]
            above = (in_directory(directory, element) for element in document.delegation_path[:-1] if element)
            ids = tuple(dict.fromkeys(above))
    return ids or ()


class Links:
    """The parents of tasks, as a function of the set of tasks and of what they say of their place.

    `task_of` gives the task that a session executes. A task that came, went or says something else is linked by itself,
    unless an id, a session or a directory by which others were linked is another's with it: then all are.
    """

    def __init__(self, tasks: Mapping[str, Task], task_of: Callable[[Session], str | None]) -> None:
        self._tasks, self._task_of = tasks, task_of
        self.named: dict[str, Named] = {}  # the tasks that stand in delegation paths, told apart by their directories
        self.moved: set[str] = set()
        self.all_moved = True
        self._directories = defaultdict[str | None, dict[str, None]](dict)
        """The tasks by directory: one with several is a collection, and encloses none of them."""
        self._asked: set[str | Session | None] = set()
        """The ids, sessions and directories that were asked for when tasks were linked."""

    def move(self, task_id: str, before: Place | None, after: Place | None) -> list[str]:
        """A task says this of its place; None before it comes, and once it has gone."""
        self.moved.add(task_id)
        if before is None or after is None:
            self.touch(task_id)
        before, after = before or Place(), after or Place()
        if before.directory != after.directory:
            for directory in {before.directory, after.directory} - {None}:
                group = self._directories[directory]
                was_alone = len(group) == 1
                if directory == after.directory:
                    group[task_id] = None
                else:
                    del group[task_id]
                if was_alone or len(group) == 1:
                    self.touch(directory)
        if (before.path, before.seq) == (after.path, after.seq):
            return []
        self.all_moved |= any(self.named[one].by == task_id for one in before.path)
        return self._name(task_id, after)

    def _name(self, task_id: str, place: Place) -> list[str]:
        new = []
        for above, one in zip((None, *place.path), place.path, strict=False):
            name = Named(place.seq, task_id, above)
            if one not in self.named or name[:2] < self.named[one][:2]:
                self.named[one] = name
                new.append(one)
        self.moved.update(new)
        return new

    def touch(self, key: str | Session | None) -> None:
        """A task, the task of a session, or the only task of a directory is another."""
        self.all_moved |= key in self._asked

    def name_all(self) -> set[str]:
        """Find all tasks that are named anew. Returns those that came or went."""
        before, self.named = self.named, {}
        for task in self._tasks.values():
            self._name(task.task_id, task.facts.place)
        return before.keys() ^ self.named.keys()

    def link_all(self) -> dict[str, Link]:
        """The links of all tasks. Parents of a cycle are not followed: its members are roots."""
        self._asked.clear()
        links = {task_id: self.link(task) for task_id, task in self._tasks.items()}
        for task_id in _in_cycles(links):
            links[task_id] = None, Basis.NONE, (CYCLE, links[task_id][0] or task_id)
        self.all_moved = False
        return links

    def link(self, task: Task) -> Link:
        """The link of a task."""
        task_id, stated = task.task_id, task.facts.place.parent_task_id
        if stated == task_id:
            return None, Basis.NONE, (SELF_PARENT, task_id)
        if stated is not None and self._find(stated):
            return stated, Basis.PACKET, None
        _, asker, before = self.candidates(task)
        self._asked.update(task.facts.place.asked_by)
        parent, basis = None, Basis.NONE
        if asker is not None and asker != task_id and self._find(asker):
            parent, basis = asker, Basis.SESSION
        elif before is not None and self._find(before):
            parent, basis = before, Basis.DELEGATION_PATH
        elif prefix := next(filter(self._find, dotted_prefixes(task_id)), None):
            parent, basis = prefix, Basis.DOTTED_PREFIX
        elif around := self._around(task.facts.place.directory):
            parent, basis = around, Basis.DIRECTORY
        if parent == task_id:
            return None, Basis.NONE, (CYCLE, task_id)
        return parent, basis, None if stated is None else (ORPHAN, stated)

    def _find(self, task_id: str) -> bool:
        self._asked.add(task_id)
        return task_id in self._tasks

    def _around(self, directory: str | None) -> str | None:
        """The only task of the nearest directory around one that has an only task."""
        while directory:
            directory = dirname(directory)
            self._asked.add(directory)
            if len(group := self._directories.get(directory, ())) == 1:
                return next(iter(group))
        return None

    def candidates(self, task: Task) -> tuple[str | None, str | None, str | None]:
        """The parents that a task has by its packet, by the session that asked for it, and by delegation paths."""
        stated, asked_by, path, *_ = task.facts.place
        asker = next(filter(None, map(self._task_of, asked_by)), None)
        named = self.named.get(task.task_id)
        return stated, asker, path[-1] if path else named.above if named is not None else None


def _in_cycles(links: Mapping[str, Link]) -> list[str]:
    walks: dict[str, str] = {}  # by task, where the walk up began that came by first
    cycles: list[str] = []
    for start in links:
        one: str | None = start
        while one is not None and one not in walks:
            walks[one] = start
            one = links[one][0]
        if one is not None and walks[one] == start:
            first = one
            cycles.append(one)
            while (one := links[one][0]) != first and one is not None:
                cycles.append(one)
    return cycles
