"""The state of a task as A2A has it, in the words of 0.3 and in the JSON of 1.0."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentwatch.contracts.shapes import Contract
from agentwatch.view.document import task_document
from tests.unit.delegation.events import Recorder, handoff, returned, tree_of


@pytest.mark.parametrize(
    ("outcome", "said", "word"),
    [
        ("failed", "rejected", "rejected"),
        ("failed", "Rejected", "rejected"),
        ("failed", "rejected it", "failed"),
        ("blocked", "blocked", "input-required"),
        ("blocked", "auth_required", "auth-required"),
        ("completed", "rejected", "completed"),
    ],
)
def test_both_spellings_mean_the_same(outcome: str, said: str, word: str) -> None:
    record = Recorder()
    told = replace(returned(outcome, Contract.SUBAGENT_RETURN, task_id="a"), reported_state=said)
    tree = tree_of([record.seen("a.handoff.json", handoff("a")), record.seen("a.return.json", told)])
    document = task_document(tree, tree.tasks["a"]).plain()
    state = f"TASK_STATE_{word.upper().replace('-', '_')}"
    assert (document["a2a_state"], document["a2a_status"]) == (word, {"state": state, "timestamp": document["since"]})
