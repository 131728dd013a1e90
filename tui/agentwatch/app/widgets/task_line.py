"""A line of the tree: a task with its columns, or the heading of a group."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from rich.cells import cell_len
from rich.style import Style
from textual.strip import Strip

from agentwatch.app.decision_words import short_progress
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import (
    Part,
    Parts,
    align_left,
    align_right,
    clip,
    clip_name,
    clip_sentence,
    make_strip,
    width_of,
)
from agentwatch.delegation.decision import Action
from agentwatch.delegation.events import Verdict
from agentwatch.delegation.task import Shown, State, Task
from agentwatch.text import clean_row, clean_summary
from agentwatch.view.rows import Group, Row, Tally
from agentwatch.view.words import (
    LOOKS,
    ask_line,
    count_waits,
    delay_of,
    doing_words,
    is_pending,
    look_of,
    name_of,
    program_of,
    short_span,
    stage_words,
)

_INDENT = 2  # cells of indent for each level
_TITLE = 10  # the fewest cells of a title at any depth, if the width allows
_BAR = 6  # cells of the bar for todos: narrow, so that tasks that need the operator stand out
_TITLE_SHARE = 0.4  # beside long words on the activity, the title keeps this share of the room for both
_LEAST_WORDS = 5  # cells: with less room behind the title, the activity is not shown


class Columns(NamedTuple):
    """The width of the line and of its columns, in cells. A column without room has width 0.

    Title and activity share the cells that the columns leave.
    """

    width: int
    note: int
    state: int
    agent: int
    age: int

    @classmethod
    def for_width(cls, width: int) -> Columns:
        """Return the columns of a tree with `width` cells. A narrow tree has fewer columns."""
        if width < 120:
            return cls(width, 9 if width < 64 else 10, 0 if width < 46 else 9, agent=0, age=0 if width < 46 else 4)
        return cls(width, note=13, state=12, agent=14 if width < 130 else 20, age=4)

    @property
    def levels(self) -> int:
        """The number of levels that are indented. A deeper row shows its depth as a number."""
        return max(min(self.width // 6, (self.room - _TITLE) // _INDENT), 2)

    @property
    def room(self) -> int:
        """The cells for indent, title and activity together."""
        return self.width - 5 - sum(column + 1 for column in self[1:] if column)

    @property
    def has_activity(self) -> bool:
        """Whether the row is wide enough to show the activity, for which titles may be shortened."""
        return self.state > 0


class TimedWords(NamedTuple):
    """The words in a row that depend on the time.

    `age` is how long the task has been in its state. `decided` is how far its decision has got, or None if no decision
    is on its way. `held_up` is why the task waits.
    """

    age: str = ""
    decided: str | None = None
    held_up: str = ""

    @classmethod
    def of_task(cls, task: Task, tasks: Mapping[str, Task], now: float) -> TimedWords:
        """Return the words for a task at `now` (epoch seconds). `tasks` are all tasks of the tree."""
        decision = task.decision
        decided = short_progress(decision, now) if decision and is_pending(decision) else None
        age = short_span(None if task.since is None else now - task.since)
        return cls(age, decided, delay_of(task, tasks, now))


class RowState(NamedTuple):
    """Everything that the line of a task depends on, apart from the task itself.

    `mark` is the first cell: the cursor, or a mark for a marked or new task. `guide` is the level whose guide line is
    highlighted, -1 for none. `shared` tells how many first characters are equal in the titles of neighbours. `chain` is
    untrusted text to show before the title.
    """

    row: Row
    columns: Columns
    palette: Palette
    mark: Part = Part(" ")
    selected: bool = False
    guide: int = -1
    timed: TimedWords = TimedWords()
    shared: int = 0
    chain: str = ""


# A row and its neighbours


def highlighted_guide(rows: Sequence[Row], at: int) -> tuple[range, int]:
    """Return the rows in which the guide line of the selected row `at` is highlighted, and the level of the line."""
    if not 0 <= at < len(rows) or (depth := rows[at].depth) <= 0:
        return range(0), -1
    outside = [place for place, row in enumerate(rows) if row.depth < depth]
    first = max((place + 1 for place in outside if place < at), default=0)
    return range(first, min((place for place in outside if place > at), default=len(rows))), depth - 1


def count_shared_beginnings(rows: Sequence[Row], tasks: Mapping[str, Task]) -> Counter[str]:
    """Count for each task how many first characters of its title are the same in a neighbouring sibling's title."""
    shared = Counter[str]()
    before: dict[object, Task] = {}
    for row in rows:
        if (task := tasks.get(row.task_id or "")) is not None:
            above = row.above if row.depth else None
            if (sibling := before.get(above)) is not None:
                both = zip(sibling.title[:200], task.title[:200], strict=False)
                common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))
                shared |= Counter({task.task_id: common, sibling.task_id: common})
            before[above] = task
    return shared


# Lines


