"""What the runs of all programs have in common: their order, their rounds, and who ends with whom."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from agentwatch.delegation.run import Message, Round, Run, RunState
from agentwatch.sources.sessions.processes import Program

OPEN: Final = (RunState.SUBMITTED, RunState.WORKING)
WORDLESS: Final = "ended without a word"
LEFT_BEHIND: Final = "left behind when the session was killed"

KEPT_ROUNDS: Final = 100
"""Rounds before the last one that are kept of a session: people talk to one for days."""


class Rising:
    """Makes each time, in seconds, later than the one before: a clock that is set back does not change the order."""

    def __init__(self) -> None:
        self._last = float("-inf")

    def __call__(self, at: float) -> float:
        # The times in the stores are no finer than a millisecond.
        self._last = max(at, self._last + 0.001)
        return self._last


class Rounds:
    """The rounds of a session: those before the last one, oldest first, and how the last one began."""

    def __init__(self) -> None:
        self.earlier: list[Round] = []
        self.begun: Round | None = None

    def begin(self, begun: Round, state: RunState, said: Message | None, ended_at: float | None, reason: str) -> None:
        """A round begins; the one before, if there was one, came to this."""
        self.earlier = self.all(state, said, ended_at, reason)[-KEPT_ROUNDS:]
        self.begun = begun

    def all(self, state: RunState, said: Message | None, ended_at: float | None, reason: str) -> list[Round]:
        """All rounds, where the last one has come to this."""
        last = [replace(self.begun, state=state, said=said, ended_at=ended_at, reason=reason)] if self.begun else []
        return [*self.earlier, *last]

    def of_run(self) -> tuple[Round, ...]:
        """The rounds of a run, which says itself how the last one stands; nothing where there was but one."""
        return (*self.earlier, self.begun) if self.earlier and self.begun is not None else ()


def end_with_parent(runs: dict[str, Run]) -> None:
    """An agent in the foreground ends with the one that waits for it; a killed program takes all of them along."""
    keys = {run.session_id: key for key, run in runs.items()}
    waiting = [key for key, run in runs.items() if run.state in OPEN and run.parent_session in keys]
    ended = True
    while ended:
        ended = False
        for key in waiting:
            run = runs[key]
            above = runs[keys[run.parent_session or ""]]
            was_killed = above.reason == LEFT_BEHIND
            cut_off = above.state in (RunState.FAILED, RunState.CANCELED) and not run.background
            if run.state in OPEN and (was_killed or cut_off):
                at = max(run.started_at, above.ended_at or above.updated_at)
                runs[key] = replace(run, state=above.state, reason=above.reason, ended_at=at, waiting="")
                ended = True


def know_program(runs: dict[str, Run], program: Program) -> None:
    """Mark the open runs that no process runs any more, so that nobody can answer what they ask.

    Those of before the program began are among them.
    """
    for key, run in list(runs.items()):
        if run.state in OPEN:
            gone = True if run.updated_at < program.began else program.gone
            runs[key] = replace(run, process_gone=gone, waiting="" if gone else run.waiting)


def pass_up_life(runs: dict[str, Run]) -> None:
    """Whoever waits for an agent writes nothing meanwhile: the agent's signs of life are its own as well."""
    keys = {run.session_id: key for key, run in runs.items()}
    for run in list(runs.values()):
        parent = run.parent_session
        while parent in keys:
            above = runs[keys[parent]]
            if above.state is not RunState.WORKING or above.updated_at >= run.updated_at:
                break
            runs[keys[parent]] = replace(above, updated_at=run.updated_at)
            parent = above.parent_session
