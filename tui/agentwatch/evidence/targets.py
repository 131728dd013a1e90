"""A return that is to be checked, and what was found about it."""

from __future__ import annotations

from typing import NamedTuple

from agentwatch.delegation.claims import Change, Claim, Deed
from agentwatch.delegation.events import Checked
from agentwatch.delegation.run import Run
from agentwatch.delegation.task import Version


class Target(NamedTuple):
    """The latest return of a task, the handoff it answers, and when that was given (epoch seconds).

    `former` are the names under which the return lay before. A file may hold the return of another task by now: each
    task is checked for itself. `runs` are that of the attempt, where there is one, and those of the agents it asked.
    """

    task_id: str
    returned: Version
    handoff: Version | None = None
    handed_off_at: float | None = None
    former: tuple[str, ...] = ()
    runs: tuple[Run, ...] = ()


class Checks(NamedTuple):
    """What was found about the return with this digest in this file; the last two as `evidence.checker.Result` has
    them."""

    path: str
    digest: str
    claims: tuple[Claim, ...]
    changed: tuple[Change, ...] | None
    unsaid: tuple[Deed, ...] = ()

    def observed(self, seq: int, now: float) -> Checked:
        """The same as an observation, made now (epoch seconds)."""
        return Checked(seq, now, self.path, self.digest, self.claims, self.changed, self.unsaid)
