"""Makes the account of a session (the content of every report), and the Markdown report. This module does no I/O.

Times are seconds since the epoch, or None if unknown. Texts come from agents, so they are untrusted. This module
makes the texts in the Markdown safe. It leaves the texts of an `Account` as they are.

The Markdown is made for a pull request. GitHub takes 65,536 characters, so a longer report leaves out its least
important parts, and tells how many.

Untrusted text never becomes a link, an image, markup, a mention or a reference. GitHub turns mentions, issue numbers
and commit ids into links after it has rendered the Markdown, so escaping does not prevent these links. Therefore their
first characters are put into an HTML element.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, NamedTuple

from agentwatch.contracts.shapes import Finding, Return, TodoStatus
from agentwatch.delegation.decision import Decision
from agentwatch.delegation.events import Verdict
from agentwatch.delegation.standing import request_words
from agentwatch.delegation.task import Attempt, Shown, Sums, Task, sum_tasks
from agentwatch.delegation.tree import Tree
from agentwatch.history.log import StateChange
from agentwatch.sources import Problem
from agentwatch.text import LINE_LIMIT, clean, clean_name
from agentwatch.view import words
from agentwatch.view.rows import chain_name
from agentwatch.view.words import (
    SEVERITIES,
    TODOS,
    VERDICTS,
    Look,
    Span,
    claims_of,
    long_span,
    look_of,
    look_of_attempt,
    plural,
    span_of,
    stage_words,
    utc,
)


class TaskLine(NamedTuple):
    """A task at the time `now`. `depth` and `title` are those of its row. `why` is the reason for its state."""

    task: Task
    depth: int
    title: str
    why: str
    now: float

    @property
    def attempts(self) -> list[tuple[Attempt, Look, Span | None]]:
        """The attempts, each with its glyph and colour, and with its duration."""
        task = self.task
        return [(one, look_of_attempt(task, one), span_of(task, one, self.now)) for one in task.attempts]

    @property
    def decisions(self) -> list[Decision]:
        return [one for attempt in self.task.attempts for one in attempt.decisions]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A session at the time `generated_at`. A task comes before its children. Older siblings come first."""

    tree: Tree
    workspace: str
    generated_at: float
    # The tasks that a human should look at, the most pressing first, each with its exact question.
    attention: Sequence[tuple[Task, str]]
    tasks: Sequence[TaskLine]
    changes: Sequence[StateChange]  # every state change in the history; empty if nobody watched
    notices: Sequence[Finding]  # findings of files that belong to no task
    problems: Sequence[Problem]
    worktrees: Mapping[str, Sums]  # by the path of each other worktree: the sums over its tasks

    @property
    def name(self) -> str:
        """The name of the workspace, with its host if it is on another machine."""
        name = PurePath(self.workspace).name or self.workspace
        host = self.tree.host
        return f"{host}: {name}" if host and not host.endswith(name) else host or name

    @property
    def verdict(self) -> str:
        asking_elsewhere = sum(one.needs_operator for one in self.worktrees.values())
        return verdict_of(self.tree, len(self.problems), asking_elsewhere)

    @property
    def rows(self) -> list[TaskLine]:
        """The tasks that have a row of their own."""
        return [line for line in self.tasks if not line.task.shares_row]


def make_account(
    tree: Tree,
    changes: Sequence[StateChange],
    *,
    workspace: str,
    now: float,
    problems: Sequence[Problem] = (),
    worktrees: Mapping[str, Sums] = MappingProxyType({}),
) -> Account:
    """Return the account of a session. `workspace` is an absolute path, and `now` is in epoch seconds.

    `changes` are the past state changes, the oldest first.
    """
    return Account(
        tree=tree,
        workspace=workspace,
        generated_at=now,
        attention=list(_pressing_tasks(tree)),
        tasks=list(_task_lines(tree, now)),
        changes=changes,
        notices=tree.notices,
        problems=problems,
        worktrees=worktrees,
    )


def sum_present(tasks: Iterable[Task]) -> Sums:
    """Return the sums over the tasks that are not history."""
    return sum_tasks(task for task in tasks if not task.past)


def count_unchecked(sums: Sums) -> int:
    """Count the completed tasks without any claim that could be checked."""
    return sums.count(lambda one: one.shown is Shown.COMPLETED and one.verdict is None)[True]


