"""The strip "Needs you": lines with the tasks that wait for the operator, the most important first."""

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from textual.reactive import var

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import LineWidget, Part, Parts, align_left, clip_name, clip_sentence, join_ends
from agentwatch.delegation.task import BETWEEN, Task
from agentwatch.delegation.tree import Tree
from agentwatch.text import clean_summary
from agentwatch.view.rows import Query, chain_name
from agentwatch.view.words import ask_line, look_of, name_of, short_span

_TALL_SCREEN = 30  # lines: on a screen of this height or more, the strip has a border and may have several lines
_LINES = 6  # the most lines of the strip
_LONGEST_NAME = 36  # the most cells of a name
_ROOMY = 60  # cells: from this width on, words replace symbols


class NeedsYou(LineWidget):
    """The strip. It is hidden while no task needs the operator. `clock` gives epoch seconds."""

    ages: var[tuple[object, ...]] = var((), init=False)  # all words in the strip that depend on the time

    DEFAULT_CSS = """
    NeedsYou { display: none; }
    NeedsYou.-asks { display: block; }
    NeedsYou.-tall { border-top: solid $line; }
    """

    def __init__(self, tree: Tree, clock: Callable[[], float]):
        super().__init__()
        self._tree = tree
        self._clock = clock
        self._filter = Query()
        self._spare = 0
        self.shown: list[str] = []  # the task id of each line
        self.cursor_id: str | None = None

    def set_filter(self, query: Query) -> None:
        """Show the tasks that match the filter. Of the tasks that do not match, show only the number."""
        self._filter = query
        self.fit_lines(self._spare)

    def _matching_ids(self) -> list[str]:
        """Return the ids of the tasks that need the operator and match the filter."""
        now = self._clock()
        return [one for one in self._tree.queue if self._filter.matches(self._tree.tasks[one], now)]

    def fit_lines(self, spare: int) -> None:
        """Set the number of lines of the strip. `spare` is the number of screen lines that the tree leaves free."""
        height, self._spare = self.screen.size.height, spare
        tall, asks = height >= _TALL_SCREEN, bool(self._tree.queue)
        self.set_class(asks, "-asks")
        self.set_class(tall, "-tall")
        room = max(height // 10 if tall else 1, min(spare - tall, height // 6), 1)
        lines = min(max(len(self._matching_ids()), 1), _LINES, room) + tall
        self.styles.height = lines
        # Notifications must cover neither the strip nor the footer.
        self.screen.query("ToastRack").set_styles(margin=(0, 0, 1 + lines * asks, 0))
        self.redraw()

    def tick(self) -> None:
        """Update all that depends on the time."""
        now = self._clock()
        tasks = filter(None, map(self._tree.tasks.get, self.shown))
        self.ages = *self._matching_ids(), *(_waiting_words(task, now) for task in tasks)

    def watch_ages(self) -> None:
        self.redraw()

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        is_roomy, asking, now = width >= _ROOMY, self._matching_ids(), self._clock()
        self.shown = asking[: max(self.size.height, 1)]
        selected = self.cursor_id
        if selected in asking and selected not in self.shown:
            # Show the selected task in the last line. But in a strip of one line, a time limit stays in sight.
            is_alone = len(self.shown) == 1
            self.shown[-1] = asking[0] if is_alone and _deadline(self._tree.tasks[asking[0]]) else selected
        tasks = [self._tree.tasks[one] for one in self.shown]
        tail = f"  +{more:,}{' more' * is_roomy}" if (more := len(asking) - len(tasks)) else ""
        if outside := len(self._tree.queue) - len(asking):
            tail += f"  {outside:,} outside{' the filter' * is_roomy}"
        label, indent = [Part(" "), Part("Needs you" if is_roomy else "‼", palette.needs_you)], 11 if is_roomy else 6
        names = self._names_with_workspace(tasks, max(min(width // 4, _LONGEST_NAME), 12))
        holds = [f" holds {task.open_below:,}" if task.open_below and is_roomy else "" for task in tasks]
        times = [_waiting_words(task, now) for task in tasks]
        name_width, hold_width, time_width = (max(map(cell_len, some), default=0) for some in (names, holds, times))
        room = max(width - indent - name_width - hold_width - time_width - cell_len(tail) - 8, 0)
        lines: list[Parts] = []
        for task, name, hold, time in zip(tasks, names, holds, times, strict=True):
            face, is_selected = look_of(task), task.task_id == selected
            ask = "  " + align_left(clip_sentence(ask_line(task, task.ask or ""), room), room)
            line = [
                *join_ends(label, [], indent),
                # Use the cursor mark of the tree, because not every terminal shows the colour.
                Part("▌" if is_selected else " ", palette.accent),
                Part(face.glyph + " ", palette.states[face.color]),
                Part(align_left(name, name_width), palette.strong),
                Part(ask, palette.accent) if is_selected else Part(ask),
                Part(f" {hold:>{hold_width}} ", palette.muted),
                Part(f"{time:>{time_width}} ", palette.needs_you if _deadline(task) else palette.muted),
            ]
            lines.append([part._replace(action=f"screen.pick({len(lines)})") for part in line])
            label = []
        lines = lines or [label]
        lines[-1].append(Part(tail, palette.muted))
        return lines

    def _names_with_workspace(self, tasks: Sequence[Task], width: int) -> list[str]:
        names: list[str] = []
        for task in tasks:
            chain, above = chain_name(self._tree.tasks, task), self._tree.ancestors(task.task_id)
            title = f"{clean_summary(chain)} · {name_of(task)}" if chain else name_of(task)
            place = clean_summary(task.host) or (name_of(self._tree.tasks[above[-1]]) if above and task.scope else "")
            if place:
                place = clip_name(place, max(width - len(BETWEEN) - cell_len(title), width // 3)) + BETWEEN
            names.append(place + clip_name(title, width - cell_len(place)))
        return names


def _deadline(task: Task) -> float | None:
    """Return the time until which a task's request can be answered. Return None if there is no time limit."""
    return task.request.until if task.request and task.request.is_answerable else None


def _waiting_words(task: Task, now: float) -> str:
    """Return how much time is left to answer. Without a time limit, return how long the task has waited."""
    if (until := _deadline(task)) is not None:
        return f"{short_span(max(until - now, 0.0))} left"
    return "" if task.since is None else short_span(now - task.since)
