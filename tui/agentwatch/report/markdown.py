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
from pathlib import PurePath
from typing import Final

from agentwatch.delegation.task import Attempt, State
from agentwatch.report.account import Account, AttemptLine, DecisionLine, TaskLine, lasted, others_say, unclaimed
from agentwatch.report.axis import strips
from agentwatch.text import clean, exact
from agentwatch.view.looks import LOOKS, SEVERITIES, TODOS, VERDICTS, claims_of
from agentwatch.view.times import span, utc
from agentwatch.view.words import BASES, answer, plural, prompt, retries_left

LIMIT: Final = 65_000
"""Characters of the whole report; some are left for a sentence above it."""

_ATTENTION: Final = 40
_ATTENTION_ROOM: Final = 16_000
_TREE: Final = 20_000
_TREE_LINES: Final = 200
_TIMELINE_ROWS: Final = 120
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
_TITLE: Final = 80


def markdown(account: Account) -> str:
    """The whole report; it ends with a line feed and is shorter than `LIMIT`."""
    name = PurePath(account.workspace).name or account.workspace
    head = [f"## Agent session: {code(name)}", inline_own(account.verdict), *_problems(account)]
    head += [*_attention(account), *_tree(account)]
    tail = [*_timeline(account), *_changes(account), *_notices(account), _footer(account)]
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
    lines = {line.task.task_id: line for line in account.tasks}
    yield "### Needs attention"
    rows: list[tuple[str, ...]] = []
    for one in account.attention[:_ATTENTION]:
        held = f"<br>holds up {plural(one.holds, 'task')}" if one.holds else ""
        state, asks = _state(lines[one.task_id]), inline(one.ask, _PROSE) + held
        rows.append((state, code(one.task_id), asks, _since(account, one.since)))
    rows = _fitting(rows, _ATTENTION_ROOM)
    yield _table(("state", "task", "what it asks", "waiting"), rows)
    if len(account.attention) > len(rows):
        yield f"… and {len(account.attention) - len(rows):,} more."


def _since(account: Account, at: float | None) -> str:
    return span(account.generated_at - at) if at is not None else "-"


def _tree(account: Account) -> Iterator[str]:
    """The whole tree; if it is too long for that, finished branches as one line each, then cut."""
    if not account.tasks:
        return
    yield "### Delegation"
    lines = [_branch(line) for line in account.tasks]
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
    while position < len(account.tasks):
        line = account.tasks[position]
        folds = line.below > 0 and line.task.task_id not in unfinished
        yield _branch(line) + (f", with {plural(line.below, 'task')} below, all completed" if folds else "")
        position += 1 + line.below if folds else 1


def _branch(line: TaskLine) -> str:
    task = line.task
    parts = [f"{'  ' * min(line.depth, _DEEPEST)}- {_state(line)} {code(task.title, _TITLE)}"]
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
        enumerate(account.tasks),
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
    if left := len(account.tasks) - len(blocks):
        yield f"The details of {plural(left, 'task')} do not fit here; `agentwatch report --format html` has them."


def _detail(line: TaskLine, decisions: Sequence[DecisionLine]) -> Iterator[str]:
    task = line.task
    agent = f" · {inline(task.agent, 40)}" if task.agent else ""
    yield f"<details><summary>{_state(line)} · <code>{inline(exact(task.task_id), 200)}</code>{agent}</summary>"
    yield "\n".join(_facts(line))
    for attempt in reversed(line.attempts):
        yield _attempt_line(attempt)
        if said := "\n".join(_said(attempt.attempt)):
            yield said
    if decisions:
        rows = [
            (utc(one.at), str(one.attempt), inline(one.action, 40), inline(one.operator, 80), inline(one.receipt, 80))
            for one in decisions
        ]
        yield _table(("decided", "attempt", "action", "by", "receipt"), rows)
        if noted := [one for one in decisions if one.note]:
            yield "\n".join(f"- **note on attempt {one.attempt}** {inline(one.note, _PROSE)}" for one in noted)
    if task.claims:
        yield _table(
            ("verdict", "claim", "of", "because"),
            [
                (
                    f"{VERDICTS[claim.verdict].glyph} {VERDICTS[claim.verdict].word}",
                    inline(claim.kind.replace("_", " "), 40),
                    code(claim.path),
                    inline(claim.detail, 200),
                )
                for claim in claims_of(task)[:_ITEMS]
            ],
        )
        yield from _more(len(task.claims), "claim")
    if task.findings:
        yield _table(
            ("finding", "rule", "place", "what to do"),
            [
                (
                    SEVERITIES[one.severity].word,
                    inline(one.rule, 40),
                    code(path + (f":{one.line}" if one.line else "")),
                    inline(one.message, 300),
                )
                for one, path in task.findings[:_ITEMS]
            ],
        )
        yield from _more(len(task.findings), "finding")
    yield "</details>"


