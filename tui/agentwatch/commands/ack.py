"""`agentwatch ack`: puts asks aside, from a shell. Nothing of it is a decision, and nothing of it reaches an agent."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from agentwatch.arguments import did_you_mean
from agentwatch.commands.confirming import confirmed
from agentwatch.composition import Load, known_desk, shelf_of
from agentwatch.config import Settings
from agentwatch.delegation.asks import mark_of
from agentwatch.delegation.links import below
from agentwatch.delegation.task import Task
from agentwatch.errors import ExitCode, UsageError
from agentwatch.history.acknowledgements import Acknowledgements
from agentwatch.monitor import Monitor
from agentwatch.sources import complain_of
from agentwatch.text import clean, exact, quoted, say
from agentwatch.view.query import found_in, parse
from agentwatch.view.times import ago, clock
from agentwatch.view.words import plural

_LISTED: Final = 10
"""Tasks that are named."""


def acknowledge(
    workspace: Path,
    task_id: str | None,
    where: str,
    *,
    settings: Settings,
    load: Load,
    seconds: float | None,
    yes: bool,
) -> int:
    """Put a task aside, with all below it, or what a query finds: until it changes, at most for so many `seconds`.

    Returns 0, or 1 where nothing asks or the operator does not want to. Raises UsageError where it is not clear what is
    meant, and AcknowledgeError where it cannot be written.
    """
    query = parse(where)
    if query.fault:
        raise UsageError(f"--where: {query.fault}\ntry: agentwatch help find")
    if task_id is None and not query:
        raise UsageError("name a task, or say --where QUERY\ntry: agentwatch pending, which lists what needs you")
    shelf = _writable(workspace, settings)
    if task_id is None and not yes and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("there is no terminal to ask on; say --yes")
    monitor = load(workspace, settings, desk=known_desk(workspace))
    tasks = _below(monitor, task_id) if task_id is not None else list(found_in(monitor.tree, query).matches.values())
    complain_of(monitor.problems)
    asking = [task for task in tasks if task.question is not None and not task.acknowledged]
    if seconds is not None:
        asking = [task for task in asking if not task.past]
    if not asking:
        say("nothing is put aside: nothing asks there")
        return ExitCode.NOT
    _list(
        f"{task.glyph} {exact(task.task_id, 200)}  attempt {task.attempt}, {task.own_state}\n"
        f"  {clean(task.question or '', 400)}"
        for task in asking
    )
    if task_id is None and not yes:
        does = "asks no more until it changes" if len(asking) == 1 else "ask no more until they change"
        say(f"{plural(len(asking), 'task')} {does}. This approves nothing and reaches no agent.")
        if not confirmed("Put aside?"):
            say("nothing is put aside")
            return ExitCode.NOT
    marks = {task.task_id: mark_of(task) for task in asking}
    now = time.time()
    if seconds is None:
        shelf.acknowledge(marks)
        did = "acknowledged"
    else:
        shelf.snooze(marks, now + seconds)
        did = f"snoozed until {clock(now + seconds, now)}"
    say(f"{did}: {plural(len(marks), 'task')}; `agentwatch ack --undo` takes it back")
    return ExitCode.DONE


def undo(workspace: Path, settings: Settings) -> int:
    """Take back what was put aside last, on the screen or here. Returns 0, or 1 where there is nothing."""
    last = _writable(workspace, settings).undo()
    if last is None:
        say("there is nothing to undo")
        return ExitCode.NOT
    say(f"undone: {plural(len(last.tasks), 'task')} {last.did} {ago(last.at, time.time())}")
    _list(f"  {exact(task_id, 200)}" for task_id in last.tasks)
    return ExitCode.DONE


def _writable(workspace: Path, settings: Settings) -> Acknowledgements:
    if settings.read_only:
        raise UsageError("your settings say read_only: nothing is put aside")
    shelf = shelf_of(workspace, settings)
    shelf.read_changes()
    return shelf


def _below(monitor: Monitor, task_id: str) -> list[Task]:
    """A task and what is below it."""
    tasks = monitor.tree.tasks
    if task_id not in tasks:
        meant = did_you_mean(task_id, tasks)
        unseen = f"no task {quoted(task_id)} is seen in {clean(str(monitor.workspace))}"
        raise UsageError(f"{unseen}{meant and f'; {clean(meant)}'}; `agentwatch pending` lists those that need you")
    return [tasks[one] for one in (task_id, *below(tasks, task_id))]


def _list(lines: Iterable[str]) -> None:
    lines = list(lines)
    for line in lines[:_LISTED]:
        say(line)
    if len(lines) > _LISTED:
        say(f"  and {len(lines) - _LISTED:,} more")
