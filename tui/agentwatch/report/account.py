"""The account of a session from which every report is made, the facts of each task, and the Markdown report. Pure.

Times are seconds since the epoch, None if unknown. Every text is foreign and unsanitised, except for our own words,
which may quote foreign text.

The Markdown is for a pull request: the verdict, what needs attention, the tree, and each task folded. GitHub takes
65,536 characters; a longer report leaves out what matters least, and says so.

Foreign text is shown as it is, and never becomes a link, an image, markup, a mention or a reference. GitHub turns
mentions, issue numbers and commit ids into links after it has rendered the Markdown, in all text outside code. Escaping
does not prevent that, so the characters with which these begin are put into an element of their own.
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
from agentwatch.delegation.task import Attempt, Below, Shown, Task, sums_of
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
    Took,
    claims_of,
    in_units,
    look,
    look_of_attempt,
    plural,
    standing_words,
    took,
    utc,
)


class TaskLine(NamedTuple):
    """A task as shown at the time `now`: the depth and title of its row, and why it is in its state."""

    task: Task
    depth: int
    title: str
    why: str
    now: float

    @property
    def attempts(self) -> list[tuple[Attempt, Look, Took | None]]:
        """The attempts, each with its look and how long it took."""
        task = self.task
        return [(one, look_of_attempt(task, one), took(task, one, self.now)) for one in task.attempts]

    @property
    def decisions(self) -> list[Decision]:
        return [one for attempt in self.task.attempts for one in attempt.decisions]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A session at the time `generated_at`. Tasks are in preorder, siblings in the order first seen."""

    tree: Tree
    workspace: str
    generated_at: float
    # The tasks that somebody has to look at, the most pressing first, each with its exact question.
    attention: Sequence[tuple[Task, str]]
    tasks: Sequence[TaskLine]
    changes: Sequence[StateChange]  # every state change in the history; empty if nobody watched
    notices: Sequence[Finding]  # findings of files that belong to no task
    problems: Sequence[Problem]
    worktrees: Mapping[str, Below]  # for the path of each other worktree of the repository, the sums over its tasks

    @property
    def name(self) -> str:
        """The name of the workspace, with its host if it is on another machine."""
        name = PurePath(self.workspace).name or self.workspace
        host = self.tree.host
        return f"{host}: {name}" if host and not host.endswith(name) else host or name

    @property
    def verdict(self) -> str:
        asking_there = sum(one.needs_operator for one in self.worktrees.values())
        return verdict_of(self.tree, len(self.problems), asking_there)

    @property
    def rows(self) -> list[TaskLine]:
        """The tasks that have a row of their own."""
        return [line for line in self.tasks if not line.task.shares_row]


def account_of(
    tree: Tree,
    changes: Sequence[StateChange],
    *,
    workspace: str,
    now: float,
    problems: Sequence[Problem] = (),
    worktrees: Mapping[str, Below] = MappingProxyType({}),
) -> Account:
    """Return the account of the session in a workspace (absolute path) as the tree shows it `now` (epoch seconds).

    `changes` are its past state changes, oldest first.
    """
    return Account(
        tree=tree,
        workspace=workspace,
        generated_at=now,
        attention=list(_attention(tree)),
        tasks=list(_lines(tree, now)),
        changes=changes,
        notices=tree.notices,
        problems=problems,
        worktrees=worktrees,
    )


def present_of(tasks: Iterable[Task]) -> Below:
    """Return the sums over the tasks that are not past."""
    return sums_of(task for task in tasks if not task.past)


def unchecked_in(sums: Below) -> int:
    """Return how many tasks are completed without any claim that could be checked."""
    return sums.count(lambda one: one.shown is Shown.COMPLETED and one.verdict is None)[True]


def _attention(tree: Tree) -> Iterator[tuple[Task, str]]:
    silent = [
        one
        for one in tree.tasks.values()
        if one.shown in (Shown.SILENT, Shown.GONE) and not (one.past or one.shares_row or one.needs_operator)
    ]
    for task in (*tree.asking(), *sorted(silent, key=lambda one: one.alive_at or 0.0)):
        yield task, task.ask or "it works and gives no sign of life: check whether it still runs"


def _lines(tree: Tree, now: float) -> Iterator[TaskLine]:
    depths: dict[str | None, int] = {None: 0}  # for each task, the depth of its children's rows
    for task, _ in tree.preorder():
        depth = depths[task.parent_id]
        depths[task.task_id] = depth + (not task.shares_row)
        chain = chain_name(tree.tasks, task)
        title = f"{chain} · {task.title}" if chain else task.title
        yield TaskLine(task, depth, title, words.why_at(task, tree.tasks, tree.now), now)


def verdict_of(tree: Tree, unseen: int, asking_there: int = 0, found: Collection[Task] | None = None) -> str:
    """Return sentences on the state of a session, or of the tasks `found` in it, without foreign text. `unseen` places
    could not be read; `asking_there` tasks of other worktrees need a human."""
    return " ".join(_sentences(tree, unseen, asking_there, found))


