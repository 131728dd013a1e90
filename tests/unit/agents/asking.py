"""PermissionRequest as Claude Code gives it to a hook, in its shape and with words of our own."""

import json
from pathlib import Path
from typing import Any

from agentwatch.sources.claude_code import HookCall, read_hook_call
from tests.unit.agents.claude import AGENT, SESSION

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


def payload(tool: str = "Bash", given: object = None, **keys: object) -> dict[str, Any]:
    """The standard input of the hook; by default a command, with keys for a child if `agent_id` is."""
    common: dict[str, Any] = {
        "session_id": SESSION,
        "transcript_path": f"/nowhere/{SESSION}.jsonl",
        "cwd": "/w",
        "prompt_id": "7d0c8c0e-0000-4000-8000-000000000001",
        "permission_mode": "default",
        "effort": {"level": "medium"},
        "hook_event_name": "PermissionRequest",
        "tool_name": tool,
        "tool_input": {"command": "make seeds", "description": "Looks harmless"} if given is None else given,
    }
    return common | keys


def call(tool: str = "Bash", given: object = None, **keys: object) -> HookCall:
    read = read_hook_call(json.dumps(payload(tool, given, **keys)))
    assert read is not None
    return read


def child(**keys: object) -> dict[str, object]:
    """The keys in the payload of a child beside the rest."""
    return {"agent_id": AGENT, "agent_type": "general-purpose"} | keys


class Story:
    """A transcript that grows; `path` is that of the session, and the child's lies below it."""

    def __init__(self, path: Path, *, of_child: bool = False):
        self.session = path
        self.path = path.with_suffix("") / "subagents" / f"agent-{AGENT}.jsonl" if of_child else path
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()

    def called(self, call_id: str, tool: str = "Bash", given: object = None, message: str = "msg_1"):
        given = {"description": "Looks harmless", "command": "make seeds"} if given is None else given
        use = {"type": "tool_use", "id": call_id, "name": tool, "input": given}
        self._write({"type": "assistant", "message": {"id": message, "role": "assistant", "content": [use]}})

    def came(self, call_id: str, at: str = "2999-01-01T00:00:00.000Z"):
        block = {"type": "tool_result", "tool_use_id": call_id, "content": "done"}
        self._write({"type": "user", "message": {"role": "user", "content": [block]}, "timestamp": at})

    def _write(self, line: dict[str, object]):
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
