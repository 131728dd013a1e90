"""The attempts of one task: which handoff and which return, of its files, belong to which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agentwatch.contracts.rules import Rule
from agentwatch.contracts.shapes import Handoff, Outcome, Return, Todo
from agentwatch.delegation.attempt import Attempt, has_moved
from agentwatch.delegation.decision import SENDS_ON, Decision
from agentwatch.delegation.problems import DUPLICATE_HANDOFF, DUPLICATE_RETURN, finding_of
from agentwatch.delegation.run import Doing
from agentwatch.delegation.standing import is_early
from agentwatch.delegation.task import PlacedFinding, Version


@dataclass(slots=True, kw_only=True)
class Attempts:
    """The attempts of one task, its latest checklist, and what does not fit together."""

    is_gone: Callable[[str], bool]
    strict: bool
    decisions: Sequence[Decision]
    all: list[Attempt] = field(default_factory=list)
    todos: tuple[Todo, ...] | None = None
    todos_at: float | None = None
    checklist: Version | None = None
    moved: Doing | None = None
    """The todo that was ticked or begun last, in a file."""
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
            following = go_on(attempt, self.following())
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
        """Whether the latest attempt takes a return of any session: a session may go through all attempts of a task.

        What is written after a handoff answers it, and so does what completes a file that named no session.
        """
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
            if one.action in SENDS_ON and about_it and one.is_read and is_of_handoff(one, attempt):
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


def _is_older(version: Version, attempt: Attempt) -> bool:
    """Whether a return was written before an attempt that nothing has answered was handed off."""
    return attempt.returned is None and attempt.started_at is not None and version.at < attempt.started_at


def _handed_to(attempt: Attempt) -> str | None:
    """The session that the packet of an attempt names."""
    return attempt.packet.session_id if attempt.packet is not None else None


def go_on(before: Attempt, attempt: Attempt) -> Attempt:
    """The attempt that goes on in the session of the one before: what that was handed, this one is as well."""
    if attempt.handoff is None:
        attempt.handoff, attempt.again = before.handoff, True
    return attempt


def is_of_handoff(decision: Decision, attempt: Attempt) -> bool:
    """Whether an attempt still goes by the handoff that was decided about."""
    return attempt.handoff is not None and attempt.handoff.digest == decision.handoff_sha256
