"""What the rollouts of a session come to: its run, and the runs that only it knows of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.codex.calls import Asked, Refused
from agentwatch.sources.codex.rollout import ENCRYPTED, Rollout

NAME: Final = "codex"

_STATES: Final = {
    "inProgress": RunState.WORKING,
    "completed": RunState.ENDED,
    "interrupted": RunState.CANCELED,
    "failed": RunState.FAILED,
}


LEFT_BEHIND: Final = "left behind when Codex was stopped"


@dataclass(frozen=True, slots=True)
class Beside:
    """What is known of a session from elsewhere: the call that asked for it, and Codex's tables."""

    asked: Asked | None = None
    closed: bool = False
    """Its parent closed or interrupted it while it worked."""
    parent: str | None = None
    name: str | None = None
    status: str | None = None


def run_of(parts: Sequence[Rollout], beside: Beside) -> Run:
    """The run of a session from the rollouts it was written to, in their order; usually there is one."""
    first, header = parts[0], parts[0].header
    last = next((part for part in reversed(parts) if part.state is not None), parts[-1])
    rounds = [one for part in parts for one in part.all_rounds()]
    state = last.state or _STATES.get(beside.status or "", RunState.SUBMITTED)
    prompt = next((part.prompt for part in parts if part.prompt is not None), None)
    asked = beside.asked
    missing = first.prompt_missing
    if prompt is None and asked is not None:
        prompt = asked.prompt
        missing = missing or (ENCRYPTED if asked.encrypted else "")
    link = "Codex's table of spawned agents" if beside.parent is not None else ""
    return Run(
        source=NAME,
        session_id=header.thread,
        parent_session=header.parent or beside.parent,
        state=state,
        place=str(last.path),
        started_at=header.began_at,
        updated_at=max(part.updated_at for part in parts),
        ended_at=last.ended_at if state is not RunState.WORKING else None,
        link="named by its own session" if header.parent is not None else link,
        reason="closed by its parent" if beside.closed and state is RunState.CANCELED else last.reason,
        title=beside.name or _short(header.task_name),
        agent=header.agent,
        model=next((part.model for part in reversed(parts) if part.model is not None), None),
        prompt=prompt,
        prompt_missing=missing if prompt is None else "",
        said=last.said,
        rounds=tuple(rounds) if len(rounds) > 1 else (),
        todos=next((part.todos for part in reversed(parts) if part.todos is not None), None),
        tokens=next((part.tokens for part in reversed(parts) if part.tokens is not None), None),
        waiting=last.waiting if state is RunState.WORKING else "",
        asked_at=asked.asked_at if asked is not None else None,
    )


def left_behind(run: Run, lost_at: float | None) -> Run:
    """The run of an agent that Codex did not find: it ended with its process, unless it has shown life since."""
    if lost_at is None or lost_at < run.updated_at or run.state not in (RunState.SUBMITTED, RunState.WORKING):
        return run
    return replace(run, state=RunState.FAILED, reason=LEFT_BEHIND, ended_at=run.updated_at, waiting="")


def only_asked_for(parts: Sequence[Rollout], is_stored: Callable[[str], bool]) -> Iterator[tuple[str, Run]]:
    """The runs of agents that a session asked for and that have no rollout: not yet, or never, when refused."""
    for part in parts:
        for thread, asked in part.spawns.spawned.items():
            if not is_stored(thread):
                yield thread, left_behind(_asked_run(part, asked, thread), part.spawns.lost.get(thread))
        for call, refused in part.spawns.refused.items():
            yield f"{part.header.thread}:{call}", _refused_run(part, refused)


def _asked_run(parent: Rollout, asked: Asked, thread: str) -> Run:
    return Run(
        source=NAME,
        session_id=thread,
        parent_session=parent.header.thread,
        state=RunState.SUBMITTED,
        place=str(parent.path),
        started_at=asked.at,
        updated_at=asked.at,
        link="the call of its parent",
        title=_short(asked.task_name),
        agent=asked.role,
        prompt=asked.prompt,
        prompt_missing=ENCRYPTED if asked.encrypted else "",
        asked_at=asked.asked_at,
    )


def _refused_run(parent: Rollout, refused: Refused) -> Run:
    # What a tool returns when a human stops the turn that waits for it.
    state = RunState.CANCELED if refused.reason.startswith("aborted by user") else RunState.FAILED
    run = _asked_run(parent, refused.asked, refused.asked.call)
    return replace(run, state=state, updated_at=refused.at, ended_at=refused.at, reason=refused.reason)


def _short(task_name: str | None) -> str | None:
    """The last part of a task name; the parts before it are the agents above."""
    return task_name.rpartition("/")[2] or task_name if task_name is not None else None
