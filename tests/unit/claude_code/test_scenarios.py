"""What really happens in sessions, each told as runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentwatch.delegation.run import RunState
from tests.unit.claude_code.building import Store, meta


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_a_call_without_a_sign_of_its_agent_is_submitted(store: Store) -> None:
    main = store.session()
    main.asked("Go.")
    main.delegated("toolu_1", "one")
    assert store.runs()["toolu_1"].state is RunState.SUBMITTED
    store.agent("a1", meta("toolu_1")).asked("one")
    runs = store.runs()
    assert "toolu_1" not in runs
    assert runs["a1"].state is RunState.WORKING
