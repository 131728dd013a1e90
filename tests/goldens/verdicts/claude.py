"""Writes sessions of Claude Code from lists of deeds, one agent after the other."""

import json
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SESSION = "0b6f3c52-6c1e-4c7e-9f5a-2f4f0a3f7d10"
MOVED = (
    "Command did not complete within its 120s timeout and was moved to the background (ID: b1). Output is being written"
    " to: /tmp/b1.output. You will be notified when it completes."
)
REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."

Deed = Sequence[Any]


def packet(task_id: str, criteria: Sequence[str] = ()) -> str:
    """A prompt that hands a task over."""
    handed: dict[str, object] = {"handoff_schema": "composability.handoff_packet.v1", "task_id": task_id}
    handed |= {"objective": "Do it."} | ({"success_criteria": list(criteria)} if criteria else {})
    return f"```json\n{json.dumps(handed, indent=1)}\n```\n\nAnswer in the agreed format."


def returned(
    evidence: Sequence[str] = (),
    summary: str = "Done.",
    created: Sequence[str] = (),
    modified: Sequence[str] = (),
    deliverables: Sequence[str] = (),
) -> str:
    """A return that claims all this."""

    def listed(entries: Sequence[str], more: str = "") -> str:
        return "".join(f"- {entry}{more}\n" for entry in entries) or "- (none)\n"

    return (
        f"## Status\nstate: SUCCESS\nsummary: {summary}\n\n## Deliverables\n{listed(deliverables, ' — a file')}\n"
        f"## Evidence\n{listed(evidence)}\n## Runtime Attestation\nruntime_model_reported: m\n"
        f"runtime_mode_reported: code\nfiles_created:\n{listed(created)}files_modified:\n{listed(modified)}"
    )


class Session:
    """One session in a workspace, whose agents work one after the other, a second a record."""

    def __init__(self, home: Path, workspace: Path, begun_at: float | None = None):
        self.workspace = workspace
        self._project = home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(workspace))
        self._now = float(int(time.time()) - 80_000) if begun_at is None else begun_at
        self._logs: dict[str, list[str]] = {}
        self._count = 0
        self._record("", "user", {"role": "user", "content": "Build the shop."})

    def task(
        self,
        task_id: str,
        deeds: Sequence[Deed],
        text: str,
        *,
        criteria: Sequence[str] = (),
        meanwhile: Sequence[Deed] = (),
        by_parent: Sequence[Deed] = (),
    ):
        """An agent that is handed a task, does the deeds and returns the text; `meanwhile` another one does others,
        and the session itself those of `by_parent`."""
        agents = [(f"a{len(self._logs)}", task_id, criteria), (f"a{len(self._logs) + 1}", f"{task_id}.other", ())]
        agents = agents[: 2 if meanwhile else 1]
        for agent, name, wanted in agents:
            self._call("", f"call_{agent}", "Agent", {"description": "do", "prompt": packet(name, wanted)})
            self._record(agent, "user", {"role": "user", "content": packet(name, wanted)})
        for deed in deeds:
            self._do(agents[0][0], *deed)
        for deed in by_parent:
            self._do("", *deed)
        for deed in meanwhile:
            self._do(agents[1][0], *deed)
        for (agent, _, _), said in zip(agents, (text, returned()), strict=False):
            self._answer(agent, [{"type": "text", "text": said}], "end_turn")
            content = [{"type": "text", "text": said}]
            shown = {"status": "completed", "agentId": agent, "content": content}
            self._result("", f"call_{agent}", f"{said}\nagentId: {agent} (use SendMessage)", shown)

    def save(self):
        for agent, lines in self._logs.items():
            path = self._project / (f"{SESSION}/subagents/agent-{agent}.jsonl" if agent else f"{SESSION}.jsonl")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(lines), encoding="utf-8")
            if agent:
                about = {"agentType": "general-purpose", "spawnDepth": 1, "toolUseId": f"call_{agent}"}
                path.with_suffix(".meta.json").write_text(json.dumps(about | {"description": "do"}))

    def _do(self, agent: str, kind: str, *what: Any):
        self._count += 1
        call = f"toolu_{self._count}"
        if kind in ("wrote", "used"):
            tool, given, how = (what[0], what[1], "") if kind == "used" else (what[1], {"file_path": what[0]}, what[2])
            self._call(agent, call, tool, given)
            failed = {"refused": REFUSED, "failed": "Error: no such text"}.get(how)
            self._result(agent, call, failed or "ok", error=failed is not None)
            return
        line, rest = what[0], what[1:]
        cwd = rest[2] if len(rest) > 2 else "$WS"
        self._call(agent, call, "Bash", {"command": line}, cwd)
        if kind == "ran" and rest[0] == 0:
            shown = {"stdout": rest[1], "stderr": "", "interrupted": False}
            self._result(agent, call, rest[1], shown)
        elif kind == "ran":
            self._result(agent, call, f"Exit code {rest[0]}\n{rest[1]}", error=True)
        elif kind != "open":
            words = {"refused": REFUSED, "moved": MOVED}.get(kind, "Command running in background with ID: b1")
            self._result(agent, call, words, error=kind == "refused")

    def _call(self, agent: str, call: str, tool: str, given: Any, cwd: str = "$WS"):
        self._answer(agent, [{"type": "tool_use", "id": call, "name": tool, "input": given}], "tool_use", cwd)

    def _answer(self, agent: str, blocks: Sequence[Any], stop: str, cwd: str = "$WS"):
        message = {"id": f"msg_{self._count}_{self._now}", "type": "message", "role": "assistant", "model": "m"}
        self._record(agent, "assistant", message | {"content": blocks, "stop_reason": stop}, cwd=cwd)

    def _result(self, agent: str, call: str, text: str, shown: Any = None, *, error: bool = False):
        block = {"tool_use_id": call, "type": "tool_result", "content": [{"type": "text", "text": text}]}
        block |= {"is_error": True} if error else {}
        self._record(agent, "user", {"role": "user", "content": [block]}, **({"toolUseResult": shown} if shown else {}))

    def _record(self, agent: str, kind: str, message: Any, *, cwd: str = "$WS", **more: Any):
        self._now += 1.0
        self._count += 1
        at = datetime.fromtimestamp(self._now, UTC).isoformat().replace("+00:00", "Z")
        record = {"type": kind, "isSidechain": bool(agent), "message": message, "uuid": f"uuid-{self._count}"}
        record |= {"timestamp": at, "cwd": cwd, "sessionId": SESSION, "version": "2.1.329"} | more
        record |= {"agentId": agent} if agent else {}
        line = json.dumps(record, separators=(",", ":")).replace("$WS", str(self.workspace))
        self._logs.setdefault(agent, []).append(line + "\n")
