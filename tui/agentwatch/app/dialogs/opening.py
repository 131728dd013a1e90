"""Opens the dialogs of decisions: of one task, or of several, one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from textual.app import App

from agentwatch.app.decision_words import why_not
from agentwatch.app.dialogs.cases import AttemptCase, RequestCase
from agentwatch.app.dialogs.dialog import DecisionScreen, End
from agentwatch.app.messages import TaskDecided
from agentwatch.decisions import policy
from agentwatch.decisions.form import unfit
from agentwatch.delegation.decision import SPECS, Action
from agentwatch.text import clean, quoted
from agentwatch.view.words import plural

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

    async def decide(self, task_ids: Sequence[str], action: Action | None = None, *, marked: bool = False) -> None:
        """Open a dialog for each of these tasks, the next when the one before is decided or skipped.

        Without an `action`, each dialog is for what the contracts suggest for its task; the operator can take another.
        A task whose program asks has a dialog for each of its requests, which are left out where tasks are `marked`:
        no mark says yes to a request. What can no longer be decided when its turn comes is left out. Run it in a
        worker.
        """
        turns = self._turns(task_ids, action)
        if marked:
            left_out = sum(request is not None for _, request in turns)
            turns = [turn for turn in turns if turn[1] is None]
            if left_out:
                words = f"{plural(left_out, 'request')} left out: each is answered on its own, with its key."
                self.app.notify(words, markup=False, timeout=6)
        decided = 0
        for number, (task_id, request) in enumerate(turns, start=1):
            queue = (number, len(turns)) if len(turns) > 1 else None
            end = await (self._answer(task_id, request, queue) if request else self._decide(task_id, action, queue))
            decided += end is End.DECIDED
            if end is End.LEFT:
                break
        if len(turns) > 1:
            left = len(turns) - decided
            words = f"Review over: {decided:,} decided{f', {left:,} left as they were' if left else ''}."
            self.app.notify(words, markup=False, timeout=4)

    def _turns(self, task_ids: Sequence[str], action: Action | None) -> list[tuple[str, str | None]]:
        """Of each task, the ids of its requests that can be answered here, else None for its attempt; where it is
        to be answered, one of them."""
        turns: list[tuple[str, str | None]] = []
        for task_id in task_ids:
            task = self.monitor.tree.tasks.get(task_id)
            requests = [one.request_id for one in task.requests if one.can_answer] if task is not None else []
            if action is not None:
                requests = requests[:1] if action is Action.RESPOND else []
            turns += [(task_id, one) for one in requests or (None,)]
        return turns

    async def _answer(self, task_id: str, request_id: str, queue: tuple[int, int] | None) -> End | None:
        """One request, until it is answered, skipped or left; None where it cannot be answered any more."""
        monitor, _ = self.monitor.of(task_id)
        asked = monitor.tree.request(request_id)
        if asked is None or not asked.request.can_answer or monitor.clerk is None:
            return None
        if (reason := _closed(monitor) or unfit(asked.request)) is not None:
            self._refuse(f"Answer: {reason}.")
            return None
        case = RequestCase(monitor, monitor.clerk.desk, asked.task_id, asked.request, self._where(task_id))
        end = await self.app.push_screen_wait(DecisionScreen(case, self.clock, self.steady, queue))
        return end if isinstance(end, End) else None

    async def _decide(self, task_id: str, action: Action | None, queue: tuple[int, int] | None) -> End | None:
        """One task, until it is decided, skipped or left; None if nothing can be decided about it."""
        monitor, own_id = self.monitor.of(task_id)
        while (task := monitor.tree.tasks.get(own_id)) is not None:
            wanted = action or _likely(task, self.clock())
            if action is Action.RESPOND and (asked := [one for one in task.requests if one.can_answer]):
                # Taken instead of another action: what its program asks is what there is to answer.
                return await self._answer(task_id, asked[0].request_id, queue)
            # What its program waits for comes before all else that could be decided about it.
            asks = action is None and task.request is not None
            reason = why_not(task, Action.RESPOND if asks else wanted or Action.ACCEPT, self.clock())
            if reason is None:
                reason = _closed(monitor)
            if wanted is None or reason is not None or monitor.clerk is None:
                what = SPECS[wanted].word if wanted is not None else "Review"
                self._refuse(f"{what} {quoted(task.title if task.workspace else own_id, 60)}: {reason}.")
                return None
            case = AttemptCase(monitor, monitor.clerk.desk, task, wanted, self._where(task_id))
            end = await self.app.push_screen_wait(DecisionScreen(case, self.clock, self.steady, queue))
            if end is End.DECIDED:
                self.app.post_message(TaskDecided(task_id))
            if isinstance(end, End):
                return end
            action = end
        return None

    def _refuse(self, words: str) -> None:
        """No dialog opens, or none any more."""
        self.app.notify(words, severity="warning", markup=False, timeout=6)

    def _where(self, task_id: str) -> str:
        """The name of the top row above a task, "" where it has none."""
        tasks = self.monitor.tree.tasks
        shown = tasks.get(task_id)
        top = tasks.get(shown.scope) if shown is not None and shown.scope else None
        return top.title if top is not None else ""


def _closed(monitor: Monitor) -> str | None:
    """Why nothing can be decided in a workspace now; None where something can."""
    if monitor.clerk is None:
        return "its workspace is not being watched yet"
    unreachable = monitor.clerk.desk.unreachable
    return None if unreachable is None else clean(unreachable, 400)


def _likely(task: Task, now: float) -> Action | None:
    """The action that the contracts suggest, else the first that is possible."""
    suggested = policy.suggested(task)
    wanted = (suggested, *_LIKELY) if suggested is not None else _LIKELY
    return next((action for action in wanted if why_not(task, action, now) is None), None)
