"""Builds stores of Claude Code in memory, record by record, in the shape in which the program writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agentwatch.delegation.events import Run
from agentwatch.sources.claude_code.claude_code_reader import ClaudeCodeReader
from agentwatch.sources.sessions.store import slug

BEGIN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SESSION = "0b6f3c52-6c1e-4c7e-9f5a-2f4f0a3f7d10"


def packet(task_id: str) -> str:
    """A prompt that hands a packet over."""
    handed = {"handoff_schema": "composability.handoff_packet.v1", "task_id": task_id, "objective": "Do it."}
    return f"```json\n{json.dumps(handed, indent=1)}\n```\n\nAnswer in the agreed format."


def report(state: str, summary: str = "Done.") -> str:
    """A return."""
    return f"## Status\nstate: {state}\nsummary: {summary}\n\n## Deliverables\n- (none)\n"


def indented(text: str, agent_id: str) -> str:
    """A report as the parent's transcript frames it."""
    lines = "\n".join(f"  {line}" for line in text.split("\n"))
    return f"[Subagent hand-back] Model output. The report follows:\n{lines}\nagentId: {agent_id} (use SendMessage)"


class Log:
    """One transcript. `agent` is None for the session's own."""

    def __init__(self, store: Store, path: Path, agent: str | None, version: str):
        self.path = path
        self.lines: list[bytes] = []
        self._store = store
        self._agent = agent
        self._version = version
        self._messages = 0

    def record(self, kind: str, /, **keys: object):
        """Any record, with what all records have."""
        common: dict[str, object] = {"isSidechain": self._agent is not None}
        if self._agent is not None:
            common["agentId"] = self._agent
        # The program writes the type before a user's message and behind the model's.
        common |= keys | {"type": kind} if kind in ("assistant", "attachment") else {"type": kind} | keys
        common |= {"uuid": self._store.new_id(), "timestamp": self._store.now()}
        common |= {"cwd": str(self._store.cwd), "sessionId": SESSION, "version": self._version}
        self.lines.append(json.dumps(common, separators=(",", ":")).encode() + b"\n")

    def asked(self, text: str, **keys: object):
        """The agent is given something to do."""
        self.record("user", message={"role": "user", "content": text}, **keys)

    def said(self, text: str, stop: str | None = "end_turn", **keys: object):
        """The model answers with a text."""
        self.answered([{"type": "text", "text": text}], stop, **keys)

    def used(self, tool: str, tool_use_id: str, stop: str | None = "tool_use", **given: object):
        """The model uses a tool."""
        self.answered([{"type": "tool_use", "id": tool_use_id, "name": tool, "input": given}], stop)

    def delegated(self, tool_use_id: str, prompt: str, agent_type: str = "general-purpose", **given: object):
        """The model hands work out."""
        given = {"description": f"do {tool_use_id}", "prompt": prompt, "subagent_type": agent_type} | given
        self.used("Agent", tool_use_id, **given)

    def answered(self, blocks: list[dict[str, object]], stop: str | None, **keys: object):
        """One message of the model."""
        self._messages += 1
        message = {
            "id": f"msg_{self._agent}_{self._messages}",
            "type": "message",
            "role": "assistant",
            "model": "claude-test-1",
            "content": blocks,
            "stop_reason": stop,
            "usage": {"input_tokens": 100, "cache_read_input_tokens": 5000, "output_tokens": 10},
        }
        self.record("assistant", message=message, **keys)

    def got(self, tool_use_id: str, text: str, *, error: bool = False, **result: object):
        """The result of a tool; `result` is its structured form."""
        block: dict[str, object] = {"tool_use_id": tool_use_id, "type": "tool_result"}
        block |= {"content": [{"type": "text", "text": text}]} | ({"is_error": True} if error else {})
        keys = {"toolUseResult": result} if result else {}
        self.record("user", message={"role": "user", "content": [block]}, **keys)

    def launched(self, tool_use_id: str, agent_id: str):
        """A background agent was begun."""
        text = f"Async agent launched successfully.\nagentId: {agent_id} (internal ID)"
        self.got(tool_use_id, text, isAsync=True, status="async_launched", agentId=agent_id)

    def returned(self, tool_use_id: str, agent_id: str, text: str):
        """A foreground agent has ended."""
        content = [{"type": "text", "text": text}]
        self.got(tool_use_id, indented(text, agent_id), status="completed", agentId=agent_id, content=content)


class Store:
    """A store of one workspace in a directory of the test. Nothing is written before `save`."""

    def __init__(self, root: Path, cwd: Path | None = None):
        self.workspace = root / "work"
        self.home = root / "claude"
        self.cwd = cwd if cwd is not None else self.workspace
        self.metas: dict[Path, bytes] = {}
        self.logs: list[Log] = []
        self._ids = 0
        self.time = BEGIN

    @property
    def project(self) -> Path:
        return self.home / "projects" / slug(str(self.cwd))

    def new_id(self) -> str:
        self._ids += 1
        return f"uuid-{self._ids}"

    def now(self) -> str:
        self.time += timedelta(seconds=1)
        return self.time.isoformat().replace("+00:00", "Z")

    def set_back(self, by: timedelta):
        """Somebody sets the clock."""
        self.time -= by

    def session(self, session_id: str = SESSION, version: str = "2.1.329") -> Log:
        return self._log(self.project / f"{session_id}.jsonl", None, version)

    def agent(self, agent_id: str, meta: Mapping[str, object] | None = None, version: str = "2.1.329") -> Log:
        """An agent's transcript, and the file beside it where `meta` is given."""
        directory = self.project / SESSION / "subagents"
        if meta is not None:
            self.metas[directory / f"agent-{agent_id}.meta.json"] = json.dumps(meta).encode()
        return self._log(directory / f"agent-{agent_id}.jsonl", agent_id, version)

    def _log(self, path: Path, agent: str | None, version: str) -> Log:
        log = Log(self, path, agent, version)
        self.logs.append(log)
        return log

    @property
    def files(self) -> dict[Path, bytes]:
        """What is to be on disk in the end."""
        return {log.path: b"".join(log.lines) for log in self.logs} | self.metas

    def save(self):
        for path, data in self.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def reader(self) -> ClaudeCodeReader:
        return ClaudeCodeReader(self.workspace, home=self.home)

    def runs(self) -> dict[str, Run]:
        """All runs by the program's own id, as a reader that begins now finds them."""
        self.save()
        runs = {change.run.session_id: change.run for change in self.reader().read(60.0) if change.run is not None}
        return dict(sorted(runs.items()))


def register(home: Path, pid: int, **keys: object) -> Path:
    """The file of a running program."""
    path = home / "sessions" / f"{pid}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"pid": pid, "sessionId": SESSION} | keys))
    return path


def meta(tool_use_id: str | None, agent_type: str = "general-purpose", **keys: object) -> dict[str, object]:
    """What stands beside an agent's transcript."""
    found: dict[str, object] = {"agentType": agent_type, "description": f"the {tool_use_id}", "spawnDepth": 1}
    return found | ({"toolUseId": tool_use_id} if tool_use_id is not None else {}) | keys
