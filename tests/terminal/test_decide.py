"""The loop closes: a child fails, the operator approves an amended retry, the orchestrator carries it out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.terminal.emulator import DEADLINE, Terminal, agentwatch
from tests.terminal.test_command import FAILED, PACKET
from tests.terminal.test_follow import DONE

ORCHESTRATOR = """
import json, pathlib, subprocess, sys

workspace = pathlib.Path(sys.argv[1])
wait = [sys.executable, "-m", "agentwatch", "wait", "shop.api", str(workspace), "--json", "--timeout", "30"]
while (answer := subprocess.run(wait, stdout=subprocess.PIPE)).returncode in (3, 5):
    pass
decision = json.loads(answer.stdout)
assert decision["action"] == "retry", decision
(workspace / "api.handoff.json").write_text(decision["params"]["handoff"])
print(json.dumps(decision), flush=True)
sys.stdin.readline()
(workspace / "api.return.md").write_text(sys.argv[2])
"""


def test_an_approved_retry_is_carried_out_and_its_receipt_comes_back(tmp_path: Path) -> None:
    workspace = tmp_path / "shop"
    workspace.mkdir()
    (workspace / "docs").mkdir()
    (workspace / "docs" / "api.md").write_text("# The design\n")
    (workspace / "api.handoff.json").write_text(json.dumps(PACKET, indent=2))
    (workspace / "api.return.md").write_text(FAILED)
    places = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    second = DONE.replace("task_id: shop.api\n", "task_id: shop.api\nattempt: 2\n")
    command = [sys.executable, "-c", ORCHESTRATOR, str(workspace), second]
    with (
        Terminal(agentwatch(workspace), columns=140, lines=40, environment=places) as terminal,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **places}
        ) as orchestrator,
    ):
        try:
            terminal.wait_for(r"✗ shop\.api .*NEEDS YOU")
            terminal.wait_for(r" r retry  e escalate")
            terminal.press("r")
            terminal.wait_for(r"╔═ ◆ ↻ Retry")
            terminal.press("use db/v3.sql")
            terminal.wait_for(r"handoff   ✓ valid")
            terminal.wait_for(r"◆ ctrl\+s records this decision")
            terminal.press("\x13")
            # Whoever waits for it reads it at once.
            terminal.wait_for(r"↻ shop\.api .*◉ read|○ shop\.api|◐ shop\.api")
            assert orchestrator.stdout is not None
            assert orchestrator.stdin is not None
            decision = json.loads(orchestrator.stdout.readline())
            assert json.loads(decision["params"]["handoff"])["notes"][0] == "Operator: use db/v3.sql"
            terminal.wait_for(r"decided +retry · recorded")
            terminal.wait_for(r"· acted")
            terminal.wait_for(r"attempt 2 of 2")
            orchestrator.stdin.write("\n")
            orchestrator.stdin.close()
            assert orchestrator.wait(DEADLINE) == 0
            terminal.wait_for(r"✓ shop\.api")
            terminal.press("6")
            terminal.wait_for(r"1  ✗ failed")
            terminal.press("q")
            assert terminal.wait_until_exit() == 0
        finally:
            orchestrator.kill()
    verified = subprocess.run(
        agentwatch("verify", workspace), env={**os.environ, **places}, capture_output=True, text=True, check=False
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr
