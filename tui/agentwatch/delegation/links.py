"""Links documents, sessions and requests to tasks, and tasks to their parents. Reports the faults of these links."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from posixpath import basename, dirname, split
from sys import intern

from agentwatch.contracts.rules import Rule, read_rules
from agentwatch.contracts.shapes import Contract, Fields, Finding, Handoff, Outcome, Return, Texts, TodoList
from agentwatch.delegation.decision import Action, Decision, Permit, Permitter, Request, RequestStage, Session, Stage
from agentwatch.delegation.events import Gone, Ran, Requested, Run, Seen, Unreadable
from agentwatch.delegation.task import Basis, Task

MAX_VERSIONS = 256  # the most versions of one file that are kept; the busiest real file had 104

_KINDS = "handoff|return|todos"
_SUFFIX = re.compile(rf"(?:^|[._-])(?:{_KINDS})(?:[._-]?\d+)?$", re.IGNORECASE)
_PREFIX = re.compile(rf"^(?:{_KINDS})[._-](?=.)", re.IGNORECASE)
_EXTENSION = re.compile(r"(?:\.report)?\.json$|\.(?:md|markdown)$", re.IGNORECASE)
_ANSWER = re.compile(r"(?:^|[._-])(?:handoff|return)(?:[._-]|$)", re.IGNORECASE)
_FOLDERS = frozenset({"handoffs", "returns", "todos"})

# In a task directory, `.return-meta.json` is the return. `.return-meta-b.json` is the return of a second agent.
_META = (
    r"^\.?(?:(?P<before>[a-z0-9]+(?:[-_][a-z0-9]+)*)-)?(?:return-meta|meta(?:-builder)?-return)(?:[-.](?P<after>.+))?$",
    r"^\.?(?P<before>orchestrator-handoff|phase\d+-handoff)(?:[-.](?P<after>.+))?$",
)
_SESSION_SUFFIX = re.compile(r"[-.]?sess_.*$", re.IGNORECASE)

# (directory, stem), such as `("jobs", "api")` for `jobs/handoffs/api.json`. Files with equal slots are about one task.
Slot = tuple[str, str]


def slot_of(path: str) -> Slot:
    """Return (task directory, stem) of a file. The stem is "" for names such as `handoff.json`."""
    directory, name = split(path)
    if basename(directory) in _FOLDERS:
        directory = dirname(directory)
    name = _EXTENSION.sub("", name)
    # Interned to save memory: many files lie in one directory.
    return intern(directory), "" if _name_variant(name) == "" else _PREFIX.sub("", _SUFFIX.sub("", name))


def _name_variant(name: str) -> str | None:
    """Return "b" for `.return-meta-b`, and "" for `.return-meta`. Return None for the name of any other file."""
    for match in (re.match(pattern, name, re.IGNORECASE) for pattern in _META):
        if match:
            return "-".join(filter(None, (match["before"], _SESSION_SUFFIX.sub("", match["after"] or ""))))
    return None


def author_of(document: Return) -> str | None:
    """Return the agent that wrote a return: the last agent of its delegation path, or else the agent that it states."""
    return document.delegation_path[-1] if document.delegation_path else document.agent


def must_be_readable(path: str) -> bool:
    """Tell whether a file must be readable, because its name or folder is that of a handoff or a return."""
    name, folder = _EXTENSION.sub("", basename(path)), basename(dirname(path))
    return _ANSWER.search(name) is not None or _name_variant(name) is not None or folder in _FOLDERS - {"todos"}


def stated_id(document: Fields) -> str | None:
    """Return the task id that a document states, or None. A return in a code fence may be an example."""
    return None if isinstance(document, TodoList) or is_fenced(document) else document.task_id or None


def is_fenced(document: Fields) -> bool:
    """Tell whether a document is a return in a fence. A fenced return is used only if a handoff lies beside it."""
    return isinstance(document, Return) and document.fenced


def fallback_id(path: str, document: Fields) -> str:
    """Make a task id from the path, for a document without a stated id and without a handoff."""
    directory, stem = slot_of(path)
    if isinstance(document, Return) and document.contract in (Contract.SUBAGENT_RETURN, Contract.RETURN_META):
        extra = _name_variant(_EXTENSION.sub("", basename(path)))
        place = id_in_directory(directory, author_of(document)) or stem or basename(path)
        return f"{place}#{extra}" if extra else place
    return id_in_directory(directory, stem) or _EXTENSION.sub("", basename(path))


def id_in_directory(directory: str, name: str | None) -> str:
    """Return the id of the task called `name` in a task directory."""
    return "/".join(part for part in (directory, name) if part)


def task_directory_of(versions: Sequence[Seen]) -> str | None:
    """Return the task directory of the first handoff, or else of the first return, or None."""
    given = (version for kind in (Handoff, Return) for version in versions if isinstance(version.document, kind))
    return next((slot_of(version.path)[0] for version in given), None)


RULES = tuple(rule for rule in read_rules().values() if rule.id.startswith("LNK"))
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


Link = tuple[str | None, Basis, Finding | None, int]  # (parent, basis, fault of the link, order among siblings)


def make_finding(rule: Rule, other: str, path: str = "") -> Finding:
    """Return a finding about a file. `other` is a task id, path or session id for the message of the rule."""
    return Finding(rule.id, rule.severity, rule.message.format(other=other), path=path)


def promises_artifacts(result: Return) -> bool:
    """Tell whether all artifacts that a return names must exist."""
    has_artifacts = result.contract in (Contract.SUBAGENT_RETURN, Contract.RETURN_META)
    return has_artifacts and result.outcome is Outcome.COMPLETED


def missing_artifacts(task: Task) -> list[Finding]:
    """Return a finding for each missing file that the latest return names as its artifact."""
    result, returned = task.result, task.latest.returned
    if not result or not returned or not promises_artifacts(result):
        return []
    missing = (claim for claim in task.claims if claim.kind == "artifact" and claim.is_missing)
    paths = {claim.file or claim.path: claim.path for claim in missing}
    return [make_finding(ARTIFACT_MISSING, path, returned.path) for path in paths.values()]


# The first delegation path that names an id: (`seq` and id of the task with the path, the id above in the path).
Named = tuple[int, str, str | None]


def ids_above(versions: Sequence[Seen]) -> Texts:
    """Return the ids above a task in its last delegation path, outermost first, or () if a packet names the parent."""
    ids: Texts | None = None
    for version in reversed(versions):
        document = version.document
        if isinstance(document, Handoff) and document.parent_task_id:
            return ()
        if ids is None and isinstance(document, Return) and len(document.delegation_path) > 1:
            directory = slot_of(version.path)[0]
            above = (id_in_directory(directory, element) for element in document.delegation_path[:-1] if element)
            ids = tuple(dict.fromkeys(above))
    return ids or ()


def find_named(tasks: Iterable[Task]) -> dict[str, Named]:
    """Return the task ids in delegation paths, each with the first path that names it."""
    named: dict[str, Named] = {}
    for task in tasks:
        above, seq = None, task.place.first_seq or 0
        for one in task.place.path:
            known = named.get(one)
            if not known or (seq, task.task_id) < known[:2]:
                named[one] = seq, task.task_id, above
            above = one
    return named


def find_links(
    tasks: Mapping[str, Task], named: Mapping[str, Named], executing: Mapping[Session, str | None]
) -> Iterator[tuple[Task, Link]]:
    """Yield each task with the link to its parent. Links may form a cycle."""
    only_tasks: dict[str, str | None] = {}  # by directory: its only task, or None if it has several tasks
    for task_id, task in tasks.items():
        if (directory := task.place.directory) is not None:
            only_tasks[directory] = None if directory in only_tasks else task_id
    for task_id, task in tasks.items():
        stated, asked_by, path, directory, file, first_seq = task.place
        first_seq = named[task_id][0] if first_seq is None else first_seq
        # If the same program has a task with the stated id, that task is meant.
        program = f"#{asked_by[0][0]}" if asked_by else ""
        stated = f"{stated}{program}" if stated and f"{stated}{program}" in tasks else stated
        if stated == task_id:
            yield task, (None, Basis.NONE, make_finding(SELF_PARENT, task_id, file), first_seq)
            continue
        # Cut parts after a dot from the id, until the rest is the id of a task.
        prefix = task_id.removesuffix(program).rpartition(".")[0]
        while prefix and prefix not in tasks:
            prefix = prefix.rpartition(".")[0]
        prefix = f"{prefix}{program}" if f"{prefix}{program}" in tasks else prefix
        enclosing = None
        while directory and enclosing is None:
            directory = dirname(directory)
            enclosing = only_tasks.get(directory)
        asker = next(filter(None, map(executing.get, asked_by)), None)
        parents = {
            Basis.PACKET: stated,
            Basis.SESSION: None if asker == task_id else asker,
            Basis.DELEGATION_PATH: path[-1] if path else named[task_id][2] if task_id in named else None,
            Basis.DOTTED_PREFIX: prefix,
            Basis.DIRECTORY: enclosing,
        }
        basis = next((basis for basis, parent in parents.items() if parent in tasks), Basis.NONE)
        parent = parents.get(basis)
        problem = None if stated in (None, parent) else make_finding(ORPHAN, str(stated), file)
        yield task, (parent, basis, problem, first_seq)


def find_cycles(tasks: Mapping[str, Task]) -> list[str]:
    """Return the ids of the tasks that are their own ancestors."""
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


# Files


_RETURN = (Return, True, False)
_FENCED = (Return, True, True)
_Tasks = tuple[str | None, ...]
_Given = tuple[int, str | None]
# The handoffs as (`seq` of the first version, task). The key is (whether they are gone, their slot or directory).
_Handoffs = Mapping[tuple[object, ...], Sequence[_Given]]


@dataclass(slots=True, eq=False)
class _File:
    """The versions of one file, oldest first, and the task of each version."""

    path: str
    slot: Slot
    directory: str
    versions: tuple[Seen, ...] = ()
    tasks: _Tasks = ()
    fixed_tasks: _Tasks = ()  # tasks of the first versions, fixed because the file or its handoff is gone
    kind: object = None  # `Handoff`; or None if every version states its task; or another kind


class Files:
    """All documents that were ever seen, with their earlier versions, by file and by task."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._directories = defaultdict[str, list[_File]](list)  # by their slots' directories
        self._paths: dict[str | None, Texts] = {}  # paths of files, by task
        self._gone: dict[str, Gone] = {}
        self._heirs: dict[str, str] = {}  # the new path of each file that was renamed or moved
        self._unreadable: dict[str, Unreadable] = {}
        # Changes since files were last assigned to tasks
        self._changed: dict[str, None] = {}  # directories with changed files
        self._concerned: dict[str | None, None] = {}  # tasks whose files have changed

    def versions_of(self, task_id: str) -> tuple[Seen, ...]:
        """Return the versions of the documents of a task, in the order they were observed."""
        files = [self._files[path] for path in self._paths.get(task_id, ())]
        each = (both for file in files for both in zip(file.versions, file.tasks, strict=True))
        return tuple(sorted((version for version, task in each if task == task_id), key=attrgetter("seq")))

    def tasks_of(self, path: str) -> set[str]:
        """Return the tasks to which the versions of a file belong."""
        return {task for task in self._files[path].tasks if task is not None} if path in self._files else set()

    def is_gone(self, path: str) -> bool:
        """Tell whether a file that had a document is gone."""
        return path in self._gone

    def deleted_at(self, versions: Sequence[Seen]) -> float | None:
        """Return when the last file of these versions was deleted (epoch seconds). Return None if a file exists."""
        paths = {version.path for version in versions}
        return max(self._gone[path].at for path in paths) if paths and paths <= self._gone.keys() else None

    # Files that cannot be read

    @property
    def notices(self) -> list[Finding]:
        """The findings of files that belong to no task, sorted by path."""
        used_slots = {file.slot for file in self._files.values() if any(file.tasks)} if self._unreadable else set()
        unread = [one for one in self._unreadable.values() if slot_of(one.path) not in used_slots]
        placed = [replace(one.finding, path=one.path) for one in unread]
        without_task = (self._files[path] for path in self._paths.get(None, ()))
        for last in (file.versions[-1] for file in without_task if file.tasks[-1] is None):
            # Other programs write reports, too, so a report without a task is no fault.
            is_report = last.document.contract is Contract.REPORT_CONTRACT
            if not (last.document.recognised or is_report or last.path in self._gone):
                placed += (replace(finding, path=last.path) for finding in last.findings)
        return sorted(placed, key=attrgetter("path"))

    def set_unreadable(self, path: str, event: Unreadable | None) -> None:
        """Store that a file is unreadable. If `event` is None, the file is readable or gone."""
        if not self._unreadable.pop(path, None) and not event:
            return
        near = slot_of(path)
        if event:
            self._unreadable[path] = event
        for file in self._directories.get(near[0], ()):
            if file.slot == near:
                self._concerned |= dict.fromkeys(file.tasks)

    def unreadable_beside(self, versions: Sequence[Seen]) -> list[Unreadable]:
        """Return the unreadable files with the same task directory and stem as one of these versions."""
        slots = {slot_of(version.path) for version in versions} if self._unreadable else set()
        return sorted((one for one in self._unreadable.values() if slot_of(one.path) in slots), key=attrgetter("path"))

    # Files that exist, and files that are gone

    def _mark_changed(self, file: _File) -> None:
        self._concerned |= dict.fromkeys(file.tasks)
        self._changed[file.slot[0]] = None

    def store(self, seen: Seen) -> None:
        """Store the current content of a file."""
        path, document = seen.path, seen.document
        self.set_unreadable(path, None)
        if not (file := self._files.get(path)):
            file = self._files[path] = _File(path, slot_of(path), intern(dirname(path)))
            self._directories[file.slot[0]].append(file)
        self._mark_changed(file)
        self._gone.pop(path, None)
        self._heirs.pop(path, None)
        last = file.versions[-1] if file.versions else None
        now = seen.digest, seen.incomplete, document
        is_same = last and (last.digest, last.incomplete, last.document) == now
        # A return that was written again with the same content may answer a newer handoff.
        if not last or not is_same or (isinstance(document, Return) and seen.at > last.at):
            if last and type(last.document) is not type(document):
                # The file now has another kind of document.
                file.versions, file.fixed_tasks = (), ()
            elif len(file.versions) >= MAX_VERSIONS:
                # Keep the first version, which says when the task began.
                file.versions = file.versions[:1] + file.versions[2:]
                file.fixed_tasks = file.fixed_tasks[:1] + file.fixed_tasks[2:]
            file.versions += (seen,)
            is_named = all(stated_id(version.document) for version in file.versions)
            other = None if is_named else (type(document), document.recognised, is_fenced(document))
            file.kind = Handoff if isinstance(document, Handoff) else other
        if file.kind in (None, Handoff):
            self._set_tasks(file, self._find_tasks(file, {}, is_alone=False))

    def forget(self, gone: Gone) -> None:
        """Note that a file is gone."""
        path = gone.path
        self.set_unreadable(path, None)
        if not (file := self._files.get(path)):
            return
        self._mark_changed(file)
        if path not in self._gone:
            self._assign_changed()
            self._changed[file.slot[0]], self._gone[path] = None, gone
            for one in self._directories[file.slot[0]]:
                if one is file or (file.kind is Handoff and one.tasks[-1] in file.tasks):
                    one.fixed_tasks = one.tasks

    # The tasks of files

    def assign_tasks(self) -> list[str]:
        """Assign the versions of changed files to tasks. Return the ids of tasks whose documents may have changed."""
        lost = {path: gone.seq for path, gone in self._gone.items() if path not in self._heirs} if self._changed else {}
        self._assign_changed()
        # By digest of each lost file: the files with the same content, as (first `seq`, last `seq`, path).
        holders: dict[str, list[tuple[int, float, str]]] = {self._files[path].versions[-1].digest: [] for path in lost}
        for file in self._files.values() if lost else ():
            gone_at = self._gone[file.path].seq if file.path in self._gone else math.inf
            ends = [*(version.seq for version in file.versions[1:]), gone_at]
            for version, end in zip(file.versions, ends, strict=True):
                if version.digest in holders:
                    holders[version.digest].append((version.seq, end, file.path))
        for path, at in lost.items():
            last, task = self._files[path].versions[-1], self._files[path].tasks[-1]
            # A lost file was renamed to the next file with its content, unless another file still has its task.
            heirs = [(max(since, at), other) for since, end, other in holders[last.digest] if end > at]
            if heirs and not any(
                (isinstance(version.document, Handoff) and version.path not in self._gone)
                or stated_id(version.document) == task
                for version in self.versions_of(task or "")
            ):
                self._heirs[path] = min(heirs)[1]
        for path in self._heirs:
            file, heir = self._files[path], path
            while heir in self._heirs:
                heir = self._heirs[heir]
            tasks = self._files[heir].tasks[-1:] * len(file.versions)
            if file.kind is Handoff and file.tasks != tasks:
                # Other files may belong to this handoff.
                self._changed[file.slot[0]] = None
            self._set_tasks(file, tasks)
        self._assign_changed()
        concerned, self._concerned = self._concerned, {}
        return [task for task in concerned if task is not None]

    def _assign_changed(self) -> None:
        for directory in self._changed:
            files = self._directories[directory]
            handoffs = defaultdict[tuple[object, ...], list[_Given]](list)
            others = Counter[tuple[object, str]]()
            for file in files:
                is_gone = file.path in self._gone
                if file.kind is Handoff:
                    for place in (file.slot, file.directory):
                        handoffs[is_gone, place].append((file.versions[0].seq, file.tasks[-1]))
                elif file.kind is not None and not is_gone:
                    # Count each kind by itself: a checklist in a directory does not compete with a return.
                    others[file.kind, file.directory] += 1
            for file in files:
                if file.kind not in (None, Handoff) and file.path not in self._gone:
                    is_alone = file.slot[1] == "" or others[file.kind, file.directory] == 1
                    if file.kind == _FENCED:
                        is_alone &= not others[_RETURN, file.directory]
                    self._set_tasks(file, self._find_tasks(file, handoffs, is_alone=is_alone))
        self._changed.clear()

    def _find_tasks(self, file: _File, handoffs: _Handoffs, *, is_alone: bool) -> _Tasks:
        tasks = [*file.fixed_tasks]
        for version in file.versions[len(tasks) :]:
            document = version.document
            task = stated_id(document)
            if task is None and not isinstance(document, Handoff):
                may_be = document.recognised or basename(file.path).lower() == "report.json"
                task = _find_owner(file, handoffs, is_alone=is_alone and may_be)
            is_sure = document.recognised and not is_fenced(document)
            if task is None and not (is_sure or isinstance(document, Handoff)):
                # The file keeps its earlier task, or belongs to no task.
                task = next((one for one in reversed(tasks) if one is not None), None)
            elif task is None and not isinstance(document, TodoList):
                # A checklist without a handoff may be anybody's notes, so it makes no task.
                task = fallback_id(file.path, document)
            tasks.append(task)
        return tuple(tasks)

    def _set_tasks(self, file: _File, tasks: _Tasks) -> None:
        if file.tasks == tasks:
            return
        for task in dict.fromkeys((*file.tasks, *tasks)):
            self._concerned[task] = None
            others = tuple(one for one in self._paths.get(task, ()) if one != file.path)
            self._paths[task] = (*others, file.path) if task in tasks else others
        file.tasks = tasks


