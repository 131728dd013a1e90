"""Linking (DESIGN.md): which task a document speaks of, who handed that over, and what can be wrong between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from posixpath import basename, dirname, split
from sys import intern
from typing import Final

from agentwatch.contracts.rules import Rule, read_rules
from agentwatch.contracts.shapes import Contract, Fields, Finding, Handoff, Outcome, Return, TodoList
from agentwatch.delegation.events import Seen
from agentwatch.delegation.run import Session
from agentwatch.delegation.task import Basis, Problem, Task

_KINDS: Final = "handoff|return|todos"
_SUFFIX: Final = re.compile(rf"(?:^|[._-])(?:{_KINDS})(?:[._-]?\d+)?$", re.IGNORECASE)
_PREFIX: Final = re.compile(rf"^(?:{_KINDS})[._-](?=.)", re.IGNORECASE)
_EXTENSION: Final = re.compile(r"(?:\.report)?\.json$|\.(?:md|markdown)$", re.IGNORECASE)
_ANSWER: Final = re.compile(r"(?:^|[._-])(?:handoff|return)(?:[._-]|$)", re.IGNORECASE)
_FOLDERS: Final = frozenset({"handoffs", "returns", "todos"})

# `.return-meta.json` is the file of a task directory; `.return-meta-b.json` is that of a teammate in the same one.
_META: Final = (
    r"^\.?(?:(?P<before>[a-z0-9]+(?:[-_][a-z0-9]+)*)-)?(?:return-meta|meta(?:-builder)?-return)(?:[-.](?P<after>.+))?$",
    r"^\.?(?P<before>orchestrator-handoff|phase\d+-handoff)(?:[-.](?P<after>.+))?$",
)
_SESSION_SUFFIX: Final = re.compile(r"[-.]?sess_.*$", re.IGNORECASE)

Slot = tuple[str, str]
"""(directory, stem): files with equal slots are about the same task, `("jobs", "api")` for `jobs/handoffs/api.json`."""


def slot(path: str) -> Slot:
    """The slot of a file; the stem is empty for general names such as `handoff.json`, `return-2.md`, `todos.md`."""
    directory, name = split(path)
    if basename(directory) in _FOLDERS:
        directory = dirname(directory)
    name = _EXTENSION.sub("", name)
    # Interned, for many files lie in one directory.
    return intern(directory), "" if _variant(name) == "" else _PREFIX.sub("", _SUFFIX.sub("", name))


def _variant(name: str) -> str | None:
    """The addition in the name of a return-meta file: "" for the plain name, None outside the family."""
    for match in (re.match(pattern, name, re.IGNORECASE) for pattern in _META):
        if match is not None:
            return "-".join(filter(None, (match["before"], _SESSION_SUFFIX.sub("", match["after"] or ""))))
    return None


def agent_of(document: Return) -> str | None:
    """The agent that wrote a return: the last element of its delegation path, else what it calls itself."""
    return document.delegation_path[-1] if document.delegation_path else document.agent


def is_under_contract(path: str) -> bool:
    """Whether a file is a handoff or a return by its name, or by the folder that it lies in: it must be readable."""
    name, folder = _EXTENSION.sub("", basename(path)), basename(dirname(path))
    return _ANSWER.search(name) is not None or _variant(name) is not None or folder in _FOLDERS - {"todos"}


def own_id(document: Fields) -> str | None:
    """The task id a document states itself."""
    return None if isinstance(document, TodoList) else document.task_id or None


def fallback_id(path: str, document: Fields) -> str:
    """The task id of a document that states none and lies beside no handoff."""
    directory, stem = slot(path)
    if isinstance(document, Return) and document.contract in (Contract.SUBAGENT_RETURN, Contract.RETURN_META):
        extra = _variant(_EXTENSION.sub("", basename(path)))
        place = in_directory(directory, agent_of(document)) or stem or basename(path)
        return f"{place}#{extra}" if extra else place
    return in_directory(directory, stem) or _EXTENSION.sub("", basename(path))


def in_directory(directory: str, name: str | None) -> str:
    """The id of the task that `name` does in a task directory."""
    return "/".join(part for part in (directory, name) if part)


def place_of(versions: Sequence[Seen]) -> str | None:
    """The task directory: where the task was first handed off, else where it was first returned."""
    given = (version for kind in (Handoff, Return) for version in versions if isinstance(version.document, kind))
    return next((slot(version.path)[0] for version in given), None)


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


Link = tuple[str | None, Basis, Problem | None]  # A task's parent, its basis, and what is wrong with it


def finding_of(rule: Rule, other: str) -> Finding:
    """The finding of a rule; `other` is the other party: a task id, a path or a session id."""
    return Finding(rule.id, rule.severity, rule.message.format(other=other))


def promises_artifacts(result: Return) -> bool:
    """Whether all artifacts that a return names have to exist."""
    has_artifacts = result.contract in (Contract.SUBAGENT_RETURN, Contract.RETURN_META)
    return has_artifacts and result.outcome is Outcome.COMPLETED


def missing_artifacts(task: Task) -> list[Finding]:
    """Artifacts that the latest return says are there, as far as its claims were checked: rule 6 of subagent-return."""
    result, latest = task.result, task.latest
    if result is None or latest is None or latest.returned is None or not promises_artifacts(result):
        return []
    missing = (claim for claim in task.claims if claim.kind == "artifact" and claim.is_missing)
    paths = {claim.file or claim.path: claim.path for claim in missing}
    return [replace(finding_of(ARTIFACT_MISSING, path), path=latest.returned.path) for path in paths.values()]


Named = tuple[int, str, str | None]
"""Where a task was named first: the `seq` of that task's first document, its id, and the task that stands before."""


