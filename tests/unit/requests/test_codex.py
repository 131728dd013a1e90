"""Codex's requests are held on a connection of their own, and each gets the decision about its very input."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from agentwatch.decisions.record import Answer, Params
from agentwatch.delegation.decision import Action, Request, RequestKind, RequestStage, Stage
from agentwatch.requests.codex import CodexClient
from tests.unit.requests.asked import Place
from tests.unit.requests.codex_server import (
    COMMAND,
    PATCH,
    QUESTION,
    SERVER,
    THREAD,
    TURN,
    AppServer,
    calling,
    change,
    command,
    patch,
    question,
    tool_call,
)

PATIENCE = 20.0


def until(holds: Callable[[], Any]) -> Any:
    """Wait until `holds` returns a true value, and return it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(0.01)
    raise AssertionError("it never came")


@pytest.fixture
def home(tmp_path_factory):
    # The path of a socket has at most 108 bytes, so this one is short.
    return tmp_path_factory.mktemp("c")


@pytest.fixture
def server(place, home):
    with AppServer(home, place.workspace) as server:
        yield server


@contextmanager
def running(place: Place, home: Path) -> Iterator[CodexClient]:
    client = CodexClient(place.workspace, home, place.holder("codex"))
    client.start(lambda _: None)
    try:
        yield client
    finally:
        client.stop()


@pytest.fixture
def client(place, home, server):
    with running(place, home) as client:
        until(lambda: server.said.count("thread/read") == len(server.threads))
        yield client


def in_stage(place: Place, stage: RequestStage) -> list[Request]:
    return [one for one in place.store.read() if one.stage is stage]


def offered(place: Place) -> Request:
    found: Request = until(lambda: in_stage(place, RequestStage.OFFERED))[0]
    return found


def delivered(place: Place, asked: Request, *answer: Any):
    """Answer a request, and check that the answer reaches the server."""
    made = place.answer(asked, *answer)
    assert ended(place, asked) is RequestStage.DELIVERED
    stages = [one.stage for one in place.desk().receipts([made.record])[asked.request_id]]
    assert stages == [Stage.RECORDED, Stage.DELIVERED]


def ended(place: Place, request: Request) -> RequestStage:
    until(lambda: request not in place.store.read())
    (found,) = [one for one in place.store.read() if one.request_id == request.request_id]
    return found.stage


def test_an_allowed_command_is_accepted_once(place, server, client):
    rpc_id = server.ask(COMMAND, command())
    asked = offered(place)
    assert (asked.source, asked.session_id, asked.call_id) == ("codex", THREAD, "call_1")
    assert asked.nonce == f"{THREAD}/{TURN}/call_1"
    assert (asked.tool, asked.shown) == ("exec_command", "/bin/bash -lc 'touch ../x'")
    assert (asked.said, asked.words) == ("Make a file outside?", False)
    delivered(place, asked)
    assert server.answers == [(rpc_id, {"decision": "accept"})]
    until(lambda: "thread/unsubscribe" in server.said)
    assert client.notice is None


def test_a_session_begun_below_the_workspace_is_offered(place, server, client):
    below = place.workspace / "shop"
    below.mkdir()
    for name, directory in (("beside", f"{place.workspace}-2"), ("above", place.root), ("below", below)):
        server.thread(name, Path(directory))
        server.ask(COMMAND, command(), name)
    assert (offered(place).session_id, list(map(str, offered(place).beside))) == ("below", [f'cwd: "{below}"'])
    assert len(place.store.read()) == 1


def test_a_patch_is_shown_whole(place, server, client):
    # In a thread that the client follows, the server announces the item when it begins.
    server.ask(COMMAND, command(item="call_0"))
    until(lambda: "thread/resume" in server.said)
    server.ask(PATCH, patch(), THREAD, change())
    asked = until(lambda: [one for one in in_stage(place, RequestStage.OFFERED) if one.tool == "apply_patch"])[0]
    assert asked.shown.splitlines() == [
        *("update /dev/app/a.txt", "@@ -1 +1 @@", "-one", "+uno"),
        *("add /dev/app/new.txt", "+hello", "+world"),
    ]
    assert "uno" in asked.input
    delivered(place, asked)
    assert [result for _, result in server.answers] == [{"decision": "accept"}]


def test_a_patch_that_codex_has_changed_since_is_not_answered(place, server, client):
    server.ask(PATCH, patch(), THREAD, change())
    asked = offered(place)
    params = {"threadId": THREAD, "turnId": TURN, "itemId": "call_1", "changes": []}
    server.tell({"method": "item/fileChange/patchUpdated", "params": params})
    assert ended(place, asked) is not RequestStage.DELIVERED
    assert server.answers == []


