"""A tree that remembers: tasks and attempts outlive their files, and a file that moves takes its history along."""

from __future__ import annotations

from tests.unit.delegation.observations import Recorder, handoff, meta, outline, returned, todos, tree_of

from agentwatch.delegation.observation import Observation
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import DelegationTree


def remembering(observations: list[Observation]) -> DelegationTree:
    return tree_of(observations, remembers=True)


def test_a_task_whose_files_are_deleted_stays_as_it_was_and_says_so() -> None:
    record = Recorder()
    observations = [
        record.seen("a.handoff.json", handoff("a")),
        record.seen("a.return.md", returned("failed")),
        record.gone("a.return.md"),
        record.gone("a.handoff.json"),
    ]
    task = remembering(observations).tasks["a"]
    assert (task.state, task.deleted, task.needs_operator) == (State.FAILED, True, True)
    assert task.why.endswith("its files were deleted since")
    assert tree_of(observations).tasks == {}


def test_a_task_is_deleted_only_when_none_of_its_files_is_left() -> None:
    record = Recorder()
    tree = remembering(
        [
            record.seen("a.handoff.json", handoff("a")),
            record.seen("a.return.md", returned("completed")),
            record.gone("a.handoff.json"),
        ]
    )
    assert not tree.tasks["a"].deleted
    tree.apply(record.gone("a.return.md"))
    assert tree.tasks["a"].deleted


def test_a_file_that_is_back_with_the_same_content_is_no_new_attempt() -> None:
    record = Recorder()
    first = record.seen("a.handoff.json", handoff("a"))
    back = record.seen("a.return.md", returned("completed"))
    observations = [first, back, record.gone("a.handoff.json"), first._replace(seq=9), back._replace(seq=10)]
    task = remembering(observations).tasks["a"]
    assert (len(task.attempts), task.deleted) == (1, False)


def test_a_return_that_comes_after_its_handoff_was_deleted_belongs_to_it() -> None:
    record = Recorder()
    observations = [
        record.seen("job/x.handoff.json", handoff("a")),
        record.gone("job/x.handoff.json"),
        record.seen("job/x.return.md", returned("completed")),
    ]
    assert outline(remembering(observations)) == ["a completed"]


def test_a_return_stays_with_its_deleted_handoff_when_another_takes_the_directory() -> None:
    record = Recorder()
    observations = [
        record.seen("job/handoff-one.json", handoff("one")),
        record.seen("job/result.md", returned("completed")),
        record.gone("job/handoff-one.json"),
        record.seen("job/handoff-two.json", handoff("two")),
    ]
    assert outline(remembering(observations)) == ["one completed", "two submitted"]


def test_a_retry_in_another_file_after_the_first_was_deleted_is_the_next_attempt_and_no_duplicate() -> None:
    record = Recorder()
    observations = [
        record.seen("first.handoff.json", handoff("a")),
        record.seen("first.return.md", returned("failed", task_id="a")),
        record.gone("first.handoff.json"),
        record.gone("first.return.md"),
        record.seen("again.handoff.json", handoff("a")),
        record.seen("again.return.md", returned("completed", task_id="a")),
    ]
    task = remembering(observations).tasks["a"]
    assert [attempt.state for attempt in task.attempts] == [State.FAILED, State.COMPLETED]
    assert not task.findings


def test_a_file_that_is_renamed_takes_its_attempts_along() -> None:
    record = Recorder()
    early = record.seen("specs/1/.return-meta.json", meta("working", "coder", session="s1"))
    final = record.seen("specs/1/.return-meta.json", meta("partial", "coder", session="s1"))
    second = record.seen("specs/1/.return-meta.json", meta("completed", "coder", session="s2"))
    moved = second._replace(seq=7, path="specs/1_done/.return-meta.json")
    gone = record.gone("specs/1/.return-meta.json")
    for observations in ([early, final, second, gone, moved], [early, final, second, moved, gone]):
        tree = remembering(observations)
        assert outline(tree) == ["specs/1_done/coder completed"]
        assert [attempt.session_id for attempt in tree.tasks["specs/1_done/coder"].attempts] == ["s1", "s2"]
        assert not tree.tasks["specs/1_done/coder"].deleted


def test_a_directory_that_is_renamed_twice_leaves_no_ghosts() -> None:
    record = Recorder()
    packet = record.seen("one/handoff.json", handoff(None))
    result = record.seen("one/return.md", returned("failed"))
    observations: list[Observation] = [packet, result]
    seq = 10
    for before, after in (("one", "two"), ("two", "three")):
        # The return arrives before the handoff it belongs to.
        for name, seen in (("return.md", result), ("handoff.json", packet)):
            observations.append(seen._replace(seq=seq, path=f"{after}/{name}"))
            observations.append(record.gone(f"{before}/{name}")._replace(seq=seq + 1))
            seq += 2
    tree = remembering(observations)
    assert outline(tree) == ["three failed"]
    assert len(tree.tasks["three"].attempts) == 1


def test_a_copy_is_a_duplicate_until_the_original_is_deleted() -> None:
    record = Recorder()
    original = record.seen("a.handoff.json", handoff("a"))
    copy = original._replace(seq=2, path="copy.handoff.json")
    assert [placed.finding.rule for placed in remembering([original, copy]).tasks["a"].findings] == ["LNK004"]
    tree = remembering([original, copy, record.gone("a.handoff.json")._replace(seq=3)])
    assert (tree.tasks["a"].findings, len(tree.tasks["a"].attempts)) == ((), 1)


def test_the_progress_of_a_deleted_checklist_stays() -> None:
    record = Recorder()
    observations = [
        record.seen("a.handoff.json", handoff("a")),
        record.seen("a.todos.md", todos("x", "-", " ")),
        record.gone("a.todos.md"),
    ]
    assert remembering(observations).tasks["a"].progress == (1, 3)


def test_a_failure_stays_with_its_task_when_another_task_failed_in_the_same_words() -> None:
    for ids in (("a", "b"), (None, None)):
        record = Recorder()
        failed = returned("failed")
        observations: list[Observation] = []
        for place, task_id in zip("ab", ids, strict=True):
            observations += [
                record.seen(f"{place}/x.handoff.json", handoff(task_id)),
                record.seen(f"{place}/x.return.md", failed)._replace(digest="f" * 64),
            ]
        first, second = remembering(observations).tasks
        for place in "ab":
            tree = remembering([*observations, record.gone(f"{place}/x.return.md")])
            assert outline(tree) == [f"{first} failed", f"{second} failed"]
            assert tree.tasks[first].needs_operator
            assert tree.tasks[second].needs_operator
