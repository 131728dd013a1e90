"""A child that is sent on in its own session: which of its rounds are attempts of their own."""

from dataclasses import replace

import pytest

from agentwatch.contracts.shapes import Outcome
from agentwatch.delegation.decision import Action, Stage
from agentwatch.delegation.events import Decided, Event, Message, Run, RunState, StartedBy, Turn
from agentwatch.delegation.task import State, Task
from agentwatch.view.document import tree_document
from tests.unit.delegation.events import BROKEN, ROOT, Recorder, decided, handoff, message, returned, tree_of
from tests.unit.delegation.events import child as child_of
from tests.unit.delegation.events import ran as ran_of

PACKET = message(handoff("a"), at=110.0)
FAILED = message(returned("failed"), at=115.0)
DONE = message(returned("completed"), at=125.0)
BLOCKED = message(returned("blocked"), at=120.0)
PROSE = message(None)
PARENT, HOOK, PROGRAM = StartedBy.PARENT, StartedBy.HOOK, StartedBy.PROGRAM


def child(*rounds: tuple[StartedBy, Message | None], state: RunState = RunState.ENDED, session: str = "s1") -> Run:
    """A child of the root: round n begins at 100 + 10 n and ends five seconds later."""
    told = [
        Turn(100.0 + 10 * n, PACKET if n == 1 else message(None), asker, RunState.ENDED, said, 105.0 + 10 * n)
        for n, (asker, said) in enumerate(rounds, 1)
    ]
    last = told[-1]
    ended, said = (last.ended_at, last.said) if state is RunState.ENDED else (None, None)
    known = {"updated_at": last.ended_at, "ended_at": ended, "said": said, "rounds": tuple(told)}
    return child_of(session, state, prompt=PACKET, tokens=900, agent=None, title=None, **known)


def decision(
    about: Message | None, at: float, action: Action = Action.RETRY, attempt: int = 1, *, read: bool = True
) -> Decided:
    digests = {"handoff_sha256": PACKET.digest, "return_sha256": about.digest if about is not None else None}
    receipts = decided("a", action, at, 3).decision.receipts[:: 2 if read else 3]
    return decided("a", action, at, name=f"d{attempt}", attempt=attempt, receipts=receipts, **digests)


def ran(*runs: Run) -> list[Event]:
    return ran_of(ROOT, *runs)


def task_of(*events: Event) -> Task:
    return tree_of(events).tasks["a"]


def attempts(*events: Event) -> list[tuple[int, State]]:
    return [(one.number, one.state) for one in task_of(*events).attempts]


ONE, TWO = (1, State.FAILED), (2, State.COMPLETED)
RETRIED = decision(FAILED, 117.0)
OVER = [*ran(child((PARENT, FAILED), (HOOK, DONE)))]


@pytest.mark.parametrize("asker", [HOOK, PARENT])
def test_a_retry_in_the_same_session_is_an_attempt(asker):
    tree = tree_of([*ran(child((PARENT, FAILED), (asker, DONE))), RETRIED])
    task = tree.tasks["a"]
    first, second = task.attempts
    assert [(one.number, one.state, one.session_id) for one in task.attempts] == [(*ONE, "s1"), (*TWO, "s1")]
    assert (second.again, first.decision and first.decision.receipt.stage, second.decision) == (True, Stage.ACTED, None)
    assert (task.retry.remaining, second.started_at, task.ended_at) == (0, 120.0, 125.0)
    assert second.handed_off_at == 110.0, "what the session made in its first attempt is its own, too"
    document = next(one for one in tree_document(tree, "/w")["tasks"] if one["task_id"] == "a")
    runs = [one["run"] for one in document["attempts"]]
    assert [run and run["tokens"] for run in runs] == [None, 900], "the store counts the session, and it counts once"


def test_a_retry_that_ends_in_the_same_bytes_can_be_decided_anew():
    events = [*ran(child((PARENT, FAILED), (HOOK, FAILED))), RETRIED]
    task = task_of(*events)
    assert (task.attempt, task.state, task.binding, task.needs_operator) == (2, State.FAILED, None, True)
    again = task_of(*events, decision(FAILED, 130.0, Action.ESCALATE, attempt=2))
    assert (again.state, again.needs_operator) == (State.ESCALATED, False)


@pytest.mark.parametrize(
    "decided",
    [
        [],
        [decision(FAILED, 117.0, read=False)],
        [decision(FAILED, 121.0)],
        [decision(FAILED, 117.0, Action.ACCEPT)],
        [decision(DONE, 117.0)],
        [decision(FAILED, 117.0, attempt=2)],
    ],
)
def test_a_hook_that_holds_without_a_decision_begins_no_attempt(decided):
    assert [number for number, _ in attempts(*OVER, *decided)] == [1]


