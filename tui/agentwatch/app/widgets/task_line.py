"""A line of the tree: a task with its columns, or the heading of a group."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.style import Style
from textual.strip import Strip

from agentwatch.app.decision_words import Short, short
from agentwatch.app.theming import Palette
from agentwatch.app.widgets.cells import clip, clip_name, clip_sentence, left, right, shown, summary
from agentwatch.app.widgets.line import Part, Parts, strip_of, width_of
from agentwatch.app.widgets.rows import Row
from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.decision import Action
from agentwatch.delegation.task import Below, State, Task
from agentwatch.view.chains import chain_name
from agentwatch.view.looks import LOOKS, STALE, look, worst_look
from agentwatch.view.order import ASKING, Group, Tally
from agentwatch.view.requests import standing_words
from agentwatch.view.times import duration, stands_since
from agentwatch.view.words import doing_words, is_on_its_way, name_of, program_of, waits_for

_STEP: Final = 2
"""Cells of indent a level."""
_TITLE: Final = 10
"""Cells that a title keeps however deep it stands, where the width allows."""
_BAR: Final = 6
"""Cells of the bar of done todos: a thin one, so that it does not outshine what needs the operator."""
_PULSE: Final = 28
"""Cells for title and activity from which a title gives way to the activity."""
_LEAST: Final = 5
"""Cells behind a title in which something can be said."""
_ENOUGH: Final = 25
"""Cells in which the name of a program leaves enough to its activity."""
_COMPARED: Final = 10
"""Characters from which titles are compared with their neighbours': shorter ones are not cut."""


