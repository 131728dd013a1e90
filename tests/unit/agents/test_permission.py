"""A PermissionRequest from its payload to what is printed: by whom it can be answered, and when nothing is."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentwatch.agents.hook import requests
from agentwatch.agents.hook.journal import JOURNAL, UNANSWERED
from agentwatch.config import load
from agentwatch.decisions.service import operator_name
from agentwatch.delegation.decision import Action, Request, RequestStage
from agentwatch.sources.claude_code import HookCall
from agentwatch.state import is_shown, state_directory
from tests.reliability.agents.holding_hooks import Scene, bound, live_apart
from tests.unit.agents.asking import Story, call, child

ALLOWED = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}


def ask(call: HookCall, workspace: Path):
    """As `agentwatch hook` does."""
    if is_shown(state_directory(workspace)):
        requests.ask(call, workspace, load())


class Asking(Scene):
    """The same, with the hook in a thread."""

    def __init__(self, root: Path, printed: Callable[[], str]):
        super().__init__(root)
        self.story = Story(root / "home" / "session.jsonl")
        self.printed = printed

    def call(self, tool: str = "Bash", given: object = None, **keys: object) -> HookCall:
        return call(tool, given, transcript_path=str(self.story.session), **keys)

    @contextmanager
    def asked(self, of: HookCall | None = None) -> Iterator[Request]:
        """While the hook holds a request; at the end it has ended by itself."""
        thread = threading.Thread(target=ask, args=(of or self.call(), self.workspace), daemon=True)
        known = {one.request_id for one in self.store.read()}
        thread.start()
        (request,) = self.opened(1, known)
        yield request
        thread.join(30)
        assert not thread.is_alive()

    def stage(self, request: Request) -> RequestStage:
        return next(one.stage for one in self.store.read() if one.request_id == request.request_id)

    def await_call(self, request: Request, call_id: str):
        """Until the hook has found the call."""
        end = time.monotonic() + 30
        while (known := self.store.find(request.request_id)) is not None and known.call_id != call_id:
            assert time.monotonic() < end, known
            time.sleep(0.02)

    def told(self) -> Any:
        """The output of the hooks since the last call, None where that is nothing."""
        out = self.printed()
        return json.loads(out) if out else None


@pytest.fixture
def scene(tmp_path, capfd, monkeypatch):
    live_apart(tmp_path, monkeypatch)
    made = Asking(tmp_path, lambda: capfd.readouterr().out)
    with made.screen:
        yield made


def test_what_is_allowed_is_printed_once_and_noted(scene):
    scene.story.called("toolu_1")
    with scene.asked() as request:
        assert (request.shown, request.call_id, request.stage) == ("make seeds", "toolu_1", RequestStage.OFFERED)
        scene.answer(request)
    assert scene.told() == ALLOWED
    assert scene.stage(request) is RequestStage.DELIVERED
    (ended,) = scene.store.read()
    assert ended.by == operator_name()


def test_a_call_that_is_written_late_delays_no_request(scene):
    with scene.asked() as request:
        assert request.call_id is None
        scene.story.called("toolu_1")
        scene.await_call(request, "toolu_1")
        scene.answer(request)
    assert (scene.told(), scene.stage(request)) == (ALLOWED, RequestStage.DELIVERED)


def test_it_ends_at_once_when_the_screen_goes(scene):
    with scene.asked() as request:
        scene.screen.close()
    assert scene.told() is None
    assert scene.stage(request) is RequestStage.GONE


def test_it_ends_when_the_program_has_its_answer(scene):
    scene.story.called("toolu_1")
    with scene.asked() as request:
        scene.story.came("toolu_1")
    assert scene.told() is None
    assert scene.stage(request) is RequestStage.ELSEWHERE
    ask(scene.call(), scene.workspace)
    assert len(scene.store.read()) == 1, "one that is answered already is not offered"


def test_the_prompt_of_a_child_is_hidden_for_a_short_time(scene):
    bound(1.5)
    with scene.asked(scene.call(**child())) as request:
        assert request.prompt_hidden
        assert request.until is not None
        assert 0 < request.until - request.asked_at <= 1.5
    assert scene.told() is None
    assert scene.stage(request) is RequestStage.GONE
    bound(30)
    with scene.asked(scene.call(**child())) as request:
        scene.answer(request)
    assert scene.told() == ALLOWED


def test_an_answer_is_for_the_request_seen_and_no_equal_one(scene):
    bound(1.5)
    with scene.asked(scene.call(**child())) as first:
        pass
    with scene.asked() as second:
        assert first.request_id != second.request_id
        assert first.input_sha256 == second.input_sha256
        with scene.asked() as third:
            scene.answer(third, Action.DENY, note="the third")
        assert scene.told()["hookSpecificOutput"]["decision"]["message"] == "the third"
        assert scene.stage(second) is RequestStage.OFFERED
        scene.answer(second)
    assert scene.told() == ALLOWED


@pytest.mark.parametrize("given", [{"command": "\ud800"}, {"command": float("inf")}, {"command": "x" * 1_200_000}])
def test_what_cannot_be_offered_is_left_to_the_program(scene, given):
    ask(scene.call("Bash", given), scene.workspace)
    assert (scene.told(), scene.store.read()) == (None, [])
    assert UNANSWERED in (scene.state / JOURNAL).read_text("utf-8")
