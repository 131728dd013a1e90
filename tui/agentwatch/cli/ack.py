"""The command that puts aside what tasks ask."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterable
from typing import Final

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import PATH, YES, argument, command, flag, seconds
from agentwatch.cli.shared import confirmed, require_yes, use_task_as_path
from agentwatch.composition import known_desk, scanned, shelf_of
from agentwatch.config import load
from agentwatch.delegation.asks import mark_of
from agentwatch.errors import ExitCode, UsageError
from agentwatch.history.acknowledgements import Acknowledgements
from agentwatch.sources import complain_of
from agentwatch.text import clean, exact, quoted, say
from agentwatch.view.query import found_in, parse
from agentwatch.view.times import ago, clock
from agentwatch.view.words import plural

_LISTED: Final = 10
"""Tasks that are named."""


@command(
    argument("task", "TASK", "the task id; what is below it is put aside, too", nargs="?"),
    PATH,
    argument("--where", "QUERY", "all that match instead: 'is:needs-you since:1d'", default=""),
    flag("--undo", "take back what was put aside last, here or on the screen"),
    argument("--for", "TIME", "ask again after this time at the latest: 30m, 12h, 7d", type=seconds, dest="seconds"),
    YES,
    exit_codes="exit codes: 0 put aside, or taken back, 1 nothing was, 2 wrong usage, or nothing can be written",
)
def ack(options: Namespace) -> int:
    """Acknowledge what a task asks: it asks no more until it changes. With --for, only snooze it. This approves
    nothing, and no agent is told.
    """
    query = parse(options.where)
    if options.undo or query:
        use_task_as_path(options, "name a task, or say --where QUERY or --undo: one of the three")
    if query.fault:
        raise UsageError(f"--where: {query.fault}\ntry: agentwatch help find")
    if options.task is None and not (options.undo or query):
        raise UsageError("name a task, or say --where QUERY\ntry: agentwatch pending, which lists what needs you")
    shelf = shelf_of(workspace_at(options.path))
    shelf.read_changes()
    if not options.undo:
        return _put_aside(options, shelf)
    last = shelf.undo()
    if last is None:
        say("there is nothing to undo")
        return ExitCode.NOT
    say(f"undone: {plural(len(last.tasks), 'task')} {last.did} {ago(last.at, time.time())}")
    _list(f"  {exact(task_id, 200)}" for task_id in last.tasks)
    return ExitCode.DONE


def _put_aside(options: Namespace, shelf: Acknowledgements) -> int:
    """Put a task aside, with all below it, or what a query finds: until it changes, or for some time at most."""
    if options.task is None:
        require_yes(options)
    workspace = workspace_at(options.path)
    monitor = scanned(workspace, load(), desk=known_desk(workspace), requests=True)
    complain_of(monitor.problems)
    if options.task is None:
        tasks = [*found_in(monitor.tree, parse(options.where)).matches.values()]
    elif options.task in monitor.tree.tasks:
        tasks = [task for task, _ in monitor.tree.preorder([options.task])]
    else:
        unseen = f"no task {quoted(options.task)} is seen in {clean(str(workspace))}"
        raise UsageError(f"{unseen}; `agentwatch pending` lists those that need you")
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
    if options.task is None and not options.yes:
        say(f"{plural(len(asking), 'task')} would ask no more. This approves nothing and reaches no agent.")
        if not confirmed("Put aside?"):
            say("nothing is put aside")
            return ExitCode.NOT
    marks, now, did = {task.task_id: mark_of(task) for task in asking}, time.time(), "acknowledged"
    if options.seconds is None:
        shelf.acknowledge(marks)
    else:
        shelf.snooze(marks, now + options.seconds)
        did = f"snoozed until {clock(now + options.seconds, now)}"
    say(f"{did}: {plural(len(marks), 'task')}; `agentwatch ack --undo` takes it back")
    return ExitCode.DONE


def _list(lines: Iterable[str]) -> None:
    lines = list(lines)
    for line in lines[:_LISTED]:
        say(line)
    if len(lines) > _LISTED:
        say(f"  and {len(lines) - _LISTED:,} more")
