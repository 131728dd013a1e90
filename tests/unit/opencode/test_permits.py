"""What the parts of calls say of permissions: allowed, refused and in which words, answered."""

from __future__ import annotations

from typing import Any

import pytest

from agentwatch.delegation.request import input_text
from agentwatch.delegation.run import MOST_PERMITS, Permitter
from tests.unit.opencode.program import Program
from tests.unit.opencode.reading import Reading

REJECTED = "The user rejected permission to use this specific tool call"
RULED = "The user has specified a rule which prevents you from using this specific tool call. Here are some of them []"
QUESTIONS = {"questions": [{"question": "Which store?"}, {"question": "Which checks?"}]}
ANSWERS = {"answers": [["SQLite"], ["Lint", "my own"]]}
ANSWERED = input_text({"Which store?": "SQLite", "Which checks?": "Lint, my own"})[0]

CASES: dict[str, tuple[str, dict[str, Any], tuple[bool | None, Permitter, str]]] = {
    "it ran": ("bash", {"status": "completed"}, (True, Permitter.UNKNOWN, "")),
    "it was refused": ("bash", {"status": "error", "error": f"{REJECTED}."}, (False, Permitter.UNKNOWN, "")),
    "it was refused with words": (
        "bash",
        {"status": "error", "error": f"{REJECTED} with the following feedback: Use build/."},
        (False, Permitter.UNKNOWN, "Use build/."),
    ),
    "a rule refused it": ("bash", {"status": "error", "error": RULED}, (False, Permitter.RULE, "")),
    "it failed": ("bash", {"status": "error", "error": "No such file"}, (None, Permitter.UNKNOWN, "")),
    "Kilo: somebody allowed it": (
        "bash",
        {"status": "completed", "metadata": {"approval": {"source": "manual"}}},
        (True, Permitter.UNKNOWN, ""),
    ),
    "Kilo: a rule allowed it": (
        "bash",
        {"status": "completed", "metadata": {"approval": {"source": "global", "rule": {}}}},
        (True, Permitter.RULE, ""),
    ),
    "answered": (
        "question",
        {"status": "completed", "input": QUESTIONS, "metadata": ANSWERS},
        (True, Permitter.UNKNOWN, ANSWERED),
    ),
    "dismissed": (
        "question",
        {"status": "error", "input": QUESTIONS, "error": "The user dismissed this question"},
        (False, Permitter.UNKNOWN, ""),
    ),
    "Kilo: dismissed": (
        "question",
        {"status": "completed", "input": QUESTIONS, "metadata": {"answers": [], "dismissed": True}},
        (False, Permitter.UNKNOWN, ""),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_call_that_is_over_tells_whether_it_was_allowed(program: Program, watched: Reading, case: str) -> None:
    tool, state, told = CASES[case]
    root = program.session()
    message = program.begin(root)
    call = program.call(root, message, tool, input=state.get("input", {}))
    assert watched.read()[root].permits == ()
    program.call(root, message, tool, call, **{"input": {}, **state})
    (permit,) = watched.read()[root].permits
    assert (permit.allowed, permit.by, permit.words) == told
    assert (permit.tool, permit.call_id) == (tool, f"call_{message}_{tool}")


def test_the_latest_are_kept_and_what_was_taken_back_is_none(program: Program, watched: Reading) -> None:
    root = program.session()
    message = program.begin(root)
    calls = [
        program.call(root, message, f"tool{number}", status="completed", input={}) for number in range(3 * MOST_PERMITS)
    ]
    permits = watched.read()[root].permits
    assert [permit.tool for permit in permits] == [f"tool{number}" for number in range(len(calls))][-MOST_PERMITS:]
    program.remove_part(root, calls[-1])
    assert [permit.tool for permit in watched.read()[root].permits][-1] == f"tool{len(calls) - 2}"
