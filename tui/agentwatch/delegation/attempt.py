"""An attempt: one execution of a task, as far as handoff, return, session store and operator tell."""

from __future__ import annotations

from dataclasses import dataclass

from agentwatch.contracts.shapes import Handoff, Outcome, Return, Todo, TodoStatus
from agentwatch.delegation.decision import Action, Decision
from agentwatch.delegation.run import Run, RunState
from agentwatch.delegation.task import State, Version


@dataclass(slots=True)
class Attempt:
    """One execution of a task: the handoff that asked for it and the return that ended it, as far as seen."""

    number: int
    state: State = State.SUBMITTED
    session_id: str | None = None
    handoff: Version | None = None
    returned: Version | None = None
    rival: Version | None = None
    """A return in another file that says otherwise, so that nobody can tell which is true."""
    started_at: float | None = None
    run: Run | None = None
    """The execution as a session store shows it, None where only files speak of it."""
    again: bool = False
    """It goes on in the session of the attempt before, with the same handoff."""
    superseded: tuple[Decision, ...] = ()
    """What was decided about a return of this attempt that is not there any more, and that nobody saw."""
    unasked: bool = False
    """Its return alone numbers it, or another session began it, after a failure about which nobody decided."""
    decisions: tuple[Decision, ...] = ()
    """About this attempt, or about an answer that it gave before in the same session, in their order."""

    @property
    def decision(self) -> Decision | None:
        """What was decided last, and has not expired since."""
        for one in reversed(self.decisions):
            if not one.expired:
                return one
        return None

    @property
    def binding(self) -> Decision | None:
        """The decision, as long as it is about the very return and handoff that are there now.

        An abort ends the attempt: the final report, or a late failure of the child, begins nothing anew.
        """
        decision = self.decision
        if decision is None or decision.over:
            return None
        is_now = decision.return_sha256 == (self.returned.digest if self.returned else None)
        is_now = is_now and decision.handoff_sha256 in (None, self.packet_digest or decision.handoff_sha256)
        return decision if is_now or (decision.action is Action.ABORT and self.has_no_result) else None

    @property
    def packet_digest(self) -> str | None:
        """The digest of the handoff; None without one, or where a checklist in it was ticked, which amends nothing."""
        packet = self.packet
        if self.handoff is None or packet is None or has_moved(packet.todos):
            return None
        return self.handoff.digest

    @property
    def has_no_result(self) -> bool:
        """What an aborted child leaves: its final report, or that it failed late."""
        return self.state in (State.BLOCKED, State.FAILED, State.INVALID)

    @property
    def handed_off_at(self) -> float | None:
        """Since when the files that it made count as its own: what a session made in the attempt before does, too."""
        if self.handoff is None:
            return None
        return self.handoff.at if self.again else self.started_at

    @property
    def ended_without_result(self) -> bool:
        """Its session has ended, and the last word of its return is an early marker."""
        run, result, returned = self.run, self.result, self.returned
        if run is None or result is None or returned is None or run.parent_session is None:
            return False
        has_ended = run.state is RunState.ENDED and returned.at <= (run.ended_at or run.updated_at)
        return has_ended and result.outcome is Outcome.WORKING

    @property
    def packet(self) -> Handoff | None:
        document = self.handoff.document if self.handoff else None
        return document if isinstance(document, Handoff) else None

    @property
    def result(self) -> Return | None:
        document = self.returned.document if self.returned else None
        return document if isinstance(document, Return) else None


def has_moved(todos: tuple[Todo, ...] | None) -> bool:
    """Whether a checklist was begun, which is a sign of life."""
    return any(todo.status is not TodoStatus.PENDING for todo in todos or ())
