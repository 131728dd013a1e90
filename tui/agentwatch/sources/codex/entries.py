"""Parse one record of a rollout: entries, and the texts that were handed over and back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agentwatch.sources.sessions.doing import Ended, Entry, EntryKind
from agentwatch.sources.sessions.fields import (
    Fields,
    inner,
    listed,
    mapping,
    moment,
    object_in,
    parts_in,
    text,
    whole,
)

MCP: Final = "mcp__"
"""How the names of the servers of tools begin."""
_PAYLOAD: Final = "\nPayload:\n"
_REJECTED: Final = re.compile(
    r"(?:exec_command|apply_patch|execution|command)[^\n]{0,20} failed[^\n]{0,80}Rejected\("
    r"|patch rejected by user|(?:Wall time: [\d.]+ seconds\nOutput:\n)?user rejected MCP tool call"
)
"""How the output of a call begins that was refused: of a command, a patch, a server's tool."""
_ABORTED: Final = re.compile(r"(?:Wall time: [\d.]+ seconds\n)?aborted by user")
_EXIT: Final = re.compile(r"(?:Process exited with code|Exit code:) (-?\d{1,9})")
_HEAD: Final = 600
"""Characters before the output of a command in which Codex tells of it."""
_OUTPUT: Final = "\nOutput:\n"
_REFUSED: Final = re.compile(r"Rejected\(|rejected by (?:the )?user|aborted by user")
_FAILED: Final = re.compile(r"\A(?:exec_command|execution|apply_patch|command)[\w ]* failed", re.IGNORECASE)


def entries(record: Fields, at: float = 0.0) -> Iterator[Entry]:
    """What a record says, in its order; `at` (epoch seconds) is for one that has no time."""
    at = moment(record.get("timestamp")) or at
    payload = mapping(record.get("payload"))
    if record.get("type") == "event_msg":
        yield from _event(payload, at)
    elif record.get("type") == "response_item":
        yield from _item(payload, at)


def _event(payload: Fields, at: float) -> Iterator[Entry]:
    kind = payload.get("type")
    if kind == "item_completed":
        kind = inner(payload, "item").get("type")
    match kind:
        case "user_message" | "UserMessage" if words := prompt_in(payload):
            yield Entry(at, EntryKind.PROMPT, words)
        case "agent_message" | "AgentMessage" if words := answer_in(payload):
            yield Entry(at, EntryKind.WORDS, words)
        case "error":
            yield Entry(at, EntryKind.NOTE, text(payload, "message") or "an error of Codex", failed=True)
        case "turn_aborted":
            yield Entry(at, EntryKind.NOTE, f"the turn was {text(payload, 'reason') or 'aborted'}", failed=True)
        case "task_complete" | "turn_complete":
            # Most answers were told before.
            if words := answer_in(payload):
                yield Entry(at, EntryKind.WORDS, words)
            if (error := text(inner(payload, "error"), "message")) is not None:
                yield Entry(at, EntryKind.NOTE, error, failed=True)


def _item(payload: Fields, at: float) -> Iterator[Entry]:
    call = text(payload, "call_id") or ""
    match payload.get("type"):
        case "agent_message" if words := prompt_in(payload):
            yield Entry(at, EntryKind.PROMPT, words)
        case "reasoning" if words := "\n".join(parts_in(payload, "summary")):
            yield Entry(at, EntryKind.THOUGHT, words)
        case "function_call":
            given = arguments_of(payload)
            if text(payload, "name") == "spawn_agent" and "message" in given:
                given = {**given, "prompt": given["message"]}
            yield Entry(at, EntryKind.CALL, "", call, _tool_of(payload), given)
        case "custom_tool_call":
            yield Entry(at, EntryKind.CALL, "", call, text(payload, "name") or "", {"input": payload.get("input")})
        case "local_shell_call":
            yield Entry(at, EntryKind.CALL, "", call, "shell", inner(payload, "action"))
        case "web_search_call":
            yield Entry(at, EntryKind.CALL, "", call, "web_search", inner(payload, "action"))
            yield Entry(at, EntryKind.RESULT, "", call)
        case "function_call_output" | "custom_tool_call_output":
            yield _result(payload, call, at)


