"""One row of the tree as segments: indent, fold arrow, glyph, title and the columns that the width has room for."""

from __future__ import annotations

from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from agentwatch.app.decision_words import UNHEARD, Short, short
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cells import clip, clip_name, left, right, shown, summary
from agentwatch.app.widgets.line import Part, Parts, width_of
from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.task import Below, State, Task
from agentwatch.view.looks import LOOKS, false_claims, look, worst_look
from agentwatch.view.times import duration, took_last, waits_since
from agentwatch.view.words import is_on_its_way

_NEEDS: Final = "NEEDS YOU"
_STEP: Final = 2
"""Cells of indent a level."""
_TITLE: Final = 10
"""Cells that a title keeps however deep it stands, where the width allows."""
_BAR: Final = 6
"""Cells of the bar of done todos: a thin one, so that it does not outshine what needs the operator."""


class Columns(NamedTuple):
    """Cells of each column; 0 if the width has no room for it. The title takes what is left."""

    width: int
    note: int
    state: int
    agent: int
    elapsed: int

    @classmethod
    def of(cls, width: int) -> Columns:
        """The columns of a tree that is `width` cells wide."""
        if width < 49:
            return cls(width, note=9, state=0 if width < 46 else 9, agent=0, elapsed=0)
        if width < 58:
            # Beside the details on a terminal of 100 columns: whose state it is, and where it stands, before its age.
            return cls(width, note=9, state=9, agent=min(width - 44, 8), elapsed=0)
        if width < 67:
            return cls(width, note=9, state=9, agent=8, elapsed=4)
        if width < 76:
            # The tree beside the details on a terminal of 140 columns: the word before the whole name of the agent.
            return cls(width, note=13, state=12, agent=10, elapsed=4)
        if width < 110:
            return cls(width, note=13, state=12, agent=13, elapsed=4)
        return cls(width, note=14, state=12, agent=20, elapsed=4)

    @property
    def levels(self) -> int:
        """Levels that are indented; deeper ones say their depth instead."""
        return max(min(self.width // 6, (self.room - _TITLE) // _STEP), 2)

    @property
    def room(self) -> int:
        """Cells for indent and title: what cursor, arrow, glyph and the other columns leave."""
        columns = (self.note, self.state, self.agent, self.elapsed)
        return self.width - 5 - sum(column + 1 for column in columns if column)

    def indent(self, depth: int) -> int:
        """Cells in front of the fold arrow, the cursor's mark included."""
        return 1 + _STEP * min(depth, self.levels)


class Pose(NamedTuple):
    """How a row stands in the tree, and what of it changes with the clock: all that decides its line besides the task.

    `folded` is None for a row without rows below. `guide` is the level whose guide is lit, -1 for none.
    """

    depth: int
    folded: bool | None
    guide: int
    selected: bool
    focused: bool
    marked: bool
    elapsed: str
    waiting: str
    decided: Short | None


def pose(
    task: Task, depth: int, now: float, *, folded: bool | None, guide: int, selected: bool, focused: bool, marked: bool
) -> Pose:
    """The pose of a task's row at `now` (seconds since the epoch)."""
    decision = task.decision
    decided = short(decision, now) if decision is not None and is_on_its_way(decision) else None
    since = waits_since(task) if task.needs_operator or task.stale else None
    waiting = "" if since is None else duration(now - since)
    lasted = took_last(task, now)
    elapsed = duration(lasted.seconds if lasted is not None else None)
    return Pose(depth, folded, guide, selected, selected and focused, marked, elapsed, waiting, decided)


def is_quiet(task: Task) -> bool:
    """Finished work that asks for nothing recedes; not where nobody can tell whether it is done."""
    has_ended = task.state in (State.COMPLETED, State.CANCELED)
    return has_ended and not (task.needs_operator or task.contradicted or task.answers_in_prose)


def task_line(task: Task, stand: Pose, columns: Columns, palette: Palette) -> Strip:
    """The line of a task, exactly `columns.width` cells wide."""
    face = look(task)
    color = palette.states[face.color]
    quiet = is_quiet(task)
    title_style = palette.muted if quiet else Style.null()
    if task.needs_operator:
        title_style = palette.strong
    elif task.inferred:
        title_style += Style(italic=True)
    mark = Part("▌", palette.accent if stand.focused else palette.muted) if stand.selected else Part(" ")
    parts = [
        Part("◆", palette.accent) if stand.marked else mark,
        *_guides(stand, columns, palette),
        Part("  " if stand.folded is None else "▸ " if stand.folded else "▾ ", palette.muted),
        Part(face.glyph + " ", color),
    ]
    urgent = _urgent(task, stand, columns.note, palette) if columns.note else []
    note = urgent or (_progress(task, stand, columns.note, palette) if columns.note else [])
    # What the note does not need, the title gets.
    spare = columns.note - width_of(note) + (not note and columns.note > 0)
    # Where the note says what is urgent, the tally of a folded task stands beside its title.
    below = task.below if stand.folded and urgent else None
    parts += _title(task, columns.room + 1 - columns.indent(stand.depth) + spare, title_style, palette, below)
    if note:
        parts += [Part(" "), *note]
    if columns.state:
        parts.append(Part(" " + left(face.word, columns.state), palette.muted if quiet else color))
    if columns.agent:
        # Many a task has only its agent's name as a title: once is enough.
        agent = shown(task.agent, 60) if task.agent and task.agent != task.title else ""
        parts.append(Part(" " + left(agent, columns.agent), palette.muted))
    if columns.elapsed:
        style = Style.null() if task.state.is_open and task.started_at is not None else palette.muted
        parts.append(Part(" " + right(stand.elapsed, columns.elapsed), style))
    base = palette.base + palette.cursor if stand.selected else palette.base
    if stand.selected and palette.ansi:
        # Reversed colours differ from part to part: the whole row in the terminal's own two.
        parts = [part._replace(style=Style(bold=part.style.bold)) for part in parts]
    return Strip([Segment(part.text, base + part.style) for part in parts]).adjust_cell_length(columns.width, base)


def _guides(stand: Pose, columns: Columns, palette: Palette) -> Parts:
    if stand.depth > columns.levels:
        return [Part(left(f"›{stand.depth}", _STEP * columns.levels), palette.muted)]
    if not 0 <= stand.guide < stand.depth:
        return [Part("│ " * stand.depth, palette.line)]
    before, behind = "│ " * stand.guide, "│ " * (stand.depth - stand.guide - 1)
    return [Part(before, palette.line), Part("│ ", palette.muted), Part(behind, palette.line)]


def _title(task: Task, room: int, style: Style, palette: Palette, below: Below | None) -> Parts:
    """The title with the attempts behind it, and at the end of its column the tally of `below`, where it fits."""
    name = summary(task.title)
    most = max(1 + task.retry.max_retries, task.attempt)
    marks = (f" ↻{task.attempt}/{most}", f" ↻{task.attempt}") if task.attempt > 1 else ()
    attempts = next((mark for mark in marks if min(cell_len(name), 12) + len(mark) <= room), "")
    title = clip_name(name, max(room - len(attempts), 1))
    rest = room - cell_len(title)
    # A blank before it and one behind it: the urgent words beside it stand out.
    tally = _tally(below, rest - len(attempts) - 2, palette.muted, palette) if below else []
    tally += [Part(" ")] if tally else []
    return [Part(title, style), Part(left(attempts, rest - width_of(tally)), palette.muted), *tally]


def _tally(below: Below, width: int, style: Style, palette: Palette) -> Parts:
    """How many tasks below have ended, are verified, are contradicted; in a narrow place, what matters most of it."""
    count = Part(f"{below.ended:,}/{below.tasks:,}", style)
    verified, false = below.verdicts.get(Verdict.VERIFIED, 0), below.verdicts.get(Verdict.CONTRADICTED, 0)
    known = [Part(f" ✓{verified:,}", style)] if verified else []
    lies = [Part(f" ⚑{false:,}", palette.states["state-contradicted"])] if false else []
    ways = ([count, *known, *lies], [count, *lies], lies or [count])
    return next((parts for parts in ways if width_of(parts) <= width), [])


def _urgent(task: Task, stand: Pose, width: int, palette: Palette) -> Parts:
    """What the operator has to know first. It fills the column beside the title."""
    if task.needs_operator:
        time = stand.waiting if len(_NEEDS) + 1 + len(stand.waiting) <= width else ""
        return [Part(_NEEDS, palette.needs), Part(right(time, width - len(_NEEDS)), palette.accent)]
    if stand.decided:
        glyph, words = stand.decided
        style = palette.states["state-stale"] if glyph == UNHEARD else palette.muted
        whole = f"{glyph} {words}"
        return [Part(left(whole if len(whole) <= width else words, width), style)]
    if task.contradicted:
        return [Part(left(f"⚑ {len(false_claims(task))} false", width), palette.states["state-contradicted"])]
    below = task.below
    if stand.folded and below is not None and (worst := worst_look(below)) is not None:
        words = f"{worst.glyph} {below.needs_operator:,}"
        if width >= 12:
            words += " need you" if below.needs_operator > 1 else " needs you"
        words = clip(words, width)
        return [Part(words, palette.needs), Part(" " * (width - cell_len(words)))]
    if task.answers_in_prose:
        return [Part(left("no return", width), palette.states["state-stale"])]
    if task.stale:
        words = f"silent {stand.waiting}"
        return [Part(left(words if len(words) <= width else "silent", width), palette.muted)]
    return []


def _progress(task: Task, stand: Pose, width: int, palette: Palette) -> Parts:
    """How far the work is. A count alone is as wide as it is, so that it ends where the others end."""
    below = task.below
    if task.state.is_open and task.progress is not None and not task.children:
        done, total = task.progress
        count = f"{done}/{total}"
        if width <= _BAR + len(count):
            return [Part(clip(count, width))]
        filled = round(_BAR * done / total) if total else 0
        bar = [Part("━" * filled, palette.states[LOOKS[task.state].color]), Part("─" * (_BAR - filled), palette.muted)]
        return [*bar, Part(right(count, width - _BAR))]
    if below is None or not (stand.folded or task.state.is_open):
        return []
    style = palette.muted if is_quiet(task) else Style.null()
    tally = _tally(below, width, style, palette) if stand.folded else []
    return tally or [Part(clip(f"{below.ended:,}/{below.tasks:,}", width), style)]
