"""Builds stores of Gemini CLI in memory, line by line, in the shape in which the program writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from agentwatch.sources.gemini import GeminiReader
from tests.unit.sessions.writing import Written

SESSION = "75707bae-1751-4df2-a9f3-20e48bb84eaa"


def handing(call: str, prompt: str, agent: str | None, status: str = "success", **shown: object) -> dict[str, object]:
    """A call that handed work out, once it is over; `agent` is None where its record names none."""
    ended = {"output": "Subagent 'generalist' finished.\nTermination Reason: GOAL\nResult:\n…"}
    answer = ended if status == "success" else {"error": "[Operation Cancelled] Reason: Operation cancelled by user"}
    display = {"isSubagentProgress": True, "state": "completed", "terminateReason": "GOAL"} | shown
    made = used("invoke_agent", call, status, answer, agent_name="generalist", prompt=prompt)
    return made | {"resultDisplay": display} | ({"agentId": agent} if agent is not None else {})


def used(tool: str, call: str, status: str, answer: Mapping[str, object], **given: object) -> dict[str, object]:
    """A call that is over."""
    response = {"functionResponse": {"id": call, "name": tool, "response": dict(answer)}}
    return {"id": call, "name": tool, "args": given, "result": [response], "status": status}


class Log:
    """One chat. `agent` is None for the session's own."""

    def __init__(self, store: Store, session: str, agent: str | None = None) -> None:
        chats = store.project / "chats"
        name = chats / f"session-2026-11-22T12-00-{session[:8]}.jsonl"
        self.path = name if agent is None else chats / session / f"{agent}.jsonl"
        self._store, self._id, self._agent = store, agent or session, agent

    def line(self, **keys: object) -> None:
        self._store.put(self.path, json.dumps(keys, separators=(",", ":")).encode() + b"\n")

    def begun(self) -> None:
        """The first line; a session sets its context as well."""
        kind, at = "main" if self._agent is None else "subagent", self._store.now()
        self.line(sessionId=self._id, projectHash="0" * 64, startTime=at, lastUpdated=at, kind=kind)
        if self._agent is None:
            context = {"id": "c", "timestamp": at, "type": "user", "content": [{"text": "<session_context>\n…"}]}
            self.patched(messages=[context])

    def patched(self, **keys: object) -> None:
        """Something of the whole is set."""
        self.line(**{"$set": keys | {"lastUpdated": self._store.now()}})

    def asked(self, text: str) -> str:
        """The agent is told something. Returns the id of the message."""
        name = self._store.new_id()
        self.line(id=name, timestamp=self._store.now(), type="user", content=[{"text": text}])
        return name

    def answered(self, text: str, *calls: Mapping[str, object], tokens: int = 110) -> str:
        """A message of the model: with calls it is written twice. Returns its id."""
        name, at = self._store.new_id(), self._store.now()
        message: dict[str, object] = {"id": name, "timestamp": at, "type": "gemini", "content": text, "thoughts": []}
        message |= {"tokens": {"total": tokens, "cached": 10}, "model": "small"}
        self.line(**message)
        if calls:
            over = [{**call, "timestamp": self._store.now()} for call in calls]
            self.line(**(message | {"toolCalls": over}))
            results = [part for call in calls if isinstance(parts := call["result"], list) for part in parts]
            self.line(id=self._store.new_id(), timestamp=self._store.now(), type="user", content=results)
        return name

    def called(self, tool: str, call: str, output: str = "ok", status: str = "success", **given: object) -> None:
        """A use of a tool, once it is over."""
        self.answered("", used(tool, call, status, {"output" if status == "success" else "error": output}, **given))

    def returned(self, text: str, call: str = "done") -> None:
        """The agent hands back what it has, and ends."""
        self.called("complete_task", f"{self._id}-{call}", "Output submitted.", result={"response": text})
        self.patched(summary=text[:10])


class Store(Written):
    """What Gemini CLI keeps."""

    name = "gemini"
    reader_of = GeminiReader

    @property
    def project(self) -> Path:
        return self.home / "tmp" / "work-1"

    def session(self, session_id: str = SESSION) -> Log:
        """A session that a human begins."""
        main = Log(self, session_id)
        main.begun()
        main.asked("Go.")
        return main

    def agent(self, name: str, prompt: str, session: str = SESSION) -> Log:
        """An agent begins."""
        child = Log(self, session, name)
        child.begun()
        child.asked(prompt)
        return child

    def name_workspace(self) -> None:
        """The directory of the project says whose it is."""
        self.project.mkdir(parents=True, exist_ok=True)
        (self.project / ".project_root").write_text(str(self.workspace))

    def save(self) -> None:
        self.name_workspace()
        super().save()
