"""Everything that speaks of one task, folded into its attempts. Pure: equal versions give equal attempts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from agentwatch.contracts.shapes import Contract, Handoff, Outcome, Return
from agentwatch.delegation.attempt import Attempt, has_moved
from agentwatch.delegation.attempts import Attempts, is_of_handoff
from agentwatch.delegation.decision import SENDS_ON, Action, Decision
from agentwatch.delegation.events import Ran
from agentwatch.delegation.executions import execute
from agentwatch.delegation.files import held
from agentwatch.delegation.problems import SESSION_MISMATCH, TASK_MISMATCH, UNASKED
from agentwatch.delegation.run import Run
from agentwatch.delegation.standing import answers_another_session, state_of
from agentwatch.delegation.task import PlacedFinding, State, Version


def fold(
    versions: Iterable[Version],
    runs: Iterable[Ran],
    decisions: Iterable[Decision],
    *,
    strict: bool,
    demands: bool,
    is_gone: Callable[[str], bool],
    began_in: Callable[[Run], str],
) -> Attempts:
    """The attempts of a task from all versions of its files, in the order they were observed, and all its runs, in the
    order in which they began.

    An attempt ends with a return. The next one begins with a number of its own, with another session, with the same
    handoff file rewritten after the return, with an early marker (`in_progress`) after a final return, or with what
    comes of a decision to retry or to answer, also where the child carries it out in its own session.
    With `strict`, a return that breaks its contract makes the attempt invalid; with `demands`, so does one without a
    contract. `is_gone` tells the files that are not there any more,
    `began_in` the session in which all began that led to a run.
    """
    attempts = Attempts(is_gone=is_gone, strict=strict, decisions=tuple(decisions))
    versions = tuple(versions)
    returning = {one.path for one in versions if isinstance(one.document, Return) and one.document.recognised}
    unheard: dict[str, Version] = {}
    for version in _telling(versions) if len(returning) == 1 and not attempts.decisions else versions:
        document = version.document
        if isinstance(document, Handoff):
            attempts.hand_off(version, document)
        elif not document.recognised and returning and version.path not in returning:
            # A return by its name alone is no rival of a real one.
            unheard[version.path] = version
        elif isinstance(document, Return):
            attempts.hand_back(version, document)
        else:
            attempts.todos, attempts.todos_at, attempts.checklist = document.items, version.at, version
            attempts.moved = version.moved
    for path, version in unheard.items():
        if version.document.contract is not Contract.REPORT_CONTRACT and not is_gone(path):
            attempts.problems += (PlacedFinding(finding, path) for finding in version.findings)
    execute(attempts, runs)
    attempts.all.sort(key=lambda attempt: attempt.number)
    for attempt in attempts.all:
        attempt.rival = _rival_of(attempts, attempt) if attempts.rivals else None
        attempt.state = state_of(attempt, strict=strict, demands=demands)
        _report_mismatches(attempts, attempt)
    if attempts.all and attempts.all[-1].state is State.SUBMITTED and has_moved(attempts.todos):
        attempts.all[-1].state = State.WORKING
    for decision in attempts.decisions:
        _bind(attempts, decision)
    _report_unasked(attempts, began_in)
    return attempts


def counting(versions: Sequence[Version], decisions: Sequence[Decision] = ()) -> tuple[Version, ...]:
    """The versions of one task that say something, in their order. The same return written again says something only
    after a handoff, after the file has said something else, or after one of the `decisions` has sent the child on;
    `times` tells how often it was said."""
    if len({version.path for version in versions}) == len(versions):
        return tuple(versions)
    counted: list[Version] = []
    last: dict[str, Version] = {}
    times = defaultdict[tuple[str, str], int](int)
    # What was recalled has a number below zero.
    handed_off = -math.inf
    for version in versions:
        if isinstance(version.document, Handoff):
            handed_off = version.seq
        before = last.get(version.path)
        last[version.path] = version
        if isinstance(version.document, Return):
            if (
                before is not None
                and before.digest == version.digest
                and held(before) == held(version)
                and handed_off < before.seq
                and not any(one.sent_on(version.digest, before.at, version.at) for one in decisions)
            ):
                continue
            said = version.path, version.digest
            times[said] += 1
            counted.append(version if times[said] == 1 else version._replace(times=times[said]))
        else:
            counted.append(version)
    return tuple(counted)


def _telling(versions: Sequence[Version]) -> Iterator[Version]:
    """Of the returns that one file gave one after the other and that say the same of how the attempt stands, the first
    and the last: the cost of a correction does not grow with how often it was corrected before."""
    standing: tuple[object, ...] | None = None
    last: Version | None = None
    for version in versions:
        document, stands = version.document, None
        if isinstance(document, Return) and document.recognised:
            stands = document.attempt, document.session_id, document.outcome
        if stands is not None and stands == standing:
            last = version
            continue
        if last is not None:
            yield last
        yield version
        standing, last = stands, None
    if last is not None:
        yield last


def _rival_of(attempts: Attempts, attempt: Attempt) -> Version | None:
    """A return in another file that says something else of an attempt than the one that counts."""
    result = attempt.result
    for version in attempts.rivals.get(attempt.number, {}).values():
        other = version.document
        if result is None or not isinstance(other, Return) or attempts.is_gone(version.path):
            continue
        # An early marker says nothing about the end.
        if {result.outcome, other.outcome}.isdisjoint({None, Outcome.WORKING}) and result.outcome is not other.outcome:
            return version
    return None


def _bind(attempts: Attempts, decision: Decision) -> None:
    """A decision belongs to the attempt it names, as long as that has the return that was decided about, or one that
    came of it."""
    attempt = next((one for one in attempts.all if one.number == decision.attempt), None)
    if attempt is None:
        return
    returned, about = attempt.returned, decision.return_sha256
    following = next((one for one in attempts.all if one.number > attempt.number), None)
    earlier = attempt.run.earlier if attempt.run is not None else ()
    if following is not None:
        attempt.decisions += (decision.acted(following.started_at),)
    elif about == (returned.digest if returned else None):
        attempt.decisions += (decision,)
    elif any(message.digest == about for message in earlier):
        attempt.decisions += (decision if decision.action in SENDS_ON else decision.acted(None),)
    elif returned is not None and _came_of(attempt, decision):
        attempt.decisions += (decision.acted(returned.at) if decision.is_read else decision,)
        attempt.superseded += (decision,)
    elif returned is not None and about is not None:
        attempt.superseded += (decision,)


def _came_of(attempt: Attempt, decision: Decision) -> bool:
    """Whether another return than the one that was decided about came of the decision, in the same attempt.

    Only a return that is there is ever decided about, so another one came later: of the decision, if somebody had read
    that. What an aborted child says late does not undo the abort.
    """
    answered = decision.is_read and decision.return_sha256 is not None
    return is_of_handoff(decision, attempt) and (answered or decision.action is Action.ABORT)


def _report_mismatches(attempts: Attempts, attempt: Attempt) -> None:
    packet, result, returned = attempt.packet, attempt.result, attempt.returned
    if packet is None or result is None or returned is None:
        return
    if packet.session_id and answers_another_session(attempt):
        attempts.report(SESSION_MISMATCH, packet.session_id, returned.path)
    # A file belongs to the task that it names; what a session gave back, to the task that it was handed.
    if result.task_id is not None and packet.task_id not in (None, result.task_id):
        attempts.report(TASK_MISMATCH, result.task_id, returned.path)


def _report_unasked(attempts: Attempts, began_in: Callable[[Run], str]) -> None:
    """A failure about which nobody decided is not over because a return says that it is of a later attempt, nor because
    a session that has nothing to do with it hands out a task of the same name."""
    owner = None
    for before, attempt in pairwise(attempts.all):
        if before.run is not None and not before.unasked:
            owner = began_in(before.run)
        has_failed = before.state in (State.FAILED, State.INVALID) or before.unasked
        if not has_failed or before.decisions:
            continue
        run = attempt.run
        if run is not None:
            attempt.unasked = owner is not None and began_in(run) != owner
        elif attempt.handoff is None and attempt.returned is not None:
            attempt.unasked = True
            attempts.report(UNASKED, str(attempt.number), attempt.returned.path)
