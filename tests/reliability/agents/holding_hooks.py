"""A workspace that a screen shows, its operator, and the hook as Claude Code starts it."""

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from agentwatch.decisions.ledger import DecisionMade
from agentwatch.decisions.service import DecisionService
from agentwatch.delegation.decision import Action, Request
from agentwatch.requests.store import RequestStore
from agentwatch.state import shown, state_directory
from tests.unit.decisions.made import QUICK

SECONDS = 60


class Scene:
    """A workspace, its operator, and a screen that shows it as long as `screen` is open."""

    def __init__(self, root: Path):
        self.root = root
        self.workspace = root / "shop"
        self.workspace.mkdir()
        self.screen = ExitStack()
        self.watch()
        # One each, for thousands of rounds: a new one reads everything that was ever decided or asked.
        self.store = RequestStore(self.workspace, disk=QUICK)
        self.desk = DecisionService(self.workspace, disk=QUICK)

    @property
    def state(self) -> Path:
        return state_directory(self.workspace)

    def watch(self):
        self.screen.enter_context(shown(self.state))

    def opened(self, count: int, known: set[str]) -> list[Request]:
        """So many requests that were not known before."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            found = [one for one in self.store.read() if one.request_id not in known and one.can_answer]
            if len(found) >= count:
                return found
            time.sleep(0.005)
        raise AssertionError("nothing was offered")

    def answer(self, request: Request, action: Action = Action.ALLOW, note: str = "") -> DecisionMade:
        return self.desk.answer(request, action, None, task_id="a", attempt=1, gone=lambda: None, note=note)

    def process(self, given: dict[str, Any] | bytes, **how: Any) -> subprocess.Popen[bytes]:
        """The hook as Claude Code starts it."""
        environment = {**os.environ, "CLAUDE_PROJECT_DIR": str(self.workspace), **how.pop("environment", {})}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how
        started = subprocess.Popen([sys.executable, "-m", "agentwatch", "hook"], env=environment, **pipes)
        assert started.stdin is not None
        with suppress(BrokenPipeError):
            started.stdin.write(given if isinstance(given, bytes) else json.dumps(given).encode())
            started.stdin.close()
        started.stdin = None
        return started


def live_apart(place: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing of this user's plays a part."""
    for variable in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        (place / variable).mkdir()
        monkeypatch.setenv(variable, str(place / variable))
    for variable in ("CLAUDE_PID", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def scene(tmp_path, monkeypatch):
    live_apart(tmp_path, monkeypatch)
    made = Scene(tmp_path)
    with made.screen:
        yield made


def bound(seconds: float):
    """Nobody waits longer."""
    directory = Path(os.environ["XDG_CONFIG_HOME"]) / "agentwatch"
    directory.mkdir(exist_ok=True)
    (directory / "config.toml").write_text(f"[hook]\nprompt = {seconds}\n", "utf-8")


def decision(printed: bytes) -> Any:
    return json.loads(printed)["hookSpecificOutput"]["decision"] if printed else None
