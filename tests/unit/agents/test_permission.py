"""A PermissionRequest from its payload to what is printed: by whom it can be answered, and when nothing is."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentwatch.agents.hook import requests
from agentwatch.agents.hook.command import JOURNAL, UNANSWERED
from agentwatch.config import load
from agentwatch.decisions.record import Params
from agentwatch.decisions.service import DecisionService, operator_name
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import Request, RequestStage
from agentwatch.requests.store import RequestStore
from agentwatch.sources.claude_code.hooks import HookCall
from agentwatch.state import is_shown, shown, state_directory
from tests.unit.agents.asking import Story, call, child
from tests.unit.decisions.made import QUICK

ALLOWED = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}


def ask(call: HookCall, workspace: Path) -> None:
    """As `agentwatch hook` does."""
    if is_shown(state_directory(workspace)):
        requests.ask(call, workspace, load())


class Scene:
    """A workspace that a screen shows, and an operator."""

    def __init__(self, root: Path, printed: Callable[[], str]) -> None:
        self.workspace = root / "shop"
        self.workspace.mkdir()
        self.story = Story(root / "home" / "session.jsonl")
        self.printed = printed
        self.screen = ExitStack()
        self.screen.enter_context(shown(self.state))

    @property
    def state(self) -> Path:
        return state_directory(self.workspace)

    @property
    def store(self) -> RequestStore:
        return RequestStore(self.workspace)

    def call(self, tool: str = "Bash", given: object = None, **keys: object) -> HookCall:
        return call(tool, given, transcript_path=str(self.story.session), **keys)

    @contextmanager
    def asked(self, of: HookCall | None = None) -> Iterator[Request]:
        """While the hook holds a request; at the end it has ended by itself."""
        thread = threading.Thread(target=ask, args=(of or self.call(), self.workspace), daemon=True)
        known = {one.request_id for one in self.store.read()}
        thread.start()
        end = time.monotonic() + 30
        while not (new := [one for one in self.store.read() if one.request_id not in known]):
            assert thread.is_alive(), "the hook has ended"
            assert time.monotonic() < end
            time.sleep(0.005)
        yield new[0]
        thread.join(30)
        assert not thread.is_alive()

    def answer(
        self, request: Request, action: Action = Action.ALLOW, params: Params | None = None, note: str = ""
    ) -> None:
        DecisionService(self.workspace, disk=QUICK).answer(
            request, action, params, task_id="a.b", attempt=1, gone=lambda: None, note=note
        )

    def stage(self, request: Request) -> RequestStage:
        return next(one.stage for one in self.store.read() if one.request_id == request.request_id)

    def told(self) -> Any:
        """What the hooks have printed since the last call, None where that is nothing."""
        out = self.printed()
        return json.loads(out) if out else None


@pytest.fixture
def scene(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    for variable in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    for variable in ("CLAUDE_PID", "CLAUDE_CODE_ENTRYPOINT"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(requests, "_CALL_SECONDS", 0.02)
    made = Scene(tmp_path, lambda: capfd.readouterr().out)
    with made.screen:
        yield made


def configure(text: str) -> None:
    directory = Path(os.environ["XDG_CONFIG_HOME"]) / "agentwatch"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.toml").write_text(text, "utf-8")


def test_what_is_allowed_is_printed_once_and_noted(scene: Scene) -> None:
    scene.story.called("toolu_1")
    with scene.asked() as request:
        assert (request.shown, request.call_id, request.stage) == ("make seeds", "toolu_1", RequestStage.OFFERED)
        scene.answer(request)
    assert scene.told() == ALLOWED
    assert scene.stage(request) is RequestStage.DELIVERED
    (ended,) = scene.store.read()
    assert ended.by == operator_name()


def test_it_ends_at_once_when_the_screen_goes(scene: Scene) -> None:
    with scene.asked() as request:
        scene.screen.close()
    assert scene.told() is None
    assert scene.stage(request) is RequestStage.GONE


def test_it_ends_when_the_program_has_its_answer(scene: Scene) -> None:
    scene.story.called("toolu_1")
    with scene.asked() as request:
        scene.story.came("toolu_1")
    assert scene.told() is None
    assert scene.stage(request) is RequestStage.ELSEWHERE
    ask(scene.call(), scene.workspace)
    assert len(scene.store.read()) == 1, "one that is answered already is not offered"


def test_the_prompt_of_a_child_is_hidden_for_a_short_time(scene: Scene) -> None:
    configure("[hook]\nprompt = 0.3\n")
    with scene.asked(scene.call(**child())) as request:
        assert request.prompt_hidden
        assert request.until is not None
        assert 0 < request.until - request.asked_at <= 0.3
    assert scene.told() is None
    assert scene.stage(request) is RequestStage.GONE
    configure("[hook]\nprompt = 30\n")
    with scene.asked(scene.call(**child())) as request:
        scene.answer(request)
    assert scene.told() == ALLOWED


def test_an_answer_is_for_the_request_seen_and_no_equal_one(scene: Scene) -> None:
    configure("[hook]\nprompt = 0.5\n")
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
def test_what_cannot_be_offered_is_left_to_the_program(scene: Scene, given: object) -> None:
    ask(scene.call("Bash", given), scene.workspace)
    assert (scene.told(), scene.store.read()) == (None, [])
    assert UNANSWERED in (scene.state / JOURNAL).read_text("utf-8")
