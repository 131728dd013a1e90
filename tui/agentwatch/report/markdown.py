"""The report as Markdown for a pull request: the verdict, what needs attention, the tree, and each task folded.

GitHub takes 65,536 characters. What does not fit is left out where it matters least, and the report says so.

Foreign text reads as it is, and is never a link, an image, markup, a mention or a reference. GitHub turns mentions,
issue numbers and commit ids into links after it has rendered the Markdown, in every piece of text outside code. So
escaping is not enough: what they begin with stands in an element of its own.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

from agentwatch.report.account import Account, Fact, Grid, TaskLine, facts, grids, lasted, said, tables
from agentwatch.text import LINE_LIMIT, clean, exact
from agentwatch.view.words import look, plural, utc

LIMIT = 65_000
"""Characters of the whole report; some are left for a sentence above it."""

_ROOM = 10_000
"""Characters of the tree, and of each table of the session."""

_ROWS = 60
_ITEMS = 20
_DEEPEST = 9
"""Levels of nested lists; renderers stop at some depth, and nobody reads deeper."""

_SPECIAL = re.compile(
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
_CODE = re.compile(r"[^`|\\]*[^`|\\\s][^`|\\]*\Z")


def markdown(account: Account) -> str:
    """The whole report; it ends with a line feed and is shorter than `LIMIT`."""
    unread, asks, changes, notices = tables(account)
    before, _, last = account.verdict.rstrip(".").rpartition(". ")
    # The last sentence is what it comes to for the reader.
    blocks = [f"## Agent session: {code(account.name)}", f"{before}. **{last}.**" if before else f"**{last}.**"]
    for grid in (unread, asks):
        blocks += [f"### {grid.title}", *_grid(grid, _ROOM)] if grid.rows else []
    if account.rows:
        lines = _fitting(map(_branch, account.rows), _ROOM)
        blocks += ["### Delegation", "\n".join(lines)]
        if left := len(account.rows) - len(lines):
            blocks.append(f"… and {left:,} more lines, in `agentwatch report --format html`.")
    tail: list[str] = []
    for grid in (changes, notices):
        title = f"<details><summary>{grid.title}: {plural(len(grid.rows), grid.noun)}</summary>"
        tail += [title, *_grid(grid, _ROOM), "</details>"] if grid.rows else []
    tail.append(f"<sub>agentwatch report, {utc(account.generated_at)} UTC</sub>")
    blocks += _details(account, LIMIT - sum(len(block) + 2 for block in (*blocks, *tail)) - 200)
    return "\n\n".join([*blocks, *tail]) + "\n"


def _fitting(pieces: Iterable[str], room: int) -> list[str]:
    """The first pieces, as many as fit into so many characters, each with a line feed."""
    every = list(pieces)
    return every[: sum(end <= room for end in accumulate(len(piece) + 1 for piece in every))]


def _branch(line: TaskLine) -> str:
    task = line.task
    parts = [f"{'  ' * min(line.depth, _DEEPEST)}- {_state(line)} {code(line.title, 80)}"]
    if task.agent:
        parts.append(inline(task.agent, 40))
    if task.attempt > 1:
        parts.append(f"attempt {task.attempt}")
    if task.needs_operator:
        parts.append("**needs a human**")
    return ", ".join(parts)


def _state(line: TaskLine) -> str:
    shown = look(line.task)
    return f"{shown.glyph} {shown.word}"


def _details(account: Account, room: int) -> Iterator[str]:
    """A folded block for each task, the most pressing first; those that matter least go where room is short."""
    ranks = {task.task_id: rank for rank, (task, _) in enumerate(account.attention)}
    blocks = ["### Tasks"]
    for line in sorted(account.rows, key=lambda one: ranks.get(one.task.task_id, len(ranks))):
        block = "\n\n".join(_detail(line))
        if len(block) + 2 <= room:
            room -= len(block) + 2
            blocks.append(block)
    yield from blocks if account.rows else ()
    if left := len(account.rows) + 1 - len(blocks):
        yield f"The details of {plural(left, 'task')} do not fit here; `agentwatch report --format html` has them."


def _detail(line: TaskLine) -> Iterator[str]:
    task = line.task
    title = f" · {inline(task.title, 80)}" if task.title not in task.task_id else ""
    agent = f" · {inline(task.agent, 40)}" if task.agent else ""
    yield f"<details><summary>{_state(line)} · <code>{inline(exact(task.task_id), 200)}</code>{title}{agent}</summary>"
    yield _listed(facts(line))
    for attempt, shown, took in reversed(line.attempts):
        began = f", began {utc(attempt.started_at)}" if attempt.started_at is not None else ""
        how_long = f", took {lasted(took)}" if took else ""
        yield f"**Attempt {attempt.number}**, {shown.glyph} {shown.word}{began}{how_long}"
        if told := _listed(said(attempt)):
            yield told
    for grid in grids(line):
        yield from _grid(grid, LIMIT, _ITEMS)
    yield "</details>"


def _listed(told: Iterable[Fact]) -> str:
    lines = []
    for label, kind, texts, behind in told:
        shown = [_shown(kind, one, 600) for one in texts]
        more = f" and {len(shown) - _ITEMS:,} more" if len(shown) > _ITEMS else ""
        note = f" ({inline(behind, 200)})" if behind else ""
        joined = shown[:_ITEMS] if kind == "prose" else [", ".join(shown[:_ITEMS])]
        lines += [f"- **{label}** {one}{more}{note}" for one in joined]
    return "\n".join(lines)


def _shown(kind: str, value: Any, limit: int = 300) -> str:
    """A fact, or a cell of a table."""
    match kind:
        case "look":
            return f"{value.glyph} {value.word}"
        case "state":
            return _state(value)
        case "time":
            return utc(value)
    return code(value) if kind in ("code", "task") else inline(value, limit)


def _grid(grid: Grid, room: int, most: int = _ROWS) -> Iterator[str]:
    """As many rows as fit into so many characters: the last of what happened, the first of all else."""
    is_last = "when (UTC)" in grid.columns
    rows = (map(_shown, grid.columns.values(), row) for row in (grid.rows[::-1] if is_last else grid.rows)[:most])
    shown = _fitting((f"| {' | '.join(cells)} |" for cells in rows), room)
    head = [f"| {' | '.join(cells)} |" for cells in (grid.columns, ["---"] * len(grid.columns))]
    yield "\n".join([*head, *(shown[::-1] if is_last else shown)])
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
