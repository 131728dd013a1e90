"""Watches for decisions whose OpenCode session is idle, and has them announced: in threads, so nothing waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

from agentwatch.decisions.announcing import Announcer, AnnouncingError
from agentwatch.delegation.run import RunState
from agentwatch.delegation.task import Task
from agentwatch.delegation.tree import DelegationTree

_AGAIN_SECONDS: Final = 60.0
"""After a failure, until the next attempt."""

_SOURCE: Final = "opencode"
"""What the names of its databases begin with."""

Note = Callable[[str, str], None]
"""Takes a decision's id and what is to be said of it."""


class Herald:
    """Announces each decision once, to the session that asked for the task. `note` is called in another thread."""

    def __init__(self, announcer: Announcer, note: Note) -> None:
        self.notice: str | None = None
        """Why the last announcement failed, one sentence; it may quote foreign text. None where it did not."""
        self._announcer = announcer
        self._note = note
        self._waiting: set[str] = set()
        """Tasks with a decision that no agent has read and nobody has announced."""
        self._not_before: dict[str, float] = {}
        """By decision; infinite while it is being announced."""

    def look(self, tree: DelegationTree, changed: Iterable[str]) -> None:
        """See what is to be announced now. `changed` are the tasks that have changed since the call before."""
        for task_id in changed:
            task = tree.tasks.get(task_id)
            if task is not None and _waits(task):
                self._waiting.add(task_id)
            else:
                self._waiting.discard(task_id)
        for task_id in self._waiting:
            task = tree.tasks[task_id]
            session, decision = idle_parent(tree, task), task.binding
            if session is None or decision is None:
                continue
            if time.monotonic() < self._not_before.get(decision.decision_id, 0.0):
                continue
            self._not_before[decision.decision_id] = float("inf")
            given = session, task_id, decision.decision_id
            threading.Thread(target=self._announce, args=given, name="agentwatch-herald", daemon=True).start()

    def _announce(self, session: str, task_id: str, decision_id: str) -> None:
        try:
            self._note(decision_id, self._announcer.announce(session, task_id, decision_id))
            self.notice = None
        except AnnouncingError as error:
            self.notice = str(error)
            self._not_before[decision_id] = time.monotonic() + _AGAIN_SECONDS


def idle_parent(tree: DelegationTree, task: Task) -> str | None:
    """The session of OpenCode that asked for a task and waits for its human by now; None where there is none.

    One that works is left alone: it will ask by itself, and a second process would work in it at the same time.
    """
    run, parent = task.run, tree.tasks.get(task.parent_id or "")
    above = parent.run if parent is not None else None
    if run is None or above is None or run.parent_session != above.session_id:
        return None
    is_idle = above.state is RunState.ENDED and run.source == above.source and run.source.startswith(_SOURCE)
    return above.session_id if is_idle else None


def _waits(task: Task) -> bool:
    decision = task.binding
    return decision is not None and not (decision.is_read or decision.waits or decision.announced)
