"""Acts of agents, as the records of each program show them: commands, their results, and written files."""

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest

from agentwatch.sources.claude_code.transcript import entries as claude_code
from agentwatch.sources.codex import OwnEntries
from agentwatch.sources.codex import entries as codex
from agentwatch.sources.copilot import entries as copilot
from agentwatch.sources.gemini import entries as gemini
from agentwatch.sources.opencode import entries as opencode
from agentwatch.sources.qwen import entries as qwen
from agentwatch.sources.sessions.entries import Act, ActKind, EntriesIn, Entry, EntryKind, LinesTranscript, find_acts

MOVED = (
    "Command did not complete within its 120s timeout and was moved to the background (ID: b1). You will be notified."
)
DECLINED = 'Qwen Code requires permission to use "run_shell_command", but that permission was declined'
CANCELLED = "[Operation Cancelled]"
AT = "2026-03-01T12:00:00.000Z"
ABOVE = "/build/shop"
PLACE = f"{ABOVE}/web"
Told = tuple[EntriesIn, list[dict[str, object]]]
"""A function that reads records, and the records."""


def entries_of(entries_in: EntriesIn, *records: dict[str, object]) -> list[tuple[int, Sequence[Entry]]]:
    if entries_in is opencode:
        return [(0, list(opencode(records[0], 1.0)))]
    with NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(f"{json.dumps(record)}\n" for record in records)
        file.flush()
        return list(LinesTranscript(Path(file.name), lambda: entries_in).records())


def acts_of(entries_in: EntriesIn, *records: dict[str, object]) -> list[Act]:
    return list(find_acts(entries_of(entries_in, *records)))


