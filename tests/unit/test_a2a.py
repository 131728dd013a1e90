"""The state of a task as A2A has it, in the words of 0.3 and in the JSON of 1.0."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from agentwatch.contracts.shapes import Contract
from agentwatch.delegation.task import State, Task
from agentwatch.view.a2a import a2a_state, a2a_status
from agentwatch.view.document import task_document
from agentwatch.view.documents.tasks import A2AEnum, A2AState
from tests.unit.delegation.events import Recorder, handoff, returned, tree_of


@pytest.mark.parametrize("state", State)
def test_every_state_has_a_word_and_an_enumerator_that_mean_the_same(state: State) -> None:
    task = Task("a", "a", state=state)
    word, status = a2a_state(task), a2a_status(task)
    assert word in get_args(A2AState)
    assert status["state"] in get_args(A2AEnum)
    said = status["state"].removeprefix("TASK_STATE_").lower().replace("_", "-")
    assert said == ("unspecified" if word == "unknown" else word)


def test_a_task_that_its_agent_rejects_is_told_from_one_that_failed() -> None:
    def state_of(said: str) -> str:
        told = replace(returned("failed", Contract.SUBAGENT_RETURN, task_id="a"), reported_state=said)
        return a2a_state(tree_of([Recorder().seen("a.return.json", told)]).tasks["a"])

    assert [state_of(said) for said in ("rejected", "Rejected", "failed", "rejected it")] == [
        "rejected", "rejected", "failed", "failed",
    ]  # fmt: skip


def test_the_status_says_since_when_it_is_so() -> None:
    record = Recorder()
    tree = tree_of(
        [record.seen("a.handoff.json", handoff("a")), record.seen("a.return.md", returned("blocked", task_id="a"))]
    )
    told = task_document(tree, tree.tasks["a"])
    assert told["a2a_status"] == {"state": "TASK_STATE_INPUT_REQUIRED", "timestamp": told["since"]}
    assert told["since"] is not None
    assert "timestamp" not in a2a_status(Task("a", "a"))
