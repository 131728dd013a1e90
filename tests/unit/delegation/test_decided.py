"""A decision changes what a task waits for, and binds only the attempt and the return that it was made about."""

import pytest

from agentwatch.delegation.decision import OF_ATTEMPTS, Action, Receipt, Stage
from agentwatch.delegation.events import Decided, Event, Seen, Tick
from agentwatch.delegation.standing import mark_of
from agentwatch.delegation.task import State, Task
from agentwatch.delegation.tree import Tree
from tests.unit.delegation.events import BROKEN, Recorder, decided, handoff, outline, returned, tree_of

READ = (Receipt(Stage.RECORDED, 1_010.0), Receipt(Stage.READ, 1_011.0))


class Failed(Recorder):
    """A task that was handed off and returned."""

    def __init__(self, outcome: str = "failed", **more: object):
        super().__init__()
        self.handed = self.seen("a.handoff.json", handoff("a"))
        self.result = self.seen("a.return.md", returned(outcome, **more))
        self.events: list[Event] = [self.handed, self.result]

    def decided(self, action: Action = Action.RETRY, **more: object) -> Decided:
        return decided("a", action, 1_010.0, return_sha256=self.result.digest, **more)

    def read(self, action: Action = Action.RETRY) -> Decided:
        """A decision that an agent knows."""
        return self.decided(action, handoff_sha256=self.handed.digest, receipts=READ)

    def again(self, outcome: str, at: float = 1_020.0, **more: object) -> Seen:
        return self.seen("a.return.md", returned(outcome, **more))._replace(at=at)


def states(task: Task) -> list[tuple[int, State]]:
    return [(one.number, one.state) for one in task.attempts]


def stages(task: Task) -> list[Stage | None]:
    return [one.decision.receipt.stage if one.decision else None for one in task.attempts]


def test_what_an_abort_above_ended_is_so_since_the_abort():
    made = Failed()
    blocked = made.seen("b.return.md", returned("blocked", task_id="a.b"))
    failed = made.seen("c.return.md", returned("failed", task_id="a.c"))
    retried = decided("a.c", Action.RETRY, 1_010.0, return_sha256=failed.digest)
    tree = tree_of([*made.events, blocked, failed, retried, made.decided(Action.ABORT)])
    assert outline(tree) == ["a canceled", "  a.b canceled", "  a.c canceled"]
    assert {task.since for task in tree.tasks.values()} == {1_010.0}


def test_a_decision_may_be_known_before_the_files_are():
    made = Failed()
    assert tree_of([made.decided(), *made.events]).tasks["a"].state is State.RETRYING


@pytest.mark.parametrize("action", OF_ATTEMPTS)
@pytest.mark.parametrize("receipts", [READ[:1], READ, (*READ[:1], READ[1]._replace(claimed=True))])
def test_a_decision_whose_time_is_over_binds_nobody(receipts, action):
    made = Failed()
    decision = made.decided(action, expires_at=2_000.0, receipts=receipts)
    broken = made.result._replace(findings=(BROKEN,))
    tree = tree_of([made.handed, broken, decision, Tick(60, 1_999.0)])
    assert tree.tasks["a"].binding == decision.decision
    assert tree.apply(Tick(61, 2_000.0)) == {"a"}
    task = tree.tasks["a"]
    assert (task.state, task.needs_operator, task.decision) == (State.INVALID, True, None)
    assert task.why.endswith("what was decided about it has expired")
    # The clock was set back.
    tree.apply(Tick(62, 1_999.0))
    assert tree.tasks["a"].binding == decision.decision


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


def test_a_retry_in_a_rewritten_return_is_used_up_once():
    made = Failed()
    events = [*made.events, made.read(), made.again("failed")]
    assert tree_of(events).tasks["a"].retry.remaining == 0
    events.append(made.seen("a.handoff.json", handoff("a", attempt=2)))
    assert tree_of(events, max_retries=3).tasks["a"].retry.remaining == 2


@pytest.mark.parametrize(("action", "remaining"), [(Action.RETRY, 0), (Action.RESPOND, 1)])
@pytest.mark.parametrize("stated", [None, 1, 2])
def test_a_return_rewritten_after_a_read_decision_is_the_next_attempt(action, remaining, stated):
    made = Failed("blocked")
    done = made.again("completed", attempt=stated)
    task = tree_of([*made.events, made.read(action), done]).tasks["a"]
    assert states(task) == [(1, State.BLOCKED), (2, State.COMPLETED)]
    assert (stages(task), task.decision, task.retry.remaining) == ([Stage.ACTED, None], None, remaining)
    rewritten = made.again("partial", 1_030.0, attempt=stated)
    assert len(tree_of([*made.events, made.read(action), done, rewritten]).tasks["a"].attempts) == 2
    unread = tree_of([*made.events, made.decided(action), done]).tasks["a"]
    assert [one.state for one in unread.attempts] == [State.BLOCKED] * (stated == 2) + [State.COMPLETED]


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
    assert (deep.why, deep.ended_at) == ("a was aborted, and with it what was open below", 1_010.0)
    for parent, expected in (("a", ["  q canceled", "    q.r canceled"]), (None, apart)):
        tree.apply(made.seen("q.handoff.json", handoff("q", parent_task_id=parent)))
        assert sorted(outline(tree)) == sorted([*below, *expected])
    tree.apply(made.seen("a.handoff.json", handoff("a", attempt=2)))
    assert outline(tree)[:3] == ["a working", "  a.b working", "    a.b.c submitted"]


def test_a_child_that_fails_again_in_the_same_words_asks_again():
    made = Failed()
    touched, failed_again, touched_again = (
        made.result._replace(seq=seq, at=at) for seq, at in ((7, 1_009.5), (8, 1_020.0), (9, 1_030.0))
    )
    tree = tree_of([*made.events, touched, made.read()])
    assert tree.tasks["a"].state is State.RETRYING, "it was only touched before anybody knew of the decision"
    tree.apply(failed_again)
    task, mark = tree.tasks["a"], mark_of(tree.tasks["a"])
    assert states(task) == [(1, State.FAILED), (2, State.FAILED)]
    assert (task.needs_operator, task.retry.remaining, stages(task)[0]) == (True, 0, Stage.ACTED)
    tree.apply(touched_again)
    assert mark_of(tree.tasks["a"]) == mark, "a mere touch is nothing new"
    late: Tree = tree_of([*made.events, failed_again, made.read()])
    assert late.tasks["a"].attempt == 2, "in whatever order it is known"


def test_what_a_session_corrects_after_it_was_sent_on_is_of_that_attempt():
    made = Failed(session_id="command")
    again = [made.again(outcome, session_id="command") for outcome in ("blocked", "completed")]
    task = tree_of([*made.events, made.read(), *again]).tasks["a"]
    assert states(task) == [(1, State.FAILED), (2, State.COMPLETED)]


@pytest.mark.parametrize(("written", "attempts"), [(1_001.5, 1), (1_003.0, 2)])
def test_a_handoff_written_before_the_return_is_no_attempt(written, attempts):
    recorder = Recorder()
    given = recorder.seen("a.handoff.json", handoff("a"))
    failed = recorder.seen("a.return.md", returned("failed"))
    read_late = recorder.seen("a.handoff.json", handoff("a", mode="code"))._replace(at=written)
    assert len(tree_of([given, failed, read_late]).tasks["a"].attempts) == attempts
