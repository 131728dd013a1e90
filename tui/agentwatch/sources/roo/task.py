"""One task: what its history item and its messages say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from agentwatch.contracts.shapes import Todo, TodoStatus
from agentwatch.delegation.run import Message, Run, RunState
from agentwatch.sources.sessions.fields import Fields, listed, mapping, number, text, whole

NAME: Final = "roo"

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
_TODO_STATUSES: Final = {"completed": TodoStatus.DONE, "in_progress": TodoStatus.IN_PROGRESS}
_LONGEST: Final = 500
_MOST_TODOS: Final = 1000
_KEPT_ROUNDS: Final = 100


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Talk:
    """What the messages of a task come to."""

    began_at: float | None = None
    last_at: float | None = None
    prompt: Message | None = None
    results: tuple[Message, ...] = ()
    """What it returned, oldest first; all but the last were answered by a human."""
    todos: tuple[Todo, ...] | None = None
    finished: bool = False
    """Its last word is a result."""
    waiting: str = ""


def item_of(value: object, told: Callable[[str, float], Message]) -> Item | None:
    """The history item in a document, None where it is none; `told` makes a message of a text and its time."""
    fields = mapping(value)
    task = text(fields, "id")
    if task is None:
        return None
    at = (number(fields, "ts") or 0.0) / 1000
    asked = text(fields, "task")
    parts = [whole(fields, key) for key in ("tokensIn", "tokensOut")]
    return Item(
        task,
        text(fields, "parentTaskId"),
        text(fields, "workspace") or "",
        text(fields, "status"),
        at,
        told(asked, at) if asked is not None else None,
        text(fields, "mode"),
        sum(part for part in parts if part is not None) if any(parts) else None,
    )


def talk_of(value: object, told: Callable[[str, float], Message]) -> Talk:
    """What the list of messages in a document comes to; `told` makes a message of a text and its time."""
    messages = [mapping(entry) for entry in value] if isinstance(value, list) else []
    if not messages:
        return Talk()
    times = [time / 1000 for message in messages if (time := number(message, "ts")) is not None]
    began_at, last_at = (times[0], times[-1]) if times else (None, None)
    first = text(messages[0], "text")
    results: list[Message] = []
    todos: tuple[Todo, ...] | None = None
    for message in messages:
        result = _result(message)
        if result is not None:
            results.append(told(result, (number(message, "ts") or 0.0) / 1000))
        todos = _todos(message) or todos
    last = next((message for message in reversed(messages) if message.get("ask") not in _RESUMED), messages[-1])
    return Talk(
        began_at,
        last_at,
        told(first, began_at or 0.0) if first is not None else None,
        tuple(results[-_KEPT_ROUNDS:]),
        todos,
        "completion_result" in (last.get("ask"), last.get("say")) and last.get("partial") is not True,
        _waiting(last),
    )


def run_of(item: Item, talk: Talk, place: str) -> Run:
    """The run of a task."""
    # A task that nobody delegated has no status: what it said last tells how it is.
    implied = "completed" if talk.finished else "active"
    state = _STATES.get(item.status or implied, RunState.WORKING)
    ended = state is RunState.ENDED
    said = talk.results[-1] if ended and talk.results else None
    updated_at = max(item.at, talk.last_at or 0.0)
    return Run(
        source=NAME,
        session_id=item.id,
        parent_session=item.parent,
        state=state,
        place=place,
        started_at=talk.began_at or item.at,
        updated_at=updated_at,
        ended_at=updated_at if state is not RunState.WORKING else None,
        link="its history item names the parent" if item.parent is not None else "",
        reason=item.status or "" if state is RunState.CANCELED else "",
        agent=item.mode,
        mode=item.mode,
        prompt=talk.prompt or item.task,
        said=said,
        earlier=talk.results[:-1] if said is not None else talk.results,
        todos=talk.todos,
        tokens=item.tokens,
        waiting=talk.waiting if state is RunState.WORKING and item.status != "delegated" else "",
    )


def texts_in(value: object) -> Iterator[str]:
    """All the texts of a history item, or of a list of messages, to find one of them again."""
    asked = text(mapping(value), "task")
    if asked is not None:
        yield asked
    for entry in value if isinstance(value, list) else ():
        words = text(mapping(entry), "text")
        if words is not None:
            yield words


def _result(message: Fields) -> str | None:
    if message.get("say") != "completion_result" or message.get("partial") is True:
        return None
    words = text(message, "text")
    return words if words is not None and words.strip() else None


def _todos(message: Fields) -> tuple[Todo, ...] | None:
    if message.get("ask") != "tool" and message.get("say") != "user_edit_todos":
        return None
    tool = _inside(message)
    if text(tool, "tool") != "updateTodoList":
        return None
    entries: Sequence[Fields] = [mapping(entry) for entry in listed(tool, "todos")[:_MOST_TODOS]]
    return tuple(
        Todo(
            (text(entry, "content") or "")[:_LONGEST],
            _TODO_STATUSES.get(text(entry, "status") or "", TodoStatus.PENDING),
            None,
            line,
        )
        for line, entry in enumerate(entries, 1)
    )


def _waiting(message: Fields) -> str:
    what = _WAITING.get(text(message, "ask") or "")
    if what is None or message.get("partial") is True or message.get("isAnswered") is True:
        return ""
    inside = _inside(message)
    detail = text(inside, "question") or text(inside, "tool")
    if detail is None and message.get("ask") == "command":
        detail = text(message, "text")
    return f"{what}: {detail[:_LONGEST]}" if detail is not None else what


def _inside(message: Fields) -> Fields:
    """The object that some messages have as their text."""
    words = text(message, "text") or ""
    if not words.startswith("{"):
        return {}
    try:
        return mapping(json.loads(words))
    except (ValueError, RecursionError):
        return {}
