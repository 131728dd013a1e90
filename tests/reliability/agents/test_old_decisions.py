"""A decision about one attempt answers nobody who asks about the next, whoever asks and wherever that one stands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.agents.stage import Stage, call
from tests.unit.agents.claude import Claude
from tests.unit.agents.documents import packet, returned

TASK = "shop.api"
SECOND = packet(TASK, attempt=2, objective="Build it otherwise.")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path)
    write(made, "api.handoff.json", packet(TASK))
    write(made, "api.return.md", returned())
    return made


def write(stage: Stage, name: str, text: str) -> None:
    path = stage.workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name("writing").write_text(text, "utf-8")
    path.with_name("writing").replace(path)


def wait(stage: Stage) -> dict[str, Any]:
    ran = stage.run("wait", TASK, stage.workspace, "--timeout=0", "--json")
    found: dict[str, Any] = json.loads(ran.out)
    return found


def server(stage: Stage) -> dict[str, Any]:
    async def ask() -> dict[str, Any]:
        async with stage.client() as client:
            return await call(client, "wait_for_decision", task_id=TASK, timeout_seconds=0)

    return asyncio.run(ask())


Face = Callable[[Stage], dict[str, Any]]
CHANGES: dict[str, tuple[str, str]] = {
    "its handoff was amended": ("api.handoff.json", SECOND),
    "its handoff was amended without a number": ("api.handoff.json", packet(TASK, objective="Build another API.")),
    "a second one stands beside it": ("api-2.handoff.json", SECOND),
    "a second one stands elsewhere": ("far/from/here/handoff.json", SECOND),
    "its return was rewritten": ("api.return.md", returned("ERROR", "The disk is full.")),
    "a second one has returned": (
        "far/2.return.md",
        returned(more=f"task_id: {TASK}\nattempt: 2\n"),
    ),
}


@pytest.mark.parametrize("face", [wait, server])
@pytest.mark.parametrize("change", CHANGES)
def test_an_old_decision_answers_nothing_new(stage: Stage, face: Face, change: str) -> None:
    decided = stage.decide(TASK, "--retry")
    for _ in range(2):
        assert face(stage)["decision_id"] == decided
    write(stage, *CHANGES[change])
    told = face(stage)
    assert told["pending"] is True
    assert "decision_id" not in told or told["decision_id"] is None


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_hook_tells_a_second_child_no_old_decision(stage: Stage, attempt: int) -> None:
    decided = stage.decide(TASK, "--retry", "--note", "Use the replica.")
    handed = packet(TASK, attempt=attempt)
    if attempt > 1:
        write(stage, "api.handoff.json", handed)
        (stage.workspace / "api.return.md").unlink()
    claude = Claude(stage.root / "home" / ".claude", stage.workspace, handed)
    claude.write_transcript()
    told = stage.run("hook", given=json.dumps(claude.stop(returned())))
    assert ("Use the replica." in told.out, decided in told.out) == (attempt == 1, attempt == 1), told
