"""What agents did by their tools, as the records of each program tell it: commands, how they ended, files written."""

import json
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
from agentwatch.sources.sessions.entries import Act, ActKind, EntriesIn, Entry, EntryKind, LinesTranscript, acts_in

MOVED = (
    "Command did not complete within its 120s timeout and was moved to the background (ID: b1). You will be notified."
)
AT = "2026-03-01T12:00:00.000Z"
PLACE = "/build/shop"
Result = tuple[int | None, str, bool]
"""Exit code, output, and whether it was cut."""


def acts_of(entries_in: EntriesIn, *records: dict[str, object]) -> list[Act]:
    with NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(f"{json.dumps(record)}\n" for record in records)
        file.flush()
        return list(acts_in(LinesTranscript(Path(file.name), lambda: entries_in).records()))


def ended(act: Act) -> Result | None:
    return None if act.ended is None else (act.ended.exit_code, act.ended.output, act.ended.is_cut)


def _claude(kind: str, block: dict[str, object], **keys: object) -> dict[str, object]:
    return {"type": kind, "timestamp": AT, "cwd": PLACE, "message": {"content": [block]}, **keys}


@pytest.mark.parametrize(
    ("words", "error", "shown", "result"),
    [
        ("3 passed", False, {"stdout": "3 passed", "stderr": "warned"}, (0, "3 passed\nwarned", False)),
        ("Exit code 2\n1 failed", True, None, (2, "1 failed", False)),
        ("Exit code 1", True, None, (1, "", False)),
        ("Command running in background with ID: b1", False, {"stdout": ""}, (None, "", False)),
        (MOVED, False, None, (None, MOVED, False)),
        (f"1 passed\n{MOVED}", False, {"stdout": "1 passed"}, (None, "1 passed", False)),
        ("", False, {"stdout": "", "backgroundTaskId": "b1"}, (None, "", False)),
        ("", False, {"stdout": "", "returnCodeInterpretation": "No matches found"}, (None, "", False)),
        ("<persisted-output>", False, {"stdout": "begin", "persistedOutputPath": "/tmp/x"}, (0, "begin", True)),
    ],
)
def test_claude_code(words, error, shown, result):
    call = _claude("assistant", {"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "make test"}})
    block: dict[str, object] = {"type": "tool_result", "tool_use_id": "a", "content": words, "is_error": error}
    answer = _claude("user", block, **({"toolUseResult": shown} if shown is not None else {}))
    (act,) = acts_of(claude_code, call, answer)
    assert (act.kind, act.what, act.cwd) == (ActKind.COMMAND, "make test", PLACE)
    assert ended(act) == result
    assert not act.refused


def _codex(payload: dict[str, object], kind: str = "response_item") -> dict[str, object]:
    return {"timestamp": AT, "type": kind, "payload": payload}


def _exec(**arguments: object) -> dict[str, object]:
    written = json.dumps(arguments)
    return _codex({"type": "function_call", "name": "exec_command", "call_id": "a", "arguments": written})


@pytest.mark.parametrize(
    ("output", "result"),
    [
        ("Wall time: 1 s\nProcess exited with code 0\nOutput:\n3 passed\n", (0, "3 passed\n", False)),
        ("Wall time: 1 s\nProcess exited with code 1\nOutput:\n1 failed\n", (1, "1 failed\n", False)),
        ("Wall time: 10 s\nProcess running with session ID 7\nOutput:\n...", (None, "...", False)),
        ("Exit code: 0\nOutput:\na\n…12 tokens truncated…\nb", (0, "a\n…12 tokens truncated…\nb", False)),
    ],
)
def test_codex(output, result):
    answer = _codex({"type": "function_call_output", "call_id": "a", "output": output})
    (act,) = acts_of(codex, _exec(cmd="make test", workdir="/other"), answer)
    assert (act.what, act.cwd, ended(act)) == ("make test", "/other", result)


def test_codex_works_where_its_session_or_its_turn_does_and_does_not_do_what_its_parent_did():
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


@pytest.mark.parametrize(
    ("state", "result", "refused"),
    [
        ({"status": "completed", "output": "ok", "metadata": {"output": "ok", "exit": 0}}, (0, "ok", False), False),
        ({"status": "completed", "output": "no", "metadata": {"output": "no", "exit": 3}}, (3, "no", False), False),
        ({"status": "completed", "output": "", "metadata": {"output": "", "exit": None}}, (None, "", False), False),
        ({"status": "completed", "output": "a", "metadata": {"exit": 0, "truncated": True}}, (0, "a", True), False),
        ({"status": "error", "error": "The user rejected permission"}, None, True),
    ],
)
def test_opencode(state, result, refused):
    given = {"input": {"command": "make test", "workdir": PLACE}, "time": {"start": 1_000, "end": 3_000}}
    part = {"type": "tool", "tool": "bash", "callID": "a", "state": {**state, **given}}
    (act,) = acts_in([(0, list(opencode(part, 1.0)))])
    assert (act.what, act.cwd, act.at, act.ended_at) == ("make test", PLACE, 1.0, 3.0)
    assert (ended(act), act.refused) == (result, refused)


_QWEN = "Command: make test\nDirectory: (root)\nOutput: {}\nError: (none)\nExit Code: {}\nSignal: (none)"
_DECLINED = 'Qwen Code requires permission to use "run_shell_command", but that permission was declined'


@pytest.mark.parametrize(
    ("response", "status", "result", "refused"),
    [
        ({"output": _QWEN.format("3 passed", 0)}, "success", (0, "3 passed\n", False), False),
        ({"error": _QWEN.format("1 failed", 1)}, "error", (1, "1 failed\n", False), False),
        ({"output": _QWEN.format("(empty)", "(none)")}, "success", (None, "(empty)\n", False), False),
        ({"error": "[Operation Cancelled] Reason: User did not allow tool call"}, "cancelled", None, True),
        ({"error": f"{_DECLINED}."}, "error", None, True),
        ({"output": f"{_DECLINED} (non-interactive mode cannot prompt for confirmation)."}, "error", None, True),
        ({"error": "[Operation Cancelled] User cancelled tool execution."}, "cancelled", None, False),
    ],
)
def test_qwen(response, status, result, refused):
    common = {"timestamp": AT, "cwd": PLACE}
    call = {
        "functionCall": {"id": "a", "name": "run_shell_command", "args": {"command": "make test", "directory": "web"}}
    }
    answer = {"functionResponse": {"id": "a", "name": "run_shell_command", "response": response}}
    (act,) = acts_of(
        qwen,
        {**common, "type": "assistant", "message": {"parts": [call]}},
        {**common, "type": "tool_result", "message": {"parts": [answer]}, "toolCallResult": {"status": status}},
    )
    assert (act.what, act.cwd, act.refused) == ("make test", f"{PLACE}/web", refused)
    assert ended(act) == result


def _copilot(kind: str, **data: object) -> dict[str, object]:
    return {"type": kind, "timestamp": AT, "id": kind, "data": {"toolCallId": "a", "model": "small", **data}}


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"content": "3 passed\n<shellId: 0 completed with exit code 0>", "exitCode": 0}, (0, "3 passed", False)),
        ({"content": "1 failed\n<shellId: 0 completed with exit code 1>", "exitCode": 1}, (1, "1 failed", False)),
        ({"content": "<shellId: 0 is still running>"}, (None, "<shellId: 0 is still running>", False)),
    ],
)
def test_copilot(answer, result):
    shell = {"shellExecution": {"exitCode": answer["exitCode"]}} if "exitCode" in answer else {}
    (act,) = acts_of(
        copilot,
        _copilot("session.start", context={"cwd": PLACE}),
        _copilot("tool.execution_start", toolName="bash", arguments={"command": "make test"}),
        _copilot("tool.execution_complete", success=True, result={"content": answer["content"]}, **shell),
    )
    assert (act.what, act.cwd, ended(act)) == ("make test", PLACE, result)