def heading_line(tally: Tally, now: float, state: RowState) -> Strip:
    """Return the line of a heading, with the longest words that fit."""
    columns, palette, name = state.columns, state.palette, tally.group.name
    parts = [state.mark, _arrow_part(state), Part(name, palette.muted + palette.strong)]
    room = columns.width - 5 - len(name)
    if state.row.folded and (asking := tally.sums.needs_operator):
        words = clip(f"{asking:,} need you" if asking > 1 else "1 needs you", room)
        parts += [Part("  "), Part(words, palette.needs_you)]
        room -= cell_len(words) + 2
    # The groups NOW and TODAY need no counts while they are unfolded, because their rows are in sight.
    if state.row.folded or tally.group not in (Group.NOW, Group.TODAY):
        words = next((way for way in tally.titles(now) if cell_len(way) <= room), "")
        parts.append(Part(f"  {words}", palette.muted))
    return make_strip(parts, columns.width, palette, selected=state.selected)


def task_line(task: Task, state: RowState, tasks: Mapping[str, Task]) -> Strip:
    """Return the line of a task, exactly as wide as the columns. `tasks` are all tasks of the tree."""
    face, columns, palette = look_of(task), state.columns, state.palette
    is_muted, is_lost, color = _is_muted(task), task.lost_since is not None, palette.states[face.color]
    note = list(_note_parts(task, state))
    # The title also gets the cells that the note does not need.
    spare = columns.note - width_of(note) + (not note and columns.note > 0)
    parts = [
        state.mark,
        *_guide_parts(state),
        _arrow_part(state),
        Part(face.glyph + " ", palette.muted if is_lost or task.past else color),
        *_title_and_words(task, state, tasks, spare),
        *([Part(" "), *note] if note else []),
    ]
    is_empty = task.workspace and task.below is None and task.state is not State.UNKNOWN
    age_style = palette.accent if task.needs_operator else Style.null() if task.state.is_open else palette.muted
    cells = (
        (columns.state, "no tasks" if is_empty else face.word, palette.muted if is_muted else color),
        (columns.agent, _agent_words(task), palette.muted),
        (columns.age, align_right(state.timed.age, columns.age), palette.muted if is_lost else age_style),
    )
    parts += [Part(" " + align_left(text, width), style) for width, text, style in cells if width]
    return make_strip(parts, columns.width, palette, selected=state.selected)


def _arrow_part(state: RowState) -> Part:
    folded = state.row.folded
    return Part("  " if folded is None else "▸ " if folded else "▾ ", state.palette.muted)


def _guide_parts(state: RowState) -> Parts:
    depth, guide, palette = state.row.depth, state.guide, state.palette
    if depth > state.columns.levels:
        return [Part(align_left(f"›{depth}", _INDENT * state.columns.levels), palette.muted)]
    return [Part("│ ", palette.muted if level == guide else palette.line) for level in range(depth)]


def _is_muted(task: Task) -> bool:
    """Return whether a task is drawn muted, because it is old, acknowledged, unreachable, or done."""
    if task.past or task.acknowledged or task.lost_since is not None:
        return True
    has_ended = task.shown in (Shown.COMPLETED, Shown.CANCELED)
    return has_ended and not (task.needs_operator or task.answers_in_prose)


