"""Parse messages and parts of a session for the delegation and for permissions."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final, NamedTuple

from agentwatch.delegation.request import input_text
from agentwatch.delegation.run import Permit, Permitter
from agentwatch.sources.opencode.tables import LATEST, RecordRow
from agentwatch.sources.sessions.fields import Fields, inner, listed, mapping, text, whole

_TASK: Final = "task"
_REFUSED: Final = "invalid"
"""OpenCode notes a call of a tool that is not there under this name, and keeps only that tool's name of it."""
_QUESTION: Final = "question"
_TODOS: Final = "todowrite"
_AT_ONCE: Final = ("bash", "edit", "write", "patch", "apply_patch", "multiedit", "read", "glob", "grep", "list")
"""Tools that tell of their work within a second, so that one that stays silent has not been allowed to begin."""

_OPEN: Final = frozenset({"pending", "running"})
_OVER: Final = frozenset({"completed", "error"})
_KNOWN: Final = _OPEN | _OVER
_CONTINUED: Final = frozenset({"tool-calls", "unknown"})
_ABORTED: Final = "MessageAbortedError"

_FRAME: Final = re.compile(
    r'<task id="(?P<id>[^"\n]{1,200})" state="(?P<state>[a-z]{1,20})">\n(?:<summary>[^\n]*</summary>\n)?'
)
_OLDER_FRAME: Final = re.compile(r"task_id: (?P<id>\S{1,200})[^\n]*\n\s*(?=<task_result>\n)")
_BODY: Final = re.compile(r"<(task_result|task_error)>\n(?P<body>.*)\n</\1>", re.DOTALL)
_REJECTED: Final = "The user rejected permission to use this specific tool call"
_FEEDBACK: Final = " with the following feedback: "
_RULE: Final = "The user has specified a rule which prevents you from using this specific tool call"
_DISMISSED: Final = "The user dismissed this question"
_LONGEST: Final = 2_000
_MOST_TOKENS: Final = 10**9


class TurnRecord(NamedTuple):
    """A message. Times are in milliseconds, 0 where there is none.

    `is_ended`: after it the program does not go on by itself. `error` is in the program's words, "" where there is
    none. `is_summary`: it shortens the conversation and is no part of it; `asked_by` is the message it answers.
    """

    id: str
    created: int
    updated: int
    is_user: bool
    completed: int = 0
    is_ended: bool = False
    is_aborted: bool = False
    error: str = ""
    is_summary: bool = False
    asked_by: str | None = None
    agent: str | None = None
    mode: str | None = None
    model: str | None = None
    tokens: int | None = None


class ToolCall(NamedTuple):
    """A tool call that matters: a task handed out, or any call while it is open.

    `child` is the session of a task, None as long as there is none. `is_open`: neither completed nor failed.
    `waits` says what an open call waits for if nothing comes of it: "an answer: …", "" where it may just be working.
    `row` and `created` are those of its record.
    """

    id: str
    message: str
    call_id: str
    updated: int
    is_task: bool
    is_open: bool
    error: str
    child: str | None
    title: str | None
    agent: str | None
    is_background: bool
    is_answered_later: bool
    started: int
    ended: int
    waits: str
    waits_surely: bool
    row: int
    created: int


class Notice(NamedTuple):
    """What the program itself tells a parent of a child in the background, once that is over."""

    id: str
    message: str
    child: str
    is_error: bool
    text: str


def turn_of(record: RecordRow) -> TurnRecord:
    """What a message says; of one that cannot be read, only that it is there."""
    data = record.data
    created, agent = _when(data, "created") or record.created, text(data, "agent")
    if data.get("role") == "user":
        return TurnRecord(record.id, created, record.updated, is_user=True, agent=agent)
    completed = _when(data, "completed")
    finish, error = text(data, "finish"), _error_in(data)
    provider, model = text(data, "providerID"), text(data, "modelID")
    return TurnRecord(
        record.id,
        created,
        record.updated,
        is_user=False,
        completed=completed,
        is_ended=bool(completed) and finish is not None and finish not in _CONTINUED and not error,
        is_aborted=inner(data, "error").get("name") == _ABORTED,
        error=error,
        is_summary=data.get("summary") is True,
        asked_by=text(data, "parentID"),
        agent=agent,
        mode=text(data, "mode"),
        model=f"{provider}/{model}" if provider and model else model,
        tokens=_tokens_in(inner(data, "tokens")),
    )


def has_words(record: RecordRow) -> bool:
    """Whether a part is a text with a word in it that a person or a model wrote, not the program."""
    data = record.data
    is_theirs = data.get("synthetic") is not True and data.get("ignored") is not True
    return data.get("type") == "text" and is_theirs and bool((text(data, "text") or "").strip())


def notice_of(record: RecordRow) -> Notice | None:
    """A notice about a child; None where the part is something else."""
    data = record.data
    said = text(data, "text") if data.get("synthetic") is True else None
    frame = _FRAME.match(said) if said is not None else None
    if said is None or frame is None or record.message_id is None or frame["state"] not in _OVER:
        return None
    words = (_unframed(said) or "")[:_LONGEST]
    return Notice(record.id, record.message_id, frame["id"], frame["state"] == "error", words)


