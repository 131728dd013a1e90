"""What the faces use of a desk, wherever the ledger is: on this machine, or on a host that is asked.

What an operator says becomes a draft here, once; the desks differ in what becomes of a draft.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from agentwatch.decisions.answering import asked_of
from agentwatch.decisions.chain import Chain
from agentwatch.decisions.delivery import Forgery, Mirror
from agentwatch.decisions.ledger import DecisionMade, Draft
from agentwatch.decisions.pen import Pen
from agentwatch.decisions.record import Params, Record, Subject
from agentwatch.delegation.decision import ENDING, Action, Decision, Receipt
from agentwatch.delegation.request import Request
from agentwatch.delegation.task import Task


class OperatorDesk(Pen):
    """The decisions of one workspace, as an operator makes them. They hold for `lifetime`, None for ever."""

    state: Path
    """A directory of the operator's own, on this machine."""
    lifetime: timedelta | None
    places: Sequence[Path] = ()
    """The directories in which every change of it shows; none where it has to be asked."""

    @property
    @abstractmethod
    def operator(self) -> str:
        """Who decides here, for records."""

    @property
    @abstractmethod
    def workspace_id(self) -> str:
        """ "" before it is known."""

    @property
    def unreachable(self) -> str | None:
        """Why nothing can be decided now, a sentence; None where something can."""
        return None

    @property
    def notice(self) -> str | None:
        """What the operator must know of decisions on their way, a sentence. May quote foreign text."""
        return None

    def subject(self, task: Task) -> Subject:
        """What a decision about a task is about: its latest attempt as it was seen. Take it when the dialog opens."""
        return subject_of(task, self.workspace_id)

    def decide(
        self,
        subject: Subject,
        action: Action,
        params: Params | None = None,
        *,
        returned: Callable[[], str | None],
        note: str = "",
        operator: str | None = None,
        now: datetime | None = None,
    ) -> DecisionMade:
        """Record a decision, then deliver it. Whether the policy allows it is asked before (`policy.refusal`).

        `returned` gives the sha256 of the return as it is now (`return_digest`). The first decision makes the key.
        Raises DecisionError: see `errors`.
        """
        now = now or self.now()
        # Nobody works on what was ended, so there is no other workspace that it could meet.
        expires_at = None if self.lifetime is None or action in ENDING else now + self.lifetime
        draft = Draft(subject, action, params or Params(), note, operator or self.operator, now, expires_at)
        return self.record(draft, returned)

    def answer(
        self,
        request: Request,
        action: Action,
        params: Params | None = None,
        *,
        task_id: str,
        attempt: int,
        gone: Callable[[], str | None],
        note: str = "",
        operator: str | None = None,
        now: datetime | None = None,
    ) -> DecisionMade:
        """Record the answer to a request as it was shown. Its holder, who waits for that, hands it to the program.

        `gone` looks once more and says, in a sentence, why nobody waits for it any more; None where somebody does. Task
        and attempt are those that it was shown at. Raises DecisionError: see `errors`.
        """
        now = now or self.now()
        subject = Subject(self.workspace_id, task_id, attempt, None, None, request=asked_of(request))
        expires_at = self.answer_ends(request, now)
        draft = Draft(subject, action, params or Params(), note, operator or self.operator, now, expires_at)
        return self.record_answer(request, draft, gone)

    @abstractmethod
    def now(self) -> datetime:
        """The time, aware, where the ledger is."""

    @abstractmethod
    def answer_ends(self, request: Request, now: datetime) -> datetime:
        """Until when an answer that is given now holds."""

    @abstractmethod
    def record(self, draft: Draft, returned: Callable[[], str | None]) -> DecisionMade:
        """Record a decision as somebody made it, as `decide` does."""

    @abstractmethod
    def record_answer(self, request: Request, draft: Draft, gone: Callable[[], str | None]) -> DecisionMade:
        """Record the answer to a request as somebody made it, as `answer` does."""

    @abstractmethod
    def read(self) -> Chain:
        """Every decision, and what is wrong in the ledger. Cheap where nothing changed. Raises DecisionError."""

    @abstractmethod
    def mirror(self) -> Mirror:
        """Deliver what waits, put right what was edited, and tell what is forged.

        To be done at the start, and again while something waits. Raises DecisionError where the ledger or the keys
        cannot be read.
        """

    @abstractmethod
    def forged(self) -> list[Forgery]:
        """What lies among the decisions in the workspace and is none; nothing is put right. Raises DecisionError."""

    @abstractmethod
    def receipts(self, records: Iterable[Record]) -> dict[str, tuple[Receipt, ...]]:
        """How far decisions have got, by their ids, as `ReceiptBook.read` has it."""

    @abstractmethod
    def changes(self) -> tuple[int | None, ...]:
        """Different from the call before where a decision or a receipt was added since. Costs next to nothing."""

    @abstractmethod
    def acted(self, decision: Decision, by: str) -> None:
        """Tell that a decision was carried out: a new attempt, or the fitter that it called, was seen.

        Raises ReceiptError.
        """


def subject_of(task: Task, workspace_id: str) -> Subject:
    """What a decision about a task is about: its latest attempt as it was seen."""
    latest = task.latest
    over = [one.decision_id for one in latest.decisions if one.over] if latest else []
    return Subject(
        workspace_id=workspace_id,
        task_id=task.task_id,
        attempt=task.attempt,
        handoff_sha256=latest.handoff.digest if latest and latest.handoff else None,
        return_sha256=latest.returned.digest if latest and latest.returned else None,
        after=over[-1] if over else None,
    )
