"""The story as Kilo Code's extension keeps it, and Roo Code did: no history items, so only words tell who handed on.

No task has a status: that CART was aborted stands in its last request to the model.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

from agentwatch.sources.roo.roo_reader import RooReader
from tests.unit.roo.storage import Storage, ask, call, request, say
from tests.unit.sessions.conformance import (
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


def roo_older(root: Path) -> Store:
    """All of the story."""
    storage = Storage(root)

    def forget() -> None:
        for task in _SECOND:
            shutil.rmtree(storage.directory(task))

    def spoil(random: Random) -> None:
        directory = storage.directory(f"junk-{random.randrange(1_000)}")
        directory.mkdir(exist_ok=True)
        name = random.choice(["api_conversation_history.json", "ui_messages.json", "task_metadata.json"])
        (directory / name).write_bytes(random.choice(GARBAGE))

    return Store(
        storage.workspace,
        storage.path,
        lambda: RooReader(storage.workspace, storage.path),
        _written(storage),
        spoil,
        forget,
    )


def _written(storage: Storage) -> Iterator[None]:
    main = [say("text", "Build the shop.")]
    storage.conversation(_MAIN)
    yield
    storage.messages(_MAIN, *main)
    yield
    for task, prompt, after, said in (
        ("a1", packet(SEARCH), 10, report("ERROR", "It broke.")),
        ("a2", packet(SEARCH), 20, report()),
    ):
        yield from _done(storage, task, prompt, after, said, above=main)

    main.append(call(packet(INDEX), 29))
    storage.messages(_MAIN, *main)
    yield
    third = [say("text", packet(INDEX), 30)]
    storage.conversation("a3")
    storage.messages("a3", *third)
    yield
    yield from _done(storage, "a4", packet(WORDS), 33, report(), parent="a3", above=third)
    third += [say("completion_result", report("PARTIAL"), 40), say("user_feedback", "Go on.", 41)]
    storage.messages("a3", *third)
    yield
    third += [say("completion_result", report(summary="All of it."), 45), call("", 46, tool="finishTask")]
    storage.messages("a3", *third)
    yield

    main.append(call(packet(CART), 49))
    storage.messages(_MAIN, *main)
    storage.conversation("a5")
    cart = [say("text", packet(CART), 50), say("completion_result", report(), 51), say("user_feedback", "No.", 52)]
    storage.messages("a5", *cart, request(53, cancelReason="user_cancelled"), ask("resume_task", "", 54))
    yield
    yield from _done(storage, "a6", LOOK, 60, THOUGHT, above=main)
    main.append(call(packet(PAY), 69))
    storage.messages(_MAIN, *main)
    storage.conversation("a7")
    yield
    storage.messages("a7", say("text", packet(PAY), 70), ask("tool", "{}", 71, isAnswered=True))
    yield

    second = [say("text", "Dust the shelf.", 80)]
    storage.conversation(_SECOND[0])
    storage.messages(_SECOND[0], *second)
    yield
    yield from _done(storage, _SECOND[1], packet(OTHER), 90, report(), parent=_SECOND[0], above=second)


def _done(
    storage: Storage,
    task: str,
    prompt: str,
    after: int,
    said: str,
    *,
    parent: str = _MAIN,
    above: list[dict[str, object]],
) -> Iterator[None]:
    above.append(call(prompt, after - 1))
    storage.messages(parent, *above)
    yield
    storage.messages(task, say("text", prompt, after))
    yield
    storage.conversation(task)
    yield
    storage.messages(task, say("text", prompt, after), say("completion_result", said, after + 1))
    yield
    above.append(say("subtask_result", said, after + 2))
    storage.messages(parent, *above)
    yield
