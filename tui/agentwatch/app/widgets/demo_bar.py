"""The line that says that a demo is played, and what a newcomer can try in it now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.style import Style

from agentwatch.app.actions import COMMANDS
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import LineWidget, Part, Parts, width_of
from agentwatch.delegation.decision import Action
from agentwatch.delegation.task import Task
from agentwatch.view.progress import is_on_its_way

if TYPE_CHECKING:
    from agentwatch.delegation.tree import DelegationTree

_PERIOD: Final = 0.5
"""Seconds between two looks at the tree."""

_REVERSED: Final = Style(reverse=True)
_BY_ID: Final = {command.id: command for command in COMMANDS}


class DemoBar(LineWidget):
    """The line of one demo."""

    DEFAULT_CSS = """
    DemoBar { height: 1; width: 1fr; background: $background; color: $foreground; }
    """

    def __init__(self, tree: DelegationTree) -> None:
        super().__init__()
        self._tree = tree

    def on_mount(self) -> None:
        self.set_interval(_PERIOD, self.redraw)

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        parts = [Part(" DEMO ", palette.needs + _REVERSED), Part("  ")]
        for sentence in self._sentences(palette):
            if width_of(parts) + width_of(sentence) <= width:
                parts += sentence
        return [parts]

    def _sentences(self, palette: Palette) -> list[Parts]:
        """What to do, and what to know of it if there is room."""
        selected = self._tree.tasks.get(getattr(self.screen, "task_id", None) or "")
        decisions = [one.decision for task in self._tree.tasks.values() for one in task.attempts if one.decision]
        if any(is_on_its_way(decision) for decision in decisions):
            return _said("Decided.", "Now see how far it gets: recorded, delivered, read, acted.")
        if selected is not None and selected.needs_operator:
            command = _BY_ID[f"decide.{_likely(selected)}"]
            key = Part(command.key_label, palette.strong, f"app.{command.action}", command.tooltip)
            told = _said("Only ctrl+s records it.", "All of it is temporary.")
            return [[Part("Try it: "), key, Part(f" to {command.words}. ")], *told]
        if self._tree.totals.needs_operator:
            return [[Part("Try it: "), Part("n", palette.strong), Part(" goes to a child that needs you. ")]]
        if decisions:
            return _said("That was the whole loop.", "Look around; q leaves, and nothing of it is kept.")
        return _said("Agents build the checkout of a shop.", "Soon one of them will need you.")


def _said(*sentences: str) -> list[Parts]:
    return [[Part(f"{sentence} ")] for sentence in sentences]


def _likely(task: Task) -> Action:
    """What the contracts suggest, else that it is good enough."""
    # Not for the first frame, in which nobody asks yet.
    from agentwatch.decisions import policy

    return policy.suggested(task) or Action.ACCEPT
