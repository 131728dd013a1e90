"""One task: its history item, and its messages with what was asked, handed on and answered, and whom it waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Final

from agentwatch.delegation.run import Message, Run, RunState, StartedBy, Turn
from agentwatch.sources.sessions.doing import Entry, EntryKind
from agentwatch.sources.sessions.fields import Fields, listed, mapping, number, object_in, text, todos_in, whole
from agentwatch.sources.sessions.runs import NO_CALL, Account, Standing, no_message, run_of

_CANCELED: Final = "user_cancelled"
"""Why a request to the model was broken off, in the extension's word."""
_STATES: Final = {
    "active": RunState.WORKING,
    "delegated": RunState.WORKING,
    "completed": RunState.ENDED,
    "interrupted": RunState.CANCELED,
    "aborted": RunState.CANCELED,
}
_WAITING: Final = {
    "followup": "an answer",
    "command": "an approval of a command",
    "tool": "an approval of a tool",
    "use_mcp_server": "an approval of a tool",
    "browser_action_launch": "an approval of a browser",
    "api_req_failed": "a retry of the model",
    "mistake_limit_reached": "help after too many mistakes",
    "auto_approval_max_req_reached": "leave to go on",
}
_RESUMED: Final = ("resume_task", "resume_completed_task")
"""Asked when a task is only looked at again."""
_LONGEST: Final = 500
_SAID: Final = {
    "text": EntryKind.WORDS,
    "completion_result": EntryKind.WORDS,
    "reasoning": EntryKind.THOUGHT,
    "user_feedback": EntryKind.PROMPT,
    "error": EntryKind.NOTE,
    "diff_error": EntryKind.NOTE,
    "rooignore_error": EntryKind.NOTE,
    "shell_integration_warning": EntryKind.NOTE,
    "condense_context": EntryKind.NOTE,
}
_TOOLS: Final = {"command": "execute_command", "followup": "ask_followup_question"}
"""A question to a human by a tool without an object of its own, and the tool."""

Tell = Callable[[str, float], Message]
"""Makes a message of a text and its time."""


def run_in(item: Fields, document: object, tell: Tell, *, source: str, place: str) -> Run:
    """The run of a task, out of its history item and a document with its messages, which may be anything."""
    messages, task = messages_in(document), Account(no_message)
    for _, said in entries(messages):
        for entry in said:
            task.activity.add(entry)
    for message in messages:
        _add(task, message, tell)
    status, at, asked = text(item, "status"), _moment(item), text(item, "task")
    task.touch(at)
    task.prompt = task.prompt or (tell(asked, at) if asked is not None else None)
    task.tokens = _tokens_in(item) or task.tokens
    is_over, reason = task.state is RunState.ENDED, task.reason or status or ""
    # Before 2025-11 no task had a status: what it said last tells how it is.
    state = _STATES.get(status or ("completed" if is_over else ""), RunState.WORKING)
    if state is RunState.WORKING and task.reason and status != "delegated":
        state = RunState.CANCELED
    if is_over and state is not RunState.ENDED:
        # A result that was not accepted.
        task.begin_round(Turn(task.ended_at or at))
    run = run_of(
        task,
        NO_CALL,
        Standing(state, reason if state is RunState.CANCELED else "", task.said, task.updated_at),
        source=source,
        session_id=text(item, "id") or "",
        parent=text(item, "parentTaskId"),
        place=place,
        link="its history item names the parent",
        agent=text(item, "mode"),
    )
    last = next((one for one in reversed(messages) if one.get("ask") not in _RESUMED), {})
    return replace(run, waiting=_waits(last) if state is RunState.WORKING and status != "delegated" else "")