def test_no_line_of_a_patch_passes_for_the_path_of_another_file(place, server, client):
    kind = {"type": "update", "move_path": "b\n+x"}
    changes = [{"path": "a\ndelete c", "kind": kind, "diff": "@@\n-one\n\nadd d\n+two"}]
    server.ask(PATCH, patch(), THREAD, change(changes=changes))
    assert offered(place).shown.splitlines() == [
        'update "a\\ndelete c", as "b\\n+x"',
        *("@@", "-one", "", " add d", "+two"),
    ]


def test_questions_are_answered_by_their_own_ids(place, server, client):
    server.ask(QUESTION, question("store", "lint"))
    asked = offered(place)
    assert (asked.kind, asked.actions) == (RequestKind.QUESTION, (Action.ANSWER,))
    given = Params(answers=(Answer("Which lint?", "own “words”"), Answer("Which store?", "Redis")))
    delivered(place, asked, Action.ANSWER, given)
    expected = {"store": {"answers": ["Redis"]}, "lint": {"answers": ["own “words”"]}}
    assert server.answers == [(0, {"answers": expected})]


@pytest.mark.parametrize(
    ("method", "params", "items"),
    [
        *(
            (QUESTION, asked, ())
            for asked in (
                question("store", "lint", question="Which?"),
                question("store", "store"),
                question(isSecret=True),
                question(options=[{"description": "no label"}]),
                question() | {"autoResolutionMs": 5000},
            )
        ),
        *(
            (COMMAND, command(**changes), ())
            for changes in (
                {"kind": "stdin"},
                {"environmentId": "far"},
                {"approvalId": "a1"},
                {"networkApprovalContext": {"host": "example.org"}},
                {"additionalPermissions": {"network": True}},
                {"somethingNew": 1},
                {"availableDecisions": ["cancel"]},
                {"availableDecisions": None},
                {"command": None},
                {"itemId": None},
            )
        ),
        *(
            (PATCH, patch(), items)
            for items in ((), (change("other"),), (change(changes=[]),), (change(changes=[{"path": "x"}]),))
        ),
    ],
)
def test_a_request_with_unknown_parts_is_answered_in_codex(place, server, client, *, method, params, items):
    server.ask(method, params, THREAD, *items)
    asked = offered(place)
    why_not = "agentwatch does not know all of what Codex asks here: answer it in Codex"
    assert (asked.actions, asked.is_answerable, asked.why_not) == ((), False, why_not)


@pytest.mark.parametrize(
    ("action", "result"),
    [(Action.ALLOW, {"action": "accept", "content": {}}), (Action.DENY, {"action": "decline", "content": None})],
)
def test_a_tool_of_a_server_is_allowed_for_this_call_alone(place, server, client, action, result):
    server.ask(SERVER, tool_call(what="color"), THREAD, calling("call_9", what="color"), calling("call_8", what="x"))
    asked = offered(place)
    assert (asked.kind, asked.tool, asked.call_id) == (RequestKind.PERMISSION, "mcp__rig__ask_user", "call_9")
    assert json.loads(asked.shown) == {"what": "color"}
    delivered(place, asked, action)
    assert server.answers == [(0, result)]


def test_an_answer_given_in_codex_ends_the_request_elsewhere(place, server, client):
    rpc_id = server.ask(COMMAND, command())
    asked = offered(place)
    server.resolve(rpc_id)
    assert ended(place, asked) is RequestStage.ELSEWHERE
    assert (server.answers, server.late) == ([], [])


def test_a_version_that_is_not_known_is_offered_nothing(place, home):
    with AppServer(home, place.workspace, version="0.170.0") as server:
        server.ask(COMMAND, command())
        with running(place, home) as client:
            until(lambda: client.notice)
            assert client.notice is not None
            assert client.notice.startswith("This version of Codex (0.170.0) is unknown to this agentwatch")
        assert "thread/resume" not in server.said
    assert place.store.read() == []


def test_an_answer_that_may_have_been_lost_is_not_given_again(place, server, client):
    server.takes = lambda _: server.disconnect() is not None
    server.ask(COMMAND, command())
    asked = offered(place)
    place.answer(asked)
    # It is unknown whether the server took the answer, or whether another answer came first.
    assert ended(place, asked) is RequestStage.UNKNOWN
    server.takes = lambda _: True
    until(lambda: server.said.count("thread/resume") == 2)
    time.sleep(0.3)
    assert (server.answers, server.late) == ([], [])
    assert place.store.find(asked.request_id) == replace(asked, stage=RequestStage.UNKNOWN, ended_at=ANY)
