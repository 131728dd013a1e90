"""A history item: what an extension keeps of each task in its list of tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agentwatch.delegation.run import Message
from agentwatch.sources.sessions.fields import mapping, number, text, whole


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
