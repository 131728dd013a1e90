"""Which tasks are looked for, and finding them in a tree of any size without keeping a key waiting."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Final

from agentwatch.app.widgets.cells import summary
from agentwatch.delegation.task import State, Task
from agentwatch.text import LINE_LIMIT

if TYPE_CHECKING:
    from agentwatch.delegation.tree import DelegationTree

_SLICE: Final = 0.006
"""Seconds of searching after which key presses and updates get their turn."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What is shown: tasks that hold `text` (any letter case) and are in `state` or need the operator."""

    text: str = ""
    state: State | None = None
    needs_operator: bool = False

    def __bool__(self) -> bool:
        return bool(self.text) or self.state is not None or self.needs_operator

    def matches(self, task: Task) -> bool:
        """Whether the task itself is looked for. The text is sought in id, title, agent and objective."""
        if self.state is not None and task.state is not self.state:
            return False
        if self.needs_operator and not task.needs_operator:
            return False
        sought = self.text.casefold()
        if not sought or sought in task.task_id.casefold() or sought in summary(task.title, LINE_LIMIT).casefold():
            return True
        if task.agent is not None and sought in task.agent.casefold():
            return True
        packet = task.packet
        return packet is not None and packet.objective is not None and sought in packet.objective.casefold()


async def find(tree: DelegationTree, sought: Filter) -> tuple[set[str], int]:
    """The ids of the tasks to show, those above a match among them, and how many match by themselves."""
    found = 0
    shown: set[str] = set()
    began = perf_counter()
    for task in list(tree.tasks.values()):
        if sought.matches(task):
            found += 1
            above: str | None = task.task_id
            while above is not None and above not in shown and above in tree.tasks:
                shown.add(above)
                above = tree.tasks[above].parent_id
        if perf_counter() - began > _SLICE:
            await asyncio.sleep(0)
            began = perf_counter()
    return shown, found
