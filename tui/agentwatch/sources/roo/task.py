"""One task: its history item, and its messages with what was asked, handed on and answered, and whom it waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Final, NamedTuple

from agentwatch.contracts.shapes import Todo
from agentwatch.delegation.run import Activity, Message, RunState, StartedBy, Turn
from agentwatch.sources.sessions.doing import ActivityLog, Entry, EntryKind
from agentwatch.sources.sessions.fields import (
    Fields,
    digest_of,
    listed,
    mapping,
    number,
    object_in,
    text,
    todos_in,
    whole,
)
from agentwatch.sources.sessions.following import WholeTranscript
from agentwatch.sources.sessions.runs import KEPT_ROUNDS, Rising
from agentwatch.sources.sessions.tail import Stamp, document, stamp_of

CANCELED: Final = "user_cancelled"
"""Why a request to the model was broken off, in the extension's word."""
MOST_BYTES: Final = 64 * 1024 * 1024
LONG: Final = 1024 * 1024
SHARE: Final = 10.0
"""A task that works is written anew with each message; reading one of so many bytes may take a tenth of the time."""

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
_ERRORS: Final = ("error", "diff_error", "rooignore_error")
_TOOLS: Final = {"command": "execute_command", "followup": "ask_followup_question"}
"""A question to a human by a tool without an object of its own, and the tool."""
_LATEST: Final = 200
"""Messages that tell what a task does, and how often it has done so."""
_RESULTS: Final = ("command_output", "mcp_server_response")

Tell = Callable[[str, float], Message]
"""Makes a message of a text and its time."""


class NewTask(NamedTuple):
    """A call of `new_task`: the words that were handed over, by digest, and when. `asked_at` is that of a run."""

    words: str
    at: float
    asked_at: float


@dataclass(slots=True)
class Item:
    """A history item. `at` is the time of its last message, in seconds since the epoch."""

    id: str
    parent: str | None
    workspace: str
    status: str | None
    at: float
    task: Message | None
    mode: str | None
    tokens: int | None


@dataclass(slots=True)
class Talk:
    """Fold the messages of a task."""

    began_at: float | None = None
    last_at: float | None = None
    prompt: Message | None = None
    rounds: list[Turn] = field(default_factory=list)
    """Those that ended with a result, and behind them the one that has not ended, which says what is asked now."""
    todos: tuple[Todo, ...] | None = None
    finished: bool = False
    """Its last word is a result."""
    canceled: bool = False
    """A human broke off its last request to the model."""
    waiting: str = ""
    words: str = ""
    """The prompt, as in a call."""
    calls: list[NewTask] = field(default_factory=list)
    calling: bool = False
    """Its last word is a call."""
    tokens: int = 0
    doing: Activity | None = None


def item_of(value: object, tell: Tell) -> Item | None:
    """The history item in a document, None where it is none."""
    fields = mapping(value)
    task, asked = text(fields, "id"), text(fields, "task")
    if task is None:
        return None
    at = (number(fields, "ts") or 0.0) / 1000
    return Item(
        id=task,
        parent=text(fields, "parentTaskId"),
        workspace=text(fields, "workspace") or "",
        status=text(fields, "status"),
        at=at,
        task=tell(asked, at) if asked is not None else None,
        mode=text(fields, "mode"),
        tokens=_tokens_in(fields) or None,
    )


def talk_of(value: object, tell: Tell) -> Talk:
    """Fold the list of messages in a document."""
    messages = _messages(value)
    talk = Talk()
    if not messages:
        return talk
    times = [time / 1000 for message in messages if (time := number(message, "ts")) is not None]
    talk.began_at, talk.last_at = (times[0], times[-1]) if times else (None, None)
    first = text(messages[0], "text")
    talk.prompt = tell(first, talk.began_at or 0.0) if first is not None else None
    talk.words = _digest(first or "")
    begun, rising = Turn(talk.began_at or 0.0), Rising()
    for message in messages:
        at = _moment(message)
        say, words, inside = message.get("say"), text(message, "text"), _inside(message)
        if say == "completion_result" and message.get("partial") is not True and words is not None and words.strip():
            talk.rounds.append(replace(begun, state=RunState.ENDED, said=tell(words, at), ended_at=at))
            begun = Turn(at)
        elif say == "user_feedback" and talk.rounds and begun.prompt is None and words is not None:
            begun = Turn(at, tell(words, at), StartedBy.PARENT)
        elif say == "api_req_started":
            talk.canceled = text(inside, "cancelReason") == CANCELED
            talk.tokens += _tokens_in(inside)
        elif message.get("ask") == "tool" or say == "user_edit_todos":
            if text(inside, "tool") == "updateTodoList":
                talk.todos = todos_in(listed(inside, "todos"), "content") or talk.todos
            if text(inside, "tool") == "newTask" and message.get("partial") is not True:
                talk.calls.append(NewTask(_digest(text(inside, "content") or ""), at, rising(at)))
    talk.rounds = [*talk.rounds[-KEPT_ROUNDS:], begun] if talk.rounds else []
    last = next((message for message in reversed(messages) if message.get("ask") not in _RESUMED), messages[-1])
    talk.finished, talk.waiting = _is_finished(messages), _waiting(last)
    talk.calling = text(_inside(last), "tool") == "newTask"
    talk.doing = _doing(messages[-_LATEST:])
    return talk


