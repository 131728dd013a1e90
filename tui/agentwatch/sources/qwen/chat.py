"""One file of Qwen Code, folded line by line: how its agent stands, the rounds it was sent on for, whom it asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from agentwatch.contracts.shapes import Todo
from agentwatch.delegation.run import Asker, Round, RunState
from agentwatch.sources.sessions.fields import (
    Fields,
    first_line,
    inner,
    listed,
    mapping,
    moment,
    read_notification,
    text,
    todos_in,
    whole,
)
from agentwatch.sources.sessions.runs import Account, AgentAnswer, AgentCall, Keep, Rising
from agentwatch.sources.sessions.tail import Line, lines_of, record

_TELEMETRY: Final = b'"subtype":"ui_telemetry"'
"""Most lines of a chat, also about calls of its agents. What a signal breaks off stands nowhere else."""
_CUT_OFF: Final = "cut off before it answered"


@dataclass(slots=True)
class QwenCall(AgentCall):
    """`is_left`: a human went on with the session before there was an answer, so the program was killed meanwhile."""

    is_left: bool = False


class Chat(Account):
    """The state of one file after the lines that were folded in."""

    def __init__(self, keep: Keep, is_agent: bool) -> None:
        super().__init__(keep)
        self.cwd: str | None = None
        self.not_understood = 0
        self.calls: dict[str, QwenCall] = {}
        self.round_at = 0.0
        self.updated_at = 0.0
        self.todos: tuple[Todo, ...] | None = None
        self.tokens = 0
        self._is_agent = is_agent
        self._rising = Rising()
        self._open: set[str] = set()
        """Calls of any tool that have no result."""

    def fold(self, stretch: Line) -> None:
        for line in lines_of(stretch):
            if _TELEMETRY in line.data and b'"cancelled"' not in line.data:
                continue
            fields = record(line.data) or {}
            at = moment(fields.get("timestamp"))
            if at is None or text(fields, "uuid") is None:
                self.not_understood += 1
                continue
            self.cwd = self.cwd or text(fields, "cwd")
            match fields.get("type"):
                case "user":
                    self._prompted(fields, at, line.offset)
                case "assistant":
                    self._answered(fields, at, line.offset)
                case "tool_result":
                    self._returned(fields, at, line.offset)
                case "system":
                    event = inner(fields, "systemPayload", "uiEvent")
                    if event.get("status") == "cancelled":
                        self._broken_off(text(event, "call_id") or "", at, "")

    def _prompted(self, fields: Fields, at: float, offset: int) -> None:
        words = _words(fields)
        by_program = "subtype" in fields
        told = read_notification(words) if by_program else None
        if told is not None and (call := self.calls.get(told.tool_use_id or "")) is not None:
            said = self._keep(told.said, at, offset) if told.said is not None else None
            call.answer = AgentAnswer(at, told.status, told.summary, said)
        for call in self.calls.values():
            call.is_left = call.is_left or (not by_program and call.answer is None)
        if self._is_agent:
            is_asked = not by_program and bool(words.strip())
            if self.state is RunState.WORKING:
                self.state, self.reason = RunState.FAILED, _CUT_OFF
            self.ended_at = self.ended_at or self.updated_at
            self._begin_round(Round(at, self._keep(words, at, offset), Asker.PARENT if is_asked else Asker.PROGRAM))
        if self.prompt is None:
            self.prompt = self._keep(words, at, offset)
        self.round_at = at
        self._open.clear()
        self._go_on(at)

    def _answered(self, fields: Fields, at: float, offset: int) -> None:
        self._go_on(at)
        used = inner(fields, "usageMetadata")
        self.tokens += (whole(used, "totalTokenCount") or 0) - (whole(used, "cachedContentTokenCount") or 0)
        self.model = text(fields, "model") or self.model
        parts = map(mapping, listed(inner(fields, "message"), "parts"))
        calls = [call for part in parts if (call := inner(part, "functionCall"))]
        for call in calls:
            self._called(text(call, "id") or "", *_unwrapped(call), at, offset)
        words = _words(fields)
        # A record of an agent's calls may follow; its description says when it is over.
        if not calls and (words.strip() or not self._is_agent):
            self.state, self.ended_at = RunState.ENDED, at
            self._said = self._saying(words, at, offset) if words.strip() else None

    def _called(self, name: str, tool: str | None, given: Fields, at: float, offset: int) -> None:
        self._open.add(name)
        if tool == "todo_write":
            self.todos = todos_in(listed(given, "todos"), "content")
        elif tool == "agent":
            words = text(given, "prompt")
            prompt = self._keep(words, at, offset) if words is not None else None
            kind, title = text(given, "subagent_type"), text(given, "description")
            background = given.get("run_in_background") is True
            self.calls[name] = QwenCall(name, at, self._rising(at), prompt, kind, title, background)

    def _returned(self, fields: Fields, at: float, offset: int) -> None:
        self.updated_at = max(self.updated_at, at)
        result = inner(fields, "toolCallResult")
        shown = text(inner(result, "resultDisplay"), "status")
        status = shown or text(result, "status") or ""
        for part in map(mapping, listed(inner(fields, "message"), "parts")):
            name = text(inner(part, "functionResponse"), "id") or ""
            response = inner(part, "functionResponse", "response")
            output = text(response, "output") or text(response, "error") or ""
            if result.get("status") == "cancelled":
                self._broken_off(name, at, output)
            self._open.discard(name)
            call = self.calls.get(name)
            if call is not None and status == "background":
                call.background = True
            elif call is not None and call.answer is None:
                said = self._keep(output, at, offset) if status == "completed" and output.strip() else None
                call.answer = AgentAnswer(at, status, first_line(output), said)

    def _broken_off(self, name: str, at: float, words: str) -> None:
        """A human, or a signal, has ended the turn inside a call."""
        if name in self._open:
            self._open.discard(name)
            self.state, self.ended_at, self.updated_at = RunState.CANCELED, at, max(self.updated_at, at)
            if name in self.calls:
                self.calls[name].answer = AgentAnswer(at, "cancelled", first_line(words))

    def _go_on(self, at: float) -> None:
        self.started_at = at if self.started_at is None else self.started_at
        self.updated_at = max(self.updated_at, at)
        self.state, self.reason, self.ended_at, self._said = RunState.WORKING, "", None, None


def texts_in(fields: Fields) -> Iterator[str]:
    """All texts of a record that a message may have been made of."""
    yield (words := _words(fields))
    told = read_notification(words)
    for part in map(mapping, listed(inner(fields, "message"), "parts")):
        yield text(_unwrapped(inner(part, "functionCall"))[1], "prompt") or ""
        yield text(inner(part, "functionResponse", "response"), "output") or ""
    yield (told.said if told is not None else None) or ""


def _words(fields: Fields) -> str:
    """What a message says, without what is only thought."""
    parts = map(mapping, listed(inner(fields, "message"), "parts"))
    return "\n".join(words for part in parts if part.get("thought") is not True and (words := text(part, "text")))


def _unwrapped(call: Fields) -> tuple[str | None, Fields]:
    """The tool of a call and what it was given; some are called through another one."""
    given = inner(call, "args")
    if text(call, "name") != "tool_call":
        return text(call, "name"), given
    arguments = given.get("arguments")
    try:
        return text(given, "name"), mapping(json.loads(arguments) if isinstance(arguments, str) else arguments)
    except (ValueError, RecursionError):
        return None, {}
