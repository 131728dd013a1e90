"""What a tab is written from: the task, the tree around it, and the documents behind it, read in threads and kept."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar, cast

from agentwatch.app.widgets.details.blocks import Block, Gap, Rich, faint, text
from agentwatch.contracts.reading import read_and_open
from agentwatch.contracts.shapes import Handoff
from agentwatch.delegation.run import Message

if TYPE_CHECKING:
    from agentwatch.contracts.fields import Model
    from agentwatch.delegation.run import Run
    from agentwatch.delegation.task import Attempt, Task, Version
    from agentwatch.delegation.tree import Tree
    from agentwatch.sources.sessions.following import RunTranscript

T = TypeVar("T")

READING: Final = text(faint("reading…"))
"""What stands for a document as long as a thread reads it."""
KEPT: Final = 16
"""Values that are kept: moving up and down between a few tasks reads nothing twice."""


class Opened(NamedTuple):
    """A document that was read: its text, None if that is gone, and its model, None if it follows no contract."""

    text: str | None
    model: Model | None

    def __bool__(self) -> bool:
        return self.text is not None


class View(NamedTuple):
    """One look at one task.

    `content` gives the last good text of a version, None if there is none any more. It may read a file, so it is
    called through `reads` only. `compared` is the number of the attempt that is compared with the one before, None for
    the last. `transcript` gives that of a run, None where there is none to be had. `prices` are those of a million
    tokens, by model. `checks`: what returns claim is checked here, sooner or later.
    """

    task: Task
    tree: Tree
    content: Callable[[Version | Message], str | None]
    now: float
    reads: Reads
    compared: int | None = None
    transcript: Callable[[Run], RunTranscript | None] = lambda _: None
    prices: Mapping[str, float] = MappingProxyType({})
    checks: bool = False

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
            yield Gap()

    def opened(self, version: Version | Message) -> Opened | None:
        """What a version holds, None as long as a thread reads it."""
        content, path = self.content, "" if isinstance(version, Message) else version.path

        def read() -> Opened:
            source = content(version)
            if source is None or isinstance(version, Message):
                return Opened(source, None)
            over = version.stored and isinstance(version.document, Handoff)
            document = read_and_open(source, path, embedded=version.stored, handed_over=over)
            is_known = document is not None and document.document.recognised
            return Opened(source, document.model if document is not None and is_known else None)

        return self.reads.later((path, version.digest), read)

    def words(self, message: Message) -> Block:
        """The whole of what was said in a session."""
        opened = self.opened(message)
        if opened is None:
            return READING
        return Rich(message.opening + " …" if opened.text is None else opened.text)

    @property
    def basis(self) -> tuple[object, ...]:
        """All that the tabs are written from, but for the time: equal means that they would say the same."""
        task = self.task
        attempts = tuple(
            (one.number, *(file and file.digest for file in (one.handoff, one.returned)), one.run, one.decision)
            for one in task.attempts
        )
        judged = tuple(task.findings), task.is_checked, task.claims, task.unsaid, self.tree.unclaimed(task)
        return task.task_id, attempts, judged, task.todos, self.compared


class Reads:
    """Values that threads make, by key. `run` starts a coroutine on the event loop, `arrived` tells of a new value.

    Everything but what makes a value runs on the event loop.
    """

    def __init__(self, run: Callable[[Coroutine[None, None, None]], object], arrived: Callable[[], None]) -> None:
        self._run = run
        self._arrived = arrived
        self._made: OrderedDict[Hashable, object] = OrderedDict()
        self._making: set[Hashable] = set()
        self._asked: set[Hashable] = set()

    @property
    def is_waiting(self) -> bool:
        """Whether something that was asked for since `begin` is still being made."""
        return not self._making.isdisjoint(self._asked)

    def begin(self, *, anew: bool) -> None:
        """Something is about to be written. `anew`: what was not found before is looked for again."""
        self._asked.clear()
        if anew:
            for key in [key for key, value in self._made.items() if not value]:
                del self._made[key]

    def later(self, key: Hashable, make: Callable[[], T]) -> T | None:
        """The value that `make` returns, None as long as a thread is still making it.

        One that is false is made again when something else was shown meanwhile: what it needs was not found.
        """
        self._asked.add(key)
        if key in self._made:
            self._made.move_to_end(key)
            return cast("T", self._made[key])
        if key not in self._making:
            self._making.add(key)
            self._run(self._make(key, make))
        return None

    async def _make(self, key: Hashable, make: Callable[[], object]) -> None:
        try:
            self._made[key] = await asyncio.to_thread(make)
        finally:
            self._making.discard(key)
        # What is on the screen stays, however much it is: it would be asked for again at once.
        for other in list(self._made)[: max(len(self._made) - KEPT, 0)]:
            if other not in self._asked:
                del self._made[other]
        if key in self._asked and not self.is_waiting:
            self._arrived()
