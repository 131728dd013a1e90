"""Shared by the tests of the files source: a reader of tiny documents, and a receiver that can be waited for."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentwatch.config import Settings
from agentwatch.contracts.shapes import Contract, Document, Handoff, Outcome, Return
from agentwatch.delegation.events import Event, Gone, Seen, Unreadable
from agentwatch.sources import Batch
from agentwatch.sources.files.read import join, make_prune_test, walk
from agentwatch.sources.files.source import FilesSource, Reader

PATIENCE = 20.0
"""Seconds that a test waits for an expected event; far more than it takes."""

POLLING = Settings(poll=True)
EVERY_WAY = pytest.mark.parametrize("settings", [Settings(), POLLING], ids=["events", "polling"])


def read_document(text: str, path: str) -> Document | None:
    """Read a JSON object with a `task_id` as a handoff, and `## Status` to `END` as a return; a part is incomplete."""
    if "BREAK" in text:
        raise RecursionError
    if text.startswith("## Status"):
        document = Return(Contract.RETURN_FORMAT, "SUCCESS", Outcome.COMPLETED, summary=text)
        return Document(document, (), complete=text.rstrip().endswith("END"))
    try:
        value = json.loads(text)
    except ValueError:
        return Document(Handoff(None, None), (), complete=False) if text.startswith('{"task_id"') else None
    if isinstance(value, dict) and "task_id" in value:
        return Document(Handoff(value["task_id"], None))
    return None


def candidates(root: Path) -> Iterator[str]:
    """Yield the files of a workspace worth reading, as paths relative to it, in no order."""
    for path, listing in walk(os.path.realpath(root), make_prune_test(None)):
        if not isinstance(listing, OSError):
            yield from (join(path, name) for name in listing[1])


def packet(task_id: str) -> str:
    return json.dumps({"task_id": task_id})


HALF = '{"task_id": "ha'
OTHER = '{"name": "not ours"}'


class Receiver:
    """Takes batches in any thread, and keeps the files that are present now."""

    def __init__(self):
        self.batches: list[Batch] = []
        self.events: list[Event] = []
        self.present: dict[str, str] = {}
        """The digest of each present file by its path."""
        self._changed = threading.Condition()

    def __call__(self, batch: Batch):
        with self._changed:
            self.batches.append(batch)
            for event in batch.events:
                self.events.append(event)
                if isinstance(event, Seen):
                    self.present[event.path] = event.digest
                elif isinstance(event, Gone | Unreadable):
                    self.present.pop(event.path, None)
            self._changed.notify_all()

    @property
    def mode(self) -> str:
        return self.batches[-1].health.mode if self.batches else ""

    @property
    def detail(self) -> str:
        return self.batches[-1].health.detail if self.batches else ""

    def until(self, condition: Callable[[Receiver], object]):
        with self._changed:
            reached = self._changed.wait_for(lambda: condition(self), PATIENCE)
        assert reached, f"never reached; last health {self.batches[-1].health if self.batches else None}"

    def until_present(self, *paths: str):
        self.until(lambda receiver: set(receiver.present) == set(paths))


def descriptors() -> int:
    """Return the number of open file descriptors of this process."""
    return sum(1 for _ in Path("/dev/fd").iterdir())


def on_disk(root: Path) -> dict[str, str]:
    """Return the digest of every `.json` by its path, without links, as a receiver must have it in the end."""
    found = {}
    for path in root.rglob("*.json"):
        if path.is_file() and not path.is_symlink():
            found[str(path.relative_to(root))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


@contextmanager
def watching(root: Path, settings: Settings | None = None, reader: Reader = read_document) -> Iterator[Receiver]:
    """Run a source that is live, or polls, when the block begins."""
    receiver, source = Receiver(), FilesSource(root, settings, read_document=reader)
    source.settle_seconds = 0.2
    source.start(receiver)
    try:
        receiver.until(lambda it: it.mode in ("live", "polling"))
        yield receiver
    finally:
        source.stop()


def write(path: Path, text: str):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
