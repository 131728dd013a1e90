"""The account of a session: what every report is made from, one pure function of the tree and its history.

Times are seconds since the epoch, None if they are not known. Every text is foreign and unsanitised, but for
`verdict`, `why` and the reasons of findings and claims, which quote foreign text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType
from typing import Final, NamedTuple

from agentwatch.contracts.shapes import Finding
from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.task import Attempt, State, Task, sums_of
from agentwatch.delegation.tree import Tree
from agentwatch.history.log import StateChange
from agentwatch.view.chains import chain_above, chain_name
from agentwatch.view.looks import Look, look, look_of_attempt
from agentwatch.view.spans import Kind, Span, spans_of
from agentwatch.view.times import Took, ended_at, stands_since, took, took_last
from agentwatch.view.words import history_words, plural, why_at

_COUNTED: Final = {
    State.PARTIAL: ("returned a part", "returned a part"),
    State.INVALID: ("broke its contract", "broke their contract"),
    State.FAILED: ("failed", "failed"),
    State.BLOCKED: ("is blocked", "are blocked"),
    State.ESCALATED: ("is escalated", "are escalated"),
    State.RETRYING: ("is to be tried again", "are to be tried again"),
    State.WORKING: ("is working", "are working"),
    State.SUBMITTED: ("has not begun", "have not begun"),
    State.UNKNOWN: ("is on a host that cannot be reached", "are on hosts that cannot be reached"),
    State.CANCELED: ("was canceled", "were canceled"),
}
"""What is said of one task in a state, and of several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionLine:
    """What the operator decided on an attempt, and how far the decision has got (`receipt`)."""

    task_id: str
    attempt: int
    action: str
    note: str
    operator: str
    at: float | None
    receipt: str


class StatementLine(NamedTuple):
    """What was signed last about a task, for others: the sha256 of the envelope and the key, in hex, and when (UTC).

    `current`: the handoff and the return that it is about are still those of the latest attempt.
    """

    sha256: str
    keyid: str
    made_at: str
    attempt: int
    state: str
    current: bool


class AttemptLine(NamedTuple):
    """An attempt and how it is shown. `ended_at` is None while it runs, and if it never came back."""

    attempt: Attempt
    ended_at: float | None
    look: Look
    took: Took | None


@dataclass(frozen=True, slots=True)
class Wait:
    """A time in which nobody worked on a task: behind an attempt, until the next one began or, with None, to now."""

    after_attempt: int
    began_at: float
    ended_at: float | None


class TaskLine(NamedTuple):
    """A task and how it is shown: `depth` is how many rows are above its own, `title` what stands there, `took` is
    about its latest attempt."""

    task: Task
    depth: int
    title: str
    why: str
    attempts: tuple[AttemptLine, ...]
    spans: tuple[Span, ...]
    look: Look
    took: Took | None
    statement: StatementLine | None = None

    @property
    def below(self) -> int:
        """How many tasks with a row of their own are below."""
        return self.task.below.tasks if self.task.below else 0

    @property
    def waits(self) -> tuple[Wait, ...]:
        """The waits between attempts, and for the operator."""
        waits = (one for one in self.spans if one.kind is Kind.WAIT and (one.end is not None or one.asks))
        return tuple(Wait(one.number, one.start, one.end) for one in waits)


