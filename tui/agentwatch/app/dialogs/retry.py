"""Retry: the amended handoff of the next attempt, with the operator's note, the child's hint and a mitigation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from agentwatch.app.dialogs.case import Case
from agentwatch.app.dialogs.choice import Choice
from agentwatch.app.dialogs.fields import Row
from agentwatch.app.dialogs.handing_on import HandingOnScreen
from agentwatch.decisions.proposal import Proposal, next_handoff
from agentwatch.decisions.record import Mitigation, Params
from agentwatch.delegation.task import Task

_MITIGATIONS: Final = {
    None: "none",
    Mitigation.CHANGED_INPUTS: "changed inputs",
    Mitigation.REDUCED_SCOPE: "reduced scope",
    Mitigation.CORRECTED_CONSTRAINTS: "corrected constraints",
}


class RetryScreen(HandingOnScreen):
    """The next attempt of the same task."""

    def __init__(
        self, case: Case, clock: Callable[[], float], steady: Callable[[], float], queue: tuple[int, int] | None = None
    ) -> None:
        super().__init__(case, clock, steady, queue)
        self._mitigation = Choice(list(_MITIGATIONS.values()), id="mitigation")
        self._hint = Choice(("hand it on", "leave it out"), id="hint")
        self._has_hint = bool(self._task_seen and self._task_seen.retry.hint)

    def fields(self) -> Iterator[Row]:
        yield Row("mitigated", self._mitigation)
        if self._has_hint:
            yield Row("hint", self._hint)
        yield from super().fields()

    def plain_params(self) -> Params:
        return Params(mitigation=list(_MITIGATIONS)[self._mitigation.chosen or 0])

    async def params(self) -> Params | None:
        text = await self.sound_text()
        return None if text is None else Params(self.plain_params().mitigation, handoff=text or None)

    def maker(self, task: Task) -> Callable[[], Proposal]:
        case, note, hint = self.case, self.note, task.retry.hint if self._hint.chosen == 0 else None
        return lambda: next_handoff(task, case.subject, case.monitor.content, note=note, hint=hint)