def _add(task: Account, message: Fields, tell: Tell) -> None:
    """Fold in a message. A request to the model that a human broke off is the reason until the next one."""
    at, say, words, inside = _moment(message), message.get("say"), text(message, "text"), _inside(message)
    if task.begun is None:
        task.begun, task.prompt = Turn(at), tell(words, at) if words is not None else None
    task.touch(at)
    if say == "completion_result" and message.get("partial") is not True and words is not None and words.strip():
        said = tell(words, at)
        task.end(RunState.ENDED, at, task.reason)
        task.answer = lambda: said
    elif say in ("user_feedback", "api_req_started"):
        if task.state is RunState.ENDED:
            prompt = tell(words, at) if words is not None and say == "user_feedback" else None
            task.begin_round(Turn(at, prompt, StartedBy.PARENT if prompt is not None else StartedBy.PROGRAM))
            task.go_on(at)
        if say == "api_req_started":
            task.reason = _CANCELED if text(inside, "cancelReason") == _CANCELED else ""
            task.tokens += _tokens_in(inside)
    elif text(inside, "tool") == "updateTodoList":
        task.list(todos_in(listed(inside, "todos"), "content") or task.todos, at)


def _waits(last: Fields) -> str:
    """What a task waits for from a human by its last message, "" for nothing."""
    what, inside = _WAITING.get(text(last, "ask") or ""), _inside(last)
    if what is None or last.get("partial") is True or last.get("isAnswered") is True:
        return ""
    words = text(inside, "question") or text(inside, "tool")
    words = words or (text(last, "text") if last.get("ask") == "command" else None)
    return f"{what}: {words[:_LONGEST]}" if words is not None else what


def texts_in(value: object) -> Iterator[str]:
    """All the texts of a history item, or of a list of messages, to find one of them again."""
    yield from filter(None, (text(mapping(value), "task"), *(text(one, "text") for one in messages_in(value))))


def messages_in(value: object) -> list[Fields]:
    """The list of messages in a document."""
    return [mapping(message) for message in value] if isinstance(value, list) else []


def _tokens_in(fields: Fields) -> int:
    return (whole(fields, "tokensIn") or 0) + (whole(fields, "tokensOut") or 0)


def _moment(fields: Fields) -> float:
    return (number(fields, "ts") or 0.0) / 1000


def _inside(message: Fields) -> Fields:
    """The object that some messages have as their text."""
    words = text(message, "text") or ""
    return object_in(words) if words.startswith("{") else {}


def entries(messages: Sequence[Fields]) -> Iterator[tuple[int, list[Entry]]]:
    """(number of the message, what it says) of those that say something. A call is over once something follows it.

    The store does not say what came of a tool, but for commands and MCP servers, nor whether a human refused it.
    """
    for place, (message, following) in enumerate(zip_longest(messages, messages[1:])):
        entry = _entry(message, is_first=place == 0)
        if entry is not None and entry.kind is EntryKind.CALL and following is not None:
            is_result = text(following, "say") in ("command_output", "mcp_server_response")
            words = (text(following, "text") or "") if is_result else ""
            yield place, [entry, Entry(_moment(following), EntryKind.RESULT, words, entry.call)]
        elif entry is not None:
            yield place, [entry]


def _entry(message: Fields, *, is_first: bool) -> Entry | None:
    at, fields = _moment(message), _inside(message)
    words, say, ask = text(message, "text") or "", text(message, "say"), text(message, "ask")
    if is_first and words.strip():
        return Entry(at, EntryKind.PROMPT, words)
    if say in _SAID and words.strip():
        return Entry(at, _SAID[say], words, failed="error" in say)
    if ask == "api_req_failed" or (say == "api_req_started" and "cancelReason" in fields):
        reason = text(fields, "streamingFailedMessage") or text(fields, "cancelReason") or words
        why = "broken off by the user" if reason == _CANCELED else reason
        return Entry(at, EntryKind.NOTE, why, failed=True)
    tool, given = _TOOLS.get(ask or ""), fields or {"command": words}
    if "tool" in (ask, say):
        tool, given = text(fields, "tool") or "tool", {key: value for key, value in fields.items() if key != "tool"}
        if tool == "newTask":
            given["prompt"] = given.pop("content", "")
    elif ask == "use_mcp_server":
        names = ("mcp", text(fields, "serverName"), text(fields, "toolName") or text(fields, "uri"))
        tool, given = "__".join(filter(None, names)), object_in(text(fields, "arguments"))
    return Entry(at, EntryKind.CALL, "", "call", tool, given) if tool is not None else None
