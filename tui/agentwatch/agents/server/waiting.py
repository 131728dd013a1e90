"""`wait_for_decision`: the code path of `agentwatch wait`, in slices, so that a server goes on answering meanwhile."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from anyio import CapacityLimiter, to_thread

from agentwatch.agents.server.judging import Waited
from agentwatch.composition import Load, known_desk
from agentwatch.config import Settings
from agentwatch.decisions.asking import NOTHING_ASKED, Asker, go_on, is_needless, question_about
from agentwatch.decisions.reader import Expired, Found, Question, Verified
from agentwatch.delegation.task import Task
from agentwatch.sources import Problem
from agentwatch.text import quoted

_SLICE_SECONDS: Final = 1.0
"""How long a thread waits at a stretch: the longest that a cancelled call keeps one."""

_MOST: Final = 100
"""Waits that have a thread at the same time; the others take turns."""

_AGAIN: Final = "call wait_for_decision again, now; this is neither an approval nor a refusal"
_NOT_SEEN: Final = "no such task is seen in this workspace: is its id spelled right, and was its return submitted?"

T = TypeVar("T")

Progress = Callable[[float, float], Awaitable[None]]
"""Told after each slice: seconds waited, and seconds at most."""


class _Asked(NamedTuple):
    question: Question
    task: Task | None
    unseen: Sequence[Problem] = ()

    @property
    def is_needless(self) -> bool:
        """Nobody is asked about the task: it has ended well, as far as can be told."""
        return is_needless(self.task)


class Waiter:
    """Waits for decisions about the tasks of one workspace. Cancelling a call ends it at once."""

    def __init__(self, workspace: Path, settings: Settings, load: Load) -> None:
        self._workspace = workspace
        self._settings = settings
        self._load = load
        # Its own: the server's other tools run in threads, too, and must never wait for these.
        self._threads = CapacityLimiter(_MOST)

    async def wait(self, task_id: str, seconds: float | None, progress: Progress) -> Waited:
        """The decision about the latest attempt of a task, or that it is pending after so many seconds.

        Never longer than the settings say: the limits of the clients are behind that.
        """
        most = self._settings.mcp_wait
        timeout = most if seconds is None else min(max(seconds, 0.0), most)
        end = time.monotonic() + timeout
        asked = await self._in_thread(partial(self._asked, task_id))
        end = time.monotonic() if asked.is_needless else end
        asker = await self._in_thread(partial(Asker, self._workspace, self._settings, "mcp"))
        wait = await self._in_thread(lambda: asker.reader.wait)
        while True:
            left = max(end - time.monotonic(), 0.0)
            slice_ = min(left, _SLICE_SECONDS)
            found = await self._in_thread(partial(wait, asked.question, slice_))
            if isinstance(found, Verified | Expired) or left <= slice_:
                return await self._in_thread(partial(self._answer, asker, asked, found))
            await progress(timeout - left + slice_, timeout)

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await to_thread.run_sync(function, abandon_on_cancel=True, limiter=self._threads)

    def _asked(self, task_id: str) -> _Asked:
        asker = Asker(self._workspace, self._settings, "mcp")
        monitor = self._load(self._workspace, self._settings, inspects=False)
        asker.tell(monitor.tree, task_id)
        asked = _Asked(question_about(monitor.tree, task_id, None), monitor.tree.tasks.get(task_id), monitor.problems)
        if asked.is_needless:
            # Whether it may go on depends on whether what it claims is true.
            tree = self._load(self._workspace, self._settings, inspects=True).tree
            asker.tell(tree, task_id)
            asked = _Asked(question_about(tree, task_id, None), tree.tasks.get(task_id))
        return asked

    def _answer(self, asker: Asker, before: _Asked, found: Found) -> Waited:
        """What is told in the end: how the task stands now, not when the wait began."""
        task_id = before.question.task_id or ""
        asked = before
        if not isinstance(found, Verified | Expired):
            asked = self._asked(task_id)
            if asked.question != before.question:
                found = asker.reader.find(asked.question)
        values = asker.answer(found)
        task = asked.task
        if isinstance(found, Verified):
            desk = known_desk(self._workspace)
            task = self._load(self._workspace, self._settings, desk=desk, inspects=False).tree.tasks.get(task_id)
            asker.note_read(found, "agentwatch mcp")
        elif not isinstance(found, Expired):
            values |= {"unasked": asked.is_needless, "do_now": _pending_words(asked)}
            if asked.is_needless:
                values["detail"] = NOTHING_ASKED
        return Waited(**values, state=task.own_state.value if task is not None else None)


def _pending_words(asked: _Asked) -> str:
    if asked.task is None:
        unseen = f" Not all can be seen: {quoted(str(asked.unseen[0]), 300)}." if asked.unseen else ""
        return f"{_NOT_SEEN}{unseen} If both: {_AGAIN}"
    return go_on(asked.task) if asked.is_needless else _AGAIN
