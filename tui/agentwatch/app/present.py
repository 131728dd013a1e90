"""How the model is said on screen: glyph, word and colour of each state, durations, counts. Pure functions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, NamedTuple

from agentwatch.delegation.task import Below, State, Task


class Look(NamedTuple):
    """A state on screen: never colour alone. `color` names one of the theme's state colours."""

    glyph: str
    word: str
    color: str


LOOKS: Final = {state: Look(state.glyph, state.value, f"state-{state.value}") for state in State}
STALE: Final = Look("◌", "stale", "state-stale")
CONTRADICTED: Final = Look("⚑", "contradicted", "state-contradicted")


def look(task: Task) -> Look:
    """The look of a task: stale and contradicted come before the state they qualify."""
    if task.contradicted:
        return CONTRADICTED
    if task.stale:
        return STALE
    return LOOKS[task.state]


def worst_look(below: Below) -> Look | None:
    """The look of the worst that waits for somebody below; None where nothing does."""
    worst = below.worst_waiting
    return CONTRADICTED if worst == CONTRADICTED.word else None if worst is None else LOOKS[State(worst)]


def duration(seconds: float | None) -> str:
    """A span in at most four characters: `8s`, `14m`, `3h`, `12d`; `-` for None."""
    if seconds is None:
        return "-"
    seconds = max(seconds, 0.0)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def elapsed(task: Task, now: float) -> float | None:
    """Seconds from the handoff to the return, or to now while the task is open; None before it has begun."""
    if task.started_at is None:
        return None
    # A session whose rounds have ended goes on while something works for it.
    return (now if task.ended_at is None or task.waits_for_work else task.ended_at) - task.started_at


def ago(moment: float, now: float) -> str:
    """A moment before now in words: `just now`, `3m ago`."""
    passed = now - moment
    return "just now" if passed < 5 else f"{duration(passed)} ago"


def moment(at: float, now: float) -> str:
    """A moment by the clock of this computer: `14:03:22`, with the date where that is another than today's.

    Files may claim any time: one that no calendar has is `?`.
    """
    try:
        then, today = (datetime.fromtimestamp(time, UTC).astimezone() for time in (at, now))
    except (OverflowError, OSError, ValueError):
        return "?"
    return f"{then:%H:%M:%S}" if then.date() == today.date() else f"{then:%Y-%m-%d %H:%M}"


def bar(done: int, total: int, width: int = 6) -> str:
    """A progress bar of `width` cells: full blocks for what is done."""
    filled = round(width * done / total) if total else 0
    return "█" * filled + "░" * (width - filled)


def plural(count: int, noun: str) -> str:
    """`1 task`, `2 tasks`, `1,024 tasks`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
