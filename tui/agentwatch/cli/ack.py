"""The command that puts aside what tasks ask."""

from __future__ import annotations

import time
from argparse import Namespace

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import PATH, argument, command, flag, seconds
from agentwatch.composition import known_desk, scanned, shelf_of
from agentwatch.config import load
from agentwatch.delegation.asks import mark_of
from agentwatch.errors import ExitCode, UsageError
from agentwatch.sources import complain_of
from agentwatch.text import clean, exact, quoted, say
from agentwatch.view.times import ago, clock
from agentwatch.view.words import plural


@command(
    argument("task", "TASK", "the task id; what is below it is put aside, too; with --undo, PATH", nargs="?"),
    PATH,
    flag("--undo", "take back what was put aside last, here or on the screen"),
    argument("--for", "TIME", "ask again after this time at the latest: 30m, 12h, 7d", type=seconds, dest="seconds"),
    exit_codes="exit codes: 0 put aside, or taken back, 1 nothing was, 2 wrong usage, or nothing can be written",
)
def ack(options: Namespace) -> int:
    """Acknowledge what a task asks: it asks no more until it changes. With --for, only snooze it. This approves
    nothing, and no agent is told.
    """
    if options.task is None and not options.undo:
        raise UsageError("name a task\ntry: agentwatch pending, which lists what needs you")
    workspace, now = workspace_at(options.task or "." if options.undo else options.path), time.time()
    shelf = shelf_of(workspace)
    shelf.read_changes()
    if options.undo:
        last = shelf.undo()
        if last is None:
            say("there is nothing to undo")
            return ExitCode.NOT
        say(f"undone: {plural(len(last.tasks), 'task')} {last.did} {ago(last.at, now)}")
        for task_id in last.tasks:
            say(f"  {exact(task_id, 200)}")
        return ExitCode.DONE
    monitor = scanned(workspace, load(), desk=known_desk(workspace), requests=True)
    complain_of(monitor.problems)
    if options.task not in monitor.tree.tasks:
        unseen = f"no task {quoted(options.task)} is seen in {clean(str(workspace))}"
        raise UsageError(f"{unseen}; `agentwatch pending` lists those that need you")
    tasks = [task for task, _ in monitor.tree.preorder([options.task])]
    asking = [task for task in tasks if task.question is not None and not task.acknowledged]
    if options.seconds is not None:
        asking = [task for task in asking if not task.past]
    if not asking:
        say("nothing is put aside: nothing asks there")
        return ExitCode.NOT
    for task in asking:
        say(f"{task.glyph} {exact(task.task_id, 200)}  attempt {task.attempt}, {task.own_state}")
        say(f"  {clean(task.question or '', 400)}")
    marks, did = {task.task_id: mark_of(task) for task in asking}, "acknowledged"
    if options.seconds is None:
        shelf.acknowledge(marks)
    else:
        shelf.snooze(marks, now + options.seconds)
        did = f"snoozed until {clock(now + options.seconds, now)}"
    say(f"{did}: {plural(len(marks), 'task')}; `agentwatch ack --undo` takes it back")
    return ExitCode.DONE
