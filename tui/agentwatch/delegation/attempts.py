"""The attempts of one task, folded from all versions of its files and its runs; pure: equal input, equal attempts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count, pairwise

from agentwatch.contracts.rules import Rule
from agentwatch.contracts.shapes import Contract, Finding, Handoff, Outcome, Return, TodoList, Todos
from agentwatch.delegation.decision import SENDS_ON, Action, Decision
from agentwatch.delegation.events import (
    Activity,
    Message,
    Ran,
    Rules,
    Run,
    RunState,
    Seen,
    StartedBy,
    packet_in,
    todo_moved,
)
from agentwatch.delegation.links import (
    DUPLICATE_HANDOFF,
    DUPLICATE_RETURN,
    SESSION_MISMATCH,
    TASK_MISMATCH,
    UNASKED,
    finding_of,
)
from agentwatch.delegation.standing import answers_another_session, is_final, state_of
from agentwatch.delegation.task import Attempt, State, has_moved


class Attempts:
    """The attempts of one task. A new one begins with a number or session of its own, the same handoff rewritten after
    the return, an early marker after a final return, or what follows from a decision."""

    def __init__(
        self,
        versions: Sequence[Seen],
        runs: Iterable[Ran],
        decisions: Sequence[Decision],
        rules: Rules,
        is_gone: Callable[[str], bool],
    ):
        """Fold the versions of a task's files, in the order observed, and its runs, in the order of their beginning."""
        self._known: dict[int, Attempt] = {}
        self.todos: Todos | None = None
        self.todos_at: float | None = None
        self._todos_of: Attempt | None = None  # the attempt whose run has the todos
        self.checklist: Seen | None = None
        self.moved: Activity | None = None  # the todo in a file that is in progress, else the last one ticked
        self.problems: list[Finding] = []
        self.updated_at = 0.0  # the last sign of life in files
        self._decisions, self._rules, self._is_gone = decisions, rules, is_gone
        # Returns in files that do not count, beside another return, by attempt and path.
        self._rivals: dict[tuple[int, str], Seen] = {}
        self._add_files(versions)
        self._add_runs(runs)
        self._judge()

    def numbered(self, number: int) -> Attempt:
        """Return the attempt with this number; create it if missing."""
        return self._known.setdefault(number, Attempt(number))

    @property
    def last(self) -> int:
        """The highest number, 0 if there is no attempt."""
        return max(self._known, default=0)

    def report(self, rule: Rule, other: str, path: str) -> None:
        """Note that a file breaks a rule of linking; `other` is the other task or file."""
        self.problems.append(finding_of(rule, other, path))

    # Files

    def _add_files(self, versions: Sequence[Seen]) -> None:
        """Fold the versions of files, in the order they were observed."""
        returns = [(one.path, one.document) for one in versions if isinstance(one.document, Return)]
        returning = {path for path, one in returns if one.recognised and not one.fenced}
        unheard: dict[str, Seen] = {}
        for version in versions:
            document = version.document
            if isinstance(document, Handoff):
                self._hand_off(version, document)
            elif isinstance(document, TodoList):
                self.todos, self.todos_at, self.checklist = document.items, version.at, version
                if has_moved(document.items):
                    _begin(self.numbered(self.last or 1), version.at)
            elif returning and version.path not in returning:
                # A return by its name alone, or in a fence like an example, does not compete with a real one.
                unheard[version.path] = version
            elif not self._hand_back(version, document):
                continue
            self.updated_at = max(self.updated_at, version.at)
        if self.todos_at is not None:
            self.moved = todo_moved(None, self.todos, self.todos_at)
        for path, version in unheard.items():
            is_told = version.document.contract is not Contract.REPORT_CONTRACT and not version.document.recognised
            if is_told and not self._is_gone(path):
                self.problems += (replace(finding, path=path) for finding in version.findings)

    def _hand_off(self, version: Seen, document: Handoff) -> None:
        attempt = self.numbered(document.attempt or self.last or 1)
        before = attempt.handoff
        if before and not document.attempt:
            if self._is_rival(before, version):
                is_amended = before.digest != version.digest and any(
                    one.attempt == attempt.number and one.at <= version.at for one in self._decisions
                )
                # Beside numbered files, the file without a number is attempt 1.
                attempt = self.numbered(self.last + 1 if is_amended else 1)
            elif before.digest == version.digest:
                # Equal bytes in another place: the file was moved.
                attempt.handoff = version
                return
            elif attempt.returned and is_final(attempt.returned) and version.at >= attempt.returned.at:
                # A handoff written before the return belongs to its attempt, even if it was read later.
                attempt = self.numbered(self.last + 1)
        if attempt.handoff and not attempt.again and self._is_rival(attempt.handoff, version):
            self.report(DUPLICATE_HANDOFF, attempt.handoff.path, version.path)
            return
        if not attempt.handoff and not has_moved(document.todos):
            # Ticking a checklist inside the handoff changes the file's time, so that no longer tells the start.
            attempt.started_at = version.at if not attempt.returned else min(version.at, attempt.returned.at)
        if has_moved(document.todos):
            _begin(attempt, version.at)
        attempt.handoff, attempt.again = version, False
        attempt.session_id = document.session_id or attempt.session_id
        if document.todos is not None:
            self.todos, self.todos_at = document.todos, version.at

    def _hand_back(self, version: Seen, document: Return) -> bool:
        """Record a file that returns the task; return whether it says anything new."""
        attempt = self._returned_in(version, document)
        returned = attempt.returned
        if returned and returned[2:] == version[2:]:
            return False
        if returned and is_final(returned) and self._is_rival(returned, version):
            self._rivals[attempt.number, version.path] = version
            return True
        if document.outcome is Outcome.WORKING:
            _begin(attempt, version.at)
            attempt.started_at = version.at if attempt.started_at is None else attempt.started_at
        attempt.returned = version
        attempt.session_id = document.session_id or attempt.session_id
        return True

    def _returned_in(self, version: Seen, document: Return) -> Attempt:
        attempt, last, session = self.numbered(document.attempt or self.last or 1), self.last, document.session_id
        returned = attempt.returned
        if not returned:
            # One session may go through all attempts of a task.
            return attempt
        is_rival = self._is_rival(returned, version)
        if attempt.number == last and not (is_rival and returned.digest == version.digest):
            for one in self._decisions_to_go_on(attempt):
                # A change in the same file before anybody knew of the decision is only a correction.
                at = one.at if is_rival else one.read_at
                if at is not None and at <= version.at:
                    following = _go_on(attempt, self.numbered(last + 1))
                    following.started_at = min(one.at, version.at)
                    return following
        if document.attempt:
            return attempt
        if session not in (None, attempt.session_id) and (is_rival or attempt.session_id is not None):
            known = [number for number, one in self._known.items() if one.session_id == session]
            return self.numbered(max(known, default=last + (attempt.session_id is not None)))
        # A session that goes on after its return corrects that return.
        has_restarted = session is None or session != attempt.session_id
        has_restarted &= not is_rival and is_final(returned) and not is_final(version)
        return self.numbered(last + has_restarted)

    def _decisions_to_go_on(self, attempt: Attempt) -> list[Decision]:
        about = attempt.number, attempt.returned.digest if attempt.returned else None
        return [one for one in self._decisions if one.action in SENDS_ON and (one.attempt, one.return_sha256) == about]

    def _is_rival(self, before: Seen, version: Seen) -> bool:
        """Tell whether two files claim the same place; a file that is gone was replaced by the other or renamed."""
        return before.path != version.path and not self._is_gone(before.path)

    # Runs

    def _add_runs(self, runs: Iterable[Ran]) -> None:
        """Assign runs to attempts, turn by turn, in the order in which the turns began."""
        turns = [
            (at, order, number, ran, run)
            for order, ran in enumerate(runs)
            if (run := ran.run)
            # A session begun by a human is not split into attempts.
            for number, at in enumerate((run.began_at, *(one.began_at for one in run.rounds[1:] if run.parent_session)))
        ]
        executing: dict[int, tuple[Attempt, int]] = {}  # by run: its attempt, and the attempt's first turn
        for _, order, number, ran, run in sorted(turns, key=lambda turn: turn[:3]):
            attempt, first = executing.get(order, (None, 0))
            if not attempt:
                attempt = self._attempt_for(run, 0)
            elif self._begins_anew(attempt, run, number):
                attempt, first = _go_on(attempt, self._attempt_for(run, number, attempt.number)), number
            executing[order] = attempt, first
            end = number + 1 if run.parent_session else len(run.rounds)
            self._set_run(attempt, ran, run.part(first, end), is_later=first > 0)

    def _attempt_for(self, run: Run, number: int, after: int = 0) -> Attempt:
        """Return the attempt above `after` that a turn executes: by its number, its session, else the first free."""
        packet = packet_in(run.rounds[number].prompt) if number else run.packet
        stated = (packet.attempt if packet else None) or 0
        if stated > after and not self.numbered(stated).run:
            return self.numbered(stated)
        free = [one for one in self._known.values() if not one.run and one.number > after]
        # If other handoffs are numbered, one without a number counts as attempt 1.
        first = (one for one in free if not packet or not one.packet or not one.packet.attempt)
        for one in (*(one for one in free if one.session_id == run.session_id), *first):
            return one
        return self.numbered(next(each for each in count(max(stated, after + 1)) if each not in self._known))

    def _begins_anew(self, attempt: Attempt, run: Run, number: int) -> bool:
        """Tell whether a later turn of a run is a new attempt."""
        turn = run.rounds[number]
        if turn.asker is StartedBy.PROGRAM:
            return False
        if packet_in(turn.prompt):
            return True
        is_parent = turn.asker is StartedBy.PARENT
        if any(one.at <= turn.began_at and (one.is_read or is_parent) for one in self._decisions_to_go_on(attempt)):
            return True
        return is_parent and state_of(attempt, strict=self._rules.strict, demands=False) is State.FAILED

    def _set_run(self, attempt: Attempt, ran: Ran, run: Run, *, is_later: bool) -> None:
        """Assign a run, or the part of it that some turns form, to an attempt."""
        ran = ran._replace(run=run)
        given, returned, filed = handed_over(ran), handed_back(ran), attempt.returned
        attempt.run, attempt.session_id = run, run.session_id
        if attempt.started_at is None or (is_later and attempt.again):
            attempt.started_at = run.started_at
        if given and (not attempt.handoff or attempt.again):
            attempt.handoff, attempt.again = given, False
        if not filed or filed.stored or (is_final(returned) and not is_final(filed)):
            attempt.returned = returned
        todos = run.todos or (run.packet.todos if run.packet else None)
        if todos is not None and (self.todos_at is None or run.updated_at >= self.todos_at):
            self.todos, self.todos_at, self._todos_of = todos, run.updated_at, attempt

    # Results of the fold

    def _drop_old_todos(self) -> None:
        """Drop a checklist that belongs to an earlier attempt."""
        *before, latest = self.all
        began = latest.started_at or (latest.handoff.at if latest.handoff else 0.0)
        is_older = self._todos_of is None and has_moved(self.todos) and (self.todos_at or 0.0) < began
        if is_older or self._todos_of in before:
            self.todos = self.checklist = self.moved = None

    def _judge(self) -> None:
        """Set the states of all attempts, and assign the decisions to them."""
        self.all = [self._known[number] for number in sorted(self._known)]
        if len(self.all) > 1:
            self._drop_old_todos()
        for (number, path), version in self._rivals.items():
            attempt = self.numbered(number)
            if not attempt.returned or self._is_gone(path):
                continue
            self.report(DUPLICATE_RETURN, attempt.returned.path, path)
            said = {one.outcome for one in (attempt.result, version.document) if isinstance(one, Return)}
            # An early marker says nothing about the end.
            if len(said - {None, Outcome.WORKING}) > 1 and not attempt.rival:
                attempt.rival = version
        for attempt in self.all:
            attempt.state = state_of(attempt, strict=self._rules.strict, demands=self._rules.demands)
            packet, result, returned = attempt.packet, attempt.result, attempt.returned
            if not packet or not result or not returned:
                continue
            if answers_another_session(attempt):
                self.report(SESSION_MISMATCH, str(packet.session_id), returned.path)
            # A file belongs to the task that it names; a session's return, to the task of the session.
            if result.task_id is not None and packet.task_id not in (None, result.task_id):
                self.report(TASK_MISMATCH, result.task_id, returned.path)
        if self.all and self.all[-1].state is State.SUBMITTED and has_moved(self.todos):
            self.all[-1].state = State.WORKING
        for decision in self._decisions:
            self._bind(decision)
        for before, attempt in pairwise(self.all):
            # A failure without a decision stays open, even if a return claims to be of a later attempt.
            is_open = before.state in (State.FAILED, State.INVALID) and not before.decisions
            if (is_open or before.unasked) and not attempt.run and not attempt.handoff and attempt.returned:
                attempt.unasked = True
                self.report(UNASKED, str(attempt.number), attempt.returned.path)

    def _bind(self, decision: Decision) -> None:
        """Assign a decision to its attempt, if that still has the same return, or another attempt followed."""
        attempt, *later = [one for one in self.all if one.number >= decision.attempt] or [Attempt(0)]
        if attempt.number != decision.attempt:
            return
        returned, about = attempt.returned, decision.return_sha256
        if later:
            attempt.decisions += (decision.acted(later[0].started_at),)
        elif about == (returned.digest if returned else None):
            attempt.decisions += (decision,)
        elif returned and (about is not None or decision.action is Action.ABORT):
            attempt.superseded += (decision,)
            if decision.is_read or decision.action is Action.ABORT:
                attempt.decisions += (decision.acted(returned.at) if decision.is_read else decision,)


def handed_over(ran: Ran) -> Seen | None:
    """Return the handoff packet in a run's prompt; None if there is none or a human asked."""
    run = ran.run
    return _version(ran, run.prompt, Handoff) if run and run.parent_session else None


def handed_back(ran: Ran) -> Seen | None:
    """Return the return that a run ended with; None if it has not ended by itself, or follows no contract."""
    run = ran.run
    is_over = run and run.parent_session and run.state is RunState.ENDED
    return _version(ran, run.said, Return) if run and is_over else None


def _version(ran: Ran, message: Message | None, kind: type[Handoff | Return]) -> Seen | None:
    for one in (message.packet, message.reading) if message else ():
        if message and one and isinstance(one.document, kind):
            return Seen(ran.seq, message.at, ran.path, message.digest, one.document, one.findings, stored=True)
    return None


def _begin(attempt: Attempt, at: float) -> None:
    """Note that a file shows an attempt at work."""
    attempt.first_at = at if attempt.first_at is None else attempt.first_at


def _go_on(before: Attempt, attempt: Attempt) -> Attempt:
    """Let an attempt that goes on in the session of the one before inherit its handoff."""
    if not attempt.handoff:
        attempt.handoff, attempt.again = before.handoff, True
    return attempt
