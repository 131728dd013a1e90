"""Abort: the task ends, and what is below it, with a final error report that goes up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from agentwatch.app.dialogs.case import Case
from agentwatch.app.dialogs.choice import Choice
from agentwatch.app.dialogs.fields import Row
from agentwatch.app.dialogs.handing_on import HandingOnScreen
from agentwatch.decisions.desk import operator_name
from agentwatch.decisions.proposal import Proposal, report
from agentwatch.decisions.record import Params
from agentwatch.delegation.task import Task
from agentwatch.view.words import plural


class AbortScreen(HandingOnScreen):
    """The end of a task. It has to be confirmed in words before the key counts."""

    AUTO_FOCUS = "#sure"
    document_label: ClassVar[str] = "report"
    document_title: ClassVar[str] = "the final error report"
    note_label: ClassVar[str] = "why"
    note_placeholder: ClassVar[str] = "stands in the report"

    def __init__(
        self, case: Case, clock: Callable[[], float], steady: Callable[[], float], queue: tuple[int, int] | None = None
    ) -> None:
        super().__init__(case, clock, steady, queue)
        self._sure = Choice(("no", f"yes, {self._what_ends()}"), id="sure")

    def _what_ends(self) -> str:
        below = self._task_seen.below if self._task_seen else None
        if below is None or not below.open:
            return "end this task"
        return f"end this task and the {plural(below.open, 'open task')} below it"

    def fields(self) -> Iterator[Row]:
        yield Row("abort", self._sure)
        yield from super().fields()

    def missing(self) -> str | None:
        return None if self._sure.chosen else "say yes, with an arrow key on “abort”"

    async def params(self) -> Params | None:
        text = await self.sound_text()
        return None if text is None else Params(report=text)

    def maker(self, task: Task) -> Callable[[], Proposal]:
        note = self.note
        failed = list(self.case.monitor.tree.failed_below(task))
        return lambda: report(task, failed, note=note, operator=operator_name())
