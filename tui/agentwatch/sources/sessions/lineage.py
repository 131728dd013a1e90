"""What the runs of one session tell of each other: who ends with whom, and whose life shows in whose."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.sessions.group import OPEN
from agentwatch.sources.sessions.processes import Program

WORDLESS: Final = "ended without a word"
LEFT_BEHIND: Final = "left behind when the session was killed"


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
    """Which open runs are known to be run by nobody any more; whoever began later runs none of those of before.

    Nobody can answer what they ask.
    """
    for key, run in list(runs.items()):
        if run.state in OPEN:
            gone = True if run.updated_at < program.began else program.gone
            runs[key] = replace(run, process_gone=gone, waiting="" if gone else run.waiting)


def pass_up_life(runs: dict[str, Run]) -> None:
    """Whoever waits for an agent writes nothing meanwhile: the agent's signs of life are its own as well."""
    keys = {run.session_id: key for key, run in runs.items()}
    for run in list(runs.values()):
        at, parent = run.updated_at, run.parent_session
        while parent in keys:
            above = runs[keys[parent]]
            if above.state is not RunState.WORKING or above.updated_at >= at:
                break
            runs[keys[parent]] = replace(above, updated_at=at)
            parent = above.parent_session
