"""What every source hands over: batches of observations, and how well it sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from agentwatch.delegation.events import Event
from agentwatch.text import clean, complain

Mode = Literal["starting", "live", "polling", "degraded", "replay"]


FILES: Final = "files"
"""The name of the source that is the workspace itself."""

_WORST_FIRST: Final[tuple[Mode, ...]] = ("starting", "degraded", "polling", "live", "replay")
_MOST_TOLD: Final = 20
"""Problems that a command prints, a line each."""


class Problem(NamedTuple):
    """Something that cannot be read. `place` is where, "" for no single place; `message` says why in a sentence.
    Both may quote foreign text: they are unsanitised."""

    source: str
    place: str
    message: str

    def __str__(self) -> str:
        return self.message if self.source == FILES else f"{self.source}: {self.message}"


class Health(NamedTuple):
    """How well a source sees. `detail` says why, and what to do where it is not live; it may quote foreign text.

    `starting`: the first look is not over. `live`: changes are reported as they happen. `polling`: they are found by
    looking again. `degraded`: something cannot be seen. `replay`: a recording is played, nothing is watched.
    `notices` are what the operator must know of what agentwatch keeps where the source is, a sentence each.
    `directories` and `files` count what is looked at, not what was recognised. `problems` are what cannot be read:
    with one, the source is degraded once its first look is over.
    """

    mode: Mode
    detail: str
    directories: int = 0
    files: int = 0
    problems: tuple[Problem, ...] = ()
    notices: tuple[str, ...] = ()


def health_of(mode: Mode, detail: str, problems: Sequence[Problem], directories: int = 0, files: int = 0) -> Health:
    """The health of a source that sees all but these."""
    if problems and mode != "starting":
        more = f", and {len(problems) - 1:,} more" if len(problems) > 1 else ""
        mode, detail = "degraded", str(problems[0]).rstrip(".") + more
    return Health(mode, detail, directories, files, tuple(problems))


def together(known: Sequence[Health]) -> Health:
    """The health of several, one at least: that of the one that sees worst."""
    problems = tuple(problem for health in known for problem in health.problems)
    worst = min(known, key=lambda health: _WORST_FIRST.index(health.mode))
    detail = health_of(worst.mode, worst.detail, problems).detail
    directories, files = sum(one.directories for one in known), sum(one.files for one in known)
    return Health(worst.mode, detail, directories, files, problems)


def complain_of(problems: Sequence[Problem]) -> None:
    """Say on standard error what could not be read, for a command that looks once."""
    for problem in problems[:_MOST_TOLD]:
        complain(f"agentwatch: not all can be seen: {clean(str(problem), 600)}")
    if len(problems) > _MOST_TOLD:
        complain(f"agentwatch: {len(problems) - _MOST_TOLD:,} more places could not be read")


class Batch(NamedTuple):
    """Observations in the order of their `seq`, and the health at the time of the last of them. `anew`: these are all
    that count, and nothing that came before them does."""

    events: tuple[Event, ...]
    health: Health
    anew: bool = False
