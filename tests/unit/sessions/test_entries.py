"""What the records of each program say: calls with what came of them, words, and what nobody allowed."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from agentwatch.sources.claude_code.entries import entries as claude_code
from agentwatch.sources.codex.entries import entries as codex
from agentwatch.sources.copilot.copilot_reader import entries as copilot
from agentwatch.sources.gemini.gemini_reader import entries as gemini
from agentwatch.sources.opencode.opencode_reader import entries as opencode
from agentwatch.sources.qwen.qwen_reader import entries as qwen
from agentwatch.sources.roo.roo_reader import entries as roo
from agentwatch.sources.sessions.doing import Entry, EntryKind
from agentwatch.sources.sessions.steps import Outcome, Step, Steps, one_line, written

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
    ("words", "keys", "kind", "line"),
    [
        ("Build it.", {}, EntryKind.PROMPT, "Build it."),
        ("[Request interrupted by user]", {}, EntryKind.NOTE, "Request interrupted by user"),
        ("Caveat: local", {"isMeta": True}, EntryKind.NOTE, "Caveat: local"),
        ("<local-command-stdout>hi</local-command-stdout>", {}, EntryKind.NOTE, "hi"),
        (
            "<command-name>/compact</command-name><command-args>now</command-args>",
            {},
            EntryKind.PROMPT,
            "/compact now",
        ),
    ],
)
def test_claude_code_tells_prompts_from_notes(words: str, keys: dict[str, object], kind: EntryKind, line: str) -> None:
    found = step(told("user", words, **keys))
    assert (found.kind, found.about) == (kind, line)


def test_claude_code_tells_thoughts_errors_and_checklists() -> None:
    assert step(told("assistant", [{"type": "thinking", "thinking": "Hm."}])).kind is EntryKind.THOUGHT
    failed = step(told("assistant", [{"type": "text", "text": "API Error: 400"}], isApiErrorMessage=True))
    assert (failed.kind, failed.outcome) == (EntryKind.WORDS, Outcome.FAILED)
    todos = [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}, {"content": "c"}]
    found = step(used({"todos": todos}, "TodoWrite"))
    assert (found.about, found.is_checklist) == ("1/3 b", True)
    assert not list(told("user", "<system-reminder>x</system-reminder>"))


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


def test_codex_tells_an_answer_once() -> None:
    said = {"type": "item_completed", "item": {"type": "AgentMessage", "content": [{"type": "Text", "text": "Done."}]}}
    ended = {"type": "task_complete", "last_agent_message": "Done."}
    records = [codex({"type": "event_msg", "timestamp": AT, "payload": part}) for part in (said, ended)]
    assert step(*records).about == "Done."


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ({"status": "running"}, Outcome.OPEN),
        ({"status": "completed", "output": "ok"}, Outcome.DONE),
        ({"status": "completed", "output": "no", "metadata": {"exit": 1}}, Outcome.FAILED),
        ({"status": "error", "error": "it broke"}, Outcome.FAILED),
        ({"status": "error", "error": "The user rejected permission to use this specific tool call."}, Outcome.REFUSED),
    ],
)
def test_opencode_tells_what_came_of_a_call(state: dict[str, object], outcome: Outcome) -> None:
    part = {"type": "tool", "tool": "bash", "callID": "a", "state": {"input": {"command": "make"}} | state}
    found = step(opencode(part, 7.0))
    assert (found.tool, found.about, found.outcome, found.at) == ("bash", "make", outcome, 7.0)


def test_opencode_tells_whose_words_they_are() -> None:
    assert step(opencode({"type": "text", "text": "Go."}, 1.0, is_asked=True)).kind is EntryKind.PROMPT
    assert step(opencode({"type": "text", "text": "Gone."}, 1.0)).kind is EntryKind.WORDS
    assert step(opencode({"type": "text", "text": "x", "synthetic": True}, 1.0, is_asked=True)).kind is EntryKind.NOTE
    assert step(opencode({"type": "reasoning", "text": "x"}, 1.0)).kind is EntryKind.THOUGHT
    assert not list(opencode({"type": "step-start"}, 1.0))


@pytest.mark.parametrize(
    ("status", "response", "outcome"),
    [
        ("success", {"output": "ok"}, Outcome.DONE),
        ("error", {"error": "no such file"}, Outcome.FAILED),
        ("cancelled", {"error": "[Operation Cancelled] Reason: User did not allow tool call"}, Outcome.REFUSED),
    ],
)
def test_qwen_tells_what_came_of_a_call(status: str, response: dict[str, object], outcome: Outcome) -> None:
    call = {"functionCall": {"id": "a", "name": "run_shell_command", "args": {"command": "make"}}}
    answer = {"functionResponse": {"id": "a", "response": response}}
    called = qwen({"type": "assistant", "timestamp": AT, "message": {"parts": [call]}})
    result = {"type": "tool_result", "toolCallResult": {"status": status}, "message": {"parts": [answer]}}
    found = step(called, qwen(result | {"timestamp": AT}))
    assert (found.about, found.outcome) == ("make", outcome)


@pytest.mark.parametrize(
    ("result", "outcome", "came"),
    [
        ({"success": True, "result": {"content": "ok"}, "shellExecution": {"exitCode": 0}}, Outcome.DONE, "ok"),
        ({"success": True, "result": {"content": "no"}, "shellExecution": {"exitCode": 3}}, Outcome.FAILED, "no"),
        ({"success": False, "error": {"message": "no such file", "code": "failure"}}, Outcome.FAILED, "no such file"),
        (
            {"success": False, "error": {"message": "The user said no", "code": "rejected"}},
            Outcome.REFUSED,
            "The user said no",
        ),
        (
            {"success": False, "error": {"message": "A rule says no", "code": "denied"}},
            Outcome.REFUSED,
            "A rule says no",
        ),
    ],
)
def test_copilot_tells_what_came_of_a_call(result: dict[str, object], outcome: Outcome, came: str) -> None:
    given = {"toolCallId": "a", "toolName": "bash", "model": "small", "arguments": {"command": "make"}}
    called = copilot({"type": "tool.execution_start", "timestamp": AT, "data": given})
    gave = copilot({"type": "tool.execution_complete", "timestamp": AT, "data": result | {"toolCallId": "a"}})
    found = step(called, gave)
    assert (found.tool, found.about, found.outcome, found.result) == ("bash", "make", outcome, came)


def test_copilot_tells_whose_words_they_are() -> None:
    def told(kind: str, **data: object) -> list[tuple[EntryKind, str]]:
        return [(one.kind, one.text) for one in copilot({"type": kind, "timestamp": AT, "data": data})]

    assert told("user.message", content="Go.", source="agent-1") == [(EntryKind.PROMPT, "Go.")]
    assert told("user.message", content="A skill.", source="skill-pdf") == [(EntryKind.NOTE, "A skill.")]
    assert told("assistant.message", content="Yes.", reasoningText="Hm.", model="m") == [
        (EntryKind.THOUGHT, "Hm."),
        (EntryKind.WORDS, "Yes."),
    ]
    assert told("assistant.message", content="Made up.") == []
    assert told("abort", reason="user_initiated") == [(EntryKind.NOTE, "aborted: user_initiated")]
    assert told("session.error", message="400") == [(EntryKind.NOTE, "400")]


@pytest.mark.parametrize(
    ("status", "response", "outcome"),
    [
        ("success", {"output": "ok"}, Outcome.DONE),
        ("error", {"error": "no such file"}, Outcome.FAILED),
        ("cancelled", {"output": "x", "error": "User denied execution."}, Outcome.REFUSED),
    ],
)
def test_gemini_tells_what_came_of_a_call(status: str, response: dict[str, object], outcome: Outcome) -> None:
    call = {"id": "a", "name": "run_shell_command", "args": {"command": "make"}, "status": status}
    call |= {"result": [{"functionResponse": {"response": response}}], "timestamp": "2026-03-01T12:00:07Z"}
    found = step(gemini({"type": "gemini", "timestamp": AT, "content": "", "toolCalls": [call]}))
    assert (found.about, found.outcome, (found.ended_at or 0.0) - found.at) == ("make", outcome, 7.0)


def test_gemini_tells_what_an_agent_hands_back_as_its_words() -> None:
    call = {"id": "a", "name": "complete_task", "args": {"result": "Done."}, "status": "success", "timestamp": AT}
    (found,) = gemini({"type": "gemini", "timestamp": AT, "content": "", "toolCalls": [call]})
    assert (found.kind, found.text) == (EntryKind.WORDS, "Done.")
    (note,) = gemini({"type": "error", "content": "Quota."})
    assert (note.kind, note.failed) == (EntryKind.NOTE, True)


def test_roo_tells_its_messages() -> None:
    messages: list[dict[str, object]] = [
        {"ts": 1000, "say": "text", "text": "Build it."},
        {"ts": 2000, "ask": "command", "text": "make"},
        {"ts": 3000, "say": "command_output", "text": "made"},
        {"ts": 4000, "ask": "tool", "text": json.dumps({"tool": "readFile", "path": "a.py"})},
        {"ts": 5000, "say": "error", "text": "It broke."},
        {"ts": 6000, "say": "api_req_started", "text": json.dumps({"cancelReason": "user_cancelled"})},
        {"ts": 7000, "ask": "tool", "text": json.dumps({"tool": "newTask", "content": "Do it."})},
    ]
    steps = Steps()
    for place, entries in roo(messages):
        steps.add(place, entries)
    assert [(one.kind, one.tool, one.about, one.outcome, one.result) for one in steps.snapshot()] == [
        (EntryKind.PROMPT, "", "Build it.", Outcome.DONE, ""),
        (EntryKind.CALL, "execute_command", "make", Outcome.DONE, "made"),
        (EntryKind.CALL, "readFile", "a.py", Outcome.DONE, ""),
        (EntryKind.NOTE, "", "It broke.", Outcome.FAILED, ""),
        (EntryKind.NOTE, "", "broken off by the user", Outcome.FAILED, ""),
        (EntryKind.CALL, "newTask", "Do it.", Outcome.OPEN, ""),
    ]


def test_arguments_are_written_one_below_the_other() -> None:
    assert written({"command": "make"}) == "make"
    assert written({"path": "a.py", "text": "one\ntwo", "n": 3}) == "path: a.py\ntext:\none\ntwo\n\nn: 3"
    assert one_line("x" * 500) == "x" * 200
