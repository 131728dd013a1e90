"""Words that several faces share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentwatch.delegation import reasons
from agentwatch.delegation.task import Attempt, Basis, Retry, Task

BASES: Final = {
    Basis.PACKET: "its packet names the parent",
    Basis.SESSION: "the session store links the two",
    Basis.DELEGATION_PATH: "its delegation path leads through the parent",
    Basis.DOTTED_PREFIX: "the parent's id is the beginning of its id",
    Basis.DIRECTORY: "it lies in the parent's directory",
    Basis.NONE: "nothing names a parent",
}
"""Why a task stands below its parent."""

ADVICE: Final[Mapping[bool | None, str]] = {
    True: "the child recommends one",
    False: "the child advises against one",
    None: "",
}
"""What a child says of another retry."""


def plural(count: int, noun: str) -> str:
    """`1 task`, `2 tasks`, `1,024 tasks`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def retries_left(retry: Retry) -> str:
    """`1 of 2 left`."""
    return f"{retry.remaining} of {retry.max_retries} left"


def why_at(task: Task, now: float) -> str:
    """Why a task is in its state, at a moment (epoch seconds): of a stale one also for how long it has been silent, and
    whether its process is gone."""
    if not task.stale:
        return task.why
    silent = now - (now if task.alive_at is None else task.alive_at)
    process = reasons.process_words(task.run)
    words = [task.why, *([f"silent for {_long(silent)}"] if silent >= 0 else [])]
    return "; ".join(words if reasons.tells_process(task) else [*words, process])


def prompt(attempt: Attempt) -> str | None:
    """The first line of what a session was told, None where that is a handoff or not known; foreign."""
    run = attempt.run
    return run.prompt.opening if attempt.packet is None and run is not None and run.prompt is not None else None


def answer(attempt: Attempt) -> str | None:
    """The first line of what a session said in the end, None where that is a return or not known; foreign."""
    run = attempt.run
    return run.said.opening if attempt.result is None and run is not None and run.said is not None else None


def _long(seconds: float) -> str:
    """In the largest unit that fits."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"
