"""What the records of each program say: calls with what came of them, words, and what nobody allowed."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from agentwatch.sources.claude_code.entries import entries as claude_code
from agentwatch.sources.codex.entries import entries as codex
from agentwatch.sources.sessions.doing import Entry
from agentwatch.sources.sessions.following import Outcome, Step, Steps

AT = "2026-03-01T12:00:00.000Z"


def step(*records: Iterable[Entry]) -> Step:
    """The one step that some records come to."""
    steps = Steps()
    for place, entries in enumerate(records):
        steps.add(place, entries)
    (only,) = steps.snapshot()
    return only


def told(kind: str, content: object, **keys: object) -> Iterable[Entry]:
    return claude_code({"type": kind, "timestamp": AT, "message": {"content": content}, **keys})


def used(given: dict[str, object], tool: str = "Bash") -> Iterable[Entry]:
    return told("assistant", [{"type": "tool_use", "id": "a", "name": tool, "input": given}])


def gave(words: str, *, error: bool = False, **keys: object) -> Iterable[Entry]:
    return told("user", [{"type": "tool_result", "tool_use_id": "a", "content": words, "is_error": error}], **keys)


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        (gave("done"), Outcome.DONE),
        (gave("Exit code 1\nno", error=True), Outcome.FAILED),
        (gave("The user doesn't want to proceed with this tool use.", error=True), Outcome.REFUSED),
        (gave("Permission to use Bash has been denied.", error=True), Outcome.REFUSED),
        (gave("Use the build folder.", error=True, toolDenialKind="permission-rule"), Outcome.REFUSED),
        (gave("[Request interrupted by user for tool use]", error=True), Outcome.REFUSED),
        # What a tool gave back may quote anything.
        (gave("The user doesn't want to proceed with this tool use."), Outcome.DONE),
    ],
)
def test_claude_code_tells_what_came_of_a_call(result: Iterable[Entry], outcome: Outcome) -> None:
    found = step(used({"command": "make test"}), result)
    assert (found.tool, found.about, found.outcome) == ("Bash", "make test", outcome)


def test_claude_code_tells_what_an_agent_handed_back_without_the_frame() -> None:
    frame = "  <tools-used-before-summary>Read</tools-used-before-summary>\n[Subagent hand-back] It follows:\n  All"
    result = {"content": [{"type": "text", "text": "Note."}, {"type": "text", "text": "All is well."}]}
    blocks = [{"type": "text", "text": frame}, {"type": "text", "text": "More."}]
    content = [{"type": "tool_result", "tool_use_id": "a", "content": blocks}]
    found = step(
        used({"prompt": "Look."}, "Agent"),
        told("user", content, toolUseResult=result | {"harnessNoteCount": 1}),
    )
    assert found.result == "All is well."
    assert found.handed


@pytest.mark.parametrize(
    ("output", "outcome", "line"),
    [
        ("Chunk ID: 1\nProcess exited with code 0\nOutput:\nhello\n", Outcome.DONE, "hello"),
        ("Chunk ID: 1\nProcess exited with code 2\nOutput:\nno\n", Outcome.FAILED, "exit code 2 no"),
        ('exec_command failed: CreateProcess { message: "Rejected(\\"rejected by user\\")" }', Outcome.REFUSED, None),
        ("aborted by user after 3.2s", Outcome.REFUSED, None),
        ('{"output": "boo", "metadata": {"exit_code": 1}}', Outcome.FAILED, "boo"),
        ("Chunk ID: 1\nOutput:\nit was rejected by user\n", Outcome.DONE, "it was rejected by user"),
    ],
)
def test_codex_tells_what_came_of_a_call(output: str, outcome: Outcome, line: str | None) -> None:
    given = json.dumps({"command": ["bash", "-lc", "make test"]})
    called = {"type": "function_call", "call_id": "a", "name": "shell", "arguments": given}
    came = {"type": "function_call_output", "call_id": "a", "output": output}
    found = step(*(codex({"type": "response_item", "timestamp": AT, "payload": part}) for part in (called, came)))
    assert (found.tool, found.about, found.outcome) == ("shell", "make test", outcome)
    assert line is None or found.result.startswith(line)
