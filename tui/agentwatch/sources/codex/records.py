"""What the records of Codex hold: texts that were handed over and back, and calls about other agents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from agentwatch.sources.sessions.fields import Fields, inner, listed, mapping, object_in, parts_in, text
from agentwatch.sources.sessions.runs import AgentCall, Keep, Rising

_PAYLOAD: Final = "\nPayload:\n"
_OPEN_CALLS: Final = 1000
_RUNNING: Final = frozenset({"running", "pending_init"})
_ASKING: Final = frozenset({"wait_agent", "close_agent"})
"""Functions whose output says how other agents stand."""
_HANDLED: Final = _ASKING | {"spawn_agent"}
_LOST: Final = "not_found"
_REFUSED: Final = re.compile(
    r"(?:exec_command|apply_patch|execution|command)[^\n]{0,20} failed[^\n]{0,80}Rejected\("
    r"|patch rejected by user|(?:Wall time: [\d.]+ seconds\nOutput:\n)?user rejected MCP tool call"
)
"""How the output of a call begins that was refused: of a command, a patch, a server's tool."""
_ABORTED: Final = re.compile(r"(?:Wall time: [\d.]+ seconds\n)?aborted by user")
MCP: Final = "mcp__"
"""How the names of the servers of tools begin."""


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


def outcome_of(payload: Fields) -> tuple[bool | None, str]:
    """Whether a call was allowed, by its output: None where a turn was ended before it had one. With the answers, where
    it was a question."""
    words = text(payload, "output") or "\n".join(parts_in(payload, "output"))
    if _REFUSED.match(words) is not None:
        return False, ""
    answers = inner(object_in(words), "answers") if words.startswith('{"answers"') else {}
    chosen = [one for answer in answers.values() for one in listed(mapping(answer), "answers") if isinstance(one, str)]
    return None if _ABORTED.match(words) is not None else True, "\n".join(chosen)


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
    yield from filter(None, (prompt_in(payload), answer_in(payload), spawn_prompt_in(payload)))


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


@dataclass(slots=True)
class SpawnCall(AgentCall):
    """A call of `spawn_agent`; its title is the name of the task. `encrypted`: its prompt is not to be read."""

    at: float = 0.0
    encrypted: bool = False


class Refused(NamedTuple):
    """A call that came to nothing, and why, in Codex's words."""

    asked: SpawnCall
    at: float
    reason: str


class Spawns:
    """What the calls of one session show of other sessions, by their ids."""

    def __init__(self, keep: Keep) -> None:
        self.refused: dict[str, Refused] = {}
        self.spawned: dict[str, SpawnCall] = {}
        self.closed: set[str] = set()
        """Agents that this session closed or interrupted while they worked."""
        self.lost: dict[str, float] = {}
        """Agents that Codex did not find, and when it last said so: their process is gone, and nobody took them up."""
        self._keep = keep
        self._rising = Rising()
        self._calls: dict[str, SpawnCall] = {}
        self._asking: dict[str, str | None] = {}
        """Open calls of `wait_agent` and `close_agent`; of the latter, with the agent that is to be closed."""
        self._answered: set[str] = set()

    @property
    def open_calls(self) -> tuple[str, ...]:
        """Calls whose outputs have to be read."""
        return (*self._calls, *self._asking)

    def call(self, payload: Fields, at: float, offset: int) -> None:
        """A function is called."""
        call, name = text(payload, "call_id"), text(payload, "name")
        if call is None or name not in _HANDLED or (text(payload, "namespace") or "").startswith(MCP):
            return
        arguments = arguments_of(payload)
        if name in _ASKING:
            self._asking[call] = text(arguments, "target")
        elif name == "spawn_agent":
            prompt = spawn_prompt_in(payload)
            self._calls[call] = SpawnCall(
                call,
                at,
                self._rising(at),
                self._keep(prompt, at, offset) if prompt is not None else None,
                text(arguments, "agent_type"),
                text(arguments, "task_name"),
                encrypted=prompt is None and text(arguments, "message") is not None,
            )
        for calls in (self._asking, self._calls):
            if len(calls) > _OPEN_CALLS:
                del calls[next(iter(calls))]

    def output(self, payload: Fields, at: float) -> None:
        """A function has returned: without an agent in it, a call of `spawn_agent` was refused."""
        call = text(payload, "call_id") or ""
        asked = self._calls.pop(call, None)
        if asked is None and call not in self._asking:
            return
        words = text(payload, "output") or "\n".join(parts_in(payload, "output"))
        answer = object_in(words)
        if asked is None:
            target = self._asking.pop(call)
            self._miss(inner(answer, "status"), at)
            is_lost = text(answer, "previous_status") == _LOST or words.endswith(f"{target} not found")
            self._miss({target: _LOST} if target is not None and is_lost else {}, at)
        elif (thread := text(answer, "agent_id")) is not None:
            self.spawned.setdefault(thread, asked)
        elif text(answer, "task_name") is None and asked.id not in self._answered:
            self.refused[asked.id] = Refused(asked, at, words)

    def event(self, payload: Fields, at: float) -> None:
        """Codex tells that it has done something with other agents."""
        item = inner(payload, "item") or payload
        self._miss(inner(item, "agents_states"), at)
        call = text(item, "id") or text(item, "call_id") or ""
        activity = text(item, "agent_thread_id")
        started = text(item, "new_thread_id") or (activity if item.get("kind") == "started" else None)
        threads = [thread for thread in listed(item, "receiver_thread_ids") if isinstance(thread, str)]
        if item.get("tool") == "spawn_agent" or started is not None:
            asked = self._calls.get(call) or SpawnCall(call, at, self._rising(at), title=text(item, "agent_path"))
            for thread in [started] if started is not None else threads:
                self.spawned.setdefault(thread, asked)
                self._answered.add(call)
        elif item.get("tool") == "close_agent":
            states = inner(item, "agents_states")
            self.closed.update(thread for thread in threads if text(states, thread) in _RUNNING)
        elif item.get("kind") == "interrupted" and activity is not None:
            self.closed.add(activity)

    def _miss(self, states: Fields, at: float) -> None:
        self.lost |= dict.fromkeys((thread for thread in states if text(states, thread) == _LOST), at)