def _find_owner(file: _File, handoffs: _Handoffs, *, is_alone: bool) -> str | None:
    """Return the task of the handoff with the same stem, or of the only handoff in the directory, or None."""
    for is_gone in (False, True):
        same_stem, same_directory = (handoffs.get((is_gone, place), ()) for place in (file.slot, file.directory))
        if same_stem or (is_alone and len(same_directory) == 1):
            return min(same_stem or same_directory)[1]
    return None


# Runs and requests


class Runs:
    """All observed runs, by task, by session, and by the session that asked for them."""

    def __init__(self) -> None:
        self.all: dict[str, Ran] = {}  # in the order first observed
        self.executing: dict[Session, str] = {}  # by session: the task that it executes
        self._paths: dict[Texts, Texts] = {}
        self._decided: dict[str, str] = {}  # by decision: the task that the decision is about

    def _task_for(self, run: Run) -> str:
        """Return the task id that a run states. If its prompt only names a decision, return the decision's task."""
        named = run.prompt.decision_id if run.prompt and run.parent_session and not run.packet else None
        return self._decided.get(named or "", run.task_id)

    def store_decision(self, decision_id: str, task_id: str) -> set[str]:
        """Store which task a decision is about. Return the ids of the other tasks that may have changed."""
        if self._decided.get(decision_id) == task_id:
            return set()
        prompts = ((ran, ran.run.prompt) for ran in self.all.values() if ran.run)
        again = [ran for ran, prompt in prompts if prompt and prompt.decision_id == decision_id]
        concerned = [self.store(ran._replace(run=None)) for ran in again]
        self._decided[decision_id] = task_id
        return set[str]().union(*concerned, *map(self.store, again))

    def find_run(self, key: str) -> Run | None:
        """Return the last known state of the run with a key, or None."""
        ran = self.all.get(key)
        return ran.run if ran else None

    def _owner(self, task_id: str) -> str:
        """Return the program that first used a task id, or "". The task of this program has no suffix in its id."""
        return next((run.source for run, _ in self._runs("task", task_id)), "")

    def task_of(self, run: Run) -> str:
        """Return the task id of a run. If another program used the id first, the id gets the suffix `#program`."""
        named = self._task_for(run)
        return named if self._owner(named) in ("", run.source) else f"{named}#{run.source}"

    def runs_of_task(self, task_id: str) -> list[Ran]:
        """Return the runs of a task, in the order in which they began."""
        bare, _, program = task_id.rpartition("#")
        users = {task_id: self._owner(task_id), **({bare: program} if program != self._owner(bare) else {})}
        return [ran for one, source in users.items() for run, ran in self._runs("task", one) if run.source == source]

    def _runs(self, *key: str) -> list[tuple[Run, Ran]]:
        known = ((ran.run, ran) for one in self._paths.get(key, ()) if (ran := self.all[one]).run)
        return sorted(known, key=lambda both: (both[0].began_at, both[1].path))

    def runs_of_session(self, session: Session) -> list[Run]:
        """Return the runs of a session (usually one) in the order in which they began."""
        return [run for run, _ in self._runs("session", *session)]

    def runs_below(self, session: Session) -> Iterator[Run]:
        """Yield the runs below a session, each after the run that asked for it."""
        pending, seen = [session], {session}
        while pending:
            for run, _ in self._runs("asked by", *pending.pop()):
                if run.session not in seen:
                    seen.add(run.session)
                    pending.append(run.session)
                    yield run

    def store(self, ran: Ran) -> set[str]:
        """Store a run as it is now. Return the ids of the tasks that may have changed."""
        path, before, run = ran.path, self.find_run(ran.path), ran.run
        if not run:
            self.all.pop(path, None)
        else:
            self.all[path] = ran
        for key in self._index_keys(before):
            self._paths[key] = tuple(one for one in self._paths[key] if one != path)
        for key in self._index_keys(run):
            self._paths[key] = (*self._paths.get(key, ()), path)
        concerned = set[str]()
        for one in filter(None, (before, run)):
            same = [other for other, _ in self._runs("task", self._task_for(one))]
            # If several programs use one id, another task may now have the id without a suffix.
            for each in (one, *(same if {other.source for other in same} - {one.source} else ())):
                # The requests of a session belong to the session's task, or else to a task with the session id.
                concerned |= {self._task_for(each), each.session_id, self.executing.pop(each.session, each.session_id)}
                if runs := self.runs_of_session(each.session):
                    self.executing[each.session] = self.task_of(runs[-1])
                    concerned.add(self.executing[each.session])
        return concerned

    def _index_keys(self, run: Run | None) -> list[Texts]:
        if not run:
            return []
        asked_by = "asked by", run.source, run.parent_session or ""
        return [("task", self._task_for(run)), ("session", *run.session), asked_by]


