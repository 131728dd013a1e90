"""One task: its history item, and its messages with what was asked, handed on and answered, and whom it waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from agentwatch.contracts.shapes import Todo
from agentwatch.delegation.run import Message, RunState, StartedBy, Turn
from agentwatch.sources.sessions.fields import Fields, listed, mapping, number, object_in, text, todos_in, whole
from agentwatch.sources.sessions.reader import digest_of
from agentwatch.sources.sessions.runs import KEPT_ROUNDS, Rising

CANCELED: Final = "user_cancelled"
"""Why a request to the model was broken off, in the extension's word."""

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


class Item(NamedTuple):
    """A history item. `at` is the time of its last message, in seconds since the epoch."""

    id: str
    parent: str | None = None
    workspace: str = ""
    status: str | None = None
    at: float = 0.0
    task: Message | None = None
    mode: str | None = None
    tokens: int | None = None


def item_of(value: object, told: Callable[[str, float], Message]) -> Item | None:
    """The history item in a document, None where it is none; `told` makes a message of a text and its time."""
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
        task=told(asked, at) if asked is not None else None,
        mode=text(fields, "mode"),
        tokens=((whole(fields, "tokensIn") or 0) + (whole(fields, "tokensOut") or 0)) or None,
    )


class NewTask(NamedTuple):
    """A call of `new_task`: the words that were handed over, by digest, and when. `asked_at` is that of a run."""

    words: str
    at: float
    asked_at: float


class Talk(NamedTuple):
    """What the messages of a task come to."""

    began_at: float | None = None
    last_at: float | None = None
    prompt: Message | None = None
    results: tuple[Message, ...] = ()
    """What it returned, oldest first; all but the last were answered by a human."""
    rounds: tuple[Turn, ...] = ()
    """Those that ended with these, and behind them the one that has not ended; nothing where it returned nothing."""
    todos: tuple[Todo, ...] | None = None
    finished: bool = False
    """Its last word is a result."""
    canceled: bool = False
    """A human broke off its last request to the model."""
    waiting: str = ""
    words: str = ""
    """The prompt, as in a call."""
    calls: tuple[NewTask, ...] = ()
    calling: bool = False
    """Its last word is a call."""
    tokens: int | None = None


def talk_of(value: object, told: Callable[[str, float], Message]) -> Talk:
    """What the list of messages in a document comes to; `told` makes a message of a text and its time."""
    messages = [mapping(entry) for entry in value] if isinstance(value, list) else []
    if not messages:
        return Talk()
    times = [time / 1000 for message in messages if (time := number(message, "ts")) is not None]
    began_at, last_at = (times[0], times[-1]) if times else (None, None)
    first = text(messages[0], "text")
    results: list[Message] = []
    rounds: list[Turn] = []
    begun = Turn(began_at or 0.0)
    calls: list[NewTask] = []
    rising = Rising()
    todos: tuple[Todo, ...] | None = None
    tokens, canceled = 0, False
    for message in messages:
        at = (number(message, "ts") or 0.0) / 1000
        result = _result(message)
        if result is not None:
            results.append(told(result, at))
            rounds.append(replace(begun, state=RunState.ENDED, said=results[-1], ended_at=at))
            begun = Turn(at)
        elif message.get("say") == "user_feedback" and results and begun.prompt is None:
            if (feedback := text(message, "text")) is not None:
                begun = Turn(at, told(feedback, at), StartedBy.PARENT)
        elif message.get("say") == "api_req_started":
            request = inside(message)
            canceled = text(request, "cancelReason") == CANCELED
            tokens += (whole(request, "tokensIn") or 0) + (whole(request, "tokensOut") or 0)
        elif message.get("ask") == "tool" or message.get("say") == "user_edit_todos":
            tool = inside(message)
            if text(tool, "tool") == "updateTodoList":
                todos = todos_in(listed(tool, "todos"), "content") or todos
            if text(tool, "tool") == "newTask" and message.get("partial") is not True:
                calls.append(NewTask(_digest(text(tool, "content") or ""), at, rising(at)))
    last = next((message for message in reversed(messages) if message.get("ask") not in _RESUMED), messages[-1])
    return Talk(
        began_at=began_at,
        last_at=last_at,
        prompt=told(first, began_at or 0.0) if first is not None else None,
        results=tuple(results[-KEPT_ROUNDS:]),
        rounds=(*rounds[-KEPT_ROUNDS:], begun) if rounds else (),
        todos=todos,
        finished=_is_finished(messages),
        canceled=canceled,
        waiting=_waiting(last),
        words=_digest(first or ""),
        calls=tuple(calls),
        calling=text(inside(last), "tool") == "newTask",
        tokens=tokens or None,
    )


def texts_in(value: object) -> Iterator[str]:
    """All the texts of a history item, or of a list of messages, to find one of them again."""
    entries = value if isinstance(value, list) else ()
    yield from filter(None, (text(mapping(value), "task"), *(text(mapping(entry), "text") for entry in entries)))


def _result(message: Fields) -> str | None:
    if message.get("say") != "completion_result" or message.get("partial") is True:
        return None
    words = text(message, "text")
    return words if words is not None and words.strip() else None


def _is_finished(messages: Sequence[Fields]) -> bool:
    """Whether the last word is a result; what only frames it is none."""
    for message in reversed(messages):
        if "completion_result" in (message.get("ask"), message.get("say")):
            return message.get("partial") is not True
        framing = message.get("ask") in _RESUMED or message.get("say") == "checkpoint_saved"
        if not framing and text(inside(message), "tool") != "finishTask":
            return False
    return False


def _digest(words: str) -> str:
    """Of words that were handed over; the caller's are escaped once more where they name a file with @."""
    return digest_of(words.replace("\\\\@", "\\@").strip())


def _waiting(message: Fields) -> str:
    what = _WAITING.get(text(message, "ask") or "")
    if what is None or message.get("partial") is True or message.get("isAnswered") is True:
        return ""
    fields = inside(message)
    detail = text(fields, "question") or text(fields, "tool")
    if detail is None and message.get("ask") == "command":
        detail = text(message, "text")
    return f"{what}: {detail[:_LONGEST]}" if detail is not None else what


def inside(message: Fields) -> Fields:
    """The object that some messages have as their text."""
    words = text(message, "text") or ""
    return object_in(words) if words.startswith("{") else {}
