"""One look at one task: all that a tab is written from, and the documents behind it, which threads read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from agentwatch.app.widgets.details.blocks import GAP, Block, faint, text
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Handoff
from agentwatch.delegation.run import Message

if TYPE_CHECKING:
    from agentwatch.contracts.fields import Model
    from agentwatch.delegation.events import Seen
    from agentwatch.delegation.run import Run
    from agentwatch.delegation.task import Attempt, Task
    from agentwatch.delegation.tree import Tree
    from agentwatch.sources.sessions.following import RunTranscript

READING: Final = text(faint("reading…"))
"""In the place of a document as long as a thread reads it."""


class Texts(Protocol):
    """The monitor of a task's workspace, as far as the details need it."""

    @property
    def checks(self) -> bool:
        """Whether claims of returns are checked here."""

    def content(self, version: Seen | Message) -> str | None:
        """The last good text of a version, None if there is none any more. It may read a file."""

    def transcript(self, run: Run) -> RunTranscript | None:
        """The transcript of a run, None where there is none to be had."""


class Opened(NamedTuple):
    """A document that was read: its text, None if that is gone, and its model, None if it follows no contract."""

    text: str | None
    model: Model | None


@dataclass
class View:
    """One look at one task. `now` is in seconds since the epoch, `prices` are those of a million tokens, by model.

    `compared` is the number of the attempt that is compared with the one before, None for the last. `made` holds the
    values that threads have made; `missing` gets those that are still to be made.
    """

    task: Task
    tree: Tree
    monitor: Texts
    now: float
    prices: Mapping[str, float] = field(default_factory=dict)
    compared: int | None = None
    made: dict[Hashable, Any] = field(default_factory=dict)
    missing: dict[Hashable, Callable[[], object]] = field(default_factory=dict)

    @property
    def handed(self) -> Attempt | None:
        """The latest attempt that has a handoff."""
        return next((attempt for attempt in reversed(self.task.attempts) if attempt.handoff), None)

    @property
    def returned(self) -> Attempt | None:
        """The latest attempt that has a return."""
        return next((attempt for attempt in reversed(self.task.attempts) if attempt.returned), None)

    def older(self, attempt: Attempt, why: str, words: str = "") -> Iterator[Block]:
        """Say why the latest attempt is not the one that is told of, where that is so."""
        if attempt is not self.task.latest:
            yield text(faint(f"Attempt {self.task.attempt} {why} attempt {attempt.number}{words}."))
            yield GAP

    def later(self, key: Hashable, make: Callable[[], object]) -> Any:
        """The value that `make` returns in a thread, None as long as it is not there."""
        if key not in self.made:
            self.missing[key] = make
        return self.made.get(key)

    def opened(self, version: Seen | Message) -> Opened | None:
        """The document of a version, None as long as a thread reads it."""
        content, path = self.monitor.content, "" if isinstance(version, Message) else version.path

        def read() -> Opened:
            source = content(version)
            if source is None or isinstance(version, Message):
                return Opened(source, None)
            over = version.stored and isinstance(version.document, Handoff)
            document = read_document(source, path, embedded=version.stored, handed_over=over)
            is_known = document is not None and document.document.recognised
            return Opened(source, document.model if document is not None and is_known else None)

        opened: Opened | None = self.later((path, version.digest), read)
        return opened