def _pressing_tasks(tree: Tree) -> Iterator[tuple[Task, str]]:
    silent = [
        one
        for one in tree.tasks.values()
        if one.shown in (Shown.SILENT, Shown.GONE) and not (one.past or one.shares_row or one.needs_operator)
    ]
    for task in (*tree.asking_tasks(), *sorted(silent, key=lambda one: one.alive_at or 0.0)):
        yield task, task.ask or "it works and gives no sign of life: check whether it still runs"


def _task_lines(tree: Tree, now: float) -> Iterator[TaskLine]:
    depths: dict[str | None, int] = {None: 0}  # for each task, the depth of its children's rows
    for task, _ in tree.preorder():
        depth = depths[task.parent_id]
        depths[task.task_id] = depth + (not task.shares_row)
        chain = chain_name(tree.tasks, task)
        title = f"{chain} · {task.title}" if chain else task.title
        yield TaskLine(task, depth, title, words.reason_at(task, tree.tasks, tree.now), now)


def verdict_of(tree: Tree, unseen: int, asking_elsewhere: int = 0, found: Collection[Task] | None = None) -> str:
    """Return a summary of a session, or only of its tasks `found`. It has no untrusted text. `unseen` counts the places
    that could not be read. `asking_elsewhere` counts the tasks of other worktrees that need a human."""
    return " ".join(_verdict_sentences(tree, unseen, asking_elsewhere, found))


def _verdict_sentences(tree: Tree, unseen: int, asking_elsewhere: int, found: Collection[Task] | None) -> Iterator[str]:
    tasks = tree.tasks.values() if found is None else found
    now, total, history = sum_present(tasks), sum_tasks(tasks).tasks, words.history_words(tree) if found is None else ""
    checked = {"verified": now.verdicts[Verdict.VERIFIED], "unchecked": count_unchecked(now)}
    checked["contradicted"] = now.shown[Shown.COMPLETED] - sum(checked.values())
    inside = ", ".join(f"{number:,} {word}" for word, number in checked.items() if number)
    states = []
    for shown in reversed(Shown):
        about = f" ({inside})" if inside and shown is Shown.COMPLETED else ""
        states += [f"{count:,} {shown.word}{about}"] if (count := now.shown[shown]) else []
    past = [f"and {total - now.tasks:,} of history"] if total > now.tasks else []
    if total or found is not None:
        parts = f": {', '.join([*states, *past])}" if states else ", all of history" * bool(past)
        yield f"{plural(total, 'task') if found is None else f'{total:,} found'}{parts}."
    elif tree.lost_since is None:
        yield "No handoffs or returns were found."
    if unseen:
        yield f"{plural(unseen, 'place')} could not be read."
    if history:
        yield f"{history}."
    if states or past or asking_elsewhere or unseen:
        does = "does" if asking_elsewhere == 1 else "do"
        there = f"; {plural(asking_elsewhere, 'task')} in other worktrees {does}" if asking_elsewhere else ""
        nothing = f"Nothing{' new' if past else ''}{' that could be seen' if unseen else ''}"
        needs = now.needs_operator
        yield f"{f'{needs:,}' if needs else nothing} {'need' if needs > 1 else 'needs'} a human{there}."


# Facts of a task


def duration_words(took: Span | None) -> str:
    """Return a duration in its two largest units, or `-` if it is unknown."""
    return long_span(took and took.seconds) + (" so far" if took and took.so_far else "")


class Fact(NamedTuple):
    """A labelled fact about a task or an attempt. The remark is shown after the texts.

    Texts may be untrusted. Their `kind` is `line`, `prose`, `code` for ids and paths, or `task` for a task's id.
    """

    label: str
    kind: str
    texts: Sequence[str]
    remark: str = ""


def _facts(label: str, kind: str, *texts: str | None, remark: str = "") -> list[Fact]:
    """Return a list with the fact, or an empty list if all its texts are empty."""
    known = [text for text in texts if text]
    return [Fact(label, kind, known, remark)] if known else []


