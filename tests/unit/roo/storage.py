"""A storage of the extension, written as it writes it, for the tests of its reader."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from agentwatch.delegation.run import Run
from agentwatch.sources.roo import RooReader

BEGAN_MS = 1_800_000_000_000
PACKET = """```json
{"handoff_schema": "composability.handoff_packet.v1", "task_id": "shop.search", "objective": "Index the products."}
```
"""
RETURN = "## Status\nstate: PARTIAL\nsummary: Half of the products are indexed.\n"


def say(kind: str, words: str, after: int = 0, **fields: object) -> dict[str, object]:
    return {"ts": BEGAN_MS + after * 1000, "type": "say", "say": kind, "text": words, **fields}


def ask(kind: str, words: str = "", after: int = 0, **fields: object) -> dict[str, object]:
    return {"ts": BEGAN_MS + after * 1000, "type": "ask", "ask": kind, "text": words, **fields}


def request(after: int = 0, **fields: object) -> dict[str, object]:
    """A request to the model, with what it took."""
    return say("api_req_started", json.dumps({"tokensIn": 300, "tokensOut": 30} | fields), after)


def call(words: str, after: int = 0, *, tool: str = "newTask", **fields: object) -> dict[str, object]:
    """A call of a tool that a human may have to allow."""
    return ask("tool", json.dumps({"tool": tool, "mode": "Code", "content": words, "todos": []}), after, **fields)


class Storage:
    """The storage of the extension, and a reader of it for one workspace."""

    def __init__(self, tmp_path: Path) -> None:
        self.workspace = tmp_path / "shop"
        self.workspace.mkdir()
        self.path = tmp_path / "storage"
        (self.path / "tasks").mkdir(parents=True)
        self.reader = RooReader(self.workspace, self.path)
        self.runs: dict[str, Run] = {}

    def directory(self, task: str) -> Path:
        return self.path / "tasks" / task

    def item(self, task: str, **fields: object) -> None:
        item = {"id": task, "number": 1, "ts": BEGAN_MS, "task": "Build the shop.", "tokensIn": 900, "tokensOut": 90}
        self.replace(self.directory(task) / "history_item.json", item | {"workspace": str(self.workspace)} | fields)

    def messages(self, task: str, *messages: dict[str, object]) -> None:
        self.replace(self.directory(task) / "ui_messages.json", list(messages))

    def replace(self, path: Path, document: object) -> None:
        path.parent.mkdir(exist_ok=True)
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_text(json.dumps(document), encoding="utf-8")
        fresh.replace(path)

    def read(self) -> Sequence[str]:
        """Read all there is; the keys that changed."""
        changed = []
        while True:
            for change in self.reader.read(10):
                changed.append(change.key)
                if change.run is None:
                    del self.runs[change.key]
                else:
                    self.runs[change.key] = change.run
            if self.reader.progress.done == self.reader.progress.total:
                return changed
