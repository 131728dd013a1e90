"""When a task and its attempts ran, and how times are said. Times are seconds since the epoch."""

import math
from datetime import UTC, datetime
from typing import NamedTuple

from agentwatch.delegation import standing
from agentwatch.delegation.task import Attempt, Shown, Task

_YEAR = 365 * 86_400
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


class Took(NamedTuple):
    """How long something took, in seconds; `so_far` while it goes on."""

    seconds: float
    so_far: bool = False


def ended_at(task: Task, attempt: Attempt) -> float | None:
    """When an attempt of a task ended; None while it goes on, and where nobody knows."""
    if attempt is not task.latest:
        return standing.ended_at(attempt)
    # A session whose rounds have ended goes on while something works for it; an abort above ends what is open below.
    return None if task.waits_for_work else standing.ended_at(attempt) or task.ended_at


def took(task: Task, attempt: Attempt | None, now: float) -> Took | None:
    """How long an attempt ran, or has been running; None where that is not known."""
    if attempt is None or attempt.started_at is None:
        return None
    ended = ended_at(task, attempt)
    if ended is not None:
        return Took(ended - attempt.started_at)
    if attempt is not task.latest or not (task.own_state.is_open or task.waits_for_work):
        return None
    if task.shown in (Shown.SILENT, Shown.GONE) and task.since is not None:
        return Took(task.since - attempt.started_at)
    known = now if task.lost_since is None else min(task.lost_since, now)
    return Took(known - attempt.started_at, so_far=True)


def duration(seconds: float | None) -> str:
    """A span in at most four characters: `8s`, `14m`, `3h`, `12d`, from 1,000 days on `2y`; `-` for None."""
    short = span(seconds, 1)
    return short if len(short) <= 4 or seconds is None else f"{int(seconds // _YEAR)}y"


def span(seconds: float | None, count: int = 2) -> str:
    """A span in its largest units: `8s`, `3m 20s`, `2h 5m`, `12d 4h`; `-` for None."""
    if seconds is None:
        return "-"
    rest = max(int(seconds), 0)
    first = next((index for index, (size, _) in enumerate(_UNITS) if rest >= size), len(_UNITS) - 1)
    parts: list[str] = []
    for size, unit in _UNITS[first : first + count]:
        amount, rest = divmod(rest, size)
        parts += [f"{amount}{unit}"] if amount or not parts else []
    return " ".join(parts)


def seconds_of(text: str) -> float | None:
    """The seconds of a span such as `90s`, `10m`, `12h` or `7d`; None where it is none."""
    try:
        seconds = float(text[:-1]) * next(size for size, unit in _UNITS if unit == text[-1:])
    except (StopIteration, ValueError):
        return None
    return seconds if 0 <= seconds < math.inf else None


def ago(moment: float, now: float) -> str:
    """A moment before now in words: `just now`, `3m ago`."""
    passed = now - moment
    return "just now" if passed < 5 else f"{duration(passed)} ago"


def wall(at: float) -> datetime | None:
    """A moment by the clock of this computer; None for one that no calendar has: files may claim any time."""
    try:
        return datetime.fromtimestamp(at, UTC).astimezone()
    except (OverflowError, OSError, ValueError):
        return None


def clock(at: float, now: float) -> str:
    """A moment by the clock of this computer: `14:03:22`, with the date where that is another than today's."""
    then, today = wall(at), wall(now)
    if then is None or today is None:
        return "?"
    return f"{then:%H:%M:%S}" if then.date() == today.date() else f"{then:%Y-%m-%d %H:%M}"


def local(at: float) -> str:
    """A moment by the clock of this computer with its date: `2026-03-01 14:03:10`; `?` for none of this world."""
    then = wall(at)
    return "?" if then is None else f"{then:%Y-%m-%d %H:%M:%S}"


def iso(at: float | None) -> str | None:
    """A moment as ISO 8601 in UTC, None where it is not known or no time of this world."""
    try:
        return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")[:19] + "Z"
    except (OverflowError, OSError, ValueError):
        return None


def utc(at: float | None) -> str:
    """A moment for people elsewhere, in UTC: `2026-03-01 14:03:10`; `-` where it is not known."""
    return (iso(at) or "-").replace("T", " ").removesuffix("Z")
