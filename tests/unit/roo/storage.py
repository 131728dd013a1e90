"""A storage of the extension, written as it writes it, for the tests of its reader."""

from __future__ import annotations

import json
from pathlib import Path

BEGAN_MS = 1_800_000_000_000


def say(kind: str, words: str, after: int = 0, **fields: object) -> dict[str, object]:
    return {"ts": BEGAN_MS + after * 1000, "type": "say", "say": kind, "text": words, **fields}


def ask(kind: str, words: str = "", after: int = 0, **fields: object) -> dict[str, object]:
    return {"ts": BEGAN_MS + after * 1000, "type": "ask", "ask": kind, "text": words, **fields}


class Storage:
    """The storage of the extension, with the tasks of one workspace."""

    def __init__(self, tmp_path: Path) -> None:
        self.workspace = tmp_path / "shop"
        self.workspace.mkdir()
        self.path = tmp_path / "storage"
        (self.path / "tasks").mkdir(parents=True)

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
