"""The tree without a screen: as text for people or as the documented JSON."""

from __future__ import annotations

import json
from typing import Final

from agentwatch.delegation.task import Task
from agentwatch.errors import UsageError
from agentwatch.monitor import Monitor
from agentwatch.sources.health import complain_of
from agentwatch.text import clean, say
from agentwatch.view.document import tree_document
from agentwatch.view.query import found_in, parse
from agentwatch.view.words import history_words, plural, why_at

_LEVELS: Final = 40
"""Levels that are indented; deeper ones say their depth instead."""


def print_tree(monitor: Monitor, *, as_json: bool, fail: bool, left_out: int = 0, where: str = "") -> int:
    """Print the tree of a monitor that has loaded. `left_out` tasks are of sessions that were not asked for.

    Only what the query `where` finds is printed, with the tasks above it. Returns 1 if `fail` is set and one of the
    tasks needs the operator, or one that cannot be seen might. Raises UsageError if something is wrong in the query.
    """
    tree, query = monitor.tree, parse(where)
    if query.fault:
        raise UsageError(f"--where: {query.fault}\ntry: agentwatch help find")
    found = found_in(tree, query) if query else None
    if as_json:
        # ASCII only: foreign characters reach the reader as escapes, the terminal never.
        say(json.dumps(tree_document(tree, str(monitor.workspace), monitor.problems, found), indent=2))
    else:
        for task, depth in tree.preorder():
            if found is None or task.task_id in found.shown:
                say(_line(task, depth, tree.now))
        of_all = "" if found is None or not tree.tasks else f"{len(found.matches):,} found of "
        say(of_all + _summary(monitor, left_out))
    complain_of(monitor.problems)
    asking = tree.totals.needs_operator if found is None else any(one.needs_operator for one in found.matches.values())
    return 1 if fail and (asking or monitor.problems) else 0


def _line(task: Task, depth: int, now: float) -> str:
    agent = f"  [{clean(task.agent, 40)}]" if task.agent else ""
    number = f"  attempt {task.attempt}" if task.attempt > 1 else ""
    said = f"{task.state}, contradicted" if task.contradicted else str(task.state)
    stale = f"  (stale: {clean(why_at(task, now), 200)})" if task.stale else ""
    ask = f"  NEEDS YOU: {clean(task.ask, 120)}" if task.ask else ""
    indent = "  " * depth if depth <= _LEVELS else "  " * _LEVELS + f"›{depth} "
    return f"{indent}{task.glyph} {clean(task.title, 80)}  {said}{stale}{number}{agent}{ask}"


def _summary(monitor: Monitor, left_out: int) -> str:
    totals = monitor.tree.totals
    files = len(monitor.tree.troubled)
    noted = f"; {plural(files, 'other file')} with problems: `agentwatch check` tells them" if files else ""
    if not totals.tasks:
        where = clean(str(monitor.workspace))
        if left_out:
            verb = "is" if left_out == 1 else "are"
            return f"no such session in {where}: {plural(left_out, 'task')} {verb} older, or of another session{noted}"
        return f"no handoffs or returns in {where}{noted}"
    history = history_words(monitor.tree)
    old = f"; {history}: see `agentwatch pending --past`" if history else ""
    states = ", ".join(f"{count} {state}" for state, count in sorted(totals.states.items(), key=lambda item: -item[1]))
    return f"{plural(totals.tasks, 'task')}: {states}; {totals.needs_operator} need you{old}{noted}"
