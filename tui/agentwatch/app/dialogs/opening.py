"""Opens the dialogs of decisions: of one task, or of several, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from agentwatch.app.decision_words import why_not
from agentwatch.app.dialogs.abort import AbortScreen
from agentwatch.app.dialogs.accept import AcceptScreen
from agentwatch.app.dialogs.case import WORDS, Case
from agentwatch.app.dialogs.escalate import EscalateScreen
from agentwatch.app.dialogs.frame import DecisionScreen, End
from agentwatch.app.dialogs.respond import RespondScreen
from agentwatch.app.dialogs.retry import RetryScreen
from agentwatch.decisions import policy
from agentwatch.delegation import decision as told
from agentwatch.delegation.decision import Action
from agentwatch.text import quoted

if TYPE_CHECKING:
    from agentwatch.app.app import AgentwatchApp
    from agentwatch.decisions.desk import Desk
    from agentwatch.delegation.task import Task

_SCREENS: Final[dict[Action, type[DecisionScreen]]] = {
    Action.RETRY: RetryScreen,
    Action.ESCALATE: EscalateScreen,
    Action.ABORT: AbortScreen,
    Action.RESPOND: RespondScreen,
    Action.ACCEPT: AcceptScreen,
}
_LIKELY: Final = (Action.RETRY, Action.RESPOND, Action.ACCEPT, Action.ESCALATE, Action.ABORT)


async def decide(app: AgentwatchApp, desk: Desk, task_ids: Sequence[str], action: told.Action | None = None) -> None:
    """Open a dialog for each of these tasks, the next when the one before is decided or skipped. Run it in a worker.

    Without an `action`, each dialog is for what the contracts suggest for its task; the operator can take another. A
    task that can no longer be decided when its turn comes is left out.
    """
    decided = 0
    for number, task_id in enumerate(task_ids, start=1):
        queue = (number, len(task_ids)) if len(task_ids) > 1 else None
        end = await _decide(app, desk, task_id, Action(action) if action is not None else None, queue)
        decided += end is End.DECIDED
        if end is End.LEFT:
            break
    if len(task_ids) > 1:
        left = len(task_ids) - decided
        words = f"Review over: {decided:,} decided{f', {left:,} left as they were' if left else ''}."
        app.notify(words, markup=False, timeout=4)


async def _decide(
    app: AgentwatchApp, desk: Desk, task_id: str, action: Action | None, queue: tuple[int, int] | None
) -> End | None:
    """One task, until it is decided, skipped or left; None if nothing can be decided about it."""
    asked = action
    while (task := app.monitor.tree.tasks.get(task_id)) is not None:
        wanted = asked or _likely(task, app.clock())
        reason = why_not(task, told.Action(wanted or Action.ACCEPT), app.clock())
        if wanted is None or reason is not None:
            what = WORDS[wanted] if wanted is not None else "Review"
            app.notify(f"{what} {quoted(task_id, 60)}: {reason}.", severity="warning", markup=False, timeout=6)
            return None
        case = Case.of(app.monitor, desk, task, wanted)
        end = await app.push_screen_wait(_SCREENS[wanted](case, app.clock, app.steady, queue))
        if end is End.DECIDED:
            app.unmark(task_id)
        if isinstance(end, End):
            return end
        asked = end
    return None


def _likely(task: Task, now: float) -> Action | None:
    """What the contracts suggest, else the first action that is possible."""
    suggested = policy.suggested(task)
    wanted = (suggested, *_LIKELY) if suggested is not None else _LIKELY
    return next((action for action in wanted if why_not(task, told.Action(action), now) is None), None)
