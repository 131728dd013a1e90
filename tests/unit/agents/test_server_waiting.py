"""`wait_for_decision`, where no client and no server is needed to see what it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentwatch.agents.server.waiting import Waiter
from agentwatch.config import Settings
from agentwatch.decisions.desk import Desk
from agentwatch.decisions.record import Subject
from agentwatch.delegation.decision import Action, Stage
from tests.unit.agents.test_hook import load


async def no_progress(_waited: float, _most: float) -> None:
    """Nobody asked how the wait goes on."""


async def test_in_a_container_it_is_told_in_the_workspace_that_a_decision_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "shop"
    workspace.mkdir()
    desk = Desk(workspace, state=tmp_path / "state", configuration=tmp_path / "config")
    subject = Subject(desk.workspace_id, "shop.api", 1, None, None)
    record = desk.decide(subject, Action.RETRY, returned=lambda: None).record
    monkeypatch.setenv("AGENTWATCH_PUBLIC_KEY", desk.keys.show().text)
    # A container has a state directory of its own, which the operator never sees.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "container"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "container"))
    waited = await Waiter(workspace, Settings(), load).wait("shop.api", 0, no_progress)
    assert waited.pending is False
    furthest = desk.receipts([record])[record.decision_id][-1]
    assert (furthest.stage, furthest.claimed) == (Stage.READ, True)
