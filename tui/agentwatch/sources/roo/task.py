"""One task: its history item, and its messages with what was asked, handed on and answered, and whom it waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from agentwatch.delegation.run import Message, Run, RunState, StartedBy, Turn
from agentwatch.sources.sessions.doing import Entry, EntryKind
from agentwatch.sources.sessions.fields import Fields, listed, mapping, number, object_in, text, todos_in, whole
from agentwatch.sources.sessions.runs import NO_CALL, Account, no_message, run_of

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


class Task(Account):
    """The fold of a history item and of a document with the messages, which may be anything."""

    def __init__(self, item: Fields, document: object, tell: Tell) -> None:
        super().__init__(no_message)
        self.item = item
        self._is_canceled = False
        """A human broke off its last request to the model."""
        self._last: Fields = {}
        messages = messages_in(document)
        for _, said in entries(messages):
            for entry in said:
                self.activity.add(entry)
        for message in messages:
            self._add(message, tell)
            self._last = self._last if message.get("ask") in _RESUMED else message
        status, at, asked = text(item, "status"), _moment(item), text(item, "task")
        self.touch(at)
        self.prompt = self.prompt or (tell(asked, at) if asked is not None else None)
        self.tokens = _tokens_in(item) or self.tokens
        is_over = self.state is RunState.ENDED
        # Before 2025-11 no task had a status: what it said last tells how it is.
        state = _STATES.get(status or ("completed" if is_over else ""), RunState.WORKING)
        if state is RunState.WORKING and self._is_canceled and status != "delegated":
            state = RunState.CANCELED
        if is_over and state is not RunState.ENDED:
            # A result that was not accepted.
            self.begin_round(Turn(self.ended_at or at))
            self.go_on(self.updated_at)
        self.state, self.ended_at = state, self.updated_at
        if state is RunState.CANCELED:
            self.reason = _CANCELED if self._is_canceled else status or ""

    @property
    def waiting(self) -> str:
        last, detail = self._last, _inside(self._last)
        what = _WAITING.get(text(last, "ask") or "")
        is_open = last.get("partial") is not True and last.get("isAnswered") is not True
        if what is None or not is_open or self.item.get("status") == "delegated":
            return ""
        words = text(last, "text") if last.get("ask") == "command" else None
        words = text(detail, "question") or text(detail, "tool") or words
        return f"{what}: {words[:_LONGEST]}" if words is not None else what

    def run(self, source: str, place: str) -> Run:
        return run_of(
            self,
            NO_CALL,
            self,
            source=source,
            session_id=text(self.item, "id") or "",
            parent=text(self.item, "parentTaskId"),
            place=place,
            link="its history item names the parent",
            agent=text(self.item, "mode"),
        )

    def _add(self, message: Fields, tell: Tell) -> None:
        at, say, words, inside = _moment(message), message.get("say"), text(message, "text"), _inside(message)
        if self.begun is None:
            self.begun, self.prompt = Turn(at), tell(words, at) if words is not None else None
        self.touch(at)
        if say == "completion_result" and message.get("partial") is not True and words is not None and words.strip():
            said = tell(words, at)
            self.end(RunState.ENDED, at)
            self.answer = lambda: said
        elif say == "user_feedback" and self.state is RunState.ENDED and words is not None:
            self.begin_round(Turn(at, tell(words, at), StartedBy.PARENT))
            self.go_on(at)
        elif say == "api_req_started":
            if self.state is RunState.ENDED:
                self.begin_round(Turn(at))
                self.go_on(at)
            self._is_canceled = text(inside, "cancelReason") == _CANCELED
            self.tokens += _tokens_in(inside)
        elif text(inside, "tool") == "updateTodoList":
            self.list(todos_in(listed(inside, "todos"), "content") or self.todos, at)


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
