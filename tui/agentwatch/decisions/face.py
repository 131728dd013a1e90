"""What the faces use of a desk, wherever the ledger is: on this machine, or on a host that is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Protocol

from agentwatch.decisions.chain import Chain
from agentwatch.decisions.delivery import Forgery, Mirror
from agentwatch.decisions.keys import Keys
from agentwatch.decisions.ledger import DecisionMade
from agentwatch.decisions.record import Params, Record, Subject
from agentwatch.delegation.decision import Action, Decision, Receipt
from agentwatch.delegation.request import Request
from agentwatch.delegation.task import Task


class OperatorDesk(Protocol):
    """The decisions of one workspace, as an operator makes them. What each method does, `Desk` says."""

    @property
    def keys(self) -> Keys: ...

    @property
    def state(self) -> Path:
        """A directory of the operator's own, on this machine."""

    @property
    def unreachable(self) -> str | None:
        """Why nothing can be decided now, a sentence; None where something can."""

    @property
    def notice(self) -> str | None:
        """What the operator must know of decisions on their way, a sentence. May quote foreign text."""

    def subject(self, task: Task) -> Subject: ...

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
    ) -> DecisionMade: ...

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
    ) -> DecisionMade: ...

    def why_locked(self) -> str | None: ...

    def unlock(self, passphrase: str) -> None: ...

    def read(self) -> Chain: ...

    def mirror(self) -> Mirror: ...

    def forged(self) -> list[Forgery]: ...

    def receipts(self, records: Iterable[Record]) -> dict[str, tuple[Receipt, ...]]: ...

    def changes(self) -> tuple[int | None, ...]: ...

    def acted(self, decision: Decision, by: str) -> None: ...


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