def path_of(versions: Sequence[Seen]) -> tuple[str, ...]:
    """The ids above a task by its latest delegation path, outermost first; none where a packet names the parent."""
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


def find_named(tasks: Iterable[Task]) -> dict[str, Named]:
    """The tasks that stand in delegation paths."""
    named: dict[str, Named] = {}
    for task in tasks:
        above, seq = None, task.place.first_seq or 0
        for one in task.place.path:
            known = named.get(one)
            if known is None or (seq, task.task_id) < known[:2]:
                named[one] = seq, task.task_id, above
            above = one
    return named


def find_links(
    tasks: Mapping[str, Task], named: Mapping[str, Named], executing: Mapping[Session, str | None]
) -> Iterator[tuple[Task, Link]]:
    """The links of all tasks, by their places and by the tasks that sessions execute; some may make a cycle."""
    only: dict[str, str | None] = {}  # by directory, its task; one with several is a collection, and encloses none
    for task_id, task in tasks.items():
        if (directory := task.place.directory) is not None:
            only[directory] = None if directory in only else task_id
    for task_id, task in tasks.items():
        stated, asked_by, path, directory, *_ = task.place
        if stated == task_id:
            yield task, (None, Basis.NONE, (SELF_PARENT, task_id))
            continue
        if stated in tasks:
            yield task, (stated, Basis.PACKET, None)
            continue
        asker = next(filter(None, map(executing.get, asked_by)), None) if asked_by else None
        before = path[-1] if path else named[task_id][2] if task_id in named else None
        parent, basis = None, Basis.NONE
        # The longest dotted prefix of its id that is a task.
        prefix = task_id.rpartition(".")[0]
        while prefix and prefix not in tasks:
            prefix = prefix.rpartition(".")[0]
        if asker in tasks and asker != task_id:
            parent, basis = asker, Basis.SESSION
        elif before in tasks:
            parent, basis = before, Basis.DELEGATION_PATH
        elif prefix:
            parent, basis = prefix, Basis.DOTTED_PREFIX
        else:
            while directory and parent is None:
                directory = dirname(directory)
                parent = only.get(directory)
                basis = Basis.DIRECTORY if parent is not None else Basis.NONE
        yield task, (parent, basis, None if stated is None else (ORPHAN, stated))


def find_cycles(tasks: Mapping[str, Task]) -> list[str]:
    """The tasks that stand above themselves."""
    seen: set[str] = set()
    cycles: list[str] = []
    for start in tasks:
        path: list[str] = []
        one: str | None = start
        while one is not None and one not in seen:
            seen.add(one)
            path.append(one)
            one = tasks[one].parent_id
        if one in path:
            cycles += path[path.index(one) :]
    return cycles