def task_facts(line: TaskLine) -> list[Fact]:
    """Return the facts about a task, without its state and its attempts."""
    task, todos = line.task, line.task.todos or ()
    done = sum(todo.status is TodoStatus.DONE for todo in todos)
    items = [f"{TODOS[todo.status].glyph} {todo.text}" for todo in todos]
    return [
        *_facts("asks", "prose", task.ask),
        *_facts("why", "line", line.why),
        *_facts("below", "task", task.parent_id, remark=words.BASES[task.parent_basis]),
        *_facts("checklist", "line", *items, remark=f"{done} of {len(todos)} done"),
        *_facts("files", "line", "deleted since; the history remembers them" if task.deleted else None),
    ]


def attempt_facts(attempt: Attempt) -> list[Fact]:
    """Return the facts about an attempt: its handoff, return and session."""
    packet, result, handoff, returned = attempt.packet, attempt.result, attempt.handoff, attempt.returned
    digest = f"sha256 {returned.digest[:12]}" if returned else ""
    asked = (packet.objective or "the handoff states no objective") if packet else words.prompt_line(attempt)
    return [
        *_facts("asked", "prose", asked),
        *(
            _return_facts(result, runtime_difference(attempt))
            if result
            else _facts("answered", "prose", words.answer_line(attempt))
        ),
        *_facts("session", "code", attempt.session_id),
        *_facts("handoff", "code", handoff and handoff.path),
        *_facts("return", "code", returned and returned.path, remark=digest),
    ]


def _return_facts(result: Return, difference: str) -> Iterator[Fact]:
    prose = {
        "returned": [result.summary or "without a summary"],
        "error": [": ".join(filter(None, (result.error_code, result.error_message)))],
        "blocked by": result.blockers,
        "limitation": result.limitations,
        "hint": [result.retry_hint],
        "next": [result.next_steps],
        "review": [result.review_reason],
    }
    for label, texts in prose.items():
        yield from _facts(label, "prose", *texts)
    if result.confidence is not None:
        yield from _facts("confidence", "line", f"{result.confidence:.2f}")
    if result.model or result.mode:
        ran = " in mode ".join(filter(None, (result.model or "model not reported", result.mode)))
        yield from _facts("model", "line", ran, remark=f"differs: {difference}" if difference else "attested")


def runtime_difference(attempt: Attempt) -> str:
    """Compare the model and mode in the return with the session and the handoff. Return the differences, or ""."""
    if (result := attempt.result) is None:
        return ""
    model, mode = words.runtime_of(result, attempt.run, attempt.packet)
    both = ("recorded as", model), ("the handoff asked for", mode)
    return "; ".join(f"{who} {one.known}" for who, one in both if one.agreement is words.Agreement.DIFFERS)


# Tables


class Table(NamedTuple):
    """A table of a report. `columns` maps the title of each column to the kind of its cells: `look`, `time` (epoch
    seconds), `state` (a `TaskLine`), or a kind of `Fact`."""

    title: str
    noun: str
    columns: dict[str, str]
    rows: Sequence[tuple[Any, ...]]


_ATTENTION_COLUMNS = {"state": "state", "task": "task", "what it asks": "prose", "waiting": "line"}
_CHANGE_COLUMNS = {"when (UTC)": "time", "task": "task", "state": "line", "because": "line"}
_DECISION_COLUMNS = {"decided (UTC)": "time", "attempt": "line", "decision": "line", "note": "prose"} | {
    "by": "line",
    "receipt": "line",
}
_REQUEST_COLUMNS = {"asked (UTC)": "time", "what": "prose", "answer": "line", "by": "line"}
_CLAIM_COLUMNS = {"verdict": "look", "claim": "line", "of": "code", "because": "line"}
_FINDING_COLUMNS = {"severity": "look", "rule": "code", "place": "code", "what to do": "line"}


def receipt_words(decision: Decision) -> str:
    """Say how far the agent has got with a decision."""
    return decision.receipt.words + ("; it has expired since" if decision.expired else "")


def task_tables(line: TaskLine) -> list[Table]:
    """Return the tables of a task: decisions, requests, claims and findings. Empty tables are left out."""
    task = line.task
    decided = [
        (one.at, str(one.attempt), one.action, one.note, one.operator, receipt_words(one)) for one in line.decisions
    ]
    asked = [
        (one.asked_at, request_words(one), stage_words(one, one.asked_at), one.by)
        for one in sorted(task.requests, key=lambda one: one.asked_at)
    ]
    claims = [(VERDICTS[one.verdict], one.kind.replace("_", " "), one.path, one.detail) for one in claims_of(task)]
    every = (
        Table("Decisions", "decision", _DECISION_COLUMNS, decided),
        Table("Requests", "request", _REQUEST_COLUMNS, asked),
        Table("Claims", "claim", _CLAIM_COLUMNS, claims),
        Table("Findings", "finding", _FINDING_COLUMNS, _finding_rows(task.findings)),
    )
    return [table for table in every if table.rows]


