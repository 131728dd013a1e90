"""Links between tasks: who handed a task over, and the rules of what can be wrong between documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from posixpath import dirname
from typing import Final, NamedTuple

from agentwatch.contracts.rules import Rule, makers
from agentwatch.contracts.shapes import Contract, Finding, Handoff, Outcome, Return
from agentwatch.delegation.identity import dotted_prefixes, in_directory, slot
from agentwatch.delegation.retry import overrun
from agentwatch.delegation.run import Session
from agentwatch.delegation.task import Basis, Link, Place, PlacedFinding, Task, Version

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
