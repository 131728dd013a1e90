"""The agents that a session asked for: those that came to be, those that were refused, and those it closed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agentwatch.delegation.run import Message
from agentwatch.sources.codex.texts import arguments_of, spawn_prompt_in
from agentwatch.sources.sessions.fields import Fields, inner, listed, mapping, text
from agentwatch.sources.sessions.order import Rising

_OPEN_CALLS: Final = 1000
_RUNNING: Final = frozenset({"running", "pending_init"})


@dataclass(frozen=True, slots=True)
class Asked:
    """A call of `spawn_agent`, made at `at`. `encrypted`: its task is there, but not to be read.

    `asked_at` is that of a run.
    """

    call: str
    at: float
    asked_at: float
    prompt: Message | None = None
    encrypted: bool = False
    role: str | None = None
    task_name: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that came to nothing, and why, in Codex's words."""

    asked: Asked
    at: float
    reason: str


class Spawns:
    """What the calls of one session show of other sessions, by their ids."""

    def __init__(self, told: Callable[[str, float, int], Message]) -> None:
        self.refused: dict[str, Refused] = {}
        self.spawned: dict[str, Asked] = {}
        self.closed: set[str] = set()
        """Agents that this session closed or interrupted while they worked."""
        self._told = told
        self._rising = Rising()
        self._calls: dict[str, Asked] = {}
        self._answered: set[str] = set()

    def concern(self, data: bytes) -> bool:
        """Whether the line of a function call, or of its output, has to be read."""
        if b'"function_call_output"' in data:
            return any(call.encode("utf-8", "surrogatepass") in data for call in self._calls)
        return b"spawn_agent" in data or b"update_plan" in data

    def call(self, payload: Fields, at: float, offset: int) -> None:
        """A function is called."""
        call = text(payload, "call_id")
        foreign = (text(payload, "namespace") or "").startswith("mcp__")
        if text(payload, "name") != "spawn_agent" or foreign or call is None:
            return
        arguments = arguments_of(payload)
        prompt = spawn_prompt_in(payload)
        self._calls[call] = Asked(
            call,
            at,
            self._rising(at),
            self._told(prompt, at, offset) if prompt is not None else None,
            prompt is None and text(arguments, "message") is not None,
            text(arguments, "agent_type"),
            text(arguments, "task_name"),
        )
        while len(self._calls) > _OPEN_CALLS:
            del self._calls[next(iter(self._calls))]

    def output(self, payload: Fields, at: float) -> None:
        """A function has returned: without an agent in it, the call was refused."""
        asked = self._calls.pop(text(payload, "call_id") or "", None)
        if asked is None:
            return
        words = _words_of(payload)
        try:
            answer = mapping(json.loads(words))
        except (ValueError, RecursionError):
            answer = {}
        thread = text(answer, "agent_id")
        if thread is not None:
            self.spawned.setdefault(thread, asked)
        elif text(answer, "task_name") is None and asked.call not in self._answered:
            self.refused[asked.call] = Refused(asked, at, words)

    def event(self, payload: Fields, at: float) -> None:
        """Codex tells that it has done something with other agents."""
        item = inner(payload, "item") or payload
        call = text(item, "id") or text(item, "call_id") or ""
        activity = text(item, "agent_thread_id")
        started = text(item, "new_thread_id") or (activity if item.get("kind") == "started" else None)
        threads = [thread for thread in listed(item, "receiver_thread_ids") if isinstance(thread, str)]
        if item.get("tool") == "spawn_agent" or started is not None:
            asked = self._calls.get(call) or Asked(call, at, self._rising(at), task_name=text(item, "agent_path"))
            for thread in [started] if started is not None else threads:
                self.spawned.setdefault(thread, asked)
                self._answered.add(call)
        elif item.get("tool") == "close_agent":
            states = inner(item, "agents_states")
            self.closed.update(thread for thread in threads if text(states, thread) in _RUNNING)
        elif item.get("kind") == "interrupted" and activity is not None:
            self.closed.add(activity)


def _words_of(payload: Fields) -> str:
    whole = text(payload, "output")
    if whole is not None:
        return whole
    parts = (text(mapping(part), "text") for part in listed(payload, "output"))
    return "\n".join(part for part in parts if part)
