"""The story as Roo Code keeps it: two files a task, replaced as a whole.

It has no word for a technical failure: the first attempt at SEARCH says itself that it failed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

from agentwatch.sources.roo import RooReader
from tests.unit.roo.storage import BEGAN_MS, Storage, ask, say
from tests.unit.sessions.store import (
    CART,
    GARBAGE,
    INDEX,
    LOOK,
    OTHER,
    PAY,
    SEARCH,
    THOUGHT,
    WORDS,
    Store,
    packet,
    report,
)

_MAIN = "main"
_SECOND = ("second", "dust")


def roo(root: Path) -> Store:
    """All of the story."""
    storage = Storage(root)

    def forget() -> None:
        for task in _SECOND:
            shutil.rmtree(storage.directory(task))

    def spoil(random: Random) -> None:
        directory = storage.directory(f"junk-{random.randrange(1_000)}")
        directory.mkdir(exist_ok=True)
        name = random.choice(["history_item.json", "ui_messages.json", ".ui_messages.json.new", "notes"])
        (directory / name).write_bytes(random.choice(GARBAGE))
        # What is half written says nothing: the file holds on to what it said before.
        whole = [path for path in sorted(storage.path.rglob("history_item.json")) if "junk" not in str(path)]
        if whole:
            (random.choice(whole).parent / "api_conversation_history.json").write_bytes(random.choice(GARBAGE))

    return Store(
        storage.workspace,
        storage.path,
        lambda: RooReader(storage.workspace, storage.path),
        _written(storage),
        spoil,
        forget,
    )


def _written(storage: Storage) -> Iterator[None]:
    storage.item(_MAIN, status="delegated", mode="orchestrator")
    yield
    storage.messages(_MAIN, say("text", "Build the shop."))
    yield
    yield from _done(storage, "a1", packet(SEARCH), 10, report("ERROR", "It broke."))
    yield from _done(storage, "a2", packet(SEARCH), 20, report())

    yield from _done(storage, "a3", packet(INDEX), 30, report("PARTIAL"), status="delegated")
    yield from _done(storage, "a4", packet(WORDS), 32, report(), parent="a3")
    rounds = [say("completion_result", report("PARTIAL"), 40), say("user_feedback", "Go on.", 41)]
    rounds += [say("completion_result", report(summary="All of it."), 45)]
    for number in range(1, 4):
        storage.messages("a3", say("text", packet(INDEX), 30), *rounds[:number])
        yield
    storage.item("a3", parentTaskId=_MAIN, status="completed", ts=BEGAN_MS + 45_000)
    yield

    yield from _done(storage, "a5", packet(CART), 50, report(), status="aborted")
    yield from _done(storage, "a6", LOOK, 60, THOUGHT)
    storage.item("a7", parentTaskId=_MAIN, status="active", ts=BEGAN_MS + 70_000)
    yield
    storage.messages("a7", say("text", packet(PAY), 70), ask("tool", "{}", 71, isAnswered=True))
    yield

    storage.item(_SECOND[0], ts=BEGAN_MS + 80_000)
    yield
    storage.messages(_SECOND[0], say("text", "Dust the shelf.", 80))
    yield
    yield from _done(storage, _SECOND[1], packet(OTHER), 90, report(), parent=_SECOND[0])


def _done(
    storage: Storage, task: str, prompt: str, after: int, said: str, *, parent: str = _MAIN, status: str = "completed"
) -> Iterator[None]:
    storage.item(task, parentTaskId=parent, status="active", ts=BEGAN_MS + after * 1000)
    yield
    storage.messages(task, say("text", prompt, after))
    yield
    storage.messages(task, say("text", prompt, after), say("completion_result", said, after + 1))
    yield
    storage.item(task, parentTaskId=parent, status=status, ts=BEGAN_MS + (after + 1) * 1000)
    yield
