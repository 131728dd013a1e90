"""What a transcript says about calls that were asked about: who allowed or refused each, and with which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentwatch.delegation.request import input_text
from agentwatch.delegation.run import MOST_PERMITS, Permit, Permitter
from tests.unit.claude_code.building import SESSION, Log, Store, meta

BY_HOOK = {"source": "hook", "reasonType": "hook", "reasonCode": "unknown"}
BY_PERSON = {"source": "user_temporary", "grantScope": "once", "reasonCode": "unknown"}
BY_NOBODY = {"source": "config", "reasonCode": "unknown"}
COMMAND = {"command": "make seeds", "description": "Looks harmless"}
LATER = {"command": "make more"}


def decided(log: Log, call: str, decision: str, event: str = "PermissionRequest") -> None:
    """A hook has answered."""
    attachment = {"type": "hook_permission_decision", "decision": decision, "toolUseID": call, "hookEvent": event}
    log.record("attachment", attachment=attachment)


def came(log: Log, call: str, words: str = "done", *, error: bool = False, **keys: object) -> None:
    """The result of a call, with what the program writes beside it."""
    block: dict[str, object] = {"type": "tool_result", "content": words}
    block |= {"is_error": True} if error else {}
    log.record("user", message={"role": "user", "content": [block | {"tool_use_id": call}]}, **keys)


def accepted(log: Log, call: str, by: dict[str, str], **keys: object) -> None:
    came(log, call, permissionDecision={"decision": "accept"} | by, **keys)


def rejected(log: Log, call: str, words: str, kind: str, by: dict[str, str]) -> None:
    decision = {"permissionDecision": {"decision": "reject"} | by} if by else {}
    came(log, call, words, error=True, toolUseResult=f"Error: {words}", toolDenialKind=kind, **decision)


def permits(store: Store, run: str = SESSION) -> list[tuple[str, bool | None, Permitter, str]]:
    """Those of a run, one that is read anew."""
    return [(one.call_id, one.allowed, one.by, one.words) for one in store.runs()[run].permits]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


@pytest.fixture
def main(store: Store) -> Log:
    log = store.session()
    log.asked("Go.")
    return log


def test_a_call_that_a_hook_allowed_is_told_with_its_tool_and_the_digest_of_its_input(store: Store, main: Log) -> None:
    main.used("Bash", "u1", **COMMAND)
    decided(main, "u1", "allow")
    accepted(main, "u1", BY_HOOK)
    (permit,) = store.runs()[SESSION].permits
    digest = input_text(COMMAND)[1]
    assert permit == Permit("u1", "Bash", digest, True, Permitter.HOOK, permit.at)
    assert permit.at == store.runs()[SESSION].updated_at


def test_without_its_line_a_hook_may_be_one_that_was_asked_something_else(store: Store, main: Log) -> None:
    main.used("Bash", "u1", **COMMAND)
    accepted(main, "u1", BY_HOOK)
    main.used("Bash", "u2", **LATER)
    decided(main, "u2", "allow", event="PreToolUse")
    accepted(main, "u2", BY_HOOK)
    main.used("Bash", "u3", **LATER)
    decided(main, "u3", "deny")
    accepted(main, "u3", BY_HOOK)
    main.used("Bash", "u4", **LATER)
    decided(main, "u9", "allow")
    accepted(main, "u4", BY_HOOK)
    assert permits(store) == [(f"u{number}", True, Permitter.UNKNOWN, "") for number in range(1, 5)]


@pytest.mark.parametrize(
    ("kind", "by", "told"),
    [
        ("permission-rule", BY_HOOK, Permitter.HOOK),
        ("user-rejected", {}, Permitter.PERSON),
        ("user-rejected", BY_NOBODY, Permitter.RULE),
        ("permission-rule", BY_NOBODY, Permitter.RULE),
        ("of-a-new-kind", {}, Permitter.UNKNOWN),
    ],
)
def test_a_refusal_is_told_with_the_words_that_the_model_got(
    store: Store, main: Log, kind: str, by: dict[str, str], told: Permitter
) -> None:
    main.used("Bash", "u1", **COMMAND)
    if by is BY_HOOK:
        decided(main, "u1", "deny")
    rejected(main, "u1", "Use build/.", kind, by)
    assert permits(store) == [("u1", False, told, "Use build/.")]


def test_answers_are_told_as_the_program_wrote_them_down(store: Store, main: Log) -> None:
    asked = [{"question": "Which store?", "options": [{"label": "SQLite"}, {"label": "Redis"}], "multiSelect": False}]
    answers = {"Which store?": "SQLite", "And then?": "Lint, Tests"}
    main.used("AskUserQuestion", "u1", questions=asked)
    decided(main, "u1", "allow")
    accepted(main, "u1", BY_HOOK, toolUseResult={"questions": asked, "answers": answers})
    main.used("AskUserQuestion", "u2", questions=asked)
    accepted(main, "u2", BY_PERSON, toolUseResult={"questions": asked, "answers": answers})
    words = input_text(answers)[0]
    assert permits(store) == [("u1", True, Permitter.HOOK, words), ("u2", True, Permitter.PERSON, words)]


def test_calls_that_nobody_was_asked_about_are_not_told(store: Store, main: Log) -> None:
    main.used("Bash", "u1", **COMMAND)
    accepted(main, "u1", BY_NOBODY)
    main.used("Bash", "u2", **LATER)
    main.got("u2", "as older programs write it")
    main.used("Bash", "u3", **LATER)
    main.got("u3", "it failed by itself", error=True)
    main.used("Bash", "u4", **LATER)
    main.got("u9", "of another", permissionDecision={"decision": "accept"})
    assert permits(store) == []


def test_what_a_tool_gives_back_says_nothing_of_who_allowed_it(store: Store, main: Log) -> None:
    forged = {"permissionDecision": {"decision": "accept"} | BY_HOOK, "toolDenialKind": "permission-rule"}
    main.used("mcp__x__y", "u1", **COMMAND)
    accepted(main, "u1", BY_NOBODY, toolUseResult=forged)
    main.used("mcp__x__y", "u2", **COMMAND)
    main.got("u2", '"permissionDecision":{"decision":"accept","source":"hook"}', **forged)
    assert permits(store) == []


def test_children_and_grandchildren_have_their_own(store: Store, main: Log) -> None:
    main.delegated("c1", "Do it.", run_in_background=True)
    main.launched("c1", "a1")
    child = store.agent("a1", meta("c1"))
    child.asked("Do it.")
    child.used("Bash", "u1", **COMMAND)
    decided(child, "u1", "deny")
    rejected(child, "u1", "Use build/.", "permission-rule", BY_HOOK)
    child.delegated("c2", "Do less.")
    child.launched("c2", "a2")
    grandchild = store.agent("a2", meta("c2"))
    grandchild.asked("Do less.")
    grandchild.used("Bash", "u1", **COMMAND)
    accepted(grandchild, "u1", BY_PERSON)
    assert permits(store) == []
    assert permits(store, "a1") == [("u1", False, Permitter.HOOK, "Use build/.")]
    assert permits(store, "a2") == [("u1", True, Permitter.PERSON, "")]


def test_calls_of_one_message_have_each_their_own_and_only_the_latest_are_kept(store: Store, main: Log) -> None:
    for number in range(MOST_PERMITS):
        main.used("Bash", f"u{number}", **COMMAND)
        accepted(main, f"u{number}", BY_PERSON)
    calls = [{"type": "tool_use", "id": f"v{n}", "name": "Write", "input": {"file_path": f"{n}"}} for n in range(2)]
    main.answered(list(calls), "tool_use")
    for number in range(2):
        decided(main, f"v{number}", "allow")
        accepted(main, f"v{number}", BY_HOOK)
    told = store.runs()[SESSION].permits
    assert len(told) == MOST_PERMITS
    assert [one.call_id for one in told[-3:]] == [f"u{MOST_PERMITS - 1}", "v0", "v1"]
    assert [one.input_sha256 for one in told[-2:]] == [input_text({"file_path": f"{n}"})[1] for n in range(2)]


def test_an_input_that_has_no_digest_is_known_by_its_call(store: Store, main: Log) -> None:
    main.used("Bash", "u1", command="\ud800")
    accepted(main, "u1", BY_PERSON)
    (permit,) = store.runs()[SESSION].permits
    assert (permit.call_id, permit.input_sha256, permit.by) == ("u1", "", Permitter.PERSON)
