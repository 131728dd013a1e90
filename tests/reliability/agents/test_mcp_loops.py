"""The loops of all decisions through the MCP server: an orchestrator that has its tools only, an operator's shell.

What the orchestrator does is what `do_now` told it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from agentwatch.decisions.proposal import report_problems
from tests.reliability.agents.stage import Stage, call
from tests.unit.agents.documents import packet, returned, subagent

TASK = "shop.api"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


class Orchestrator:
    """An agent with the tools of the server, and nothing else."""

    def __init__(self, client: Client, stage: Stage) -> None:
        self._client = client
        self._stage = stage

    async def hand_off(self, text: str) -> str:
        """Submit a handoff. Returns the id of its task."""
        handed = await call(self._client, "submit_handoff", packet=text)
        assert handed["accepted"], handed
        task_id: str = json.loads(text)["task_id"]
        return task_id

    async def give_back(self, task_id: str, text: str) -> str:
        """Submit the return of a child. Returns what to do now."""
        taken = await call(self._client, "submit_return", task_id=task_id, text=text)
        assert taken["accepted"], taken
        do_now: str = taken["do_now"]
        return do_now

    async def asks(self, task_id: str = TASK) -> dict[str, Any]:
        """What there is to know now about the decision."""
        return await call(self._client, "wait_for_decision", task_id=task_id, timeout_seconds=0)

    async def waits(self, *decided: str) -> dict[str, Any]:
        """Wait for the decision about the task, which the operator then makes, with these words for `decide`."""
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(call(self._client, "wait_for_decision", task_id=TASK))
            decision_id = await asyncio.to_thread(self._stage.decide, TASK, *decided)
        decision = waiting.result()
        assert (decision["pending"], decision["decision_id"]) == (False, decision_id), decision
        return decision


def play(stage: Stage, loop: Callable[[Orchestrator], Awaitable[None]]) -> None:
    """Run a loop to its end."""

    async def run() -> None:
        async with stage.client() as client:
            orchestrator = Orchestrator(client, stage)
            await orchestrator.hand_off(packet("shop"))
            await loop(orchestrator)

    asyncio.run(run())


def tree(stage: Stage) -> dict[str, dict[str, Any]]:
    """The tasks as an operator's tools see them afterwards, by their ids."""
    document = json.loads(stage.run("tree", "--json", stage.workspace).out)
    return {task["task_id"]: task for task in document["tasks"]}


def decided(task: dict[str, Any]) -> tuple[str, str]:
    """What was decided about a task last, and how far that has got."""
    return task["decision"]["action"], task["decision"]["receipt"]


def test_a_line_fault_goes_to_the_fitter_and_the_restored_station_is_retried_once(stage: Stage) -> None:
    async def loop(orchestrator: Orchestrator) -> None:
        await orchestrator.hand_off(packet(TASK, attempt=2))
        jams = returned(summary="The press jams.", more="attempt: 2\n", code="E_LINE_FAULT")
        assert "wait_for_decision" in await orchestrator.give_back(TASK, jams)
        called = await orchestrator.waits("--escalate", "fitter")
        assert "start the fitter with the handoff in the file handoff_path" in called["do_now"]

        fitter = await orchestrator.hand_off(Path(called["handoff_path"]).read_text("utf-8"))
        assert decided((await asyncio.to_thread(tree, stage))[TASK]) == ("escalate", "acted")
        assert (await orchestrator.asks())["decision_id"] == called["decision_id"]
        await orchestrator.give_back(fitter, returned("SUCCESS", "The press runs again."))
        # Whoever asks once more calls no second fitter.
        assert (await orchestrator.asks())["pending"] is True

        retried = await orchestrator.waits("--retry")
        assert retried["after"] == called["decision_id"]
        await orchestrator.hand_off(Path(retried["handoff_path"]).read_text("utf-8"))
        await orchestrator.give_back(TASK, jams.replace("attempt: 2", "attempt: 3"))
        again = await asyncio.to_thread(stage.run, "decide", "--retry", "--yes", "--", TASK, stage.workspace)
        assert again.code == 1
        assert "no retry left (2 allowed)" in again.err
        await orchestrator.give_back(TASK, returned("SUCCESS", "The API is built.", "attempt: 3\n"))
        assert (await orchestrator.asks())["do_now"].startswith("go on")

    play(stage, loop)
    task = tree(stage)[TASK]
    assert (task["state"], task["attempt"]) == ("completed", 3)
    assert task["retry"]["max_retries"] == 2


