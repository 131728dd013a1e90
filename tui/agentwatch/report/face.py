"""`agentwatch report`: makes the account of a workspace and writes it if it was asked for, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from agentwatch.delegation.observation import Requested
from agentwatch.delegation.tree import DelegationTree
from agentwatch.history.export import write_new
from agentwatch.history.log import StateChange, changes
from agentwatch.history.store import History
from agentwatch.history.story import story
from agentwatch.monitor import Monitor, rules_of
from agentwatch.report.account import Account, DecisionLine, Elsewhere, account_of
from agentwatch.report.document import document
from agentwatch.report.html import html
from agentwatch.report.markdown import markdown
from agentwatch.sources.health import complain_of
from agentwatch.text import say

FORMATS: Final[dict[str, Callable[[Account], str]]] = {"md": markdown, "json": document, "html": html}


def write_report(
    monitor: Monitor, format_: str | None, output: str | None, *, now: float, others: Sequence[Monitor] = ()
) -> int:
    """Write the report of a monitor that has loaded, to `output` or, with None, to standard output. It counts what asks
    in `others`, of other worktrees.

    Returns 1 if not all could be seen, else 0. `format_` is one of `FORMATS`; None goes by the ending of the file,
    and is Markdown where that says nothing. Raises UsageError if the file is there already, or cannot be written.
    """
    if format_ is None:
        ending = Path(output).suffix.removeprefix(".").lower() if output else ""
        format_ = {"htm": "html"}.get(ending, ending if ending in FORMATS else "md")
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
    workspace = str(monitor.workspace)
    problems = monitor.problems
    past = _changes(monitor, now)
    worktrees = [Elsewhere(str(one.workspace), one.tree.totals.tasks, one.tree.totals.needs_operator) for one in others]
    account = account_of(
        monitor.tree, past, workspace=workspace, now=now, decisions=decided, problems=problems, worktrees=worktrees
    )
    text = FORMATS[format_](account)
    if output is None:
        say(text.removesuffix("\n"))
    else:
        write_new(Path(output), [text])
    complain_of(monitor.problems)
    return 1 if problems else 0


def _changes(monitor: Monitor, now: float) -> Sequence[StateChange]:
    """What the history, the sessions, the decisions and the requests tell, by the same settings as the tree."""
    with closing(History.open_read_only(monitor.workspace)) as history:
        # The tree has these requests, too, and others.
        files = [one for one in history.observations() if not isinstance(one, Requested)]
    told = [*files, *monitor.tree.runs, *monitor.tree.requests, *monitor.tree.decisions]
    told_changes = changes(story(told, now), DelegationTree(rules_of(monitor.settings), remembers=True))
    return tuple(one for one in told_changes if one.task_id not in monitor.tree.left_out)
