"""One rollout file folded, line by line, into what it says of its session.

A session is a series of turns: `task_started`, then `task_complete` or `turn_aborted`. Sessions of before Codex wrote
turns have `user_message` and `agent_message` only; there an answer ends what a message began.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from agentwatch.contracts.shapes import Todo
from agentwatch.delegation.run import MOST_PERMITS, Permit, Permitter, RunState, StartedBy, Turn
from agentwatch.sources.codex.catalogue import THREAD_ID, Header, header_of
from agentwatch.sources.codex.entries import entries
from agentwatch.sources.codex.records import Spawns, answer_in, arguments_of, outcome_of, prompt_in
from agentwatch.sources.sessions.doing import Entry, EntryKind, Pulse
from agentwatch.sources.sessions.fields import (
    Fields,
    inner,
    listed,
    mapping,
    moment,
    question_in,
    text,
    todos_in,
    whole,
)
from agentwatch.sources.sessions.runs import Account, Keep, Said
from agentwatch.sources.sessions.tail import Line, lines_of, record

ENCRYPTED: Final = "encrypted by Codex"

_OPENING: Final = re.compile(
    rb'\{"timestamp":"(?P<at>[^"]{1,40})"(?:,"ordinal":(?P<ordinal>\d{1,15}))?,"type":"(?P<type>\w{1,60})"'
    rb'(?:,"payload":\{"type":"(?P<kind>\w{1,60})")?'
)
_ITEM: Final = re.compile(rb'"item":\{"type":"(\w{1,60})"')
_ITEMS: Final = frozenset({b"UserMessage", b"AgentMessage", b"CollabAgentToolCall", b"SubAgentActivity"})
_CALL: Final = re.compile(rb'"call_id":"([ !#-\[\]-~]{1,200})"')
_SHORT: Final = 4096
"""Bytes of a line with the output of a call that was refused; a longer one has run."""
_OUTPUTS: Final = frozenset({b"function_call_output", b"custom_tool_call_output"})
_WANTED: Final = frozenset(
    b"session_meta turn_context token_usage_record task_started turn_started task_complete turn_complete turn_aborted"
    b" error user_message agent_message token_count collab_agent_spawn_end function_call custom_tool_call"
    b" local_shell_call web_search_call".split()
)


class History:
    """The copy of its parent's history that a rollout may open with; its records are asked about in their order.

    Newer versions say where it ends. In the others it begins with the parent's header, and ends with the first turn
    that is younger than this session; ids of threads and turns begin with the time they were made.
    """

    def __init__(self, header: Header) -> None:
        self._header = header
        self._goes_on = False

    def holds(self, fields: Fields) -> bool:
        """Whether a record is part of it."""
        below, ordinal = self._header.inherited_below, whole(fields, "ordinal")
        if below is not None and ordinal is not None:
            return ordinal < below
        if fields.get("type") == "session_meta":
            header = header_of(fields)
            self._goes_on = self._goes_on or (header is not None and header.thread != self._header.thread)
            return True
        payload = mapping(fields.get("payload"))
        if self._goes_on and payload.get("type") in ("task_started", "turn_started"):
            turn = text(payload, "turn_id") or ""
            self._goes_on = THREAD_ID.fullmatch(turn) is None or turn < self._header.thread
        return self._goes_on

    def is_over_at(self, ordinal: bytes | None) -> bool:
        """Whether a record of this number, which is not parsed, is no part of it."""
        below = self._header.inherited_below
        return not self._goes_on and (below is None or ordinal is None or int(ordinal) >= below)


class OwnEntries:
    """What the session of a rollout itself says in its records, asked about in their order: no copy of its parent's
    history. Calls have the directory that they were made in."""

    def __init__(self) -> None:
        self._history: History | None = None
        self._cwd = ""

    def __call__(self, fields: Fields) -> Iterator[Entry]:
        if self._history is None and (header := header_of(fields)) is not None:
            self._history, self._cwd = History(header), header.directory
        if self._history is not None and self._history.holds(fields):
            return
        if fields.get("type") == "turn_context":
            self._cwd = text(inner(fields, "payload"), "cwd") or self._cwd
        for entry in entries(fields):
            yield entry._replace(cwd=self._cwd) if entry.kind is EntryKind.CALL else entry


class Rollout(Account):
    """The state of one rollout, after the lines that were fed so far. Its header is the first of them. `places` are the
    spellings of the workspace."""

    def __init__(self, path: Path, header: Header, keep: Keep, places: Sequence[str] = ()) -> None:
        super().__init__(keep)
        self.pulse = Pulse(places)
        self.path = path
        self.header = header
        self.spawns = Spawns(keep)
        self.updated_at = header.began_at
        self.prompt_missing = ""
        self.tokens: int | None = None
        self.todos: tuple[Todo, ...] | None = None
        self.permits: deque[Permit] = deque(maxlen=MOST_PERMITS)
        """What came of its calls: that one was asked about is not recorded, nor who allowed it."""
        self._history = History(header)
        self._has_turns = False
        self._answer: Said | None = None
        """What it said last in a round that has not ended."""
        self._failure: str | None = None
        self._questions: dict[str, str] = {}

    @property
    def waiting(self) -> str:
        """What it asked a human and has no answer to yet, "" where there is nothing."""
        return next(reversed(self._questions.values()), "")

    def fold(self, stretch: Line) -> None:
        for line in lines_of(stretch):
            data = line.data
            opening = _OPENING.match(data)
            if opening is not None and self._is_no_news(opening, data):
                continue
            fields = record(data)
            if fields is not None and not self._history.holds(fields):
                self._feed(fields, line.offset)

    def _feed(self, fields: Fields, offset: int) -> None:
        at = moment(fields.get("timestamp")) or self.updated_at
        self.updated_at = max(self.updated_at, at)
        payload = mapping(fields.get("payload"))
        if payload.get("type") in ("function_call_output", "custom_tool_call_output"):
            # The entries of the record end the call.
            self._came_of(text(payload, "call_id") or "", *outcome_of(payload), at)
        for entry in entries(fields, at):
            self.pulse.take(entry)
        match fields.get("type"):
            case "event_msg":
                self._event(payload, at, offset)
            case "response_item":
                self._item(payload, at, offset)
            case "turn_context":
                self.model = text(payload, "model") or self.model
            case "token_usage_record":
                self.tokens = whole(inner(payload, "thread_token_usage"), "total_tokens") or self.tokens

    def _is_no_news(self, opening: re.Match[bytes], data: bytes) -> bool:
        """Whether a line says nothing but that the session lives; most are long outputs of tools."""
        kind = opening["kind"] or opening["type"]
        if kind == b"item_completed":
            item = _ITEM.search(data, 0, 1000)
            wanted = item is None or item[1] in _ITEMS
        elif kind in _OUTPUTS:
            match = _CALL.search(data, opening.end(), opening.end() + 500)
            call = match[1].decode() if match is not None else None
            is_short = len(data) <= _SHORT
            wanted = call is None or is_short or call in self._questions or call in self.spawns.open_calls
            if call is not None and not wanted and self._history.is_over_at(opening["ordinal"]):
                at = moment(opening["at"].decode("latin-1")) or self.updated_at
                self._came_of(call, True, "", at)
                self.pulse.take(Entry(0.0, EntryKind.RESULT, call=call))
        else:
            wanted = kind in _WANTED
        if wanted:
            return False
        if self._history.is_over_at(opening["ordinal"]):
            self.updated_at = max(self.updated_at, moment(opening["at"].decode("latin-1")) or 0.0)
        return True

    def _event(self, payload: Fields, at: float, offset: int) -> None:
        match payload.get("type"):
            case "task_started" | "turn_started":
                self._has_turns = True
                self._begin(at)
            case "task_complete" | "turn_complete":
                self._complete(payload, at, offset)
            case "turn_aborted":
                self.reason = text(payload, "reason") or "aborted"
                self.state = RunState.FAILED if self.reason == "budget_limited" else RunState.CANCELED
                self.ended_at, self._answer = at, None
            case "error":
                self._failure = text(payload, "message") or "an error of Codex"
            case "user_message":
                self._asked(payload, at, offset)
            case "agent_message":
                self._answered(payload, at, offset)
            case "token_count":
                total = inner(payload, "info", "total_token_usage")
                self.tokens = whole(total, "total_tokens") or self.tokens
            case "item_completed" | "collab_agent_spawn_end":
                match inner(payload, "item").get("type"):
                    case "UserMessage":
                        self._asked(payload, at, offset)
                    case "AgentMessage":
                        self._answered(payload, at, offset)
                    case _:
                        self.spawns.event(payload, at)

    def _item(self, payload: Fields, at: float, offset: int) -> None:
        match payload.get("type"):
            case "agent_message":
                self._asked(payload, at, offset)
            case "function_call":
                name, call = text(payload, "name"), text(payload, "call_id")
                if name == "update_plan":
                    before = self.todos
                    self.todos = todos_in(listed(arguments_of(payload), "plan"), "step") or before
                    self.pulse.listed(before, self.todos, at)
                elif name == "request_user_input" and call is not None:
                    # It has no output until a human has answered.
                    self._questions[call] = question_in(arguments_of(payload))
                self.spawns.call(payload, at, offset)
            case "function_call_output":
                self._questions.pop(text(payload, "call_id") or "", None)
                self.spawns.output(payload, at)

    def _came_of(self, call: str, allowed: bool | None, words: str, at: float) -> None:
        if (doing := self.pulse.open.get(call)) is not None:
            self.permits.append(Permit(call, doing.what, "", allowed, Permitter.UNKNOWN, at, words))

    def _begin(self, at: float) -> None:
        self.pulse.take(Entry(at, EntryKind.PROMPT))
        self._begin_round(Turn(at))
        self.state, self._said, self.ended_at, self.reason = RunState.WORKING, None, None, ""
        self._answer = self._failure = None
        self._questions.clear()

    def _complete(self, payload: Fields, at: float, offset: int) -> None:
        self.ended_at = at
        error = text(inner(payload, "error"), "message")
        last = answer_in(payload)
        if last is not None:
            self._answer = self._saying(last, at, offset)
        self._failure = error or (self._failure if last is None else None)
        if self._failure is not None:
            self.state, self.reason = RunState.FAILED, self._failure
        else:
            self.state, self.reason, self._said = RunState.ENDED, "", self._answer
        self._answer = None

    def _asked(self, payload: Fields, at: float, offset: int) -> None:
        if payload.get("type") == "agent_message" and text(payload, "recipient") != self.header.task_name:
            return
        if not self._has_turns:
            self._begin(at)
        words, begun = prompt_in(payload), self.begun
        if self.prompt is not None or self.prompt_missing:
            if begun is not None and begun.asker is StartedBy.PROGRAM:
                prompt = self._keep(words, at, offset) if words is not None else None
                self.begun = replace(begun, prompt=prompt, asker=StartedBy.PARENT)
        elif words is not None:
            self.prompt = self._keep(words, at, offset)
        elif payload.get("type") == "agent_message":
            self.prompt_missing = ENCRYPTED

    def _answered(self, payload: Fields, at: float, offset: int) -> None:
        answer = answer_in(payload)
        self._answer = self._saying(answer, at, offset) if answer is not None else self._answer
        if not self._has_turns and answer is not None:
            self._complete({}, at, offset)
