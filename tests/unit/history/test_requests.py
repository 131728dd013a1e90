"""What programs asked, and what came of it, is known when the box has forgotten it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentwatch.config import Settings
from agentwatch.delegation.decision import Stage
from agentwatch.delegation.events import Event, Requested
from agentwatch.delegation.request import Request, RequestStage
from agentwatch.delegation.tree import Tree
from agentwatch.history import recording
from agentwatch.history.export import lines, read, write
from agentwatch.history.keeper import Keeper
from agentwatch.history.log import RequestChange, StateChanges, line
from agentwatch.history.schema import NAME
from agentwatch.history.store import History
from agentwatch.history.story import story
from agentwatch.monitor import Monitor
from agentwatch.place import state_directory
from agentwatch.sources.files.source import FilesSource
from agentwatch.sources.playback import Playback
from tests.unit.delegation.asking import decided, permit, question, ran, request, requested, session
from tests.unit.delegation.events import tree_of

ALLOWED = replace(
    request(command="npm test"), stage=RequestStage.ACTED, ended_at=1_120.0, by="dev@laptop", allowed=True
)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def kept(state: Path) -> list[Request]:
    with closing(History.open_read_only(state.parent, state)) as history:
        assert history.notice is None
        return [one.request for one in history.events() if isinstance(one, Requested) and one.request]


def record(state: Path, *requests: Request) -> None:
    with closing(History.open(state.parent, state)) as history:
        told = [Requested(0, one.ended_at or 0.0, one.request_id, one) for one in requests]
        assert history.record(told, lambda _: None)


def test_a_request_that_has_ended_is_recorded_as_it_stood_and_cannot_be_answered(state: Path) -> None:
    record(state, replace(ALLOWED, stage=RequestStage.DELIVERED))
    record(state, ALLOWED)
    [one] = kept(state)
    assert (one.shown, one.stage, one.by, one.allowed) == ("npm test", RequestStage.ACTED, "dev@laptop", True)
    assert (one.asked_at, one.ended_at, one.input_sha256) == (1_100.0, 1_120.0, ALLOWED.input_sha256)
    assert (one.input, one.rules, one.can_answer) == ("", (), False)


def test_half_a_character_and_a_long_patch_are_recorded(state: Path) -> None:
    record(state, replace(ALLOWED, shown="\ud800" + "x" * 100_000))
    [one] = kept(state)
    assert one.shown.startswith("\ud800x")
    assert len(one.shown) < 10_000


def test_only_the_latest_are_kept(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_MOST_REQUESTS", 2)
    record(state, *(replace(request(number), stage=RequestStage.GONE, ended_at=number * 10.0) for number in range(4)))
    assert [one.ended_at for one in kept(state)] == [20.0, 30.0]


def test_what_is_no_request_is_left_out(state: Path) -> None:
    record(state, ALLOWED, replace(request(2), stage=RequestStage.GONE, ended_at=5.0))
    with closing(sqlite3.connect(state / NAME)) as connection:
        connection.execute("UPDATE requests SET packed = ? WHERE request_id = ?", (b"damaged", ALLOWED.request_id))
        connection.commit()
    assert [one.request_id for one in kept(state)] == [f"{2:032x}"]


def test_a_history_from_before_there_were_requests_is_read_without_complaint(state: Path) -> None:
    record(state, ALLOWED)
    with closing(sqlite3.connect(state / NAME)) as connection:
        connection.execute("DROP TABLE requests")
        connection.execute("PRAGMA user_version = 3")
        connection.commit()
    assert kept(state) == []


def test_each_end_is_recorded_once_as_the_tree_has_it(tmp_path: Path) -> None:
    one = replace(request(), stage=RequestStage.DELIVERED, ended_at=1_115.0)
    tree = tree_of([ran(session()), requested(one), decided(one, stage=Stage.DELIVERED)])
    recorded: list[Event] = []

    keeper = Keeper(tmp_path, lambda _: None)
    keeper.start(Tree()).result()
    keeper.keep = recorded.extend  # type: ignore[method-assign]
    keeper.keep_requests(tree.requests_of("s1"), 2_000.0)
    keeper.keep_requests(tree.requests_of("s1"), 2_001.0)
    tree.apply(ran(session(permit(input_sha256=one.input_sha256)), 9))
    keeper.keep_requests(tree.requests_of("s1"), 2_002.0)
    keeper.stop()
    stages = [each.request.stage for each in recorded if isinstance(each, Requested) and each.request]
    assert stages == [RequestStage.DELIVERED, RequestStage.ACTED]


def test_what_its_holder_wrote_down_takes_nothing_back_of_what_was_recorded() -> None:
    tree = tree_of([ran(session()), requested(ALLOWED)])
    tree.apply(requested(replace(request(command="npm test"), stage=RequestStage.DELIVERED, ended_at=1_115.0), 5))
    [one] = tree.tasks["s1"].requests
    assert (one.stage, one.by, one.allowed) == (RequestStage.ACTED, "dev@laptop", True)
    tree.apply(requested(request(command="npm test"), 6))
    assert tree.tasks["s1"].requests[0].is_open


@pytest.mark.parametrize("knows", [True, False])
def test_the_past_is_told_to_whom_requests_are_told(tmp_path: Path, *, knows: bool) -> None:
    from agentwatch.composition import inbox_of

    workspace = tmp_path / "workspace"
    workspace.mkdir()
    record(state_directory(workspace), ALLOWED)
    opens = {"open_inbox": lambda: inbox_of(workspace)} if knows else {}
    source = FilesSource(workspace)
    monitor = Monitor(workspace, Settings(), source, lambda: 2_000.0, remembers=True, **opens)  # type: ignore[arg-type]
    monitor.scan()
    assert [one.path for one in monitor.tree.requests] == ([ALLOWED.request_id] if knows else [])


def test_the_story_tells_when_it_was_asked_and_how_it_ended() -> None:
    run = session(permit(input_sha256=ALLOWED.input_sha256), updated_at=1_500.0)
    told = StateChanges(Tree()).tell(story([requested(ALLOWED), ran(run)], 2_000.0))
    words = [line(one) for one in told if isinstance(one, RequestChange)]
    assert words == [
        "1970-01-01T00:18:20Z  s1  allow? Bash  npm test: waits for you",
        "1970-01-01T00:18:40Z  s1  allow? Bash  npm test: allowed by you, dev@laptop",
    ]


def test_a_question_is_remembered_in_its_words() -> None:
    asked = replace(question(), stage=RequestStage.GONE, ended_at=1_200.0).remembered
    told = StateChanges(Tree()).tell(story([ran(session()), requested(asked)], 2_000.0))
    words = [line(one) for one in told if isinstance(one, RequestChange)]
    assert [one.split("  ")[2].split(":")[:2] for one in words] == [["answer", " Which store?"]] * 2


def test_a_recording_holds_it_and_plays_it_there_and_back(tmp_path: Path) -> None:
    asked = question(2, asked_at=1_130.0)
    file = tmp_path / "recording.jsonl"
    write(file, lines("shop", [ran(session()), requested(ALLOWED), requested(asked)], lambda _: None))
    read_again = read(file)
    assert read_again.problems == ()
    assert [one.request for one in read_again.events if isinstance(one, Requested)] == [
        ALLOWED.remembered,
        asked.remembered,
    ]
    playback = Playback(story(read_again.events, 2_000.0), read_again.text)
    tree, count = Tree(), playback.position.count
    stages = []
    for before, after in ((0, count), (count, 3), (3, count)):
        for one in playback._way(before, after):
            tree.apply(one)
        stages.append([request.stage.value for request in tree.tasks["s1"].requests])
    assert stages == [["offered", "acted"], ["offered"], ["offered", "acted"]]


@pytest.mark.parametrize(
    ("change", "words"),
    [({"asked_at": "inf"}, "a time"), ({"kind": "sudo"}, "none of a program"), ({"until": -1}, "a time")],
)
def test_a_foreign_request_that_is_none_is_left_out_of_a_recording(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    head, good = lines("shop", [requested(ALLOWED)], lambda _: None)
    bad = json.loads(good)
    bad["request"] |= change
    file = tmp_path / "recording.jsonl"
    file.write_text("\n".join((head, json.dumps(bad), good)) + "\n")
    [problem] = read(file).problems
    assert words in problem


def test_the_end_is_told_also_where_nothing_else_speaks_of_its_session() -> None:
    told = list(StateChanges(Tree()).tell(story([requested(ALLOWED)], 2_000.0)))
    assert [one.request.stage.value for one in told if isinstance(one, RequestChange)] == ["offered", "acted"]


def test_what_comes_after_the_end_is_left_for_the_next_start(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path, lambda _: None)
    keeper.start(Tree()).result()
    keeper.stop()
    keeper.keep([])
