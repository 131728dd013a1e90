"""Homes of users, in temporary directories."""

import os
import time
from pathlib import Path

import pytest

from agentwatch.state import workspace_id

DAY = 86_400

_VARIABLES = (
    "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME", "QWEN_RUNTIME_DIR", "QWEN_HOME",
    "PI_CODING_AGENT_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "OPENCODE_DB", "KILO_DB",
)  # fmt: skip


def live_in(home: Path, monkeypatch: pytest.MonkeyPatch):
    """Be a user with this home and without any agent programs; agentwatch keeps its state in `state` there."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    for variable in _VARIABLES:
        monkeypatch.delenv(variable, raising=False)


def state_in(environment: dict[str, str], workspace: Path):
    """Return the state directory of a workspace for a user with this environment."""
    return Path(environment["XDG_STATE_HOME"]) / "agentwatch" / workspace_id(workspace)


def write_aged(path: Path, text: str, *, days: float):
    """Write a file whose time is so many days ago."""
    path.write_text(text)
    os.utime(path, (time.time() - days * DAY,) * 2)
