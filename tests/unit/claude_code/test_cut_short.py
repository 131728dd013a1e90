"""An agent that the program stopped at its limit of turns has not come to its end, whatever it had said by then."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentwatch.delegation.run import RunState
from tests.unit.claude_code.building import SESSION, Log, Store, meta, notification, packet, report

LIMIT = "this agent stopped at its 3-turn limit before finishing"
NOTE = f"NOTE: {LIMIT}. What follows is partial."


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def stopped(store: Store) -> tuple[Log, Log]:
    """A session whose agent says a whole return and goes on with a tool."""
    main, child = store.session(), store.agent("a1", meta("toolu_1"))
    main.asked("Go.")
    main.delegated("toolu_1", packet("t.a"))
    child.asked(packet("t.a"))
    child.answered(
        [
            {"type": "text", "text": report("SUCCESS")},
            {"type": "tool_use", "id": "toolu_9", "name": "Bash", "input": {"command": "true"}},
        ],
        "tool_use",
    )
    child.got("toolu_9", "ok")
    return main, child


def framed(note: str, words: str) -> str:
    """What the parent reads: the program's note stands above the frame, what the agent said is indented below it."""
    below = "\n".join(f"  {line}" for line in words.split("\n"))
    return f"  {note}\n  \n[Subagent hand-back] The report follows:\n{below}\nagentId: a1 (use SendMessage)"


def test_it_has_failed_by_the_note_in_the_structured_result(store: Store) -> None:
    main, _ = stopped(store)
    content = [{"type": "text", "text": text} for text in ("<tools-used>Bash</tools-used>\n", NOTE, report("SUCCESS"))]
    main.got("toolu_1", "…", status="completed", agentId="a1", harnessNoteCount=2, content=content)
    run = store.runs()["a1"]
    assert (run.state, run.reason, run.said) == (RunState.FAILED, LIMIT, None)


def test_it_has_failed_by_the_note_above_the_frame(store: Store) -> None:
    main, _ = stopped(store)
    main.got("toolu_1", framed(NOTE, report("SUCCESS")))
    run = store.runs()["a1"]
    assert (run.state, run.reason, run.said) == (RunState.FAILED, LIMIT, None)


def test_it_has_failed_by_the_summary_of_its_notification(store: Store) -> None:
    main, _ = stopped(store)
    main.launched("toolu_1", "a1")
    summary = 'Agent "the first" stopped at its 3-turn limit (partial result)'
    main.asked(notification("a1", "completed", summary, f"{NOTE}\n\n{report('SUCCESS')}"))
    run = store.runs()["a1"]
    assert (run.state, run.reason, run.said) == (RunState.FAILED, summary, None)


def test_the_same_words_out_of_the_agents_own_mouth_stop_nothing(store: Store) -> None:
    main, _ = stopped(store)
    main.got("toolu_1", framed("<tools-used>Bash</tools-used>", f"{NOTE}\n{report('SUCCESS')}"))
    assert store.runs()["a1"].state is RunState.ENDED


def test_it_works_again_once_it_was_sent_on(store: Store) -> None:
    main, child = stopped(store)
    main.got("toolu_1", framed(NOTE, report("SUCCESS")))
    main.used("SendMessage", "toolu_2", to="a1", message="Go on.")
    child.asked("The coordinator sent a message:\nGo on.", isMeta=True, origin={"kind": "coordinator"})
    assert store.runs()["a1"].state is RunState.WORKING
    child.said(report("SUCCESS", "Whole."))
    run = store.runs()["a1"]
    assert (run.state, run.reason, run.parent_session) == (RunState.ENDED, "", SESSION)