_GEMINI = "<untrusted_context>\nOutput: {}\n{}Process Group PGID: 31074\n</untrusted_context>"


@pytest.mark.parametrize(
    ("told", "result"),
    [
        (_GEMINI.format("3 passed", ""), (0, "3 passed", False)),
        (_GEMINI.format("Exit Code: 0\n1 failed", "Exit Code: 1\n"), (1, "Exit Code: 0\n1 failed", False)),
        (_GEMINI.format("(empty)", "Signal: 9\n"), (None, "(empty)", False)),
        ("Command moved to background (PID: 7).", None),
    ],
)
def test_gemini(told, result):
    response = {"functionResponse": {"id": "a", "response": {"output": told}}}
    given = {"command": "make test", "dir_path": "web"}
    call = {"id": "a", "name": "run_shell_command", "args": given, "status": "success", "result": [response]}
    (act,) = acts_of(gemini, {"directories": [PLACE]}, {"type": "gemini", "timestamp": AT, "toolCalls": [call]})
    assert (act.what, act.cwd, ended(act)) == ("make test", f"{PLACE}/web", result)


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
def test_what_tools_do(tool, given, found):
    call = Entry(1.0, EntryKind.CALL, call="a", tool=tool, given=given)
    assert [(act.kind, act.what) for act in acts_in([(0, [call])])] == found


def test_a_transcript_that_cannot_be_read_whole_is_no_log(tmp_path):
    path = tmp_path / "child.jsonl"
    path.write_text('{"type": "user"}\n{"type": \n', "utf-8")
    with pytest.raises(OSError, match="cannot be read"):
        list(LinesTranscript(path, lambda: claude_code).records())
