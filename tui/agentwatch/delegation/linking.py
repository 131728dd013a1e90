"""Who handed a task over: each task's parent, and the basis on which it is known.

The parent is a function of the set of tasks and of what they claim, so the order in which they were seen does not
matter. A task waits for the ids and directories that could give it a better parent, and is asked again only when one
of them comes or goes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from functools import lru_cache
from posixpath import dirname
from typing import Final, Literal, NamedTuple

from agentwatch.contracts.rules import Rule
from agentwatch.contracts.shapes import Handoff, Return
from agentwatch.delegation.identity import directories_above, dotted_prefixes, in_directory, slot
from agentwatch.delegation.indexes import Groups
from agentwatch.delegation.problems import CYCLE, ORPHAN, SELF_PARENT
from agentwatch.delegation.task import Basis, Version

_Awaited = tuple[Literal["id", "directory"], str]


class Claims(NamedTuple):
    """What a task's documents say of its place.

    `asked_by` is the id of the task whose session asked for it, by the session store; `delegated_by` is the id of the
    task before it in its delegation path; `directory` is that of its files, None for a task that has none.
    """

    parent_task_id: str | None = None
    asked_by: str | None = None
    delegated_by: str | None = None
    directory: str | None = None


class Link(NamedTuple):
    """A task's parent, its basis, and what is wrong with what was claimed: the rule and the other party."""

    parent: str | None = None
    basis: Basis = Basis.NONE
    problem: tuple[Rule, str] | None = None


_NOWHERE: Final = Link()


class Linking:
    """The links of all tasks. Parents of a cycle are not followed: its members are roots."""

    def __init__(self) -> None:
        self._claims: dict[str, Claims] = {}
        self._wanted: dict[str, Link] = {}
        self._wanted_by = Counter[str | None]()
        """How many tasks wish this one to be their parent."""
        self._cycles: dict[str, frozenset[str]] = {}
        self._waiting = Groups[_Awaited]()
        self._awaited: dict[str, tuple[_Awaited, ...]] = {}
        self._in_directory = Groups[str]()

    def place(self, task_id: str, claims: Claims) -> set[str]:
        """Add a task or change what it claims. Returns the tasks whose link may have changed."""
        before = self._claims.get(task_id)
        if before == claims:
            return set()
        self._claims[task_id] = claims
        affected = {task_id}
        if before is None:
            affected |= self._waiting.of(("id", task_id))
        elif before.directory != claims.directory:
            affected |= self._leave(task_id, before.directory)
        if before is None or before.directory != claims.directory:
            affected |= self._enter(task_id, claims.directory)
        return self._ask_again(affected)

    def remove(self, task_id: str) -> set[str]:
        """Forget a task. Returns the tasks whose link may have changed, the removed one not among them."""
        claims = self._claims.pop(task_id)
        affected = {*self._leave(task_id, claims.directory), *self._waiting.of(("id", task_id))}
        self._wait(task_id, ())
        changed = self._want(task_id, Link())
        del self._wanted[task_id]
        self._wanted_by[None] -= 1
        changed |= self._ask_again(affected - {task_id})
        return changed - {task_id}

    def link(self, task_id: str) -> Link:
        """The link of a task."""
        wanted = self._wanted[task_id]
        if task_id in self._cycles:
            return Link(problem=(CYCLE, wanted.parent or task_id))
        return wanted

    def _ask_again(self, task_ids: set[str]) -> set[str]:
        changed: set[str] = set()
        for task_id in task_ids:
            link, awaited = self._answer(task_id, self._claims[task_id])
            self._wait(task_id, awaited)
            changed |= self._want(task_id, link)
        return changed

    def _answer(self, task_id: str, claims: Claims) -> tuple[Link, tuple[_Awaited, ...]]:
        """The best parent for a task, and all that could change this answer."""
        stated = claims.parent_task_id
        if stated == task_id:
            return Link(problem=(SELF_PARENT, task_id)), ()
        awaited: tuple[_Awaited, ...] = ()
        problem = None
        named = [
            (Basis.PACKET, stated),
            (Basis.SESSION, claims.asked_by if claims.asked_by != task_id else None),
            (Basis.DELEGATION_PATH, claims.delegated_by),
            *((Basis.DOTTED_PREFIX, prefix) for prefix in dotted_prefixes(task_id)),
        ]
        for basis, parent in named:
            if parent is None:
                continue
            if parent == task_id:
                return Link(problem=(CYCLE, task_id)), awaited
            awaited += (("id", parent),)
            if parent in self._claims:
                return Link(parent, basis, problem), awaited
            if basis is Basis.PACKET:
                problem = (ORPHAN, parent)
        around = _around(claims.directory) if claims.directory else ()
        for number, key in enumerate(around, 1):
            # A directory with several tasks is a collection: it belongs to none of them.
            inside = self._in_directory.of(key[1])
            if len(inside) == 1:
                return Link(next(iter(inside)), Basis.DIRECTORY, problem), awaited + around[:number]
        return (Link(problem=problem) if problem else _NOWHERE), (awaited + around if awaited else around)

    def _want(self, task_id: str, link: Link) -> set[str]:
        """Set the wished link, keep account of cycles. Returns the tasks whose link may have changed."""
        before = self._wanted.get(task_id)
        if before == link:
            return set()
        self._wanted[task_id] = link
        changed = {task_id}
        if before is not None and before.parent == link.parent:
            return changed
        broken = self._cycles.get(task_id, frozenset())
        for member in broken:
            del self._cycles[member]
        changed |= broken
        if before is not None:
            self._wanted_by[before.parent] -= 1
        self._wanted_by[link.parent] += 1
        if not self._wanted_by[task_id]:
            # Nothing hangs below it, so no way up leads back to it.
            return changed
        chain = [task_id]
        parent = link.parent
        while parent is not None and parent not in self._cycles:
            if parent == task_id:
                cycle = frozenset(chain)
                self._cycles.update(dict.fromkeys(cycle, cycle))
                changed |= cycle
                break
            chain.append(parent)
            wanted = self._wanted.get(parent)
            parent = wanted.parent if wanted else None
        return changed

    def _enter(self, task_id: str, directory: str | None) -> Set[str]:
        if directory is None:
            return set()
        self._in_directory.add(directory, task_id)
        return self._waiting.of(("directory", directory)) if len(self._in_directory.of(directory)) <= 2 else set()

    def _leave(self, task_id: str, directory: str | None) -> Set[str]:
        if directory is None:
            return set()
        self._in_directory.discard(directory, task_id)
        return self._waiting.of(("directory", directory)) if len(self._in_directory.of(directory)) <= 1 else set()

    def _wait(self, task_id: str, awaited: tuple[_Awaited, ...]) -> None:
        before = self._awaited.pop(task_id, ())
        for key in before:
            self._waiting.discard(key, task_id)
        for key in awaited:
            self._waiting.add(key, task_id)
        if awaited:
            self._awaited[task_id] = awaited


