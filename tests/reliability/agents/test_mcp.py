"""`agentwatch mcp` as a client sees it: over standard input and output, beside an operator in another process."""

import asyncio
import json
from pathlib import Path

import anyio
import pytest

from tests.reliability.agents.stage import Stage, call
from tests.unit.agents.documents import packet, returned

TASK = "shop.api"


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


def test_the_loop_from_a_failed_attempt_to_a_decided_second(stage):
    async def loop():
        async with stage.client() as client:
            assert "operator" in (client.instructions or "")
            handed = await call(client, "submit_handoff", packet=packet(TASK))
            assert handed["accepted"], handed
            assert handed["path"] == "handoffs/shop.api.handoff.json"

            failed = await call(client, "submit_return", task_id=TASK, text=returned())
            assert (failed["accepted"], failed["state"]) == (True, "failed")
            assert "wait_for_decision" in failed["do_now"]

            async with asyncio.TaskGroup() as tasks:
                waiting = tasks.create_task(call(client, "wait_for_decision", task_id=TASK))
                decided = await asyncio.to_thread(stage.decide, TASK, "--retry", "--note", "Use the replica.")
            decision = waiting.result()
            assert decision["pending"] is False
            assert (decision["action"], decision["note"], decision["state"]) == (
                "retry",
                "Use the replica.",
                "retrying",
            )
            assert decision["return_sha256"] == failed["sha256"]
            assert decision["decision_id"] == decided
            assert "read.mcp" in stage.receipts(decision["decision_id"])

            amended = Path(decision["handoff_path"]).read_text("utf-8")
            assert json.loads(amended)["attempt"] == 2
            assert (await call(client, "submit_handoff", packet=amended))["accepted"]
            assert (await call(client, "wait_for_decision", task_id=TASK, timeout_seconds=0))["pending"] is True
            done = await call(client, "submit_return", task_id=TASK, text=returned("SUCCESS", more="attempt: 2\n"))
            assert done["state"] == "completed"
            needless = await call(client, "wait_for_decision", task_id=TASK)
            assert needless["do_now"].startswith("go on")
            assert (needless["pending"], needless["unasked"]) == (True, True)
            # A false claim is for the operator, too.
            await call(client, "submit_handoff", packet=packet("false"))
            lie = returned("SUCCESS").replace("files_created:\n- (none)", "files_created:\n- docs/gone.md")
            told = (await call(client, "submit_return", task_id="false", text=lie))["do_now"]
            assert told.startswith("the operator is asked: “a claim is false: docs/gone.md")
            assert "call wait_for_decision for “false” now" in told

    asyncio.run(loop())
    tree = json.loads(stage.run("tree", "--json", stage.workspace).out)
    task = next(one for one in tree["tasks"] if one["task_id"] == TASK)
    assert (task["state"], task["attempt"]) == ("completed", 2)


def test_a_wait_without_a_decision_is_pending_in_time(stage):
    stage.configure("[mcp]\nwait = 0.3\n")

    async def wait():
        async with stage.client() as client:
            await call(client, "submit_handoff", packet=packet(TASK))
            await call(client, "submit_return", task_id=TASK, text=returned())
            for seconds in (None, 500):
                told = await call(client, "wait_for_decision", task_id=TASK, timeout_seconds=seconds)
                assert told["pending"] is True
                assert "neither an approval nor a refusal" in told["do_now"]
                assert "action" not in told

    asyncio.run(wait())


def test_waits_are_side_by_side_and_hold_up_no_other_call(stage):
    async def wait():
        async with stage.client() as client:
            for task in ("a", "b"):
                await call(client, "submit_handoff", packet=packet(task))
                await call(client, "submit_return", task_id=task, text=returned(summary=f"Task {task} failed."))
            with anyio.move_on_after(0.5) as scope:
                await call(client, "wait_for_decision", task_id="a")
            assert scope.cancelled_caught
            async with asyncio.TaskGroup() as tasks:
                first = tasks.create_task(call(client, "wait_for_decision", task_id="a"))
                second = tasks.create_task(call(client, "wait_for_decision", task_id="b"))
                assert (await call(client, "validate_return", text=returned()))["compliant"]
                await asyncio.to_thread(stage.decide, "b", "--abort")
                assert (await second)["action"] == "abort"
                assert not first.done()
                await asyncio.to_thread(stage.decide, "a", "--retry")
            assert (first.result()["task_id"], first.result()["action"]) == ("a", "retry")

    asyncio.run(wait())


def test_no_task_id_leads_out_of_the_workspace(stage):
    async def submit():
        async with stage.client() as client:
            for task_id in ("../../escaped", "/etc/passwd", "x\n\x1b]0;t\x07", "n" * 4000):
                handed = await call(client, "submit_handoff", packet=packet(task_id))
                given = await call(client, "submit_return", task_id=task_id, text=returned())
                assert [Path(one["path"]).parent.name for one in (handed, given)] == ["handoffs", "returns"]
                told = await call(client, "wait_for_decision", task_id=task_id, timeout_seconds=0)
                assert told["state"] == "failed"

    asyncio.run(submit())
    below = {path.relative_to(stage.workspace).parts[0] for path in stage.workspace.rglob("*")}
    assert below <= {"docs", "handoffs", "returns"}
    assert {path.name for path in stage.root.iterdir()} <= {"shop", "state", "config", "home"}


def test_only_documented_tools_are_there_and_none_decides(stage):
    async def look():
        async with stage.client() as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            expected = {"submit_handoff", "submit_return", "validate_return", "wait_for_decision", "get_contract"}
            assert set(tools) == expected
            assert all(tool.output_schema and tool.description for tool in tools.values())
            assert list(tools["wait_for_decision"].input_schema["required"]) == ["task_id"]

    asyncio.run(look())


def test_without_the_sdk_it_says_what_to_install(stage):
    hidden = stage.root / "hidden"
    (hidden / "mcp").mkdir(parents=True)
    (hidden / "mcp" / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'mcp'\", name='mcp')\n")
    ran = stage.run("mcp", stage.workspace, environment={"PYTHONPATH": str(hidden)})
    assert ran.code == 2
    assert " -m pip install " in ran.err
    assert "[mcp]" in ran.err
    assert ran.out == ""