def session_tables(account: Account) -> tuple[Table, Table, Table, Table]:
    """Return four tables: places not read, tasks that need attention, state changes, and files without a task."""
    lines = {line.task.task_id: line for line in account.rows}
    asks = []
    for task, ask in account.attention:
        held = f" (holds up {plural(task.open_below, 'task')})" if task.open_below else ""
        waiting = long_span(task.since and account.generated_at - task.since)
        asks.append((lines[task.task_id], task.task_id, ask + held, waiting))
    changes = [
        (one.at, one.task_id, f"{one.before or 'new'} → {one.after or 'gone'}", one.reason) for one in account.changes
    ]
    unread = [(one.source, one.message) for one in account.problems]
    return (
        Table("Could not be read", "place", {"source": "line", "what": "line"}, unread),
        Table("Needs attention", "task", _ATTENTION_COLUMNS, asks),
        Table("What happened", "state change", _CHANGE_COLUMNS, changes),
        Table("Files of no task", "file", _FINDING_COLUMNS, _finding_rows(account.notices)),
    )


def _finding_rows(findings: Sequence[Finding]) -> list[tuple[Any, ...]]:
    return [
        (SEVERITIES[one.severity], one.rule, f"{one.path}:{one.line}" if one.line else one.path, one.message)
        for one in findings
    ]


# Markdown

LIMIT = 65_000  # the most characters of a report; on GitHub there is still room for a sentence above it

_ROOM = 10_000  # the most characters of the tree, and of each table of the session

_MOST_ROWS = 60
_MOST_ITEMS = 20
_DEEPEST = 9  # the most levels of nested lists: renderers stop at some depth, and nobody reads deeper

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
    """Return the report as Markdown. It ends with a line feed and is shorter than `LIMIT`."""
    unread, asks, changes, notices = session_tables(account)
    before, _, last = account.verdict.rstrip(".").rpartition(". ")
    # The last sentence tells whether a human is needed, so set it in bold.
    blocks = [f"## Agent session: {code_text(account.name)}", f"{before}. **{last}.**" if before else f"**{last}.**"]
    for table in (unread, asks):
        blocks += [f"### {table.title}", *_table_markdown(table, _ROOM)] if table.rows else []
    if account.rows:
        lines = _take_fitting(map(_tree_entry, account.rows), _ROOM)
        blocks += ["### Delegation", "\n".join(lines)]
        if left := len(account.rows) - len(lines):
            blocks.append(f"… and {left:,} more lines, in `agentwatch report --format html`.")
    tail: list[str] = []
    for table in (changes, notices):
        title = f"<details><summary>{table.title}: {plural(len(table.rows), table.noun)}</summary>"
        tail += [title, *_table_markdown(table, _ROOM), "</details>"] if table.rows else []
    tail.append(f"<sub>agentwatch report, {utc(account.generated_at)} UTC</sub>")
    blocks += _task_blocks(account, LIMIT - sum(len(block) + 2 for block in (*blocks, *tail)) - 200)
    return "\n\n".join([*blocks, *tail]) + "\n"


def _take_fitting(pieces: Iterable[str], room: int) -> list[str]:
    """Return the first pieces that fit into `room` characters, with a line feed after each piece."""
    every = list(pieces)
    return every[: sum(end <= room for end in accumulate(len(piece) + 1 for piece in every))]


def _tree_entry(line: TaskLine) -> str:
    task = line.task
    parts = [f"{'  ' * min(line.depth, _DEEPEST)}- {_state_words(line)} {code_text(line.title, 80)}"]
    if task.agent:
        parts.append(inline_text(task.agent, 40))
    if task.attempt > 1:
        parts.append(f"attempt {task.attempt}")
    if task.needs_operator:
        parts.append("**needs a human**")
    return ", ".join(parts)


def _state_words(line: TaskLine) -> str:
    shown = look_of(line.task)
    return f"{shown.glyph} {shown.word}"


