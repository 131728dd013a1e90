"""What every source hands over: batches of observations, and how well it sees."""

from __future__ import annotations

from typing import Literal, NamedTuple

from agentwatch.delegation.observation import Observation

Mode = Literal["starting", "live", "polling", "degraded", "replay"]


class Health(NamedTuple):
    """How well a source sees. `detail` is one sentence for the operator: why, and what to do where it is not live.

    `starting`: the first look is not over. `live`: changes are reported as they happen. `polling`: they are found by
    looking again. `degraded`: something cannot be seen. `replay`: a recording is played, nothing is watched.
    `detail` may quote foreign text: it is unsanitised.
    `directories` and `files` count what is looked at, not what was recognised.
    """

    mode: Mode
    detail: str
    directories: int = 0
    files: int = 0


class Batch(NamedTuple):
    """Observations in the order of their `seq`, and the health at the time of the last of them."""

    observations: tuple[Observation, ...]
    health: Health