def test_the_report_of_an_abort_is_handed_up_and_nobody_waits_for_more(stage: Stage) -> None:
    async def loop(orchestrator: Orchestrator) -> None:
        for task_id in (TASK, "shop.api.db"):
            await orchestrator.hand_off(packet(task_id))
        await orchestrator.give_back(TASK, returned())
        decision = await orchestrator.waits("--abort", "--note", "The budget is spent.")
        report = decision["params"]["report"]
        assert report_problems(report) == []
        # Models lose the end of a line.
        assert (await orchestrator.give_back(TASK, report.rstrip())).startswith("go on without")
        assert (await orchestrator.asks())["decision_id"] == decision["decision_id"]

    play(stage, loop)
    tasks = tree(stage)
    assert {task_id: task["state"] for task_id, task in tasks.items()} == {
        "shop": "working",
        TASK: "canceled",
        "shop.api.db": "canceled",
    }
    assert decided(tasks[TASK]) == ("abort", "acted")
    assert [task["ask"] for task in tasks.values()] == [None, None, None]


@pytest.mark.parametrize("again", ["in its session", "handed off anew"])
def test_a_blocked_child_goes_on_with_the_answers(stage: Stage, again: str) -> None:
    async def loop(orchestrator: Orchestrator) -> None:
        await orchestrator.hand_off(packet(TASK))
        await orchestrator.give_back(TASK, subagent("blocked", "Two things are open.", "Which one?", "May it go?"))
        decision = await orchestrator.waits("--respond", "Postgres 16", "--respond", "Yes.")
        answers = [(one["question"], one["answer"]) for one in decision["params"]["answers"]]
        assert answers == [("Which one?", "Postgres 16"), ("May it go?", "Yes.")]
        assert decision["decision_id"] in decision["do_now"]
        if again == "in its session":
            await orchestrator.give_back(TASK, subagent("completed", "Built."))
        else:
            await orchestrator.hand_off(packet(TASK, attempt=2, decision_id=decision["decision_id"]))
            assert (await orchestrator.asks())["pending"] is True
            await orchestrator.give_back(TASK, subagent("completed", "Built.", session="sess_1735460685_d4e5f6"))
        assert (await orchestrator.asks())["do_now"].startswith("go on")

    play(stage, loop)
    task = tree(stage)[TASK]
    assert (task["state"], task["attempt"]) == ("completed", 1 if again == "in its session" else 2)
    if again == "in its session":
        assert decided(task) == ("respond", "acted")


def test_an_accepted_part_is_gone_on_from(stage: Stage) -> None:
    async def loop(orchestrator: Orchestrator) -> None:
        await orchestrator.hand_off(packet(TASK))
        await orchestrator.give_back(TASK, returned("PARTIAL", "Half of it.", limits=["The old API stays."]))
        decision_id = await asyncio.to_thread(stage.decide, TASK, "--accept", "--note", "Enough for v3.")
        decision = await orchestrator.asks()
        assert (decision["action"], decision["note"]) == ("accept", "Enough for v3.")
        assert decision["do_now"].startswith("go on as if shop.api had succeeded")
        await orchestrator.hand_off(packet("shop.ui", decision_id=decision_id))

    play(stage, loop)
    tasks = tree(stage)
    assert (tasks[TASK]["state"], decided(tasks[TASK])) == ("partial", ("accept", "read"))