def _more(count: int, noun: str) -> Iterator[str]:
    if count > _ITEMS:
        yield f"… and {plural(count - _ITEMS, noun)} more."


def _facts(line: TaskLine) -> Iterator[str]:
    task = line.task
    if task.ask:
        yield f"- **asks** {inline(task.ask, _PROSE)}"
    if line.why:
        yield f"- **why** {inline(line.why, _PROSE)}"
    if task.parent_id is not None:
        yield f"- **below** {code(task.parent_id)} ({BASES[task.parent_basis]})"
    if task.retry.hint:
        yield f"- **hint** {inline(task.retry.hint, _PROSE)}"
    if task.deleted:
        yield "- **files** deleted since; the history remembers them"
    for words, paths in unclaimed(line):
        more = f" and {len(paths) - _ITEMS:,} more" if len(paths) > _ITEMS else ""
        yield f"- **{words}** {', '.join(code(path) for path in paths[:_ITEMS])}{more}"
    if task.todos:
        done = sum(todo.status.value == "done" for todo in task.todos)
        yield f"- **checklist** {done} of {len(task.todos)} done"
        for todo in task.todos[:_ITEMS]:
            yield f"  - {TODOS[todo.status].glyph} {inline(todo.text, 200)}"
    if task.state is not State.COMPLETED:
        yield f"- **retries** {retries_left(task.retry)}"


def _attempt_line(line: AttemptLine) -> str:
    attempt, _, shown, took = line
    began = f", began {utc(attempt.started_at)}" if attempt.started_at is not None else ""
    how_long = f", took {lasted(took)}" if took else ""
    return f"**Attempt {attempt.number}**, {shown.glyph} {shown.word}{began}{how_long}"


def _said(attempt: Attempt) -> Iterator[str]:
    if attempt.handoff and attempt.packet:
        yield f"- **asked** {inline(attempt.packet.objective or '-', _PROSE)} ({code(attempt.handoff.path)})"
    elif asked := prompt(attempt):
        yield f"- **asked** {inline(asked, _PROSE)}"
    version, returned = attempt.returned, attempt.result
    if version is None or returned is None:
        if said := answer(attempt):
            yield f"- **answered** {inline(said, _PROSE)}"
        return
    said = f"{inline(returned.reported_state, 40)}: " if returned.reported_state else ""
    yield f"- **returned** {said}{inline(returned.summary or '-', _PROSE)} ({code(version.path)})"
    error = ": ".join(inline(part, _PROSE) for part in (returned.error_code, returned.error_message) if part)
    if error:
        yield f"- **error** {error}"
    for label, texts in (("blocked by", returned.blockers), ("limitation", returned.limitations)):
        for text in texts[:_ITEMS]:
            yield f"- **{label}** {inline(text, _PROSE)}"
    for label, value in (("next", returned.next_steps), ("review", returned.review_reason)):
        if value:
            yield f"- **{label}** {inline(value, _PROSE)}"
    if returned.model:
        others = others_say(attempt)
        differs = f"differs: {inline(others, 200)}" if others else "attested"
        yield f"- **model** {inline(returned.model, 80)} ({differs})"


def _timeline(account: Account) -> Iterator[str]:
    lines = strips(account)
    if not lines:
        return
    yield "<details><summary>Timeline: who ran when</summary>"
    shown = lines[: _TIMELINE_ROWS + 1]
    yield "\n".join(["```text", *shown, "```"])
    yield "█ an attempt, ░ nobody works and somebody waits, ┆ a long pause that is left out"
    if len(lines) > len(shown):
        yield f"… and {plural(len(lines) - len(shown), 'task')} more."
    yield "</details>"


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
    rows = [(inline(one.rule, 40), code(path), inline(one.message, 300)) for one, path in account.notices[:_ITEMS]]
    shown = _fitting(rows, _NOTICES_ROOM)
    yield _table(("rule", "file", "what to do"), shown)
    if left := len(account.notices) - len(shown):
        yield f"… and {plural(left, 'file')} more."
    yield "</details>"


def _footer(account: Account) -> str:
    return f"<sub>agentwatch report, {utc(account.generated_at)} UTC</sub>"


def _fitting(rows: Sequence[tuple[str, ...]], room: int) -> list[tuple[str, ...]]:
    """The first rows, as many as fit into so many characters: each character of a text may have become an element."""
    ends = accumulate(sum(len(cell) + 3 for cell in row) for row in rows)
    return [row for row, end in zip(rows, ends, strict=True) if end <= room]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def inline(foreign: str, limit: int | None = None) -> str:
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
