"""Opens the dialogs of decisions: of one task, or of several, one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from textual.app import App

from agentwatch.app.decision_words import why_not
from agentwatch.app.dialogs.case import Case
from agentwatch.app.dialogs.decision import DecisionScreen
from agentwatch.app.dialogs.forms import FORMS
from agentwatch.app.dialogs.frame import End
from agentwatch.app.messages import TaskDecided
from agentwatch.decisions import policy
from agentwatch.delegation.decision import Action
from agentwatch.text import quoted

if TYPE_CHECKING:
    from agentwatch.delegation.task import Task
    from agentwatch.monitor import Monitor

_LIKELY: Final = (Action.RETRY, Action.RESPOND, Action.ACCEPT, Action.ESCALATE, Action.ABORT)


class Opener(NamedTuple):
    """Opens dialogs over an app. `clock` gives seconds since the epoch, `steady` those of a clock that nobody sets."""

    app: App[Any]
    monitor: Monitor
    clock: Callable[[], float]
    steady: Callable[[], float]

    async def decide(self, task_ids: Sequence[str], action: Action | None = None) -> None:
        """Open a dialog for each of these tasks, the next when the one before is decided or skipped.

        Without an `action`, each dialog is for what the contracts suggest for its task; the operator can take another.
        A task that can no longer be decided when its turn comes is left out. Run it in a worker.
        """
        decided = 0
        for number, task_id in enumerate(task_ids, start=1):
            queue = (number, len(task_ids)) if len(task_ids) > 1 else None
            end = await self._decide(task_id, action, queue)
            decided += end is End.DECIDED
            if end is End.LEFT:
                break
        if len(task_ids) > 1:
            left = len(task_ids) - decided
            words = f"Review over: {decided:,} decided{f', {left:,} left as they were' if left else ''}."
            self.app.notify(words, markup=False, timeout=4)

    async def _decide(self, task_id: str, action: Action | None, queue: tuple[int, int] | None) -> End | None:
        """One task, until it is decided, skipped or left; None if nothing can be decided about it."""
        monitor, own_id = self.monitor.of(task_id)
        while (task := monitor.tree.tasks.get(own_id)) is not None:
            wanted = action or _likely(task, self.clock())
            reason = why_not(task, wanted or Action.ACCEPT, self.clock())
            if reason is None and monitor.clerk is None:
                reason = "its workspace is not being watched yet"
            if wanted is None or reason is not None or monitor.clerk is None:
                what = FORMS[wanted].word if wanted is not None else "Review"
                words = f"{what} {quoted(task.title if task.workspace else own_id, 60)}: {reason}."
                self.app.notify(words, severity="warning", markup=False, timeout=6)
                return None
            case = Case.of(monitor, monitor.clerk.desk, task, wanted, self._where(task_id))
            end = await self.app.push_screen_wait(DecisionScreen(case, self.clock, self.steady, queue))
            if end is End.DECIDED:
                self.app.post_message(TaskDecided(task_id))
            if isinstance(end, End):
                return end
            action = end
        return None

    def _where(self, task_id: str) -> str:
        """What the top row above a task is called, "" where it has none."""
        tasks = self.monitor.tree.tasks
        shown = tasks.get(task_id)
        top = tasks.get(shown.scope) if shown is not None and shown.scope else None
        return top.title if top is not None else ""


def _likely(task: Task, now: float) -> Action | None:
    """What the contracts suggest, else the first action that is possible."""
    suggested = policy.suggested(task)
    wanted = (suggested, *_LIKELY) if suggested is not None else _LIKELY
    return next((action for action in wanted if why_not(task, action, now) is None), None)
