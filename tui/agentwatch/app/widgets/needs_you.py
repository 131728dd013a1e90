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
        self._inside: Sequence[str] = ()
        """The ids of those who ask and whom the filter shows."""
        self._outside = ""
        self._spans: list[list[tuple[int, str]]] = []
        """By line: the last cell of each task, and its id."""
        self.cursor_id: str | None = None

    def seek(self, sought: Query) -> None:
        """A filter is on: show those whom it shows, and how many are outside of it."""
        self._sought = sought
        self.fit()

    def fit(self) -> None:
        """Show who asks now, in as many lines as the screen has room for."""
        height, now, tasks = self.screen.size.height, self._clock(), self._tree.tasks
        queue = list(self._tree.queue)
        self._inside = [one for one in queue if self._sought.matches(tasks[one], now)] if self._sought else queue
        tall = height >= _TALL
        outside = len(queue) - len(self._inside)
        self._outside = f"  {outside:,} outside{' the filter' if self.size.width >= _ROOMY else ''}" if outside else ""
        lines = min(len(self._inside) + (outside > 0), _LINES, height // 10) if tall else min(len(queue), 1)
        self.display = lines > 0
        self.set_class(tall, "-tall")
        self.styles.height = lines + 1 if tall else lines
        self.redraw()

    def on_mount(self) -> None:
        super().on_mount()
        self.screen.screen_layout_refresh_signal.subscribe(self, lambda _screen: self._lift_toasts())

    def _lift_toasts(self) -> None:
        """One line that is told in passing stands over the footer, whose words are always the same; a longer one would
        cover the strip, and stands above it."""
        for rack in self.screen.query_children("ToastRack"):
            lines = sum(toast.outer_size.height for toast in rack.query("Toast"))
            rack.styles.margin = (0, 0, self.outer_size.height + 1 if self.display and lines > 1 else 0, 0)

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        self._spans = []
        queue, tasks = list(self._tree.queue), self._tree.tasks
        asking = set(queue)
        inside = [task_id for task_id in self._inside if task_id in asking]
        if not queue:
            return []
        lines, is_tall = min(_LINES, self.screen.size.height // 10), self.has_class("-tall")
        count = max(lines - bool(self._outside), 1) if is_tall else width // _LEAST_OF_TASK + 1
        # In one line: the selected one, where it asks, and those after it; else the most important ones, and always one
        # that runs out.
        is_asking = self.cursor_id in inside
        start = 0 if is_tall or not is_asking or _runs_out(tasks[queue[0]]) else inside.index(self.cursor_id or "")
        ids = [*inside[start:], *inside[:start]][:count]
        if is_tall and is_asking and self.cursor_id not in ids:
            # The last of the most important ones gives way to the selected one.
            ids[-1] = self.cursor_id or ""
        lead = [Part(" "), Part("Needs you" if width >= _ROOMY else "‼", palette.needs)]
        rest = [Part(self._outside, palette.muted)] if self._outside else []
        if not ids:
            self._spans.append([(width, queue[0])])
            return [[*lead, *rest]]
        shown, more = [tasks[one] for one in ids], len(inside)
        if not is_tall:
            return [[*self._line(shown, lead, more, width, palette), *rest]]
        told = self._list(shown, lead, more - len(shown), width, palette)
        return [*told, [Part(" " * _lead_width(width)), *rest]] if rest and len(told) < lines else told

    def _list(self, tasks: Sequence[Task], lead: Parts, more: int, width: int, palette: Palette) -> list[Parts]:
        """One task a line, in columns; in the last, that there are so many more."""
        start, now = _lead_width(width), self._clock()
        holds = [f" {self._holds(task)}" if width >= _ROOMY else "" for task in tasks]
        holding = max(map(len, holds))
        called = self._names(tasks, max(min(width // 4, _LONGEST_NAME), 12))
        names = max(map(cell_len, called))
        waits = [_waiting(task, now) for task in tasks]
        waiting = max(4, *map(len, waits))
        words = f" +{more:,}{' more' if width >= _ROOMY and more < 1_000 else ''}" if more > 0 else ""
        lines: list[Parts] = []
        for number, task in enumerate(tasks):
            begin = [*lead, Part(" " * (start - 1 - width_of(lead)))]
            if number:
                begin = [Part(left(words if number == len(tasks) - 1 else "", start - 1), palette.muted)]
            tail = f" {holds[number]:>{holding}} "
            room = max(width - start - 2 - names - 2 - len(tail) - waiting - 1, 0)
            ask = "  " + left(clip_sentence(in_line(task, task.ask or ""), room), room)
            lines.append(
                [
                    *begin,
                    *self._mark(task, palette),
                    Part(left(called[number], names), palette.strong),
                    Part(ask, palette.accent) if task.task_id == self.cursor_id else Part(ask),
                    Part(tail, palette.muted),
                    Part(right(waits[number], waiting) + " ", _style_of_time(task, palette)),
                ]
            )
            self._spans.append([(width, task.task_id)])
        return lines

    def _line(self, tasks: Sequence[Task], lead: Parts, count: int, width: int, palette: Palette) -> Parts:
        """All in one line, as many as fit of so many."""
        parts, spans, now = [*lead], list[tuple[int, str]](), self._clock()
        room_of_places = 4 if any(task.host or task.scope for task in tasks) else 0
        called = self._names(tasks, (12 if width < _ROOMY else 16 if width < 100 else 24) + room_of_places)
        for number, task in enumerate(tasks):
            asked, tail = in_line(task, task.ask or ""), _waiting(task, now)
            more = count - number - 1
            reserve = (len(f"  +{more:,} more") if more else 0) + len(self._outside)
            fixed = [*self._mark(task, palette, " "), Part(called[number] + " ", palette.strong)]
            room = width - 1 - width_of(parts) - width_of(fixed) - len(tail) - 1 - reserve
            if number and room < _LEAST_OF_TASK:
                parts.append(Part(f"  +{more + 1:,} more", palette.muted))
                break
            holds = self._holds(task) + "  "
            # What it asks goes before what waits for it.
            holds = holds.lstrip() if cell_len(asked) + len(holds) <= room else ""
            ask = clip_sentence(asked, min(max(room, 0), 60 if more else room))
            parts += [*fixed, Part(ask), Part(f" {holds}", palette.muted), Part(tail, _style_of_time(task, palette))]
            spans.append((width_of(parts), task.task_id))
        self._spans.append(spans)
        return parts

    def _names(self, tasks: Sequence[Task], width: int) -> list[str]:
        """What these tasks are called in so many cells: several of one title each with the task that it is part of,
        those on other machines with their host, and of several workspaces with theirs."""
        titles = [name_of(task) for task in tasks]
        alike = [number for number, task in enumerate(tasks) if titles.count(titles[number]) > 1 and not task.parent_id]
        apart = dict(zip(alike, told_apart([tasks[number] for number in alike]), strict=True))
        above = [[name_of(self._tree.tasks[one]) for one in self._tree.ancestors(task.task_id)] for task in tasks]
        wholes = [(names[-1] if names else "", title) for names, title in zip(above, titles, strict=True)]
        called: list[str] = []
        for number, (task, names, title, whole) in enumerate(zip(tasks, above, titles, wholes, strict=True)):
            is_only = not names or titles.count(title) == 1
            place = summary(task.host) or (names[-1] if names and task.scope else "")
            if words := apart.get(number):
                called.append(f"{clip_name(title, max(width - cell_len(words) - 3, 3))} · {words}")
            elif is_only and not place:
                called.append(clip_name(title, width))
            else:
                # Parts of one whole are told apart by what is right above them.
                name = place if is_only else names[-1] if wholes.count(whole) == 1 else names[0]
                room = width - len(BETWEEN)
                name = clip_name(name, max(room - cell_len(title), min(cell_len(name), room // 3)))
                called.append(f"{name}{BETWEEN}{clip_name(title, room - cell_len(name))}")
        return called

    def _mark(self, task: Task, palette: Palette, gap: str = "") -> Parts:
        face = look(task)
        # As in the tree: colour alone would not say it everywhere.
        here = Part(gap + ("▌" if task.task_id == self.cursor_id else " "), palette.accent)
        return [here, Part(face.glyph + " ", palette.states[face.color])]

    def _holds(self, task: Task) -> str:
        count = task.open_below
        return f"holds {count:,}" if count else ""

    async def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        if place is not None and place.y < len(self._spans):
            task_id = next((task_id for end, task_id in self._spans[place.y] if place.x < end), None)
            if task_id is not None:
                self.post_message(self.Picked(task_id))


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
