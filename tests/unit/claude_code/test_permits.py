"""What a transcript says about calls that were asked about: who allowed or refused each, and with which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentwatch.delegation.request import input_text
from agentwatch.delegation.run import MOST_PERMITS, Permitter
from tests.unit.claude_code.building import SESSION, Log, Store

BY_HOOK = {"source": "hook", "reasonType": "hook", "reasonCode": "unknown"}
BY_PERSON = {"source": "user_temporary", "grantScope": "once", "reasonCode": "unknown"}
COMMAND = {"command": "make seeds", "description": "Looks harmless"}


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
