"""One row of the tree as segments: indent, fold arrow, glyph, title, what is done in it, and the columns there is room
for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.style import Style
from textual.strip import Strip

from agentwatch.app.decision_words import UNHEARD, Short, short
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cells import clip, clip_name, clip_sentence, left, right, summary
from agentwatch.app.widgets.line import Part, Parts, cursor_mark, strip_of, width_of
from agentwatch.app.widgets.row_words import agent_of, doing_of, who_of
from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.task import Below, State, Task
from agentwatch.view.looks import LOOKS, look, worst_look
from agentwatch.view.times import duration, stands_since
from agentwatch.view.words import is_on_its_way, name_of

_NEEDS: Final = "NEEDS YOU"
_STEP: Final = 2
"""Cells of indent a level."""
_TITLE: Final = 10
"""Cells that a title keeps however deep it stands, where the width allows."""
_BAR: Final = 6
"""Cells of the bar of done todos: a thin one, so that it does not outshine what needs the operator."""
_ROOMY_NOTE: Final = 13
"""Cells of the column beside the title from which there is a bar also where the room is wanted for what is done."""
_NAME_SHARE: Final = 0.5
"""Of the room for title and what is done, the part in which the title stands where something is done."""
_PULSE: Final = 28
"""Cells of that room from which a title gives way to what is done."""
_LEAST: Final = 5
"""Cells behind a title in which something can be said."""
_ENOUGH: Final = 25
"""Cells in which the name of a program leaves enough to what is done in it."""
_UNSEEN: Final = "•"
_WORD_ENDS: Final = r"[\s_\-./:]+"


class Columns(NamedTuple):
    """Cells of each column; 0 if the width has no room for it. Title, and what is done, take what is left.

    What is left out first is the agent, which then stands behind the title where nothing else does, then the age.
    """

    width: int
    note: int
    state: int
    agent: int
    age: int

    @classmethod
    def of(cls, width: int) -> Columns:
        """The columns of a tree that is `width` cells wide."""
        if width < 64:
            return cls(width, note=9, state=0 if width < 46 else 9, agent=0, age=0)
        if width < 100:
            return cls(width, note=10, state=9, agent=0, age=4)
        return cls(width, note=13, state=12, agent=14 if width < 130 else 20, age=4)

    @property
    def levels(self) -> int:
        """Levels that are indented; deeper ones say their depth instead."""
        return max(min(self.width // 6, (self.room - _TITLE) // _STEP), 2)

    @property
    def room(self) -> int:
        """Cells for indent, title and what is done: what cursor, arrow, glyph and the other columns leave."""
        columns = (self.note, self.state, self.agent, self.age)
        return self.width - 5 - sum(column + 1 for column in columns if column)

    @property
    def tells(self) -> bool:
        """Whether titles give way to what is done."""
        return self.state > 0 and self.room >= _PULSE

    def indent(self, depth: int) -> int:
        """Cells in front of the fold arrow, the cursor's mark included."""
        return 1 + _STEP * min(depth, self.levels)


class Pose(NamedTuple):
    """How a row stands in the tree, and what of it changes with the clock: all that decides its line besides the task.

    `folded` is None for a row without rows below. `guide` is the level whose guide is lit, -1 for none. `shared` is
    how many characters of its title those of its neighbours begin with, too. `chain` is the title of the first of
    those above that the row stands for as well, or what tells its title from the same one of a neighbour, "" where the
    title is enough; it is foreign.
    """

    depth: int
    folded: bool | None
    guide: int = -1
    selected: bool = False
    focused: bool = False
    marked: bool = False
    age: str = ""
    decided: Short | None = None
    shared: int = 0
    chain: str = ""


def age_of(task: Task, now: float) -> str:
    """Since when it is as its row says, at `now` (seconds since the epoch)."""
    since = stands_since(task)
    return duration(None if since is None else now - since)


def decided_of(task: Task, now: float) -> Short | None:
    """How far what was decided about a task is on its way at `now`, None where it has arrived, or nothing was."""
    decision = task.decision
    return short(decision, now) if decision is not None and is_on_its_way(decision) else None


def is_quiet(task: Task) -> bool:
    """Finished work that asks for nothing recedes, not where nobody can tell whether it is done; and so does what is
    past, was acknowledged, or cannot be reached."""
    if task.past or task.acknowledged or task.lost_since is not None:
        return True
    has_ended = task.state in (State.COMPLETED, State.CANCELED)
    return has_ended and not (task.needs_operator or task.contradicted or task.answers_in_prose)


