"""Builds stores of Copilot CLI in memory, event by event, in the shape in which the program writes them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from agentwatch.sources.copilot import CopilotReader
from tests.unit.sessions.writing import Written

SESSION = "fb2a77f7-46da-4dc3-af57-30eecefa4b19"


class Log:
    """The events of one agent, which has a name, or of the session itself."""

    def __init__(self, store: Store, session: str, agent: str | None = None) -> None:
        self.path = store.home / "session-state" / session / "events.jsonl"
        self._store, self._session, self._agent = store, session, agent

    def event(self, kind: str, /, **data: object) -> None:
        """Any event, with what all of them have."""
        event = {"type": kind, "data": data, "id": self._store.new_id(), "timestamp": self._store.now()}
        if self._agent is not None:
            event["agentId"] = self._agent
        self._store.put(self.path, json.dumps(event | {"parentId": None}, separators=(",", ":")).encode() + b"\n")

    def opened(self, directory: Path | None = None) -> None:
        """A session begins, with a prompt of the program."""
        context = {"cwd": str(directory or self._store.workspace), "branch": "main"}
        self.event("session.start", sessionId=self._session, copilotVersion="1.0.102", context=context)
        self.event("system.message", role="system", content="You are …")

    def asked(self, text: str, **data: object) -> None:
        """The agent is told something."""
        source = {} if self._agent is None else {"source": f"agent-{self._session}"}
        self.event("user.message", content=text, transformedContent=f"<now/>\n\n{text}", **(source | data))

    def answered(self, text: str, *requests: Mapping[str, object], tokens: int = 100) -> None:
        """One message of the model in a turn of its own, which it does not end."""
        self.event("assistant.turn_start", turnId="0")
        usage = {"model": "small", "inputTokens": tokens, "outputTokens": 10, "cacheReadTokens": 10}
        self.event("session.usage_record", usage=usage)
        self.event("assistant.message", model="small", content=text, toolRequests=list(requests))

    def said(self, text: str) -> None:
        """The last message of a round."""
        self.answered(text)
        self.event("assistant.turn_end", turnId="0")

    def called(self, tool: str, call: str, **given: object) -> None:
        """A use of a tool."""
        self.answered("", {"toolCallId": call, "name": tool, "arguments": given, "type": "function"})
        self.event("tool.execution_start", toolCallId=call, toolName=tool, arguments=given, model="small")

    def got(self, call: str, output: str = "ok", *, code: int | None = None) -> None:
        """The result of a tool, which may have run a command."""
        ran = {} if code is None else {"shellExecution": {"exitCode": code}}
        self.event("tool.execution_complete", toolCallId=call, success=True, result={"content": output}, **ran)

    def got_none(self, call: str, message: str, code: str = "failure") -> None:
        """A tool has failed, or was not allowed."""
        error = {"message": message, "code": code}
        self.event("tool.execution_complete", toolCallId=call, success=False, error=error)

    def handed(self, call: str, prompt: str, mode: str = "sync") -> None:
        """The model hands work out."""
        given = {"description": f"the {call}", "prompt": prompt, "agent_type": "general-purpose"}
        self.called("task", call, **(given | ({"mode": mode} if mode != "sync" else {})))

    def began(self, call: str, mode: str = "sync") -> None:
        """This agent is begun by a call."""
        named = {"agentName": "general-purpose", "agentDisplayName": call, "agentDescription": f"the {call}"}
        self.event("subagent.started", toolCallId=call, executionMode=mode, resumable=False, model="small", **named)

    def completed(self, call: str, **data: object) -> None:
        self.event("subagent.completed", toolCallId=call, totalTokens=110, **data)

    def asks_leave(self, request: str, command: str) -> None:
        """It waits until somebody allows a command."""
        asked = {"kind": "shell", "toolCallId": f"call of {request}", "fullCommandText": command}
        self.event("permission.requested", requestId=request, permissionRequest=asked)


class Store(Written):
    """What Copilot CLI keeps."""

    name = "copilot"
    reader_of = CopilotReader

    def session(self, session_id: str = SESSION) -> Log:
        """A session that a human begins."""
        main = Log(self, session_id)
        main.opened()
        main.asked("Go.")
        return main

    def handed(self, by: Log, call: str, prompt: str, mode: str = "sync", session: str = SESSION) -> Log:
        """The model hands work out, and an agent begins it: its name is made of that of the call."""
        by.handed(call, prompt, mode)
        child = Log(self, session, f"agent-of-{call}")
        child.began(call, mode)
        if mode != "sync":
            by.got(call, f"Agent started in background with agent_id: agent-of-{call}.")
        child.asked(prompt)
        return child

    def done(self, by: Log, call: str, child: Log, text: str) -> None:
        """An agent in the foreground has ended."""
        child.said(text)
        child.completed(call)
        by.got(call, text)

    def lock(self, pid: int, session: str = SESSION) -> Path:
        """A program opened the session long ago."""
        path = self.home / "session-state" / session / f"inuse.{pid}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(pid))
        os.utime(path, (1.0, 1.0))
        return path
