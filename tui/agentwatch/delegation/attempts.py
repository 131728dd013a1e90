"""Versions of a task's files folded into its attempts. Pure: equal versions give equal attempts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from agentwatch.contracts.catalogue.rule import Rule
from agentwatch.contracts.shapes import Contract, Handoff, Outcome, Return, Severity, Todo, TodoList, TodoStatus
from agentwatch.delegation.decision import Action, Decision
from agentwatch.delegation.observation import Ran
from agentwatch.delegation.problems import DUPLICATE_HANDOFF, DUPLICATE_RETURN, SESSION_MISMATCH, TASK_MISMATCH, found
from agentwatch.delegation.retry import is_retry
from agentwatch.delegation.run import Run, RunState
from agentwatch.delegation.runs import handed_back, handed_back_before, handed_over
from agentwatch.delegation.task import Attempt, PlacedFinding, State, Version

_ENDED_BADLY = (RunState.FAILED, RunState.CANCELED)
"""Whatever a run had said by then, it is not what it was asked for."""

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
    is_gone: Callable[[str], bool] = lambda _path: False
    strict: bool = True
    returns: dict[str, State] = field(default_factory=dict)
    """By digest, how each return stood, also those that others have followed in the same attempt."""
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
    handoff file rewritten after the return, or with an early marker (`in_progress`) after a final return.
    With `strict`, a return that breaks its contract makes the attempt invalid; with `demands`, so does one without a
    contract. `is_gone` tells the files that are not there any more. `runs` come in the order in which they began.
    """
    history = History(is_gone=is_gone, strict=strict)
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
    for ran in runs:
        if ran.run is not None:
            _execute(history, ran, ran.run)
    history.attempts.sort(key=lambda attempt: attempt.number)
    for attempt in history.attempts:
        attempt.rival = _rival_of(history, attempt)
        attempt.state = state_of(attempt, strict=strict, demands=demands)
        if _answers_another_session(attempt):
            _report_session(history, attempt)
        _report_task(history, attempt)
    _mark_life(history)
    for decision in decisions:
        _bind(history, decision)
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
        if attempt.handoff and history.is_rival(attempt.handoff, version):
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
    history.returns[version.digest] = _state_of_return(version, strict=history.strict)


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
            same_file = not history.is_rival(attempt.returned, version)
            if same_file and attempt.returned.digest == version.digest:
                return attempt
            if other_session or (restarted and same_file and before is not None):
                return _numbered(history, attempt.number + 1)
    if attempt.returned and not _is_early(attempt.returned) and history.is_rival(attempt.returned, version):
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


def _execute(history: History, ran: Ran, run: Run) -> None:
    """A run executes the attempt with its number or its session, else the first that nobody is known to execute."""
    prompt, said = handed_over(ran), handed_back(ran)
    packet = prompt.document if prompt is not None and isinstance(prompt.document, Handoff) else None
    stated = packet.attempt if packet is not None else None
    attempt = _numbered(history, stated) if stated is not None else _of_session(history, run.session_id)
    if attempt is None or attempt.run is not None:
        attempt = next((one for one in history.attempts if one.run is None), None) or _next(history)
    attempt.run = run
    attempt.session_id = run.session_id
    if attempt.started_at is None:
        attempt.started_at = run.started_at
    if attempt.handoff is None:
        attempt.handoff = prompt
    if attempt.returned is None or (said is not None and _is_early(attempt.returned) and not _is_early(said)):
        attempt.returned = said
    for earlier in handed_back_before(ran):
        history.returns[earlier.digest] = _state_of_return(earlier, strict=history.strict)
    todos = run.todos or (packet.todos if packet is not None else None)
    if todos is not None and (history.todos_at is None or run.updated_at >= history.todos_at):
        history.todos, history.todos_at = todos, run.updated_at


def _bind(history: History, decision: Decision) -> None:
    """A decision belongs to the attempt it names, as long as that has the return that was decided about, or one that
    came of it."""
    attempt = next((one for one in history.attempts if one.number == decision.attempt), None)
    if attempt is None:
        return
    next_attempt = next((one for one in history.attempts if one.number > attempt.number), None)
    earlier = attempt.run.earlier if attempt.run is not None else ()
    is_now = decision.return_sha256 == (attempt.returned.digest if attempt.returned else None)
    before = None if is_now or decision.return_sha256 is None else history.returns.get(decision.return_sha256)
    if before is not None:
        decision = decision._replace(retried=is_retry(decision.action, before))
    if next_attempt is not None:
        attempt.decisions += (decision.acted(next_attempt.started_at),)
    elif is_now:
        attempt.decisions += (decision,)
    elif any(message.digest == decision.return_sha256 for message in earlier):
        attempt.decisions += (decision.acted(None),)
    elif attempt.returned is not None and _came_of(attempt, decision):
        attempt.decisions += (decision.acted(attempt.returned.at) if decision.is_read else decision,)


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


def _is_early(version: Version) -> bool:
    document = version.document
    return isinstance(document, Return) and document.outcome is Outcome.WORKING


def state_of(attempt: Attempt, *, strict: bool, demands: bool) -> State:
    """How an attempt stands by its handoff, its return and its run; `strict` and `demands` are those of `fold`."""
    returned, document, run = attempt.returned, attempt.result, attempt.run
    if strict and (_answers_another_session(attempt) or attempt.rival is not None):
        return State.INVALID
    if run is not None and (returned is None or document is None or run.state in _ENDED_BADLY):
        return _state_of_run(run, demands=demands)
    if attempt.ended_without_result:
        return State.INVALID
    return State.SUBMITTED if returned is None else _state_of_return(returned, strict=strict)


def _state_of_return(version: Version, *, strict: bool) -> State:
    document = version.document
    if not isinstance(document, Return):
        return State.SUBMITTED
    if is_invalid(version, strict=strict) or document.outcome is None:
        return State.INVALID
    return _STATES[document.outcome]


def _state_of_run(run: Run, *, demands: bool) -> State:
    """What the store says, of a run that gave back nothing that the contracts know."""
    if run.state is not RunState.ENDED:
        return State.BLOCKED if run.waiting else State(run.state.value)
    if run.parent_session is None:
        return State.COMPLETED
    return State.INVALID if run.said is None or demands else State.COMPLETED


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


def _report_task(history: History, attempt: Attempt) -> None:
    """A file belongs to the task that it names; what a session gave back, to the task that it was handed."""
    packet, result, returned = attempt.packet, attempt.result, attempt.returned
    if packet is None or result is None or returned is None or result.task_id is None:
        return
    if packet.task_id not in (None, result.task_id):
        history.problems.append(PlacedFinding(found(TASK_MISMATCH, result.task_id), returned.path))


def _mark_life(history: History) -> None:
    """A checklist that has moved is a sign of life of the attempt that runs."""
    if _has_moved(history.todos) and history.attempts and history.attempts[-1].state is State.SUBMITTED:
        history.attempts[-1].state = State.WORKING


def _has_moved(todos: tuple[Todo, ...] | None) -> bool:
    return any(todo.status is not TodoStatus.PENDING for todo in todos or ())


def _duplicate(history: History, rule: Rule, kept: Version, other: Version) -> None:
    history.problems.append(PlacedFinding(found(rule, kept.path), other.path))
