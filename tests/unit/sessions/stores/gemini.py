"""The story as Gemini CLI keeps it: a chat for the session, and beside it a directory with those of its agents.

Its agents ask for none themselves by now, and are not sent on; a chat below that of an agent would be one of its own.
"""

from __future__ import annotations

from pathlib import Path

from tests.unit.gemini import building
from tests.unit.gemini.building import handing
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

_SECOND = "second-session"


def gemini(root: Path) -> Store:
    """All of the story."""
    built = building.Store(root)
    built.workspace.mkdir()
    built.name_workspace()
    _session(built)
    second = built.session(_SECOND)
    second.answered("One task.")
    built.agent("dusting", packet(OTHER), _SECOND).returned(report())

    chats = built.project / "chats"
    return story(built, chats, "session-{}.jsonl", second.path, chats / _SECOND)


def _session(built: building.Store) -> None:
    main = built.session()

    first = built.agent("first", packet(SEARCH))
    first.patched(messages=[])
    main.answered("I hand it out.", handing("call_1", packet(SEARCH), "first", state="error"))
    built.agent("again", packet(SEARCH)).returned(report())
    main.answered("Once more.", handing("call_2", packet(SEARCH), "again"))

    index = built.agent("index", packet(INDEX))
    words = built.agent("words", packet(WORDS), "index")
    words.called("read_file", "read", "def a(): ...", file_path="a.py")
    words.returned(report())
    index.returned(report(summary="All of it."))
    look = built.agent("look", LOOK)
    look.returned(THOUGHT)
    main.answered("Both.", handing("call_6", LOOK, "look"), handing("call_3", packet(INDEX), "index"))

    cart = built.agent("cart", packet(CART))
    cart.called("run_shell_command", "make", "Operation cancelled", "cancelled", command="make")
    main.answered("And the cart.", handing("call_5", packet(CART), None, "cancelled", state="running"))
    main.asked("Go on.")
    main.answered("The last one.")
    pay = built.agent("pay", packet(PAY))
    pay.answered("I run it.")
