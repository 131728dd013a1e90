"""Attempts: what a decision binds, which returns and rounds of sessions begin the next attempt, and what ends it."""

from dataclasses import replace

import pytest

from agentwatch.contracts.shapes import Outcome
from agentwatch.delegation.decision import OF_ATTEMPTS, Action, Receipt, Stage
from agentwatch.delegation.events import Decided, Event, Message, Run, RunState, Seen, StartedBy, Tick, Turn
from agentwatch.delegation.standing import mark_of
from agentwatch.delegation.task import State, Task
from agentwatch.view.document import tree_document
from tests.unit.delegation.events import BROKEN, ROOT, Recorder, decided, handoff, message, outline, returned, tree_of
from tests.unit.delegation.events import child as child_of
from tests.unit.delegation.events import ran as ran_of

READ = (Receipt(Stage.RECORDED, 1_010.0), Receipt(Stage.READ, 1_011.0))


class Failed(Recorder):
    """A task that was handed off and has returned."""

    def __init__(self, outcome: str = "failed", **more: object):
        super().__init__()
        self.handed = self.seen("a.handoff.json", handoff("a"))
        self.result = self.seen("a.return.md", returned(outcome, **more))
        self.events: list[Event] = [self.handed, self.result]

    def decided(self, action: Action = Action.RETRY, **more: object) -> Decided:
        return decided("a", action, 1_010.0, return_sha256=self.result.digest, **more)

    def read(self, action: Action = Action.RETRY) -> Decided:
        """Return a decision that an agent has read."""
        return self.decided(action, handoff_sha256=self.handed.digest, receipts=READ)

    def again(self, outcome: str, at: float = 1_020.0, **more: object) -> Seen:
        return self.seen("a.return.md", returned(outcome, **more))._replace(at=at)


def stages(task: Task) -> list[Stage | None]:
    return [one.decision.receipt.stage if one.decision else None for one in task.attempts]


@pytest.mark.parametrize("action", OF_ATTEMPTS)
@pytest.mark.parametrize("receipts", [READ[:1], READ, (*READ[:1], READ[1]._replace(claimed=True))])
def test_a_decision_whose_time_is_over_binds_nobody(receipts, action):
    made = Failed()
    decision = made.decided(action, expires_at=2_000.0, receipts=receipts)
    tree = tree_of([made.handed, made.result._replace(findings=(BROKEN,)), decision])
    task = tree.tasks["a"]
    # In the end the clock is set back.
    for now in (1_999.0, 2_000.0, 1_999.0):
        tree.apply(Tick(60, now))
        assert (task.binding is not None, task.needs_operator) == (now < 2_000.0, now >= 2_000.0)
        assert task.why.endswith("what was decided about it has expired") == task.needs_operator
        assert (task.state is State.INVALID) == task.needs_operator


@pytest.mark.parametrize(
    ("outcome", "action", "remaining", "after"),
    [
        ("failed", Action.RETRY, 0, 0),
        ("failed", Action.RESPOND, 0, 0),
        ("blocked", Action.RETRY, 0, 0),
        ("blocked", Action.RESPOND, 1, 1),
        ("failed", Action.ESCALATE, 1, 0),
    ],
)
def test_a_retry_is_used_from_when_it_is_decided(outcome, action, remaining, after):
    made = Failed(outcome)
    tree = tree_of([*made.events, made.decided(action)])
    assert tree.tasks["a"].retry.remaining == remaining
    tree.apply(made.seen("a.handoff.json", handoff("a", attempt=2)))
    assert tree.tasks["a"].retry.remaining == after


@pytest.mark.parametrize(("action", "remaining"), [(Action.RETRY, 0), (Action.RESPOND, 1)])
@pytest.mark.parametrize("stated", [None, 1, 2])
def test_a_return_after_a_read_decision_is_the_next_attempt(action, remaining, stated):
    made = Failed("blocked")
    done, rewritten = made.again("completed", attempt=stated), made.again("partial", 1_030.0, attempt=stated)
    task = task_of(*made.events, made.read(action), done)
    assert numbered(task) == [(1, State.BLOCKED), (2, State.COMPLETED)]
    assert (stages(task), task.decision, task.retry.remaining) == ([Stage.ACTED, None], None, remaining)
    assert len(attempts(*made.events, made.read(action), done, rewritten)) == 2
    unread = attempts(*made.events, made.decided(action), done)
    assert [state for _, state in unread] == [State.BLOCKED] * (stated == 2) + [State.COMPLETED]