def task_line(task: Task, stand: Pose, columns: Columns, palette: Palette, tasks: Mapping[str, Task]) -> Strip:
    """The line of a task, exactly `columns.width` cells wide. `tasks` are those of its tree."""
    face = look(task)
    color = palette.states[face.color]
    quiet = is_quiet(task)
    first = cursor_mark(palette, selected=stand.selected, focused=stand.focused)
    if stand.marked:
        first = Part("◆", palette.accent)
    elif not stand.selected and not task.seen:
        first = Part(_UNSEEN, palette.accent)
    is_lost = task.lost_since is not None
    parts = [
        first,
        *_guides(stand, columns, palette),
        Part("  " if stand.folded is None else "▸ " if stand.folded else "▾ ", palette.muted),
        Part(face.glyph + " ", palette.muted if is_lost else color),
    ]
    urgent = _urgent(task, stand, columns, palette)
    note = urgent or _progress(task, stand, columns.note, palette)
    # What the note does not need, the title gets.
    spare = columns.note - width_of(note) + (not note and columns.note > 0)
    # Where the note says what is urgent, the tally of a folded task stands beside its title.
    below = task.below if stand.folded and urgent else None
    parts += _middle(task, stand, columns, palette, spare=spare, below=below, tasks=tasks)
    if note:
        parts += [Part(" "), *note]
    if columns.state:
        word = "no tasks" if task.workspace and task.below is None and task.state is not State.UNKNOWN else face.word
        parts.append(Part(" " + left(word, columns.state), palette.muted if quiet else color))
    if columns.agent:
        parts.append(Part(" " + left(agent_of(task), columns.agent), palette.muted))
    if columns.age:
        style = palette.accent if task.needs_operator else Style.null() if task.state.is_open else palette.muted
        style = palette.muted if is_lost else style
        parts.append(Part(" " + right(stand.age, columns.age), style))
    return strip_of(parts, columns.width, palette, selected=stand.selected)


def _guides(stand: Pose, columns: Columns, palette: Palette) -> Parts:
    if stand.depth > columns.levels:
        return [Part(left(f"›{stand.depth}", _STEP * columns.levels), palette.muted)]
    if not 0 <= stand.guide < stand.depth:
        return [Part("│ " * stand.depth, palette.line)]
    before, behind = "│ " * stand.guide, "│ " * (stand.depth - stand.guide - 1)
    return [Part(before, palette.line), Part("│ ", palette.muted), Part(behind, palette.line)]


def _middle(
    task: Task,
    stand: Pose,
    columns: Columns,
    palette: Palette,
    *,
    spare: int,
    below: Below | None,
    tasks: Mapping[str, Task],
) -> Parts:
    """The title with the attempts behind it, then what is done, and at the end the tally of `below`, where it fits."""
    indent = columns.indent(stand.depth) - 1
    room = columns.room - indent + spare
    name = name_of(task)
    if stand.chain:
        # A chain is named by what it is about; who does it comes behind.
        name = f"{summary(stand.chain)} · {name}"
    most = max(1 + task.retry.max_retries, task.attempt)
    marks = (f" ↻{task.attempt}/{most}", f" ↻{task.attempt}") if task.attempt > 1 else ()
    attempts = next((mark for mark in marks if min(cell_len(name), 12) + len(mark) <= room), "")
    start = max(int(columns.room * _NAME_SHARE) - indent, _TITLE)
    doing = doing_of(task, stand.decided, columns, tasks)
    most_of_title = max(room - len(attempts), 1)
    if doing and columns.tells:
        most_of_title = max(start - 1 - len(attempts), 1)
    # What neighbours share is known of titles, not of chains.
    title = _cut_name(name, most_of_title, 0 if stand.chain else stand.shared)
    used = cell_len(title) + len(attempts)
    # A blank before it and one behind it: the urgent words beside it stand out.
    tally = _tally(below, room - used - 2, palette.muted, palette) if below else []
    tally += [Part(" ")] if tally else []
    start = start if used < start else used + 2
    space = room - start - width_of(tally)
    ways = doing or who_of(task, columns, tasks)
    if ways and cell_len(ways[0]) > space:
        # Blanks between the title and what is said behind it are given to that: to a failure's words, if all fit then.
        nearer = max(used + 2, start - (cell_len(ways[0]) - space))
        if doing or space + start - nearer >= cell_len(ways[0]):
            start, space = nearer, space + start - nearer
    words = _fitting(ways, space) if columns.note and space >= _LEAST else ""
    heard = stand.decided is not None and stand.decided.glyph == UNHEARD
    return [
        Part(title, _title_style(task, palette)),
        Part(left(attempts, start - cell_len(title)) if words else attempts, palette.muted),
        Part(words, palette.states["state-stale"] if heard else palette.muted),
        Part(" " * max(room - (start + cell_len(words) if words else used) - width_of(tally), 0)),
        *tally,
    ]


