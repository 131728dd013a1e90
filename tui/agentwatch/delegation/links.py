"""Links between tasks: who handed a task over, and the rules of what can be wrong between documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from posixpath import dirname
from typing import Final, NamedTuple

from agentwatch.contracts.rules import Rule, read_rules
from agentwatch.contracts.shapes import Contract, Finding, Handoff, Outcome, Return
from agentwatch.delegation.identity import dotted_prefixes, in_directory, slot
from agentwatch.delegation.retry import overrun
from agentwatch.delegation.run import Session
from agentwatch.delegation.task import Basis, PlacedFinding, Task, Version

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
    """Artifacts that the latest return says are there, as far as its claims were checked: rule 6 of subagent-return.

    The task keeps its state; for exit codes, errors.json and the retry policy the attempt counts as failed.
    """
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


def named_in_paths(tasks: Mapping[str, Task]) -> dict[str, Named]:
    """The tasks that stand in delegation paths. The elements of a path are told apart by task directory: the `planner`
    of one is not the `planner` of another."""
    named: dict[str, Named] = {}
    for task in tasks.values():
        if path := task.facts.place.path:
            for above, one in zip((None, *path), path, strict=False):
                entry = Named(task.facts.place.seq, task.task_id, above)
                if one not in named or entry[:2] < named[one][:2]:
                    named[one] = entry
    return named


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


Link = tuple[str | None, Basis, tuple[Rule, str] | None]
"""A task's parent, its basis, and what is wrong with what was claimed: the rule and the other party."""


def link_tasks(
    tasks: Mapping[str, Task], named: Mapping[str, Named], task_of: Callable[[Session], str | None]
) -> dict[str, Link]:
    """The link of each task: a function of the set of tasks and of what they say of their place. Parents of a cycle are
    not followed: its members are roots. `task_of` gives the task that a session executes."""
    alone: dict[str, str | None] = {}
    """By directory, the only task in it: a directory with several is a collection, and belongs to none of them."""
    for task_id, task in tasks.items():
        if (directory := task.facts.place.directory) is not None:
            alone[directory] = None if directory in alone else task_id
    links: dict[str, Link] = {}
    around: dict[str, str | None] = {}
    for task_id, task in tasks.items():
        place = task.facts.place
        stated = place.parent_task_id
        if stated == task_id:
            links[task_id] = None, Basis.NONE, (SELF_PARENT, task_id)
        elif stated in tasks:
            links[task_id] = stated, Basis.PACKET, None
        else:
            parent, basis = _named_parent(task, tasks, named, task_of)
            if parent is None and (directory := place.directory):
                if directory not in around:
                    around[directory] = _nearest(directory, alone)
                parent, basis = around[directory], Basis.DIRECTORY
            problem = None if stated is None else (ORPHAN, stated)
            if parent == task_id:
                links[task_id] = None, Basis.NONE, (CYCLE, task_id)
            else:
                links[task_id] = parent, Basis.NONE if parent is None else basis, problem
    for task_id in _in_cycles(links):
        links[task_id] = None, Basis.NONE, (CYCLE, links[task_id][0] or task_id)
    return links


def _named_parent(
    task: Task, tasks: Mapping[str, Task], named: Mapping[str, Named], task_of: Callable[[Session], str | None]
) -> tuple[str | None, Basis]:
    """The parent that a session, a delegation path or the id names; the task itself where a path says so."""
    task_id = task.task_id
    if task.facts.place.asked_by or task.facts.place.path or task_id in named:
        _, asker, before = candidates(task, named, task_of)
        if asker != task_id and asker in tasks:
            return asker, Basis.SESSION
        if before in tasks:
            return before, Basis.DELEGATION_PATH
    prefix = next((one for one in dotted_prefixes(task_id) if one in tasks), None) if "." in task_id else None
    return prefix, Basis.DOTTED_PREFIX


def candidates(
    task: Task, named: Mapping[str, Named], task_of: Callable[[Session], str | None]
) -> tuple[str | None, str | None, str | None]:
    """The parents that a task has by its packet, by the session that asked for it, and by delegation paths."""
    stated, asked_by, path, *_ = task.facts.place
    asker = next(filter(None, map(task_of, asked_by)), None)
    return stated, asker, path[-1] if path else named[task.task_id].above if task.task_id in named else None


def _nearest(directory: str, alone: Mapping[str, str | None]) -> str | None:
    """The only task of the nearest directory around one that has an only task."""
    while directory:
        directory = dirname(directory)
        if (task_id := alone.get(directory)) is not None:
            return task_id
    return None


def _in_cycles(links: Mapping[str, Link]) -> list[str]:
    walks: dict[str, str] = {}
    """By task, where the walk up began that came by first."""
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