def _task_blocks(account: Account, room: int) -> Iterator[str]:
    """Yield a folded block for each task that fits, the most pressing first. Then say how many do not fit."""
    ranks = {task.task_id: rank for rank, (task, _) in enumerate(account.attention)}
    blocks = ["### Tasks"]
    for line in sorted(account.rows, key=lambda one: ranks.get(one.task.task_id, len(ranks))):
        block = "\n\n".join(_task_block(line))
        if len(block) + 2 <= room:
            room -= len(block) + 2
            blocks.append(block)
    yield from blocks if account.rows else ()
    if left := len(account.rows) + 1 - len(blocks):
        yield f"The details of {plural(left, 'task')} do not fit here; `agentwatch report --format html` has them."


def _task_block(line: TaskLine) -> Iterator[str]:
    task = line.task
    title = f" · {inline_text(task.title, 80)}" if task.title not in task.task_id else ""
    agent = f" · {inline_text(task.agent, 40)}" if task.agent else ""
    name = f"<code>{inline_text(clean_name(task.task_id), 200)}</code>"
    yield f"<details><summary>{_state_words(line)} · {name}{title}{agent}</summary>"
    yield _fact_list(task_facts(line))
    for attempt, shown, ran in reversed(line.attempts):
        began = f", began {utc(attempt.started_at)}" if attempt.started_at is not None else ""
        how_long = f", took {duration_words(ran)}" if ran else ""
        yield f"**Attempt {attempt.number}**, {shown.glyph} {shown.word}{began}{how_long}"
        if facts := _fact_list(attempt_facts(attempt)):
            yield facts
    for table in task_tables(line):
        yield from _table_markdown(table, LIMIT, _MOST_ITEMS)
    yield "</details>"


def _fact_list(facts: Iterable[Fact]) -> str:
    lines = []
    for label, kind, texts, remark in facts:
        shown = [_value_markdown(kind, one, 600) for one in texts]
        more = f" and {len(shown) - _MOST_ITEMS:,} more" if len(shown) > _MOST_ITEMS else ""
        note = f" ({inline_text(remark, 200)})" if remark else ""
        joined = shown[:_MOST_ITEMS] if kind == "prose" else [", ".join(shown[:_MOST_ITEMS])]
        lines += [f"- **{label}** {one}{more}{note}" for one in joined]
    return "\n".join(lines)


def _value_markdown(kind: str, value: Any, limit: int = 300) -> str:
    match kind:
        case "look":
            return f"{value.glyph} {value.word}"
        case "state":
            return _state_words(value)
        case "time":
            return utc(value)
    return code_text(value) if kind in ("code", "task") else inline_text(value, limit)


def _table_markdown(table: Table, room: int, most: int = _MOST_ROWS) -> Iterator[str]:
    """Yield the first rows that fit into `room` characters. If the rows are state changes, yield the newest rows."""
    is_last = "when (UTC)" in table.columns
    ordered = table.rows[::-1] if is_last else table.rows
    rows = (map(_value_markdown, table.columns.values(), row) for row in ordered[:most])
    shown = _take_fitting((f"| {' | '.join(cells)} |" for cells in rows), room)
    head = [f"| {' | '.join(cells)} |" for cells in (table.columns, ["---"] * len(table.columns))]
    yield "\n".join([*head, *(shown[::-1] if is_last else shown)])
    if left := len(table.rows) - len(shown):
        yield f"… and {plural(left, table.noun)} {'before' if is_last else 'more'}."


def inline_text(untrusted: str, limit: int = LINE_LIMIT) -> str:
    """Return untrusted text on one line, harmless in Markdown and HTML. The result must not begin a line."""
    return _SPECIAL.sub(_neutralize, clean(untrusted, limit).strip()) or "-"


def code_text(untrusted: str, limit: int = 200) -> str:
    """Return untrusted text such as an id or a path as code in Markdown. The result must not stand inside HTML."""
    shown = clean(untrusted, limit)
    return f"`{shown}`" if _CODE.match(shown) else f"<code>{inline_text(untrusted, limit)}</code>"


def _neutralize(match: re.Match[str]) -> str:
    found = match.group()
    if match["commit"]:
        return f"<code>{found}</code>"
    if match["linking"]:
        return f"<span>{found}</span>"
    # Markdown and HTML both show a character reference as text. A backslash works only in Markdown.
    return f"&#{ord(found)};"
