"""The strip "Needs you": the tasks that wait for the operator, most important first."""

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from textual.reactive import var

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import LineWidget, Part, Parts, apart, clip_name, clip_sentence, left
from agentwatch.delegation.task import BETWEEN, Task
from agentwatch.delegation.tree import Tree
from agentwatch.text import summary
from agentwatch.view.rows import Query, chain_name
from agentwatch.view.words import duration, in_line, look, name_of

_TALL = 30  # Lines of screen from which the strip may take more than one, and has a line of its own above it
_LINES = 6  # Lines that it takes at most: one of ten of the screen's, or, of those that nobody else needs, one of six
_LONGEST_NAME = 36  # Cells of a name at most, and no more than a quarter of the screen's
_ROOMY = 60  # From this width on there are words in place of signs, and the line says what waits for a task


class NeedsYou(LineWidget):
    """The strip of one tree; gone while nobody asks. `clock` gives seconds since the epoch."""

    ages: var[tuple[object, ...]] = var((), init=False)  # All that time alone changes in it

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
        self.shown: list[str] = []  # The id of the task in each line
        self.cursor_id: str | None = None

    def seek(self, sought: Query) -> None:
        """A filter is on: show those whom it shows, and how many are outside of it."""
        self._sought = sought
        self.fit(self._spare)

    def _asking(self) -> list[str]:
        """The ids of those who ask and whom the filter shows."""
        now = self._clock()
        return [one for one in self._tree.queue if self._sought.matches(self._tree.tasks[one], now)]

    def fit(self, spare: int) -> None:
        """Show who asks now, in as many lines as the screen has room for; `spare` are those that nobody else needs."""
        height, self._spare = self.screen.size.height, spare
        tall, asks = height >= _TALL, bool(self._tree.queue)
        self.set_class(asks, "-asks")
        self.set_class(tall, "-tall")
        room = max(height // 10 if tall else 1, min(spare - tall, height // 6), 1)
        lines = min(max(len(self._asking()), 1), _LINES, room) + tall
        self.styles.height = lines
        # They cover neither the strip nor the footer.
        self.screen.query("ToastRack").set_styles(margin=(0, 0, 1 + lines * asks, 0))
        self.redraw()

    def tick(self) -> None:
        """Time has passed."""
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
            # The last of the most important ones gives way to the selected one, but for one alone that runs out.
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
                # As in the tree: colour alone would not say it everywhere.
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
        """The names of these tasks in so many cells: those on other machines with their host, of several workspaces
        with theirs."""
        names: list[str] = []
        for task in tasks:
            chain, above = chain_name(self._tree.tasks, task), self._tree.ancestors(task.task_id)
            title = f"{summary(chain)} · {name_of(task)}" if chain else name_of(task)
            place = summary(task.host) or (name_of(self._tree.tasks[above[-1]]) if above and task.scope else "")
            if place:
                place = clip_name(place, max(width - len(BETWEEN) - cell_len(title), width // 3)) + BETWEEN
            names.append(place + clip_name(title, width - cell_len(place)))
        return names


def _runs_out(task: Task) -> float | None:
    """Until when its request can be answered here, None where that does not end, or it cannot."""
    return task.request.until if task.request and task.request.can_answer else None


def _waiting(task: Task, now: float) -> str:
    """Since when it asks; where that runs out, how long it can still be answered."""
    if (until := _runs_out(task)) is not None:
        return f"{duration(max(until - now, 0.0))} left"
    return "" if task.since is None else duration(now - task.since)