class Columns(NamedTuple):
    """Cells of each column; 0 if the width has no room for it. Title and activity take what is left."""

    width: int
    note: int
    state: int
    agent: int
    age: int

    @classmethod
    def of(cls, width: int) -> Columns:
        """The columns of a tree that is `width` cells wide: the wide layout from 100 on, else the narrow one."""
        if width < 100:
            return cls(width, 9 if width < 64 else 10, 0 if width < 46 else 9, agent=0, age=0 if width < 64 else 4)
        return cls(width, note=13, state=12, agent=14 if width < 130 else 20, age=4)

    @property
    def levels(self) -> int:
        """Levels that are indented; deeper ones say their depth instead."""
        return max(min(self.width // 6, (self.room - _TITLE) // _STEP), 2)

    @property
    def room(self) -> int:
        """Cells for indent, title and activity: those that cursor, arrow, glyph and the other columns leave."""
        return self.width - 5 - sum(column + 1 for column in self[1:] if column)

    @property
    def tells(self) -> bool:
        """Whether titles give way to the activity."""
        return self.state > 0 and self.room >= _PULSE

    def indent(self, depth: int) -> int:
        """Cells in front of the fold arrow, the cursor's mark included."""
        return 1 + _STEP * min(depth, self.levels)


class RowState(NamedTuple):
    """How a row stands in the tree, and what of it changes with the clock: all that decides its line besides the task.

    `folded` is None for a row without rows below. `guide` is the level whose guide is lit, -1 for none. `shared` is
    how many characters of its title those of its neighbours begin with, too. `chain` stands before the title, foreign.
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


# The rows around a row


def lit_guide(rows: Sequence[Row], at: int) -> tuple[int, int, int]:
    """The lines whose guide is lit, from, to, and its level: the siblings of the row `at` and all below them."""
    if not 0 <= at < len(rows) or (depth := rows[at].depth) <= 0:
        return 0, 0, -1
    first = last = at
    while first > 0 and rows[first - 1].depth >= depth:
        first -= 1
    while last + 1 < len(rows) and rows[last + 1].depth >= depth:
        last += 1
    return first, last + 1, depth - 1


def tell_apart(rows: Sequence[Row], tasks: Mapping[str, Task]) -> dict[str, tuple[int, str]]:
    """By task, how many characters of its title the sibling before or behind it begins with, too; and what stands
    before its title: the chain that its row stands for, and of siblings that would read the same, the part of its id's
    path that the others do not have."""
    shared: dict[str, int] = {}
    chains: dict[str, str] = {}
    before: dict[object, Task] = {}
    alike: dict[object, list[str]] = {}
    for row in rows:
        if row.task_id is None or (task := tasks.get(row.task_id)) is None:
            continue
        above = row.above if row.depth else None
        if len(task.title) >= _COMPARED:
            if (sibling := before.get(above)) is not None:
                pairs = zip(sibling.title[:200], task.title[:200], strict=False)
                shared[task.task_id] = common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
                shared[sibling.task_id] = max(shared.get(sibling.task_id, 0), common)
            before[above] = task
        chain = chain_name(task, [tasks[one] for one in row.chain if one in tasks]) if row.chain else ""
        chains[task.task_id] = chain
        alike.setdefault((above, chain, task.title), []).append(task.task_id)
    for ids in alike.values():
        paths = [tasks[task_id].own_id.split("/") for task_id in ids]
        common_parts = set(paths[0]).intersection(*paths)
        for task_id, path in zip(ids, paths, strict=True):
            # Without a path, the id is that of a session, and says nothing.
            own = "/".join(part for part in path if part not in common_parts) if len(path) > 1 else ""
            chains[task_id] = "/".join(filter(None, (own, chains[task_id])))
    return {task_id: (shared.get(task_id, 0), chain) for task_id, chain in chains.items()}


# Lines


def heading_line(  # noqa: PLR0917 - as `task_line`
    group: Group, tally: Tally, now: float, state: RowState, columns: Columns, palette: Palette
) -> Strip:
    """The line of a heading: the fullest words that sum it up and fit."""
    name, asking = group.upper(), tally.present[ASKING]
    parts = [_cursor_mark(state, palette), Part("▸ " if state.folded else "▾ ", palette.muted)]
    parts.append(Part(name, palette.muted + palette.strong))
    room = columns.width - 5 - len(name)
    if state.folded and asking:
        words = clip(f"{asking:,} need you" if asking > 1 else "1 needs you", room)
        parts += [Part("  "), Part(words, palette.needs)]
        room -= cell_len(words) + 2
    # All that is open to be seen need not be counted.
    if state.folded or group not in (Group.NOW, Group.TODAY):
        words = next((way for way in tally.words(group, now) if cell_len(way) <= room), "")
        parts.append(Part(f"  {words}", palette.muted))
    return strip_of(parts, columns.width, palette, selected=state.selected)


def task_line(task: Task, state: RowState, columns: Columns, palette: Palette, tasks: Mapping[str, Task]) -> Strip:
    """The line of a task, exactly `columns.width` cells wide. `tasks` are those of its tree."""
    face, quiet, is_lost = look(task), _is_quiet(task), task.lost_since is not None
    color = palette.states[face.color]
    first = _cursor_mark(state, palette)
    if state.marked:
        first = Part("◆", palette.accent)
    elif not state.selected and not task.seen:
        first = Part("•", palette.accent)
    note = _urgent(task, state, columns, palette) or _progress(task, state, columns.note, palette)
    # The cells that the note does not need go to the title.
    spare = columns.note - width_of(note) + (not note and columns.note > 0)
    parts = [
        first,
        *_guides(state, columns, palette),
        Part("  " if state.folded is None else "▸ " if state.folded else "▾ ", palette.muted),
        Part(face.glyph + " ", palette.muted if is_lost else color),
        *_middle(task, state, columns, palette, tasks, spare),
        *([Part(" "), *note] if note else []),
    ]
    if columns.state:
        word = "no tasks" if task.workspace and task.below is None and task.state is not State.UNKNOWN else face.word
        parts.append(Part(" " + left(word, columns.state), palette.muted if quiet else color))
    if columns.agent:
        parts.append(Part(" " + left(_agent_of(task), columns.agent), palette.muted))
    if columns.age:
        style = palette.accent if task.needs_operator else Style.null() if task.state.is_open else palette.muted
        parts.append(Part(" " + right(state.age, columns.age), palette.muted if is_lost else style))
    return strip_of(parts, columns.width, palette, selected=state.selected)


def _cursor_mark(state: RowState, palette: Palette) -> Part:
    return Part("▌", palette.accent if state.focused else palette.muted) if state.selected else Part(" ")


def _is_quiet(task: Task) -> bool:
    """Finished work that asks for nothing recedes, not where nobody can tell whether it is done; and so does work that
    is past, was acknowledged, or cannot be reached."""
    if task.past or task.acknowledged or task.lost_since is not None:
        return True
    has_ended = task.state in (State.COMPLETED, State.CANCELED)
    return has_ended and not (task.needs_operator or task.contradicted or task.answers_in_prose)


def _guides(state: RowState, columns: Columns, palette: Palette) -> Parts:
    depth, guide = state.depth, state.guide
    if depth > columns.levels:
        return [Part(left(f"›{depth}", _STEP * columns.levels), palette.muted)]
    if not 0 <= guide < depth:
        return [Part("│ " * depth, palette.line)]
    lit = Part("│ ", palette.muted)
    return [Part("│ " * guide, palette.line), lit, Part("│ " * (depth - guide - 1), palette.line)]


def _middle(  # noqa: PLR0917 - as `task_line`
    task: Task, state: RowState, columns: Columns, palette: Palette, tasks: Mapping[str, Task], spare: int
) -> Parts:
    """The title with the attempts behind it, then the activity from the middle on."""
    indent = columns.indent(state.depth) - 1
    room = columns.room - indent + spare
    # A chain is named by its task; its agent comes behind.
    name = f"{summary(state.chain)} · {name_of(task)}" if state.chain else name_of(task)
    attempts = f" ↻{task.attempt}/{max(1 + task.retry.max_retries, task.attempt)}" if task.attempt > 1 else ""
    if min(cell_len(name), 12) + len(attempts) > room:
        attempts = ""
    start = max(columns.room // 2 - indent, _TITLE)
    doing = _activity(task, state.decided, columns, tasks)
    title_room = start - 1 if doing and columns.tells else room
    # The common beginning is known of titles, not of chains.
    title = _cut_name(name, max(title_room - len(attempts), 1), 0 if state.chain else state.shared)
    used = cell_len(title) + len(attempts)
    start = start if used < start else used + 2
    ways = doing or _reason(task, columns, tasks)
    if ways and cell_len(ways[0]) > room - start:
        # Blanks behind the title are given to the words: to a failure's, if all fit then.
        nearer = max(used + 2, room - cell_len(ways[0]))
        if doing or room - nearer >= cell_len(ways[0]):
            start = nearer
    words = _fitting(ways, room - start) if columns.note and room - start >= _LEAST else ""
    return [
        Part(title, _title_style(task, palette)),
        Part(left(attempts, start - cell_len(title)) if words else attempts, palette.muted),
        Part(words, palette.muted),
        Part(" " * max(room - (start + cell_len(words) if words else used), 0)),
    ]


def _title_style(task: Task, palette: Palette) -> Style:
    if task.workspace or (task.needs_operator and task.lost_since is None):
        return palette.strong
    style = palette.muted if _is_quiet(task) else Style.null()
    return style + Style(italic=True) if task.inferred else style


def _fitting(ways: Sequence[str], width: int) -> str:
    """The first that fits; else the first of which enough is left, cut."""
    whole = next((words for words in ways if cell_len(words) <= width), "")
    return whole or (clip_sentence(ways[0] if width >= _ENOUGH else ways[-1], width) if ways else "")


def _cut_name(name: str, width: int, shared: int) -> str:
    """A title in so many cells. The beginning that it has in common with its neighbours goes first, by whole words."""
    if shared and cell_len(name) > width:
        starts = [match.end() for match in re.finditer(r"[\s_\-./:]+", name[:shared])]
        if starts:
            start = next((one for one in starts if cell_len(name[one:]) < width), starts[-1])
            return clip("…" + name[start:], width)
    return clip_name(name, width)


# Words


def _activity(task: Task, decided: Short | None, columns: Columns, tasks: Mapping[str, Task]) -> Sequence[str]:
    """How far a decision is, or what the task does, for which its title gives way; the longest words first."""
    if decided and task.decision is not None and columns.tells:
        action = "answer" if task.decision.action is Action.RESPOND else task.decision.action
        return f"{action} {decided.glyph} {decided.words}", f"{decided.glyph} {decided.words}"
    if (request := task.request) is not None and not request.waits_for_operator:
        # How far an answer has got does not change with the clock.
        return [standing_words(request, request.asked_at)]
    words = "" if task.did is None else shown(doing_words(task.did))
    if task.state is State.UNKNOWN:
        if task.workspace:
            return [shown(task.why)] if task.why else []
        was = f"was {task.known_state}"
        return [f"{was} · last: {words}", was] if words else [was]
    if task.stale:
        gone = "process gone" if task.run is not None and task.run.process_gone else "" if columns.state else STALE.word
        return list(filter(None, [" · ".join(filter(None, (gone, words and f"last: {words}")))]))
    if not words or waits_for(task, tasks):
        return []
    program = _program(task)
    return [f"{program} · {words}", words] if program else [words]


def _reason(task: Task, columns: Columns, tasks: Mapping[str, Task]) -> Sequence[str]:
    """For how many a task waits, or why it failed, else its agent, where that has no column; the longest words first.

    A title does not give way to it.
    """
    code, waiting = "", waits_for(task, tasks)
    if task.state is State.FAILED:
        code = (task.result.error_code or "") if task.result is not None else task.run.reason if task.run else ""
    if code and not waiting and task.result is not None and (told := summary(task.result.summary or "")):
        return told, summary(code, 60)
    agent = "" if columns.agent else _agent_of(task)
    names = [_program(task), f"waits for {waiting:,}" if waiting else summary(code, 60) if code else agent]
    some = list(filter(None, names))
    return [" · ".join(some), *some[-1:]] if some else []


def _agent_of(task: Task) -> str:
    # Many a task has only its agent's name as a title: once is enough.
    return shown(task.agent, 60) if task.agent and task.agent != task.title else ""


def _program(task: Task) -> str:
    return shown(program_of(task.run.source), 12) if task.is_session and task.run is not None else ""


def _done_of(below: Below) -> str:
    return f"{below.states.get(State.COMPLETED, 0):,}/{below.tasks:,}"


def _urgent(task: Task, state: RowState, columns: Columns, palette: Palette) -> Parts:
    """The first thing that the operator has to know. It fills the column beside the title."""
    width = columns.note
    needs = palette.needs if task.lost_since is None else palette.muted
    if task.needs_operator:
        return [Part(left("NEEDS YOU", width), needs)]
    if state.decided and not columns.tells:
        glyph, words = state.decided
        whole = f"{glyph} {words}" if len(words) + 2 <= width else words
        return [Part(left(whole, width), palette.muted)]
    below = task.below
    if state.folded and below is not None and (worst := worst_look(below)) is not None:
        count = f"{below.needs_operator:,}"
        words = f"{count} need{'' if below.needs_operator > 1 else 's'} you"
        ways = (f"{worst.glyph} {words}", words, f"{worst.glyph} {count}")
        return [Part(left(next((way for way in ways if cell_len(way) <= width), ways[-1]), width), needs)]
    return [Part(left("no return", width), palette.states["state-stale"])] if task.answers_in_prose else []


def _progress(task: Task, state: RowState, width: int, palette: Palette) -> Parts:
    """How far the work is. A count alone is as wide as it is, so that it ends where the others end."""
    below, style = task.below, palette.muted if _is_quiet(task) else Style.null()
    if task.state.is_open and task.progress is not None and not task.children:
        done, total = task.progress
        done_of = f"{done}/{total}"
        # In a narrow column the bar gives way to the activity.
        if width <= _BAR + len(done_of) or (width < 13 and task.doing is not None):
            return [Part(clip(done_of, width), style)]
        filled = round(_BAR * done / total) if total else 0
        bar = [Part("━" * filled, style or palette.states[LOOKS[task.state].color])]
        return [*bar, Part("─" * (_BAR - filled), palette.muted), Part(right(done_of, width - _BAR), style)]
    if below is None or not (state.folded or task.state.is_open):
        return []
    count = Part(clip(_done_of(below), width), style)
    if not state.folded:
        return [count]
    # How many are verified and contradicted; in a narrow place, the most important of it.
    verified, false = below.verdicts.get(Verdict.VERIFIED, 0), below.verdicts.get(Verdict.CONTRADICTED, 0)
    known = [Part(f" ✓{verified:,}", style)] if verified else []
    lies = [Part(f" ⚑{false:,}", palette.states["state-contradicted"])] if false else []
    ways = ([count, *known, *lies], [count, *lies], lies or [count])
    return next((parts for parts in ways if width_of(parts) <= width), [count])
