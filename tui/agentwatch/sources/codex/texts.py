"""Where in a record the texts are that were handed over and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from agentwatch.sources.sessions.fields import Fields, inner, listed, mapping, parts_in, text

_PAYLOAD: Final = "\nPayload:\n"


def prompt_in(payload: Fields) -> str | None:
    """What a session was asked, in a `user_message`, a `UserMessage` item or a `NEW_TASK` of another agent.

    None where there is none, or where it is encrypted.
    """
    return _task_in(payload) if payload.get("type") == "agent_message" else _message_in(payload)


def answer_in(payload: Fields) -> str | None:
    """What a session said, in an `agent_message` or an `AgentMessage` item; None where that is blank."""
    return _unless_blank(_message_in(payload))


def last_answer_in(payload: Fields) -> str | None:
    """What a turn came to in the end; None where that is blank."""
    return _unless_blank(text(payload, "last_agent_message"))


def arguments_of(payload: Fields) -> Fields:
    """The arguments of a function call, which are JSON in a string."""
    try:
        return mapping(json.loads(text(payload, "arguments") or "{}"))
    except (ValueError, RecursionError):
        return {}


def spawn_prompt_in(payload: Fields) -> str | None:
    """What an agent was to be asked, in a call of `spawn_agent`; None where it is encrypted."""
    arguments = arguments_of(payload)
    message = text(arguments, "message") or "\n".join(parts_in(arguments, "items"))
    return message if is_readable(message) else None


def is_readable(words: str) -> bool:
    """Whether a text that may be encrypted is not: what is encrypted has no space in it.

    A model provider of the user's own leaves the texts of other agents readable.
    """
    return any(character.isspace() for character in words)


def every_text_in(record: Fields) -> Iterator[str]:
    """All the texts of a record that a message may have been made of, to find one of them again."""
    payload = mapping(record.get("payload"))
    texts = (prompt_in(payload), answer_in(payload), last_answer_in(payload), spawn_prompt_in(payload))
    yield from filter(None, texts)


def _task_in(payload: Fields) -> str | None:
    parts = [mapping(part) for part in listed(payload, "content")]
    opening = text(parts[0], "text") if parts else None
    if opening is None or _PAYLOAD not in opening or "NEW_TASK" not in opening:
        return None
    task = opening.partition(_PAYLOAD)[2]
    for part in parts[1:]:
        encrypted = text(part, "encrypted_content")
        if encrypted is not None and not is_readable(encrypted):
            return None
        task += encrypted or text(part, "text") or ""
    return task or None


def _message_in(payload: Fields) -> str | None:
    return text(payload, "message") or "".join(parts_in(inner(payload, "item"), "content")) or None


def _unless_blank(words: str | None) -> str | None:
    return words if words is not None and words.strip() else None
