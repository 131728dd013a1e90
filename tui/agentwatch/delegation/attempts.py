"""Versions of a task's files folded into its attempts. Pure: equal versions give equal attempts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from typing import Final, NamedTuple

from agentwatch.contracts.rules import Rule
from agentwatch.contracts.shapes import Contract, Handoff, Outcome, Return, Todo, TodoList
from agentwatch.delegation.decision import Action, Decision
from agentwatch.delegation.observation import Ran
from agentwatch.delegation.problems import (
    DUPLICATE_HANDOFF,
    DUPLICATE_RETURN,
    SESSION_MISMATCH,
    TASK_MISMATCH,
    UNASKED,
    finding_of,
)
from agentwatch.delegation.run import Asker, Run, RunState
from agentwatch.delegation.runs import handed_back, handed_over, packet_in, return_digest
from agentwatch.delegation.standing import answers_another_session, is_early, state_of
from agentwatch.delegation.task import Attempt, PlacedFinding, State, Version, has_moved

_SENDS_ON: Final = (Action.RETRY, Action.RESPOND)
"""What a child can carry out in its own session."""
_SENT_ON: Final = "sent on before it had answered"


@dataclass(slots=True)
class History:
    """The attempts of one task, its latest checklist, and what does not fit together."""

    attempts: list[Attempt] = field(default_factory=list)
    todos: tuple[Todo, ...] | None = None
    todos_at: float | None = None
    checklist: Version | None = None
    problems: list[PlacedFinding] = field(default_factory=list)
    is_gone: Callable[[str], bool] = lambda _path: False
    strict: bool = True
    decisions: Sequence[Decision] = ()
    rivals: dict[int, dict[str, Version]] = field(default_factory=dict)
    """By attempt and path, the returns in files beside the one that counts."""

    def is_rival(self, before: Version | None, version: Version) -> bool:
        """Whether two files claim the same place. A file that is gone was followed by the other, or renamed to it."""
        return before is not None and before.path != version.path and not self.is_gone(before.path)


def fold(
    versions: Iterable[Version],
    runs: Iterable[Ran] = (),
    decisions: Iterable[Decision] = (),
    *,
    strict: bool,
    demands: bool = False,
    is_gone: Callable[[str], bool] = lambda _path: False,
) -> History:
    """The history of a task from all versions of its files, in the order they were observed, and all its runs, in the
    order in which they began.

    An attempt ends with a return. The next one begins with a number of its own, with another session, with the same
    handoff file rewritten after the return, with an early marker (`in_progress`) after a final return, or with what
    comes of a decision to retry or to answer, also where the child carries it out in its own session.
    With `strict`, a return that breaks its contract makes the attempt invalid; with `demands`, so does one without a
    contract. `is_gone` tells the files that are not there any more. `runs` come in the order in which they began.
    """
    history = History(is_gone=is_gone, strict=strict, decisions=tuple(decisions))
    versions = tuple(versions)
    returning = {one.path for one in versions if isinstance(one.document, Return) and one.document.recognised}
    unheard: dict[str, Version] = {}
    for version in versions:
        document = version.document
        if isinstance(document, Handoff):
            _hand_off(history, version, document)
        elif not document.recognised and returning and version.path not in returning:
            # A return by its name alone is no rival of a real one.
            unheard[version.path] = version
        elif isinstance(document, Return):
            _hand_back(history, version, document)
        else:
            _check(history, version, document)
    for path, version in unheard.items():
        if version.document.contract is not Contract.REPORT_CONTRACT and not is_gone(path):
            history.problems += (PlacedFinding(finding, path) for finding in version.findings)
    _execute(history, runs)
    history.attempts.sort(key=lambda attempt: attempt.number)
    for attempt in history.attempts:
        attempt.rival = _rival_of(history, attempt)
        attempt.state = state_of(attempt, strict=strict, demands=demands)
        if answers_another_session(attempt):
            _report_session(history, attempt)
        _report_task(history, attempt)
    _mark_life(history)
    for decision in history.decisions:
        _bind(history, decision)
    _report_unasked(history)
    return history


def _hand_off(history: History, version: Version, document: Handoff) -> None:
    if document.attempt is not None:
        attempt = _numbered(history, document.attempt)
        if attempt.handoff and not attempt.again and history.is_rival(attempt.handoff, version):
            _duplicate(history, DUPLICATE_HANDOFF, attempt.handoff, version)
            return
    else:
        attempt = _latest(history)
        if history.is_rival(attempt.handoff, version):
            # Beside numbered files, the one without a number is the first.
            first = _numbered(history, 1)
            if first.handoff and history.is_rival(first.handoff, version):
                _duplicate(history, DUPLICATE_HANDOFF, first.handoff, version)
                return
            attempt = first
        elif attempt.handoff and attempt.handoff.digest == version.digest:
            # The same words in another place: it was moved.
            attempt.handoff = version
            return
        elif attempt.handoff and attempt.returned and not is_early(attempt.returned):
            attempt = _numbered(history, attempt.number + 1)
    if attempt.handoff is None and not has_moved(document.todos):
        # A checklist that is ticked off in the handoff itself moves the time of the file: then nothing tells when it
        # was handed off.
        attempt.started_at = version.at if attempt.returned is None else min(version.at, attempt.returned.at)
    attempt.handoff, attempt.again = version, False
    attempt.session_id = document.session_id or attempt.session_id
    if document.todos is not None:
        history.todos, history.todos_at = document.todos, version.at


def _hand_back(history: History, version: Version, document: Return) -> None:
    attempt = _attempt_of(history, version, document)
    if attempt is None:
        return
    if attempt.started_at is None and document.outcome is Outcome.WORKING:
        attempt.started_at = version.at
    attempt.returned = version
    attempt.session_id = document.session_id or attempt.session_id


def _attempt_of(history: History, version: Version, document: Return) -> Attempt | None:
    """The attempt a return belongs to, None where it is a duplicate."""
    attempt = _latest(history) if document.attempt is None else _numbered(history, document.attempt)
    if (decision := _sent_on(history, attempt, version)) is not None:
        following = _again(attempt, _next(history))
        following.started_at = min(decision.at, version.at)
        return following
    if document.attempt is None:
        session = document.session_id
        if session is not None and (known := _of_session(history, session)) is not None:
            attempt = known
        elif attempt.returned is not None:
            before = attempt.result
            other_session = session is not None and attempt.session_id is not None
            restarted = document.outcome is Outcome.WORKING and not is_early(attempt.returned)
            same_file = not history.is_rival(attempt.returned, version)
            if same_file and attempt.returned.digest == version.digest:
                return attempt
            if other_session or (restarted and same_file and before is not None):
                return _numbered(history, attempt.number + 1)
    if attempt.returned and not is_early(attempt.returned) and history.is_rival(attempt.returned, version):
        _duplicate(history, DUPLICATE_RETURN, attempt.returned, version)
        history.rivals.setdefault(attempt.number, {})[version.path] = version
        return None
    return attempt


def _rival_of(history: History, attempt: Attempt) -> Version | None:
    """A return in another file that says something else of an attempt than the one that counts."""
    result = attempt.result
    for version in history.rivals.get(attempt.number, {}).values():
        other = version.document
        if result is None or not isinstance(other, Return) or history.is_gone(version.path):
            continue
        # An early marker says nothing about the end.
        if {result.outcome, other.outcome}.isdisjoint({None, Outcome.WORKING}) and result.outcome is not other.outcome:
            return version
    return None


def _check(history: History, version: Version, document: TodoList) -> None:
    history.todos, history.todos_at, history.checklist = document.items, version.at, version


def _sent_on(history: History, attempt: Attempt, version: Version) -> Decision | None:
    """The decision because of which a return file was rewritten, None where that is not known."""
    before = attempt.returned
    if before is None or before.digest == version.digest or history.is_rival(before, version):
        return None
    if attempt is not _latest(history):
        return None
    known = (one for one in history.decisions if one.action in _SENDS_ON and one.attempt == attempt.number)
    return next((one for one in known if one.return_sha256 == before.digest and _is_read_about(attempt, one)), None)


def _is_read_about(attempt: Attempt, decision: Decision) -> bool:
    """Whether some agent knows the decision, and goes by the same handoff still."""
    is_same = attempt.handoff is not None and attempt.handoff.digest == decision.handoff_sha256
    return is_same and decision.is_read and decision.return_sha256 is not None


def _again(before: Attempt, attempt: Attempt) -> Attempt:
    """The attempt that goes on in the session of the one before: what that was handed, this one is as well."""
    if attempt.handoff is None:
        attempt.handoff, attempt.again = before.handoff, True
    return attempt


class _Execution(NamedTuple):
    """An attempt that a run executes since the round `first`, and the return that it has in a file."""

    attempt: Attempt
    filed: Version | None
    first: int = 0


def _execute(history: History, runs: Iterable[Ran]) -> None:
    """Runs execute attempts, round by round, in the order in which these began."""
    turns: list[tuple[float, int, int, Ran, Run]] = []
    for order, ran in enumerate(runs):
        run = ran.run
        if run is None:
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
            attempt = _first(history, ran, run)
            execution = _Execution(attempt, attempt.returned)
        elif _begins_anew(history, execution, run, number):
            _end(execution.attempt)
            attempt = _again(execution.attempt, _following(history, execution.attempt, run, number))
            execution = _Execution(attempt, attempt.returned, number)
        executing[order] = execution
        end = number + 1 if run.parent_session is not None else len(run.rounds)
        _take(history, execution, ran, run.part(execution.first, end))


def _end(attempt: Attempt) -> None:
    """Nobody works any more on an attempt whose session has gone on to the next one."""
    if attempt.run is not None and attempt.run.state is RunState.WORKING and attempt.returned is None:
        attempt.run = replace(attempt.run, state=RunState.FAILED, reason=_SENT_ON)


def _first(history: History, ran: Ran, run: Run) -> Attempt:
    """A run executes the attempt with its number or its session, else the first that nobody is known to execute."""
    prompt = handed_over(ran)
    packet = prompt.document if prompt is not None and isinstance(prompt.document, Handoff) else None
    stated = packet.attempt if packet is not None else None
    attempt = _numbered(history, stated) if stated is not None else _of_session(history, run.session_id)
    if attempt is not None and attempt.run is None:
        return attempt
    waiting = (one for one in history.attempts if one.run is None and (packet is None or _is_unnumbered(one)))
    numbers = {one.number for one in history.attempts}
    free = next(number for number in count(1) if number not in numbers)
    return next(waiting, None) or _numbered(history, free if stated is None else max(numbers, default=0) + 1)


def _is_unnumbered(attempt: Attempt) -> bool:
    """Whether its handoff leaves its number open: beside numbered ones, a packet without a number is the first."""
    return attempt.packet is None or attempt.packet.attempt is None


def _begins_anew(history: History, execution: _Execution, run: Run, number: int) -> bool:
    """Whether a later round of a run is an attempt of its own.

    It is if it is handed a packet, says itself that it is another attempt, comes of a decision to retry or to answer,
    or if its parent asks again after a failure. It is not if a hook holds the child, or has it correct its return.
    """
    attempt, one = execution.attempt, run.rounds[number]
    if one.asker is Asker.PROGRAM:
        return False
    is_handed = one.prompt is not None and packet_in(one.prompt) is not None
    if is_handed or _stated(run, number) > attempt.number:
        return True
    ended = {return_digest(earlier) for earlier in run.rounds[execution.first : number]}
    ended.add(attempt.returned.digest if attempt.returned is not None else None)
    for decision in history.decisions:
        about_it = decision.attempt == attempt.number and decision.return_sha256 in ended
        known = decision.at <= one.began_at and (decision.is_read or one.asker is Asker.PARENT)
        if about_it and known and decision.action in _SENDS_ON:
            return True
    return one.asker is Asker.PARENT and state_of(attempt, strict=history.strict, demands=False) is State.FAILED


def _stated(run: Run, number: int) -> int:
    """The number of its attempt that a round states in its return; 0 where it states none."""
    said = run.rounds[number].said if number + 1 < len(run.rounds) else run.said
    document = said.reading.document if said is not None and said.reading is not None else None
    return (document.attempt if isinstance(document, Return) else None) or 0


def _following(history: History, attempt: Attempt, run: Run, number: int) -> Attempt:
    """The attempt that a later round of a run executes: the one it states, else the first that waits for it."""
    prompt = run.rounds[number].prompt
    packet = packet_in(prompt) if prompt is not None else None
    stated = max((packet.attempt if packet is not None else None) or 0, _stated(run, number))
    taken = {one.number for one in history.attempts if one.run is not None}
    if stated > attempt.number and stated not in taken:
        return _numbered(history, stated)
    waiting = [one for one in history.attempts if one.number > attempt.number and one.run is None]
    mine = [one for one in waiting if one.session_id in (None, run.session_id)]
    return min(mine, key=lambda one: one.number, default=None) or _next(history)


def _take(history: History, execution: _Execution, ran: Ran, part: Run) -> None:
    """Have an attempt be executed by these rounds of a run."""
    attempt, filed, first = execution
    shown = ran._replace(run=part)
    given, said = handed_over(shown), handed_back(shown)
    attempt.run, attempt.session_id = part, part.session_id
    if attempt.started_at is None or (first and attempt.again):
        attempt.started_at = part.started_at
    if given is not None and (attempt.handoff is None or attempt.again):
        attempt.handoff, attempt.again = given, False
    is_later = said is not None and filed is not None and is_early(filed) and not is_early(said)
    attempt.returned = said if filed is None or is_later else filed
    todos = part.todos or (given.document.todos if given is not None and isinstance(given.document, Handoff) else None)
    if todos is not None and (history.todos_at is None or part.updated_at >= history.todos_at):
        history.todos, history.todos_at = todos, part.updated_at


def _bind(history: History, decision: Decision) -> None:
    """A decision belongs to the attempt it names, as long as that has the return that was decided about, or one that
    came of it."""
    attempt = next((one for one in history.attempts if one.number == decision.attempt), None)
    if attempt is None:
        return
    next_attempt = next((one for one in history.attempts if one.number > attempt.number), None)
    earlier = attempt.run.earlier if attempt.run is not None else ()
    if next_attempt is not None:
        attempt.decisions += (decision.acted(next_attempt.started_at),)
    elif decision.return_sha256 == (attempt.returned.digest if attempt.returned else None):
        attempt.decisions += (decision,)
    elif any(message.digest == decision.return_sha256 for message in earlier):
        attempt.decisions += (decision if decision.action in _SENDS_ON else decision.acted(None),)
    elif attempt.returned is not None and _came_of(attempt, decision):
        attempt.decisions += (decision.acted(attempt.returned.at) if decision.is_read else decision,)
        attempt.superseded += (decision,)
    elif attempt.returned is not None and decision.return_sha256 is not None:
        attempt.superseded += (decision,)


def _came_of(attempt: Attempt, decision: Decision) -> bool:
    """Whether another return than the one that was decided about came of the decision, in the same attempt.

    Only a return that is there is ever decided about, so another one came later: of the decision, if somebody had read
    that. What an aborted child says late, whoever read what, does not undo the abort.
    """
    is_same = attempt.handoff is not None and attempt.handoff.digest == decision.handoff_sha256
    answered = decision.is_read and decision.return_sha256 is not None
    return is_same and (answered or decision.action is Action.ABORT)


def _next(history: History) -> Attempt:
    return _numbered(history, max((attempt.number for attempt in history.attempts), default=0) + 1)


def _latest(history: History) -> Attempt:
    return max(history.attempts, key=lambda attempt: attempt.number, default=None) or _numbered(history, 1)


def _numbered(history: History, number: int) -> Attempt:
    for attempt in history.attempts:
        if attempt.number == number:
            return attempt
    attempt = Attempt(number)
    history.attempts.append(attempt)
    return attempt


def _of_session(history: History, session: str) -> Attempt | None:
    return next((attempt for attempt in history.attempts if attempt.session_id == session), None)


def _report_session(history: History, attempt: Attempt) -> None:
    packet, returned = attempt.packet, attempt.returned
    if packet and packet.session_id and returned:
        history.problems.append(PlacedFinding(finding_of(SESSION_MISMATCH, packet.session_id), returned.path))


def _report_unasked(history: History) -> None:
    """A failure about which nobody decided is not over because a return says that it is of a later attempt."""
    for before, attempt in pairwise(history.attempts):
        has_failed = before.state in (State.FAILED, State.INVALID) or before.unasked
        returned, run = attempt.returned, attempt.run
        if has_failed and not before.decisions and attempt.handoff is None and run is None and returned is not None:
            attempt.unasked = True
            history.problems.append(PlacedFinding(finding_of(UNASKED, str(attempt.number)), returned.path))


def _report_task(history: History, attempt: Attempt) -> None:
    """A file belongs to the task that it names; what a session gave back, to the task that it was handed."""
    packet, result, returned = attempt.packet, attempt.result, attempt.returned
    if packet is None or result is None or returned is None or result.task_id is None:
        return
    if packet.task_id not in (None, result.task_id):
        history.problems.append(PlacedFinding(finding_of(TASK_MISMATCH, result.task_id), returned.path))


def _mark_life(history: History) -> None:
    """A checklist that has moved is a sign of life of the attempt that runs."""
    if has_moved(history.todos) and history.attempts and history.attempts[-1].state is State.SUBMITTED:
        history.attempts[-1].state = State.WORKING


def _duplicate(history: History, rule: Rule, kept: Version, other: Version) -> None:
    history.problems.append(PlacedFinding(finding_of(rule, kept.path), other.path))
