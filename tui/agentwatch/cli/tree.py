"""The command that prints the delegation tree."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Any, Final

from agentwatch.cli.command import OF_HOSTS, PLACES, SESSION, argument, command, flag
from agentwatch.cli.shared import print_workspaces
from agentwatch.delegation.task import Shown, Task, sums_of
from agentwatch.errors import UsageError
from agentwatch.monitor import Monitor
from agentwatch.sources import complain_of
from agentwatch.text import clean, say, summary
from agentwatch.view.order import Group, Order, chain_name
from agentwatch.view.query import Found, found_in, parse
from agentwatch.view.words import in_line, plural, question_at, why_at

_LEVELS: Final = 40
"""Levels that are indented."""


@command(
    PLACES,
    flag("--json", "print the documented JSON (schema_version 1)"),
    flag("--fail", "exit with 1 when a task needs the operator, or not all can be read"),
    argument(
        "--where", "QUERY", "only the tasks that match, with those above them: 'state:failed since:1h'", default=""
    ),
    SESSION,
    exit_codes=OF_HOSTS,
)
def tree(options: Namespace) -> int:
    """Print the delegation tree of a workspace once; of several, each below its path."""
    return print_workspaces(options, print_tree)


def print_tree(monitor: Monitor, options: Namespace, say_document: Callable[[Any], None]) -> int:
    """Print the tree of a monitor that has loaded: all of it, or what a query finds, with the tasks above that. Returns
    1 with `--fail` where a task needs the operator, or one that cannot be seen might. Raises UsageError."""
    tree, query = monitor.tree, parse(options.where)
    if query.fault:
        raise UsageError(f"--where: {query.fault}\ntry: agentwatch help find")
    found = found_in(tree, query, tree.now) if query else None
    if options.json:
        from agentwatch.view.document import tree_document  # pydantic takes a while to load

        say_document(tree_document(tree, monitor.directory, monitor.problems, found, dict(monitor.settings.prices)))
    else:
        order = Order(tree)
        order.apply(tree.tasks, tree.now)
        for row in order.rows(shown=None if found is None else found.shown):
            if isinstance(row.row_id, Group):
                say(f"{row.row_id.name}  {order.tally(row.row_id).words(tree.now)[0]}")
            else:
                task = tree.tasks[row.row_id]
                say(_line(task, row.depth, chain_name(tree.tasks, task), tree.now))
        say(" ".join(filter(None, _last_line(monitor, found))))
    complain_of(monitor.problems)
    asks = tree.totals.needs_operator if found is None else any(one.needs_operator for one in found.matches.values())
    return 1 if options.fail and (asks or monitor.problems) else 0


def _line(task: Task, depth: int, chain: str, now: float) -> str:
    name = f"{chain} · {task.title}" if chain else task.title
    parts = [
        f"{'  ' * min(depth, _LEVELS)}{task.shown.glyph} {summary(name, 80)}",
        task.shown.word + (", accepted" if task.is_accepted else ""),
        f"({clean(why_at(task, now), 200)})" if task.shown in (Shown.SILENT, Shown.GONE) or task.handoff_fault else "",
        f"attempt {task.attempt}" if task.attempt > 1 else "",
        f"[{clean(task.agent, 40)}]" if task.agent else "",
        f"NEEDS YOU: {in_line(task, question_at(task, now), 120)}" if task.ask else "",
    ]
    return "  ".join(filter(None, parts))


def _last_line(monitor: Monitor, found: Found | None) -> Iterator[str]:
    if found is not None:
        yield f"{sums_of(found.matches.values()).tasks:,} found."
    if monitor.tree.lost_since is not None:
        yield f"{clean(monitor.host)} cannot be reached."
    from agentwatch.report.account import verdict_of  # what needs JSON needs no report

    yield verdict_of(monitor.tree, len(monitor.problems))
    if files := len({placed.path for placed in monitor.tree.notices}):
        yield f"{plural(files, 'other file')} with problems: `agentwatch check` tells them."