def _sentences(tree: Tree, unseen: int, asking_there: int, found: Collection[Task] | None) -> Iterator[str]:
    tasks = tree.tasks.values() if found is None else found
    now, total, history = present_of(tasks), sums_of(tasks).tasks, words.history_words(tree) if found is None else ""
    checked = {"verified": now.verdicts[Verdict.VERIFIED], "unchecked": unchecked_in(now)}
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
    if states or past or asking_there or unseen:
        does = "does" if asking_there == 1 else "do"
        there = f"; {plural(asking_there, 'task')} in other worktrees {does}" if asking_there else ""
        nothing = f"Nothing{' new' if past else ''}{' that could be seen' if unseen else ''}"
        needs = now.needs_operator
        yield f"{f'{needs:,}' if needs else nothing} {'need' if needs > 1 else 'needs'} a human{there}."


# Facts of a task


def lasted(took: Took | None) -> str:
    """Return how long something took, in its two largest units; `-` if unknown."""
    return in_units(took and took.seconds) + (" so far" if took and took.so_far else "")


class Fact(NamedTuple):
    """A fact of a task or an attempt: its label, texts (foreign, or our own words), and a remark `behind` them.

    `kind` of the texts: `line`, `prose`, `code` for ids and paths, or `task` for a task's id.
    """

    label: str
    kind: str
    texts: Sequence[str]
    behind: str = ""


def _fact(label: str, kind: str, *texts: str | None, behind: str = "") -> list[Fact]:
    """Return the fact in a list, [] if all its texts are empty."""
    known = [text for text in texts if text]
    return [Fact(label, kind, known, behind)] if known else []


def facts(line: TaskLine) -> list[Fact]:
    """Return the facts of a task besides its state and its attempts."""
    task, todos = line.task, line.task.todos or ()
    done = sum(todo.status is TodoStatus.DONE for todo in todos)
    items = [f"{TODOS[todo.status].glyph} {todo.text}" for todo in todos]
    return [
        *_fact("asks", "prose", task.ask),
        *_fact("why", "line", line.why),
        *_fact("below", "task", task.parent_id, behind=words.BASES[task.parent_basis]),
        *_fact("checklist", "line", *items, behind=f"{done} of {len(todos)} done"),
        *_fact("files", "line", "deleted since; the history remembers them" if task.deleted else None),
    ]


def said(attempt: Attempt) -> list[Fact]:
    """Return the facts of an attempt: its handoff, return and session."""
    packet, result, handoff, returned = attempt.packet, attempt.result, attempt.handoff, attempt.returned
    digest = f"sha256 {returned.digest[:12]}" if returned else ""
    asked = (packet.objective or "the handoff states no objective") if packet else words.prompt(attempt)
    return [
        *_fact("asked", "prose", asked),
        *(_returned(result, others_say(attempt)) if result else _fact("answered", "prose", words.answer(attempt))),
        *_fact("session", "code", attempt.session_id),
        *_fact("handoff", "code", handoff and handoff.path),
        *_fact("return", "code", returned and returned.path, behind=digest),
    ]


def _returned(result: Return, others: str) -> Iterator[Fact]:
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
        yield from _fact(label, "prose", *texts)
    if result.confidence is not None:
        yield from _fact("confidence", "line", f"{result.confidence:.2f}")
    if result.model or result.mode:
        ran = " in mode ".join(filter(None, (result.model or "model not reported", result.mode)))
        yield from _fact("model", "line", ran, behind=f"differs: {others}" if others else "attested")


def others_say(attempt: Attempt) -> str:
    """Return which other model or mode is recorded or was asked for, if it differs from the return's, else ""."""
    if (result := attempt.result) is None:
        return ""
    model, mode = words.runtime_of(result, attempt.run, attempt.packet)
    both = ("recorded as", model), ("the handoff asked for", mode)
    return "; ".join(f"{who} {one.known}" for who, one in both if one.agreement is words.Agreement.DIFFERS)


# Tables


class Grid(NamedTuple):
    """A table of a report. `columns` gives for each title the kind of its cells: `look`, `time` (epoch seconds),
    `state` (a `TaskLine`), or a kind of `Fact`."""

    title: str
    noun: str
    columns: dict[str, str]
    rows: Sequence[tuple[Any, ...]]


_ASKED = {"state": "state", "task": "task", "what it asks": "prose", "waiting": "line"}
_CHANGED = {"when (UTC)": "time", "task": "task", "state": "line", "because": "line"}
_DECIDED = {"decided (UTC)": "time", "attempt": "line", "decision": "line", "note": "prose"} | {
    "by": "line",
    "receipt": "line",
}
_REQUESTED = {"asked (UTC)": "time", "what": "prose", "answer": "line", "by": "line"}
_CLAIMED = {"verdict": "look", "claim": "line", "of": "code", "because": "line"}
_BROKEN = {"severity": "look", "rule": "code", "place": "code", "what to do": "line"}


def receipt_words(decision: Decision) -> str:
    """Return words on how far a decision has got."""
    return decision.receipt.words + ("; it has expired since" if decision.expired else "")


