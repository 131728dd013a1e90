"""Builds stores of Qwen Code in memory, record by record, in the shape in which the program writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from agentwatch.sources.qwen import QwenReader
from agentwatch.sources.sessions.store import slug
from tests.unit.sessions.writing import Written

SESSION = "2f144a86-06ea-466c-a574-e89c0da985d2"


class Log:
    """One chat. `agent` is None for the session's own."""

    def __init__(self, store: Store, session: str, agent: str | None) -> None:
        folder = store.project / "chats" if agent is None else store.project / "subagents" / session
        self.path = folder / (f"{session}.jsonl" if agent is None else f"agent-{agent}.jsonl")
        self._store, self._session, self._agent = store, session, agent

    def record(self, kind: str, **keys: object) -> None:
        """Any record, with what all records have."""
        common: dict[str, object] = {"uuid": self._store.new_id(), "parentUuid": None, "sessionId": self._session}
        common |= {"timestamp": self._store.now(), "type": kind, "cwd": str(self._store.workspace), "version": "0.24.4"}
        if self._agent is not None:
            common |= {"agentId": self._agent, "isSidechain": True}
        self._store.put(self.path, json.dumps(common | keys, separators=(",", ":")).encode() + b"\n")

    def asked(self, text: str, **keys: object) -> None:
        """The agent is given something to do."""
        self.record("user", message={"role": "user", "parts": [{"text": text}]}, **keys)

    def answered(self, *parts: Mapping[str, object], tokens: int = 110) -> None:
        """A record of the model."""
        used = {"usageMetadata": {"totalTokenCount": tokens, "cachedContentTokenCount": 10}} if tokens else {}
        self.record("assistant", message={"role": "model", "parts": list(parts)}, model="small", **used)

    def said(self, text: str) -> None:
        self.answered({"text": text})

    def called(self, tool: str, call: str, **given: object) -> None:
        """A use of a tool: agents write it into a second record."""
        if self._agent is not None:
            self.answered()
        self.answered({"functionCall": {"id": call, "name": tool, "args": given}}, tokens=0 if self._agent else 110)

    def handed(self, call: str, prompt: str, kind: str = "general-purpose", **given: object) -> None:
        """The model hands work out."""
        self.called("agent", call, **{"description": f"do {call}", "prompt": prompt, "subagent_type": kind} | given)

    def got(self, call: str, output: str, status: str = "success", shown: str | None = None) -> None:
        """The result of a tool; `shown` is that of an agent."""
        parts = [{"functionResponse": {"id": call, "name": "x", "response": {"output": output}}}]
        result: dict[str, object] = {"callId": call, "status": status}
        if shown is not None:
            result["resultDisplay"] = {"type": "task_execution", "status": shown}
        self.record("tool_result", message={"role": "user", "parts": parts}, toolCallResult=result)

    def returned(self, call: str, text: str) -> None:
        """An agent in the foreground has ended."""
        self.got(call, text.removesuffix("\n"), shown="completed")

    def notified(self, agent: str, call: str, said: str, status: str = "completed") -> None:
        """The session is told that an agent in the background has ended."""
        self.asked(
            f"<task-notification>\n<task-id>{agent}</task-id>\n<tool-use-id>{call}</tool-use-id>\n"
            f"<status>{status}</status>\n<result>{said}</result>\n</task-notification>",
            subtype="notification",
        )

    def described(self, call: str, status: str = "running", parent: str | None = None, **keys: object) -> None:
        """How the agent stands, in the file beside."""
        found = {"agentId": self._agent, "agentType": "general-purpose", "description": f"the {call}"}
        found |= {"parentSessionId": self._session, "toolUseId": call, "parentAgentId": parent, "status": status}
        found |= {"isBackgrounded": False, "lastUpdatedAt": self._store.now()} | keys
        self._store.put(self.path.with_suffix(".meta.json"), json.dumps(found, indent=2).encode())


class Store(Written):
    """What Qwen Code keeps."""

    name = "qwen"
    reader_of = QwenReader
    tick = timedelta(seconds=1)

    @property
    def project(self) -> Path:
        return self.home / "projects" / slug(str(self.workspace))

    def session(self, session_id: str = SESSION) -> Log:
        return Log(self, session_id, None)

    def agent(self, call: str, session_id: str = SESSION, kind: str = "general-purpose") -> Log:
        return Log(self, session_id, f"{kind}-{call}")

    def handed(self, by: Log, call: str, prompt: str, parent: str | None = None, session: str = SESSION) -> Log:
        """The model hands work out, and an agent begins it."""
        by.handed(call, prompt)
        child = self.agent(call, session)
        child.asked(prompt)
        child.described(call, parent=parent)
        return child
