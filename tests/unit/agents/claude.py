"""Claude Code as a hook sees it, with texts of our own, and the operator of a workspace that a screen shows."""

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from agentwatch.decisions.ledger import DecisionMade
from agentwatch.decisions.service import DecisionService
from agentwatch.delegation.decision import Action, Request
from agentwatch.requests.store import RequestStore
from agentwatch.sources.claude_code import HookCall, read_hook_call
from agentwatch.state import mark_shown, state_directory
from tests.unit.claude_code.building import SESSION, Log, Store, meta
from tests.unit.decisions.made import QUICK

AGENT = "a5d1c0ffee0000001"
COMMAND = {"command": "make seeds", "description": "Looks harmless"}
QUESTIONS: list[dict[str, Any]] = [
    {
        "question": "Which store?",
        "header": "Store",
        "multiSelect": False,
        "options": [{"label": "SQLite", "description": "One file."}, {"label": "Redis, clustered", "description": ""}],
    },
    {
        "question": "Which checks?",
        "header": "Checks",
        "multiSelect": True,
        "options": [{"label": label, "description": label} for label in ("Lint", "Types", "Tests")],
    },
]


class Claude(Store):
    """A session in `workspace` with one child; its files lie below `home`."""

    def __init__(self, home: Path, workspace: Path, prompt: str):
        super().__init__(workspace)
        self.home, self.workspace, self.prompt = home, workspace, prompt
        self.main, self.child = self.session(), self.agent(AGENT, meta("toolu_1"))

    def write_transcript(self):
        """Write the child's transcript as it is when the child stops: only its prompt."""
        self.child.lines.clear()
        self.child.asked(self.prompt)
        self.save()

    def called(self, log: Log, call_id: str):
        log.used("Bash", call_id, **COMMAND)
        self.save()

    def came(self, call_id: str, at: datetime):
        self.time = at
        self.main.got(call_id, "done")
        self.save()

    def stop(self, said: str, *, again: bool = False) -> dict[str, Any]:
        """Return the payload of SubagentStop; `again` means that a hook has already blocked the stop."""
        return self._common() | {
            "hook_event_name": "SubagentStop",
            "agent_id": AGENT,
            "agent_type": "general-purpose",
            "stop_hook_active": again,
            "agent_transcript_path": str(self.child.path),
            "last_assistant_message": said.strip(),
            "background_tasks": [],
        }

    def came_back(self, said: str) -> dict[str, Any]:
        """Return the payload of PostToolUse for the tool that started the child."""
        texts = ["[Subagent hand-back] its report follows", f"{said.strip()}\n"]
        answer = {
            "status": "completed",
            "prompt": self.prompt,
            "agentId": AGENT,
            "harnessNoteCount": 1,
            "harnessTailCount": 0,
            "content": [{"type": "text", "text": text} for text in texts],
        }
        return self._common() | {
            "hook_event_name": "PostToolUse",
            "tool_name": "Agent",
            "tool_input": {"description": "a task", "prompt": self.prompt, "subagent_type": "general-purpose"},
            "tool_response": answer,
            "tool_use_id": "toolu_1",
        }

    def _common(self) -> dict[str, Any]:
        return {
            "session_id": SESSION,
            "transcript_path": str(self.main.path),
            "cwd": str(self.workspace),
            "permission_mode": "acceptEdits",
        }


def payload(tool: str = "Bash", given: object = None, **keys: object) -> dict[str, Any]:
    """Return the standard input of the hook, by default for a command; `keys` may make it a child's."""
    common: dict[str, Any] = {
        "session_id": SESSION,
        "transcript_path": f"/nowhere/{SESSION}.jsonl",
        "cwd": "/w",
        "prompt_id": "7d0c8c0e-0000-4000-8000-000000000001",
        "permission_mode": "default",
        "effort": {"level": "medium"},
        "hook_event_name": "PermissionRequest",
        "tool_name": tool,
        "tool_input": COMMAND if given is None else given,
    }
    return common | keys


def call(tool: str = "Bash", given: object = None, **keys: object) -> HookCall:
    return read_hook_call(json.dumps(payload(tool, given, **keys)))


def child(**keys: object) -> dict[str, object]:
    """Return the keys that only the payload of a child has."""
    return {"agent_id": AGENT, "agent_type": "general-purpose"} | keys


SECONDS = 60


class Scene:
    """A workspace, its operator, and a screen that shows it as long as `screen` is open."""

    def __init__(self, root: Path):
        self.root = root
        self.workspace = root / "shop"
        self.workspace.mkdir()
        self.screen = ExitStack()
        self.screen.enter_context(mark_shown(self.state))
        # They serve thousands of rounds: a new one would read all earlier decisions and requests again.
        self.store = RequestStore(self.workspace, disk=QUICK)
        self.desk = DecisionService(self.workspace, disk=QUICK)

    @property
    def state(self) -> Path:
        return state_directory(self.workspace)

    def opened(self, count: int, known: set[str]) -> list[Request]:
        """Wait for so many open requests that are not in `known`, and return them."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            found = [one for one in self.store.read() if one.request_id not in known and one.is_answerable]
            if len(found) >= count:
                return found
            time.sleep(0.005)
        raise AssertionError("nothing was offered")

    def answer(self, request: Request, action: Action = Action.ALLOW, note: str = "") -> DecisionMade:
        return self.desk.answer(request, action, None, task_id="a", attempt=1, why_gone=lambda: None, note=note)

    def process(self, given: dict[str, Any] | bytes, **how: Any) -> subprocess.Popen[bytes]:
        """Start the hook as Claude Code does."""
        environment = {**os.environ, "CLAUDE_PROJECT_DIR": str(self.workspace), **how.pop("environment", {})}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how
        started = subprocess.Popen([sys.executable, "-m", "agentwatch", "hook"], env=environment, **pipes)
        with suppress(BrokenPipeError):
            started.stdin.write(given if isinstance(given, bytes) else json.dumps(given).encode())
            started.stdin.close()
        started.stdin = None
        return started


def live_apart(place: Path, monkeypatch: pytest.MonkeyPatch):
    """Use empty directories and an environment without this user's own settings."""
    for variable in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        (place / variable).mkdir()
        monkeypatch.setenv(variable, str(place / variable))
    for variable in ("CLAUDE_PID", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(variable, raising=False)


def bound(seconds: float):
    """Set the time that the hook waits for a decision about a prompt."""
    directory = Path(os.environ["XDG_CONFIG_HOME"]) / "agentwatch"
    directory.mkdir(exist_ok=True)
    (directory / "config.toml").write_text(f"[hook]\nprompt = {seconds}\n", "utf-8")


def decision(printed: bytes) -> Any:
    return json.loads(printed)["hookSpecificOutput"]["decision"] if printed else None
