"""How an account is said: the verdict in one paragraph, looks, times and spans. Pure functions for every format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentwatch.contracts.shapes import Severity, TodoStatus
from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.export import moment
from agentwatch.delegation.task import Basis, State

if TYPE_CHECKING:
    from agentwatch.report.shapes import AttemptLine, Summary, TaskLine


@dataclass(frozen=True, slots=True)
class Look:
    """Glyph and word, and the name of the colour: never colour alone."""

    glyph: str
    word: str
    color: str


STALE: Final = Look("◌", "stale", "stale")
CONTRADICTED: Final = Look("⚑", "contradicted", "contradicted")

VERDICTS: Final = {
    Verdict.CONTRADICTED: Look("⚑", "false", "contradicted"),
    Verdict.UNVERIFIABLE: Look("?", "unverifiable", "submitted"),
    Verdict.VERIFIED: Look("✓", "verified", "completed"),
}
"""In the order in which claims are told."""

SEVERITIES: Final = {
    Severity.ERROR: Look("✗", "error", "failed"),
    Severity.WARNING: Look("!", "warning", "partial"),
}

TODOS: Final = {
    TodoStatus.PENDING: Look("○", "pending", "submitted"),
    TodoStatus.IN_PROGRESS: Look("◐", "in progress", "working"),
    TodoStatus.DONE: Look("✓", "done", "completed"),
}

BASES: Final = {
    Basis.PACKET: "its packet names the parent",
    Basis.SESSION: "the session store links the two",
    Basis.DELEGATION_PATH: "its delegation path leads through the parent",
    Basis.DOTTED_PREFIX: "the parent's id is the beginning of its id",
    Basis.DIRECTORY: "it lies in the parent's directory",
    Basis.NONE: "nothing names a parent",
}

_COUNTED: Final = {
    State.PARTIAL: "returned a part",
    State.INVALID: "broke {its} contract",
    State.FAILED: "failed",
    State.BLOCKED: "{is} blocked",
    State.ESCALATED: "{is} escalated",
    State.RETRYING: "{is} to be tried again",
    State.WORKING: "{is} working",
    State.SUBMITTED: "{has} not begun",
    State.CANCELED: "{was} canceled",
}


def verdict_of(summary: Summary, *, unseen: int = 0) -> str:
    """The state of a session in one paragraph of our own words and numbers; `unseen` places could not be read."""
    return " ".join(_sentences(summary, unseen))


def _sentences(summary: Summary, unseen: int) -> Iterator[str]:
    if not summary.tasks:
        yield "No handoffs or returns were found."
        if unseen:
            yield f"{plural(unseen, 'place')} could not be read."
        return
    completed = summary.by_state.get(State.COMPLETED, 0)
    lying = completed - summary.verified - summary.unchecked
    parts = [
        f"{count:,} {words}"
        for count, words in (
            (summary.verified, "verified"),
            (lying, "contradicted by the evidence"),
            (summary.unchecked, "with nothing that could be verified"),
        )
        if count
    ]
    done = f"{completed:,} done ({', '.join(parts)})" if parts else "none done"
    yield f"{plural(summary.tasks, 'task')}, {done}."
    others = [_counted(state, count) for state in _COUNTED if (count := summary.by_state.get(state, 0))]
    if others:
        yield f"{', '.join(others)}."
    elsewhere = summary.contradicted - lying
    if elsewhere:
        yield f"{elsewhere:,} that returned a part {'claims' if elsewhere == 1 else 'claim'} something false."
    if summary.stale:
        yield f"{summary.stale:,} of the working ones {'is' if summary.stale == 1 else 'are'} silent for too long."
    if unseen:
        yield f"{plural(unseen, 'place')} could not be read."
    needs, seen = summary.needs_operator, " that could be seen" if unseen else ""
    yield f"{needs:,} {'needs' if needs == 1 else 'need'} a human." if needs else f"Nothing{seen} needs a human."


def _counted(state: State, count: int) -> str:
    one = count == 1
    words = {
        "is": "is" if one else "are",
        "has": "has" if one else "have",
        "was": "was" if one else "were",
        "its": "its" if one else "their",
    }
    return f"{count:,} {_COUNTED[state].format(**words)}"


def look_of(state: State) -> Look:
    """The look of an attempt's state."""
    return Look(state.glyph, state.value, state.value)


def look(task: TaskLine) -> Look:
    """The look of a task: contradicted and stale come before the state that they qualify."""
    if task.contradicted:
        return CONTRADICTED
    return STALE if task.stale else look_of(task.state)


def look_of_attempt(task: TaskLine, attempt: AttemptLine) -> Look:
    """The look of an attempt; what qualifies the task, or is seen of it below, shows on its last one."""
    is_last = attempt is task.attempts[-1]
    if is_last and (task.contradicted or task.stale or attempt.state is State.SUBMITTED):
        return look(task)
    return look_of(attempt.state)


def unclaimed(task: TaskLine) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The changes that no return claims, with what is known of who made them."""
    if task.unclaimed_changes:
        yield "changed, and not claimed", task.unclaimed_changes
    if task.unattributed_changes:
        yield "changed by this one or another", task.unattributed_changes


def clock(at: float | None) -> str:
    """A moment for people, in UTC: `2026-03-01 14:03:10`; `-` where it is not known."""
    stamp = moment(at)
    return stamp.replace("T", " ").removesuffix("Z") if stamp else "-"


def duration(seconds: float | None) -> str:
    """A span in its two largest units: `8s`, `3m 20s`, `2h 5m`, `12d 4h`; `-` for None."""
    if seconds is None:
        return "-"
    whole = max(int(seconds), 0)
    for (size, unit), (smaller, name) in (
        ((86_400, "d"), (3_600, "h")),
        ((3_600, "h"), (60, "m")),
        ((60, "m"), (1, "s")),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size}{unit} {rest}{name}" if rest else f"{whole // size}{unit}"
    return f"{whole}s"


def took(attempt: AttemptLine, now: float) -> str:
    """How long an attempt ran, or has been running; `-` where its beginning is not known."""
    if attempt.started_at is None:
        return "-"
    if attempt.ended_at is not None:
        return duration(attempt.ended_at - attempt.started_at)
    return f"{duration(now - attempt.started_at)} so far" if attempt.state.is_open else "-"


def plural(count: int, noun: str) -> str:
    """`1 task`, `2 tasks`, `1,024 tasks`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