def _tool_of(payload: Fields) -> str:
    """The name of a function, that of an MCP server before it, as other programs write it: `mcp__server__tool`."""
    name, server = text(payload, "name") or "", text(payload, "namespace") or ""
    return f"{server.rstrip('_')}__{name}" if server.startswith(MCP) and not name.startswith(MCP) else name


def _result(payload: Fields, call: str, at: float) -> Entry:
    words = output_of(payload)
    code, metadata = 0, inner({}, "metadata")
    if words.startswith("{"):
        told = object_in(words)
        metadata = inner(told, "metadata")
        code = whole(metadata, "exit_code") or 0
        words = text(told, "output") or words
    head, cut, output = words[:_HEAD].partition(_OUTPUT)
    exits = _EXIT.findall(head if cut else words[:_HEAD])
    code = int(exits[-1]) if exits else code
    refused = _REFUSED.search(words[:_HEAD]) is not None and not cut
    failed = refused or code != 0 or _FAILED.match(words) is not None
    # Older versions wrote an object, which has the code; where nothing has it, the command may still run.
    is_told = bool(exits) or "exit_code" in metadata
    ended = Ended(code if is_told else None, words[len(head) + len(cut) :] if cut else words)
    if cut:
        # What came of it stands first, and then what Codex tells of it.
        output = words[len(head) + len(cut) :]
        words = f"{output.rstrip()}\n\n{head}".strip() if not failed else f"exit code {code}\n{output}\n{head}"
    return Entry(at, EntryKind.RESULT, words, call, failed=failed, refused=refused, ended=None if refused else ended)


def prompt_in(payload: Fields) -> str | None:
    """What a session was asked, in a `user_message`, a `UserMessage` item or a `NEW_TASK` of another agent.

    None where there is none, or where it is encrypted.
    """
    return _task_in(payload) if payload.get("type") == "agent_message" else _message_in(payload)


def answer_in(payload: Fields) -> str | None:
    """What a session said, in an `agent_message` or an `AgentMessage` item, or in the end of a turn.

    None where that is blank.
    """
    words = text(payload, "last_agent_message") or _message_in(payload)
    return words if words is not None and words.strip() else None


def arguments_of(payload: Fields) -> Fields:
    """The arguments of a function call, which are JSON in a string."""
    return object_in(text(payload, "arguments"))


def output_of(payload: Fields) -> str:
    """The outcome of a call."""
    return text(payload, "output") or "\n".join(parts_in(payload, "output"))


def outcome_of(payload: Fields) -> tuple[bool | None, str]:
    """Whether a call was allowed, by its output: None where a turn was ended before it had one. With the answers, where
    it was a question."""
    words = output_of(payload)
    if _REJECTED.match(words) is not None:
        return False, ""
    answers = inner(object_in(words), "answers") if words.startswith('{"answers"') else {}
    chosen = [one for answer in answers.values() for one in listed(mapping(answer), "answers") if isinstance(one, str)]
    return None if _ABORTED.match(words) is not None else True, "\n".join(chosen)


def spawn_prompt_in(payload: Fields) -> str | None:
    """The prompt for an agent, in a call of `spawn_agent`; None where it is encrypted."""
    arguments = arguments_of(payload)
    message = text(arguments, "message") or "\n".join(parts_in(arguments, "items"))
    return message if is_readable(message) else None


def is_readable(words: str) -> bool:
    """Whether a text that may be encrypted is not: what is encrypted has no space in it.

    A model provider of the user's own leaves the texts of other agents readable.
    """
    return any(character.isspace() for character in words)


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
