"""Builds stores of Claude Code in memory, record by record, in the shape in which the program writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agentwatch.delegation.events import Run
from agentwatch.sources.claude_code.claude_code_reader import ClaudeCodeReader
from agentwatch.sources.sessions.store import slug

BEGIN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SESSION = "0b6f3c52-6c1e-4c7e-9f5a-2f4f0a3f7d10"


def packet(task_id: str, **more: object) -> str:
    """A prompt that hands a packet over."""
    handed = {"handoff_schema": "composability.handoff_packet.v1", "task_id": task_id, "objective": "Do it."} | more
    return f"```json\n{json.dumps(handed, indent=1)}\n```\n\nAnswer in the agreed format."


def returned(
    evidence: Sequence[str] = (),
    summary: str = "Done.",
    created: Sequence[str] = (),
    modified: Sequence[str] = (),
    deliverables: Sequence[str] = (),
    *,
    state: str = "SUCCESS",
) -> str:
    """A return that claims all this."""

    def listed(entries: Sequence[str], more: str = "") -> str:
        return "".join(f"- {entry}{more}\n" for entry in entries) or "- (none)\n"

    retry = "retry_recommended: no\n" * (state == "ERROR")
    return (
        f"## Status\nstate: {state}\nsummary: {summary}\n{retry}\n"
        f"## Deliverables\n{listed(deliverables, ' — a file')}\n## Evidence\n{listed(evidence)}\n"
        "## Runtime Attestation\nruntime_model_reported: m\nruntime_mode_reported: code\n"
        f"files_created:\n{listed(created)}files_modified:\n{listed(modified)}"
    )


def report(state: str = "SUCCESS", summary: str = "Done.") -> str:
    """A return that claims nothing."""
    return returned(state=state, summary=summary)


class Log:
    """One transcript. `agent` is None for the session's own."""

    def __init__(self, store: Store, path: Path, agent: str | None = None):
        self.path = path
        self.lines: list[bytes] = []
        self._store = store
        self._agent = agent

    def record(self, kind: str, message: Mapping[str, object], **keys: object):
        """Any record, with what all records have."""
        about = {"agentId": self._agent} if self._agent is not None else {}
        # The program writes the type before a user's message and behind the model's.
        told = {"type": kind, "message": message} if kind == "user" else {"message": message, "type": kind}
        self._store.time += timedelta(seconds=1)
        common = {"uuid": self._store.new_id(), "timestamp": self._store.time.isoformat().replace("+00:00", "Z")}
        common |= {"cwd": str(self._store.workspace), "sessionId": SESSION, "version": "2.1.329"} | keys
        written = {"isSidechain": self._agent is not None} | about | told | common
        self.lines.append(json.dumps(written, separators=(",", ":")).encode() + b"\n")

    def asked(self, text: str, **keys: object):
        """The agent is given something to do."""
        self.record("user", {"role": "user", "content": text}, **keys)

    def said(self, text: str, stop: str | None = "end_turn"):
        """The model answers with a text."""
        self.answered({"type": "text", "text": text}, stop)

    def used(self, tool: str, tool_use_id: str, /, **given: object):
        """The model uses a tool."""
        self.answered({"type": "tool_use", "id": tool_use_id, "name": tool, "input": given})

    def delegated(self, tool_use_id: str, prompt: str, **given: object):
        """The model hands work out."""
        asked = {"description": f"do {tool_use_id}", "prompt": prompt, "subagent_type": "general-purpose"}
        self.used("Agent", tool_use_id, **asked | given)

    def answered(self, block: Mapping[str, object], stop: str | None = "tool_use", **keys: object):
        """One message of the model."""
        message = {"id": f"msg_{self._agent}_{len(self.lines)}", "type": "message", "role": "assistant"}
        usage = {"input_tokens": 100, "cache_read_input_tokens": 5000, "output_tokens": 10}
        more = {"model": "claude-test-1", "content": [block], "stop_reason": stop, "usage": usage}
        self.record("assistant", message | more, **keys)

    def got(self, tool_use_id: str, text: str, *, error: bool = False, **result: object):
        """The result of a tool; `result` is its structured form."""
        block = {"tool_use_id": tool_use_id, "type": "tool_result", "content": [{"type": "text", "text": text}]}
        message = {"role": "user", "content": [block | ({"is_error": True} if error else {})]}
        self.record("user", message, **{"toolUseResult": result} if result else {})

    def launched(self, tool_use_id: str, agent_id: str):
        """A background agent was begun."""
        text = f"Async agent launched successfully.\nagentId: {agent_id} (internal ID)"
        self.got(tool_use_id, text, isAsync=True, status="async_launched", agentId=agent_id)

    def returned(self, tool_use_id: str, agent_id: str, text: str):
        """A foreground agent has ended; its report stands indented in its parent's transcript."""
        lines = "\n".join(f"  {line}" for line in text.split("\n"))
        framed = f"[Subagent hand-back] The report follows:\n{lines}\nagentId: {agent_id} (use SendMessage)"
        content = [{"type": "text", "text": text}]
        self.got(tool_use_id, framed, status="completed", agentId=agent_id, content=content)


class Store:
    """A store of one workspace in a directory of the test. Nothing is written before `save`."""

    def __init__(self, root: Path):
        self.workspace = root / "work"
        self.home = root / "claude"
        self.metas: dict[Path, bytes] = {}
        self.logs: list[Log] = []
        self.time = BEGIN
        """A second later with each record."""
        self._ids = 0

    @property
    def project(self) -> Path:
        return self.home / "projects" / slug(str(self.workspace))

    def new_id(self) -> str:
        self._ids += 1
        return f"uuid-{self._ids}"

    def session(self) -> Log:
        self.logs.append(Log(self, self.project / f"{SESSION}.jsonl"))
        return self.logs[-1]

    def agent(self, agent_id: str, meta: Mapping[str, object]) -> Log:
        """An agent's transcript, and the file beside it."""
        path = self.project / SESSION / "subagents" / f"agent-{agent_id}.jsonl"
        self.metas[path.with_suffix(".meta.json")] = json.dumps(meta).encode()
        self.logs.append(Log(self, path, agent_id))
        return self.logs[-1]

    @property
    def files(self) -> dict[Path, bytes]:
        """All that is to be on disk in the end."""
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
        return {change.run.session_id: change.run for change in self.reader().read(60.0) if change.run is not None}


def register(home: Path, pid: int, **keys: object) -> Path:
    """The file of a running program."""
    path = home / "sessions" / f"{pid}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"pid": pid, "sessionId": SESSION} | keys))
    return path


def meta(tool_use_id: str, **keys: object) -> dict[str, object]:
    """The file beside an agent's transcript."""
    known = {"agentType": "general-purpose", "description": f"the {tool_use_id}", "spawnDepth": 1}
    return known | {"toolUseId": tool_use_id} | keys