@dataclass(frozen=True, slots=True)
class Attention:
    """A task that somebody has to look at: the exact ask, since when, and how many open tasks it holds up."""

    task_id: str
    ask: str
    since: float | None
    holds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Counts of the tasks that are not past, and of those that are. `unchecked` ones are completed, and nothing that
    they claim could be checked."""

    tasks: int
    by_state: dict[State, int]
    needs_operator: int
    verified: int
    contradicted: int
    unchecked: int
    stale: int
    past: int


class Elsewhere(NamedTuple):
    """Another worktree of the repository in which something is not past, and how many of its tasks need somebody."""

    workspace: str
    tasks: int
    needs_operator: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A session as it stood at `generated_at`. Tasks are in preorder, siblings in the order first seen."""

    tree: Tree
    workspace: str
    generated_at: float
    verdict: str
    summary: Summary
    attention: tuple[Attention, ...]
    """The most pressing first."""
    tasks: tuple[TaskLine, ...]
    rows: tuple[TaskLine, ...]
    """The tasks that have a row of their own."""
    decisions: tuple[DecisionLine, ...]
    changes: Sequence[StateChange]
    """Every state change that the history holds; empty if nobody watched."""
    notices: tuple[Finding, ...]
    """Findings of files that belong to no task."""
    problems: tuple[tuple[str, str, str], ...]
    """What could not be read: (source, place, message) each."""
    worktrees: tuple[Elsewhere, ...] = ()

    @property
    def name(self) -> str:
        """What the workspace is called, with its host where that is another machine."""
        name = PurePath(self.workspace).name or self.workspace
        return f"{self.tree.host}: {name}" if self.tree.host else name

    def branches_with(self, holds: Callable[[Task], bool]) -> set[str]:
        """Ids of the tasks for which something holds, or for one below them."""
        branches: set[str] = set()
        for line in reversed(self.tasks):
            task = line.task
            if task.task_id in branches or holds(task):
                branches.add(task.task_id)
                if task.parent_id is not None:
                    branches.add(task.parent_id)
        return branches

    def decisions_by_task(self) -> dict[str, list[DecisionLine]]:
        """The decisions on each task that has any, in their order."""
        decided: dict[str, list[DecisionLine]] = {}
        for decision in self.decisions:
            decided.setdefault(decision.task_id, []).append(decision)
        return decided


def account_of(
    tree: Tree,
    changes: Sequence[StateChange],
    *,
    workspace: str,
    now: float,
    decisions: Sequence[DecisionLine] = (),
    problems: Sequence[tuple[str, str, str]] = (),
    worktrees: Sequence[Elsewhere] = (),
    statements: Mapping[str, StatementLine] = MappingProxyType({}),
) -> Account:
    """The session in a workspace (its absolute path) as the tree has it `now`, in seconds since the epoch.

    `changes` are the state changes of its past, oldest first; `statements` what was signed about tasks, by their ids.
    """
    summary, lines = _summary(tree), tuple(_lines(tree, now, statements))
    asking_there = sum(one.needs_operator for one in worktrees)
    lied = sum(task.past and task.contradicted for task in tree.tasks.values())
    return Account(
        tree=tree,
        workspace=workspace,
        generated_at=now,
        verdict=" ".join(_verdict(summary, len(problems), history_words(tree), asking_there, lied)),
        summary=summary,
        attention=tuple(_attention(tree)),
        tasks=lines,
        rows=tuple(line for line in lines if not line.task.shares_row),
        decisions=tuple(decisions),
        changes=changes,
        notices=tuple(tree.notices),
        problems=tuple(problems),
        worktrees=tuple(worktrees),
    )


def _summary(tree: Tree) -> Summary:
    tasks = [task for task in tree.tasks.values() if not task.past]
    now = sums_of(tasks)
    return Summary(
        tasks=now.tasks,
        by_state={state: now.states[state] for state in State if now.states.get(state)},
        needs_operator=now.needs_operator,
        verified=now.verdicts.get(Verdict.VERIFIED, 0),
        contradicted=now.verdicts.get(Verdict.CONTRADICTED, 0),
        unchecked=sum(task.state is State.COMPLETED and task.verdict is None and not task.shares_row for task in tasks),
        stale=now.stale,
        past=tree.totals.tasks - now.tasks,
    )


