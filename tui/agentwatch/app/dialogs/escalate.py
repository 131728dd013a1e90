"""Escalate: the task goes to another mode, with an amended handoff; a line fault goes to the fitter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from textual.widgets import Input, Static

from agentwatch.app.dialogs.case import Case
from agentwatch.app.dialogs.choice import Choice
from agentwatch.app.dialogs.fields import Row
from agentwatch.app.dialogs.handing_on import HandingOnScreen
from agentwatch.app.widgets.cells import clip, shown
from agentwatch.decisions.policy import offered_modes
from agentwatch.decisions.proposal import Proposal, next_handoff
from agentwatch.decisions.record import Params
from agentwatch.delegation.retry import FITTER
from agentwatch.delegation.task import Task

_CELLS: Final = 24


class EscalateScreen(HandingOnScreen):
    """The next attempt in another mode."""

    def __init__(
        self, case: Case, clock: Callable[[], float], steady: Callable[[], float], queue: tuple[int, int] | None = None
    ) -> None:
        super().__init__(case, clock, steady, queue)
        self._modes = offered_modes(
            self._task_seen, case.monitor.tree.tasks.values(), dict(case.monitor.settings.modes)
        )
        # Agents have written these words: each is one option, with nothing of ours behind it on its line.
        # One that was merely seen somewhere is nobody's advice: the operator takes it, or another.
        is_advised = bool(self._modes) and self._modes[0] in {FITTER, *dict(case.monitor.settings.modes)}
        modes = [clip(shown(mode), _CELLS) for mode in self._modes]
        self._choice = Choice(modes, 0 if is_advised else None, id="modes")
        self._other = Input(
            placeholder="any other mode" if self._modes else "none was seen yet: which one?",
            compact=True,
            select_on_focus=False,
            max_length=200,
            id="mode",
        )

        self._purposes = dict(case.monitor.settings.modes)
        self._purpose = Static(id="purpose", markup=False)

    def fields(self) -> Iterator[Row]:
        if self._modes:
            yield Row("mode", self._choice)
        yield Row("other" if self._modes else "mode", self._other)
        if any(self._purposes.values()):
            yield Row("it is for", self._purpose)
        yield from super().fields()

    def on_mount(self) -> None:
        if self.mode is None:
            (self._choice if self._modes else self._other).focus()

    def look(self) -> None:
        super().look()
        self._purpose.update(shown(self._purposes.get(self.mode or "", ""), 200) or "-")

    @property
    def mode(self) -> str | None:
        """The mode to escalate to: what was written comes before what was chosen."""
        written, chosen = self._other.value.strip(), self._choice.chosen
        return written or (self._modes[chosen] if self._modes and chosen is not None else None)

    def plain_params(self) -> Params:
        return Params(mode=self.mode)

    async def params(self) -> Params | None:
        text = await self.sound_text()
        return None if text is None else Params(mode=self.mode, handoff=text or None)

    def maker(self, task: Task) -> Callable[[], Proposal]:
        case, note, mode = self.case, self.note, self.mode
        return lambda: next_handoff(
            task, case.subject, case.monitor.content, note=note, hint=task.retry.hint, mode=mode
        )