def texts_in(value: object) -> Iterator[str]:
    """All the texts of a history item, or of a list of messages, to find one of them again."""
    yield from filter(None, (text(mapping(value), "task"), *(text(one, "text") for one in _messages(value))))


def _messages(value: object) -> list[Fields]:
    return [mapping(message) for message in value] if isinstance(value, list) else []


def _tokens_in(fields: Fields) -> int:
    return (whole(fields, "tokensIn") or 0) + (whole(fields, "tokensOut") or 0)


def _is_finished(messages: Sequence[Fields]) -> bool:
    """Whether the last word is a result; what only frames it is none."""
    for message in reversed(messages):
        if "completion_result" in (message.get("ask"), message.get("say")):
            return message.get("partial") is not True
        framing = message.get("ask") in _RESUMED or message.get("say") == "checkpoint_saved"
        if not framing and text(_inside(message), "tool") != "finishTask":
            return False
    return False


def _digest(words: str) -> str:
    """Of words that were handed over; the caller's are escaped once more where they name a file with @."""
    return digest_of(words.replace("\\\\@", "\\@").strip())


def _waiting(message: Fields) -> str:
    what = _WAITING.get(text(message, "ask") or "")
    if what is None or message.get("partial") is True or message.get("isAnswered") is True:
        return ""
    fields = _inside(message)
    detail = text(fields, "question") or text(fields, "tool")
    if detail is None and message.get("ask") == "command":
        detail = text(message, "text")
    return f"{what}: {detail[:_LONGEST]}" if detail is not None else what


def _inside(message: Fields) -> Fields:
    """The object that some messages have as their text."""
    words = text(message, "text") or ""
    return object_in(words) if words.startswith("{") else {}


def _doing(messages: Sequence[Fields]) -> Activity | None:
    activity = ActivityLog()
    todos: tuple[Todo, ...] | None = None
    for _, said in entries(messages):
        for entry in said:
            activity.add(entry)
            if entry.kind is EntryKind.CALL and entry.tool == "updateTodoList":
                before, todos = todos, todos_in(listed(entry.given, "todos"), "content") or todos
                activity.list(before, todos, entry.at)
    return activity.doing


def entries(messages: Sequence[Fields]) -> Iterator[tuple[int, list[Entry]]]:
    """(number of the message, what it says) of those that say something. A call is over once something follows it.

    The store does not say what came of a tool, but for commands and MCP servers, nor whether a human refused it.
    """
    for place, (message, following) in enumerate(zip_longest(messages, messages[1:])):
        entry = _entry(message, is_first=place == 0)
        if entry is not None and entry.kind is EntryKind.CALL and following is not None:
            words = (text(following, "text") or "") if text(following, "say") in _RESULTS else ""
            yield place, [entry, Entry(_moment(following), EntryKind.RESULT, words, entry.call)]
        elif entry is not None:
            yield place, [entry]


def _moment(message: Fields) -> float:
    return (number(message, "ts") or 0.0) / 1000


def _entry(message: Fields, *, is_first: bool) -> Entry | None:
    at, fields = _moment(message), _inside(message)
    words, say, ask = text(message, "text") or "", text(message, "say"), text(message, "ask")
    if is_first and words.strip():
        return Entry(at, EntryKind.PROMPT, words)
    if say in _SAID and words.strip():
        return Entry(at, _SAID[say], words, failed=say in _ERRORS)
    if say == "api_req_started" and (reason := text(fields, "cancelReason")) is not None:
        why = "broken off by the user" if reason == CANCELED else reason
        return Entry(at, EntryKind.NOTE, text(fields, "streamingFailedMessage") or why, failed=True)
    if ask == "api_req_failed":
        return Entry(at, EntryKind.NOTE, words, failed=True)
    if "tool" in (ask, say):
        given = {key: value for key, value in fields.items() if key != "tool"}
        if text(fields, "tool") == "newTask":
            given["prompt"] = given.pop("content", "")
        return Entry(at, EntryKind.CALL, "", "call", text(fields, "tool") or "tool", given)
    if ask == "use_mcp_server":
        names = ("mcp", text(fields, "serverName"), text(fields, "toolName") or text(fields, "uri"))
        arguments = _inside({"text": fields.get("arguments")})
        return Entry(at, EntryKind.CALL, "", "call", "__".join(filter(None, names)), arguments)
    if ask in _TOOLS:
        return Entry(at, EntryKind.CALL, "", "call", _TOOLS[ask], fields or {"command": words})
    return None


class TalkTranscript(WholeTranscript):
    """The messages of a task, a file that is replaced as a whole; half of it is no document yet."""

    def stamp(self) -> Stamp:
        return stamp_of(self._path.stat(follow_symlinks=False))

    def load(self) -> Iterator[tuple[int, list[Entry]]]:
        return entries(_messages(document(self._path, MOST_BYTES)))
