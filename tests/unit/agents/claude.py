"""Claude Code as far as a hook sees it: transcripts and payloads in its shape, with words of our own."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SESSION = "3f1c9f0e-7a51-4c0d-9c0f-5f6b1f8f0a11"
AGENT = "a5d1c0ffee0000001"


@dataclass
class Claude:
    """One session in `workspace`, with one child; its files lie below `home`."""

    home: Path
    workspace: Path
    prompt: str
    agent_id: str = AGENT

    @property
    def transcript(self) -> Path:
        return self.home / "projects" / "-w" / f"{SESSION}.jsonl"

    @property
    def agent_transcript(self) -> Path:
        return self.home / "projects" / "-w" / SESSION / "subagents" / f"agent-{self.agent_id}.jsonl"

    def write_transcript(self):
        """The child's transcript, as far as it is there when the child stops: its prompt."""
        record = {
            "parentUuid": None,
            "isSidechain": True,
            "agentId": self.agent_id,
            "type": "user",
            "message": {"role": "user", "content": self.prompt},
            "uuid": "11111111-0000-4000-8000-000000000001",
            "timestamp": "2020-01-01T12:00:00.000Z",
            "cwd": str(self.workspace),
            "sessionId": SESSION,
            "version": "2.1.329",
        }
        self.agent_transcript.parent.mkdir(parents=True, exist_ok=True)
        self.agent_transcript.write_text(json.dumps(record) + "\n", "utf-8")

    def stop(self, said: str, *, again: bool = False) -> dict[str, Any]:
        """The payload of SubagentStop; `again`: a hook blocked it before."""
        return self._common() | {
            "hook_event_name": "SubagentStop",
            "agent_id": self.agent_id,
            "agent_type": "general-purpose",
            "stop_hook_active": again,
            "agent_transcript_path": str(self.agent_transcript),
            "last_assistant_message": said.strip(),
            "background_tasks": [],
        }

    def came_back(self, said: str) -> dict[str, Any]:
        """The payload of PostToolUse of the tool that began the child."""
        texts = ["[Subagent hand-back] its report follows", f"{said.strip()}\n"]
        answer = {
            "status": "completed",
            "prompt": self.prompt,
            "agentId": self.agent_id,
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
            "transcript_path": str(self.transcript),
            "cwd": str(self.workspace),
            "permission_mode": "acceptEdits",
        }
