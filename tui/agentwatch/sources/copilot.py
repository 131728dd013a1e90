"""The reader of GitHub Copilot CLI 1.0. The program keeps one file of events for a session.

An event is `{type, data, id, timestamp, agentId?}`. An event of the session's own agent has no `agentId`. The tool
`task` starts an agent. The first round ends with `subagent.completed` or `.failed`, later rounds with `turn_end`."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from agentwatch.delegation.events import Run, RunState, StartedBy
from agentwatch.sources.sessions.entries import CommandEnd, EntriesIn, Entry, EntryKind
from agentwatch.sources.sessions.fields import (
    Fields,
    Record,
    first_line,
    int_at,
    list_at,
    nested,
    string,
    sum_of,
    text,
    time_at,
)
from agentwatch.sources.sessions.processes import Processes, Program, Registered
from agentwatch.sources.sessions.runs import CUT_OFF, LEFT_BEHIND, NO_CALL, SESSION, Account, Keep, run_of
from agentwatch.sources.sessions.store import FilesReader, Session

_SENDER = "agent-"
_REFUSED = ("denied", "rejected")
_COPIED = "Forked from "  # the note after the copied events in a forked session
_ENDING = re.compile(r"\n?<[^<>\n]*exit code -?\d+>\s*\Z")  # a line that Copilot adds to the output of a command
_SHUT = "not over when Copilot was closed"


class Agent(Account):
    """The account (state) of one agent, or of the session's own agent."""

    call = NO_CALL  # the call that started the agent
    asker = SESSION  # the id of the agent that made this call
    question_tools = ("ask_user",)
    was_over = False  # whether an end of the agent was reported before
    calls_tools = True  # whether the last message of the turn calls tools; True if the turn has no message yet

    def __init__(self, keep: Keep, places: Sequence[str], *, is_agent: bool = True):
        super().__init__(keep, places, is_agent=is_agent)
        self.pending: dict[str, str] = {}  # descriptions of open requests for a permission, by the request's id

    @property
    def waiting(self) -> str:
        return next(reversed(self.pending.values()), super().waiting)

    def end(self, state: RunState, at: float, reason: str = "") -> None:
        super().end(state, at, reason)
        self.answer = self.last if state is RunState.ENDED else None

    def add_message(self, data: Fields, at: float) -> None:
        """Begin a round with a message to the agent. A steering message to a working agent begins no round."""
        words, was_working = string(data, "content"), self.state is RunState.WORKING
        if not (was_working and data.get("delivery") == "steering"):
            if was_working and self.begun and self.is_agent:
                self.end(RunState.FAILED, at, CUT_OFF)
            asker = StartedBy.PARENT if words.strip() else StartedBy.PROGRAM
            self.begin_round(at, self.keep(words, at) if self.is_agent else None, asker)
        if self.prompt is None and words.strip():
            self.prompt = self.keep(words, at)
        self.last = None
        self.pending.clear()
        self.resume(at)

    def record_completion(self, data: Fields, at: float) -> None:
        """Record that the agent has ended. If the agent had ended before, a cancellation changes nothing."""
        if data.get("cancelled") is not True:
            self.end(RunState.ENDED, at)
        elif self.reason != LEFT_BEHIND and not (self.was_over and self.state is RunState.ENDED):
            self.end(RunState.CANCELED, at, "cancelled")
        self.was_over = True


class Events:
    """The accounts of all agents in one file of events."""

    not_understood = 0

    def __init__(self, keep: Keep, places: Sequence[str], *, is_agent: bool):  # noqa: ARG002
        self.agents: dict[str, Agent] = {}  # by id; the session itself is under SESSION
        self.unstarted: dict[str, Agent] = {}  # agents that have not started yet, by the id of the call
        self._begin = partial(Agent, keep, places)

    def add(self, fields: Record) -> None:
        at, kind = time_at(fields), text(fields, "type")
        if at is None or kind is None or text(fields, "id") is None:
            self.not_understood += 1
            return
        data, whose = nested(fields, "data"), string(fields, "agentId")
        agent = self.agents.setdefault(whose, self._begin(is_agent=whose != SESSION))
        agent.updated_at = max(agent.updated_at, at)
        agent.model = text(data, "model") or agent.model
        is_working = agent.state is RunState.WORKING
        match kind:
            case "session.info" if string(data, "message").startswith(_COPIED):
                # All events before this note are copies from another session.
                self.agents.clear()
                self.unstarted.clear()
            case "session.resume" | "session.shutdown" if data.get("sessionWasActive") is not True:
                # A killed program writes no last event. Its end is seen only when a new program resumes the session.
                reason = LEFT_BEHIND if kind == "session.resume" else text(data, "errorReason") or _SHUT
                for one in self.agents.values():
                    if one.state is RunState.WORKING:
                        one.end(RunState.FAILED, at, reason)
            case "session.error" | "subagent.failed":
                agent.end(RunState.FAILED, at, first_line(text(data, "message") or text(data, "error") or "error"))
            case "session.usage_record":
                agent.tokens += sum_of(nested(data, "usage"), "inputTokens", "outputTokens", without="cacheReadTokens")
            case "user.message":
                agent.add_message(data, at)
            case "assistant.message" if text(data, "model") is not None:
                agent.resume(at)
                agent.calls_tools = bool(list_at(data, "toolRequests"))
            case "assistant.turn_end" if is_working and not agent.calls_tools:
                agent.end(RunState.ENDED, at)
            case "abort" if is_working:
                agent.end(RunState.CANCELED, at, (text(data, "reason") or "aborted").replace("_", " "))
            case "assistant.turn_start" | "permission.requested":
                # The request for a permission comes before the message with the call, so the turn is not over.
                agent.resume(at)
                agent.calls_tools = True
                if kind == "permission.requested":
                    agent.pending[string(data, "requestId")] = _describe_permission(nested(data, "permissionRequest"))
            case "permission.completed":
                for one in self.agents.values():
                    one.pending.pop(string(data, "requestId"), None)
            case "subagent.started":
                agent.resume(at)
                child = self.unstarted.pop(string(data, "toolCallId"), agent)
                is_background = data.get("executionMode") == "background"
                agent.asker = child.asker
                agent.call = replace(child.call, agent_type=text(data, "agentName"), background=is_background)
            case "subagent.completed":
                agent.record_completion(data, at)

        for entry in entries(fields):
            agent.add_entry(entry)
            self._track_agent_call(entry, whose, agent)

    def _track_agent_call(self, entry: Entry, whose: str, agent: Agent) -> None:
        match entry.kind, entry.tool:
            case EntryKind.CALL, "task":
                child = self.unstarted[entry.call] = self._begin()
                child.asker, child.call = whose, agent.record_call(entry, string(entry.given, "prompt"), "agent_type")
            case EntryKind.RESULT, _ if entry.failed and entry.call in self.unstarted:
                self.unstarted[entry.call].end(RunState.FAILED, entry.at, first_line(entry.text or "error"))


