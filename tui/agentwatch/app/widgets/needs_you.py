"""The strip "Needs you": the tasks that wait for the operator, most important first."""

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from textual.reactive import var

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import LineWidget, Part, Parts, apart, clip_name, clip_sentence, left
from agentwatch.delegation.task import BETWEEN, Task
from agentwatch.delegation.tree import Tree
from agentwatch.text import clean_summary
from agentwatch.view.rows import Query, chain_name
from agentwatch.view.words import duration, in_line, look, name_of

_TALL = 30  # the fewest screen lines for which the strip has a border above it, and may have several lines
_LINES = 6  # the most lines of the strip, and at most a tenth of the screen, or a sixth if the tree leaves them free
_LONGEST_NAME = 36  # the most cells of a name, which also takes at most a quarter of the width
_ROOMY = 60  # the fewest cells for which there are words instead of signs, and the number of tasks held up


class NeedsYou(LineWidget):
    """The strip of one tree, hidden while no task asks. `clock` gives epoch seconds."""

    ages: var[tuple[object, ...]] = var((), init=False)  # all in the strip that time alone changes

    DEFAULT_CSS = """
    NeedsYou { display: none; }
    NeedsYou.-asks { display: block; }
    NeedsYou.-tall { border-top: solid $line; }
    """

    def __init__(self, tree: Tree, clock: Callable[[], float]):
        super().__init__()
        self._tree = tree
        self._clock = clock
        self._sought = Query()
        self._spare = 0
        self.shown: list[str] = []  # the task id of each line
        self.cursor_id: str | None = None

    def seek(self, sought: Query) -> None:
        """Apply a filter: show only the asking tasks that it matches, and how many others there are."""
        self._sought = sought
        self.fit(self._spare)

    def _asking(self) -> list[str]:
        """Return the ids of the asking tasks that the filter matches."""
        now = self._clock()
        return [one for one in self._tree.queue if self._sought.matches(self._tree.tasks[one], now)]

    def fit(self, spare: int) -> None:
        """Show the asking tasks in as many lines as there is room for; `spare` is the number of free lines."""
        height, self._spare = self.screen.size.height, spare
        tall, asks = height >= _TALL, bool(self._tree.queue)
        self.set_class(asks, "-asks")
        self.set_class(tall, "-tall")
        room = max(height // 10 if tall else 1, min(spare - tall, height // 6), 1)
        lines = min(max(len(self._asking()), 1), _LINES, room) + tall
        self.styles.height = lines
        # Notifications must cover neither the strip nor the footer.
        self.screen.query("ToastRack").set_styles(margin=(0, 0, 1 + lines * asks, 0))
        self.redraw()

    def tick(self) -> None:
        """Update what time alone changes."""
        now = self._clock()
        tasks = filter(None, map(self._tree.tasks.get, self.shown))
        self.ages = *self._asking(), *(_waiting(task, now) for task in tasks)

    def watch_ages(self) -> None:
        self.redraw()

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        is_roomy, asking, now = width >= _ROOMY, self._asking(), self._clock()
        self.shown = asking[: max(self.size.height, 1)]
        selected = self.cursor_id
        if selected in asking and selected not in self.shown:
            # Replace the last shown task by the selected one, unless it is the only line and has a time limit.
            is_alone = len(self.shown) == 1
            self.shown[-1] = asking[0] if is_alone and _runs_out(self._tree.tasks[asking[0]]) else selected
        tasks = [self._tree.tasks[one] for one in self.shown]
        tail = f"  +{more:,}{' more' * is_roomy}" if (more := len(asking) - len(tasks)) else ""
        if outside := len(self._tree.queue) - len(asking):
            tail += f"  {outside:,} outside{' the filter' * is_roomy}"
        begin, start = [Part(" "), Part("Needs you" if is_roomy else "‼", palette.needs)], 11 if is_roomy else 6
        names = self._names(tasks, max(min(width // 4, _LONGEST_NAME), 12))
        holds = [f" holds {task.open_below:,}" if task.open_below and is_roomy else "" for task in tasks]
        times = [_waiting(task, now) for task in tasks]
        naming, holding, waiting = (max(map(cell_len, some), default=0) for some in (names, holds, times))
        room = max(width - start - naming - holding - waiting - cell_len(tail) - 8, 0)
        lines: list[Parts] = []
        for task, name, hold, time in zip(tasks, names, holds, times, strict=True):
            face, is_selected = look(task), task.task_id == selected
            ask = "  " + left(clip_sentence(in_line(task, task.ask or ""), room), room)
            line = [
                *apart(begin, [], start),
                # A mark as in the tree, because not every terminal shows the colour.
                Part("▌" if is_selected else " ", palette.accent),
                Part(face.glyph + " ", palette.states[face.color]),
                Part(left(name, naming), palette.strong),
                Part(ask, palette.accent) if is_selected else Part(ask),
                Part(f" {hold:>{holding}} ", palette.muted),
                Part(f"{time:>{waiting}} ", palette.needs if _runs_out(task) else palette.muted),
            ]
            lines.append([part._replace(action=f"screen.pick({len(lines)})") for part in line])
            begin = []
        lines = lines or [begin]
        lines[-1].append(Part(tail, palette.muted))
        return lines

    def _names(self, tasks: Sequence[Task], width: int) -> list[str]:
        """Return the names of tasks in at most `width` cells, after the host of another machine or, if there are
        several, the workspace."""
        names: list[str] = []
        for task in tasks:
            chain, above = chain_name(self._tree.tasks, task), self._tree.ancestors(task.task_id)
            title = f"{clean_summary(chain)} · {name_of(task)}" if chain else name_of(task)
            place = clean_summary(task.host) or (name_of(self._tree.tasks[above[-1]]) if above and task.scope else "")
            if place:
                place = clip_name(place, max(width - len(BETWEEN) - cell_len(title), width // 3)) + BETWEEN
            names.append(place + clip_name(title, width - cell_len(place)))
        return names


def _runs_out(task: Task) -> float | None:
    """Return until when a task's request can be answered here; None if there is no limit or no such request."""
    return task.request.until if task.request and task.request.can_answer else None


def _waiting(task: Task, now: float) -> str:
    """Return for how long a task has asked or, if its request has a time limit, how much time is left."""
    if (until := _runs_out(task)) is not None:
        return f"{duration(max(until - now, 0.0))} left"
    return "" if task.since is None else duration(now - task.since)
