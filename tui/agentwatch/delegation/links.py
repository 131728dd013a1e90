"""Links between tasks: who handed a task over, and the rules of what can be wrong between documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from posixpath import dirname
from typing import Final, NamedTuple

from agentwatch.contracts.rules import Rule, makers
from agentwatch.contracts.shapes import Contract, Finding, Handoff, Outcome, Return
from agentwatch.delegation.identity import dotted_prefixes, in_directory, slot
from agentwatch.delegation.retry import overrun
from agentwatch.delegation.run import Session
from agentwatch.delegation.task import Basis, PlacedFinding, Task, Version

_error, _warning = makers(None)
_LINKING: Final = "Linking"
_VALIDATION: Final = "Orchestrator Validation (Stage 6)"

CYCLE: Final = (
    _warning("LNK001", _LINKING, "parents form a cycle")
    .says("The chain of parents comes back to this task ({other}); name the task that really handed it over.")
    .because("A task cannot be its own ancestor. The tasks of a cycle are shown as roots until it is corrected.")
    .example(
        'a: {"parent_task_id": "root"}   b: {"parent_task_id": "a"}',
        'a: {"parent_task_id": "b"}   b: {"parent_task_id": "a"}',
    )
)
SELF_PARENT: Final = (
    _warning("LNK002", _LINKING, "a task is its own parent")
    .says("`parent_task_id` names the task itself ({other}); name the parent, or leave the key out.")
    .because("A task that is its own parent has none; it is shown as a root.")
    .example('{"task_id": "a.b", "parent_task_id": "a"}', '{"task_id": "a.b", "parent_task_id": "a.b"}')
)
ORPHAN: Final = (
    _warning("LNK003", _LINKING, "the parent is not known")
    .says("No handoff or return speaks of the parent {other}; correct `parent_task_id`, or write the parent's handoff.")
    .because("The parent may still come: until then the task is linked by its next best basis.")
    .example(
        '{"task_id": "a.b", "parent_task_id": "a"}, beside the handoff of a',
        '{"task_id": "a.b", "parent_task_id": "a"}, and nothing speaks of a',
    )
)
DUPLICATE_HANDOFF: Final = (
    _warning("LNK004", _LINKING, "a task is handed off twice")
    .says("Another file hands off the same task ({other}); give one its own `task_id`, or number them with `attempt`.")
    .because("Two handoffs of one task cannot both be true. The one that was seen first is shown.")
    .example('{"task_id": "a"} and {"task_id": "a", "attempt": 2}', '{"task_id": "a"} in two files')
)
DUPLICATE_RETURN: Final = (
    _warning("LNK005", _LINKING, "an attempt is returned twice")
    .says("Another file returns the same attempt ({other}); remove one, or number them with `attempt` or `session_id`.")
    .because("Two returns of one attempt cannot both be true. The one that was seen first is shown.")
    .example("task_id: a / attempt: 1   and   task_id: a / attempt: 2", "task_id: a   in two files")
)
SESSION_MISMATCH: Final = (
    _error("LNK006", _VALIDATION, "the return is of another session")
    .says("The return's `session_id` is not the one of the delegation ({other}); return the one that was handed over.")
    .because("metadata.session_id must match the expected session_id: subagent-return, validation rule 4.")
    .example(
        'handoff: {"session_id": "sess_1_a"}   return: {"metadata": {"session_id": "sess_1_a"}}',
        'handoff: {"session_id": "sess_1_a"}   return: {"metadata": {"session_id": "sess_2_b"}}',
    )
)
ARTIFACT_MISSING: Final = (
    _error("LNK007", _VALIDATION, "an artifact does not exist")
    .says("The status says that the work is done, and the artifact {other} is not on disk; create it, or leave it out.")
    .because("All artifact paths of a completed return must exist on disk: subagent-return, validation rule 6.")
    .only_warns_in(Contract.RETURN_META)
    .example(
        '"artifacts": [{"path": "plan.md"}], and plan.md is there',
        '"artifacts": [{"path": "plan.md"}], and there is no plan.md',
    )
)
TASK_MISMATCH: Final = (
    _warning("LNK008", _LINKING, "the return names another task")
    .says("The return names the task {other}, which is not the one that its session was handed; name that one.")
    .because("Who goes by the task id takes it for another task's. It stands on the task of its session.")
    .example(
        'handoff: {"task_id": "a"}   return of that session: {"report_metadata": {"task_id": "a"}}',
        'handoff: {"task_id": "a"}   return of that session: {"report_metadata": {"task_id": "b"}}',
    )
)
OVERRUN: Final = (
    _warning("LNK009", "Retry Policy (MVP)", "a child was retried too often")
    .says("{other} without a decision; stop retrying it: let the operator decide, escalate to another mode, or abort.")
    .because(
        "A parent retries once, or twice with a material mitigation, then escalates: error-propagation, retry policy."
    )
    .example("one failed attempt, one retry, then an escalation", "four attempts that failed, and nobody was asked")
)
PROSE: Final = (
    _warning("LNK010", "Minimum MVP Fields", "a packet is answered in prose")
    .says("The child was handed the packet of {other} and answered in prose; ask for the sections of return-format.")
    .because("Whether it is done cannot be told from prose. A child that was handed a packet answers by a contract.")
    .example("## Status / state: SUCCESS / …", "All done, have a look!")
)
UNASKED: Final = (
    _warning("LNK011", _LINKING, "nobody handed out the attempt")
    .says("The attempt before failed, and nobody handed out attempt {other}; hand it off, or let the operator decide.")
    .because("A child that numbers its own attempts could hide a failure. The task asks until the operator decides.")
    .example(
        'handoff: {"task_id": "a", "attempt": 2}   return: task_id: a / attempt: 2',
        "task_id: a / attempt: 2   after a failure, with no handoff and no decision for it",
    )
)

RULES: Final[tuple[Rule, ...]] = (
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
)


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