def merge_reports(before: Requested | None, requested: Requested) -> Requested:
    """Return the later of two reports of a request. If both say that the request has ended, keep the first end."""
    known, request = before.request if before else None, requested.request
    if not known or not request or known.is_open or request.is_open:
        return requested
    ended = replace(request, stage=known.stage, ended_at=known.ended_at, by=known.by, allowed=known.allowed)
    return requested._replace(request=ended)


class Requests:
    """All observed requests, and all decisions about requests, by id."""

    def __init__(self, runs: Runs):
        self._runs = runs
        self.offered: dict[str, Requested] = {}  # every request as its holder last reported it
        self.decided: dict[str, Decision] = {}

    def asking_task(self, session: Session) -> str:
        """Return the id of the task that a session executes, or the session id if no task is known."""
        return self._runs.executing.get(session, session[1])

    def store(self, requested: Requested) -> list[str]:
        """Store a request as it is now. Return the ids of the tasks that may have changed."""
        path, before = requested.path, self.offered.pop(requested.path, None)
        known, request = before.request if before else None, merge_reports(before, requested).request
        if request:
            self.offered[path] = requested._replace(request=request)
        return [self.asking_task(one.session) for one in (known, request) if one]

    def store_decision(self, decision: Decision) -> list[str]:
        """Store a decision about a request. Return the ids of the tasks that may have changed."""
        self.decided[decision.decision_id] = decision
        offered = self.offered.get(decision.decision_id)
        return [self.asking_task(offered.request.session)] if offered and offered.request else []

    def requests_of_task(self, task_id: str, now: float) -> tuple[Request, ...]:
        """Return the current requests of a task, the most urgent first and ended requests last."""
        every = (one.request for one in self.offered.values())
        asked = [one for one in every if one and self.asking_task(one.session) == task_id]
        permits, current = dict[str, Permit](), list[Request]()
        for session in {one.session for one in asked}:
            permits |= self._match_permits(session, [one for one in asked if one.session == session])
        for one in asked:
            decision = self.decided.get(one.request_id)
            if decision and decision.receipt.stage is Stage.RECORDED and decision.is_expired(now):
                decision = None
            current.append(_update_request(one, decision, permits.get(one.request_id)))
        return tuple(sorted(current, key=lambda one: (*one.urgency, one.request_id)))

    def _match_permits(self, session: Session, asked: Iterable[Request]) -> dict[str, Permit]:
        """Return, by request id, the program's record of the permission. Each record belongs to only one request."""
        # Begin with the latest request of a known call, because a call is recorded after its last request.
        left = sorted(
            (one for run in self._runs.runs_of_session(session) for one in run.permits), key=lambda one: one.at
        )
        found = dict[str, Permit]()
        for request in sorted(
            asked, key=lambda one: (not one.call_id, one.asked_at * (-1 if one.call_id else 1), one.request_id)
        ):
            permit = next((one for one in left if _is_record_of(one, request)), None)
            if permit:
                left.remove(permit)
                found[request.request_id] = permit
        return found


