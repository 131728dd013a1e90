"""The story as Codex keeps it: a rollout for each session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from agentwatch.sources.codex.codex_reader import CodexReader
from tests.unit.codex.home import Home, Session
from tests.unit.sessions.store import (
    CART,
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
    spoil_lines,
    torn,
)


def codex(root: Path) -> Store:
    """All of the story."""
    home = Home(root)
    main, second = home.root(1), home.root(20)
    dust = _delegated(home, second, 21, packet(OTHER)).complete(report())

    first = _delegated(home, main, 2, packet(SEARCH)).complete(None, error="HTTP 400")
    again = _delegated(home, main, 3, packet(SEARCH)).complete(report())
    index = _delegated(home, main, 4, packet(INDEX))
    words = _delegated(home, index, 5, packet(WORDS)).complete(report())
    index.complete(report("PARTIAL")).begin().asked("Go on.").complete(report(summary="All of it."))
    cart = _delegated(home, main, 6, packet(CART)).said("Half").event("turn_aborted", reason="interrupted")
    look = _delegated(home, main, 7, LOOK).complete(THOUGHT)
    pay = _delegated(home, main, 8, packet(PAY)).said("Looking.")
    sessions = [main, first, again, index, words, cart, look, pay, second, dust]

    def forget() -> None:
        for session in (second, dust):
            home.place(session).unlink()

    return Store(
        home.workspace,
        home.path,
        lambda: CodexReader(home.workspace, home.path),
        _written(home, sessions),
        lambda random: spoil_lines(home.path / "sessions", "rollout-2027-01-15T08-00-00-{}.jsonl", random),
        forget,
    )


def _delegated(home: Home, by: Session, number: int, prompt: str) -> Session:
    child = home.session(number).child_meta(home.workspace, by.id).begin().asked(prompt)
    by.call("spawn_agent", f"call_{number}", message=prompt).spawned(f"call_{number}", child.id)
    by.output(f"call_{number}", json.dumps({"agent_id": child.id}))
    return child


def _written(home: Home, sessions: list[Session]) -> Iterator[None]:
    lines = [
        (json.loads(line)["timestamp"], home.place(session), line) for session in sessions for line in session.lines
    ]
    for _, path, line in sorted(lines, key=lambda one: one[0]):
        yield from torn(path, line)