def of_claude(words: str, shown: object = None, *, error: bool = False) -> Told:
    common = {"timestamp": AT, "cwd": PLACE}
    use = {"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "make test"}}
    block = {"type": "tool_result", "tool_use_id": "a", "content": words, "is_error": error}
    answer = {"toolUseResult": shown} if shown is not None else {}
    used = {"type": "assistant", "message": {"content": [use]}, **common}
    return claude_code, [used, {"type": "user", "message": {"content": [block]}, **common, **answer}]


def _codex(payload: dict[str, object], kind: str = "response_item") -> dict[str, object]:
    return {"timestamp": AT, "type": kind, "payload": payload}


def _exec(**arguments: object) -> dict[str, object]:
    written = json.dumps(arguments)
    return _codex({"type": "function_call", "name": "exec_command", "call_id": "a", "arguments": written})


def of_codex(output: str) -> Told:
    answer = _codex({"type": "function_call_output", "call_id": "a", "output": output})
    return codex, [_exec(cmd="make test", workdir=PLACE), answer]


def of_opencode(status: str, **state: object) -> Told:
    given = {"input": {"command": "make test", "workdir": PLACE}, "time": {"start": 1_000, "end": 3_000}}
    return opencode, [{"type": "tool", "tool": "bash", "callID": "a", "state": {"status": status, **state, **given}}]


def of_qwen(status: str, **response: str) -> Told:
    args = {"command": "make test", "directory": "web"}
    call = {"functionCall": {"id": "a", "name": "run_shell_command", "args": args}}
    answer = {"functionResponse": {"id": "a", "name": "run_shell_command", "response": response}}
    common = {"timestamp": AT, "cwd": ABOVE}
    return qwen, [
        {**common, "type": "assistant", "message": {"parts": [call]}},
        {**common, "type": "tool_result", "message": {"parts": [answer]}, "toolCallResult": {"status": status}},
    ]


def said_by_qwen(output: str, code: object) -> str:
    return f"Command: make test\nDirectory: (root)\nOutput: {output}\nError: (none)\nExit Code: {code}\nSignal: (none)"


def of_copilot(content: str, **shell: int) -> Told:
    told: dict[str, dict[str, object]] = {
        "session.start": {"context": {"cwd": PLACE}},
        "tool.execution_start": {"toolName": "bash", "arguments": {"command": "make test"}},
        "tool.execution_complete": {"success": True, "result": {"content": content}, "shellExecution": shell or None},
    }
    common = {"toolCallId": "a", "model": "small"}
    return copilot, [{"type": kind, "timestamp": AT, "id": kind, "data": common | data} for kind, data in told.items()]


def of_gemini(output: str, ended: str = "") -> Told:
    told = f"<untrusted_context>\nOutput: {output}\n{ended}Process Group PGID: 31074\n</untrusted_context>"
    return moved_by_gemini(told)


def moved_by_gemini(told: str) -> Told:
    response = {"functionResponse": {"id": "a", "response": {"output": told}}}
    given = {"command": "make test", "dir_path": "web"}
    call = {"id": "a", "name": "run_shell_command", "args": given, "status": "success", "result": [response]}
    return gemini, [{"directories": [ABOVE]}, {"type": "gemini", "timestamp": AT, "toolCalls": [call]}]


REFUSED = "refused"


@pytest.mark.parametrize(
    ("told", "ended"),
    [
        (of_claude("3 passed", {"stdout": "3 passed", "stderr": "warned"}), (0, "3 passed\nwarned", False)),
        (of_claude("Exit code 2\n1 failed", error=True), (2, "1 failed", False)),
        (of_claude("Exit code 1", error=True), (1, "", False)),
        (of_claude("Command running in background with ID: b1", {"stdout": ""}), (None, "", False)),
        (of_claude(MOVED), (None, MOVED, False)),
        (of_claude(f"1 passed\n{MOVED}", {"stdout": "1 passed"}), (None, "1 passed", False)),
        (of_claude("", {"stdout": "", "backgroundTaskId": "b1"}), (None, "", False)),
        (of_claude("", {"stdout": "", "returnCodeInterpretation": "No matches found"}), (None, "", False)),
        (of_claude("<persisted-output>", {"stdout": "begin", "persistedOutputPath": "/tmp/x"}), (0, "begin", True)),
        (of_codex("Wall time: 1 s\nProcess exited with code 0\nOutput:\n3 passed\n"), (0, "3 passed\n", False)),
        (of_codex("Wall time: 1 s\nProcess exited with code 1\nOutput:\n1 failed\n"), (1, "1 failed\n", False)),
        (of_codex("Wall time: 10 s\nProcess running with session ID 7\nOutput:\n..."), (None, "...", False)),
        (of_codex("Exit code: 0\nOutput:\na\n…12 tokens truncated…\nb"), (0, "a\n…12 tokens truncated…\nb", False)),
        (of_opencode("completed", output="ok", metadata={"output": "ok", "exit": 0}), (0, "ok", False)),
        (of_opencode("completed", output="no", metadata={"output": "no", "exit": 3}), (3, "no", False)),
        (of_opencode("completed", output="", metadata={"output": "", "exit": None}), (None, "", False)),
        (of_opencode("completed", output="a", metadata={"exit": 0, "truncated": True}), (0, "a", True)),
        (of_opencode("error", error="The user rejected permission"), REFUSED),
        (of_qwen("success", output=said_by_qwen("3 passed", 0)), (0, "3 passed\n", False)),
        (of_qwen("error", error=said_by_qwen("1 failed", 1)), (1, "1 failed\n", False)),
        (of_qwen("success", output=said_by_qwen("(empty)", "(none)")), (None, "(empty)\n", False)),
        (of_qwen("cancelled", error=f"{CANCELLED} Reason: User did not allow tool call"), REFUSED),
        (of_qwen("error", error=f"{DECLINED}."), REFUSED),
        (of_qwen("error", output=f"{DECLINED} (non-interactive mode cannot prompt for confirmation)."), REFUSED),
        (of_qwen("cancelled", error=f"{CANCELLED} User cancelled tool execution."), None),
        (of_copilot("3 passed\n<shellId: 0 completed with exit code 0>", exitCode=0), (0, "3 passed", False)),
        (of_copilot("1 failed\n<shellId: 0 completed with exit code 1>", exitCode=1), (1, "1 failed", False)),
        (of_copilot("<shellId: 0 is still running>"), (None, "<shellId: 0 is still running>", False)),
        (of_gemini("3 passed"), (0, "3 passed", False)),
        (of_gemini("Exit Code: 0\n1 failed", "Exit Code: 1\n"), (1, "Exit Code: 0\n1 failed", False)),
        (of_gemini("(empty)", "Signal: 9\n"), (None, "(empty)", False)),
        (moved_by_gemini("Command moved to background (PID: 7)."), None),
    ],
)
def test_a_command_ends_as_its_program_tells(told, ended):
    """Its end has an exit code, an output that may be cut, both, or neither if it was refused or nothing is known."""
    entries_in, records = told
    read = entries_of(entries_in, *records)
    (act,) = find_acts(read)
    if entries_in is opencode:
        assert (act.at, act.ended_at) == (1.0, 3.0)
    assert (act.kind, act.what, act.cwd, act.refused) == (ActKind.COMMAND, "make test", PLACE, ended is REFUSED)
    found = None if act.ended is None else (act.ended.exit_code, act.ended.output, act.ended.is_cut)
    assert found == (None if ended is REFUSED else ended)
    if found and found[0] is not None:
        assert any(entry.failed for _, entries in read for entry in entries) == (found[0] != 0)


def test_codex_acts_are_in_the_turns_directory_not_the_parents():
    thread, parent = "01a1fce9-1d77-7083-9499-131adbcab036", "01a1fce9-0000-7083-9499-131adbcab036"
    header = {"id": thread, "session_id": parent, "timestamp": AT, "cwd": PLACE, "cli_version": "0.169.0"}
    inherited = {"id": parent, "timestamp": AT, "cwd": "/parent", "cli_version": "0.169.0"}
    turns = [{"type": "task_started", "turn_id": one} for one in (parent, thread)]
    records = [
        _codex(header, "session_meta"),
        _codex(inherited, "session_meta"),
        _codex(turns[0], "event_msg"),
        _exec(cmd="make parent"),
        _codex(turns[1], "event_msg"),
        _exec(cmd="make here"),
        _codex({"cwd": "/turn"}, "turn_context"),
        _exec(cmd="make there", workdir="below"),
    ]
    assert [(act.what, act.cwd) for act in acts_of(OwnEntries(), *records)] == [
        ("make here", PLACE),
        ("make there", "/turn/below"),
    ]


PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n*** Add File: src/b.py\n+x\n*** End Patch"


@pytest.mark.parametrize(
    ("tool", "given", "found"),
    [
        ("Write", {"file_path": "/build/a.py", "content": "x"}, [(ActKind.WRITE, "/build/a.py")]),
        ("apply_patch", {"input": PATCH}, [(ActKind.WRITE, "src/a.py"), (ActKind.WRITE, "src/b.py")]),
        ("WebFetch", {"url": "https://example.org"}, []),
        ("mcp__ide__run", {"code": "x"}, [(ActKind.STRANGE, "mcp__ide__run")]),
        ("Bash", {}, [(ActKind.STRANGE, "Bash")]),
        ("shell", {"command": ["bash", "-lc", "make test"]}, [(ActKind.COMMAND, "make test")]),
        ("shell", {"command": ["make", "a b"]}, [(ActKind.COMMAND, "make 'a b'")]),
        ("Read", {"file_path": "a.py"}, []),
        ("Task", {"prompt": "Go."}, []),
    ],
)
def test_the_acts_of_tools(tool, given, found):
    call = Entry(1.0, EntryKind.CALL, call="a", tool=tool, given=given)
    assert [(act.kind, act.what) for act in find_acts([(0, [call])])] == found


def test_a_transcript_that_cannot_be_read_whole_is_no_log(tmp_path):
    path = tmp_path / "child.jsonl"
    path.write_text('{"type": "user"}\n{"type": \n', "utf-8")
    with pytest.raises(OSError, match="cannot be read"):
        list(LinesTranscript(path, lambda: claude_code).records())
