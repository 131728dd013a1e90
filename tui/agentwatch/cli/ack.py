"""Acknowledge what a task asks: it asks no more until it changes. With --for, only snooze it. This approves
nothing, and no agent is told.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from agentwatch.arguments import did_you_mean, workspace_at
from agentwatch.cli.command import PATH, YES, argument, flag, seconds
from agentwatch.cli.shared import confirmed, is_on_terminal, use_task_as_path
from agentwatch.composition import known_desk, scanned, shelf_of
from agentwatch.config import Settings, load
from agentwatch.delegation.asks import mark_of
from agentwatch.delegation.task import Task
from agentwatch.errors import ExitCode, UsageError
from agentwatch.history.acknowledgements import Acknowledgements
from agentwatch.monitor import Monitor
from agentwatch.sources import complain_of
from agentwatch.text import clean, exact, quoted, say
from agentwatch.view.query import found_in, parse
from agentwatch.view.times import ago, clock
from agentwatch.view.words import plural

ARGUMENTS: Final = (
    argument("task", "TASK", "the task id; what is below it is put aside, too", offers="tasks", nargs="?"),
    PATH,
    argument("--where", "QUERY", "all that match instead: 'is:needs-you since:1d'", default=""),
    flag("--undo", "take back what was put aside last, here or on the screen"),
    argument("--for", "TIME", "ask again after this time at the latest: 30m, 12h, 7d", type=seconds, dest="seconds"),
    YES,
)
EXIT_CODES: Final = "exit codes: 0 put aside, or taken back, 1 nothing was, 2 wrong usage, or nothing can be written"
_LISTED: Final = 10
"""Tasks that are named."""


def run(options: Namespace) -> int:
    """Put aside or take back. Returns 0, or 1 where nothing is changed. Raises UsageError and AcknowledgeError."""
    if options.undo or options.where:
        use_task_as_path(options, "name a task, or say --where QUERY or --undo: one of the three")
    if options.undo and (options.where or options.seconds is not None):
        raise UsageError("--undo takes back what was put aside last; it goes with nothing else")
    workspace, settings = workspace_at(options.path), load()
    return _undo(workspace) if options.undo else _acknowledge(workspace, settings, options)


def _acknowledge(workspace: Path, settings: Settings, options: Namespace) -> int:
    """Put a task aside, with all below it, or what a query finds: until it changes, or for some time at most."""
    task_id, query = options.task, parse(options.where)
    if query.fault:
        raise UsageError(f"--where: {query.fault}\ntry: agentwatch help find")
    if task_id is None and not query:
        raise UsageError("name a task, or say --where QUERY\ntry: agentwatch pending, which lists what needs you")
    shelf = _shelf(workspace)
    asks = task_id is None and not options.yes
    if asks and not is_on_terminal():
        raise UsageError("there is no terminal to ask on; say --yes")
    monitor = scanned(workspace, settings, desk=known_desk(workspace), requests=True)
    tasks = (
        _below(monitor, task_id)
        if task_id is not None
        else found_in(monitor.tree, query, monitor.tree.now).matches.values()
    )
    complain_of(monitor.problems)
    asking = [task for task in tasks if task.question is not None and not task.acknowledged]
    if options.seconds is not None:
        asking = [task for task in asking if not task.past]
    if not asking:
        say("nothing is put aside: nothing asks there")
        return ExitCode.NOT
    _list(
        f"{task.glyph} {exact(task.task_id, 200)}  attempt {task.attempt}, {task.own_state}\n"
        f"  {clean(task.question or '', 400)}"
        for task in asking
    )
    if asks:
        does = "asks no more until it changes" if len(asking) == 1 else "ask no more until they change"
        say(f"{plural(len(asking), 'task')} {does}. This approves nothing and reaches no agent.")
        if not confirmed("Put aside?"):
            say("nothing is put aside")
            return ExitCode.NOT
    marks, now, did = {task.task_id: mark_of(task) for task in asking}, time.time(), "acknowledged"
    if options.seconds is None:
        shelf.acknowledge(marks)
    else:
        until = now + options.seconds
        shelf.snooze(marks, until)
        did = f"snoozed until {clock(until, now)}"
    say(f"{did}: {plural(len(marks), 'task')}; `agentwatch ack --undo` takes it back")
    return ExitCode.DONE


def _undo(workspace: Path) -> int:
    """Take back what was put aside last, on the screen or here."""
    last = _shelf(workspace).undo()
    if last is None:
        say("there is nothing to undo")
        return ExitCode.NOT
    say(f"undone: {plural(len(last.tasks), 'task')} {last.did} {ago(last.at, time.time())}")
    _list(f"  {exact(task_id, 200)}" for task_id in last.tasks)
    return ExitCode.DONE


def _shelf(workspace: Path) -> Acknowledgements:
    shelf = shelf_of(workspace)
    shelf.read_changes()
    return shelf


def _below(monitor: Monitor, task_id: str) -> list[Task]:
    """A task and what is below it."""
    tasks = monitor.tree.tasks
    if task_id not in tasks:
        meant = did_you_mean(task_id, tasks)
        unseen = f"no task {quoted(task_id)} is seen in {clean(str(monitor.workspace))}"
        raise UsageError(f"{unseen}{meant and f'; {clean(meant)}'}; `agentwatch pending` lists those that need you")
    return [task for task, _ in monitor.tree.preorder([task_id])]


def _list(lines: Iterable[str]) -> None:
    lines = list(lines)
    for line in lines[:_LISTED]:
        say(line)
    if len(lines) > _LISTED:
        say(f"  and {len(lines) - _LISTED:,} more")
