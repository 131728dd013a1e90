"""The story as Qwen Code keeps it: a chat for the session and for each agent, and a description beside an agent's."""

from __future__ import annotations

from pathlib import Path

from tests.unit.qwen import building
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


def qwen(root: Path) -> Store:
    """All of the story."""
    built = building.Store(root)
    built.workspace.mkdir()
    _session(built)
    _second(built)

    second = built.project / "chats" / f"{_SECOND}.jsonl", built.project / "subagents" / _SECOND
    return story(built, built.project, "agent-{}.jsonl", *second)


def _session(built: building.Store) -> None:
    main = built.session()
    main.asked("Build the shop.")

    first = built.handed(main, "call_1", packet(SEARCH))
    first.described("call_1", "failed")
    main.got("call_1", "Subagent execution failed.", shown="failed")
    again = built.handed(main, "call_2", packet(SEARCH))
    again.said(report())
    again.described("call_2", "completed")
    main.returned("call_2", report())

    index = built.handed(main, "call_3", packet(INDEX))
    index.said("Words first.")
    words = built.handed(index, "call_4", packet(WORDS), parent="general-purpose-call_3")
    words.called("read_file", "read", path="a.py")
    words.got("read", "def a(): ...")
    words.said(report())
    words.described("call_4", "completed", parent="general-purpose-call_3")
    index.returned("call_4", report())
    index.said(report("PARTIAL"))
    index.described("call_3", "completed")
    main.returned("call_3", report("PARTIAL"))
    main.called("tool_call", "send", name="send_message", arguments={"agent_id": "general-purpose-call_3"})
    index.asked("Go on.")
    index.described("call_3", "running", resumeCount=1)
    main.got("send", "sent")
    index.said(report(summary="All of it."))
    index.described("call_3", "completed", resumeCount=1)
    main.notified("general-purpose-call_3", "call_3", report(summary="All of it.").rstrip())

    cart = built.handed(main, "call_5", packet(CART))
    cart.called("run_shell_command", "make", command="make")
    cart.described("call_5", "cancelled")
    main.got("call_5", "[Operation Cancelled] Its output was discarded.", "cancelled")
    look = built.handed(main, "call_6", LOOK)
    look.said(THOUGHT)
    look.described("call_6", "completed")
    main.returned("call_6", THOUGHT)
    pay = built.handed(main, "call_7", packet(PAY))
    pay.called("run_shell_command", "pay", command="make pay")


def _second(built: building.Store) -> None:
    second = built.session(_SECOND)
    second.asked("Dust the shelf.")
    child = built.handed(second, "call_8", packet(OTHER), session=_SECOND)
    child.said(report())
    child.described("call_8", "completed")
