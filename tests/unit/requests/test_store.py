"""What is offered is seen as it was offered for as long as somebody holds it; nothing else in the box is believed."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.delegation.decision import Given, Option, Query, RequestStage
from agentwatch.requests import store as store_module
from agentwatch.requests.store import RequestError, RequestStore, parse, to_bytes
from agentwatch.state import workspace_id
from tests.unit.decisions.made import QUICK
from tests.unit.requests.asked import Place, question, request

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def file_of(place: Place) -> Path:
    (file,) = place.store.directory.glob("*.json")
    return file


def test_what_is_offered_is_read_as_it_was_offered_until_it_ends(place):
    asked = question(place.workspace, until=5.5, rules=("Bash(ls)",), call_id="toolu_1", ends_others=2, ends_turn=True)
    with place.store.offer(asked) as offer:
        assert place.store.read() == [asked]
        assert place.store.find(asked.request_id) == asked
        assert offer.is_whole()
        assert file_of(place).stat().st_mode & 0o777 == 0o600
        assert place.store.directory.stat().st_mode & 0o777 == 0o700
        offer.end(RequestStage.DELIVERED, by="ada")
    (ended,) = place.store.read()
    assert ended.ended_at is not None
    assert ended == replace(asked, stage=RequestStage.DELIVERED, by="ada", ended_at=ended.ended_at)
    assert place.store.problems == []


def test_a_file_that_shows_another_input_than_its_digest_is_no_request(place):
    with place.store.offer(request(place.workspace)):
        document = json.loads(file_of(place).read_bytes())
        document["input"] = json.dumps(json.loads(document["input"]) | {"command": "rm -rf ."}, separators=(",", ":"))
        spelled = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        file_of(place).write_text(f"{spelled}\n", "utf-8")
        assert place.store.read() == []
        assert "is no request" in place.store.problems[0]


def test_the_first_end_holds(place):
    asked = request(place.workspace)
    with place.store.offer(asked) as one, place.store.offer(asked) as other:
        one.end(RequestStage.DELIVERED, by="ada")
        other.end(RequestStage.ELSEWHERE)
    assert [read.stage for read in place.store.read()] == [RequestStage.DELIVERED]


def test_what_two_hold_is_open_until_both_have_let_go(place):
    asked = request(place.workspace)
    with place.store.offer(asked) as one:
        with place.store.offer(asked) as other:
            assert one.is_whole()
            assert other.is_whole()
        assert place.store.read() == [asked]
        assert one.is_whole()
    assert [read.stage for read in place.store.read()] == [RequestStage.GONE]


@given(TEXTS, TEXTS, TEXTS, st.lists(st.tuples(TEXTS, TEXTS, st.booleans()), max_size=3), st.none() | st.floats(0, 2e9))
def test_any_text_is_written_and_read_again(command, said, nonce, asked, until):
    workspace = Path("/shop")
    queries = tuple(Query(text, label, (Option(label, text),), several) for text, label, several in asked)
    rest = {"queries": queries, "beside": (Given(said, command),), "until": until, "rules": (said,)}
    made = request(workspace, command, said=said, nonce=nonce or "n", **rest)
    assert parse(to_bytes(made, workspace_id(workspace)), workspace_id(workspace)) == made


WRONG: dict[str, dict[str, Any]] = {
    "another id": {"request_id": "0" * 32},
    "another input": {"input": '{"command":"rm -rf /"}'},
    "input in another spelling": {"input": '{"command": "touch x"}'},
    "nested input": {"input": "[" * 100_000},
    "a later version": {"version": 2},
    "time true": {"asked_at": True},
    "until for ever": {"until": 1e300},
    "options that are none": {
        "queries": [{"question": "q", "header": "", "options": [1], "several": False, "key": ""}]
    },
    "more": {"more": 1},
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_nobody_can_have_offered_is_told_and_not_believed(place, name):
    with place.store.offer(request(place.workspace, until=5.0)):
        file = file_of(place)
        file.write_text(json.dumps(json.loads(file.read_text()) | WRONG[name]))
        assert place.store.read() == []
        (problem,) = place.store.problems
        assert file.name in problem
        assert "remove it" in problem


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("cut off", lambda file: os.truncate(file, 20)),
        ("empty", lambda file: os.truncate(file, 0)),
        ("huge", lambda file: os.truncate(file, 10**10)),
        ("a copy", lambda file: file.with_name("0" * 32 + ".json").write_bytes(file.read_bytes()) and file.unlink()),
        ("a stray", lambda file: file.rename(file.with_name("notes.txt"))),
        ("a link", lambda file: file.rename(file.parent.parent / "x") and file.symlink_to(file.parent.parent / "x")),
        ("a pipe", lambda file: file.unlink() or os.mkfifo(file)),
        ("a directory", lambda file: file.unlink() or file.mkdir()),
    ],
)
def test_whatever_lies_there_is_told_and_not_waited_for(place, name, change):
    with place.store.offer(request(place.workspace)) as offer:
        change(file_of(place) if name != "" else Path())
        assert place.store.read() == []
        assert len(place.store.problems) == 1
        assert not offer.is_whole()


@pytest.mark.parametrize("inside", [".", "deep/below"])
def test_nothing_is_offered_or_believed_inside_of_the_workspace(tmp_path, inside):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "link").symlink_to(workspace)
    for state in (workspace / inside, tmp_path / "link" / inside):
        box = RequestStore(workspace, state=state, disk=QUICK)
        with pytest.raises(RequestError, match="lies in the workspace"):
            box.offer(request(workspace))
        assert box.read() == []
        assert "lies in the workspace" in box.problems[0]
    assert list(workspace.iterdir()) == []


def test_a_box_that_is_open_to_others_is_not_used(place):
    with place.store.offer(request(place.workspace)):
        place.store.directory.chmod(0o755)
        assert place.store.read() == []
        assert "chmod 700" in place.store.problems[0]
        with pytest.raises(RequestError, match="chmod 700"):
            place.store.offer(request(place.workspace))


def test_what_is_too_large_or_no_text_is_not_offered(place):
    with pytest.raises(RequestError, match="bytes"):
        place.store.offer(request(place.workspace, "x" * 600_000))
    with pytest.raises(RequestError, match="cannot be written"):
        place.store.offer(request(place.workspace, said="\ud800"))
    with pytest.raises(RequestError, match="none that could be answered"):
        to_bytes(request(place.workspace), "another")


def test_so_many_that_ended_are_kept_and_no_more(place, monkeypatch):
    monkeypatch.setattr(store_module, "MOST_ENDED", 2)
    with place.store.offer(asked := request(place.workspace)):
        for number in range(9):
            with place.store.offer(request(place.workspace, asked_at=1.0 + number)):
                assert len(list(place.store.directory.glob("*.json"))) <= 5
        assert [one.asked_at for one in place.store.read()][-2:] == [8.0, 9.0]
        assert asked in place.store.read()
