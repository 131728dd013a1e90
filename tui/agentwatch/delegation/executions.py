"""Which attempt each run executes, round by round. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from typing import Final, NamedTuple

from agentwatch.contracts.shapes import Return
from agentwatch.delegation.attempt import Attempt
from agentwatch.delegation.attempts import Attempts, go_on
from agentwatch.delegation.decision import SENDS_ON
from agentwatch.delegation.events import Ran
from agentwatch.delegation.run import Asker, Run, RunState
from agentwatch.delegation.runs import handed_back, handed_over, packet_in, packet_of, return_digest
from agentwatch.delegation.standing import is_early, state_of
from agentwatch.delegation.task import State, Version

_SENT_ON: Final = "sent on before it had answered"


class _Execution(NamedTuple):
    """An attempt that a run executes since the round `first`, and the return that it has in a file."""

    attempt: Attempt
    filed: Version | None
    first: int = 0


def execute(attempts: Attempts, runs: Iterable[Ran]) -> None:
    """Runs execute attempts, round by round, in the order in which these began."""
    turns: list[tuple[float, int, int, Ran, Run]] = []
    for order, ran in enumerate(runs):
        if (run := ran.run) is None:
            continue
        began = run.began_at
        turns.append((began, order, 0, ran, run))
        # A human's session is no attempt of anybody's.
        for number, one in enumerate(run.rounds[1:] if run.parent_session is not None else (), 1):
            began = max(began, one.began_at)
            turns.append((began, order, number, ran, run))
    executing: dict[int, _Execution] = {}
    for _, order, number, ran, run in sorted(turns, key=lambda turn: turn[:3]):
        execution = executing.get(order)
        if execution is None:
            attempt = _first(attempts, run)
            execution = _Execution(attempt, attempt.returned)
        elif _begins_anew(attempts, execution, run, number):
            before = execution.attempt
            if before.run is not None and before.run.state is RunState.WORKING and before.returned is None:
                # Nobody works on it any more: its session has gone on.
                before.run = replace(before.run, state=RunState.FAILED, reason=_SENT_ON)
            attempt = go_on(before, _following(attempts, before, run, number))
            execution = _Execution(attempt, attempt.returned, number)
        executing[order] = execution
        end = number + 1 if run.parent_session is not None else len(run.rounds)
        _take(attempts, execution, ran, run.part(execution.first, end))


def _first(attempts: Attempts, run: Run) -> Attempt:
    """A run executes the attempt with its number or its session, else the first that nobody is known to execute."""
    packet = packet_of(run)
    stated = packet.attempt if packet is not None else None
    attempt = attempts.numbered(stated) if stated is not None else attempts.of_session(run.session_id)
    if attempt is not None and attempt.run is None:
        return attempt
    for one in attempts.all:
        # Beside numbered handoffs, a packet without a number is the first.
        if one.run is None and (packet is None or one.packet is None or one.packet.attempt is None):
            return one
    if stated is not None:
        return attempts.following()
    numbers = {one.number for one in attempts.all}
    return attempts.numbered(next(number for number in count(1) if number not in numbers))


def _begins_anew(attempts: Attempts, execution: _Execution, run: Run, number: int) -> bool:
    """Whether a later round of a run is an attempt of its own.

    It is if it is handed a packet, says itself that it is another attempt, comes of a decision to retry or to answer,
    or if its parent asks again after a failure. It is not if a hook holds the child, or has it correct its return.
    """
    attempt, one = execution.attempt, run.rounds[number]
    if one.asker is Asker.PROGRAM:
        return False
    if packet_in(one.prompt) is not None or _stated(run, number) > attempt.number:
        return True
    ended = {return_digest(earlier) for earlier in run.rounds[execution.first : number]}
    ended.add(attempt.returned.digest if attempt.returned is not None else None)
    for decision in attempts.decisions:
        about_it = decision.attempt == attempt.number and decision.return_sha256 in ended
        known = decision.at <= one.began_at and (decision.is_read or one.asker is Asker.PARENT)
        if about_it and known and decision.action in SENDS_ON:
            return True
    return one.asker is Asker.PARENT and state_of(attempt, strict=attempts.strict, demands=False) is State.FAILED


def _stated(run: Run, number: int) -> int:
    """The number of its attempt that a round states in its return; 0 where it states none."""
    said = run.rounds[number].said if number + 1 < len(run.rounds) else run.said
    document = said.reading.document if said is not None and said.reading is not None else None
    return (document.attempt if isinstance(document, Return) else None) or 0


def _following(attempts: Attempts, attempt: Attempt, run: Run, number: int) -> Attempt:
    """The attempt that a later round of a run executes: the one it states, else the first that waits for it."""
    packet = packet_in(run.rounds[number].prompt)
    stated = max((packet.attempt if packet is not None else None) or 0, _stated(run, number))
    if stated > attempt.number and all(one.run is None for one in attempts.all if one.number == stated):
        return attempts.numbered(stated)
    waiting = [one for one in attempts.all if one.number > attempt.number and one.run is None]
    # A return may name the session of a whole command, which is not what the store calls the child.
    named = attempt.result.session_id if attempt.result is not None else None
    mine = [one for one in waiting if one.session_id in (None, run.session_id, named)]
    return min(mine, key=lambda one: one.number, default=None) or attempts.following()


def _take(attempts: Attempts, execution: _Execution, ran: Ran, part: Run) -> None:
    """Have an attempt be executed by these rounds of a run."""
    attempt, filed, first = execution
    shown = ran._replace(run=part)
    given, said, packet = handed_over(shown), handed_back(shown), packet_of(part)
    attempt.run, attempt.session_id = part, part.session_id
    if attempt.started_at is None or (first and attempt.again):
        attempt.started_at = part.started_at
    if given is not None and (attempt.handoff is None or attempt.again):
        attempt.handoff, attempt.again = given, False
    is_later = said is not None and filed is not None and is_early(filed) and not is_early(said)
    attempt.returned = said if filed is None or is_later else filed
    todos = part.todos or (packet.todos if packet is not None else None)
    if todos is not None and (attempts.todos_at is None or part.updated_at >= attempts.todos_at):
        attempts.todos, attempts.todos_at = todos, part.updated_at
