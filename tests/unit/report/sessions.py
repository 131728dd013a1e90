"""Sessions for reports: observations at believable times, and the accounts that come of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Final, TypeVar

from agentwatch.contracts.shapes import (
    Contract,
    Fields,
    Finding,
    Handoff,
    Outcome,
    Return,
    Severity,
    Todo,
    TodoStatus,
)
from agentwatch.delegation.decision import Action, Decision, Receipt, Stage
from agentwatch.delegation.events import Checked, Claim, Event, Seen, Tick, Unreadable, Verdict
from agentwatch.delegation.tree import Tree
from agentwatch.history.log import state_changes
from agentwatch.report.account import Account, account_of

START: Final = 1_790_000_000.0
"""2026-09-21 14:13:20 UTC."""

Value = TypeVar("Value")


class Session:
    """Writes a session down, a line an event; `at` is in seconds since `START`."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.end = 0.0

    def asked(self, at: float, task_id: str, objective: str = "do it", **more: object) -> None:
        self._see(at, f"{task_id}.handoff.json", Handoff(task_id, objective, **more))  # type: ignore[arg-type]

    def told(
        self, at: float, task_id: str, outcome: str, summary: str = "done", *findings: Finding, **more: object
    ) -> None:
        document = Return(
            Contract.RETURN_FORMAT,
            {"completed": "SUCCESS", "failed": "ERROR"}.get(outcome, outcome.upper()),
            Outcome(outcome),
            task_id=task_id,
            summary=summary,
            **more,  # type: ignore[arg-type]
        )
        self._see(at, f"{task_id}.return.md", document, *findings)

    def checked(self, at: float, *claims: Claim) -> None:
        """The claims of the return that was told last."""
        seen = self.events[-1]
        assert isinstance(seen, Seen)
        self.events.append(Checked(len(self.events), START + at, seen.path, seen.digest, claims))

    def _see(self, at: float, path: str, document: Fields, *findings: Finding) -> None:
        seq = len(self.events)
        self.end = max(self.end, at)
        self.events.append(Seen(seq, START + at, path, f"{seq:064x}", document, findings))

    def account(self, later: float = 60.0) -> Account:
        """As it stood `later` seconds behind the last event."""
        tree = Tree()
        now = START + self.end + later
        for event in [*self.events, Tick(len(self.events), now)]:
            tree.apply(event)
        return account_of(tree, list(state_changes(self.events, Tree())), workspace="/home/ann/shop", now=now)


@cache
def large_account(tasks: int = 800) -> Account:
    """Branches of three levels over some hours, in each of which some fail, ask or lie."""
    session = Session()
    for number in range(tasks):
        branch, part = divmod(number, 20)
        task_id = f"area-{branch}" + (f".step-{part // 5}" if part else "") + (f".part-{part}" if part % 5 else "")
        session.asked(60.0 * number, task_id, f"Build {task_id}")
        outcome = ("completed", "completed", "failed", "completed", "blocked", "", "partial")[number % 7]
        if outcome:
            session.told(60.0 * number + 600, task_id, outcome, "It is done as asked", blockers=("Which one?",))
            verdict = Verdict.CONTRADICTED if number % 11 == 0 else Verdict.VERIFIED
            session.checked(60.0 * number + 600, Claim("created", f"src/{task_id}.py", verdict, "as it was found"))
    return session.account()


PLACE: Final = "PLACEHOLDER"


def told_everywhere() -> Account:
    """An account in which every foreign text that a report can show is `PLACE`, with something before it or not."""
    session = Session()
    session.asked(0, f"{PLACE}", PLACE, mode=PLACE, session_id=PLACE, todos=(Todo(PLACE, TodoStatus.DONE, None, 1),))
    words = ("error_code", "error_message", "retry_hint", "next_steps", "review_reason")
    lists = ("limitations", "artifacts", "files_created", "files_modified")
    more: dict[str, object] = dict.fromkeys((*words, "model", "mode", "agent", "session_id"), PLACE)
    more |= {"blockers": (PLACE, PLACE), "confidence": 0.2, **dict.fromkeys(lists, (PLACE,))}
    finding = Finding(PLACE, Severity.WARNING, PLACE, 2)
    session.told(60, PLACE, "blocked", PLACE, finding, **more)
    session.checked(61, *(Claim(PLACE, PLACE, verdict, PLACE) for verdict in Verdict))
    session.asked(100, f"{PLACE}.child", PLACE, parent_task_id=PLACE)
    session.told(200, f"{PLACE}.child", "completed", PLACE, finding, review_reason=PLACE)
    session.checked(201, Claim(PLACE, PLACE, Verdict.CONTRADICTED, PLACE))
    session.events.append(Unreadable(99, START + 210, PLACE, finding))
    decision = Decision(
        **dict.fromkeys(("decision_id", "task_id", "operator", "note"), PLACE),
        attempt=1,
        handoff_sha256=None,
        return_sha256=None,
        action=Action.ACCEPT,
        at=START + 70,
        receipts=(Receipt(Stage.READ, START + 71, PLACE, claimed=True),),
    )
    account = session.account()
    first, *rest = account.tasks
    *attempts, last = first.task.attempts
    task = replace(first.task, deleted=True, attempts=(*attempts, replace(last, decisions=(decision,))))
    return replace(account, workspace=PLACE, tasks=(first._replace(task=task), *rest))


def retold(account: Account, text: str) -> Account:
    """The same account with `text` for every `PLACE`."""
    return _mapped(account, lambda said: said.replace(PLACE, text))


def _mapped(value: Value, change: Callable[[str], str]) -> Value:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return change(value)  # type: ignore[return-value]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(item, change) for item in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_mapped(item, change) for item in value)  # type: ignore[return-value]
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _mapped(getattr(value, field.name), change) for field in fields(value)})
    return value
