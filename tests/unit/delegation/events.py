"""Short ways to write observations down."""

from __future__ import annotations

from collections.abc import Iterable

from agentwatch.contracts.shapes import (
    Contract,
    Fields,
    Finding,
    Handoff,
    Outcome,
    Return,
    Severity,
    Todo,
    TodoList,
    TodoStatus,
)
from agentwatch.delegation.events import Checked, Claim, Event, Gone, Rules, Seen, Verdict
from agentwatch.delegation.tree import Tree

BROKEN = Finding("RET001", Severity.ERROR, "add the header", 1)


class Recorder:
    """Gives out observations with rising `seq`, one second apart."""

    def __init__(self) -> None:
        self.seq = 0

    def seen(self, path: str, document: Fields, *findings: Finding) -> Seen:
        self.seq += 1
        return Seen(self.seq, 1_000.0 + self.seq, path, f"{self.seq:064x}", document, findings)

    def checked(self, path: str, digest: str, *verdicts: str) -> Checked:
        self.seq += 1
        claims = tuple(Claim("created", f"{n}.py", Verdict(verdict), "as found") for n, verdict in enumerate(verdicts))
        return Checked(self.seq, 1_000.0 + self.seq, path, digest, claims)

    def gone(self, path: str) -> Gone:
        self.seq += 1
        return Gone(self.seq, 1_000.0 + self.seq, path)


def handoff(task_id: str | None, **more: object) -> Handoff:
    return Handoff(task_id, f"objective of {task_id}", **more)  # type: ignore[arg-type]


def returned(outcome: str, contract: Contract = Contract.RETURN_FORMAT, **more: object) -> Return:
    return Return(contract, outcome.upper(), Outcome(outcome), **more)  # type: ignore[arg-type]


def meta(outcome: str, *path: str, session: str | None = None, agent: str | None = None) -> Return:
    return returned(outcome, Contract.RETURN_META, delegation_path=path, session_id=session, agent=agent)


def todos(*marks: str) -> TodoList:
    status = {" ": TodoStatus.PENDING, "-": TodoStatus.IN_PROGRESS, "x": TodoStatus.DONE}
    return TodoList(tuple(Todo(f"step {n}", status[mark], None, n) for n, mark in enumerate(marks, 1)))


def tree_of(events: Iterable[Event], **rules: object) -> Tree:
    tree = Tree(Rules(**rules))  # type: ignore[arg-type]
    for event in events:
        tree.apply(event)
    return tree


def outline(tree: Tree) -> list[str]:
    """The tree as indented lines, `id state`."""
    return [f"{'  ' * depth}{task.task_id} {task.state}" for task, depth in tree.preorder()]
