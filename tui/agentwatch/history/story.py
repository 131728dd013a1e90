"""What files, session stores and decisions tell of a workspace, in the order in which it happened.

A session store says how each of its runs stands now, and when it began and ended: that is its history, and the only one
that is kept of it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from agentwatch.delegation.events import Decided, Event, Gone, Ran, Requested, Seen, Tick
from agentwatch.delegation.request import Request
from agentwatch.delegation.run import Run, RunState

_FILES: Final = ""
"""Stands for all files: what they are together depends on the order in which they were seen."""


def story(events: Iterable[Event], now: float) -> list[Event]:
    """Observations in the order of their times; files keep the order observed, as do those of one run or decision.

    A run is told as it was when it began, at the end of each of its rounds, and as it is, as a request is when it was
    asked and when it ended; a decision that nobody read
    before it expired, again with a `Tick` at that time. `now` is in seconds since the epoch.
    """
    known: dict[str, float] = {}
    held: dict[str, float] = {}
    told: list[tuple[float, Event]] = []
    for event in _with_times_of_loss(list(events)):
        for one in _moments(event, now):
            at = one.at
            if not isinstance(one, Tick):
                # A file may be put back as it was long ago, or be renamed, and still it came after the one before.
                key = one.path if isinstance(one, Ran | Decided | Requested) else _FILES
                known[key] = at = max(at, known.get(key, at))
                if isinstance(one, Seen):
                    held.setdefault(one.digest, at)
                elif isinstance(one, Decided):
                    # Nobody decides about what is not there yet, whatever the clocks of files say.
                    at = max(at, held.get(one.decision.return_sha256 or "", at))
            told.append((at, one))
    told.sort(key=lambda pair: pair[0])
    return [one for _, one in told]


def _with_times_of_loss(events: Sequence[Event]) -> list[Event]:
    """What was found to be gone at a start was gone before what was written meanwhile was found."""
    first: dict[str, int] = {}
    for index, one in enumerate(events):
        if isinstance(one, Seen):
            first.setdefault(one.digest, index)
    timed: list[Event] = []
    following = float("inf")
    for index in range(len(events) - 1, -1, -1):
        one = events[index]
        if isinstance(one, Gone):
            one = one._replace(at=min(one.at, following))
        elif isinstance(one, Seen) and first[one.digest] == index:
            # The time of a content that was there before says nothing: a renamed file keeps its own.
            following = one.at
        timed.append(one)
    return timed[::-1]


def _moments(event: Event, now: float) -> Iterator[Event]:
    if isinstance(event, Ran) and event.run is not None:
        yield from _moments_of_run(event, event.run)
    elif isinstance(event, Requested) and event.request is not None:
        yield from _moments_of_request(event, event.request)
    else:
        yield event
    if isinstance(event, Decided) and event.decision.is_expired(now):
        yield Tick(event.seq, event.decision.expires_at or now)


def _moments_of_request(requested: Requested, request: Request) -> Iterator[Requested]:
    yield requested._replace(at=request.asked_at, request=request.begun)
    if not request.is_open:
        yield requested._replace(at=request.ended_at or requested.at)


def _moments_of_run(ran: Ran, run: Run) -> Iterator[Ran]:
    # None of its times is later than its last sign of life, which no store can put into the future.
    yield ran._replace(at=min(run.started_at, ran.at), run=_begun(run, run))
    for number, one in enumerate(run.rounds[:-1] if run.parent_session is not None else (), 1):
        ended = replace(run.part(0, number), updated_at=run.updated_at)
        following = run.rounds[number].began_at
        yield ran._replace(at=min(following if one.ended_at is None else one.ended_at, ran.at), run=ended)
        yield ran._replace(at=min(following, ran.at), run=_begun(run, run.part(0, number + 1)))
    yield ran._replace(at=ran.at if run.ended_at is None else min(run.ended_at, ran.at))


def _begun(run: Run, part: Run) -> Run:
    """A run as it was when the last round of this part of it had begun."""
    began = run.started_at if part is run else part.rounds[-1].began_at
    # A call that was refused is no sign of life: there is no model, for none was asked.
    lived = run.state is not RunState.SUBMITTED and (run.state is not RunState.FAILED or run.model is not None)
    return replace(
        part,
        updated_at=run.updated_at,
        state=RunState.WORKING if lived else RunState.SUBMITTED,
        ended_at=None,
        reason="its session began" if lived else "",
        said=None,
        rounds=part.rounds if part is not run else (),
        todos=None,
        tokens=None,
        doing=None,
        process_gone=False,
        waiting="",
        permits=tuple(one for one in part.permits if one.at < began),
    )
