"""What was decided, and what can be: in words, and as the keys that a screen offers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from textual.content import Content

from agentwatch.app.widgets.cells import shown
from agentwatch.delegation.decision import ENDING, SAYS_SO, Action, Decision, Stage
from agentwatch.delegation.retry import FITTER
from agentwatch.delegation.task import Task
from agentwatch.view import times
from agentwatch.view.progress import is_on_its_way, is_unread

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor

ACTIONS: Final = {f"decide.{action}": action for action in Action}
"""The commands that decide."""

GLYPHS: Final = {Stage.RECORDED: "∙", Stage.DELIVERED: "→", Stage.READ: "◉", Stage.ACTED: "✓"}

_WORDS: Final = {
    Action.RETRY: "retry",
    Action.ESCALATE: "escalate",
    Action.ABORT: "abort",
    Action.RESPOND: "your answer",
    Action.ACCEPT: "accept it as it is",
}


def why_not(task: Task, action: Action, now: float) -> str | None:
    """Why a task cannot be decided in this way, whatever comes along; one sentence in small letters, None if it can."""
    if (decision := task.binding) is not None:
        ago = times.ago(decision.at, now)
        return f"already decided: you said {decision.action} {ago}; you can decide about the next attempt"
    # Not for the first frame, in which nothing can be decided yet.
    from agentwatch.decisions import policy, record

    if policy.options(task, mitigation=record.Mitigation.CHANGED_INPUTS)[action].allowed:
        return None
    return policy.options(task)[action].why_not


def short(decision: Decision, now: float) -> str:
    """The same in a few cells, for a row of the tree: a glyph and a word, `!` where the operator should look."""
    if decision.waits:
        return "! undelivered"
    age = times.duration(now - decision.receipt.at)
    if is_unread(decision, now):
        return f"! unread {age}"
    stage = decision.receipt.stage
    said = "says " if decision.receipt.claimed else ""
    return f"{GLYPHS[stage]} {said}{stage}" + (f" {age}" if stage is Stage.READ else "")


def receipt_line(decision: Decision, now: float) -> Content:
    """What was decided and how far it has got, with the age of each step; one as old as the step before says none."""
    mode = f" to {shown(decision.mode, 40)}" if decision.mode else ""
    words = [Content.styled(f"{_WORDS[decision.action]}{mode}", "bold")]
    age = ""
    for receipt in decision.receipts:
        by = f" by {shown(receipt.by, 40)}" if receipt.stage is Stage.READ and receipt.by else ""
        before, age = age, times.ago(receipt.at, now)
        claimed = SAYS_SO if receipt.claimed else ""
        words.append(Content(f"{receipt.stage}{by}{'' if age == before else f' {age}'}{claimed}"))
    if decision.announced:
        words.append(Content(decision.announced))
    if decision.receipt.stage is Stage.READ and is_on_its_way(decision) and decision.action not in ENDING:
        to_fitter = decision.action is Action.ESCALATE and decision.mode == FITTER
        awaited = f"the {FITTER}" if to_fitter else f"attempt {decision.attempt + 1}"
        words.append(Content(f"{awaited} not seen yet"))
    return Content(" · ").join(words)


def warning(decision: Decision, now: float) -> str | None:
    """What the operator should do about a decision that gets no further, a sentence; None if all is well."""
    if decision.waits:
        return f"{shown(decision.waits, 300)}"
    if is_unread(decision, now):
        age = times.duration(now - decision.receipt.at)
        return (
            f"not read for {age}: is an agent waiting for it, with `agentwatch wait`?"
            " An agent can also read .agentwatch/decisions/"
        )
    return None


class Offered:
    """The decisions that one screen offers. `task_id` is that of its task, None if it has none.

    `marked` counts the tasks that are marked for a review, `clock` gives seconds since the epoch.
    """

    def __init__(
        self,
        monitor: Monitor,
        clock: Callable[[], float],
        task_id: Callable[[], str | None],
        marked: Callable[[], int] = lambda: 0,
    ) -> None:
        self._monitor = monitor
        self._clock = clock
        self._task_id = task_id
        self._marked = marked

    def is_useless(self, command_id: str) -> bool:
        """Whether a command that decides need not be named: nobody asks for it, and it is not possible either."""
        if command_id == "review":
            return self._monitor.clerk is None or (self._marked() or self._monitor.tree.totals.needs_operator) < 2
        if command_id not in ACTIONS:
            return False
        task = self._task
        if task is None or self._monitor.clerk is None:
            return True
        return not task.needs_operator and self.why_not(command_id) is not None

    def is_out_of_question(self, command_id: str) -> bool:
        """Whether it is useless, or refused: for a footer in which there is no room for what cannot be done."""
        return self.is_useless(command_id) or self.why_not(command_id) is not None

    def why_not(self, command_id: str) -> str | None:
        """Why a command that decides is refused now; None if it is not, and for every other command."""
        action, task = ACTIONS.get(command_id), self._task
        return why_not(task, action, self._clock()) if action is not None and task is not None else None

    @property
    def _task(self) -> Task | None:
        task_id = self._task_id()
        return None if task_id is None else self._monitor.tree.tasks.get(task_id)
