"""How agentwatch shows a permission or a question of Claude Code, and what the hook prints for its answer."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.agents.hook import requests
from agentwatch.agents.hook.journal import JOURNAL, UNANSWERED
from agentwatch.agents.hook.requests import AskedCall, grantable_rules, hook_output, request_of
from agentwatch.config import load
from agentwatch.decisions.record import Answer, Params
from agentwatch.decisions.service import operator_name
from agentwatch.delegation.decision import Action, Request, RequestKind, RequestStage, canonical_input, make_request_id
from agentwatch.sources.claude_code import HookCall
from agentwatch.state import is_shown, state_directory, workspace_id
from tests.unit.agents.claude import AGENT, QUESTIONS, SESSION, Claude, Scene, bound, call, child, live_apart

NONE = Params()
SUGGESTED = {"type": "addRules", "behavior": "allow", "destination": "localSettings"}
ALL_ANSWERED = Params(
    answers=(Answer("Which store?", "Redis, clustered"), Answer("Which checks?", "Lint"), Answer("Which checks?", "my"))
)


def request(of: HookCall) -> Request:
    return request_of(of, Path("/w"), AskedCall(of, 100.0), at=100.0, until=120.0)


def decided(of: HookCall, action: Action, params: Params = NONE, note: str = "") -> Any:
    """Return the decision that the hook prints, or None if it prints nothing."""
    answer = hook_output(of, action, params, note)
    if answer is None:
        return None
    made = answer["hookSpecificOutput"]["decision"]
    assert answer == {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": made}}
    return made


def test_a_request_is_known_by_its_input_and_by_nothing_else():
    _, digest = canonical_input({"command": "make seeds", "description": "Looks harmless"})
    asked, again = request(call()), request(call())
    assert asked.request_id == make_request_id(workspace_id(Path("/w")), "claude-code", SESSION, asked.nonce, digest)
    assert (asked.shown, asked.said, asked.rules) == ("make seeds", "Looks harmless", ("Bash(make seeds)",))
    assert (asked.kind, asked.actions) == (RequestKind.PERMISSION, (Action.ALLOW, Action.DENY))
    assert again == replace(asked, request_id=again.request_id, nonce=again.nonce)
    assert again.request_id != asked.request_id


@pytest.mark.parametrize(
    ("tool", "given", "shown", "others"),
    [
        ("Bash", {"command": "make\ntimeout: 5", "timeout": 5, "description": "x"}, "make\ntimeout: 5", ["timeout: 5"]),
        ("Bash", {"command": "make", 'x: "y"': "a\nb: 1"}, "make", ['"x: \\"y\\"": "a\\nb: 1"']),
        ("Bash", {"description": "x"}, '{\n  "description": "x"\n}', []),
        ("Write", {"file_path": "/w/a\nharmless", "content": "x\ny"}, '"/w/a\\nharmless"\nx\ny', []),
        ("Edit", {"file_path": "/a", "old_string": "a\nb", "new_string": "c", "all": 1}, "/a\n-a\n-b\n+c", ["all: 1"]),
        ("NotebookEdit", {"notebook_path": "/w/n", "new_source": "x", "cell_id": "1"}, "/w/n\nx", ['cell_id: "1"']),
        ("WebFetch", {"url": "https://a.example", "prompt": "é"}, "https://a.example", ['prompt: "é"']),
        ("mcp__x__y", {"a": {"c": "é"}}, '{\n  "a": {\n    "c": "é"\n  }\n}', []),
    ],
)
def test_the_command_of_a_call_is_whole_and_the_rest_apart(tool, given, shown, others):
    asked = request(call(tool, given))
    assert (asked.shown, list(map(str, asked.beside))) == (shown, others)


@given(st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=20) | st.lists(st.booleans()), max_size=5))
def test_nothing_of_an_input_is_left_out_but_the_models_words(given):
    for tool in ("Bash", "Write", "Edit", "WebFetch", "mcp__x__y"):
        asked = request(call(tool, {"command": "make", **given}))
        for key, value in given.items():
            if key != "description":
                spelled = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
                lines = asked.shown.replace("\n+", "\n").replace("\n-", "\n")
                indented = json.dumps(value, ensure_ascii=False, indent=2).replace("\n", "\n  ")
                besides = json.dumps(value, ensure_ascii=False) in [one.value for one in asked.beside]
                assert besides or spelled in lines or indented in lines


@pytest.mark.parametrize(
    "questions",
    [
        [],
        None,
        [QUESTIONS[0], QUESTIONS[0]],
        [QUESTIONS[0], {"options": []}],
        [QUESTIONS[0] | {"options": [{"description": "x"}]}],
        [QUESTIONS[0] | {"question": ""}],
    ],
)
def test_questions_that_are_not_clear_can_only_be_denied(questions):
    asked = call("AskUserQuestion", {"questions": questions})
    assert request(asked).actions == (Action.DENY,)
    assert "terminal" in request(asked).why_not


def test_the_rules_to_choose_are_narrow_and_of_this_tool():
    narrow = [
        {"toolName": "Bash", "ruleContent": "make:*"},
        {"toolName": "Bash"},
        {"toolName": "Read", "ruleContent": "x"},
    ]
    asked = call(
        permission_suggestions=[SUGGESTED | {"rules": narrow}, SUGGESTED | {"rules": narrow, "behavior": "ask"}]
    )
    assert list(grantable_rules(asked)) == ["Bash(make:*)", "Bash(make seeds)"]
    server = call("mcp__x__y", {}, permission_suggestions=[SUGGESTED | {"rules": [{"toolName": "mcp__x__y"}]}])
    assert list(grantable_rules(server)) == ["mcp__x__y"]
    for command in ("make *", "make (x)", "make\nrm x", " make", "make:x", "a\\b"):
        assert list(grantable_rules(call("Bash", {"command": command}))) == [], command


def test_a_rule_that_was_chosen_holds_for_the_session_alone():
    rules = [{"toolName": "Bash", "ruleContent": "make:*"}]
    asked = call(permission_suggestions=[SUGGESTED | {"rules": rules}])
    kept = {"type": "addRules", "rules": rules, "behavior": "allow", "destination": "session"}
    assert decided(asked, Action.ALLOW, Params(rule="Bash(make:*)"))["updatedPermissions"] == [kept]
    assert decided(asked, Action.ALLOW, Params(rule="Bash(*)")) is None


def test_answers_come_with_the_whole_input_if_they_fit_it():
    given = {"questions": QUESTIONS, "metadata": {"source": "x"}}
    asked, answers = call("AskUserQuestion", given), {"Which store?": "Redis, clustered", "Which checks?": "Lint, my"}
    answered = {"behavior": "allow", "updatedInput": given | {"answers": answers}}
    assert decided(asked, Action.ANSWER, ALL_ANSWERED) == answered
    for some in (ALL_ANSWERED.answers[:1], (*ALL_ANSWERED.answers, Answer("Another?", "x"))):
        assert decided(asked, Action.ANSWER, Params(answers=some)) is None


# While a request is held

ASKED_AT = datetime(2030, 1, 1, tzinfo=UTC)
BEFORE, AFTER = ASKED_AT - timedelta(hours=12), ASKED_AT + timedelta(hours=12)


@pytest.fixture
def claude(tmp_path):
    return Claude(tmp_path / "home", tmp_path, "")


def looked_up(claude: Claude, **keys: object) -> AskedCall:
    return AskedCall(call(transcript_path=str(claude.main.path), **keys), ASKED_AT.timestamp())


def test_an_earlier_equal_call_is_not_the_one_asked_about(claude):
    claude.called(claude.main, "u1")
    claude.came("u1", BEFORE)
    found = looked_up(claude)
    assert (found.is_answered(), found.call_id) == (False, None)
    claude.called(claude.main, "u2")
    assert (found.is_answered(), found.call_id) == (False, "u2")
    claude.came("u1", AFTER)
    assert not found.is_answered()
    claude.came("u2", AFTER)
    assert (found.is_answered(), found.call_id) == (True, "u2")


@pytest.mark.parametrize(("agent", "call_id"), [(AGENT, "u1"), ("../../x", None)])
def test_a_child_has_a_transcript_of_its_own(claude, agent, call_id):
    claude.called(claude.child, "u1")
    found = looked_up(claude, **child(agent_id=agent))
    assert (found.is_answered(), found.call_id) == (False, call_id)


# A PermissionRequest from its payload to the output of the hook

ALLOWED = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}


def ask(call: HookCall, workspace: Path):
    """Ask as `agentwatch hook` does."""
    if is_shown(state_directory(workspace)):
        requests.answer_request(call, workspace, load())


class Asking(Scene):
    """A scene with the hook in a thread."""

    def __init__(self, root: Path, printed: Callable[[], str]):
        super().__init__(root)
        self.claude = Claude(root / "home", self.workspace, "")
        self.claude.save()
        self.printed = printed

    def call(self, tool: str = "Bash", given: object = None, **keys: object) -> HookCall:
        return call(tool, given, transcript_path=str(self.claude.main.path), **keys)

    @contextmanager
    def asked(self, of: HookCall | None = None) -> Iterator[Request]:
        """Hold a request with the hook during the block, by whose end the hook must end by itself."""
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
        """Wait until the hook has found the call."""
        end = time.monotonic() + 30
        while (known := self.store.find(request.request_id)) is not None and known.call_id != call_id:
            assert time.monotonic() < end, known
            time.sleep(0.02)

    def told(self) -> Any:
        """Return the output of the hooks since the last call, or None if there is none."""
        out = self.printed()
        return json.loads(out) if out else None


@pytest.fixture
def scene(tmp_path, capfd, monkeypatch):
    live_apart(tmp_path, monkeypatch)
    made = Asking(tmp_path, lambda: capfd.readouterr().out)
    with made.screen:
        yield made


def test_an_allowed_request_is_printed_once_and_noted(scene):
    scene.claude.called(scene.claude.main, "toolu_1")
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
        scene.claude.called(scene.claude.main, "toolu_1")
        scene.await_call(request, "toolu_1")
        scene.answer(request)
    assert (scene.told(), scene.stage(request)) == (ALLOWED, RequestStage.DELIVERED)


def test_the_hook_ends_at_once_when_the_screen_goes(scene):
    with scene.asked() as request:
        scene.screen.close()
    assert scene.told() is None
    assert scene.stage(request) is RequestStage.GONE


def test_the_hook_ends_when_the_program_has_its_answer(scene):
    scene.claude.called(scene.claude.main, "toolu_1")
    with scene.asked() as request:
        scene.claude.came("toolu_1", datetime(2999, 1, 1, tzinfo=UTC))
    assert scene.told() is None
    assert scene.stage(request) is RequestStage.ELSEWHERE
    ask(scene.call(), scene.workspace)
    assert len(scene.store.read()) == 1, "one that is answered already is not offered"


def test_the_prompt_of_a_child_is_hidden_for_a_short_time(scene):
    bound(1.5)
    with scene.asked(scene.call(**child())) as request:
        assert request.prompt_hidden
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
def test_a_request_that_cannot_be_offered_is_left_to_the_program(scene, given):
    ask(scene.call("Bash", given), scene.workspace)
    assert (scene.told(), scene.store.read()) == (None, [])
    assert UNANSWERED in (scene.state / JOURNAL).read_text("utf-8")
