"""A home of Codex as its versions write it: built line by line, for the tests of its reader."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from agentwatch.delegation.run import Run
from agentwatch.sources.codex.codex_reader import CodexReader

BEGAN = 1_800_000_000.0


def thread(number: int) -> str:
    """An id that begins with the time it was made, as those of Codex do."""
    return f"0190{number:04x}-0000-7000-8000-000000000000"


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


@dataclass
class Session:
    """One rollout. Each method adds a record, a second after the one before; `home.write` puts them on disk."""

    id: str
    lines: list[bytes] = field(default_factory=list)
    clock: float = BEGAN
    turns: int = 0

    def add(self, kind: str, payload: Mapping[str, object]) -> Session:
        record: dict[str, object] = {"timestamp": iso(self.clock), "ordinal": len(self.lines)}
        self.lines.append(
            json.dumps(record | {"type": kind, "payload": payload}, separators=(",", ":")).encode() + b"\n"
        )
        self.clock += 1
        return self

    def event(self, kind: str, **fields: object) -> Session:
        return self.add("event_msg", {"type": kind, **fields})

    def item(self, kind: str, **fields: object) -> Session:
        return self.add("response_item", {"type": kind, **fields})

    def meta(self, directory: Path | str, **fields: object) -> Session:
        payload = {"id": self.id, "timestamp": iso(self.clock), "cwd": str(directory), "cli_version": "0.169.0"}
        return self.add("session_meta", payload | {"source": "cli"} | fields)

    def child_meta(self, directory: Path | str, parent: str, **fields: object) -> Session:
        spawn = {"parent_thread_id": parent, "depth": 1, "agent_nickname": "Ada", "agent_role": "explorer"}
        return self.meta(directory, parent_thread_id=parent, source={"subagent": {"thread_spawn": spawn}}, **fields)

    def begin(self) -> Session:
        self.turns += 1
        turn = self.id[:-1] + str(self.turns)
        return self.event("task_started", turn_id=turn).add("turn_context", {"turn_id": turn, "model": "large"})

    def asked(self, words: str) -> Session:
        content = [{"type": "text", "text": words, "text_elements": []}]
        return self.event("item_completed", thread_id=self.id, item={"type": "UserMessage", "content": content})

    def said(self, words: str) -> Session:
        content = [{"type": "Text", "text": words}]
        return self.event("item_completed", thread_id=self.id, item={"type": "AgentMessage", "content": content})

    def complete(self, words: str | None, error: str | None = None) -> Session:
        failure = {} if error is None else {"error": {"message": error}}
        return self.event("task_complete", turn_id="t", last_agent_message=words, **failure)

    def call(self, name: str, call: str, **arguments: object) -> Session:
        return self.item("function_call", name=name, arguments=json.dumps(arguments), call_id=call)

    def output(self, call: str, words: object) -> Session:
        return self.item("function_call_output", call_id=call, output=words)

    def spawned(self, call: str, *agents: str) -> Session:
        item = {"type": "CollabAgentToolCall", "id": call, "tool": "spawn_agent", "receiver_thread_ids": agents}
        return self.event("item_completed", item=item | {"agents_states": dict.fromkeys(agents, "pending_init")})


class Home:
    """The directory, and a reader of it for one workspace."""

    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path / "home"
        self.workspace = tmp_path / "shop"
        self.workspace.mkdir()
        (self.path / "sessions").mkdir(parents=True)
        self.reader = CodexReader(self.workspace, self.path)
        self.runs: dict[str, Run] = {}

    def place(self, session: Session, name: str = "", day: str = "2027/01/15") -> Path:
        return self.path / "sessions" / day / f"rollout-2027-01-15T08-00-00-{session.id}{name}.jsonl"

    def write(self, *sessions: Session) -> None:
        for session in sessions:
            path = self.place(session)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(session.lines))

    def session(self, number: int) -> Session:
        return Session(thread(number), clock=BEGAN + number)

    def root(self, number: int = 1) -> Session:
        """A session that a human began, with its first question."""
        return self.session(number).meta(self.workspace).begin().asked("Build the shop.")

    def read(self) -> Sequence[str]:
        """Read all there is; the keys that changed."""
        changes = []
        while True:
            found = self.reader.read(10)
            for change in found:
                changes.append(change.key)
                if change.run is None:
                    del self.runs[change.key]
                else:
                    self.runs[change.key] = change.run
            if self.reader.progress.done == self.reader.progress.total:
                return changes

    def run(self, session: Session) -> Run:
        return self.runs[session.id]