def call_of(record: RecordRow) -> ToolCall | None:
    """A call that matters; None where the part is something else."""
    data = record.data
    tool, state = text(data, "tool") or "", inner(data, "state")
    status = text(state, "status") or ""
    given, told = inner(state, "input"), inner(state, "metadata")
    is_refused = tool == _REFUSED and text(given, "tool") == _TASK and status == "completed"
    is_task = tool == _TASK or is_refused
    matters = status in _OPEN or (is_task and status in _OVER)
    if data.get("type") != "tool" or record.message_id is None or not matters:
        return None
    output = text(state, "output") or ""
    frame = _FRAME.match(output) or _OLDER_FRAME.match(output)
    has_failed = is_refused or status == "error"
    child = text(told, "sessionId") or text(told, "sessionID") or (frame["id"] if frame else None)
    return ToolCall(
        id=record.id,
        message=record.message_id,
        call_id=text(data, "callID") or record.id,
        updated=record.updated,
        is_task=is_task,
        is_open=status in _OPEN,
        error=(text(given if is_refused else state, "error") or "it failed")[:_LONGEST] if has_failed else "",
        child=child if is_task else None,
        title=text(given, "description"),
        agent=text(given, "subagent_type"),
        is_background=given.get("background") is True or told.get("background") is True,
        is_answered_later=frame is not None and frame.groupdict().get("state") == "running",
        started=_when(state, "start") or record.created,
        ended=_when(state, "end"),
        waits=_waits(tool, given, told) if status == "running" else "",
        waits_surely=tool == _QUESTION,
        row=record.row,
        created=record.created,
    )


def is_strange(record: RecordRow) -> bool:
    """Whether what a record says is lost: it is no JSON object, or where it matters too large or of unknown shape."""
    data = record.data
    if data.get("type") == "text":
        return record.is_cut or not isinstance(data.get("text"), str)
    is_odd = record.is_cut or text(inner(data, "state"), "status") not in _KNOWN
    return record.is_lost or (text(data, "tool") == _TASK and is_odd)


def todos_of(record: RecordRow) -> list[tuple[str, str]] | None:
    """(text, status) of the checklist that a call wrote; None where the part is something else."""
    data = record.data
    if data.get("type") != "tool" or text(data, "tool") != _TODOS:
        return None
    rows = (mapping(row) for row in listed(inner(data, "state", "input"), "todos"))
    return [(content, text(row, "status") or "") for row in rows if (content := text(row, "content"))]


def prompt_in(record: RecordRow) -> str | None:
    """What a task call handed over."""
    return text(inner(record.data, "state", "input"), "prompt")


def output_in(record: RecordRow) -> str | None:
    """What a task call was answered, without the program's frame."""
    return _unframed(text(inner(record.data, "state"), "output") or "")


def permit_of(record: RecordRow) -> Permit | None:
    """The outcome of a finished call; None where the part is something else."""
    data = record.data
    state = inner(data, "state")
    status, told = text(state, "status"), inner(state, "metadata")
    if data.get("type") != "tool" or record.message_id is None or status not in ("completed", "error"):
        return None
    error, words = text(state, "error") or "", ""
    allowed: bool | None = status == "completed" and told.get("dismissed") is not True
    # OpenCode does not say whether anybody was asked. Kilo does, and not whether that was at its terminal.
    source = text(inner(told, "approval"), "source")
    by = Permitter.UNKNOWN if source in (None, "manual") else Permitter.RULE
    if error.startswith(_REJECTED):
        words = error.partition(_FEEDBACK)[2]
    elif error.startswith(_RULE):
        by = Permitter.RULE
    elif error and error != _DISMISSED:
        # It began and failed, or was stopped while it waited: that does not say.
        allowed = None
    elif allowed and text(data, "tool") == "question":
        asked = [text(mapping(one), "question") or "" for one in listed(inner(state, "input"), "questions")]
        answers = [", ".join(map(str, one)) if isinstance(one, list) else "" for one in listed(told, "answers")]
        with suppress(ValueError):
            words = input_text(dict(zip(asked, answers, strict=False)))[0]
    at = (whole(inner(state, "time"), "end") or record.updated) / 1000
    call_id = text(data, "callID") or record.id
    return Permit(call_id, text(data, "tool") or "", "", allowed, by, at, words[:_LONGEST])


def _unframed(output: str) -> str | None:
    """The text inside of `<task id=… state=…><task_result>…`, or of the older frame, or bare; None without a word."""
    frame = _FRAME.match(output) or _OLDER_FRAME.match(output)
    if frame is None:
        return output if output.strip() else None
    body = _BODY.match(output, frame.end())
    return body["body"] if body and body["body"].strip() else None


def _waits(tool: str, given: Fields, told: Fields) -> str:
    if tool == _QUESTION:
        asked = text(mapping(next(iter(listed(given, "questions")), None)), "question")
        return f"an answer: {asked[:200]}" if asked else "an answer"
    if tool == _TASK:
        return "" if text(told, "sessionId") or "approval" in told else "a permission, it seems: task"
    # Kilo writes the approval into the metadata, and the shell its output, as soon as either may begin.
    if tool not in _AT_ONCE or told:
        return ""
    what = text(given, "command") or text(given, "filePath") or text(given, "path") or text(given, "pattern")
    return f"a permission, it seems: {tool} {what[:200]}" if what else f"a permission, it seems: {tool}"


def _when(fields: Fields, key: str) -> int:
    """A time of the program in milliseconds; 0 where there is none in our centuries."""
    at = whole(inner(fields, "time"), key) or 0
    return at if 0 < at < LATEST else 0


def _error_in(data: Fields) -> str:
    error = data.get("error")
    if error is None:
        return ""
    fields = mapping(error)
    words = text(inner(fields, "data"), "message") or text(fields, "message") or text(fields, "name")
    return (words or text(data, "error") or "it failed")[:_LONGEST]


def _tokens_in(tokens: Fields) -> int | None:
    """What was read anew and written; what came from the cache is not counted again with each message."""
    parts = [*(whole(tokens, key) for key in ("input", "output", "reasoning")), whole(inner(tokens, "cache"), "write")]
    known = [part for part in parts if part is not None]
    count = sum(known) if known else whole(tokens, "total")
    return count if count is not None and 0 <= count < _MOST_TOKENS else None