def _describe_permission(asked: Fields) -> str:
    what = (text(asked, key) for key in ("fullCommandText", "fileName", "path", "url", "toolName", "intention", "fact"))
    return f"a permission: {text(asked, 'kind')} {first_line(next(filter(None, what), ''), 200)}".rstrip()


def entries(fields: Fields) -> Iterator[Entry]:
    """Yield the entries of an event. Messages and calls without a model are left out: Copilot itself adds them."""
    at, data = time_at(fields) or 0.0, nested(fields, "data")
    words, call = text(data, "content"), string(data, "toolCallId")
    match fields.get("type"):
        case "user.message" if words:
            source = text(data, "source")
            kind = EntryKind.PROMPT if source is None or source.startswith(_SENDER) else EntryKind.NOTE
            yield Entry(at, kind, words)
        case "system.notification" if words:
            yield Entry(at, EntryKind.NOTE, words)
        case "assistant.message" if text(data, "model") is not None:
            if (thought := text(data, "reasoningText")) is not None:
                yield Entry(at, EntryKind.THOUGHT, thought)
            if words:
                yield Entry(at, EntryKind.WORDS, words)
        case "tool.execution_start" if text(data, "model") is not None:
            yield Entry(at, EntryKind.CALL, "", call, string(data, "toolName"), nested(data, "arguments"))
        case "tool.execution_complete":
            error, code = nested(data, "error"), int_at(nested(data, "shellExecution"), "exitCode")
            output = text(nested(data, "result"), "content") or string(error, "message")
            refused = text(error, "code") in _REFUSED
            failed = data.get("success") is False or bool(code)
            ended = None if refused else CommandEnd(code, _ENDING.sub("", output))
            yield Entry(at, EntryKind.RESULT, output, call, failed=failed or refused, refused=refused, ended=ended)
        case "session.error" | "abort":
            said = text(data, "message") or f"aborted: {text(data, 'reason') or ''}"
            yield Entry(at, EntryKind.NOTE, said, failed=True)


class CopilotReader(FilesReader):
    """Reads Copilot's store. `home` is `$COPILOT_HOME`, or `~/.copilot`."""

    name = "copilot"
    fold = Events
    files = r"(?P<own>[0-9a-zA-Z_-]{1,128})/events\.jsonl"
    directories = r"[0-9a-zA-Z_-]{1,128}"
    projects_in = "session-state"
    is_shared = True

    def __init__(self, workspace: Path, home: Path):
        super().__init__(workspace, home)
        self.processes = Processes(Path(self.root))

    def find_projects(self) -> list[str]:
        return [self.root]

    def program_of(self, session: Session) -> Program:
        """Return the program's state, from its file `inuse.<pid>.lock`. A killed program leaves its file behind."""
        found: list[Registered] = []
        with suppress(OSError, ValueError):
            locks = Path(self.root, session.id).glob("inuse.*.lock")
            # If another process has this pid now, the program wrongly seems to run.
            found += (Registered(int(path.name.split(".")[1]), path.stat().st_mtime) for path in locks)
        return self.processes.program_of(session.id, found)

    def entries_of(self, run: Run) -> EntriesIn:
        whose = SESSION if run.session_id == Path(run.place).parent.name else run.session_id

        return lambda fields: entries(fields) if string(fields, "agentId") == whose else ()

    def runs_of(self, session: Session) -> dict[str, Run]:
        runs: dict[str, Run] = {}
        folds: dict[str, Events] = session.folds
        for events in folds.values():
            for name, agent in (*events.agents.items(), *events.unstarted.items()):
                if agent.started_at is not None or agent.call is not NO_CALL:
                    key = agent.call.id or name
                    runs[f"{session.id}/{key}" if key else session.id] = run_of(
                        agent,
                        agent.call,
                        agent,
                        source=self.name,
                        session_id=name or session.id,
                        parent=(agent.asker or session.id) if name else None,
                        place=session.place(SESSION),
                    )
        return runs
