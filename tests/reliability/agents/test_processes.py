"""`agentwatch mcp` and `agentwatch hook` as agents start them, beside an operator in another process."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from agentwatch.cli import run
from tests.goldens.world import Result
from tests.homes import state_in
from tests.terminal.emulator import Terminal, agentwatch
from tests.unit.agents.claude import Claude
from tests.unit.agents.documents import packet, returned

SECONDS = 60
"""Seconds that a process may take on a busy machine; this measures nothing."""


@dataclass
class Stage:
    """A workspace, its operator and their files, all below `root`."""

    root: Path

    def __post_init__(self):
        (self.workspace / "docs").mkdir(parents=True)
        (self.workspace / "docs" / "api.md").write_text("The design.\n", "utf-8")

    @property
    def workspace(self) -> Path:
        return self.root / "shop"

    @property
    def state(self) -> Path:
        return state_in(self.environment, self.workspace)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.root / "home"),
            "XDG_STATE_HOME": str(self.root / "state"),
            "XDG_CONFIG_HOME": str(self.root / "config"),
            "PYTHONUTF8": "1",
        }

    def configure(self, text: str):
        """Write the operator's settings."""
        directory = self.root / "config" / "agentwatch"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "config.toml").write_text(text, "utf-8")

    def run(self, *words: str | Path, given: str = "", environment: dict[str, str] | None = None) -> Result:
        """Run a command to its end; `given` is its standard input."""
        done = subprocess.run(
            [sys.executable, "-m", "agentwatch", *map(str, words)],
            input=given,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env={**os.environ, **self.environment, **(environment or {})},
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Result(done.returncode, done.stdout, done.stderr)

    def decide(self, task_id: str, *words: str) -> str:
        """Decide in this process, while those of the agents run, and return the decision id."""
        with patch.dict(os.environ, self.environment), redirect_stdout(StringIO()) as out:
            assert run(["decide", *words, "--yes", "--", task_id, str(self.workspace)]) == 0
        found = re.search(r"decision ([0-9a-f]{32})$", out.getvalue(), re.MULTILINE)
        assert found is not None, out.getvalue()
        return found[1]

    def was_read(self, decision_id: str, by: str) -> bool:
        return (self.state / "receipts" / f"{decision_id}.read.{by}.json").exists()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """Connect the SDK's own client to a server of this workspace over standard input and output."""
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "agentwatch", "mcp", str(self.workspace)], env=self.environment
        )
        async with Client(stdio_client(server)) as client:
            yield client


async def call(client: Client, name: str, **arguments: object) -> dict[str, Any]:
    """Call a tool that succeeds, and return its structured output."""
    result = await client.call_tool(name, dict(arguments), read_timeout_seconds=SECONDS)
    assert not result.is_error, result.content
    found = result.structured_content
    assert isinstance(found, dict)
    return found


TASK = "shop.api"


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


async def test_the_loop_from_a_failed_attempt_to_a_decided_second(stage):
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
        assert (decision["action"], decision["note"], decision["state"]) == ("retry", "Use the replica.", "retrying")
        assert decision["return_sha256"] == failed["sha256"]
        assert decision["decision_id"] == decided
        assert stage.was_read(decision["decision_id"], "mcp")

        amended = Path(decision["handoff_path"]).read_text("utf-8")
        assert json.loads(amended)["attempt"] == 2
        assert (await call(client, "submit_handoff", packet=amended))["accepted"]
        assert (await call(client, "wait_for_decision", task_id=TASK, timeout_seconds=0))["pending"] is True
        done = await call(client, "submit_return", task_id=TASK, text=returned("SUCCESS", more="attempt: 2\n"))
        assert done["state"] == "completed"
        needless = await call(client, "wait_for_decision", task_id=TASK)
        assert needless["do_now"].startswith("go on")
        assert (needless["pending"], needless["unasked"]) == (True, True)
        # A false claim needs the operator, too.
        await call(client, "submit_handoff", packet=packet("false"))
        lie = returned("SUCCESS").replace("files_created:\n- (none)", "files_created:\n- docs/gone.md")
        told = (await call(client, "submit_return", task_id="false", text=lie))["do_now"]
        assert told.startswith("the operator is asked: “a claim is false: docs/gone.md")
        assert "call wait_for_decision for “false” now" in told

    tree = json.loads(stage.run("tree", "--json", stage.workspace).out)
    task = next(one for one in tree["tasks"] if one["task_id"] == TASK)
    assert (task["state"], task["attempt"]) == ("completed", 2)


