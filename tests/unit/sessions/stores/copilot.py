"""The story as Copilot CLI keeps it: one file of events for a session and all its agents."""

from __future__ import annotations

from pathlib import Path

from tests.unit.copilot import building
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
)
from tests.unit.sessions.writing import story

_SECOND = "second"


def copilot(root: Path) -> Store:
    """All of the story."""
    built = building.Store(root)
    built.workspace.mkdir()
    _session(built)
    second = built.session(_SECOND)
    child = built.handed(second, "call_8", packet(OTHER), session=_SECOND)
    built.done(second, "call_8", child, report())

    state = built.home / "session-state"
    return story(built, state, "events-{}.jsonl", state / _SECOND)


def _session(built: building.Store) -> None:
    main = built.session()

    first = built.handed(main, "call_1", packet(SEARCH))
    first.event("session.error", errorType="query", message="400 Bad Request")
    first.event("subagent.failed", toolCallId="call_1", error="400 Bad Request")
    main.got_none("call_1", "400 Bad Request")
    again = built.handed(main, "call_2", packet(SEARCH))
    built.done(main, "call_2", again, report())

    index = built.handed(main, "call_3", packet(INDEX), "background")
    words = built.handed(index, "call_4", packet(WORDS))
    words.called("view", "read", path="a.py")
    words.got("read", "def a(): ...")
    built.done(index, "call_4", words, report())
    index.said(report("PARTIAL"))
    index.completed("call_3")
    main.event("system.notification", content='Agent "the call_3" is idle.', kind={"type": "agent_idle"})
    main.called("write_agent", "send", agent_id="agent-of-call_3", message="Go on.")
    index.asked("Go on.")
    main.got("send", "sent")
    index.said(report(summary="All of it."))

    cart = built.handed(main, "call_5", packet(CART))
    cart.called("bash", "make", command="make")
    main.event("abort", reason="user_initiated")
    cart.completed("call_5", cancelled=True)
    main.asked("Go on.")
    look = built.handed(main, "call_6", LOOK)
    built.done(main, "call_6", look, THOUGHT)
    pay = built.handed(main, "call_7", packet(PAY))
    pay.called("bash", "pay", command="make pay")
