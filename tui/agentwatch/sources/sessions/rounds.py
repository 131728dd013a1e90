"""The rounds of one session: each begins with a prompt, and the one before ends as the session stood then."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from agentwatch.delegation.run import Message, Round, RunState

KEPT_ROUNDS: Final = 100
"""Rounds before the last one that are kept of a session: people talk to one for days."""


class Rounds:
    """Those before the last one, oldest first, and how the last one began."""

    def __init__(self) -> None:
        self.earlier: list[Round] = []
        self.begun: Round | None = None

    def begin(self, begun: Round, state: RunState, said: Message | None, ended_at: float | None, reason: str) -> None:
        """A round begins; the one before, if there was one, came to this."""
        if self.begun is not None:
            self.earlier.append(replace(self.begun, state=state, said=said, ended_at=ended_at, reason=reason))
            del self.earlier[:-KEPT_ROUNDS]
        self.begun = begun

    def of_run(self) -> tuple[Round, ...]:
        """The rounds of a run, which says itself how the last one stands; nothing where there was but one."""
        return (*self.earlier, self.begun) if self.earlier and self.begun is not None else ()
