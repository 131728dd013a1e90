"""Short ways to write events."""

from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256

from agentwatch.contracts.shapes import (
    Contract,
    Document,
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
from agentwatch.delegation.decision import Action, Decision, Receipt, Stage
from agentwatch.delegation.events import (
    Checked,
    Claim,
    Decided,
    Event,
    Gone,
    Message,
    Ran,
    Rules,
    Run,
    RunState,
    Seen,
    Verdict,
)
from agentwatch.delegation.tree import Tree

BROKEN = Finding("RET001", Severity.ERROR, "add the header", 1)


class Recorder:
    """Returns events with rising `seq`, one second apart."""

    def __init__(self):
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
    """Return the tree as indented lines, `id state`."""
    return [f"{'  ' * depth}{task.task_id} {task.state}" for task, depth in tree.preorder()]


def decided(
    task_id: str, action: Action, at: float, stages: int = 1, *, seq: int = 50, name: str = "", **more: object
) -> Decided:
    """Return a decision that has reached so many of its stages."""
    made = Decision(
        decision_id=name or f"d-{task_id}",
        task_id=task_id,
        attempt=1,
        handoff_sha256=None,
        return_sha256=None,
        action=action,
        at=at,
        receipts=tuple(Receipt(stage, at) for stage in [*Stage][:stages]),
    )
    return Decided(seq, at, made.decision_id, replace(made, **more))  # type: ignore[arg-type]


# Runs

ROOT = Run(
    source="agents",
    session_id="root",
    parent_session=None,
    state=RunState.WORKING,
    place="/store",
    started_at=100.0,
    updated_at=100.0,
    title="the session",
)


def message(document: Fields | None, *findings: Finding, at: float = 150.0) -> Message:
    reading = Document(document, findings) if document else None
    return Message(at, sha256(repr(document).encode()).hexdigest(), "words", reading)


def child(session: str, state: RunState = RunState.WORKING, parent: str | None = "root", **more: object) -> Run:
    known: dict[str, object] = {"agent": "general", "title": f"title of {session}"}
    known |= {"started_at": 110.0, "updated_at": 120.0} | more
    return replace(ROOT, session_id=session, parent_session=parent, state=state, **known)  # type: ignore[arg-type]


def ran(*runs: Run, seq: int = 1) -> list[Event]:
    return [Ran(at, 0.0, f"agents:{run.session_id}", run) for at, run in enumerate(runs, seq)]
