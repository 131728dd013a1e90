"""`agentwatch report`: makes the account of each workspace and writes it if it was asked for, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.delegation.events import Event, Gone, Seen, Unreadable
from agentwatch.delegation.tree import Tree
from agentwatch.errors import UsageError
from agentwatch.history.log import StateChange, state_changes, story
from agentwatch.history.recording import write_new
from agentwatch.history.store import History
from agentwatch.monitor import Monitor
from agentwatch.report.account import Account, DecisionLine, Elsewhere, StatementLine, account_of
from agentwatch.report.document import document, documents
from agentwatch.report.html import html
from agentwatch.report.markdown import markdown
from agentwatch.sources import complain_of
from agentwatch.state import is_there, state_directory
from agentwatch.text import say

FORMATS: Final[dict[str, Callable[[Account], str]]] = {"md": markdown, "json": document, "html": html}


class Reported(NamedTuple):
    """A workspace that is reported: a monitor that has loaded, what is known of its past, and monitors of other
    worktrees, of which only counts are told."""

    monitor: Monitor
    past: Sequence[Event]
    worktrees: Sequence[Monitor] = ()


def past_of(workspace: Path) -> Sequence[Event]:
    """What the history of a workspace of this machine tells. Blocks."""
    return History(state_directory(workspace)).recall().events


def write_report(reported: Sequence[Reported], format_: str | None, output: str | None, *, now: float) -> int:
    """Write the report of some workspaces, one behind the other, to `output` or, with None, to standard output.

    Returns 1 if not all could be seen, else 0. `format_` is one of `FORMATS`; None goes by the ending of the file,
    and is Markdown where that says nothing. Raises UsageError if the file is there already, or cannot be written.
    """
    if format_ is None:
        ending = Path(output).suffix.removeprefix(".").lower() if output else ""
        format_ = {"htm": "html"}.get(ending, ending if ending in FORMATS else "md")
    if len(reported) > 1 and format_ == "html":
        raise UsageError("a page of HTML is about one workspace: name one, or write Markdown or JSON")
    accounts = [_account(one, now) for one in reported]
    is_list = len(accounts) > 1 and format_ == "json"
    text = documents(accounts) if is_list else "\n".join(map(FORMATS[format_], accounts))
    if output is None:
        say(text.removesuffix("\n"))
    else:
        write_new(Path(output), [text])
    problems = [problem for one in reported for problem in one.monitor.problems]
    complain_of(problems)
    return 1 if problems else 0


def _account(reported: Reported, now: float) -> Account:
    monitor = reported.monitor
    decided = [
        DecisionLine(
            task_id=task.task_id,
            attempt=attempt.number,
            action=decision.action.value,
            note=decision.note,
            operator=decision.operator,
            at=decision.at,
            receipt=decision.receipt.words + ("; it has expired since" if decision.expired else ""),
        )
        for task, _ in monitor.tree.preorder()
        for attempt in task.attempts
        for decision in attempt.decisions
    ]
    worktrees = [
        Elsewhere(str(one.workspace), one.tree.totals.tasks, one.tree.totals.needs_operator)
        for one in reported.worktrees
    ]
    return account_of(
        monitor.tree,
        _changes(reported, now),
        workspace=monitor.directory,
        now=now,
        decisions=decided,
        problems=monitor.problems,
        worktrees=worktrees,
        statements={} if monitor.host else _statements(monitor),
    )


def _statements(monitor: Monitor) -> dict[str, StatementLine]:
    """What was signed last about each task, as far as its signature holds."""
    state = state_directory(monitor.workspace)
    if not is_there(state / "statements"):
        return {}
    # Signatures take a while to load.
    from agentwatch.decisions.errors import KeyProblemError
    from agentwatch.decisions.keys import Keys
    from agentwatch.decisions.statement import kept, subject_of

    lines = {}
    tasks = monitor.tree.tasks
    try:
        signed = kept(state, tasks, Keys().trust())
    except KeyProblemError:
        return {}
    for task_id, (statement, sha256, keyid) in signed.items():
        now = tuple((one["name"], one["digest"]["sha256"]) for one in subject_of(tasks[task_id]))
        is_current = now == statement.subject
        lines[task_id] = StatementLine(sha256, keyid, statement.made_at, statement.attempt, statement.state, is_current)
    return lines


def _changes(reported: Reported, now: float) -> Sequence[StateChange]:
    """What the history, the sessions, the decisions and the requests tell, by the same rules as the tree."""
    tree = reported.monitor.tree
    # All others the tree has as they are now.
    files = [one for one in reported.past if isinstance(one, Seen | Gone | Unreadable)]
    told = [*files, *tree.runs.all.values(), *tree.requests, *tree.decisions]
    rules = tree.rules._replace(history_before=float("-inf"))
    return tuple(state_changes(story(told, now), Tree(rules, remembers=True)))
