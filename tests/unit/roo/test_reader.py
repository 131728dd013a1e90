"""The tasks of Roo Code: what their history items and messages come to, and files that are replaced as a whole."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.contracts.shapes import Handoff, Return, TodoStatus
from agentwatch.delegation.run import RunState
from agentwatch.sources.roo.roo_reader import RooReader
from tests.unit.roo.storage import BEGAN_MS, PACKET, RETURN, Storage, ask, say

SETTINGS = "Library/Application Support" if sys.platform == "darwin" else ".config"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(tmp_path)


def test_a_delegated_task_shows_its_parent_its_packet_and_its_result(storage: Storage) -> None:
    storage.item("p", status="delegated", childIds=["c"], awaitingChildId="c", mode="orchestrator")
    storage.messages("p", say("text", "Build the shop."))
    storage.item("c", parentTaskId="p", rootTaskId="p", status="completed", mode="code")
    storage.messages("c", say("text", PACKET), say("text", "Looking.", 1), say("completion_result", RETURN, 9))
    storage.read()
    run = storage.runs["c"]
    assert (run.source, run.session_id, run.parent_session) == ("roo", "c", "p")
    assert (run.state, run.agent, run.mode, run.tokens) == (RunState.ENDED, "code", "code", 990)
    assert (run.started_at, run.ended_at) == (BEGAN_MS / 1000, BEGAN_MS / 1000 + 9)
    assert run.place == str(storage.directory("c"))
    assert run.prompt is not None
    assert run.prompt.reading is not None
    assert isinstance(run.prompt.reading.document, Handoff)
    assert storage.reader.text(run.prompt.digest) == PACKET
    assert run.said is not None
    assert run.said.reading is not None
    assert isinstance(run.said.reading.document, Return)
    assert storage.reader.text(run.said.digest) == RETURN
    assert storage.runs["p"].state is RunState.WORKING
    assert storage.runs["p"].waiting == ""
    assert list(storage.read()) == []


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("active", RunState.WORKING),
        ("interrupted", RunState.CANCELED),
        ("aborted", RunState.CANCELED),
        ("a new word", RunState.WORKING),
    ],
)
def test_the_status_is_the_state_and_a_result_that_was_not_accepted_is_none(
    storage: Storage, status: str, state: RunState
) -> None:
    storage.item("c", status=status)
    storage.messages("c", say("text", PACKET), say("completion_result", RETURN, 3), say("text", "More.", 4))
    storage.read()
    assert (storage.runs["c"].state, storage.runs["c"].said) == (state, None)


def test_a_task_without_a_status_has_ended_when_its_last_word_is_a_result(storage: Storage) -> None:
    storage.item("r")
    storage.messages("r", say("text", "Build."), say("completion_result", "Built.", 1), ask("completion_result", "", 2))
    storage.read()
    assert storage.runs["r"].state is RunState.ENDED
    again = [say("user_feedback", "Bigger.", 3), say("completion_result", "Bigger.", 4), ask("resume_completed_task")]
    storage.messages("r", say("text", "Build."), say("completion_result", "Built.", 1), *again)
    storage.read()
    run = storage.runs["r"]
    assert run.said is not None
    assert (run.state, run.said.opening) == (RunState.ENDED, "Bigger.")
    assert [message.opening for message in run.earlier] == ["Built."]


def test_a_result_that_is_still_being_written_is_none(storage: Storage) -> None:
    storage.item("r")
    storage.messages("r", say("text", "Build."), say("completion_result", "Bui", 1, partial=True))
    storage.read()
    assert (storage.runs["r"].state, storage.runs["r"].said) == (RunState.WORKING, None)


@pytest.mark.parametrize(
    ("message", "waiting"),
    [
        (ask("followup", '{"question": "Which shop?", "suggest": []}', 1), "an answer: Which shop?"),
        (ask("command", "make", 1), "an approval of a command: make"),
        (ask("tool", '{"tool": "newTask"}', 1), "an approval of a tool: newTask"),
        (ask("api_req_failed", "429", 1), "a retry of the model"),
        (ask("followup", "{", 1, isAnswered=True), ""),
        (ask("tool", "", 1, partial=True), ""),
        (say("text", "On it.", 1), ""),
    ],
)
def test_a_question_as_the_last_word_waits_for_a_human(
    storage: Storage, message: dict[str, object], waiting: str
) -> None:
    storage.item("r", status="active")
    storage.messages("r", say("text", "Build."), message)
    storage.read()
    assert storage.runs["r"].waiting == waiting


def test_todos_are_those_of_the_last_update(storage: Storage) -> None:
    update = json.dumps({"tool": "updateTodoList", "todos": [{"content": "Read.", "status": "completed"}]})
    later = {"tool": "updateTodoList", "todos": [{"content": "Read.", "status": "in_progress"}, {"content": "Sell."}]}
    storage.item("r")
    storage.messages("r", say("text", "Build."), ask("tool", update), say("user_edit_todos", json.dumps(later)))
    storage.read()
    todos = storage.runs["r"].todos
    assert todos is not None
    assert [(todo.text, todo.status) for todo in todos] == [
        ("Read.", TodoStatus.IN_PROGRESS),
        ("Sell.", TodoStatus.PENDING),
    ]


def test_without_its_messages_the_task_of_the_history_item_is_the_prompt(storage: Storage) -> None:
    storage.item("r", status="active")
    storage.read()
    prompt = storage.runs["r"].prompt
    assert prompt is not None
    assert storage.reader.text(prompt.digest) == "Build the shop."


def test_only_tasks_of_the_workspace_are_shown_and_those_that_tell_none_counted(
    storage: Storage, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(storage.workspace)
    storage.item("here", workspace=str(link))
    storage.item("elsewhere", workspace=str(tmp_path))
    storage.messages("unknown", say("text", "Build."))
    storage.directory("empty").mkdir()
    storage.read()
    assert storage.runs.keys() == {"here"}
    (found,) = storage.reader.found()
    assert (found.place, found.sessions, found.children) == (str(storage.path), 1, 0)
    assert found.skipped == "1 task of an unknown workspace: not read."


def test_half_a_file_changes_nothing_and_a_deleted_task_is_gone(storage: Storage) -> None:
    storage.item("r", status="active")
    storage.messages("r", say("text", "Build."))
    storage.read()
    (storage.directory("r") / "history_item.json").write_text('{"id": "r", "sta')
    (storage.directory("r") / "ui_messages.json").write_text('[{"ts": 1')
    assert list(storage.read()) == []
    (storage.directory("r") / "history_item.json").unlink()
    assert list(storage.read()) == ["r"]
    assert storage.runs == {}


def test_links_and_pipes_are_not_opened(storage: Storage, tmp_path: Path) -> None:
    storage.item("r", status="active")
    os.mkfifo(storage.directory("r") / "ui_messages.json")
    storage.directory("linked").symlink_to(tmp_path)
    storage.read()
    assert storage.runs.keys() == {"r"}


@pytest.mark.parametrize(
    "place",
    [
        "{settings}/Code/User/globalStorage/rooveterinaryinc.roo-cline",
        "{settings}/Code - Insiders/User/globalStorage/zoocodeorganization.zoo-code",
        "{settings}/VSCodium/User/globalStorage/kilocode.kilo-code",
        "{settings}/An editor of tomorrow/User/globalStorage/made.of-roo",
        ".vscode-server/data/User/globalStorage/rooveterinaryinc.roo-cline",
        ".cursor-server/data/User/globalStorage/kilocode.kilo-code",
        ".local/share/code-server/User/globalStorage/kilocode.kilo-code",
        ".vscode-mock/global-storage",
    ],
)
def test_the_storages_of_all_editors_are_found(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    reader = editors(storage, tmp_path, monkeypatch)
    path = tmp_path / place.format(settings=SETTINGS)
    path.parent.mkdir(parents=True)
    storage.item("one")
    storage.path.rename(path)
    assert [change.key for change in reader.read(10)] == ["one"]
    assert [found.place for found in reader.found()] == [str(path)]


def test_a_place_of_ones_own_is_taken_from_the_settings(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = editors(storage, tmp_path, monkeypatch)
    user = tmp_path / SETTINGS / "Code" / "User"
    user.mkdir(parents=True)
    mine = f'"kilo-code.customStoragePath" : {json.dumps(str(storage.path))}'
    (tmp_path / "dotfile").write_text(f'{{\n  // mine\n  {mine},\n  "zoo-code.customStoragePath": "no path", }}')
    (user / "settings.json").symlink_to(tmp_path / "dotfile")
    storage.item("one")
    assert [change.key for change in reader.read(10)] == ["one"]


def test_the_tasks_of_cline_are_left_out_which_hand_nothing_on(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = editors(storage, tmp_path, monkeypatch)
    path = tmp_path / SETTINGS / "Code" / "User" / "globalStorage" / "saoudrizwan.claude-dev"
    path.parent.mkdir(parents=True)
    storage.item("one")
    storage.path.rename(path)
    assert list(reader.read(10)) == []


def editors(storage: Storage, home: Path, monkeypatch: pytest.MonkeyPatch) -> RooReader:
    """A reader of all that is in a home."""
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return RooReader(storage.workspace)


def test_a_storage_that_is_not_there_is_no_trouble(tmp_path: Path) -> None:
    reader = RooReader(tmp_path, tmp_path / "nowhere")
    assert list(reader.read(1)) == []
    assert (reader.trouble, list(reader.found())) == (None, [])


ANY = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.floats(), st.text(max_size=5), st.sampled_from(["completed", "ask", "tool"])
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["ts", "ask", "say", "text", "id", "status", "task"]), inner, max_size=5)
    ),
    max_leaves=15,
)


@given(item=st.dictionaries(st.sampled_from(["ts", "parentTaskId", "status", "tokensIn", "mode"]), ANY), messages=ANY)
def test_documents_of_any_shape_are_read_without_a_fault(
    item: dict[str, object], messages: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    storage = Storage(tmp_path_factory.mktemp("roo"))
    storage.item("r", **item)
    storage.replace(storage.directory("r") / "ui_messages.json", messages)
    storage.read()
    assert storage.runs.keys() == {"r"}
