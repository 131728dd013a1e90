"""The story as teamwork keeps it: a directory for each role, with what it was asked, how far it is, and its handoff.

Nothing there says that a role was aborted, and a second session is a role without a parent.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

from agentwatch.sources.teamwork.teamwork_reader import TeamworkReader
from tests.unit.sessions.conformance import (
    CART,
    GARBAGE,
    INDEX,
    LOOK,
    OTHER,
    PAY,
    SEARCH,
    STORY,
    THOUGHT,
    WORDS,
    Store,
    packet,
    report,
)
from tests.unit.teamwork.test_reader import WRITTEN, briefing

_LEAD, _INDEXER, _DUSTER = (f"0b51f1f0-0000-4000-8000-00000000000{letter}" for letter in "abc")
_NAMES = ("ORIGINAL_REQUEST.md", "BRIEFING.md", "progress.md", "handoff.md")


def teamwork(root: Path) -> Store:
    """All of the story."""
    workspace = root / "shop"
    place = workspace / ".agents"
    place.mkdir(parents=True)

    def forget() -> None:
        for role in ("second", "duster"):
            shutil.rmtree(place / role)

    def spoil(random: Random) -> None:
        directory = place / f"junk_{random.randrange(1_000)}"
        directory.mkdir(exist_ok=True)
        path = directory / random.choice(_NAMES)
        if random.random() < 0.2 and not path.exists():
            os.mkfifo(path)
        elif not path.is_fifo():
            path.write_bytes(random.choice(GARBAGE))

    return Store(
        workspace,
        place,
        lambda: TeamworkReader(workspace),
        _written(place),
        spoil,
        forget,
        {task: states for task, states in STORY.items() if task != CART},
    )


def _written(place: Path) -> Iterator[None]:
    roster = f"| searcher | w | Search | failed | {_INDEXER[:-1]}d |\n"
    own = f"- Heartbeat cron: {_LEAD}/task-1\n"
    yield from _role(place, "lead", 0, "Build the shop.", briefing(rest=own, roster=roster))
    yield from _role(place, "searcher", 10, packet(SEARCH), briefing(_LEAD))
    yield from _role(place, "searcher_again", 20, packet(SEARCH), briefing(_LEAD), report())
    indexer = briefing(_LEAD, rest=f"- Heartbeat cron: {_INDEXER}/task-1\n")
    yield from _role(place, "indexer", 30, packet(INDEX), indexer, report("PARTIAL"))
    yield from _role(place, "word_counter", 32, packet(WORDS), briefing(_INDEXER), report())
    _write(place / "indexer" / "handoff.md", 45, report(summary="All of it."))
    yield
    yield from _role(place, "looker", 60, LOOK, briefing(_LEAD), THOUGHT)
    yield from _role(place, "payer", 70, packet(PAY), briefing(_LEAD))
    second = briefing(rest=f"- Heartbeat cron: {_DUSTER}/task-1\n")
    yield from _role(place, "second", 80, "Dust the shelf.", second)
    yield from _role(place, "duster", 90, packet(OTHER), briefing(_DUSTER), report())


def _role(place: Path, name: str, after: int, *texts: str) -> Iterator[None]:
    for file, text in zip(("ORIGINAL_REQUEST.md", "BRIEFING.md", "handoff.md"), texts, strict=False):
        _write(place / name / file, after, text)
        yield


def _write(path: Path, after: int, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    os.utime(new, (WRITTEN + after, WRITTEN + after))
    new.replace(path)
