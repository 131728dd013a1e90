"""Everything that speaks of one task, folded into its attempts. Pure: equal versions give equal attempts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from typing import Final

from agentwatch.contracts.rules import Rule
from agentwatch.contracts.shapes import Contract, Handoff, Outcome, Reading, Return, Todo
from agentwatch.delegation.decision import SENDS_ON, Action, Decision
from agentwatch.delegation.events import Ran, Rules
from agentwatch.delegation.files import held
from agentwatch.delegation.links import (
    DUPLICATE_HANDOFF,
    DUPLICATE_RETURN,
    SESSION_MISMATCH,
    TASK_MISMATCH,
    UNASKED,
    finding_of,
)
from agentwatch.delegation.run import Activity, Message, Run, RunState, StartedBy, Turn, packet_in
from agentwatch.delegation.states import answers_another_session, is_early, state_of
from agentwatch.delegation.task import Attempt, PlacedFinding, State, Version, has_moved

_SENT_ON: Final = "sent on before it had answered"


@dataclass(slots=True, kw_only=True)
class Attempts:
    """The attempts of one task, its latest checklist, and what does not fit together."""

    is_gone: Callable[[str], bool]
    rules: Rules
    decisions: Sequence[Decision]
    all: list[Attempt] = field(default_factory=list)
    todos: tuple[Todo, ...] | None = None
    todos_at: float | None = None
    checklist: Version | None = None
    moved: Activity | None = None  # the todo that was ticked or begun last, in a file
    problems: list[PlacedFinding] = field(default_factory=list)
    rivals: dict[int, dict[str, Version]] = field(default_factory=dict)
    """By attempt and path, the returns in files beside the one that counts."""

    def numbered(self, number: int) -> Attempt:
        """The attempt with this number, made where there is none."""
        for attempt in self.all:
            if attempt.number == number:
                return attempt
        self.all.append(attempt := Attempt(number))
        return attempt

    def latest(self) -> Attempt:
        """The attempt with the highest number, the first where there is none."""
        return self.numbered(max((attempt.number for attempt in self.all), default=1))

    def following(self) -> Attempt:
        """The attempt after the latest one."""
        return self.numbered(max((attempt.number for attempt in self.all), default=0) + 1)

    def of_session(self, session: str | None) -> Attempt | None:
        """The first attempt of a session."""
        return next((one for one in self.all if session is not None and one.session_id == session), None)

    def report(self, rule: Rule, other: str, path: str) -> None:
        """A file breaks a rule of linking; `other` is the other party."""
        self.problems.append(PlacedFinding(finding_of(rule, other), path))

    def hand_off(self, version: Version, document: Handoff) -> None:
        """A file hands the task off."""
        if document.attempt is not None:
            attempt = self.numbered(document.attempt)
        else:
            attempt = self.latest()
            before = attempt.handoff
            if before and self._is_rival(before, version) and self._decided(attempt, before, version):
                attempt = self.following()
            elif self._is_rival(before, version):
                # Beside numbered files, the one without a number is the first.
                attempt = self.numbered(1)
            elif attempt.handoff and attempt.handoff.digest == version.digest:
                # The same words in another place: it was moved.
                attempt.handoff = version
                return
            elif attempt.handoff and attempt.returned and not is_early(attempt.returned):
                attempt = self.following()
        if attempt.handoff and not attempt.again and self._is_rival(attempt.handoff, version):
            self.report(DUPLICATE_HANDOFF, attempt.handoff.path, version.path)
            return
        if attempt.handoff is None and not has_moved(document.todos):
            # A checklist that is ticked off in the handoff itself moves the time of the file: then nothing tells when
            # it was handed off.
            attempt.started_at = version.at if attempt.returned is None else min(version.at, attempt.returned.at)
        attempt.handoff, attempt.again = version, False
        attempt.session_id = document.session_id or attempt.session_id
        if document.todos is not None:
            self.todos, self.todos_at, self.moved = document.todos, version.at, version.moved

    def hand_back(self, version: Version, document: Return) -> None:
        """A file returns the task."""
        attempt = self._returned_in(version, document)
        returned = attempt.returned
        if returned and not is_early(returned) and self._is_rival(returned, version):
            self.report(DUPLICATE_RETURN, returned.path, version.path)
            self.rivals.setdefault(attempt.number, {})[version.path] = version
            return
        if attempt.started_at is None and document.outcome is Outcome.WORKING:
            attempt.started_at = version.at
        attempt.returned = version
        attempt.session_id = document.session_id or attempt.session_id

    def _returned_in(self, version: Version, document: Return) -> Attempt:
        attempt = self.latest() if document.attempt is None else self.numbered(document.attempt)
        if (decision := self._sent_on(attempt, version)) is not None:
            following = _go_on(attempt, self.following())
            following.started_at = min(decision.at, version.at)
            return following
        returned = attempt.returned
        if document.attempt is not None:
            return attempt
        is_same_file = not self._is_rival(returned, version)
        if not self._is_open(attempt, version) and (known := self._known(version, document)) is not None:
            return known
        if returned is None or (is_same_file and returned.digest == version.digest):
            return attempt
        other_session = document.session_id is not None and attempt.session_id is not None
        restarted = document.outcome is Outcome.WORKING and not is_early(returned) and attempt.result is not None
        return self.numbered(attempt.number + 1) if other_session or (restarted and is_same_file) else attempt

    def _is_open(self, attempt: Attempt, version: Version) -> bool:
        """Whether the latest attempt takes a return of any session: a session may go through all attempts of a task."""
        if attempt.returned is None:
            return not _is_older(version, attempt)
        return attempt.session_id is None and not self._is_rival(attempt.returned, version)

    def _known(self, version: Version, document: Return) -> Attempt | None:
        """The last attempt of the session of a return, but for one that was handed off after that was written."""
        session = document.session_id
        mine = [one for one in self.all if session is not None and session in (one.session_id, _handed_to(one))]
        return max((one for one in mine if not _is_older(version, one)), key=lambda one: one.number, default=None)

    def _sent_on(self, attempt: Attempt, version: Version) -> Decision | None:
        """The decision because of which a return file was rewritten, None where that is not known."""
        before = attempt.returned
        if before is None or attempt is not self.latest():
            return None
        if self._is_rival(before, version):
            return self._decided(attempt, before, version)
        is_same = before.digest == version.digest
        for one in self.decisions:
            about_it = one.attempt == attempt.number and one.return_sha256 == before.digest
            # The same words may have been written once more before anybody knew of the decision.
            if is_same and not one.sent_on(before.digest, before.at, version.at):
                continue
            if one.action in SENDS_ON and about_it and one.is_read and _is_of_handoff(one, attempt):
                return one
        return None

    def _decided(self, attempt: Attempt, before: Version, version: Version) -> Decision | None:
        """The decision about an attempt after which a file with other words came than `before`: that is of the next."""
        if before.digest == version.digest:
            return None
        amends = isinstance(version.document, Handoff)
        for one in self.decisions:
            is_about_it = one.attempt == attempt.number and one.request_id is None and one.at <= version.at
            if is_about_it and (amends or one.action in SENDS_ON):
                return one
        return None

    def _is_rival(self, before: Version | None, version: Version) -> bool:
        """Whether two files claim the same place. A file that is gone was followed by the other, or renamed to it."""
        return before is not None and before.path != version.path and not self.is_gone(before.path)


def fold(
    versions: Sequence[Version],
    runs: Iterable[Ran],
    decisions: Sequence[Decision],
    rules: Rules,
    *,
    is_gone: Callable[[str], bool],
    began_in: Callable[[Run], str],
) -> Attempts:
    """The attempts of a task from all versions of its files, in the order they were observed, and all its runs, in the
    order in which they began.

    An attempt ends with a return. The next one begins with a number of its own, with another session, with the same
    handoff file rewritten after the return, with an early marker (`in_progress`) after a final return, or with what
    comes of a decision to retry or to answer, also where the child carries it out in its own session. `is_gone` tells
    the files that are not there any more, `began_in` the session in which all began that led to a run.
    """
    attempts = Attempts(is_gone=is_gone, rules=rules, decisions=decisions)
    returning = {one.path for one in versions if isinstance(one.document, Return) and one.document.recognised}
    unheard: dict[str, Version] = {}
    for version in versions:
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
    _execute(attempts, runs)
    attempts.all.sort(key=lambda attempt: attempt.number)
    for attempt in attempts.all:
        attempt.rival = _rival_of(attempts, attempt) if attempts.rivals else None
        attempt.state = state_of(attempt, strict=rules.strict, demands=rules.demands)
        _report_mismatches(attempts, attempt)
    if attempts.all and attempts.all[-1].state is State.SUBMITTED and has_moved(attempts.todos):
        attempts.all[-1].state = State.WORKING
    for decision in decisions:
        _bind(attempts, decision)
    _report_unasked(attempts, began_in)
    return attempts


def counting(versions: Sequence[Version], decisions: Sequence[Decision] = ()) -> tuple[Version, ...]:
    """The versions of one task that say something, in their order."""
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


_Execution = tuple[Attempt, Version | None, int]
"""The attempt that a run executes, the return of that in a file, and since which turn."""


def _execute(attempts: Attempts, runs: Iterable[Ran]) -> None:
    """Runs execute attempts, turn by turn, in the order in which these began."""
    turns: list[tuple[float, int, int, Ran, Run]] = []
    for order, ran in enumerate(runs):
        if (run := ran.run) is None:
            continue
        began = run.began_at
        turns.append((began, order, 0, ran, run))
        # A human's session is no attempt of anybody's.
        for number, turn in enumerate(run.rounds[1:] if run.parent_session is not None else (), 1):
            began = max(began, turn.began_at)
            turns.append((began, order, number, ran, run))
    executing: dict[int, _Execution] = {}
    for _, order, number, ran, run in sorted(turns, key=lambda turn: turn[:3]):
        if order not in executing:
            attempt = _first_attempt(attempts, run)
            executing[order] = attempt, attempt.returned, 0
        elif _begins_anew(attempts, executing[order][0], run, executing[order][2], number):
            before = executing[order][0]
            if before.run is not None and before.run.state is RunState.WORKING and before.returned is None:
                # Nobody works on it any more: its session has gone on.
                before.run = replace(before.run, state=RunState.FAILED, reason=_SENT_ON)
            attempt = _go_on(before, _next_attempt(attempts, before, run, number))
            executing[order] = attempt, attempt.returned, number
        end = number + 1 if run.parent_session is not None else len(run.rounds)
        _set_run(attempts, executing[order], ran, run.part(executing[order][2], end))


def _first_attempt(attempts: Attempts, run: Run) -> Attempt:
    """A run executes the attempt with its number or its session, else the first that nobody is known to execute."""
    packet = run.packet
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


def _begins_anew(attempts: Attempts, attempt: Attempt, run: Run, first: int, number: int) -> bool:
    """Whether a later turn of a run, which executes an attempt since its `first` turn, is an attempt of its own."""
    turn = run.rounds[number]
    if turn.asker is StartedBy.PROGRAM:
        return False
    if packet_in(turn.prompt) is not None or _stated_attempt(run, number) > attempt.number:
        return True
    ended = {one.said.digest if one.said is not None and _return_in(one) else None for one in run.rounds[first:number]}
    ended.add(attempt.returned.digest if attempt.returned is not None else None)
    for decision in attempts.decisions:
        is_about_it = decision.attempt == attempt.number and decision.return_sha256 in ended
        is_known = decision.at <= turn.began_at and (decision.is_read or turn.asker is StartedBy.PARENT)
        if is_about_it and is_known and decision.action in SENDS_ON:
            return True
    has_failed = state_of(attempt, strict=attempts.rules.strict, demands=False) is State.FAILED
    return turn.asker is StartedBy.PARENT and has_failed


def _stated_attempt(run: Run, number: int) -> int:
    """The number of its attempt that a turn states in its return; 0 where it states none."""
    said = run.rounds[number].said if number + 1 < len(run.rounds) else run.said
    document = said.reading.document if said is not None and said.reading is not None else None
    return (document.attempt if isinstance(document, Return) else None) or 0


def _next_attempt(attempts: Attempts, attempt: Attempt, run: Run, number: int) -> Attempt:
    """The attempt that a later turn of a run executes: the one it states, else the first that waits for it."""
    packet = packet_in(run.rounds[number].prompt)
    stated = max((packet.attempt if packet is not None else None) or 0, _stated_attempt(run, number))
    if stated > attempt.number and all(one.run is None for one in attempts.all if one.number == stated):
        return attempts.numbered(stated)
    waiting = [one for one in attempts.all if one.number > attempt.number and one.run is None]
    # A return may name the session of a whole command, which is not what the store calls the child.
    named = attempt.result.session_id if attempt.result is not None else None
    mine = [one for one in waiting if one.session_id in (None, run.session_id, named)]
    return min(mine, key=lambda one: one.number, default=None) or attempts.following()


def _set_run(attempts: Attempts, execution: _Execution, ran: Ran, run: Run) -> None:
    """Have an attempt be executed by some turns of a run, which are a run of their own."""
    attempt, filed, first = execution
    ran = ran._replace(run=run)
    given, returned, packet = handed_over(ran), handed_back(ran), run.packet
    attempt.run, attempt.session_id = run, run.session_id
    if attempt.started_at is None or (first and attempt.again):
        attempt.started_at = run.started_at
    if given is not None and (attempt.handoff is None or attempt.again):
        attempt.handoff, attempt.again = given, False
    is_later = returned is not None and filed is not None and is_early(filed) and not is_early(returned)
    attempt.returned = returned if filed is None or is_later else filed
    todos = run.todos or (packet.todos if packet is not None else None)
    if todos is not None and (attempts.todos_at is None or run.updated_at >= attempts.todos_at):
        attempts.todos, attempts.todos_at = todos, run.updated_at


def handed_over(ran: Ran) -> Version | None:
    """The handoff packet in what a run was asked for; None where it was asked in words alone, or by a human."""
    run = ran.run
    if run is None or run.packet is None or run.prompt is None:
        return None
    return _version(ran, run.prompt, run.prompt.packet or run.prompt.reading)


def handed_back(ran: Ran) -> Version | None:
    """The return that a run ended with; None where it has not ended by itself, or follows no contract."""
    run = ran.run
    return _version(ran, run.said, _return_in(run)) if run is not None and run.parent_session is not None else None


def _return_in(turn: Run | Turn) -> Reading | None:
    """The return that a run or a turn ended with by itself; None where it follows no contract."""
    reading = turn.said.reading if turn.said is not None and turn.state is RunState.ENDED else None
    return reading if reading is not None and isinstance(reading.document, Return) else None


def _version(ran: Ran, message: Message | None, reading: Reading | None) -> Version | None:
    if message is None or reading is None:
        return None
    return Version(ran.seq, message.at, ran.path, message.digest, reading.document, reading.findings, stored=True)


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
    """Whether another return than the one that was decided about came of the decision, in the same attempt."""
    answered = decision.is_read and decision.return_sha256 is not None
    return _is_of_handoff(decision, attempt) and (answered or decision.action is Action.ABORT)


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


def _is_older(version: Version, attempt: Attempt) -> bool:
    """Whether a return was written before an attempt that nothing has answered was handed off."""
    return attempt.returned is None and attempt.started_at is not None and version.at < attempt.started_at


def _handed_to(attempt: Attempt) -> str | None:
    """The session that the packet of an attempt names."""
    return attempt.packet.session_id if attempt.packet is not None else None


def _go_on(before: Attempt, attempt: Attempt) -> Attempt:
    """The attempt that goes on in the session of the one before: what that was handed, this one is as well."""
    if attempt.handoff is None:
        attempt.handoff, attempt.again = before.handoff, True
    return attempt


def _is_of_handoff(decision: Decision, attempt: Attempt) -> bool:
    """Whether an attempt still goes by the handoff that was decided about."""
    return attempt.handoff is not None and attempt.handoff.digest == decision.handoff_sha256
