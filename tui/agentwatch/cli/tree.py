"""Print the delegation tree of a workspace once; of several, each below its path."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from agentwatch.cli.command import PLACES, SESSION, argument, flag
from agentwatch.cli.shared import print_workspaces
from agentwatch.composition import known_desk
from agentwatch.config import load
from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.task import State, Task, sums_of
from agentwatch.errors import UsageError
from agentwatch.monitor import Monitor
from agentwatch.sources import complain_of
from agentwatch.text import clean, say
from agentwatch.view.plain import summary
from agentwatch.view.query import found_in, parse
from agentwatch.view.words import history_words, in_line, plural, question_at, state_words, why_at

ARGUMENTS: Final = (
    PLACES,
    flag("--json", "print the documented JSON (schema_version 1)"),
    flag("--fail", "exit with 1 when a task needs the operator, or not all can be read"),
    argument(
        "--where", "QUERY", "only the tasks that match, with those above them: 'state:failed since:1h'", default=""
    ),
    SESSION,
)
_LEVELS: Final = 40
"""Levels that are indented; deeper ones say their depth instead."""


def run(options: Namespace) -> int:
    """Print workspaces. Returns 1 with `--fail` where a task needs the operator, or one that cannot be seen might."""
    return print_workspaces(options, load(), print_tree, known_desk)


def print_tree(monitor: Monitor, options: Namespace, say_document: Callable[[Any], None]) -> int:
    """Print the tree of a monitor that has loaded: all of it, or what a query finds, with the tasks above that.

    Raises UsageError if something is wrong in the query.
    """
    tree, query = monitor.tree, parse(options.where)
    if query.fault:
        raise UsageError(f"--where: {query.fault}\ntry: agentwatch help find")
    found = found_in(tree, query, tree.now) if query else None
    if options.json:
        from agentwatch.view.document import tree_document  # pydantic takes a while to load

        say_document(tree_document(tree, monitor.directory, monitor.problems, found, dict(monitor.settings.prices)))
    else:
        from agentwatch.view.order import Group, Order, chain_name, end_of_chain

        order = Order(tree)
        order.apply(tree.tasks, tree.now)
        for row in order.rows(shown=None if found is None else found.shown):
            if isinstance(row.row_id, Group):
                say(f"{row.row_id.name}  {order.tally(row.row_id).words(tree.now)[0]}")
            else:
                task = tree.tasks[row.row_id]
                say(_line(task, row.depth, chain_name(tree.tasks, task), tree.now))
        rows = None if found is None else {end_of_chain(tree.tasks, task_id) for task_id in found.matches}
        say(_summary(monitor, options, None if rows is None else len(rows)))
    complain_of(monitor.problems)
    asking = tree.totals.needs_operator if found is None else any(one.needs_operator for one in found.matches.values())
    return 1 if options.fail and (asking or monitor.problems) else 0


def _line(task: Task, depth: int, chain: str, now: float) -> str:
    agent = f"  [{clean(task.agent, 40)}]" if task.agent else ""
    number = f"  attempt {task.attempt}" if task.attempt > 1 else ""
    said = state_words(task.state, contradicted=task.contradicted) + (", accepted" if task.is_accepted else "")
    silent = f"  (silent: {clean(why_at(task, now), 200)})" if task.stale else ""
    ask = f"  NEEDS YOU: {in_line(task, question_at(task, now), 120)}" if task.ask else ""
    indent = "  " * depth if depth <= _LEVELS else "  " * _LEVELS + f"›{depth} "
    title = summary(f"{chain} · {task.title}" if chain else task.title, 80)
    return f"{indent}{task.glyph} {title}  {said}{silent}{number}{agent}{ask}"


def _summary(monitor: Monitor, options: Namespace, found: int | None) -> str:
    totals = monitor.tree.totals
    files = len({placed.path for placed in monitor.tree.notices})
    noted = f"; {plural(files, 'other file')} with problems: `agentwatch check` tells them" if files else ""
    if not totals.tasks:
        where = clean(monitor.directory)
        if monitor.tree.lost_since is not None:
            return f"nothing is known of {where} on {clean(monitor.host)}"
        chosen = ", or of the session that you chose" if options.session is not None else ""
        return f"no handoffs or returns in {where}{chosen}{noted}"
    history = history_words(monitor.tree)
    old = f"; {history}: see `agentwatch pending --past`" if history else ""
    now = sums_of(task for task in monitor.tree.tasks.values() if not task.past)
    past = f"{totals.tasks - now.tasks:,} of history" if now.tasks < totals.tasks else ""
    counted = plural(now.tasks, "task") + (past and f", and {past}")
    if found is not None:
        # What is found may be history, too.
        counted = f"{found:,} found of {plural(totals.tasks, 'task')}" + (past and f" ({past})")
    false = Counter[State]()
    for one, count in now.counts.items():
        false[one.state] += count if one.verdict is Verdict.CONTRADICTED else 0
    states = ", ".join(
        f"{count} {state}" + (f" ({false[state]} contradicted)" if false[state] else "")
        for state, count in sorted(now.states.items(), key=lambda item: (-item[1], item[0]))
    )
    silent = f"; {now.stale} silent" if now.stale else ""
    how = f": {states}" if states else ""
    lost = f"; {clean(monitor.host)} cannot be reached" if monitor.tree.lost_since is not None else ""
    return f"{counted}{how}{silent}; {now.needs_operator} need you{lost}{old}{noted}"
