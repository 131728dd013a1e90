"""`wait_for_decision`, where no client and no server is needed to see what it does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentwatch.agents.server.waiting import Waiter
from agentwatch.composition import Repeated
from agentwatch.config import Settings
from agentwatch.decisions.desk import Desk
from agentwatch.decisions.record import Subject
from agentwatch.delegation.decision import Action, Stage
from tests.reliability.commands.stage import HANDOFF, returned
from tests.unit.agents.test_hook import load

FAILED = returned()


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


async def test_the_state_is_that_of_the_end_of_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    workspace = tmp_path / "shop"
    workspace.mkdir()
    (workspace / "shop.api.handoff.json").write_text(json.dumps(HANDOFF))

    async def returns(_waited: float, _most: float) -> None:
        (workspace / "shop.api.return.md").write_text(FAILED)

    waiter = Waiter(workspace, Settings(), Repeated())
    waited = await waiter.wait("shop.api", 1.5, returns)
    assert (waited.pending, waited.state) == (True, "failed")
    desk = Desk(workspace)
    task = Repeated()(workspace, Settings()).tree.tasks["shop.api"]
    subject = desk.subject(task)
    desk.decide(subject, Action.RETRY, returned=lambda: subject.return_sha256)
    waited = await waiter.wait("shop.api", 0, no_progress)
    assert (waited.pending, waited.state) == (False, "retrying")


async def test_a_return_that_claims_what_is_false_has_its_agent_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "shop").mkdir()
    server = pytest.importorskip("agentwatch.agents.server.server").make(tmp_path / "shop", Settings(), Repeated())
    mcp = pytest.importorskip("mcp")
    text = returned(state="SUCCESS").replace("files_created:\n- (none)", "files_created:\n- src/gone.py")
    async with mcp.Client(server) as client:
        await client.call_tool("submit_handoff", {"packet": json.dumps(HANDOFF)})
        told = (await client.call_tool("submit_return", {"task_id": "shop.api", "text": text})).structured_content
    assert told["accepted"]
    assert "src/gone.py" in told["do_now"]
    assert "call wait_for_decision" in told["do_now"]
