"""Which changes nobody claims: those of an attempt that ran alone, and those of one of several."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.delegation.events import handoff, returned, tree_of

from agentwatch.contracts.shapes import Document
from agentwatch.delegation.attempts import Unclaimed
from agentwatch.delegation.claims import Change, Claim, Verdict
from agentwatch.delegation.events import Checked, Event, Gone, Ran, Seen
from agentwatch.delegation.run import Run, RunState
from agentwatch.delegation.tree import Tree
from agentwatch.view.document import tree_document
from agentwatch.view.words import Agreement, model_of


class Session:
    """Observations at times of one's own; a return is checked at once."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def _see(self, path: str, at: float, document: Document) -> Seen:
        seen = Seen(len(self.events), at, path, f"{path} {at}", document)
        self.events.append(seen)
        return seen

    def start(self, task_id: str, at: float) -> None:
        self._see(f"{task_id}.handoff.json", at, handoff(task_id))

    def end(
        self,
        task_id: str,
        at: float,
        changed: dict[str, float] | None = None,
        claims: tuple[str, ...] = (),
        *,
        kind: str = "created",
        outcome: str = "completed",
    ) -> None:
        """A return, the files (and when they were written) that changed during the attempt, and those it claims."""
        seen = self._see(f"{task_id}.return.md", at, returned(outcome, task_id=task_id))
        made = tuple(Claim(kind, f"./{path}", Verdict.VERIFIED, "", file=path) for path in claims)
        changes = None if changed is None else tuple(Change(path, when) for path, when in changed.items())
        self.events.append(Checked(seen.seq + 1, at, seen.path, seen.digest, made, changes))

    def unclaimed(self, task_id: str) -> Unclaimed | None:
        tree = tree_of(self.events)
        return tree.unclaimed(tree.tasks[task_id])


@pytest.fixture
def session() -> Session:
    return Session()


def test_a_change_that_no_return_claims_is_the_doing_of_the_attempt_that_ran_alone(session: Session) -> None:
    session.start("a", 0)
    session.end("a", 10, {"claimed.py": 5, "more.py": 6}, ("claimed.py",))
    assert session.unclaimed("a") == Unclaimed(alone=("more.py",))


def test_a_change_while_others_ran_is_unattributed(session: Session) -> None:
    session.start("a", 0)
    session.start("b", 5)
    session.end("a", 10, {"before.py": 4, "while.py": 6})
    session.end("b", 20, {"while.py": 6, "after.py": 15})
    assert session.unclaimed("a") == Unclaimed(("before.py",), ("while.py",))
    assert session.unclaimed("b") == Unclaimed(("after.py",), ("while.py",))


def test_what_another_return_claims_is_claimed(session: Session) -> None:
    session.start("a", 0)
    session.start("b", 0)
    session.end("a", 10, {"x.py": 6})
    session.end("b", 20, {"x.py": 6}, ("x.py",))
    assert session.unclaimed("a") == Unclaimed()


def test_a_claimed_directory_claims_what_is_in_it(session: Session) -> None:
    session.start("a", 0)
    session.end("a", 10, {"docs/a/b.md": 5, "docs.md": 5}, ("docs",))
    assert session.unclaimed("a") == Unclaimed(("docs.md",))


@pytest.mark.parametrize("kind", ["evidence", "reference", "must_create", "required_evidence"])
def test_to_cite_a_file_is_not_to_claim_that_one_changed_it(session: Session, kind: str) -> None:
    session.start("a", 0)
    session.end("a", 10, {"x.py": 5}, ("x.py",), kind=kind)
    assert session.unclaimed("a") == Unclaimed(("x.py",))


def test_handoffs_and_returns_are_nobodys_work(session: Session) -> None:
    session.start("a", 0)
    session.start("b", 20)
    session.end("a", 10, {"a.return.md": 10, "b.handoff.json": 10, "x.py": 5})
    assert session.unclaimed("a") == Unclaimed(("x.py",))


def test_a_parent_waits_for_its_child(session: Session) -> None:
    """What was written while the child ran is the child's, and its parent does not make it one of several."""
    session.start("a", 0)
    session.start("a.b", 5)
    session.end("a.b", 10, {"child.py": 6})
    session.end("a", 20, {"child.py": 6, "own.py": 15})
    assert session.unclaimed("a.b") == Unclaimed(("child.py",))
    assert session.unclaimed("a") == Unclaimed(("own.py",))


def test_an_attempt_that_never_returned_runs_until_it_is_silent_for_too_long(session: Session) -> None:
    session.start("dead", 0)
    session.start("a", 500)
    session.end("a", 5_000, {"early.py": 550, "late.py": 4_000})
    assert session.unclaimed("a") == Unclaimed(("late.py",), ("early.py",))


def test_an_earlier_attempt_ended_when_it_returned_and_is_taken_at_its_word(session: Session) -> None:
    session.start("other", 0)
    session._see("b.handoff.json", 0, handoff("b", attempt=1))
    session._see("b.return.md", 20, returned("failed", task_id="b", attempt=1, files_created=("./x.py",)))
    session._see("b2.handoff.json", 100, handoff("b", attempt=2))
    session.end("other", 50, {"x.py": 5, "y.py": 5, "z.py": 40})
    assert session.unclaimed("other") == Unclaimed(("z.py",), ("y.py",))


@pytest.mark.parametrize("outcome", ["working", "completed"])
def test_nothing_is_said_before_it_is_known(session: Session, outcome: str) -> None:
    session.start("a", 0)
    session.end("a", 10, {"x.py": 5} if outcome == "working" else None, outcome=outcome)
    assert session.unclaimed("a") is None


