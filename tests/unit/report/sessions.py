"""Sessions for reports: observations at believable times, and the accounts that come of them."""

from __future__ import annotations

import random
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
from agentwatch.delegation.claims import Claim, Verdict
from agentwatch.delegation.events import Checked, Event, Seen, Tick, Unreadable
from agentwatch.delegation.tree import Tree
from agentwatch.history.log import state_changes
from agentwatch.report.account import Account, DecisionLine, account_of

START: Final = 1_790_000_000.0
"""2026-09-21 14:13:20 UTC."""

Value = TypeVar("Value")


class Session:
    """Writes a session down, a line an event; `at` is in seconds since `START`."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.end = 0.0

    def asked(self, at: float, task_id: str, objective: str = "do it", **more: object) -> None:
        number = more.get("attempt")
        name = task_id if number is None else f"{task_id}.{number}"
        self._see(at, f"{name}.handoff.json", Handoff(task_id, objective, **more))  # type: ignore[arg-type]

    def told(
        self, at: float, task_id: str, outcome: str, summary: str = "done", *findings: Finding, **more: object
    ) -> None:
        number = more.get("attempt")
        name = task_id if number is None else f"{task_id}.{number}"
        document = Return(
            Contract.RETURN_FORMAT,
            {"completed": "SUCCESS", "failed": "ERROR"}.get(outcome, outcome.upper()),
            Outcome(outcome),
            task_id=task_id,
            summary=summary,
            **more,  # type: ignore[arg-type]
        )
        self._see(at, f"{name}.return.md", document, *findings)

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


def small() -> Session:
    """Eight tasks: a retry, a blocked one, a lie, one that still works."""
    session = Session()
    session.asked(0, "shop", "Build the shop", todos=(Todo("cut", TodoStatus.PENDING, None, 1),))
    session.asked(5, "shop.plan", "Plan the shop")
    session.told(80, "shop.plan", "completed", "Six packages", model="openai/gpt-5.2")
    session.checked(81, Claim("created", "plan.md", Verdict.VERIFIED, "exists, new since the handoff"))
    session.asked(90, "shop.api", "Build the API", attempt=1)
    session.told(
        300,
        "shop.api",
        "failed",
        "The migration timed out",
        attempt=1,
        error_code="E_TIMEOUT",
        error_message="no answer in 60 s",
        retry_recommended=True,
        retry_hint="Raise the time-out.",
    )
    session.asked(420, "shop.api", "Build the API with a time-out of 600 s", attempt=2)
    session.told(700, "shop.api", "completed", "The API stands", attempt=2)
    session.asked(100, "shop.ui", "Build the user interface")
    session.asked(120, "shop.ui.form", "Build the form")
    session.told(400, "shop.ui.form", "completed", "The form is there")
    session.checked(401, Claim("created", "form.tsx", Verdict.CONTRADICTED, "missing: no such file in the workspace"))
    session.asked(130, "shop.ui.cart", "Build the cart")
    session.told(330, "shop.ui.cart", "blocked", "A question", blockers=("Which currency?",))
    session.asked(140, "shop.docs", "Document it")
    broken = Finding("RET001", Severity.ERROR, "add the header", 3)
    session.told(260, "shop.docs", "completed", "Documented", broken)
    session.asked(640, "shop.load", "Test the load")
    return session


def large(tasks: int = 800, seed: int = 7) -> Session:
    """So many tasks in branches of up to four levels, over two days with a night between them."""
    dice = random.Random(seed)
    session = Session()
    areas = ("search", "cart", "billing", "mail", "stock", "login", "export", "images")
    steps = ("plan", "schema", "api", "ui", "tests", "docs", "review", "deploy")
    made = 0
    clock = 0.0
    branch = 0
    while made < tasks:
        if branch % 8 == 4:
            clock += 50_000
        root = f"{areas[branch % len(areas)]}-{branch}"
        branch += 1
        session.asked(clock, root, f"Build {root}")
        made += 1
        last = clock
        for step in steps:
            if made >= tasks:
                break
            parent = f"{root}.{step}"
            begin = clock + dice.uniform(10, 600)
            session.asked(begin, parent, f"Do the {step} of {root}")
            made += 1
            for part in range(dice.randrange(0, 3)):
                if made >= tasks:
                    break
                made += 1
                session.asked(begin + 5, f"{parent}.part-{part}", f"Part {part} of it")
                last = max(last, _end(session, dice, begin + 5, f"{parent}.part-{part}"))
            last = max(last, _end(session, dice, begin, parent))
        if branch % 7:
            session.told(last + 20, root, "completed", "All parts are there")
        clock += dice.uniform(200, 1_200)
    return session


@cache
def large_account(tasks: int = 800) -> Account:
    """The account of such a session; all who ask share it."""
    return large(tasks).account()


def _end(session: Session, dice: random.Random, begin: float, task_id: str) -> float:
    end = begin + dice.uniform(30, 900)
    outcome = dice.choices(("completed", "partial", "blocked", "failed", ""), (88, 4, 2, 3, 3))[0]
    if outcome:
        more: dict[str, object] = {"blockers": ("Which one?",)} if outcome == "blocked" else {}
        session.told(end, task_id, outcome, "It is done as asked", **more)
        verdict = dice.choices((Verdict.VERIFIED, Verdict.UNVERIFIABLE, Verdict.CONTRADICTED), (80, 17, 3))[0]
        session.checked(end, Claim("created", f"src/{task_id}.py", verdict, "as it was found"))
    return end


PLACE: Final = "PLACEHOLDER"


def told_everywhere() -> Account:
    """An account in which every foreign text that a report can show is `PLACE`, with something before it or not."""
    session = Session()
    session.asked(0, f"{PLACE}", PLACE, mode=PLACE, session_id=PLACE, todos=(Todo(PLACE, TodoStatus.DONE, None, 1),))
    more: dict[str, object] = {
        "error_code": PLACE,
        "error_message": PLACE,
        "retry_hint": PLACE,
        "next_steps": PLACE,
        "review_reason": PLACE,
        "blockers": (PLACE, PLACE),
        "limitations": (PLACE,),
        "model": PLACE,
        "mode": PLACE,
        "agent": PLACE,
        "session_id": PLACE,
        "confidence": 0.2,
        "artifacts": (PLACE,),
        "files_created": (PLACE,),
        "files_modified": (PLACE,),
    }
    finding = Finding(PLACE, Severity.WARNING, PLACE, 2)
    session.told(60, PLACE, "blocked", PLACE, finding, **more)
    session.checked(61, *(Claim(PLACE, PLACE, verdict, PLACE) for verdict in Verdict))
    session.asked(100, f"{PLACE}.child", PLACE, parent_task_id=PLACE)
    session.told(200, f"{PLACE}.child", "completed", PLACE, finding, review_reason=PLACE)
    session.checked(201, Claim(PLACE, PLACE, Verdict.CONTRADICTED, PLACE))
    session.events.append(Unreadable(99, START + 210, PLACE, finding))
    decisions = [
        DecisionLine(task_id=PLACE, attempt=1, action=PLACE, note=PLACE, operator=PLACE, at=START + 70, receipt=PLACE)
    ]
    account = session.account()
    first, *rest = account.tasks
    changed = first._replace(task=replace(first.task, deleted=True), decisions=tuple(decisions))
    return replace(account, workspace=PLACE, tasks=(changed, *rest))


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
