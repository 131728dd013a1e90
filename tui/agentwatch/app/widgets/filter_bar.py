"""The filter: which tasks are looked for, finding them, and the line in which that is written and said."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from agentwatch.app.actions import Home, bindings
from agentwatch.app.widgets.cells import summary
from agentwatch.delegation.task import State, Task
from agentwatch.text import LINE_LIMIT
from agentwatch.view.looks import LOOKS

if TYPE_CHECKING:
    from agentwatch.delegation.tree import DelegationTree

_SLICE: Final = 0.006
"""Seconds of searching after which key presses and updates get their turn."""


class Filter(NamedTuple):
    """What is shown: tasks that hold `text` (any letter case) and are in `state` or need the operator."""

    text: str = ""
    state: State | None = None
    needs_operator: bool = False

    def __bool__(self) -> bool:
        return self != Filter()

    def matches(self, task: Task) -> bool:
        """Whether the task itself is looked for. The text is sought in id, title, agent and objective."""
        if self.state is not None and task.state is not self.state:
            return False
        if self.needs_operator and not task.needs_operator:
            return False
        sought = self.text.casefold()
        if not sought or sought in task.task_id.casefold() or sought in summary(task.title, LINE_LIMIT).casefold():
            return True
        objective = task.packet.objective if task.packet is not None else None
        return any(text is not None and sought in text.casefold() for text in (task.agent, objective))


async def find(tree: DelegationTree, sought: Filter) -> tuple[set[str], int]:
    """The ids of the tasks to show, those above a match among them, and how many match by themselves.

    However large the tree is, no key waits for it.
    """
    matches = 0
    shown: set[str] = set()
    began = perf_counter()
    for task in list(tree.tasks.values()):
        if sought.matches(task):
            matches += 1
            above: str | None = task.task_id
            while above is not None and above not in shown and above in tree.tasks:
                shown.add(above)
                above = tree.tasks[above].parent_id
        if perf_counter() - began > _SLICE:
            await asyncio.sleep(0)
            began = perf_counter()
    return shown, matches


class FilterInput(Input):
    """The text field. Its keys are those of the filter's commands."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.FILTER)

    @dataclass
    class Left(Message):
        """The operator is done with it; `drop` asks to clear the filter."""

        drop: bool

    def on_focus(self) -> None:
        self.placeholder = "id, title, agent or objective"

    def on_blur(self) -> None:
        # Beside a filter by state, it would look like what is sought.
        self.placeholder = ""

    def action_done(self) -> None:
        self.post_message(self.Left(drop=False))

    action_down = action_done

    def action_drop(self) -> None:
        self.post_message(self.Left(drop=True))


class FilterBar(Horizontal):
    """The filter's line; hidden while no filter is on."""

    DEFAULT_CSS = """
    FilterBar { height: 1; background: $background; display: none; }
    FilterBar > #filter-mark { width: 3; color: $accent; text-style: bold; }
    FilterBar > FilterInput {
        width: 1fr; height: 1; border: none; padding: 0;
        background: $background; color: $foreground;
    }
    FilterBar > FilterInput:focus { background-tint: transparent; border: none; }
    FilterBar > #filter-state { width: auto; padding: 0 1; color: $accent; }
    FilterBar > #filter-count { width: auto; padding: 0 1; color: $text-muted; }
    """

    @dataclass
    class Changed(Message):
        """Another filter is asked for."""

        sought: Filter

    def __init__(self) -> None:
        super().__init__()
        self.sought = Filter()
        """The filter that is on."""
        self._field = FilterInput(compact=True, select_on_focus=False, max_length=200)
        self._state = Static(id="filter-state", markup=False)
        self._count = Static(id="filter-count", markup=False)

    def compose(self) -> ComposeResult:
        yield Static(" / ", id="filter-mark", markup=False)
        yield self._field
        yield self._state
        yield self._count

    def write(self, text: str | None = None) -> None:
        """Let the operator write, or go on behind a text."""
        self.display = True
        self._field.focus()
        if text is not None:
            self.seek(self.sought._replace(text=text))

    def step(self, states: Iterable[State], by: int, *, asks: bool) -> None:
        """Ask for the next of: everything, what needs the operator where somebody `asks`, each state, urgent first."""
        text = self.sought.text
        choices = [Filter(text), *([Filter(text, needs_operator=True)] if asks else [])]
        choices += [Filter(text, state) for state in sorted(states, key=lambda state: -state.urgency)]
        position = choices.index(self.sought) if self.sought in choices else 0
        self.seek(choices[(position + by) % len(choices)])

    def seek(self, sought: Filter) -> None:
        """Ask for another filter."""
        with self._field.prevent(Input.Changed):
            self._field.value = sought.text
        self._ask_for(sought)

    def _ask_for(self, sought: Filter) -> None:
        self.sought = sought
        words = "needs you" if sought.needs_operator else ""
        if sought.state is not None:
            words = f"{LOOKS[sought.state].glyph} {LOOKS[sought.state].word}"
        self._state.update(Content(words))
        self.display = bool(sought) or self._field.has_focus
        self.post_message(self.Changed(sought))

    def show_count(self, matches: int | None) -> None:
        """Say how many tasks match."""
        words = "" if matches is None else f"{matches:,} found" if matches else "nothing matches"
        self._count.update(Content(words))

    @on(Input.Changed)
    def _take_text(self, event: Input.Changed) -> None:
        event.stop()
        self._ask_for(self.sought._replace(text=event.value))
