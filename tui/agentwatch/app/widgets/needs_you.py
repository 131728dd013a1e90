"""The strip "Needs you": the tasks that wait for the operator, most important first."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from textual import events
from textual.message import Message

from agentwatch.app.present import duration, look
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cells import clip, clip_name, left, right, shown
from agentwatch.app.widgets.line import LineWidget, Part, Parts, width_of
from agentwatch.delegation.task import Task

if TYPE_CHECKING:
    from agentwatch.delegation.tree import DelegationTree

TALL: Final = 30
"""Lines of screen from which the strip may take more than one."""
_LINES: Final = 6
"""Lines that it takes at most, and no more than one of ten of the screen's."""
_LEAD: Final = 12
"""Cells in front of the tasks where each has a line."""


def next_asking(tree: DelegationTree, task_id: str | None, step: int) -> str | None:
    """The task that needs the operator after (`step` 1) or before (-1) this one; None where none does."""
    ids = [task.task_id for task in tree.asking()]
    if not ids:
        return None
    if task_id in ids:
        return ids[(ids.index(task_id) + step) % len(ids)]
    return ids[0 if step > 0 else -1]


class NeedsYou(LineWidget):
    """The strip of one tree; gone while nobody asks. `clock` gives seconds since the epoch."""

    DEFAULT_CSS = """
    NeedsYou { height: 1; width: 1fr; background: $background; color: $foreground; display: none; }
    NeedsYou.-tall { border-top: solid $line; }
    """

    class Picked(Message):
        """A task of the strip was clicked."""

        def __init__(self, task_id: str) -> None:
            super().__init__()
            self.task_id = task_id

    def __init__(self, tree: DelegationTree, clock: Callable[[], float]) -> None:
        super().__init__()
        self._tree = tree
        self._clock = clock
        self._tasks: list[Task] = []
        self._spans: list[list[tuple[int, str]]] = []
        self.cursor_id: str | None = None

    def refresh_tasks(self, changed: Collection[str]) -> None:
        """Show who asks now, where one of the changed tasks asks or has asked."""
        asked = {task.task_id for task in self._tasks}
        for task_id in changed:
            task = self._tree.tasks.get(task_id)
            if task_id in asked or (task is not None and task.needs_operator):
                self._tasks = self._tree.asking()
                self.fit()
                return

    def fit(self) -> None:
        """Take as many lines as the screen has room for."""
        height = self.screen.size.height
        tall = height >= TALL
        lines = min(len(self._tasks), _LINES, height // 10 if tall else 1)
        self.display = lines > 0
        self.set_class(tall, "-tall")
        self.styles.height = lines + 1 if tall else lines
        self.redraw()

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        self._spans = []
        if not self._tasks:
            return []
        now = self._clock()
        if self.has_class("-tall"):
            return self._list(width, min(len(self._tasks), _LINES, self.screen.size.height // 10), now, palette)
        return [self._line(width, now, palette)]

    def _list(self, width: int, height: int, now: float, palette: Palette) -> list[Parts]:
        """One task a line, in columns."""
        holding = max(len(self._holds(task)) for task in self._tasks[:height])
        names = min(max(len(shown(task.title)) for task in self._tasks[:height]), 24)
        lines: list[Parts] = []
        for number, task in enumerate(self._tasks[:height]):
            face = look(task)
            more = len(self._tasks) - height
            words = f" +{more:,} more" if number == height - 1 and more > 0 else ""
            lead = [Part(left(f" {words}", _LEAD), palette.muted)]
            if not number:
                lead = [Part(" "), Part("Needs you", palette.needs), Part("  ")]
            here = task.task_id == self.cursor_id
            tail = f"  {self._holds(task):>{holding}} {right(self._waiting(task, now), 4)} "
            room = width - _LEAD - 2 - names - 2 - len(tail)
            lines.append(
                [
                    *lead,
                    Part(face.glyph + " ", palette.states[face.color]),
                    Part(left(clip_name(shown(task.title), names), names), palette.strong),
                    Part("  " + left(shown(task.ask or ""), max(room, 0)), palette.accent if here else Part("").style),
                    Part(tail, palette.muted),
                ]
            )
            self._spans.append([(width, task.task_id)])
        return lines

    def _line(self, width: int, now: float, palette: Palette) -> Parts:
        """All in one line, as many as fit."""
        parts = [Part(" "), Part("Needs you" if width >= 60 else "‼", palette.needs)]
        spans: list[tuple[int, str]] = []
        for number, task in enumerate(self._tasks):
            face = look(task)
            holds = self._holds(task)
            tail = "  ".join(part for part in (holds if width >= 60 else "", self._waiting(task, now)) if part)
            title = clip_name(shown(task.title), 24 if width >= 60 else 12)
            more = len(self._tasks) - number - 1
            reserve = len(f"  +{more:,} more") if more else 0
            fixed = [
                Part("  " + face.glyph + " ", palette.states[face.color]),
                Part(title + " ", palette.strong),
            ]
            room = width - 1 - width_of(parts) - width_of(fixed) - len(tail) - 1 - reserve
            if number and room < 24:
                parts.append(Part(f"  +{more + 1:,} more", palette.muted))
                break
            ask = clip(shown(task.ask or ""), min(max(room, 0), 60 if more else room))
            parts += [*fixed, Part(ask), Part(" " + tail, palette.muted)]
            spans.append((width_of(parts), task.task_id))
        self._spans.append(spans)
        return parts

    def _holds(self, task: Task) -> str:
        count = self._tree.holds(task)
        return f"holds {count:,}" if count else ""

    def _waiting(self, task: Task, now: float) -> str:
        return duration(now - (task.updated_at if task.ended_at is None else task.ended_at))

    async def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        if place is not None and place.y < len(self._spans):
            for end, task_id in self._spans[place.y]:
                if place.x < end:
                    self.post_message(self.Picked(task_id))
                    return
