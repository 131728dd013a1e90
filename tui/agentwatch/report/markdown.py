"""The report as Markdown for a pull request: the verdict, what needs attention, the tree, and each task folded.

GitHub takes 65,536 characters. What does not fit is left out where it matters least, and the report says so.

Foreign text reads as it is, and is never a link, an image, markup, a mention or a reference. GitHub turns mentions,
issue numbers and commit ids into links after it has rendered the Markdown, in every piece of text outside code. So
escaping is not enough: what they begin with stands in an element of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final

from agentwatch.contracts.shapes import TodoStatus
from agentwatch.delegation.task import State
from agentwatch.report.account import (
    Account,
    AttemptLine,
    DecisionLine,
    Fact,
    TaskLine,
    facts,
    grids,
    lasted,
    said,
)
from agentwatch.text import LINE_LIMIT, clean, exact
from agentwatch.view.looks import LOOKS, TODOS
from agentwatch.view.times import span, utc
from agentwatch.view.words import plural

LIMIT: Final = 65_000
"""Characters of the whole report; some are left for a sentence above it."""

_ATTENTION: Final = 40
_ATTENTION_ROOM: Final = 16_000
_TREE: Final = 20_000
_TREE_LINES: Final = 200
_CHANGES: Final = 60
_CHANGES_ROOM: Final = 10_000
_NOTICES_ROOM: Final = 4_000
_ITEMS: Final = 20
_DEEPEST: Final = 9
"""Levels of nested lists; renderers stop at some depth, and nobody reads deeper."""

_SPECIAL: Final = re.compile(
    r"""
    (?P<commit>(?<![0-9A-Za-z])[0-9a-fA-F]{7,64}(?![0-9A-Za-z]))
  | (?P<linking>[@\#$]                          # mention, e-mail; issue; mathematics
      | :(?://)?(?=\S)                          # a scheme, :emoji:
      | (?<=[wW]{3})\.                          # www.
      | (?<=[A-Za-z])-(?=\d)                    # GH-1, and the keys that a repository links elsewhere
    )
  | (?P<markup>[&<>\\`*_\[\]{}|~] | (?<=/)/ | (?<=\S)\.(?=[^\W\d_]))
    """,
    re.VERBOSE,
)
_CODE: Final = re.compile(r"[^`|\\]*[^`|\\\s][^`|\\]*\Z")
_PROSE: Final = 600
_IN_CELL: Final = 300
_TITLE: Final = 80


def markdown(account: Account) -> str:
    """The whole report; it ends with a line feed and is shorter than `LIMIT`."""
    head = [f"## Agent session: {code(account.name)}", inline_own(account.verdict), *_problems(account)]
    head += [*_attention(account), *_tree(account)]
    tail = [*_changes(account), *_notices(account)]
    tail.append(f"<sub>agentwatch report, {utc(account.generated_at)} UTC</sub>")
    room = LIMIT - sum(len(block) + 2 for block in (*head, *tail)) - 200
    return "\n\n".join([*head, *_details(account, room), *tail]) + "\n"


def inline_own(verdict: str) -> str:
    """The verdict, its last sentence in bold: what it comes to for the reader."""
    before, _, last = verdict.rstrip(".").rpartition(". ")
    return f"{before}. **{last}.**" if before else f"**{last}.**"


def _problems(account: Account) -> Iterator[str]:
    if not account.problems:
        return
    yield "### Could not be read"
    rows = [(inline(source, 40), inline(message, 300)) for source, _, message in account.problems[:_ITEMS]]
    shown = _fitting(rows, _NOTICES_ROOM)
    yield _table(("source", "what"), shown)
    if left := len(account.problems) - len(shown):
        yield f"… and {left:,} more."


def _attention(account: Account) -> Iterator[str]:
    if not account.attention:
        return
    lines = {line.task.task_id: line for line in account.rows}
    yield "### Needs attention"
    rows: list[tuple[str, ...]] = []
    for one in account.attention[:_ATTENTION]:
        held = f"<br>holds up {plural(one.holds, 'task')}" if one.holds else ""
        state, asks = _state(lines[one.task_id]), inline(one.ask, _PROSE) + held
        waiting = span(account.generated_at - one.since) if one.since is not None else "-"
        rows.append((state, code(one.task_id), asks, waiting))
    rows = _fitting(rows, _ATTENTION_ROOM)
    yield _table(("state", "task", "what it asks", "waiting"), rows)
    if len(account.attention) > len(rows):
        yield f"… and {len(account.attention) - len(rows):,} more."


def _tree(account: Account) -> Iterator[str]:
    """The whole tree; if it is too long for that, finished branches as one line each, then cut."""
    if not account.rows:
        return
    yield "### Delegation"
    lines = [_branch(line) for line in account.rows]
    if len(lines) > _TREE_LINES:
        lines = list(_folded(account))
    shown = 0
    length = 0
    while shown < min(len(lines), _TREE_LINES) and length + len(lines[shown]) < _TREE:
        length += len(lines[shown]) + 1
        shown += 1
    yield "\n".join(lines[:shown])
    if shown < len(lines):
        yield f"… and {len(lines) - shown:,} more lines, in `agentwatch report --format html`."


def _folded(account: Account) -> Iterator[str]:
    unfinished = account.branches_with(lambda task: task.state is not State.COMPLETED or task.needs_operator)
    position = 0
    while position < len(account.rows):
        line = account.rows[position]
        folds = line.below > 0 and line.task.task_id not in unfinished
        yield _branch(line) + (f", with {plural(line.below, 'task')} below, all completed" if folds else "")
        position += 1 + line.below if folds else 1


def _branch(line: TaskLine) -> str:
    task = line.task
    parts = [f"{'  ' * min(line.depth, _DEEPEST)}- {_state(line)} {code(line.title, _TITLE)}"]
    if task.agent:
        parts.append(inline(task.agent, 40))
    if task.attempt > 1:
        parts.append(f"attempt {task.attempt}")
    if task.needs_operator:
        parts.append("**needs a human**")
    return ", ".join(parts)


def _state(line: TaskLine) -> str:
    shown, behind = line.look, LOOKS[line.task.state]
    words = f"{shown.glyph} {shown.word}"
    return words if shown == behind else f"{words} ({behind.word})"


def _details(account: Account, room: int) -> Iterator[str]:
    """A folded block for each task, in the order of the tree; those that matter least go first where room is short."""
    decided = account.decisions_by_task()
    asking = {one.task_id: rank for rank, one in enumerate(account.attention)}
    pressing = sorted(
        enumerate(account.rows),
        key=lambda one: (asking.get(one[1].task.task_id, len(asking)), -one[1].task.state.urgency, one[0]),
    )
    blocks: dict[int, str] = {}
    for number, line in pressing:
        block = "\n\n".join(_detail(line, decided.get(line.task.task_id, ())))
        if len(block) + 2 <= room:
            room -= len(block) + 2
            blocks[number] = block
    if blocks:
        yield "### Tasks"
        yield from (blocks[number] for number in sorted(blocks))
    if left := len(account.rows) - len(blocks):
        yield f"The details of {plural(left, 'task')} do not fit here; `agentwatch report --format html` has them."


def _detail(line: TaskLine, decisions: Sequence[DecisionLine]) -> Iterator[str]:
    task = line.task
    agent = f" · {inline(task.agent, 40)}" if task.agent else ""
    yield f"<details><summary>{_state(line)} · <code>{inline(exact(task.task_id), 200)}</code>{agent}</summary>"
    yield "\n".join(_about(line))
    for attempt in reversed(line.attempts):
        yield _attempt_line(attempt)
        if told := "\n".join(_told(said(attempt.attempt))):
            yield told
    for grid in grids(task, decisions):
        yield _table(list(grid.columns), [map(_cell, grid.columns.values(), row) for row in grid.rows[:_ITEMS]])
        if len(grid.rows) > _ITEMS:
            yield f"… and {plural(len(grid.rows) - _ITEMS, grid.noun)} more."
    yield "</details>"


def _cell(kind: str, value: Any) -> str:
    if kind == "look":
        return f"{value.glyph} {value.word}"
    return utc(value) if kind == "time" else _shown(kind, value, _IN_CELL)


def _shown(kind: str, one: str, limit: int) -> str:
    return code(one) if kind in ("code", "task") else inline(one, limit)


def _about(line: TaskLine) -> Iterator[str]:
    task = line.task
    if task.ask:
        yield f"- **asks** {inline(task.ask, _PROSE)}"
    yield from _told(facts(line))
    if task.todos:
        done = sum(todo.status is TodoStatus.DONE for todo in task.todos)
        yield f"- **checklist** {done} of {len(task.todos)} done"
        for todo in task.todos[:_ITEMS]:
            yield f"  - {TODOS[todo.status].glyph} {inline(todo.text, 200)}"


def _told(told: Iterable[Fact]) -> Iterator[str]:
    for label, kind, texts, behind in told:
        shown = [_shown(kind, one, _PROSE) for one in texts[:_ITEMS]]
        more = f" and {len(texts) - _ITEMS:,} more" if len(texts) > _ITEMS else ""
        note = f" ({inline(behind, 200)})" if behind else ""
        if kind == "prose":
            yield from (f"- **{label}** {one}" for one in shown)
        else:
            yield f"- **{label}** {', '.join(shown)}{more}{note}"


def _attempt_line(line: AttemptLine) -> str:
    attempt, _, shown, took = line
    began = f", began {utc(attempt.started_at)}" if attempt.started_at is not None else ""
    how_long = f", took {lasted(took)}" if took else ""
    return f"**Attempt {attempt.number}**, {shown.glyph} {shown.word}{began}{how_long}"


def _changes(account: Account) -> Iterator[str]:
    if not account.changes:
        return
    yield f"<details><summary>What happened: {plural(len(account.changes), 'state change')}</summary>"
    rows = [
        (
            utc(change.at),
            code(change.task_id),
            f"{change.before or 'new'} → {change.after or 'gone'}",
            inline(change.reason, 160),
        )
        for change in account.changes[-_CHANGES:]
    ]
    shown = _fitting(rows[::-1], _CHANGES_ROOM)[::-1]
    if len(shown) < len(account.changes):
        yield f"The last {len(shown)}:"
    yield _table(("when (UTC)", "task", "state", "because"), shown)
    yield "</details>"


def _notices(account: Account) -> Iterator[str]:
    if not account.notices:
        return
    yield f"<details><summary>{plural(len(account.notices), 'file')} of no task</summary>"
    rows = [(inline(one.rule, 40), code(one.path), inline(one.message, 300)) for one in account.notices[:_ITEMS]]
    shown = _fitting(rows, _NOTICES_ROOM)
    yield _table(("rule", "file", "what to do"), shown)
    if left := len(account.notices) - len(shown):
        yield f"… and {plural(left, 'file')} more."
    yield "</details>"


def _fitting(rows: Sequence[tuple[str, ...]], room: int) -> list[tuple[str, ...]]:
    """The first rows, as many as fit into so many characters: each character of a text may have become an element."""
    ends = accumulate(sum(len(cell) + 3 for cell in row) for row in rows)
    return [row for row, end in zip(rows, ends, strict=True) if end <= room]


def _table(head: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def inline(foreign: str, limit: int = LINE_LIMIT) -> str:
    """Foreign text on one line, for anywhere but the beginning of a line: a paragraph, a table, HTML."""
    return _SPECIAL.sub(_harmless, clean(foreign, limit).strip()) or "-"


def code(foreign: str, limit: int = 200) -> str:
    """Foreign text as code: ids, paths. For Markdown, not for the inside of HTML."""
    shown = clean(foreign, limit)
    return f"`{shown}`" if _CODE.match(shown) else f"<code>{inline(foreign, limit)}</code>"


def _harmless(match: re.Match[str]) -> str:
    found = match.group()
    if match["commit"]:
        return f"<code>{found}</code>"
    if match["linking"]:
        return f"<span>{found}</span>"
    # A character reference is text to Markdown and to HTML alike; a backslash is so to one of them only.
    return f"&#{ord(found)};"