def _around(directory: str) -> tuple[_Awaited, ...]:
    """The directories around a directory that lies in the workspace."""
    return _and_above(dirname(directory))


@lru_cache(maxsize=256)
def _and_above(directory: str) -> tuple[_Awaited, ...]:
    """A directory and those around it, nearest first: one for all that lies in it."""
    return tuple(("directory", one) for one in (directory, *directories_above(directory)))


class Inference:
    """Tasks that are only named in somebody's delegation path: who names them, and who delegated to them.

    The elements of a path are told apart by task directory: the `planner` of one is not the `planner` of another.
    """

    def __init__(self) -> None:
        self._supporters: dict[str, dict[str, str | None]] = defaultdict(dict)
        """By task, those whose paths name it, and the task that stands before it there."""
        self._chains: dict[str, tuple[tuple[str, ...], int]] = {}
        """By task, those above it by its path, and the `seq` of its first document."""

    def support(self, task_id: str, versions: Sequence[Version]) -> set[str]:
        """Take in the delegation path of a task, the latest that its versions have.

        Returns the ids of the tasks named in it, before or now, where it has changed.
        """
        ids = _chain(versions)
        chain = (ids, versions[0].seq) if ids else None
        before = self._chains.pop(task_id, None)
        if chain is not None:
            self._chains[task_id] = chain
        if chain == before:
            return set()
        named_before = before[0] if before is not None else ()
        for named in named_before:
            del self._supporters[named][task_id]
            if not self._supporters[named]:
                del self._supporters[named]
        for named, above in zip(ids, (None, *ids), strict=False):
            self._supporters[named][task_id] = above
        return {*named_before, *ids} - {task_id}

    def first_seen(self, task_id: str) -> int | None:
        """The `seq` of the first document of the tasks that name this one; None where none does."""
        return min((self._chains[one][1] for one in self._supporters.get(task_id, ())), default=None)

    def delegated_by(self, task_id: str) -> str | None:
        """The task before this one: by its own delegation path, else by that of who named it first."""
        if task_id in self._chains:
            return self._chains[task_id][0][-1]
        supporters = self._supporters.get(task_id)
        return supporters[min(supporters, key=lambda one: (self._chains[one][1], one))] if supporters else None


def _chain(versions: Sequence[Version]) -> tuple[str, ...]:
    """The ids of the tasks above a task, outermost first, each once; none where a packet names the parent."""
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