def _title_style(task: Task, palette: Palette) -> Style:
    if task.workspace or (task.needs_operator and task.lost_since is None):
        return palette.strong
    style = palette.muted if is_quiet(task) else Style.null()
    return style + Style(italic=True) if task.inferred else style


def _fitting(ways: Sequence[str], width: int) -> str:
    """The first that fits; else the first of which enough is left, cut."""
    if not ways:
        return ""
    whole = (words for words in ways if cell_len(words) <= width)
    return next(whole, "") or clip_sentence(ways[0] if width >= _ENOUGH else ways[-1], width)


def _cut_name(name: str, width: int, shared: int) -> str:
    """A title in so many cells. What it has in common with its neighbours goes first, by whole words."""
    if shared and cell_len(name) > width:
        starts = [match.end() for match in re.finditer(_WORD_ENDS, name[:shared])]
        for start in starts:
            if cell_len(name) - cell_len(name[:start]) + 1 <= width:
                return "…" + name[start:]
        if starts:
            return clip("…" + name[starts[-1] :], width)
    return clip_name(name, width)


def _tally(below: Below, width: int, style: Style, palette: Palette) -> Parts:
    """How many tasks below are done, are verified, are contradicted; in a narrow place, what matters most of it."""
    count = Part(f"{below.completed:,}/{below.tasks:,}", style)
    verified, false = below.verdicts.get(Verdict.VERIFIED, 0), below.verdicts.get(Verdict.CONTRADICTED, 0)
    known = [Part(f" ✓{verified:,}", style)] if verified else []
    lies = [Part(f" ⚑{false:,}", palette.states["state-contradicted"])] if false else []
    ways = ([count, *known, *lies], [count, *lies], lies or [count])
    return next((parts for parts in ways if width_of(parts) <= width), [])


def _urgent(task: Task, stand: Pose, columns: Columns, palette: Palette) -> Parts:
    """What the operator has to know first. It fills the column beside the title."""
    width = columns.note
    needs = palette.needs if task.lost_since is None else palette.muted
    if task.needs_operator:
        return [Part(left(_NEEDS, width), needs)]
    if stand.decided and not columns.tells:
        glyph, words = stand.decided
        style = palette.states["state-stale"] if glyph == UNHEARD else palette.muted
        whole = f"{glyph} {words}"
        return [Part(left(whole if len(whole) <= width else words, width), style)]
    below = task.below
    if stand.folded and below is not None and (worst := worst_look(below)) is not None:
        count = f"{below.needs_operator:,}"
        words = f"{count} need{'' if below.needs_operator > 1 else 's'} you"
        ways = (f"{worst.glyph} {words}", words, f"{worst.glyph} {count}")
        words = next((way for way in ways if cell_len(way) <= width), clip(ways[-1], width))
        return [Part(left(words, width), needs)]
    if task.answers_in_prose:
        return [Part(left("no return", width), palette.states["state-stale"])]
    return []


def _progress(task: Task, stand: Pose, width: int, palette: Palette) -> Parts:
    """How far the work is. A count alone is as wide as it is, so that it ends where the others end."""
    below, style = task.below, palette.muted if is_quiet(task) else Style.null()
    if task.state.is_open and task.progress is not None and not task.children:
        done, total = task.progress
        count = f"{done}/{total}"
        if width <= _BAR + len(count) or (width < _ROOMY_NOTE and task.doing is not None):
            return [Part(clip(count, width), style)]
        filled = round(_BAR * done / total) if total else 0
        color = style or palette.states[LOOKS[task.state].color]
        bar = [Part("━" * filled, color), Part("─" * (_BAR - filled), palette.muted)]
        return [*bar, Part(right(count, width - _BAR), style)]
    if below is None or not (stand.folded or task.state.is_open):
        return []
    tally = _tally(below, width, style, palette) if stand.folded else []
    return tally or [Part(clip(f"{below.completed:,}/{below.tasks:,}", width), style)]
