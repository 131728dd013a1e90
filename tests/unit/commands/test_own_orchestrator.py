"""The orchestrator of the manual, unchanged: it hands out work, waits, and carries out decisions."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from agentwatch.cli import run
from agentwatch.manual import read_page

CHILD = """\
import json, pathlib, sys
handoff, returned = map(pathlib.Path, sys.argv[1:])
packet = json.loads(handoff.read_text())
pathlib.Path("attempts.jsonl").open("a").write(json.dumps(packet) + "\\n")
pathlib.Path("api.py").write_text("port = 8080")
states = {1: "blocked", 2: "failed", 3: "completed"}
status = states[packet.get("attempt", 1)]
said = {"blocked": "Which port?", "failed": "It timed out.", "completed": ""}[status]
error = {"type": "timeout", "message": said, "recoverable": True, "recommendation": "Say it."}
returned.write_text(json.dumps({
    "status": status, "summary": "It is " + status + ".", "errors": [error] if said else [],
    "artifacts": [{"type": "implementation", "path": "api.py", "summary": "The API."}],
    "metadata": {"session_id": "s", "agent_type": "code", "delegation_depth": 1,
                 "delegation_path": ["orchestrator", "code"]}}))
"""
DEADLINE = 60.0
Start = Callable[[], "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Return a function that starts another process of the orchestrator in the workspace, the current directory."""
    place, programs = tmp_path / "shop", tmp_path / "bin"
    programs.mkdir()
    (place / "docs").mkdir(parents=True)
    (place / "docs" / "api.md").write_text("The design.")
    for path, words in ((programs / "agentwatch", "-m agentwatch"), (place / "child", "child.py")):
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        path.chmod(0o755)
    (place / "child.py").write_text(CHILD)
    (code,) = re.findall(r"```python\n(.*?)```", read_page("orchestrator"), re.DOTALL)
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.delenv("AGENTWATCH_PUBLIC_KEY", raising=False)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.chdir(place)
    started: list[subprocess.Popen[bytes]] = []

    def begin() -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen([sys.executable, "-c", code]))
        return started[-1]

    yield begin
    for one in started:
        end(one)


def end(process: subprocess.Popen[bytes]):
    process.kill()
    process.wait()


def said(*words: str) -> str:
    """Return the output of a command. It runs in this process, as starting one takes longer than most commands."""
    with redirect_stdout(StringIO()) as out:
        assert run([*words]) == 0
    return out.getvalue()


def attempts() -> list[dict[str, object]]:
    file = Path("attempts.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def until_asks(state: str, count: int) -> str:
    """Wait until a task in this state asks after so many attempts, and return its ask."""
    deadline = time.monotonic() + DEADLINE
    while True:
        assert time.monotonic() < deadline
        time.sleep(0.1)
        asking = json.loads(said("pending", "--json"))["tasks"]
        if asking and (asking[0]["state"], len(attempts())) == (state, count):
            return str(asking[0]["ask"])


def test_the_orchestrator_of_the_manual_carries_out_each_once(start):
    first = start()
    assert "Which port?" in until_asks("blocked", 1)
    end(first)
    said("decide", "shop.api", "--respond", "8080", "--note", "As before.", "--yes")
    # The orchestrator died right after its claim, and later after the next attempt.
    told = json.loads(said("wait", "shop.api"))
    said("claim", told["decision_id"], "--by", "shop")
    second = start()
    until_asks("failed", 2)
    assert attempts()[1]["notes"] == ["The operator answers: 8080", "The operator says: As before."]
    end(second)
    both = start(), start()
    said("decide", "shop.api", "--escalate", "debug", "--note", "Take more time.", "--yes")
    assert [one.wait(DEADLINE) for one in both] == [0, 0]
    assert [packet.get("attempt", 1) for packet in attempts()] == [1, 2, 3]
    assert "Take more time." in json.dumps(attempts()[2])
    assert json.loads(said("pending", "--json"))["tasks"] == []