def _is_record_of(permit: Permit, request: Request) -> bool:
    if permit.at < request.asked_at:
        return False
    if request.call_id and permit.call_id:
        return permit.call_id == request.call_id
    return (permit.tool, permit.input_sha256) == (request.tool, request.input_sha256)


def _update_request(request: Request, decision: Decision | None, permit: Permit | None) -> Request:
    """Return a request with the stage that follows from the decision and from the program's record."""
    stage, ended_at, allowed, by = request.stage, request.ended_at, request.allowed, request.by
    is_told = stage is RequestStage.DELIVERED
    if decision:
        allowed, by = decision.action is not Action.DENY, decision.operator
        is_told |= decision.receipt.stage is not Stage.RECORDED
    if stage is RequestStage.ACTED:
        by = request.by or by
    elif permit and (decision or not is_told):
        ended_at = permit.at if ended_at is None else ended_at
        is_ours = decision and _agrees_with(permit, decision)
        if is_ours and is_told:
            stage = RequestStage.ACTED
        elif not is_ours or stage is not RequestStage.UNKNOWN:
            stage, allowed, by = RequestStage.ELSEWHERE, permit.allowed, permit.by.value
    elif stage is RequestStage.ELSEWHERE:
        return request
    elif is_told:
        ended_at = decision.receipt.at if ended_at is None and decision else ended_at
        stage, by = RequestStage.DELIVERED, request.by or by
    elif stage is RequestStage.OFFERED and decision:
        stage = RequestStage.DECIDED
    # In all other cases the stage stays. A decision about an ended request came too late.
    return replace(request, stage=stage, ended_at=ended_at, allowed=allowed, by=by)


def _agrees_with(permit: Permit, decision: Decision) -> bool:
    """Tell whether the program's record may show the effect of our decision."""
    is_denied = decision.action is Action.DENY
    if permit.by in (Permitter.PERSON, Permitter.RULE) or permit.allowed is is_denied:
        return False
    texts: Iterable[str] = (decision.note,) if is_denied else decision.answers
    return not permit.words or all(text in permit.words for text in texts)
