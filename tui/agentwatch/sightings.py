"""One task as a look at a workspace shows it, without that look where nothing has changed since the last one.

Agents ask about one task at a time, in a hook or with `wait`, and a look at 5,000 of them takes a second.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from agentwatch.config import Settings
from agentwatch.delegation.task import Attempt, State, Task, Version
from agentwatch.kept import answers, looks
from agentwatch.remote.codec import decoder, encoder
from agentwatch.sources.health import Problem

if TYPE_CHECKING:
    from agentwatch.composition import Load
    from agentwatch.kept.answers import Question
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
    key = answers.key_of(["task", str(workspace), repr(settings), str(inspects)], speaks=False)
    place = answers.place_of(key) if looks.is_installed() else ""
    kept = answers.read(place, key, _ask_git) if place else None
    if kept is not None and (known := _known(kept[1], task_id)) is not None:
        return known
    monitor: Monitor | None = None

    def look() -> bytes:
        nonlocal monitor
        monitor = load(workspace, settings, inspects=inspects)
        # The look has told until when it holds.
        looks.holds(math.inf)
        return _table(monitor)

    if place:
        from agentwatch.kept.keeping import remember

        remember(place, key, look)
    monitor = monitor or load(workspace, settings, inspects=inspects)
    return Sighted(monitor.tree.tasks.get(task_id), monitor.problems)


def _ask_git(workspace: str, questions: list[Question]) -> list[str]:
    # It takes a while to load.
    from agentwatch.evidence.plumbing import ask_again

    return ask_again(workspace, questions)


def _table(monitor: Monitor) -> bytes:
    """All tasks, each to be found by its id without reading the others."""
    encode, places, parts, at = encoder(Sighting), dict[str, tuple[int, int]](), list[bytes](), 0
    for task_id, task in monitor.tree.tasks.items():
        sighting = Sighting(task.own_state, task.question, task.latest.returned if task.latest is not None else None)
        parts.append(json.dumps(encode(sighting), separators=(",", ":")).encode())
        places[task_id] = at, len(parts[-1])
        at += len(parts[-1])
    head = json.dumps({"problems": [list(problem) for problem in monitor.problems], "places": places})
    return b"\n".join((head.encode(), b"".join(parts)))


def _known(table: bytes, task_id: str) -> Sighted | None:
    """A task of a table, None where the table cannot be read."""
    try:
        first, _, rest = table.partition(b"\n")
        head = json.loads(first)
        problems = [Problem(*problem) for problem in head["problems"]]
        place = head["places"].get(task_id)
        if place is None:
            return Sighted(None, problems)
        at, length = place
        sighting = cast("Sighting", decoder(Sighting)(json.loads(rest[at : at + length])))
    except (ValueError, KeyError, TypeError):
        return None
    return Sighted(sighting.task(task_id), problems)
