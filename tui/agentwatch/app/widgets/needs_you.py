"""The strip "Needs you": the tasks that wait for the operator, most important first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.message import Message

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cells import clip_name, clip_sentence, left, right, summary
from agentwatch.app.widgets.line import LineWidget, Part, Parts, width_of
from agentwatch.delegation.task import BETWEEN, Task
from agentwatch.view.looks import look
from agentwatch.view.query import Query
from agentwatch.view.times import duration, stands_since
from agentwatch.view.words import in_line, name_of, told_apart

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree

_TALL: Final = 30
"""Lines of screen from which the strip may take more than one."""
_LINES: Final = 6
"""Lines that it takes at most, and no more than one of ten of the screen's."""
_LONGEST_NAME: Final = 36
"""Cells of a name at most, and no more than a quarter of the screen's."""
_LEAST_OF_TASK: Final = 24
"""Cells without which a task is not begun with in the one line."""
_ROOMY: Final = 60
"""From this width on there are words in place of signs, and the line says what waits for a task."""


class NeedsYou(LineWidget):
    """The strip of one tree; gone while nobody asks. `clock` gives seconds since the epoch."""

    DEFAULT_CSS = """
    NeedsYou { display: none; }
    NeedsYou.-tall { border-top: solid $line; }
    """

    @dataclass
    class Picked(Message):
        """A task of the strip was clicked."""

        task_id: str

    def __init__(self, tree: Tree, clock: Callable[[], float]) -> None:
        super().__init__()
        self._tree = tree
        self._clock = clock
        self._sought = Query()
        self._spans: list[list[tuple[int, str]]] = []
        """By line: the last cell of each task, and its id."""
        self.cursor_id: str | None = None

    def seek(self, sought: Query) -> None:
        """A filter is on: show those whom it shows, and how many are outside of it."""
        self._sought = sought
        self.fit()

    def _asking(self) -> tuple[list[str], str]:
        """The ids of those who ask and whom the filter shows, and words for the others."""
        queue, now, tasks = list(self._tree.queue), self._clock(), self._tree.tasks
        inside = [one for one in queue if self._sought.matches(tasks[one], now)] if self._sought else queue
        outside = len(queue) - len(inside)
        return inside, f"  {outside:,} outside{' the filter' if self.size.width >= _ROOMY else ''}" if outside else ""

    def fit(self) -> None:
        """Show who asks now, in as many lines as the screen has room for."""
        height, (inside, outside) = self.screen.size.height, self._asking()
        tall = height >= _TALL
        lines = min(len(inside) + bool(outside), _LINES if tall else 1, max(height // 10, 1))
        self.display = lines > 0
        self.set_class(tall, "-tall")
        self.styles.height = lines + 1 if tall else lines
        self.redraw()

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        self._spans = []
        inside, outside = self._asking()
        tasks, is_tall = self._tree.tasks, self.has_class("-tall")
        lines = min(_LINES, self.screen.size.height // 10)
        lead = [Part(" "), Part("Needs you" if width >= _ROOMY else "‼", palette.needs)]
        rest = [Part(outside, palette.muted)] if outside else []
        if not inside:
            return [[*lead, *rest]] if rest else []
        if not is_tall:
            # The selected one, where it asks, and those after it; else the most important ones, and always one that
            # runs out.
            start = inside.index(self.cursor_id) if self.cursor_id in inside and not _runs_out(tasks[inside[0]]) else 0
            ids = [*inside[start:], *inside[:start]][: width // _LEAST_OF_TASK + 1]
            return [[*self._line([tasks[one] for one in ids], lead, len(inside), width, outside, palette), *rest]]
        ids = inside[: max(lines - bool(outside), 1)]
        if self.cursor_id in inside and self.cursor_id not in ids:
            # The last of the most important ones gives way to the selected one.
            ids[-1] = self.cursor_id
        told = self._list([tasks[one] for one in ids], lead, len(inside) - len(ids), width, palette)
        return [*told, [Part(" " * _lead_width(width)), *rest]] if rest and len(told) < lines else told

    def _list(self, tasks: Sequence[Task], lead: Parts, more: int, width: int, palette: Palette) -> list[Parts]:
        """One task a line, in columns; in the last, that there are so many more."""
        start, now = _lead_width(width), self._clock()
        holds = [f" {_holds(task)}" if width >= _ROOMY else "" for task in tasks]
        waits = [_waiting(task, now) for task in tasks]
        called = self._names(tasks, max(min(width // 4, _LONGEST_NAME), 12))
        holding, waiting, names = max(map(len, holds)), max(4, *map(len, waits)), max(map(cell_len, called))
        room = max(width - start - 2 - names - 2 - (holding + 2) - waiting - 1, 0)
        words = f" +{more:,}{' more' if width >= _ROOMY and more < 1_000 else ''}" if more > 0 else ""
        lines: list[Parts] = []
        for number, task in enumerate(tasks):
            begin = [*lead, Part(" " * (start - 1 - width_of(lead)))]
            if number:
                begin = [Part(left(words if number == len(tasks) - 1 else "", start - 1), palette.muted)]
            ask = "  " + left(clip_sentence(in_line(task, task.ask or ""), room), room)
            lines.append(
                [
                    *begin,
                    *self._mark(task, palette),
                    Part(left(called[number], names), palette.strong),
                    Part(ask, palette.accent) if task.task_id == self.cursor_id else Part(ask),
                    Part(f" {holds[number]:>{holding}} ", palette.muted),
                    Part(right(waits[number], waiting) + " ", _style_of_time(task, palette)),
                ]
            )
            self._spans.append([(width, task.task_id)])
        return lines

    def _line(  # noqa: PLR0917 - as `_list`
        self, tasks: Sequence[Task], lead: Parts, count: int, width: int, outside: str, palette: Palette
    ) -> Parts:
        """All in one line, as many as fit of so many."""
        parts, spans, now = [*lead], list[tuple[int, str]](), self._clock()
        room_of_places = 4 if any(task.host or task.scope for task in tasks) else 0
        called = self._names(tasks, (12 if width < _ROOMY else 16 if width < 100 else 24) + room_of_places)
        for number, task in enumerate(tasks):
            asked, tail = in_line(task, task.ask or ""), _waiting(task, now)
            more = count - number - 1
            reserve = (len(f"  +{more:,} more") if more else 0) + len(outside)
            fixed = [*self._mark(task, palette, " "), Part(called[number] + " ", palette.strong)]
            room = width - 1 - width_of(parts) - width_of(fixed) - len(tail) - 1 - reserve
            if number and room < _LEAST_OF_TASK:
                parts.append(Part(f"  +{more + 1:,} more", palette.muted))
                break
            holds = _holds(task) + "  "
            # What it asks goes before what waits for it.
            holds = holds.lstrip() if cell_len(asked) + len(holds) <= room else ""
            ask = clip_sentence(asked, min(max(room, 0), 60 if more else room))
            parts += [*fixed, Part(ask), Part(f" {holds}", palette.muted), Part(tail, _style_of_time(task, palette))]
            spans.append((width_of(parts), task.task_id))
        self._spans.append(spans)
        return parts

    def _names(self, tasks: Sequence[Task], width: int) -> list[str]:
        """The names of these tasks in so many cells: those on other machines with their host, of several workspaces
        with theirs, and several of one title each with what tells them apart."""
        titles = [name_of(task) for task in tasks]
        called: list[str] = []
        for task, title in zip(tasks, titles, strict=True):
            above = [name_of(self._tree.tasks[one]) for one in self._tree.ancestors(task.task_id)]
            alike = [one for one, other in zip(tasks, titles, strict=True) if other == title]
            place = summary(task.host) or (above[-1] if above and task.scope else "")
            if len(alike) > 1 and not above:
                words = told_apart(alike)[alike.index(task)]
                called.append(f"{clip_name(title, max(width - cell_len(words) - 3, 3))} · {words}")
            elif name := place or (above[0] if len(alike) > 1 else ""):
                room = width - len(BETWEEN)
                name = clip_name(name, max(room - cell_len(title), min(cell_len(name), room // 3)))
                called.append(f"{name}{BETWEEN}{clip_name(title, room - cell_len(name))}")
            else:
                called.append(clip_name(title, width))
        return called

    def _mark(self, task: Task, palette: Palette, gap: str = "") -> Parts:
        face = look(task)
        # As in the tree: colour alone would not say it everywhere.
        here = Part(gap + ("▌" if task.task_id == self.cursor_id else " "), palette.accent)
        return [here, Part(face.glyph + " ", palette.states[face.color])]

    async def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        if place is not None and place.y < len(self._spans):
            task_id = next((task_id for end, task_id in self._spans[place.y] if place.x < end), None)
            if task_id is not None:
                self.post_message(self.Picked(task_id))


def _holds(task: Task) -> str:
    """For how many tasks it is in the way."""
    return f"holds {task.open_below:,}" if task.open_below else ""


def _lead_width(width: int) -> int:
    """Cells in front of the tasks where each has a line."""
    return 12 if width >= _ROOMY else 7


def _style_of_time(task: Task, palette: Palette) -> Style:
    return palette.needs if _runs_out(task) else palette.muted


def _runs_out(task: Task) -> float | None:
    """Until when its request can be answered here, None where that does not end, or it cannot."""
    return task.request.until if task.request is not None and task.request.can_answer else None


def _waiting(task: Task, now: float) -> str:
    """Since when it asks; where that runs out, how long it can still be answered."""
    if (until := _runs_out(task)) is not None:
        return f"{duration(max(until - now, 0.0))} left"
    since = stands_since(task)
    return "" if since is None else duration(now - since)
