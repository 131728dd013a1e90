"""Versions of a task's files folded into its attempts. Pure: equal versions give equal attempts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from agentwatch.contracts.catalogue.rule import Rule
from agentwatch.contracts.shapes import Handoff, Outcome, Return, Severity, Todo, TodoList, TodoStatus
from agentwatch.delegation.problems import DUPLICATE_HANDOFF, DUPLICATE_RETURN, SESSION_MISMATCH, found
from agentwatch.delegation.task import Attempt, PlacedFinding, State, Version

_STATES = {
    Outcome.WORKING: State.WORKING,
    Outcome.COMPLETED: State.COMPLETED,
    Outcome.PARTIAL: State.PARTIAL,
    Outcome.BLOCKED: State.BLOCKED,
    Outcome.FAILED: State.FAILED,
}


@dataclass(slots=True)
class History:
    """The attempts of one task, its latest checklist, and what does not fit together."""

    attempts: list[Attempt] = field(default_factory=list)
    todos: tuple[Todo, ...] | None = None
    todos_at: float | None = None
    checklist: Version | None = None
    problems: list[PlacedFinding] = field(default_factory=list)


def fold(versions: Iterable[Version], *, strict: bool) -> History:
    """The history of a task from all versions of its files, given in the order they were observed.

    An attempt ends with a return. The next one begins with a number of its own, with another session, with the same
    handoff file rewritten after the return, or with an early marker (`in_progress`) after a final return.
    With `strict`, a return that breaks its contract makes the attempt invalid.
    """
    history = History()
    for version in versions:
        document = version.document
        if isinstance(document, Handoff):
            _hand_off(history, version, document)
        elif isinstance(document, Return):
            _hand_back(history, version, document)
        else:
            _check(history, version, document)
    history.attempts.sort(key=lambda attempt: attempt.number)
    for attempt in history.attempts:
        attempt.state = _state(attempt, strict=strict)
        if _answers_another_session(attempt):
            _report_session(history, attempt)
            attempt.state = State.INVALID if strict else attempt.state
    _mark_life(history)
    return history


def is_invalid(version: Version, *, strict: bool) -> bool:
    """Whether a return counts as failed because it breaks its contract."""
    document = version.document
    if not isinstance(document, Return):
        return False
    broken = any(finding.severity is Severity.ERROR for finding in version.findings)
    return document.outcome is None or (strict and broken)


def _hand_off(history: History, version: Version, document: Handoff) -> None:
    if document.attempt is not None:
        attempt = _numbered(history, document.attempt)
        if attempt.handoff and attempt.handoff.path != version.path:
            _duplicate(history, DUPLICATE_HANDOFF, attempt.handoff, version)
            return
    else:
        attempt = _latest(history)
        if attempt.handoff and attempt.handoff.path != version.path:
            # Beside numbered files, the one without a number is the first.
            first = _numbered(history, 1)
            if first.handoff and first.handoff.path != version.path:
                _duplicate(history, DUPLICATE_HANDOFF, first.handoff, version)
                return
            attempt = first
        elif attempt.handoff and attempt.returned and not _is_early(attempt.returned):
            attempt = _numbered(history, attempt.number + 1)
    if attempt.handoff is None and not _has_moved(document.todos):
        # A checklist that is ticked off in the handoff itself moves the time of the file: then nothing tells when it
        # was handed off.
        attempt.started_at = version.at if attempt.returned is None else min(version.at, attempt.returned.at)
    attempt.handoff = version
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
    if document.attempt is not None:
        attempt = _numbered(history, document.attempt)
    else:
        attempt = _latest(history)
        session = document.session_id
        if session is not None and (known := _of_session(history, session)) is not None:
            attempt = known
        elif attempt.returned is not None:
            before = attempt.result
            other_session = session is not None and attempt.session_id is not None
            restarted = document.outcome is Outcome.WORKING and not _is_early(attempt.returned)
            same_file = attempt.returned.path == version.path
            if other_session or (restarted and same_file and before is not None):
                return _numbered(history, attempt.number + 1)
    if attempt.returned and attempt.returned.path != version.path:
        _duplicate(history, DUPLICATE_RETURN, attempt.returned, version)
        return None
    return attempt


def _check(history: History, version: Version, document: TodoList) -> None:
    history.todos, history.todos_at, history.checklist = document.items, version.at, version


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


def _is_early(version: Version) -> bool:
    document = version.document
    return isinstance(document, Return) and document.outcome is Outcome.WORKING


def _state(attempt: Attempt, *, strict: bool) -> State:
    returned, document = attempt.returned, attempt.result
    if returned is None or document is None:
        return State.SUBMITTED
    if is_invalid(returned, strict=strict) or document.outcome is None:
        return State.INVALID
    return _STATES[document.outcome]


def _answers_another_session(attempt: Attempt) -> bool:
    """subagent-return, validation rule 4: the session id must match the one of the delegation."""
    packet, document = attempt.packet, attempt.result
    if packet is None or document is None or packet.session_id is None or document.session_id is None:
        return False
    return packet.session_id != document.session_id


def _report_session(history: History, attempt: Attempt) -> None:
    packet, returned = attempt.packet, attempt.returned
    if packet and packet.session_id and returned:
        history.problems.append(PlacedFinding(found(SESSION_MISMATCH, packet.session_id), returned.path))


def _mark_life(history: History) -> None:
    """A checklist that has moved is a sign of life of the attempt that runs."""
    if _has_moved(history.todos) and history.attempts and history.attempts[-1].state is State.SUBMITTED:
        history.attempts[-1].state = State.WORKING


def _has_moved(todos: tuple[Todo, ...] | None) -> bool:
    return any(todo.status is not TodoStatus.PENDING for todo in todos or ())


def _duplicate(history: History, rule: Rule, kept: Version, other: Version) -> None:
    history.problems.append(PlacedFinding(found(rule, kept.path), other.path))
