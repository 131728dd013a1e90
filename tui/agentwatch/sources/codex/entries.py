"""What the records of a rollout say: entries, and the texts that were handed over and back."""

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
TASK: Final = "task of an agent"
"""The kind of a message between agents; that of an answer is `agent_message`."""
_PAYLOAD: Final = "\nPayload:\n"
_REFUSED: Final = re.compile(
    r"(?:exec_command|apply_patch|execution|command)[^\n]{0,20} failed[^\n]{0,80}Rejected\("
    r"|patch rejected by user|(?:Wall time: [\d.]+ seconds\nOutput:\n)?user rejected MCP tool call"
)
"""How the output of a call begins that was refused: of a command, a patch, a server's tool."""
_ABORTED: Final = re.compile(r"(?:Wall time: [\d.]+ seconds\n)?aborted by user")
_EXIT: Final = re.compile(r"(?:Process exited with code|Exit code:) (-?\d{1,9})")
_HEAD: Final = 600
"""Characters before the output of a command in which Codex tells of it."""
_OUTPUT: Final = "\nOutput:\n"
_FAILED: Final = re.compile(r"\A(?:exec_command|execution|apply_patch|command)[\w ]* failed", re.IGNORECASE)


def kind_of(record: Fields) -> tuple[str, Fields]:
    """What a record is, an event, an item or a part of the context, with its fields."""
    payload = mapping(record.get("payload"))
    kind = text(payload, "type") or (text(record, "type") if payload else None) or ""
    if kind == "item_completed":
        payload = inner(payload, "item")
        kind = text(payload, "type") or ""
    return TASK if kind == "agent_message" and record.get("type") == "response_item" else kind, payload


def entries(record: Fields, at: float = 0.0) -> Iterator[Entry]:
    """The entries of a record, in its order; `at` (epoch seconds) is for one that has no time."""
    at = moment(record.get("timestamp")) or at
    kind, payload = kind_of(record)
    call = text(payload, "call_id") or ""
    match kind:
        case "user_message" | "UserMessage" | "task of an agent" if words := prompt_in(kind, payload):
            yield Entry(at, EntryKind.PROMPT, words)
        case "agent_message" | "AgentMessage" | "task_complete" | "turn_complete":
            # Most of the answers at an end were told before.
            if words := answer_in(payload):
                yield Entry(at, EntryKind.WORDS, words)
            if (error := text(inner(payload, "error"), "message")) is not None:
                yield Entry(at, EntryKind.NOTE, error, failed=True)
        case "error":
            yield Entry(at, EntryKind.NOTE, text(payload, "message") or "an error of Codex", failed=True)
        case "turn_aborted":
            yield Entry(at, EntryKind.NOTE, f"the turn was {text(payload, 'reason') or 'aborted'}", failed=True)
        case "reasoning" if words := "\n".join(parts_in(payload, "summary")):
            yield Entry(at, EntryKind.THOUGHT, words)
        case "function_call":
            name, server = text(payload, "name") or "", text(payload, "namespace") or ""
            given = object_in(text(payload, "arguments"))
            if name == "spawn_agent" and "message" in given:
                given = {**given, "prompt": given["message"]}
            # As other programs write it: `mcp__server__tool`.
            is_mcp = server.startswith(MCP) and not name.startswith(MCP)
            yield Entry(at, EntryKind.CALL, "", call, f"{server.rstrip('_')}__{name}" if is_mcp else name, given)
        case "custom_tool_call":
            yield Entry(at, EntryKind.CALL, "", call, text(payload, "name") or "", {"input": payload.get("input")})
        case "local_shell_call":
            yield Entry(at, EntryKind.CALL, "", call, "shell", inner(payload, "action"))
        case "web_search_call":
            yield Entry(at, EntryKind.CALL, "", call, "web_search", inner(payload, "action"))
            yield Entry(at, EntryKind.RESULT, "", call)
        case "function_call_output" | "custom_tool_call_output":
            yield _result(output_of(payload), call, at)


def _result(words: str, call: str, at: float) -> Entry:
    code = None
    if words.startswith("{"):
        # Older versions wrote an object, which has the code.
        told = object_in(words)
        code, words = whole(inner(told, "metadata"), "exit_code"), text(told, "output") or words
    head, cut, output = words.partition(_OUTPUT) if _OUTPUT in words[:_HEAD] else (words, "", "")
    if exits := _EXIT.findall(head[:_HEAD]):
        code = int(exits[-1])
    refused = _REFUSED.match(words) is not None or _ABORTED.match(words) is not None
    failed = refused or bool(code) or _FAILED.match(words) is not None
    # Where nothing has a code, the command may still run.
    ended = None if refused else Ended(code, output if cut else words)
    if cut:
        # What came of it stands first, and then what Codex tells of it.
        words = f"exit code {code or 0}\n{output}\n{head}" if failed else f"{output.rstrip()}\n\n{head}".strip()
    return Entry(at, EntryKind.RESULT, words, call, failed=failed, refused=refused, ended=ended)


def prompt_in(kind: str, payload: Fields) -> str | None:
    """What a session was asked by a person, or another agent; None where there is nothing, or it is encrypted."""
    if kind != TASK:
        return _words_of(payload)
    parts = [mapping(part) for part in listed(payload, "content")]
    opening = (text(parts[0], "text") or "") if parts else ""
    if _PAYLOAD not in opening or "NEW_TASK" not in opening:
        return None
    task = opening.partition(_PAYLOAD)[2]
    for part in parts[1:]:
        encrypted = text(part, "encrypted_content")
        if encrypted is not None and not is_readable(encrypted):
            return None
        task += encrypted or text(part, "text") or ""
    return task or None


def answer_in(payload: Fields) -> str | None:
    """What a session said, alone or at the end of a turn; None where that is blank."""
    words = text(payload, "last_agent_message") or _words_of(payload)
    return words if words is not None and words.strip() else None


def output_of(payload: Fields) -> str:
    """The outcome of a call."""
    return text(payload, "output") or "\n".join(parts_in(payload, "output"))


def answers_in(output: str) -> str:
    """What a human answered to questions, by the output of their call."""
    answers = inner(object_in(output), "answers") if output.startswith('{"answers"') else {}
    chosen = [one for answer in answers.values() for one in listed(mapping(answer), "answers")]
    return "\n".join(one for one in chosen if isinstance(one, str))


def is_readable(words: str) -> bool:
    """Whether a text that may be encrypted is not: what is encrypted has no space in it.

    A model provider of the user's own leaves the texts of other agents readable.
    """
    return any(character.isspace() for character in words)


def _words_of(payload: Fields) -> str | None:
    return text(payload, "message") or "".join(parts_in(payload, "content")) or None