def _title_and_words(task: Task, state: RowState, tasks: Mapping[str, Task], spare: int) -> Parts:
    """Return title, number of attempts, and words on the activity. The words begin in the middle if they fit there."""
    columns, palette = state.columns, state.palette
    indent = _INDENT * min(state.row.depth, columns.levels)
    room = columns.room - indent + spare
    # If tasks share a row, the title of the first task comes before this task's name.
    name = f"{clean_summary(state.chain)} · {name_of(task)}" if state.chain else name_of(task)
    attempts = f" ↻{task.attempt}" if task.attempt > 1 else ""
    words = _activity_words(task, state, tasks) or _reason_words(task, tasks)
    start = max(columns.room // 2 - indent, _TITLE)
    title_room = (
        max(int(room * _TITLE_SHARE), room - cell_len(words) - 2, _TITLE) if words and columns.has_activity else room
    )
    # `shared` counts characters of the title, so it does not apply if another title comes first.
    title = _shorten_title(name, max(title_room - len(attempts), 1), 0 if state.chain else state.shared)
    used = cell_len(title) + len(attempts)
    nearest = used + 2 - (used + 1 == start)
    # Add the name of the program or agent if the whole name fits.
    program = clean_row(program_of(task.run.source), 12) if task.is_session and task.run else ""
    whole = _join_words(program, words) or ("" if columns.agent else _agent_words(task))
    if nearest + cell_len(whole) <= room:
        words = whole
    # Words that are too long for the right half begin further left, at most up to the title.
    start = max(min(start, room - cell_len(words)), nearest)
    words = clip_sentence(words, room - start) if columns.note and room - start >= _LEAST_WORDS else ""
    style = palette.muted if _is_muted(task) else Style.null()
    if task.workspace or (task.needs_operator and task.lost_since is None):
        style = palette.strong
    elif task.inferred:
        style += Style(italic=True)
    between = align_left(attempts, start - cell_len(title)) if words else attempts
    parts = [Part(title, style), Part(between, palette.muted), Part(words, palette.muted)]
    return [*parts, Part(" " * (room - width_of(parts)))]


def _shorten_title(name: str, width: int, shared: int) -> str:
    """Cut a title to `width` cells. First drop its first words, if neighbours begin with them, too."""
    starts = [match.end() for match in re.finditer(r"[\s_\-./:]+", name[:shared])]
    if starts and cell_len(name) > width:
        start = next((one for one in starts if cell_len(name[one:]) < width), starts[-1])
        return clip("…" + name[start:], width)
    return clip_name(name, width)


# Words


def _join_words(*words: str) -> str:
    return " · ".join(filter(None, words))


def _activity_words(task: Task, state: RowState, tasks: Mapping[str, Task]) -> str:
    """Return words on a task: on a decision that is on its way, or on its question, or on its activity."""
    if state.timed.decided and task.decision and state.columns.has_activity:
        action = "answer" if task.decision.action is Action.RESPOND else task.decision.action
        return f"{action} {state.timed.decided}"
    if task.ask and task.shown is Shown.BLOCKED:
        return ask_line(task, task.ask)
    if (request := task.request) is not None and not request.waits_for_operator:
        # The words for an answered request do not depend on the time, so any time will do.
        return stage_words(request, request.asked_at)
    words = "" if task.last_doing is None else clean_row(doing_words(task.last_doing))
    last = words and f"last: {words}"
    if task.state is State.UNKNOWN:
        return clean_row(task.why) if task.workspace else _join_words(f"was {task.known_state}", last)
    if task.shown in (Shown.SILENT, Shown.GONE):
        return _join_words("" if state.columns.state else LOOKS[task.shown].word, last)
    return state.timed.held_up or ("" if count_waits(task, tasks) else words)


def _reason_words(task: Task, tasks: Mapping[str, Task]) -> str:
    """Return words on how many tasks a task waits for, or on why it failed."""
    result = task.result
    if waiting := count_waits(task, tasks):
        return f"waits for {waiting:,}"
    if task.state is State.FAILED and (code := result.error_code if result else task.run.reason if task.run else ""):
        return clean_summary((result.summary if result else "") or code)
    return ""


def _agent_words(task: Task) -> str:
    # Do not repeat the agent's name if it is the title.
    return clean_row(task.agent, 60) if task.agent and task.agent != task.title else ""


# The note behind the title


def _note_parts(task: Task, state: RowState) -> Iterator[Part]:
    """Yield the most important note for the operator. If there is no note, yield the progress of the task."""
    width, palette, below = state.columns.note, state.palette, task.below
    needs = palette.needs_you if task.lost_since is None else palette.muted
    if task.needs_operator:
        yield Part(align_left("NEEDS YOU", width), needs)
    elif state.timed.decided and not state.columns.has_activity:
        yield Part(align_left(state.timed.decided, width), palette.muted)
    elif task.snoozed:
        yield Part(align_left("snoozed", width), palette.muted)
    elif state.row.folded and below and below.worst:
        count = f"{below.needs_operator:,}"
        words = f"{count} need{'' if below.needs_operator > 1 else 's'} you"
        glyph = below.worst.shown.glyph
        whole = next((way for way in (f"{glyph} {words}", words) if len(way) <= width), f"{glyph} {count}")
        yield Part(align_left(whole, width), needs)
    elif task.answers_in_prose or task.handoff_fault:
        words = "no return" if task.answers_in_prose else "‼ handoff"
        yield Part(align_left(words, width), palette.states["state-stale"])
    elif width:
        yield from _progress_parts(task, state, width)


def _progress_parts(task: Task, state: RowState, width: int) -> Iterator[Part]:
    """Yield the progress of a task: a bar and `4/6` for its todos, or `2 of 5` for the tasks below."""
    below, palette = task.below, state.palette
    style = palette.muted if _is_muted(task) else Style.null()
    if task.state.is_open and task.progress is not None and not task.children:
        done, total = task.progress
        # A narrow column has a shorter bar.
        bar = _BAR if width > 2 * _BAR else _BAR // 2
        words = clip(f"{done}/{total}", width - bar - 1)
        filled = round(bar * done / total) if total else 0
        yield Part("━" * filled, style or palette.states[LOOKS[task.shown].color])
        yield Part("─" * (bar - filled), palette.muted)
        yield Part(" " + (align_right(words, width - bar - 1) if bar == _BAR else words), style)
    elif below and (state.row.folded or task.state.is_open):
        # If there is room, a folded task also shows how many tasks below are verified and contradicted.
        done, total = below.shown[Shown.COMPLETED], below.tasks
        variants = (f"{done:,} of {total:,}", f"{done:,}/{total:,}", f"{done}/{total}")
        count = Part(next((way for way in variants if len(way) <= width), variants[-1]), style)
        false = palette.states["state-contradicted"]
        counts = ("✓", below.verdicts[Verdict.VERIFIED], style), ("⚑", below.shown[Shown.FALSE], false)
        known = [Part(f" {glyph}{number:,}", ink) for glyph, number, ink in counts if number]
        yield count
        yield from known if state.row.folded and width_of([count, *known]) <= width else ()