@pytest.mark.parametrize(
    ("rounds", "decided", "expected"),
    [
        # It was held, and the decision came later.
        ([(PARENT, FAILED), (HOOK, FAILED), (HOOK, DONE)], decision(FAILED, 127.0), [ONE, TWO]),
        # No return, or no word.
        ([(PARENT, PROSE), (HOOK, DONE)], decision(None, 117.0), [(1, State.COMPLETED), TWO]),
        ([(PARENT, None), (HOOK, DONE)], decision(None, 117.0), [(1, State.INVALID), TWO]),
        # A form that is corrected.
        *(
            ([(PARENT, said), (asker, DONE)], None, [(1, State.COMPLETED)])
            for said in (PROSE, message(returned("failed"), BROKEN), None)
            for asker in (HOOK, PARENT)
        ),
        # Its parent asks again.
        ([(PARENT, FAILED), (PARENT, DONE)], None, [ONE, TWO]),
        ([(PARENT, FAILED), (PROGRAM, DONE)], None, [(1, State.COMPLETED)]),
        *(
            ([(PARENT, message(returned(outcome.value))), (PARENT, DONE)], None, [(1, State.COMPLETED)])
            for outcome in (Outcome.BLOCKED, Outcome.PARTIAL, Outcome.WORKING)
        ),
    ],
)
def test_which_rounds_are_attempts(rounds, decided, expected):
    assert attempts(*ran(child(*rounds)), *([decided] if decided else [])) == expected


def test_a_child_that_works_on_its_retry_works_on_its_second_attempt():
    run = child((PARENT, FAILED), (HOOK, None), state=RunState.WORKING)
    assert attempts(*ran(run), RETRIED) == [ONE, (2, State.WORKING)]


def test_an_answer_to_a_blocked_child_begins_an_attempt_that_is_no_retry():
    answered = decision(BLOCKED, 117.0, Action.RESPOND)
    task = task_of(*ran(child((PARENT, BLOCKED), (HOOK, BLOCKED))), answered)
    assert [one.state for one in task.attempts] == [State.BLOCKED] * 2
    assert (task.retry.remaining, task.needs_operator) == (1, True)


def test_a_number_that_a_later_round_is_handed_is_that_of_its_attempt():
    run = child((PARENT, message(returned("partial"), at=120.0)), (PARENT, DONE))
    last = replace(run.rounds[1], prompt=message(handoff("a", attempt=3)))
    task = task_of(*ran(replace(run, rounds=(run.rounds[0], last))))
    assert [(one.number, one.state) for one in task.attempts] == [(1, State.PARTIAL), (3, State.COMPLETED)]
    assert not task.attempts[1].again


def test_attempts_of_several_sessions_stand_in_the_order_they_began():
    first = child((PARENT, FAILED), (HOOK, FAILED), (PARENT, DONE))
    beside = replace(child((PARENT, FAILED), session="s2"), started_at=125.0, rounds=())
    for runs in ((first, beside), (beside, first)):
        task = task_of(*ran(*runs), RETRIED)
        expected = [(1, "s1"), (2, "s1"), (3, "s2"), (4, "s1")]
        assert [(one.number, one.session_id) for one in task.attempts] == expected


@pytest.mark.parametrize("session", [None, "command"])
@pytest.mark.parametrize("amended", [False, True])
def test_a_child_that_writes_its_return_into_a_file_is_retried(session, *, amended):
    """The session that a return names covers a whole command; its store knows the child by another."""
    record = Recorder()
    failed, completed = (returned(outcome, session_id=session) for outcome in ("failed", "completed"))
    files = [
        record.seen("a.handoff.json", handoff("a"))._replace(digest=PACKET.digest, at=105.0),
        bad := record.seen("a.return.json", failed)._replace(at=114.0),
        *([record.seen("a.handoff.json", handoff("a", attempt=2))._replace(at=118.0)] if amended else []),
        record.seen("a.return.json", completed)._replace(at=124.0),
    ]
    told = [] if amended else [decision(Message(0.0, bad.digest, ""), 117.0)]
    task = task_of(*files, *ran(child((PARENT, PROSE), (PARENT, PROSE))), *told)
    assert [(one.number, one.state) for one in task.attempts] == [ONE, TWO]
    assert [one.run and one.run.started_at for one in task.attempts] == [110.0, 120.0]


def test_the_handoff_written_for_the_retry_is_that_of_the_attempt():
    amended = Recorder().seen("a-2.handoff.json", handoff("a", attempt=2, decision_id="d1"))
    task = task_of(amended, *ran(child((PARENT, FAILED), (PARENT, DONE))), RETRIED)
    handed = task.attempts[1].handoff
    assert (handed and handed.path, task.attempt) == ("a-2.handoff.json", 2)