def grids(line: TaskLine) -> list[Grid]:
    """Return the tables of a task that have rows: its decisions, its program's requests, the claims of its returns,
    and its findings."""
    task = line.task
    decided = [
        (one.at, str(one.attempt), one.action, one.note, one.operator, receipt_words(one)) for one in line.decisions
    ]
    asked = [
        (one.asked_at, request_words(one), standing_words(one, one.asked_at), one.by)
        for one in sorted(task.requests, key=lambda one: one.asked_at)
    ]
    claims = [(VERDICTS[one.verdict], one.kind.replace("_", " "), one.path, one.detail) for one in claims_of(task)]
    every = (
        Grid("Decisions", "decision", _DECIDED, decided),
        Grid("Requests", "request", _REQUESTED, asked),
        Grid("Claims", "claim", _CLAIMED, claims),
        Grid("Findings", "finding", _BROKEN, _broken(task.findings)),
    )
    return [grid for grid in every if grid.rows]


def tables(account: Account) -> tuple[Grid, Grid, Grid, Grid]:
    """Return the tables of a session: unread places, what needs attention, state changes, files of no task."""
    lines = {line.task.task_id: line for line in account.rows}
    asks = []
    for task, ask in account.attention:
        held = f" (holds up {plural(task.open_below, 'task')})" if task.open_below else ""
        waiting = in_units(task.since and account.generated_at - task.since)
        asks.append((lines[task.task_id], task.task_id, ask + held, waiting))
    changes = [
        (one.at, one.task_id, f"{one.before or 'new'} → {one.after or 'gone'}", one.reason) for one in account.changes
    ]
    unread = [(one.source, one.message) for one in account.problems]
    return (
        Grid("Could not be read", "place", {"source": "line", "what": "line"}, unread),
        Grid("Needs attention", "task", _ASKED, asks),
        Grid("What happened", "state change", _CHANGED, changes),
        Grid("Files of no task", "file", _BROKEN, _broken(account.notices)),
    )


def _broken(findings: Sequence[Finding]) -> list[tuple[Any, ...]]:
    return [
        (SEVERITIES[one.severity], one.rule, f"{one.path}:{one.line}" if one.line else one.path, one.message)
        for one in findings
    ]


# Markdown

LIMIT = 65_000  # characters of the whole report; GitHub's limit leaves some for a sentence above it

_ROOM = 10_000  # the most characters of the tree, and of each table of the session

_ROWS = 60
_ITEMS = 20
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
    """Return the whole report; it ends with a line feed and is shorter than `LIMIT`."""
    unread, asks, changes, notices = tables(account)
    before, _, last = account.verdict.rstrip(".").rpartition(". ")
    # The last sentence, whether a human is needed, is set in bold.
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
    """Return the first pieces that fit into `room` characters, counting a line feed after each."""
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
    """Yield a folded block for each task that fits, the most pressing first, and how many do not fit."""
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
    name = inline(clean_name(task.task_id), 200)
    yield f"<details><summary>{_state(line)} · <code>{name}</code>{title}{agent}</summary>"
    yield _listed(facts(line))
    for attempt, shown, ran in reversed(line.attempts):
        began = f", began {utc(attempt.started_at)}" if attempt.started_at is not None else ""
        how_long = f", took {lasted(ran)}" if ran else ""
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
    """Return the Markdown of one value of a fact or a table cell."""
    match kind:
        case "look":
            return f"{value.glyph} {value.word}"
        case "state":
            return _state(value)
        case "time":
            return utc(value)
    return code(value) if kind in ("code", "task") else inline(value, limit)


def _grid(grid: Grid, room: int, most: int = _ROWS) -> Iterator[str]:
    """Yield the rows that fit into `room` characters: the newest state changes, or the first rows of other tables."""
    is_last = "when (UTC)" in grid.columns
    rows = (map(_shown, grid.columns.values(), row) for row in (grid.rows[::-1] if is_last else grid.rows)[:most])
    shown = _fitting((f"| {' | '.join(cells)} |" for cells in rows), room)
    head = [f"| {' | '.join(cells)} |" for cells in (grid.columns, ["---"] * len(grid.columns))]
    yield "\n".join([*head, *(shown[::-1] if is_last else shown)])
    if left := len(grid.rows) - len(shown):
        yield f"… and {plural(left, grid.noun)} {'before' if is_last else 'more'}."


def inline(foreign: str, limit: int = LINE_LIMIT) -> str:
    """Return foreign text on one line, for a paragraph, a table or HTML, but not for the beginning of a line."""
    return _SPECIAL.sub(_harmless, clean(foreign, limit).strip()) or "-"


def code(foreign: str, limit: int = 200) -> str:
    """Return foreign text such as an id or a path as code, for Markdown but not inside HTML."""
    shown = clean(foreign, limit)
    return f"`{shown}`" if _CODE.match(shown) else f"<code>{inline(foreign, limit)}</code>"


def _harmless(match: re.Match[str]) -> str:
    found = match.group()
    if match["commit"]:
        return f"<code>{found}</code>"
    if match["linking"]:
        return f"<span>{found}</span>"
    # Markdown and HTML both read a character reference as text; only Markdown understands a backslash.
    return f"&#{ord(found)};"
