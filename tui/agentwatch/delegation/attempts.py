"""Finds the attempts of one task in all versions of its files and in its runs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count, pairwise

from agentwatch.contracts.rules import Rule
from agentwatch.contracts.shapes import Contract, Finding, Handoff, Outcome, Return, TodoList, Todos
from agentwatch.delegation.decision import RESUMING, Action, Decision
from agentwatch.delegation.events import (
    Activity,
    Message,
    Ran,
    Rules,
    Run,
    RunState,
    Seen,
    StartedBy,
    find_moved_todo,
    find_packet,
)
from agentwatch.delegation.links import (
    DUPLICATE_HANDOFF,
    DUPLICATE_RETURN,
    SESSION_MISMATCH,
    TASK_MISMATCH,
    UNASKED,
    make_finding,
)
from agentwatch.delegation.standing import answers_another_session, is_final, state_of
from agentwatch.delegation.task import Attempt, State, is_begun


class Attempts:
    """The attempts of one task. Usually an attempt begins with a new number, with a new session, or when the handoff
    is rewritten after the return."""

    def __init__(
        self,
        versions: Sequence[Seen],
        runs: Iterable[Ran],
        decisions: Sequence[Decision],
        rules: Rules,
        is_gone: Callable[[str], bool],
    ):
        """Find the attempts. `versions` are sorted by when they were observed, and `runs` by when they began."""
        self._known: dict[int, Attempt] = {}
        self.todos: Todos | None = None
        self.todos_at: float | None = None
        self._todos_of: Attempt | None = None  # the attempt whose run has the todos; None if a file has them
        self.checklist: Seen | None = None
        self.moved_todo: Activity | None = None  # in files: the todo in progress, or else the todo that was ticked last
        self.problems: list[Finding] = []
        self.updated_at = 0.0  # when a file last showed a sign of life
        self._decisions, self._rules, self._is_gone = decisions, rules, is_gone
        # Returns that are ignored because another file already has a return of the attempt. By (attempt, path).
        self._other_returns: dict[tuple[int, str], Seen] = {}
        self._add_files(versions)
        self._add_runs(runs)
        self._judge_attempts()

    def attempt(self, number: int) -> Attempt:
        """Return the attempt with this number. Create the attempt if it is missing."""
        return self._known.setdefault(number, Attempt(number))

    @property
    def last(self) -> int:
        """The highest number of an attempt, or 0 if there is none."""
        return max(self._known, default=0)

    def add_problem(self, rule: Rule, other: str, path: str) -> None:
        """Add a finding about the links of a file. `other` names the other task, file or session."""
        self.problems.append(make_finding(rule, other, path))

    # Files

    def _add_files(self, versions: Sequence[Seen]) -> None:
        returns = [(one.path, one.document) for one in versions if isinstance(one.document, Return)]
        returning = {path for path, one in returns if one.recognised and not one.fenced}
        uncounted: dict[str, Seen] = {}
        for version in versions:
            document = version.document
            if isinstance(document, Handoff):
                self._add_handoff(version, document)
            elif isinstance(document, TodoList):
                self.todos, self.todos_at, self.checklist = document.items, version.at, version
                if is_begun(document.items):
                    _note_sign_of_work(self.attempt(self.last or 1), version.at)
            elif returning and version.path not in returning:
                # If the task has a real return, ignore returns in fences, and files with only the name of a return.
                uncounted[version.path] = version
            elif not self._add_return(version, document):
                continue
            self.updated_at = max(self.updated_at, version.at)
        if self.todos_at is not None:
            self.moved_todo = find_moved_todo(None, self.todos, self.todos_at)
        for path, version in uncounted.items():
            is_told = version.document.contract is not Contract.REPORT_CONTRACT and not version.document.recognised
            if is_told and not self._is_gone(path):
                self.problems += (replace(finding, path=path) for finding in version.findings)

    def _add_handoff(self, version: Seen, document: Handoff) -> None:
        attempt = self.attempt(document.attempt or self.last or 1)
        before = attempt.handoff
        if before and not document.attempt:
            if self._is_other_file(before, version):
                is_amended = before.digest != version.digest and any(
                    one.attempt == attempt.number and one.at <= version.at for one in self._decisions
                )
                # If other handoffs have numbers, a handoff without a number belongs to attempt 1.
                attempt = self.attempt(self.last + 1 if is_amended else 1)
            elif before.digest == version.digest:
                # Equal bytes: the file was only moved, or written again.
                attempt.handoff = version
                return
            elif attempt.returned and is_final(attempt.returned) and version.at >= attempt.returned.at:
                # Only a handoff that was written after the return begins a new attempt.
                attempt = self.attempt(self.last + 1)
        if attempt.handoff and not attempt.again and self._is_other_file(attempt.handoff, version):
            self.add_problem(DUPLICATE_HANDOFF, attempt.handoff.path, version.path)
            return
        if not attempt.handoff and not is_begun(document.todos):
            # The attempt began when the file was written. A tick in its checklist changes the time of the file.
            attempt.started_at = version.at if not attempt.returned else min(version.at, attempt.returned.at)
        if is_begun(document.todos):
            _note_sign_of_work(attempt, version.at)
        attempt.handoff, attempt.again = version, False
        attempt.session_id = document.session_id or attempt.session_id
        if document.todos is not None:
            self.todos, self.todos_at = document.todos, version.at

    def _add_return(self, version: Seen, document: Return) -> bool:
        """Assign a return in a file to its attempt. Return False if the return says nothing new."""
        attempt = self._attempt_of_return(version, document)
        returned = attempt.returned
        if returned and returned[2:] == version[2:]:
            return False
        if returned and is_final(returned) and self._is_other_file(returned, version):
            self._other_returns[attempt.number, version.path] = version
            return True
        if document.outcome is Outcome.WORKING:
            _note_sign_of_work(attempt, version.at)
            attempt.started_at = version.at if attempt.started_at is None else attempt.started_at
        attempt.returned = version
        attempt.session_id = document.session_id or attempt.session_id
        return True

    def _attempt_of_return(self, version: Seen, document: Return) -> Attempt:
        attempt, last, session = self.attempt(document.attempt or self.last or 1), self.last, document.session_id
        returned = attempt.returned
        if not returned:
            # Ignore the session of the first return: one session may make all attempts of a task.
            return attempt
        is_rival = self._is_other_file(returned, version)
        if attempt.number == last and not (is_rival and returned.digest == version.digest):
            for one in self._continuing_decisions(attempt):
                # Until an agent has read the decision, a change of the same file only corrects the return.
                at = one.at if is_rival else one.read_at
                if at is not None and at <= version.at:
                    following = _inherit(attempt, self.attempt(last + 1))
                    following.started_at = min(one.at, version.at)
                    return following
        if document.attempt:
            return attempt
        if session not in (None, attempt.session_id) and (is_rival or attempt.session_id is not None):
            known = [number for number, one in self._known.items() if one.session_id == session]
            return self.attempt(max(known, default=last + (attempt.session_id is not None)))
        # Another return by the same session is only a correction.
        has_restarted = session is None or session != attempt.session_id
        has_restarted &= not is_rival and is_final(returned) and not is_final(version)
        return self.attempt(last + has_restarted)

    def _continuing_decisions(self, attempt: Attempt) -> list[Decision]:
        """Return the decisions about the current return that a child can carry out in its own session."""
        returned_as = attempt.number, attempt.returned.digest if attempt.returned else None
        return [
            one for one in self._decisions if one.action in RESUMING and (one.attempt, one.return_sha256) == returned_as
        ]

    def _is_other_file(self, before: Seen, version: Seen) -> bool:
        """Tell whether two versions are of different files. A first file that is gone was only renamed or replaced."""
        return before.path != version.path and not self._is_gone(before.path)

    # Runs

    def _add_runs(self, runs: Iterable[Ran]) -> None:
        """Assign each turn (the work on one prompt) of the runs to an attempt, the oldest turn first."""
        turns = [
            (at, order, number, ran, run)
            for order, ran in enumerate(runs)
            if (run := ran.run)
            # All turns of a session that a human began are one attempt.
            for number, at in enumerate((run.began_at, *(one.began_at for one in run.rounds[1:] if run.parent_session)))
        ]
        executing: dict[int, tuple[Attempt, int]] = {}  # by run: its attempt, and the first turn of the attempt
        for _, order, number, ran, run in sorted(turns, key=lambda turn: turn[:3]):
            attempt, first = executing.get(order, (None, 0))
            if not attempt:
                attempt = self._attempt_for(run, 0)
            elif self._begins_new_attempt(attempt, run, number):
                attempt, first = _inherit(attempt, self._attempt_for(run, number, attempt.number)), number
            executing[order] = attempt, first
            end = number + 1 if run.parent_session else len(run.rounds)
            self._assign_run(attempt, ran, run.cut_rounds(first, end), is_later=first > 0)

    def _attempt_for(self, run: Run, number: int, after: int = 0) -> Attempt:
        """Return the attempt that a turn executes. Its number is above `after`. Take the number in the prompt, or else
        an attempt of the same session, or else the first attempt without a run."""
        packet = find_packet(run.rounds[number].prompt) if number else run.packet
        stated = (packet.attempt if packet else None) or 0
        if stated > after and not self.attempt(stated).run:
            return self.attempt(stated)
        free = [one for one in self._known.values() if not one.run and one.number > after]
        # If the prompt has a packet, leave out attempts whose handoff has a number.
        first = (one for one in free if not packet or not one.packet or not one.packet.attempt)
        for one in (*(one for one in free if one.session_id == run.session_id), *first):
            return one
        return self.attempt(next(each for each in count(max(stated, after + 1)) if each not in self._known))

    def _begins_new_attempt(self, attempt: Attempt, run: Run, number: int) -> bool:
        turn = run.rounds[number]
        if turn.asker is StartedBy.PROGRAM:
            return False
        if find_packet(turn.prompt):
            return True
        is_parent = turn.asker is StartedBy.PARENT
        if any(one.at <= turn.began_at and (one.is_read or is_parent) for one in self._continuing_decisions(attempt)):
            return True
        return is_parent and state_of(attempt, strict=self._rules.strict, demands=False) is State.FAILED

    def _assign_run(self, attempt: Attempt, ran: Ran, run: Run, *, is_later: bool) -> None:
        """Assign a run to an attempt. `run` has only the turns of this attempt."""
        ran = ran._replace(run=run)
        given, returned, filed = handoff_of_run(ran), return_of_run(ran), attempt.returned
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

    # Results

    def _drop_old_todos(self) -> None:
        *before, latest = self.all
        began = latest.started_at or (latest.handoff.at if latest.handoff else 0.0)
        is_older = self._todos_of is None and is_begun(self.todos) and (self.todos_at or 0.0) < began
        if is_older or self._todos_of in before:
            self.todos = self.checklist = self.moved_todo = None

    def _judge_attempts(self) -> None:
        """Set the states of all attempts, and assign the decisions to the attempts."""
        self.all = [self._known[number] for number in sorted(self._known)]
        if len(self.all) > 1:
            self._drop_old_todos()
        for (number, path), version in self._other_returns.items():
            attempt = self.attempt(number)
            if not attempt.returned or self._is_gone(path):
                continue
            self.add_problem(DUPLICATE_RETURN, attempt.returned.path, path)
            said = {one.outcome for one in (attempt.result, version.document) if isinstance(one, Return)}
            # A return that says `in_progress` does not contradict another return.
            if len(said - {None, Outcome.WORKING}) > 1 and not attempt.rival:
                attempt.rival = version
        for attempt in self.all:
            attempt.state = state_of(attempt, strict=self._rules.strict, demands=self._rules.demands)
            packet, result, returned = attempt.packet, attempt.result, attempt.returned
            if not packet or not result or not returned:
                continue
            if answers_another_session(attempt):
                self.add_problem(SESSION_MISMATCH, str(packet.session_id), returned.path)
            # A file always belongs to the task that it names. But a session may return the work of another task.
            if result.task_id is not None and packet.task_id not in (None, result.task_id):
                self.add_problem(TASK_MISMATCH, result.task_id, returned.path)
        if self.all and self.all[-1].state is State.SUBMITTED and is_begun(self.todos):
            self.all[-1].state = State.WORKING
        for decision in self._decisions:
            self._assign_decision(decision)
        for before, attempt in pairwise(self.all):
            # If nobody decided about a failure, nobody asked for a later attempt that only a return names.
            is_open = before.state in (State.FAILED, State.INVALID) and not before.decisions
            if (is_open or before.unasked) and not attempt.run and not attempt.handoff and attempt.returned:
                attempt.unasked = True
                self.add_problem(UNASKED, str(attempt.number), attempt.returned.path)

    def _assign_decision(self, decision: Decision) -> None:
        """Assign a decision to its attempt. If the return has changed since, the decision is superseded."""
        attempt, *later = [one for one in self.all if one.number >= decision.attempt] or [Attempt(0)]
        if attempt.number != decision.attempt:
            return
        returned, about = attempt.returned, decision.return_sha256
        if later:
            attempt.decisions += (decision.as_carried_out(later[0].started_at),)
        elif about == (returned.digest if returned else None):
            attempt.decisions += (decision,)
        elif returned and (about is not None or decision.action is Action.ABORT):
            attempt.superseded += (decision,)
            if decision.is_read or decision.action is Action.ABORT:
                attempt.decisions += (decision.as_carried_out(returned.at) if decision.is_read else decision,)


def handoff_of_run(ran: Ran) -> Seen | None:
    """Return the handoff packet in a run's prompt. Return None if the prompt has none, or if a human began the run."""
    run = ran.run
    return _find_document(ran, run.prompt, Handoff) if run and run.parent_session else None


def return_of_run(ran: Ran) -> Seen | None:
    """Return the return with which a run has ended. Return None if the run goes on, did not end by itself, or ended
    with other text."""
    run = ran.run
    is_over = run and run.parent_session and run.state is RunState.ENDED
    return _find_document(ran, run.said, Return) if run and is_over else None


def _find_document(ran: Ran, message: Message | None, kind: type[Handoff | Return]) -> Seen | None:
    for one in (message.packet, message.reading) if message else ():
        if message and one and isinstance(one.document, kind):
            return Seen(ran.seq, message.at, ran.path, message.digest, one.document, one.findings, stored=True)
    return None


def _note_sign_of_work(attempt: Attempt, at: float) -> None:
    attempt.first_at = at if attempt.first_at is None else attempt.first_at


def _inherit(before: Attempt, attempt: Attempt) -> Attempt:
    """If `attempt` has no handoff, give it the handoff of the attempt before. Return `attempt`."""
    if not attempt.handoff:
        attempt.handoff, attempt.again = before.handoff, True
    return attempt