def _attention(tree: Tree) -> Iterator[Attention]:
    for task in tree.asking():
        yield Attention(task.task_id, task.ask or "", stands_since(task), task.open_below)
    silent = sorted(
        (task for task in tree.tasks.values() if task.stale and not (task.past or task.shares_row)),
        key=lambda task: task.alive_at or 0.0,
    )
    for task in silent:
        if not task.needs_operator:
            ask = "it works and gives no sign of life: check whether it still runs"
            yield Attention(task.task_id, ask, stands_since(task), task.open_below)


def _lines(tree: Tree, now: float, statements: Mapping[str, StatementLine]) -> Iterator[TaskLine]:
    depths: dict[str | None, int] = {None: 0}
    """By task, how many rows are above those of its children."""
    for task, _ in tree.preorder():
        depth = depths[task.parent_id]
        depths[task.task_id] = depth + (not task.shares_row)
        yield _line(tree, task, depth, now, statements.get(task.task_id))


def _line(tree: Tree, task: Task, depth: int, now: float, statement: StatementLine | None) -> TaskLine:
    chain = chain_name(task, [tree.tasks[above] for above in chain_above(tree.tasks, task)])
    return TaskLine(
        task=task,
        depth=depth,
        title=f"{chain} · {task.title}" if chain else task.title,
        why=why_at(task, tree.now),
        attempts=tuple(
            AttemptLine(one, ended_at(task, one), look_of_attempt(task, one), took(task, one, now))
            for one in task.attempts
        ),
        spans=tuple(spans_of(task)),
        look=look(task),
        took=took_last(task, now),
        statement=statement,
    )


def _verdict(summary: Summary, unseen: int, history: str, asking_there: int, lied: int) -> Iterator[str]:
    """The state of a session in our own words and numbers: `unseen` places could not be read, `history` says what is
    past, so many tasks of other worktrees need somebody, and so many of history have `lied`."""
    there = f"{plural(asking_there, 'task')} in other worktrees"
    if not summary.tasks + summary.past:
        yield "No handoffs or returns were found."
        yield from [f"{history}."] if history else []
        if unseen:
            yield f"{plural(unseen, 'place')} could not be read."
        if asking_there:
            yield f"{there} {'needs' if asking_there == 1 else 'need'} a human."
        return
    completed = summary.by_state.get(State.COMPLETED, 0)
    lying = completed - summary.verified - summary.unchecked
    parts = [
        f"{count:,} {words}"
        for count, words in (
            (summary.verified, "verified"),
            (lying, "contradicted by the evidence"),
            (summary.unchecked, "with nothing that could be verified"),
        )
        if count
    ]
    done = f"{completed:,} done ({', '.join(parts)})" if parts else "none done"
    past = f", and {summary.past:,} of history" if summary.past else ""
    past += f" ({lied:,} of it with a false claim)" if lied else ""
    yield f"{plural(summary.tasks, 'task')}, {done}{past}." if summary.tasks else f"No new tasks{past}."
    counted = ((summary.by_state.get(state, 0), words) for state, words in _COUNTED.items())
    others = [f"{count:,} {several if count > 1 else one}" for count, (one, several) in counted if count]
    if others:
        yield f"{', '.join(others)}."
    elsewhere = summary.contradicted - lying
    if elsewhere:
        yield f"{elsewhere:,} that returned a part {'claims' if elsewhere == 1 else 'claim'} something false."
    if summary.stale:
        yield f"{summary.stale:,} of the working ones {'is' if summary.stale == 1 else 'are'} silent for too long."
    if unseen:
        yield f"{plural(unseen, 'place')} could not be read."
    yield from [f"{history}."] if history else []
    needs, seen = summary.needs_operator, " that could be seen" if unseen else ""
    also = f"; {there} {'does' if asking_there == 1 else 'do'}" if asking_there else ""
    new = " new" if summary.past else ""
    who = f"{needs:,} {'needs' if needs == 1 else 'need'}" if needs else f"Nothing{new}{seen} needs"
    yield f"{who} a human{also}."
