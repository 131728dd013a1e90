"""The orchestrator that the manual shows, as it stands there: it hands out, waits, and does what is decided."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentwatch.manual import page

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


class Shop:
    """A workspace with the orchestrator of the manual, and its operator."""

    def __init__(self, root: Path) -> None:
        self.place = root / "shop"
        (self.place / "docs").mkdir(parents=True)
        (self.place / "docs" / "api.md").write_text("The design.")
        programs = root / "bin"
        programs.mkdir()
        for path, words in ((programs / "agentwatch", "-m agentwatch"), (self.place / "child", "child.py")):
            path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
            path.chmod(0o755)
        (self.place / "child.py").write_text(CHILD)
        (code,) = re.findall(r"```python\n(.*?)```", page("orchestrator"), re.DOTALL)
        (root / "orchestrate.py").write_text(code)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AGENTWATCH")},
            "HOME": str(root),
            "XDG_STATE_HOME": str(root / "state"),
            "XDG_CONFIG_HOME": str(root / "config"),
            "PATH": f"{programs}:{os.environ['PATH']}",
        }
        self.program = root / "orchestrate.py"
        self.started: list[subprocess.Popen[bytes]] = []
        self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Another process of the orchestrator."""
        self.started.append(subprocess.Popen([sys.executable, self.program], cwd=self.place, env=self.environment))
        return self.started[-1]

    def crash(self) -> None:
        for one in self.started:
            one.kill()
            one.wait()

    def attempts(self) -> list[dict[str, object]]:
        file = self.place / "attempts.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def asking(self) -> list[tuple[str, str]]:
        return [(task["state"], task["ask"]) for task in json.loads(self.runs("pending", "--json"))["tasks"]]

    def runs(self, *words: str) -> str:
        command = ["agentwatch", *words]
        ran = subprocess.run(command, cwd=self.place, env=self.environment, check=True, capture_output=True, text=True)
        return ran.stdout

    def decide(self, *words: str) -> None:
        self.runs("decide", "shop.api", *words, "--yes")

    def until_attempts(self, count: int) -> None:
        end = time.monotonic() + DEADLINE
        while len(self.attempts()) < count or not (self.place / "work" / "api.return.json").exists():
            assert time.monotonic() < end
            time.sleep(0.05)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path)
    yield shop
    shop.crash()


def until_asks(shop: Shop, state: str) -> str:
    """What the task asks once it is in this state."""
    end = time.monotonic() + DEADLINE
    while (asking := shop.asking()) == [] or asking[0][0] != state:
        assert time.monotonic() < end, asking
        time.sleep(0.1)
    return asking[0][1]


def test_the_orchestrator_of_the_manual_carries_out_each_once(shop: Shop) -> None:
    shop.until_attempts(1)
    assert "Which port?" in until_asks(shop, "blocked")
    shop.crash()
    shop.decide("--respond", "8080", "--note", "As before.")
    # It died right after its claim, then after the next attempt.
    told = json.loads(shop.runs("wait", "shop.api"))
    shop.runs("claim", told["decision_id"], "--by", "shop")
    shop.start()
    shop.until_attempts(2)
    assert shop.attempts()[1]["notes"] == ["The operator answers: 8080", "The operator says: As before."]
    until_asks(shop, "failed")
    shop.crash()
    both = shop.start(), shop.start()
    shop.decide("--escalate", "debug", "--note", "Take more time.")
    assert [one.wait(DEADLINE) for one in both] == [0, 0]
    assert [packet.get("attempt", 1) for packet in shop.attempts()] == [1, 2, 3]
    assert "Take more time." in json.dumps(shop.attempts()[2])
    assert shop.asking() == []