async def test_a_wait_without_a_decision_is_pending_in_time(stage):
    stage.configure("[mcp]\nwait = 0.3\n")
    async with stage.client() as client:
        await call(client, "submit_handoff", packet=packet(TASK))
        await call(client, "submit_return", task_id=TASK, text=returned())
        for seconds in (None, 500):
            told = await call(client, "wait_for_decision", task_id=TASK, timeout_seconds=seconds)
            assert told["pending"] is True
            assert "neither an approval nor a refusal" in told["do_now"]
            assert "action" not in told


async def test_waits_are_side_by_side_and_hold_up_no_other_call(stage):
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


async def test_no_tool_decides_or_leads_out_of_the_workspace(stage):
    async with stage.client() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        expected = {"submit_handoff", "submit_return", "validate_return", "wait_for_decision", "get_contract"}
        assert set(tools) == expected
        assert all(tool.output_schema and tool.description for tool in tools.values())
        assert list(tools["wait_for_decision"].input_schema["required"]) == ["task_id"]
        for task_id in ("../../escaped", "/etc/passwd", "x\n\x1b]0;t\x07", "n" * 4000):
            handed = await call(client, "submit_handoff", packet=packet(task_id))
            given = await call(client, "submit_return", task_id=task_id, text=returned())
            assert [Path(one["path"]).parent.name for one in (handed, given)] == ["handoffs", "returns"]
            told = await call(client, "wait_for_decision", task_id=task_id, timeout_seconds=0)
            assert told["state"] == "failed"

    below = {path.relative_to(stage.workspace).parts[0] for path in stage.workspace.rglob("*")}
    assert below <= {"docs", "handoffs", "returns"}
    assert {path.name for path in stage.root.iterdir()} <= {"shop", "state", "config", "home"}


def test_without_the_sdk_it_says_what_to_install(stage):
    hidden = stage.root / "hidden"
    (hidden / "mcp").mkdir(parents=True)
    (hidden / "mcp" / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'mcp'\", name='mcp')\n")
    ran = stage.run("mcp", stage.workspace, environment={"PYTHONPATH": str(hidden)})
    assert ran.code == 2
    assert " -m pip install " in ran.err
    assert "[mcp]" in ran.err
    assert ran.out == ""


@pytest.fixture
def claude(stage):
    made = Claude(stage.root / "home" / ".claude", stage.workspace, f"```json\n{packet(TASK)}\n```\n")
    made.write_transcript()
    return made


def test_a_child_with_a_decided_file_return_is_sent_back(stage, claude):
    for name, text in (("shop.api.handoff.json", packet(TASK)), ("shop.api.return.md", returned())):
        (stage.workspace / name).write_text(text, "utf-8")
    decision_id = stage.decide(TASK, "--retry", "--note", "Use the replica.")
    ran = stage.run("hook", given=json.dumps(claude.stop("It is in the file.")))
    answer = json.loads(ran.out)
    assert (ran.code, answer["decision"]) == (0, "block")
    assert "Use the replica." in answer["reason"]
    assert '"attempt": 2' in answer["reason"]
    assert stage.was_read(decision_id, "hook-claude")


def test_a_hook_waits_only_while_a_screen_is_open(stage, claude):
    stage.configure("[hook]\nwait = 0.1\n")
    payload = json.dumps(claude.stop(returned()))
    assert "no screen" in json.loads(stage.run("hook", given=payload).out)["systemMessage"]
    with Terminal(agentwatch(stage.workspace), environment=stage.environment) as terminal:
        terminal.wait_for("● live")
        assert "within 0.1 s" in json.loads(stage.run("hook", given=payload).out)["systemMessage"]
