"""What a tab is written from: the task, the tree around it, and the documents behind it, opened only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from agentwatch.app.widgets.details.blocks import faint, text
from agentwatch.contracts.reading import read_and_open
from agentwatch.contracts.shapes import Handoff
from agentwatch.delegation.run import Message

if TYPE_CHECKING:
    from agentwatch.contracts.validation import Contracted
    from agentwatch.delegation.task import Attempt, Task, Version
    from agentwatch.delegation.tree import DelegationTree

T = TypeVar("T")

READING: Final = text(faint("reading…"))
"""What stands for a document as long as a thread reads it."""


class Later(Protocol):
    """Values that take time. Gives the one that `make` returns, None as long as a thread is still making it.

    One that is false is made again when something else was shown meanwhile: what it needs was not found.
    """

    def __call__(self, key: Hashable, make: Callable[[], T]) -> T | None: ...


def at_once(key: Hashable, make: Callable[[], T]) -> T | None:  # noqa: ARG001 - the signature of `Later`
    """The value, however long it takes."""
    return make()


@dataclass(frozen=True, slots=True)
class Opened:
    """A document that was read: its text, None if that is gone, and its model, None if it follows no contract."""

    text: str | None
    model: Contracted | None

    def __bool__(self) -> bool:
        return self.text is not None


@dataclass(frozen=True, slots=True)
class View:
    """One look at one task.

    `content` gives the last good text of a version, None if there is none any more. It may read a file, so only what
    is made `later` calls it. `compared` is the number of the attempt that is compared with the one before, None for the
    last.
    """

    task: Task
    tree: DelegationTree
    content: Callable[[Version | Message], str | None]
    now: float
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

    def opened(self, version: Version | Message) -> Opened | None:
        """What a version holds, None as long as a thread reads it."""
        content, path = self.content, "" if isinstance(version, Message) else version.path

        def read() -> Opened:
            source = content(version)
            if source is None or isinstance(version, Message):
                return Opened(source, None)
            over = version.stored and isinstance(version.document, Handoff)
            found = read_and_open(source, path, embedded=version.stored, handed_over=over)
            return Opened(source, found.model if found is not None and found.reading.document.recognised else None)

        return self.later((path, version.digest), read)

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
