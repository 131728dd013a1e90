"""Children that were retried more often than the policy allows."""

from __future__ import annotations

import itertools

from tests.unit.delegation.observations import Recorder, handoff, returned, tree_of

from agentwatch.delegation.decision import Action, Decision, Receipt, Stage
from agentwatch.delegation.observation import Decided, Observation
from agentwatch.delegation.tree import DelegationTree


def tried(times: int, task_id: str = "boss.x", outcome: str = "failed") -> list[Observation]:
    recorder = Recorder()
    found: list[Observation] = [recorder.seen("boss.handoff.json", handoff("boss"))]
    for number in range(1, times + 1):
        found.append(recorder.seen(f"{number}.handoff.json", handoff(task_id, attempt=number)))
        found.append(recorder.seen(f"{number}.return.md", returned(outcome, task_id=task_id, attempt=number)))
    return found


def overruns(tree: DelegationTree) -> dict[str, list[str]]:
    """By task, the messages of the finding."""
    told = {
        task.task_id: [placed.finding.message for placed in task.findings if placed.finding.rule == "LNK009"]
        for task in tree.tasks.values()
    }
    return {task_id: messages for task_id, messages in told.items() if messages}


def test_four_failed_attempts_without_a_decision_are_a_finding_on_the_parent() -> None:
    assert overruns(tree_of(tried(3))) == {}
    (message,) = overruns(tree_of(tried(4)))["boss"]
    assert message.startswith("boss.x was retried 3 times, and the policy allows 2, without a decision")


def test_it_is_the_same_in_any_order_and_a_task_without_a_parent_answers_for_itself() -> None:
    observations = tried(4)
    for first in itertools.permutations(observations[:3]):
        assert list(overruns(tree_of((*first, *observations[3:])))) == ["boss"]
    assert list(overruns(tree_of(observations[1:]))) == ["boss.x"]


def test_the_same_handoff_again_is_no_mitigation() -> None:
    recorder = Recorder()
    same = [
        recorder.seen(f"{number}.handoff.json", handoff("x", attempt=number))._replace(digest="a" * 64)
        for number in range(1, 4)
    ]
    back = [recorder.seen(f"{n}.return.md", returned("failed", task_id="x", attempt=n)) for n in range(1, 4)]
    (message,) = overruns(tree_of([*same, *back]))["x"]
    assert "retried 2 times, and the policy allows 1" in message


def test_what_follows_a_result_or_a_decision_is_no_retry_too_many() -> None:
    assert overruns(tree_of(tried(6, outcome="partial"))) == {}
    tree = tree_of(tried(4))
    returned_sha256 = tree.tasks["boss.x"].attempts[0].returned
    assert returned_sha256 is not None
    decided = Decision(
        decision_id="d" * 32,
        task_id="boss.x",
        attempt=1,
        handoff_sha256=None,
        return_sha256=returned_sha256.digest,
        action=Action.RETRY,
        at=1.0,
        receipts=(Receipt(Stage.RECORDED, 1.0),),
    )
    tree.apply(Decided(99, 1.0, decided.decision_id, decided))
    assert overruns(tree) == {}


def test_a_parent_is_not_accused_any_more_when_the_child_has_gone() -> None:
    tree, recorder = tree_of(tried(4)), Recorder()
    for number in range(1, 5):
        tree.apply(recorder.gone(f"{number}.handoff.json"))
        tree.apply(recorder.gone(f"{number}.return.md"))
    assert list(tree.tasks) == ["boss"]
    assert overruns(tree) == {}
