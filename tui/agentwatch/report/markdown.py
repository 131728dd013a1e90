"""The report as Markdown for a pull request: the verdict, what needs attention, the tree, and each task folded.

GitHub takes 65,536 characters. What does not fit is left out where it matters least, and the report says so.

Foreign text reads as it is, and is never a link, an image, markup, a mention or a reference. GitHub turns mentions,
issue numbers and commit ids into links after it has rendered the Markdown, in every piece of text outside code. So
escaping is not enough: what they begin with stands in an element of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, Final

from agentwatch.report.account import (
    Account,
    AttemptLine,
    Fact,
    Grid,
    TaskLine,
    facts,
    grids,
    lasted,
    said,
    tables,
)
from agentwatch.text import LINE_LIMIT, clean, exact
from agentwatch.view.looks import LOOKS
from agentwatch.view.times import utc
from agentwatch.view.words import plural

LIMIT: Final = 65_000
"""Characters of the whole report; some are left for a sentence above it."""

_ATTENTION_ROOM: Final = 16_000
_CHANGES_ROOM: Final = 10_000
_LEAST_ROOM: Final = 4_000
_TREE: Final = 20_000
_TREE_LINES: Final = 200
_ROWS: Final = 60
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
    unread, asks, changes, notices = tables(account)
    head = [f"## Agent session: {code(account.name)}", inline_own(account.verdict)]
    for grid, room in ((unread, _LEAST_ROOM), (asks, _ATTENTION_ROOM)):
        if grid.rows:
            head += [f"### {grid.title}", *_grid(grid, room)]
    head += _tree(account)
    tail: list[str] = []
    for grid, room in ((changes, _CHANGES_ROOM), (notices, _LEAST_ROOM)):
        if grid.rows:
            title = f"<details><summary>{grid.title}: {plural(len(grid.rows), grid.noun)}</summary>"
            tail += [title, *_grid(grid, room), "</details>"]
    tail.append(f"<sub>agentwatch report, {utc(account.generated_at)} UTC</sub>")
    room = LIMIT - sum(len(block) + 2 for block in (*head, *tail)) - 200
    return "\n\n".join([*head, *_details(account, room), *tail]) + "\n"


def inline_own(verdict: str) -> str:
    """The verdict, its last sentence in bold: what it comes to for the reader."""
    before, _, last = verdict.rstrip(".").rpartition(". ")
    return f"{before}. **{last}.**" if before else f"**{last}.**"


def _tree(account: Account) -> Iterator[str]:
    """The tree, cut where it is too long."""
    if not account.rows:
        return
    yield "### Delegation"
    lines = [_branch(line) for line in account.rows]
    shown = sum(end <= _TREE for end in accumulate(len(line) + 1 for line in lines[:_TREE_LINES]))
    yield "\n".join(lines[:shown])
    if shown < len(lines):
        yield f"… and {len(lines) - shown:,} more lines, in `agentwatch report --format html`."


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
    asking = {one.task_id: rank for rank, one in enumerate(account.attention)}
    pressing = sorted(
        enumerate(account.rows),
        key=lambda one: (asking.get(one[1].task.task_id, len(asking)), -one[1].task.state.urgency, one[0]),
    )
    blocks: dict[int, str] = {}
    for number, line in pressing:
        block = "\n\n".join(_detail(line))
        if len(block) + 2 <= room:
            room -= len(block) + 2
            blocks[number] = block
    if blocks:
        yield "### Tasks"
        yield from (blocks[number] for number in sorted(blocks))
    if left := len(account.rows) - len(blocks):
        yield f"The details of {plural(left, 'task')} do not fit here; `agentwatch report --format html` has them."


def _detail(line: TaskLine) -> Iterator[str]:
    task = line.task
    agent = f" · {inline(task.agent, 40)}" if task.agent else ""
    yield f"<details><summary>{_state(line)} · <code>{inline(exact(task.task_id), 200)}</code>{agent}</summary>"
    yield "\n".join(_told(facts(line)))
    for attempt in reversed(line.attempts):
        yield _attempt_line(attempt)
        if told := "\n".join(_told(said(attempt.attempt))):
            yield told
    for grid in grids(line):
        yield from _grid(grid, LIMIT, _ITEMS)
    yield "</details>"


def _cell(kind: str, value: Any) -> str:
    if kind in ("look", "state"):
        return f"{value.glyph} {value.word}" if kind == "look" else _state(value)
    return utc(value) if kind == "time" else _shown(kind, value, _IN_CELL)


def _shown(kind: str, one: str, limit: int) -> str:
    return code(one) if kind in ("code", "task") else inline(one, limit)


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
    attempt, shown, took = line
    began = f", began {utc(attempt.started_at)}" if attempt.started_at is not None else ""
    how_long = f", took {lasted(took)}" if took else ""
    return f"**Attempt {attempt.number}**, {shown.glyph} {shown.word}{began}{how_long}"


def _grid(grid: Grid, room: int, most: int = _ROWS) -> Iterator[str]:
    """As many rows as fit into so many characters: the last of what happened, the first of all else."""
    is_last = "when (UTC)" in grid.columns
    rows = [list(map(_cell, grid.columns.values(), row)) for row in (grid.rows[::-1] if is_last else grid.rows)[:most]]
    ends = accumulate(sum(len(cell) + 3 for cell in row) for row in rows)
    shown = [row for row, end in zip(rows, ends, strict=True) if end <= room]
    lines = [list(grid.columns), ["---"] * len(grid.columns), *(shown[::-1] if is_last else shown)]
    yield "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    if left := len(grid.rows) - len(shown):
        yield f"… and {plural(left, grid.noun)} {'before' if is_last else 'more'}."


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
