"""One rollout file folded, record by record, into what it says of its session.

A session is a series of turns: `task_started`, then `task_complete` or `turn_aborted`. Sessions of before Codex wrote
turns have `user_message` and `agent_message` only; there an answer ends what a message began.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from agentwatch.delegation.run import Permit, Permitter, RunState, StartedBy, Turn
from agentwatch.sources.codex.entries import (
    MCP,
    answer_in,
    arguments_of,
    entries,
    outcome_of,
    output_of,
    prompt_in,
    spawn_prompt_in,
)
from agentwatch.sources.sessions.doing import Entry, EntryKind
from agentwatch.sources.sessions.fields import (
    Fields,
    inner,
    listed,
    mapping,
    moment,
    object_in,
    question_in,
    text,
    todos_in,
    whole,
)
from agentwatch.sources.sessions.runs import Account, AgentCall, Answer, Keep, Rising
from agentwatch.sources.sessions.tail import Record

THREAD_ID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
ENCRYPTED: Final = "encrypted by Codex"
_OWN_WORK: Final = frozenset({"compact", "memory_consolidation", "guardian"})
"""Agents that Codex runs for itself: to shorten a context, to remember, to judge an approval."""
_VERSION: Final = re.compile(r"(\d{1,6})\.(\d{1,6})")
_OPEN_CALLS: Final = 1000
_RUNNING: Final = frozenset({"running", "pending_init"})
_ASKING: Final = frozenset({"wait_agent", "close_agent"})
"""Functions whose output says how other agents stand."""
_HANDLED: Final = _ASKING | {"spawn_agent", "update_plan", "request_user_input"}
_LOST: Final = "not_found"
_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output")


class Header(NamedTuple):
    """The session by the first line of a rollout, from Codex 0.66 to 0.169. `began_at` is in epoch seconds;
    texts are foreign.

    `inherited_below`: records with a smaller ordinal are a copy of the parent's history, None where that is not told.
    `own_work`: no task of anybody, but housekeeping of Codex.
    """

    thread: str
    parent: str | None
    directory: str
    began_at: float
    ordinal: int
    agent: str | None
    task_name: str | None
    version: tuple[int, ...]
    inherited_below: int | None
    own_work: bool


def header_of(record: Fields) -> Header | None:
    """The header in a record, None where it is no usable one."""
    meta = mapping(record.get("payload"))
    thread = text(meta, "id")
    if record.get("type") != "session_meta" or thread is None:
        return None
    subagent = inner(meta, "source").get("subagent")
    spawn = inner(mapping(subagent), "thread_spawn")
    kind = subagent if isinstance(subagent, str) else text(mapping(subagent), "other")
    role = text(meta, "agent_role") or text(spawn, "agent_role") or text(spawn, "agent_type") or kind
    nickname = text(meta, "agent_nickname") or text(spawn, "agent_nickname")
    version = _VERSION.match(text(meta, "cli_version") or "")
    return Header(
        thread=thread,
        parent=text(meta, "parent_thread_id") or text(spawn, "parent_thread_id"),
        directory=text(meta, "cwd") or "",
        began_at=moment(meta.get("timestamp")) or moment(record.get("timestamp")) or 0.0,
        ordinal=whole(record, "ordinal") or 0,
        agent=f"{nickname} ({role})" if nickname and role else nickname or role,
        task_name=text(meta, "agent_path") or text(spawn, "agent_path"),
        version=tuple(map(int, version.groups())) if version is not None else (),
        inherited_below=whole(meta, "subagent_history_start_ordinal"),
        own_work=kind in _OWN_WORK or "internal" in inner(meta, "source"),
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
        below = self._header.inherited_below
        if below is not None and (ordinal := whole(fields, "ordinal")) is not None:
            return ordinal < below
        if fields.get("type") == "session_meta":
            header = header_of(fields)
            self._goes_on = self._goes_on or (header is not None and header.thread != self._header.thread)
            return True
        payload = mapping(fields.get("payload")) if self._goes_on else {}
        if payload.get("type") in ("task_started", "turn_started"):
            turn = text(payload, "turn_id") or ""
            self._goes_on = THREAD_ID.fullmatch(turn) is None or turn < self._header.thread
        return self._goes_on


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


class Rollout(Account):
    """The state of one rollout after the records that were folded in. Its header is the first of them."""

    def __init__(self, path: str, header: Header, keep: Keep, places: Sequence[str] = ()) -> None:
        super().__init__(keep, places)
        self.path = path
        self.header = header
        self.updated_at = header.began_at
        self.prompt_missing = ""
        self.not_understood = 0
        self.cwd: str | None = None
        """The header says whose it is."""
        self.spawned: dict[str, SpawnCall] = {}
        """By the ids of other sessions, the calls that they came of."""
        self.refused: dict[str, Refused] = {}
        self.closed: set[str] = set()
        """Agents that this session closed or interrupted while they worked."""
        self.lost: dict[str, float] = {}
        """Agents that Codex did not find, and when it last said so: their process is gone, and nobody took them up."""
        self._history = History(header)
        self._rising = Rising()
        self._has_turns = False
        self._last: Answer | None = None
        """What it said last in a round that has not ended."""
        self._failure: str | None = None
        self._questions: dict[str, str] = {}
        self._spawns: dict[str, SpawnCall] = {}
        self._asking: dict[str, str | None] = {}
        """Open calls of `wait_agent` and `close_agent`; of the latter, with the agent that is to be closed."""
        self._answered: set[str] = set()

    @property
    def waiting(self) -> str:
        """Its open question to a human."""
        return next(reversed(self._questions.values()), "")

    def add(self, fields: Record, offset: int) -> None:
        if self._history.holds(fields):
            return
        at = moment(fields.get("timestamp")) or self.updated_at
        self.updated_at = max(self.updated_at, at)
        payload = mapping(fields.get("payload"))
        if payload.get("type") in _OUTPUTS:
            self._returned(payload, at)
            return
        for entry in entries(fields, at):
            self.activity.add(entry)
        match fields.get("type"):
            case "event_msg":
                self._event(payload, at, offset)
            case "response_item":
                if payload.get("type") == "agent_message":
                    self._prompted(payload, at, offset)
                elif payload.get("type") == "function_call":
                    self._called(payload, at, offset)
            case "turn_context":
                self.model = text(payload, "model") or self.model
            case "token_usage_record":
                self.tokens = whole(inner(payload, "thread_token_usage"), "total_tokens") or self.tokens

    def _event(self, payload: Fields, at: float, offset: int) -> None:
        match payload.get("type"):
            case "task_started" | "turn_started":
                self._has_turns = True
                self._begin(at)
            case "task_complete" | "turn_complete":
                self._complete(payload, at, offset)
            case "turn_aborted":
                reason = text(payload, "reason") or "aborted"
                self.end(RunState.FAILED if reason == "budget_limited" else RunState.CANCELED, at, reason)
                self._last = None
            case "error":
                self._failure = text(payload, "message") or "an error of Codex"
            case "user_message":
                self._prompted(payload, at, offset)
            case "agent_message":
                self._say(payload, at, offset)
            case "token_count":
                total = inner(payload, "info", "total_token_usage")
                self.tokens = whole(total, "total_tokens") or self.tokens
            case "item_completed" | "collab_agent_spawn_end":
                match inner(payload, "item").get("type"):
                    case "UserMessage":
                        self._prompted(payload, at, offset)
                    case "AgentMessage":
                        self._say(payload, at, offset)
                    case _:
                        self._collaborated(inner(payload, "item") or payload, at)

    def _begin(self, at: float) -> None:
        self.activity.begin()
        self.begin_round(Turn(at))
        self.state, self.answer, self.ended_at, self.reason = RunState.WORKING, None, None, ""
        self._last = self._failure = None
        self._questions.clear()

    def _complete(self, payload: Fields, at: float, offset: int) -> None:
        error, last = text(inner(payload, "error"), "message"), answer_in(payload)
        if last is not None:
            self._last = self.later(last, at, offset)
        self._failure = error or (self._failure if last is None else None)
        if self._failure is not None:
            self.end(RunState.FAILED, at, self._failure)
        else:
            self.end(RunState.ENDED, at)
            self.answer = self._last
        self._last = None

    def _prompted(self, payload: Fields, at: float, offset: int) -> None:
        is_agents = payload.get("type") == "agent_message"
        if is_agents and text(payload, "recipient") != self.header.task_name:
            return
        if not self._has_turns:
            self._begin(at)
        words, begun = prompt_in(payload), self.begun
        if self.prompt is not None or self.prompt_missing:
            if begun is not None and begun.asker is StartedBy.PROGRAM:
                prompt = self.keep(words, at, offset) if words is not None else None
                self.begun = replace(begun, prompt=prompt, asker=StartedBy.PARENT)
        elif words is not None:
            self.prompt = self.keep(words, at, offset)
        elif is_agents:
            self.prompt_missing = ENCRYPTED

    def _say(self, payload: Fields, at: float, offset: int) -> None:
        if (answer := answer_in(payload)) is not None:
            self._last = self.later(answer, at, offset)
            if not self._has_turns:
                self._complete({}, at, offset)

    def _called(self, payload: Fields, at: float, offset: int) -> None:
        call, name = text(payload, "call_id"), text(payload, "name")
        arguments = arguments_of(payload) if name in _HANDLED else {}
        is_mcp = (text(payload, "namespace") or "").startswith(MCP)
        if name == "update_plan":
            self.list(todos_in(listed(arguments, "plan"), "step") or self.todos, at)
        elif name == "request_user_input" and call is not None:
            # It has no output until a human has answered.
            self._questions[call] = question_in(arguments)
        elif name in _ASKING and call is not None and not is_mcp:
            self._asking[call] = text(arguments, "target")
        elif name == "spawn_agent" and call is not None and not is_mcp:
            words, kind, title = spawn_prompt_in(payload), text(arguments, "agent_type"), text(arguments, "task_name")
            prompt = self.keep(words, at, offset) if words is not None else None
            is_encrypted = prompt is None and text(arguments, "message") is not None
            self._spawns[call] = SpawnCall(call, at, self._rising(at), prompt, kind, title, encrypted=is_encrypted)
        for calls in (self._asking, self._spawns):
            if len(calls) > _OPEN_CALLS:
                del calls[next(iter(calls))]

    def _returned(self, payload: Fields, at: float) -> None:
        """A call has its output. That one was asked about is not recorded, nor who allowed it."""
        call = text(payload, "call_id") or ""
        if (entry := self.activity.end_call(call)) is not None:
            allowed, words = outcome_of(payload)
            self.permits.append(Permit(call, entry.tool, "", allowed, Permitter.UNKNOWN, at, words))
        if payload.get("type") != "function_call_output":
            return
        self._questions.pop(call, None)
        asked = self._spawns.pop(call, None)
        if asked is None and call not in self._asking:
            return
        words = output_of(payload)
        answer = object_in(words)
        if asked is None:
            target = self._asking.pop(call)
            self._miss(inner(answer, "status"), at)
            is_lost = text(answer, "previous_status") == _LOST or words.endswith(f"{target} not found")
            self._miss({target: _LOST} if target is not None and is_lost else {}, at)
        elif (thread := text(answer, "agent_id")) is not None:
            self.spawned.setdefault(thread, asked)
        elif text(answer, "task_name") is None and asked.id not in self._answered:
            # Without an agent in it, the call was refused.
            self.refused[asked.id] = Refused(asked, at, words)

    def _collaborated(self, item: Fields, at: float) -> None:
        """Codex tells that it has done something with other agents."""
        states = inner(item, "agents_states")
        self._miss(states, at)
        call = text(item, "id") or text(item, "call_id") or ""
        activity = text(item, "agent_thread_id")
        started = text(item, "new_thread_id") or (activity if item.get("kind") == "started" else None)
        threads = [thread for thread in listed(item, "receiver_thread_ids") if isinstance(thread, str)]
        if item.get("tool") == "spawn_agent" or started is not None:
            asked = self._spawns.get(call) or SpawnCall(call, at, self._rising(at), title=text(item, "agent_path"))
            for thread in [started] if started is not None else threads:
                self.spawned.setdefault(thread, asked)
                self._answered.add(call)
        elif item.get("tool") == "close_agent":
            self.closed.update(thread for thread in threads if text(states, thread) in _RUNNING)
        elif item.get("kind") == "interrupted" and activity is not None:
            self.closed.add(activity)

    def _miss(self, states: Fields, at: float) -> None:
        self.lost |= dict.fromkeys((thread for thread in states if text(states, thread) == _LOST), at)
