"""What a tab is written from: the task, the tree around it, and the documents behind it, opened only when asked for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from agentwatch.contracts.reading import open_document

if TYPE_CHECKING:
    from agentwatch.contracts.validation import Contracted
    from agentwatch.delegation.run import Message
    from agentwatch.delegation.task import Attempt, Task, Version
    from agentwatch.delegation.tree import DelegationTree

T = TypeVar("T")

KEPT: Final = 8
"""Opened documents that are kept: moving up and down between a few tasks parses none of them twice."""


class Documents:
    """Full models of the documents looked at last, by digest."""

    def __init__(self) -> None:
        self._opened: OrderedDict[str, Contracted | None] = OrderedDict()

    def opened(self, version: Version, text: str) -> Contracted | None:
        """The model of a version, None where its text cannot be read as its contract."""
        key = version.digest
        if key not in self._opened:
            self._opened[key] = open_document(text, version.path, embedded=version.stored)
            if len(self._opened) > KEPT:
                self._opened.popitem(last=False)
        self._opened.move_to_end(key)
        return self._opened[key]


class Later(Protocol):
    """Values that take time. Gives the one that `make` returns, None as long as a thread is still making it."""

    def __call__(self, key: Hashable, make: Callable[[], T]) -> T | None: ...


def at_once(key: Hashable, make: Callable[[], T]) -> T | None:  # noqa: ARG001 - the signature of `Later`
    """The value, however long it takes."""
    return make()


@dataclass(frozen=True, slots=True)
class View:
    """One look at one task.

    `content` gives the last good text of a version, None where there is none any more. `later` is for what takes time.
    `compared` is the number of the attempt that is compared with the one before, None for the last.
    """

    task: Task
    tree: DelegationTree
    content: Callable[[Version | Message], str | None]
    now: float
    documents: Documents
    later: Later = at_once
    compared: int | None = None

    @property
    def handed(self) -> Attempt | None:
        """The latest attempt that has a handoff."""
        return next((attempt for attempt in reversed(self.task.attempts) if attempt.handoff), None)

    @property
    def returned(self) -> Attempt | None:
        """The latest attempt that has a return."""
        return next((attempt for attempt in reversed(self.task.attempts) if attempt.returned), None)

    def document(self, version: Version) -> Contracted | None:
        """The whole document of a version, None where its text is gone or cannot be read."""
        text = self.content(version)
        return None if text is None else self.documents.opened(version, text)

    @property
    def basis(self) -> tuple[object, ...]:
        """All that the tabs are written from, but for the time: equal means that they would say the same."""
        task = self.task
        attempts = tuple(
            (
                attempt.number,
                attempt.handoff.digest if attempt.handoff else None,
                attempt.returned.digest if attempt.returned else None,
                attempt.run,
                attempt.decision,
            )
            for attempt in task.attempts
        )
        found = tuple(task.findings), task.claims, self.tree.unclaimed(task)
        return task.task_id, attempts, found, task.todos, self.compared
