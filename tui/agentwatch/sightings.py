"""One task as a look at a workspace shows it, with no more of a look than that needs.

Agents ask about one task at a time, in a hook or with `wait`, while others write: to read and fold all of 5,000 takes
seconds each time. So only those documents are recognised that can speak of the task, and what is found is kept until
something changes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from agentwatch.config import Settings
from agentwatch.delegation.attempt import Attempt
from agentwatch.delegation.task import State, Task, Version
from agentwatch.history import schema
from agentwatch.kept import looks
from agentwatch.place import is_there, state_directory
from agentwatch.remembered import remembered
from agentwatch.remote.codec import decoder, encoder
from agentwatch.sources.health import Problem

if TYPE_CHECKING:
    from agentwatch.composition import Load
    from agentwatch.monitor import Monitor


class Sighting(NamedTuple):
    """What is told of a task: its own state, what is open about it, and its latest return."""

    own_state: State
    question: str | None
    returned: Version | None

    def task(self, task_id: str) -> Task:
        """The task, as far as that."""
        attempts = [Attempt(1, returned=self.returned)]
        return Task(task_id, title=task_id, own_state=self.own_state, question=self.question, attempts=attempts)


class Sighted(NamedTuple):
    """A task, None where there is none, and what could not be read."""

    task: Task | None
    problems: Sequence[Problem]


def sighted(workspace: Path, settings: Settings, task_id: str, load: Load, *, inspects: bool = False) -> Sighted:
    """A task as `load` shows it, which is called if need be. Of the task holds what a `Sighting` tells."""
    return remembered(
        ["task", task_id, str(workspace), repr(settings), str(inspects)],
        lambda: _look(workspace, settings, task_id, load, inspects=inspects),
        _written,
        lambda written: _known(written, task_id),
    )


def _look(workspace: Path, settings: Settings, task_id: str, load: Load, *, inspects: bool) -> Sighted:
    # What is known needs none of these, which take a while to load.
    from agentwatch.concerned import Concerned
    from agentwatch.observing import pruned_of

    # What others claim changes nothing about it. When its handoff was given tells which claims are true.
    wishes: dict[str, Any] = {"inspects": False, "dates": True} if inspects else {"inspects": False}
    concerned, history = Concerned(task_id), state_directory(workspace) / schema.NAME
    has_history = is_there(history)
    with looks.passing():
        while concerned.has_missed():
            monitor = load(workspace, settings, concerned=concerned, **wishes)
    task = monitor.tree.tasks.get(task_id)
    # One that is only named stands as those below it do, and a session asks about those that it has begun.
    is_whole = task is None or not (task.inferred or any(attempt.run for attempt in task.attempts))
    is_unsure = has_history and concerned.is_unsure
    where = os.path.realpath(workspace), sorted(pruned_of(settings)), settings.max_bytes
    # What could not be read may speak of it as soon as it can be.
    kept = [str(history), concerned.part] if has_history else None
    looks.passed_over([] if monitor.problems or is_unsure else [where, concerned.told(), kept])
    if is_unsure or not is_whole:
        monitor = load(workspace, settings, **wishes)
        task = monitor.tree.tasks.get(task_id)
    if inspects:
        check_claims(monitor, [task_id])
    # The look has told until when it holds.
    looks.holds(math.inf)
    return Sighted(task, monitor.problems)


def check_claims(monitor: Monitor, task_ids: Iterable[str]) -> None:
    """Check what some tasks claim, of a monitor that has looked and inspects nothing. Blocks."""
    # A hook checks nothing.
    from agentwatch.evidence.inspector import Inspector

    inspector, tree = Inspector(monitor.workspace, monitor.content, None, monitor.transcript), monitor.tree
    checks = inspector.check(inspector.news_of(tree, task_ids))
    tree.take_all([one.observed(0, tree.now) for one in checks])
    tree.settle()


def _written(sighted: Sighted) -> object:
    task, sighting = sighted.task, None
    if task is not None:
        returned = task.latest.returned if task.latest is not None else None
        sighting = encoder(Sighting)(Sighting(task.own_state, task.question, returned))
    return [sighting, [list(problem) for problem in sighted.problems]]


def _known(written: Any, task_id: str) -> Sighted:
    sighting, problems = written
    told = [Problem(*problem) for problem in problems]
    if sighting is None:
        return Sighted(None, told)
    return Sighted(cast("Sighting", decoder(Sighting)(sighting)).task(task_id), told)