def test_an_abort_ends_what_is_open_below_also_what_comes_later():
    made = Failed()
    others = [made.seen(f"{one}.handoff.json", handoff(one)) for one in ("a.b", "a.b.c", "q", "q.r")]
    tree = tree_of([*made.events, *others, made.seen("d.return.md", returned("failed", task_id="a.d"))])
    assert tree.queue == ["a", "a.d"]
    tree.apply(made.decided(Action.ABORT))
    assert tree.queue == []
    below = ["a canceled", "  a.b canceled", "    a.b.c canceled", "  a.d failed"]
    apart = ["q working", "  q.r submitted"]
    assert outline(tree) == [*below, *apart]
    deep = tree.tasks["a.b.c"]
    assert deep.since == 1_010.0
    assert (deep.why, deep.ended_at) == ("a was aborted, and with it what was open below", 1_010.0)
    for parent, expected in (("a", ["  q canceled", "    q.r canceled"]), (None, apart)):
        tree.apply(made.seen("q.handoff.json", handoff("q", parent_task_id=parent)))
        assert sorted(outline(tree)) == sorted([*below, *expected])
    tree.apply(made.seen("a.handoff.json", handoff("a", attempt=2)))
    assert outline(tree)[:3] == ["a working", "  a.b working", "    a.b.c submitted"]


def test_a_child_that_fails_again_in_the_same_words_asks_again():
    made = Failed()
    touched, again, touched_again = (made.result._replace(seq=7, at=at) for at in (1_009.5, 1_020.0, 1_030.0))
    tree = tree_of([*made.events, touched, made.read()])
    task = tree.tasks["a"]
    assert task.state is State.RETRYING, "it was only touched before anybody knew of the decision"
    tree.apply(again)
    mark = mark_of(task)
    assert numbered(task) == [ONE, (2, State.FAILED)] == attempts(*made.events, again, made.read())
    assert (task.needs_operator, task.retry.remaining, stages(task)[0]) == (True, 0, Stage.ACTED)
    tree.apply(touched_again)
    assert mark_of(task) == mark, "a mere touch is nothing new"


def test_a_session_sent_on_corrects_its_later_attempt():
    made = Failed(session_id="command")
    again = [made.again(outcome, session_id="command") for outcome in ("blocked", "completed")]
    assert attempts(*made.events, made.read(), *again) == [ONE, TWO]


@pytest.mark.parametrize(("written", "count"), [(1_001.5, 1), (1_003.0, 2)])
def test_a_handoff_written_before_the_return_is_no_attempt(written, count):
    made = Failed()
    read_late = made.seen("a.handoff.json", handoff("a", mode="code"))._replace(at=written)
    assert len(attempts(*made.events, read_late)) == count


PACKET = message(handoff("a"), at=110.0)
FAILED = message(returned("failed"), at=115.0)
DONE = message(returned("completed"), at=125.0)
BLOCKED = message(returned("blocked"), at=120.0)
PROSE = message(None)
PARENT, HOOK, PROGRAM = StartedBy.PARENT, StartedBy.HOOK, StartedBy.PROGRAM


def child(*rounds: tuple[StartedBy, Message | None], state: RunState = RunState.ENDED, session: str = "s1") -> Run:
    """Return a child of the root: round n begins at 100 + 10 n and ends five seconds later."""
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


def numbered(task: Task) -> list[tuple[int, State]]:
    return [(one.number, one.state) for one in task.attempts]


def attempts(*events: Event) -> list[tuple[int, State]]:
    return numbered(task_of(*events))


ONE, TWO = (1, State.FAILED), (2, State.COMPLETED)
RETRIED = decision(FAILED, 117.0)


@pytest.mark.parametrize("asker", [HOOK, PARENT])
def test_a_retry_in_the_same_session_is_an_attempt(asker):
    tree = tree_of([*ran(child((PARENT, FAILED), (asker, DONE))), RETRIED])
    task = tree.tasks["a"]
    first, second = task.attempts
    assert numbered(task) == [ONE, TWO]
    assert (second.again, first.decision and first.decision.receipt.stage, second.decision) == (True, Stage.ACTED, None)
    assert (task.retry.remaining, second.started_at, task.ended_at) == (0, 120.0, 125.0)
    assert second.handed_off_at == 110.0, "what the session made in its first attempt is its own, too"
    document = next(one for one in tree_document(tree, "/w")["tasks"] if one["task_id"] == "a")
    runs = [one["run"] for one in document["attempts"]]
    assert [run and run["tokens"] for run in runs] == [None, 900], "the store counts the session, and it counts once"


