"""Tasks whose history items name no parent, as the older Roo Code leaves them: the words tell who handed on."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentwatch.contracts.shapes import Handoff, Return
from agentwatch.delegation.run import RunState
from tests.unit.roo.storage import PACKET, RETURN, Storage, call, request, say


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(tmp_path)


def handed_on(storage: Storage, *messages: dict[str, object]) -> None:
    """A parent that has handed a packet to a child, and the child's messages."""
    storage.item("p", mode="orchestrator")
    storage.messages("p", say("text", "Build the shop."), request(1), call(PACKET, 2))
    storage.item("c", mode="code", tokensIn=0, tokensOut=0)
    storage.messages("c", say("text", PACKET, 3), *messages)


def test_a_child_is_linked_by_the_words_that_were_handed_over(storage: Storage) -> None:
    handed_on(storage, request(4), request(5), say("completion_result", RETURN, 6), call("", 7, tool="finishTask"))
    storage.read()
    run = storage.runs["c"]
    assert (run.parent_session, run.link) == ("p", "its first message is what its parent handed over")
    assert (run.state, run.agent, run.mode, run.tokens, run.waiting) == (RunState.ENDED, "code", "code", 660, "")
    assert run.prompt is not None
    assert run.prompt.reading is not None
    assert isinstance(run.prompt.reading.document, Handoff)
    assert run.said is not None
    assert run.said.reading is not None
    assert isinstance(run.said.reading.document, Return)
    assert storage.reader.text(run.said.digest) == RETURN
    (found,) = storage.reader.found()
    assert (found.sessions, found.children, found.skipped) == (1, 1, "")


def test_a_parent_waits_for_leave_until_its_call_has_become_a_task(storage: Storage) -> None:
    storage.item("p")
    storage.messages("p", say("text", "Build the shop."), call(PACKET, 2))
    storage.read()
    assert storage.runs["p"].waiting == "an approval of a tool: newTask"
    handed_on(storage)
    storage.read()
    assert (storage.runs["p"].state, storage.runs["p"].waiting) == (RunState.WORKING, "")


def test_the_same_words_handed_over_again_are_the_last_call_s(storage: Storage) -> None:
    handed_on(storage, say("completion_result", RETURN, 4))
    storage.item("q")
    storage.messages("q", say("text", "Again."), call(PACKET, 12))
    storage.item("d")
    storage.messages("d", say("text", PACKET, 13))
    storage.read()
    assert {key: run.parent_session for key, run in storage.runs.items()} == {"p": None, "c": "p", "q": None, "d": "q"}


def test_words_that_nobody_handed_over_yet_link_nothing(storage: Storage) -> None:
    storage.item("c")
    storage.messages("c", say("text", PACKET, 1))
    storage.item("p")
    storage.messages("p", say("text", PACKET, 5), call(PACKET, 9), call(PACKET, 9, partial=True))
    storage.read()
    assert [run.parent_session for run in storage.runs.values()] == [None, None]


def test_an_escaped_file_name_in_the_call_is_the_child_s_all_the_same(storage: Storage) -> None:
    storage.item("p")
    storage.messages("p", say("text", "Build."), call(r"Read \\@/README.md", 1))
    storage.item("c")
    storage.messages("c", say("text", r"Read \@/README.md", 2))
    storage.read()
    assert storage.runs["c"].parent_session == "p"


def test_a_history_item_that_names_the_parent_changes_no_key(storage: Storage) -> None:
    handed_on(storage, say("completion_result", RETURN, 4))
    storage.read()
    storage.item("c", parentTaskId="p", status="completed", mode="code")
    storage.read()
    assert storage.runs.keys() == {"p", "c"}
    assert (storage.runs["c"].parent_session, storage.runs["c"].link) == ("p", "its history item names the parent")
