"""Builds stores of Claude Code in memory, record by record, in the form that the program writes."""

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
    """Return a prompt that hands over a packet."""
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
    """Return a return that claims all of this."""

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
    """Return a return without claims."""
    return returned(state=state, summary=summary)


class Log:
    """A transcript; `agent` is None for the session's own."""

    def __init__(self, store: Store, path: Path, agent: str | None = None):
        self.path = path
        self.lines: list[bytes] = []
        self._store = store
        self._agent = agent

    def record(self, kind: str, message: Mapping[str, object], **keys: object):
        """Add a record of any kind, with the keys that all records have."""
        about = {"agentId": self._agent} if self._agent is not None else {}
        # The program writes the type before a user's message, and after the model's.
        told = {"type": kind, "message": message} if kind == "user" else {"message": message, "type": kind}
        self._store.time += timedelta(seconds=1)
        common = {"uuid": self._store.new_id(), "timestamp": self._store.time.isoformat().replace("+00:00", "Z")}
        common |= {"cwd": str(self._store.workspace), "sessionId": SESSION, "version": "2.1.329"} | keys
        written = {"isSidechain": self._agent is not None} | about | told | common
        self.lines.append(json.dumps(written, separators=(",", ":")).encode() + b"\n")

    def asked(self, text: str, **keys: object):
        """Give the agent a prompt."""
        self.record("user", {"role": "user", "content": text}, **keys)

    def said(self, text: str, stop: str | None = "end_turn"):
        """Add an answer of the model in text."""
        self.answered({"type": "text", "text": text}, stop)

    def used(self, tool: str, tool_use_id: str, /, **given: object):
        """Add a call of a tool by the model."""
        self.answered({"type": "tool_use", "id": tool_use_id, "name": tool, "input": given})

    def delegated(self, tool_use_id: str, prompt: str, **given: object):
        """Add a call by which the model hands out work."""
        asked = {"description": f"do {tool_use_id}", "prompt": prompt, "subagent_type": "general-purpose"}
        self.used("Agent", tool_use_id, **asked | given)

    def answered(self, block: Mapping[str, object], stop: str | None = "tool_use", **keys: object):
        """Add one message of the model."""
        message = {"id": f"msg_{self._agent}_{len(self.lines)}", "type": "message", "role": "assistant"}
        usage = {"input_tokens": 100, "cache_read_input_tokens": 5000, "output_tokens": 10}
        more = {"model": "claude-test-1", "content": [block], "stop_reason": stop, "usage": usage}
        self.record("assistant", message | more, **keys)

    def got(self, tool_use_id: str, text: str, *, error: bool = False, **result: object):
        """Add the result of a tool; `result` is its structured form."""
        block = {"tool_use_id": tool_use_id, "type": "tool_result", "content": [{"type": "text", "text": text}]}
        message = {"role": "user", "content": [block | ({"is_error": True} if error else {})]}
        self.record("user", message, **{"toolUseResult": result} if result else {})

    def launched(self, tool_use_id: str, agent_id: str):
        """Add the result that a background agent has started."""
        text = f"Async agent launched successfully.\nagentId: {agent_id} (internal ID)"
        self.got(tool_use_id, text, isAsync=True, status="async_launched", agentId=agent_id)

    def returned(self, tool_use_id: str, agent_id: str, text: str):
        """Add the result of a foreground agent that has ended; its report is indented in its parent's transcript."""
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
        """The time of the last record; each record is a second later."""
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
        """Return the new transcript of an agent, with a `meta` file beside it."""
        path = self.project / SESSION / "subagents" / f"agent-{agent_id}.jsonl"
        self.metas[path.with_suffix(".meta.json")] = json.dumps(meta).encode()
        self.logs.append(Log(self, path, agent_id))
        return self.logs[-1]

    @property
    def files(self) -> dict[Path, bytes]:
        """Return all files that are to be on disk in the end."""
        return {log.path: b"".join(log.lines) for log in self.logs} | self.metas

    def save(self):
        for path, data in self.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def reader(self) -> ClaudeCodeReader:
        return ClaudeCodeReader(self.workspace, home=self.home)

    def runs(self) -> dict[str, Run]:
        """Return all runs by the program's own id, as a new reader finds them."""
        self.save()
        return {change.run.session_id: change.run for change in self.reader().read(60.0) if change.run is not None}


def register(home: Path, pid: int, **keys: object) -> Path:
    """Write the file of a running program, and return its path."""
    path = home / "sessions" / f"{pid}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"pid": pid, "sessionId": SESSION} | keys))
    return path


def meta(tool_use_id: str, **keys: object) -> dict[str, object]:
    """Return the content of the file beside an agent's transcript."""
    known = {"agentType": "general-purpose", "description": f"the {tool_use_id}", "spawnDepth": 1}
    return known | {"toolUseId": tool_use_id} | keys