def test_a_retry_that_ends_in_the_same_bytes_can_be_decided_anew():
    tree = tree_of([*ran(child((PARENT, FAILED), (HOOK, FAILED))), RETRIED])
    task = tree.tasks["a"]
    assert (task.attempt, task.state, task.binding, task.needs_operator) == (2, State.FAILED, None, True)
    tree.apply(decision(FAILED, 130.0, Action.ESCALATE, attempt=2))
    assert (task.state, task.needs_operator) == (State.ESCALATED, False)


@pytest.mark.parametrize(
    ("rounds", "decided", "expected"),
    [
        # A hook that holds the child without a decision about this round begins no attempt.
        *(
            ([(PARENT, FAILED), (HOOK, DONE)], decided, [(1, State.COMPLETED)])
            for decided in (
                None,
                decision(FAILED, 117.0, read=False),
                decision(FAILED, 121.0),
                decision(FAILED, 117.0, Action.ACCEPT),
                decision(DONE, 117.0),
                decision(FAILED, 117.0, attempt=2),
            )
        ),
        # The hook held the child, and the decision came later.
        ([(PARENT, FAILED), (HOOK, FAILED), (HOOK, DONE)], decision(FAILED, 127.0), [ONE, TWO]),
        # The child gave no return, or no word at all.
        ([(PARENT, PROSE), (HOOK, DONE)], decision(None, 117.0), [(1, State.COMPLETED), TWO]),
        ([(PARENT, None), (HOOK, DONE)], decision(None, 117.0), [(1, State.INVALID), TWO]),
        # The child only corrected the form of its return.
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


def test_a_child_at_its_retry_works_on_its_second_attempt():
    run = child((PARENT, FAILED), (HOOK, None), state=RunState.WORKING)
    assert attempts(*ran(run), RETRIED) == [ONE, (2, State.WORKING)]


def test_an_answer_to_a_blocked_child_is_no_retry():
    answered = decision(BLOCKED, 117.0, Action.RESPOND)
    task = task_of(*ran(child((PARENT, BLOCKED), (HOOK, BLOCKED))), answered)
    assert [one.state for one in task.attempts] == [State.BLOCKED] * 2
    assert (task.retry.remaining, task.needs_operator) == (1, True)


def test_a_round_that_is_handed_a_number_is_that_attempt():
    run = child((PARENT, message(returned("partial"), at=120.0)), (PARENT, DONE))
    last = replace(run.rounds[1], prompt=message(handoff("a", attempt=3)))
    task = task_of(*ran(replace(run, rounds=(run.rounds[0], last))))
    assert numbered(task) == [(1, State.PARTIAL), (3, State.COMPLETED)]
    assert not task.attempts[1].again


def test_sessions_that_are_handed_the_same_number_are_attempts():
    told = message(handoff("a", attempt=1))
    first, second = (child((PARENT, said), session=name) for said, name in ((FAILED, "s1"), (DONE, "s2")))
    runs = [replace(first, prompt=told), replace(second, prompt=told, started_at=115.0)]
    assert [(one.number, one.session_id) for one in task_of(*ran(*runs)).attempts] == [(1, "s1"), (2, "s2")]


def test_attempts_of_several_sessions_are_in_order_of_begin():
    first = child((PARENT, FAILED), (HOOK, FAILED), (PARENT, DONE))
    beside = replace(child((PARENT, FAILED), session="s2"), started_at=125.0, rounds=())
    for runs in ((first, beside), (beside, first)):
        task = task_of(*ran(*runs), RETRIED)
        expected = [(1, "s1"), (2, "s1"), (3, "s2"), (4, "s1")]
        assert [(one.number, one.session_id) for one in task.attempts] == expected


@pytest.mark.parametrize("session", [None, "command"])
@pytest.mark.parametrize("amended", [False, True])
def test_a_child_that_writes_its_return_into_a_file_is_retried(session, *, amended):
    """The session in a return is that of a whole command; in its store the child has another."""
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
    assert numbered(task) == [ONE, TWO]
    assert [one.run and one.run.started_at for one in task.attempts] == [110.0, 120.0]


def test_the_handoff_of_a_retry_is_that_of_the_attempt():
    amended = Recorder().seen("a-2.handoff.json", handoff("a", attempt=2, decision_id="d1"))
    task = task_of(amended, *ran(child((PARENT, FAILED), (PARENT, DONE))), RETRIED)
    handed = task.attempts[1].handoff
    assert (handed and handed.path, task.attempt) == ("a-2.handoff.json", 2)
