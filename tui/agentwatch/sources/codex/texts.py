"""Where in a record the texts are that were handed over and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from agentwatch.sources.sessions.fields import Fields, inner, listed, mapping, text

_PAYLOAD: Final = "\nPayload:\n"
_LONGEST: Final = 500


def prompt_in(payload: Fields) -> str | None:
    """What a session was asked, in a `user_message`, a `UserMessage` item or a `NEW_TASK` of another agent.

    None where there is none, or where it is encrypted.
    """
    if payload.get("type") == "agent_message":
        return _task_in(payload)
    return text(payload, "message") or _joined(inner(payload, "item"))


def answer_in(payload: Fields) -> str | None:
    """What a session said, in an `agent_message` or an `AgentMessage` item; None where that is blank."""
    return _unless_blank(text(payload, "message") or _joined(inner(payload, "item")))


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
    message = text(arguments, "message")
    if message is None:
        parts = (text(mapping(part), "text") for part in listed(arguments, "items"))
        message = "\n".join(part for part in parts if part)
    return message if message and is_readable(message) else None


def question_in(payload: Fields) -> str | None:
    """What a human is asked, in a call of `request_user_input`: it has no output until that is answered."""
    if text(payload, "name") != "request_user_input":
        return None
    questions = (text(mapping(entry), "question") for entry in listed(arguments_of(payload), "questions"))
    first = next((question for question in questions if question), None)
    return f"an answer: {first[:_LONGEST]}" if first is not None else "an answer"


def is_readable(words: str) -> bool:
    """Whether a text that may be encrypted is not: what is encrypted has no space in it.

    A model provider of the user's own leaves the texts of other agents readable.
    """
    return any(character.isspace() for character in words)


def every_text_in(record: Fields) -> Iterator[str]:
    """All the texts of a record that a message may have been made of, to find one of them again."""
    payload = mapping(record.get("payload"))
    for found in (prompt_in(payload), answer_in(payload), last_answer_in(payload), spawn_prompt_in(payload)):
        if found is not None:
            yield found


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


def _joined(item: Fields) -> str | None:
    parts = (text(mapping(part), "text") for part in listed(item, "content"))
    return "".join(part for part in parts if part) or None


def _unless_blank(words: str | None) -> str | None:
    return words if words is not None and words.strip() else None