def test_without_a_handoff_nothing_is_known(session: Session) -> None:
    session.end("a", 10, {"x.py": 5})
    assert session.unclaimed("a") is None


def test_a_task_that_goes_takes_its_claims_and_its_time_with_it(session: Session) -> None:
    session.start("a", 0)
    session.start("b", 0)
    session.end("a", 10, {"x.py": 5, "y.py": 5})
    session.end("b", 10, {}, ("x.py",))
    assert session.unclaimed("a") == Unclaimed((), ("y.py",))
    session.events += [Gone(90, 90, "b.handoff.json"), Gone(91, 91, "b.return.md")]
    assert session.unclaimed("a") == Unclaimed(("x.py", "y.py"))


def test_runs_of_session_stores_count_and_the_sessions_of_humans_do_not(session: Session) -> None:
    session.start("a", 0)
    session.end("a", 100, {"x.py": 5, "y.py": 50})
    human = Run(
        source="agents",
        session_id="human",
        parent_session=None,
        state=RunState.WORKING,
        place="/store",
        started_at=0.0,
        updated_at=100.0,
    )
    session.events.append(Ran(90, 0, "agents:human", human))
    assert session.unclaimed("a") == Unclaimed(("x.py", "y.py"))
    run = Run(
        source="agents",
        session_id="child",
        parent_session="human",
        state=RunState.ENDED,
        place="/store",
        started_at=40.0,
        updated_at=60.0,
        ended_at=60.0,
    )
    session.events.append(Ran(91, 0, "agents:child", run))
    assert session.unclaimed("a") == Unclaimed(("x.py",), ("y.py",))


def test_an_answer_is_right_again_after_more_was_seen(session: Session) -> None:
    session.start("a", 0)
    session.end("a", 10, {"x.py": 5})
    tree = tree_of(session.events)
    assert tree.unclaimed(tree.tasks["a"]) == Unclaimed(("x.py",))
    tree.apply(Seen(90, 4, "b.handoff.json", "b", handoff("b")))
    assert tree.unclaimed(tree.tasks["a"]) == Unclaimed((), ("x.py",))
    tree.apply(Gone(91, 91, "b.handoff.json"))
    assert tree.unclaimed(tree.tasks["a"]) == Unclaimed(("x.py",))


def test_the_document_of_the_tree_names_them(session: Session) -> None:
    session.start("a", 0)
    session.start("b", 5)
    session.end("a", 10, {"x.py": 4, "y.py": 6})
    a, b = tree_document(tree_of(session.events), "/w")["tasks"]
    assert (a["unclaimed_changes"], a["unattributed_changes"]) == (["x.py"], ["y.py"])
    assert (b["unclaimed_changes"], b["unattributed_changes"]) == (None, None)


moments = st.integers(0, 6).map(float)
tasks = st.sampled_from(["a", "a.b", "a.b.c", "d"])


@given(st.lists(st.tuples(tasks, moments, moments, st.lists(moments, max_size=3)), max_size=6), st.randoms())
def test_what_is_unclaimed_does_not_depend_on_the_order_of_arrival(
    runs: list[tuple[str, float, float, list[float]]], chance: object
) -> None:
    session = Session()
    for task_id, start, end, written in runs:
        session.start(task_id, start)
        session.end(task_id, end, {f"{number}.py": at for number, at in enumerate(written)}, ("0.py",))
    by_file: dict[str, list[Event]] = {}
    for event in session.events:
        by_file.setdefault(event.path, []).append(event)  # type: ignore[union-attr]
    queues = list(by_file.values())
    tree = Tree()
    while queues:
        queue = chance.choice(queues)  # type: ignore[attr-defined]
        tree.apply(queue.pop(0))
        queues = [queue for queue in queues if queue]
    assert tree_document(tree, "/w") == tree_document(tree_of(session.events), "/w")


@pytest.mark.parametrize(
    ("asked", "reported", "agreement"),
    [
        ("code", "code", Agreement.MATCHES),
        ("code", " Code ", Agreement.MATCHES),
        ("architect", "code", Agreement.DIFFERS),
        (None, "code", Agreement.UNKNOWN),
        ("code", None, Agreement.UNKNOWN),
    ],
)
def test_the_reported_mode_is_held_against_the_one_asked_for(
    session: Session, asked: str | None, reported: str | None, agreement: Agreement
) -> None:
    session._see("a.handoff.json", 0, handoff("a", mode=asked))
    session._see("a.return.md", 1, returned("completed", task_id="a", mode=reported))
    (document,) = tree_document(tree_of(session.events), "/w")["tasks"]
    assert document["runtime"]["mode"] == agreement.value


@pytest.mark.parametrize(
    ("recorded", "reported", "agreement"),
    [
        ("gpt-5.2", "openai/gpt-5.2", Agreement.MATCHES),
        ("anthropic/Opus", "opus", Agreement.MATCHES),
        ("opus", "sonnet", Agreement.DIFFERS),
        (None, "sonnet", Agreement.UNKNOWN),
    ],
)
def test_the_reported_model_is_held_against_the_one_that_ran(
    recorded: str | None, reported: str | None, agreement: Agreement
) -> None:
    run = Run(
        source="agents",
        session_id="s",
        parent_session="root",
        state=RunState.ENDED,
        place="/store",
        started_at=1.0,
        updated_at=2.0,
        model=recorded,
    )
    assert model_of(reported, run).agreement is agreement
