"""The report as Markdown for a pull request: the verdict, what needs attention, the tree, and each task folded.

GitHub takes 65,536 characters. What does not fit is left out where it matters least, and the report says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import PurePath
from typing import Final

from agentwatch.delegation.task import State
from agentwatch.report.plain import code, inline
from agentwatch.report.shapes import Account, AttemptLine, DecisionLine, TaskLine
from agentwatch.report.strips import strips
from agentwatch.report.wording import lasted, unclaimed
from agentwatch.text import exact
from agentwatch.view.looks import LOOKS, SEVERITIES, TODOS, VERDICTS
from agentwatch.view.times import span, utc
from agentwatch.view.words import BASES, plural

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
    if account.complete:
        return
    yield "### Could not be read"
    rows = [(inline(one.source, 40), inline(one.message, 300)) for one in account.problems[:_ITEMS]]
    shown = _fitting(rows, _NOTICES_ROOM)
    yield _table(("source", "what"), shown)
    if left := len(account.problems) - len(shown):
        yield f"… and {left:,} more."


def _attention(account: Account) -> Iterator[str]:
    if not account.attention:
        return
    tasks = {task.task_id: task for task in account.tasks}
    yield "### Needs attention"
    rows: list[tuple[str, ...]] = []
    for one in account.attention[:_ATTENTION]:
        task = tasks[one.task_id]
        held = f"<br>holds up {plural(one.holds, 'task')}" if one.holds else ""
        rows.append((_state(task), code(task.task_id), inline(one.ask, _PROSE) + held, _since(account, one.since)))
    rows = _fitting(rows, _ATTENTION_ROOM)
    yield _table(("state", "task", "what it asks", "waiting"), rows)
    if len(account.attention) > len(rows):
        yield f"… and {len(account.attention) - len(rows):,} more."


def _since(account: Account, at: float | None) -> str:
    return span(account.generated_at - at) if at is not None else "-"


def _tree(account: Account) -> Iterator[str]:
    """The whole tree; where it is too long for that, finished branches as one line each, then cut."""
    if not account.tasks:
        return
    yield "### Delegation"
    lines = [_branch(task) for task in account.tasks]
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
        task = account.tasks[position]
        folds = task.below > 0 and task.task_id not in unfinished
        yield _branch(task) + (f", with {plural(task.below, 'task')} below, all completed" if folds else "")
        position += 1 + task.below if folds else 1


def _branch(task: TaskLine) -> str:
    parts = [f"{'  ' * min(task.depth, _DEEPEST)}- {_state(task)} {code(task.title, _TITLE)}"]
    if task.agent:
        parts.append(inline(task.agent, 40))
    if task.attempt > 1:
        parts.append(f"attempt {task.attempt}")
    if task.needs_operator:
        parts.append("**needs a human**")
    return ", ".join(parts)


def _state(task: TaskLine) -> str:
    shown = task.look
    words = f"{shown.glyph} {shown.word}"
    behind = LOOKS[task.state]
    return words if shown == behind else f"{words} ({behind.word})"


def _details(account: Account, room: int) -> Iterator[str]:
    """A folded block for each task, in the order of the tree; those that matter least go first where room is short."""
    decided = account.decisions_by_task()
    asking = {one.task_id: rank for rank, one in enumerate(account.attention)}
    pressing = sorted(
        range(len(account.tasks)),
        key=lambda number: (
            asking.get(account.tasks[number].task_id, len(asking)),
            -account.tasks[number].state.urgency,
            number,
        ),
    )
    blocks: dict[int, str] = {}
    for number in pressing:
        task = account.tasks[number]
        block = "\n\n".join(_detail(task, decided.get(task.task_id, ())))
        if len(block) + 2 <= room:
            room -= len(block) + 2
            blocks[number] = block
    if blocks:
        yield "### Tasks"
        yield from (blocks[number] for number in sorted(blocks))
    if left := len(account.tasks) - len(blocks):
        yield f"The details of {plural(left, 'task')} do not fit here; `agentwatch report --format html` has them."


def _detail(task: TaskLine, decisions: Sequence[DecisionLine]) -> Iterator[str]:
    agent = f" · {inline(task.agent, 40)}" if task.agent else ""
    yield f"<details><summary>{_state(task)} · <code>{inline(exact(task.task_id), 200)}</code>{agent}</summary>"
    yield "\n".join(_facts(task))
    for attempt in reversed(task.attempts):
        yield f"**Attempt {attempt.number}**, {_attempt_line(attempt)}"
        if said := "\n".join(_said(attempt)):
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
        order = list(VERDICTS)
        claims = sorted(task.claims, key=lambda claim: order.index(claim.verdict))
        yield _table(
            ("verdict", "claim", "of", "because"),
            [
                (
                    f"{VERDICTS[claim.verdict].glyph} {VERDICTS[claim.verdict].word}",
                    inline(claim.kind.replace("_", " "), 40),
                    code(claim.path),
                    inline(claim.detail, 200),
                )
                for claim in claims[:_ITEMS]
            ],
        )
        yield from _more(len(claims), "claim")
    if task.findings:
        yield _table(
            ("finding", "rule", "place", "what to do"),
            [
                (
                    SEVERITIES[one.severity].word,
                    inline(one.rule, 40),
                    code(one.path + (f":{one.line}" if one.line else "")),
                    inline(one.message, 300),
                )
                for one in task.findings[:_ITEMS]
            ],
        )
        yield from _more(len(task.findings), "finding")
    yield "</details>"


def _more(count: int, noun: str) -> Iterator[str]:
    if count > _ITEMS:
        yield f"… and {plural(count - _ITEMS, noun)} more."


def _facts(task: TaskLine) -> Iterator[str]:
    if task.ask:
        yield f"- **asks** {inline(task.ask, _PROSE)}"
    if task.why:
        yield f"- **why** {inline(task.why, _PROSE)}"
    if task.parent_id is not None:
        yield f"- **below** {code(task.parent_id)} ({BASES[task.parent_basis]})"
    if task.retry.hint:
        yield f"- **hint** {inline(task.retry.hint, _PROSE)}"
    if task.deleted:
        yield "- **files** deleted since; the history remembers them"
    for words, paths in unclaimed(task):
        more = f" and {len(paths) - _ITEMS:,} more" if len(paths) > _ITEMS else ""
        yield f"- **{words}** {', '.join(code(path) for path in paths[:_ITEMS])}{more}"
    if task.todos:
        done = sum(todo.status.value == "done" for todo in task.todos)
        yield f"- **checklist** {done} of {len(task.todos)} done"
        for todo in task.todos[:_ITEMS]:
            yield f"  - {TODOS[todo.status].glyph} {inline(todo.text, 200)}"
    if task.state is not State.COMPLETED:
        yield f"- **retries** {task.retry.remaining} of {task.retry.max_retries} left"


def _attempt_line(attempt: AttemptLine) -> str:
    state = attempt.look
    began = f", began {utc(attempt.started_at)}" if attempt.started_at is not None else ""
    how_long = lasted(attempt.took)
    return f"{state.glyph} {state.word}{began}" + (f", took {how_long}" if attempt.took else "")


def _said(attempt: AttemptLine) -> Iterator[str]:
    if attempt.handoff:
        yield f"- **asked** {inline(attempt.handoff.objective or '-', _PROSE)} ({code(attempt.handoff.path)})"
    elif attempt.prompt:
        yield f"- **asked** {inline(attempt.prompt, _PROSE)}"
    returned = attempt.returned
    if returned is None:
        if attempt.answer:
            yield f"- **answered** {inline(attempt.answer, _PROSE)}"
        return
    said = f"{inline(returned.reported_state, 40)}: " if returned.reported_state else ""
    yield f"- **returned** {said}{inline(returned.summary or '-', _PROSE)} ({code(returned.path)})"
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
        differs = f"differs: {inline(returned.others_say, 200)}" if returned.others_say else "attested"
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
    rows = [(inline(one.rule, 40), code(one.path), inline(one.message, 300)) for one in account.notices[:_ITEMS]]
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
