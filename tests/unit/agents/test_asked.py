"""How a permission or a question of Claude Code is shown, and what is printed for the answer to it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.agents.hook.requests import AskedCall, answer_of, request_of, rules_of
from agentwatch.decisions.record import Answer, Params
from agentwatch.delegation.decision import Action, Request, RequestKind, input_text, request_id_of
from agentwatch.sources.claude_code import HookCall
from agentwatch.state import workspace_id
from tests.unit.agents.asking import QUESTIONS, Story, call, child
from tests.unit.agents.claude import SESSION

NONE = Params()
SUGGESTED = {"type": "addRules", "behavior": "allow", "destination": "localSettings"}
ALL_ANSWERED = Params(
    answers=(Answer("Which store?", "Redis, clustered"), Answer("Which checks?", "Lint"), Answer("Which checks?", "my"))
)


def request(of: HookCall) -> Request:
    return request_of(of, Path("/w"), AskedCall(of, 100.0), at=100.0, until=120.0)


def decided(of: HookCall, action: Action, params: Params = NONE, note: str = "") -> Any:
    """The output about the decision, None where that is nothing."""
    answer = answer_of(of, action, params, note)
    if answer is None:
        return None
    assert answer["hookSpecificOutput"].keys() == {"hookEventName", "decision"}
    assert answer["hookSpecificOutput"]["hookEventName"] == "PermissionRequest"
    return answer["hookSpecificOutput"]["decision"]


def test_a_request_is_known_by_its_input_and_by_nothing_else():
    _, digest = input_text({"command": "make seeds", "description": "Looks harmless"})
    asked, again = request(call()), request(call())
    assert asked.request_id == request_id_of(workspace_id(Path("/w")), "claude-code", SESSION, asked.nonce, digest)
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
def test_what_a_call_would_do_is_shown_whole_and_the_rest_apart(tool, given, shown, others):
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
    assert list(rules_of(asked)) == ["Bash(make:*)", "Bash(make seeds)"]
    server = call("mcp__x__y", {}, permission_suggestions=[SUGGESTED | {"rules": [{"toolName": "mcp__x__y"}]}])
    assert list(rules_of(server)) == ["mcp__x__y"]
    for command in ("make *", "make (x)", "make\nrm x", " make", "make:x", "a\\b"):
        assert list(rules_of(call("Bash", {"command": command}))) == [], command


def test_a_rule_that_was_chosen_holds_for_the_session_alone():
    rules = [{"toolName": "Bash", "ruleContent": "make:*"}]
    asked = call(permission_suggestions=[SUGGESTED | {"rules": rules}])
    kept = {"type": "addRules", "rules": rules, "behavior": "allow", "destination": "session"}
    assert decided(asked, Action.ALLOW, Params(rule="Bash(make:*)"))["updatedPermissions"] == [kept]
    assert decided(asked, Action.ALLOW, Params(rule="Bash(*)")) is None


def test_answers_come_with_the_whole_input_and_every_question():
    given = {"questions": QUESTIONS, "metadata": {"source": "x"}}
    answers = {"Which store?": "Redis, clustered", "Which checks?": "Lint, my"}
    answered = {"behavior": "allow", "updatedInput": given | {"answers": answers}}
    assert decided(call("AskUserQuestion", given), Action.ANSWER, ALL_ANSWERED) == answered


@pytest.mark.parametrize(
    "answers",
    [
        ALL_ANSWERED.answers[:1],
        (*ALL_ANSWERED.answers, Answer("Another?", "x")),
    ],
)
def test_answers_that_do_not_fit_are_not_printed(answers):
    assert decided(call("AskUserQuestion", {"questions": QUESTIONS}), Action.ANSWER, Params(answers=answers)) is None


# While a request is held

ASKED_AT = 1_893_499_200.0
BEFORE, AFTER = "2029-12-31T12:00:00.000Z", "2030-01-01T12:00:01.000Z"


def looked_up(of: HookCall) -> AskedCall:
    return AskedCall(of, ASKED_AT)


@pytest.fixture
def story(tmp_path):
    return Story(tmp_path / "session.jsonl")


def asked(story: Story, **keys: object) -> HookCall:
    return call(transcript_path=str(story.session), **keys)


def test_an_equal_call_of_before_is_not_the_one_that_is_asked_about(story):
    story.called("u1")
    story.came("u1", BEFORE)
    found = looked_up(asked(story))
    assert (found.is_answered(), found.call_id) == (False, None)
    story.called("u2")
    assert (found.is_answered(), found.call_id) == (False, "u2")
    story.came("u1", AFTER)
    assert not found.is_answered()
    story.came("u2", AFTER)
    assert (found.is_answered(), found.call_id) == (True, "u2")


def test_a_child_has_a_transcript_of_its_own(tmp_path):
    story = Story(tmp_path / "session.jsonl", of_child=True)
    story.called("u1")
    found = looked_up(asked(story, **child()))
    assert (found.is_answered(), found.call_id) == (False, "u1")
    elsewhere = looked_up(asked(story, **child(agent_id="../../x")))
    assert (elsewhere.is_answered(), elsewhere.call_id) == (False, None)
