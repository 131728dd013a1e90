"""What files, session stores and decisions tell of a workspace, in the order in which it happened.

A session store says how each of its runs stands now, and when it began and ended: that is its history, and the only one
that is kept of it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from agentwatch.delegation.observation import Decided, Observation, Ran, Tick
from agentwatch.delegation.run import Run, RunState


def story(observations: Iterable[Observation], now: float) -> list[Observation]:
    """Observations in the order of their times; those of one file, run or decision keep theirs.

    A run is told as it was when it began, at the end of each of its rounds, and as it is; a decision that nobody read
    before it expired, again with a `Tick` at that time. `now` is in seconds since the epoch.
    """
    known: dict[str, float] = {}
    told: list[tuple[float, Observation]] = []
    for observation in observations:
        for one in _moments(observation, now):
            at = one.at
            if not isinstance(one, Tick):
                # A file may be put back as it was long ago, and still it came after the one before.
                known[one.path] = at = max(at, known.get(one.path, at))
            told.append((at, one))
    told.sort(key=lambda pair: pair[0])
    return [one for _, one in told]


def _moments(observation: Observation, now: float) -> Iterator[Observation]:
    if isinstance(observation, Ran) and observation.run is not None:
        yield from _moments_of_run(observation, observation.run)
        return
    yield observation
    if isinstance(observation, Decided) and observation.decision.is_expired(now):
        yield Tick(observation.seq, observation.decision.expires_at or now)


def _moments_of_run(ran: Ran, run: Run) -> Iterator[Ran]:
    # Whoever was refused had no sign of life: there is no model, for none was asked.
    lived = run.state is not RunState.SUBMITTED and (run.state is not RunState.FAILED or run.model is not None)
    begun = replace(
        run,
        state=RunState.WORKING if lived else RunState.SUBMITTED,
        ended_at=None,
        reason="its session began" if lived else "",
        said=None,
        earlier=(),
        todos=None,
        tokens=None,
        process_gone=False,
        waiting="",
    )
    # None of its times is later than its last sign of life, which no store can put into the future.
    yield replace(ran, at=min(run.started_at, ran.at), run=begun)
    for number, said in enumerate(run.earlier if run.parent_session is not None else ()):
        rounds = run.earlier[:number]
        ended = replace(begun, state=RunState.ENDED, ended_at=said.at, reason="", said=said, earlier=rounds)
        yield replace(ran, at=min(said.at, ran.at), run=ended)
    yield replace(ran, at=ran.at if run.ended_at is None else min(run.ended_at, ran.at))
