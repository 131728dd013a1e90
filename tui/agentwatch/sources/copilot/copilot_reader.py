"""The reader of Copilot CLI: what the events of a session come to, for it and each of its agents, and their runs."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from agentwatch.delegation.run import Run, RunState, StartedBy, Turn
from agentwatch.sources.sessions.doing import Ended, Entry, EntryKind
from agentwatch.sources.sessions.fields import Fields, first_line, inner, listed, mapping, moment, text, whole
from agentwatch.sources.sessions.following import LinesTranscript, Placed, RunTranscript
from agentwatch.sources.sessions.processes import UNKNOWN, Processes, Program, Registered
from agentwatch.sources.sessions.runs import (
    CUT_OFF,
    LEFT_BEHIND,
    NO_CALL,
    Account,
    AgentAnswer,
    AgentCall,
    Answer,
    Keep,
    Rising,
    Standing,
    no_message,
    run_of,
    settle,
)
from agentwatch.sources.sessions.store import SESSION, FilesReader, Layout, Session
from agentwatch.sources.sessions.tail import Record

NAME: Final = "copilot"

_PROMPTS: Final = b'{"type":"system.message"'
"""System prompts are most of a file."""
_BEGINNING: Final = b'{"type":"'
_SENDER: Final = "agent-"
_REFUSED: Final = ("denied", "rejected")
_COPIED: Final = "Forked from "
"""How a fork says what it is a copy of; the session that was forked says so in other words."""
_ENDING: Final = re.compile(r"\n?<[^<>\n]*exit code -?\d+>\s*\Z")
"""What Copilot writes behind what a command printed."""
_SHUT: Final = "not over when Copilot was closed"
_LOCK: Final = re.compile(r"inuse\.([1-9]\d{0,9})\.lock")
_SLACK: Final = 2.0
"""Seconds by which a process may seem to have begun after its lock: the clocks of both are no finer than that."""


class Agent(Account):
    """The state of one agent, or of the session itself, after its events."""

    def __init__(self, keep: Keep, places: Sequence[str]) -> None:
        super().__init__(keep, places)
        self.begun_by = ""
        """The call that began it."""
        self.sender: str | None = None
        self.title: str | None = None
        self.kind: str | None = None
        self.background = False
        self.asks: dict[str, str] = {}
        """What a human has not answered yet, by the id of the request or call."""
        self._last: Answer | None = None
        """The last words of the round."""
        self._calls = True
        """The last message of the turn calls tools, or there is none yet."""
        self._was_over = False

    @property
    def waiting(self) -> str:
        return next(reversed(self.asks.values()), "") if self.state is RunState.WORKING else ""

    def add(self, kind: str, data: Fields, at: float, offset: int, *, is_agent: bool) -> None:
        """An event of it."""
        match kind:
            case "user.message":
                self._asked(data, at, offset, is_agent=is_agent)
            case "assistant.turn_start":
                self.go_on(at)
                self._calls = True
            case "assistant.message" if text(data, "model") is not None:
                self.go_on(at)
                self._calls = bool(listed(data, "toolRequests"))
                if (words := text(data, "content")) is not None and words.strip():
                    self._last = self.later(words, at, offset)
            case "assistant.turn_end" if self.state is RunState.WORKING and not self._calls:
                self.over(RunState.ENDED, at)
            case "abort" if self.state is RunState.WORKING:
                self.over(RunState.CANCELED, at, (text(data, "reason") or "aborted").replace("_", " "))
            case "session.error":
                self.over(RunState.FAILED, at, first_line(text(data, "message") or "error"))
            case "session.usage_record":
                used = inner(data, "usage")
                self.tokens += (whole(used, "inputTokens") or 0) + (whole(used, "outputTokens") or 0)
                self.tokens -= whole(used, "cacheReadTokens") or 0
            case "permission.requested":
                # It comes before the message that calls the tool.
                self.go_on(at)
                self._calls = True
                self.asks[text(data, "requestId") or ""] = _leave_for(inner(data, "permissionRequest"))
            case "tool.execution_start" if text(data, "toolName") == "ask_user":
                asked = first_line(text(inner(data, "arguments"), "question") or "")
                self.asks[text(data, "toolCallId") or ""] = f"an answer: {asked}" if asked else "an answer"
            case "tool.execution_complete":
                self.asks.pop(text(data, "toolCallId") or "", None)
            case "subagent.started" if is_agent:
                self.go_on(at)
                self.begun_by = text(data, "toolCallId") or ""
                self.title = text(data, "agentDescription") or text(data, "agentDisplayName")
                self.kind = text(data, "agentName")
                self.background = data.get("executionMode") == "background"
            case "subagent.completed" if is_agent:
                self._completed(data, at)
            case "subagent.failed" if is_agent:
                self.over(RunState.FAILED, at, first_line(text(data, "error") or "error"))

    def over(self, state: RunState, at: float, reason: str = "") -> None:
        """It has ended, or was ended."""
        self.end(state, at, reason)
        self.answer = self._last if state is RunState.ENDED else None

    def _asked(self, data: Fields, at: float, offset: int, *, is_agent: bool) -> None:
        words, was_working = text(data, "content") or "", self.state is RunState.WORKING
        if is_agent and not (was_working and data.get("delivery") == "steering"):
            if was_working and self.begun is not None:
                self.end(RunState.FAILED, at, CUT_OFF)
            asker = StartedBy.PARENT if words.strip() else StartedBy.PROGRAM
            self.begin_round(Turn(at, self.keep(words, at, offset), asker))
            source = text(data, "source") or ""
            self.sender = self.sender or (source.removeprefix(_SENDER) if source.startswith(_SENDER) else None)
        if self.prompt is None and words.strip():
            self.prompt = self.keep(words, at, offset)
        self._last = None
        self.asks.clear()
        self.go_on(at)

    def _completed(self, data: Fields, at: float) -> None:
        """One that idles, after it was sent on, may be told to be cancelled when Copilot ends."""
        if data.get("cancelled") is not True:
            self.over(RunState.ENDED, at)
        elif self.reason != LEFT_BEHIND and not (self._was_over and self.state is RunState.ENDED):
            self.over(RunState.CANCELED, at, "cancelled")
        self._was_over = True
        self.tokens = self.tokens or whole(data, "totalTokens") or 0


class Events:
    """The state of one file after the lines that were folded in."""

    def __init__(self, keep: Keep, places: Sequence[str] = ()) -> None:
        self.cwd: str | None = None
        self.not_understood = 0
        self.agents: dict[str, Agent] = {}
        """By id; that of the session itself under SESSION."""
        self.calls: dict[str, tuple[str, AgentCall]] = {}
        """The uses of the tool that hands out work, by id, and who made them."""
        self._keep = keep
        self._places = places
        self._rising = Rising()

    def add(self, fields: Record, offset: int) -> None:
        at, kind = moment(fields.get("timestamp")), text(fields, "type")
        if at is None or kind is None or text(fields, "id") is None:
            self.not_understood += 1
            return
        data, whose = inner(fields, "data"), text(fields, "agentId") or SESSION
        agent = self.agents.get(whose)
        if agent is None:
            agent = self.agents[whose] = Agent(self._keep, self._places)
        for entry in entries(fields, at):
            agent.activity.add(entry)
        agent.updated_at = max(agent.updated_at, at)
        agent.model = text(data, "model") or text(data, "newModel") or text(data, "selectedModel") or agent.model
        agent.add(kind, data, at, offset, is_agent=whose != SESSION)
        self._event(kind, whose, data, at, offset)

    def _event(self, kind: str, whose: str, data: Fields, at: float, offset: int) -> None:
        """What an event says of others than its agent, and of calls."""
        match kind:
            case "session.start":
                self.cwd = self.cwd or text(inner(data, "context"), "cwd")
            case "session.info" if data.get("infoType") == "fork" and (text(data, "message") or "").startswith(_COPIED):
                # All before is a copy of what another session holds.
                self.agents.clear()
                self.calls.clear()
            case "session.resume" if data.get("sessionWasActive") is not True:
                # Nothing says that a program was killed but that another one goes on with its session.
                self._end_all(at, LEFT_BEHIND)
            case "session.shutdown":
                self._end_all(at, text(data, "errorReason") or _SHUT)
            case "permission.completed":
                for one in self.agents.values():
                    one.asks.pop(text(data, "requestId") or "", None)
            case "assistant.message":
                for request in map(mapping, listed(data, "toolRequests")):
                    self._called(whose, request, text(request, "name"), at, offset)
            case "tool.execution_start":
                self._called(whose, data, text(data, "toolName"), at, offset)
            case "tool.execution_complete" if data.get("success") is False:
                _, call = self.calls.get(text(data, "toolCallId") or "", (SESSION, None))
                if call is not None:
                    error = text(inner(data, "error"), "message") or "error"
                    call.answer = AgentAnswer(at, error=first_line(error))

    def _end_all(self, at: float, reason: str) -> None:
        for one in self.agents.values():
            if one.state is RunState.WORKING:
                one.over(RunState.FAILED, at, reason)

    def _called(self, whose: str, call: Fields, tool: str | None, at: float, offset: int) -> None:
        name, given = text(call, "toolCallId"), inner(call, "arguments")
        if tool == "task" and name is not None and name not in self.calls:
            words = text(given, "prompt")
            prompt = self._keep(words, at, offset) if words is not None else None
            kind, background = text(given, "agent_type"), given.get("mode") == "background"
            asked = AgentCall(name, at, self._rising(at), prompt, kind, text(given, "description"), background)
            self.calls[name] = whose, asked


def _leave_for(asked: Fields) -> str:
    """What a permission is asked for, in a few words."""
    what = ("fullCommandText", "fileName", "path", "url", "toolName", "intention", "fact")
    words = next((first_line(words, 200) for key in what if (words := text(asked, key)) is not None), "")
    kind = text(asked, "kind") or ""
    return f"a permission: {kind} {words}".rstrip() if kind else "a permission"


def entries(record: Fields, at: float = 0.0) -> Iterator[Entry]:
    """What an event says; `at` (epoch seconds) is for one that has no time. Not what Copilot makes up itself."""
    at, data = moment(record.get("timestamp")) or at, inner(record, "data")
    words, call = text(data, "content"), text(data, "toolCallId") or ""
    match record.get("type"):
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
            yield Entry(at, EntryKind.CALL, "", call, text(data, "toolName") or "", inner(data, "arguments"))
        case "tool.execution_complete":
            error, code = inner(data, "error"), whole(inner(data, "shellExecution"), "exitCode")
            came = text(inner(data, "result"), "content") or text(error, "message") or ""
            refused = text(error, "code") in _REFUSED
            failed = data.get("success") is False or bool(code)
            ended = None if refused else Ended(code, _ENDING.sub("", came))
            yield Entry(at, EntryKind.RESULT, came, call, failed=failed or refused, refused=refused, ended=ended)
        case "session.error" if (said := text(data, "message")) is not None:
            yield Entry(at, EntryKind.NOTE, said, failed=True)
        case "abort":
            yield Entry(at, EntryKind.NOTE, f"aborted: {text(data, 'reason') or ''}", failed=True)


_NO_AGENT: Final = Agent(no_message, ())


class CopilotReader(FilesReader[Events]):
    """`home` is `$COPILOT_HOME`, else `~/.copilot`. All of a session is in one file."""

    name = NAME
    layout: ClassVar = Layout(
        r"(?P<own>[0-9a-zA-Z_-]{1,128})/events\.jsonl", r"(?P<session>[0-9a-zA-Z_-]{1,128})", root="session-state"
    )

    def __init__(self, workspace: Path, home: Path) -> None:
        super().__init__(workspace, home)
        self.processes = Locks(Path(self.root))

    def projects(self) -> list[str]:
        self.scan(self.root)
        return [self.root] if self.root in self.refused or os.path.isdir(self.root) else []

    def begin(self, keep: Keep, agent: str, path: str) -> Events:  # noqa: ARG002
        return Events(keep, self.places)

    def entries(self, fields: Fields) -> Iterable[Entry]:
        return entries(fields)

    def mark(self, fields: Fields) -> str | None:
        return text(fields, "id")

    def transcript(self, run: Run) -> RunTranscript | None:
        """What the events of the session, or of one of its agents, say."""
        path = Path(run.place)
        session = self.sessions.get((self.root, path.parent.name))
        whose = SESSION if run.session_id == path.parent.name else run.session_id
        if session is None or whose not in session.folds[SESSION].agents:
            return None

        def of_agent(fields: Fields) -> Iterator[Entry]:
            return entries(fields) if (text(fields, "agentId") or SESSION) == whose else iter(())

        own = partial(Placed, of_agent, lambda fields: text(inner(fields, "data", "context"), "cwd"))
        return LinesTranscript(path, of_agent, self.mark, own)

    def runs_of(self, session: Session[Events], about: object) -> dict[str, Run]:
        events = session.folds.get(SESSION)
        if events is None:
            return {}
        found: dict[str, Run] = {}
        for agent_id, agent in events.agents.items():
            asker, call = events.calls.get(agent.begun_by) or (agent.sender or SESSION, NO_CALL)
            if agent.started_at is not None:
                key = f"{session.id}/{call.id or agent_id}" if agent_id else session.id
                key = key if key not in found else f"{session.id}/{agent_id}"
                found[key] = _run(session, agent_id, agent, asker, call)
        for name, (asker, call) in events.calls.items():
            if f"{session.id}/{name}" not in found:
                found[f"{session.id}/{name}"] = _run(session, name, _NO_AGENT, asker, call)
        settle(found, about)
        return found


def _run(session: Session[Events], agent_id: str, agent: Agent, asker: str, call: AgentCall) -> Run:
    """The run of an agent, or of a call of which there is none, which has its id."""
    standing: Standing | Agent = agent
    if agent is _NO_AGENT and call.answer is not None:
        standing = Standing(RunState.FAILED, call.answer.error or "", None, call.answer.at)
    return run_of(
        agent,
        call,
        standing,
        source=NAME,
        session_id=agent_id or session.id,
        parent=(asker or session.id) if agent_id else None,
        place=session.places[SESSION],
        link="the tool call that began it" if call.id else "the sender of its first message",
        title=agent.title,
        agent=agent.kind,
        background=agent.background,
    )


class Locks(Processes):
    """`inuse.<pid>.lock` in the directory of a session: made by a program that opens it, left behind when it is killed.
    A process that has begun later than a lock with its number was made is another one."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.directory = directory
        self._known: set[str] = set()

    def look(self) -> None:
        """A lock is looked for when somebody asks about its session."""

    def of(self, session_id: str) -> Program:
        found: list[Registered] = []
        with suppress(OSError), os.scandir(self.directory / session_id) as entries:
            for entry in entries:
                if (match := _LOCK.fullmatch(entry.name)) is not None and entry.is_file(follow_symlinks=False):
                    with suppress(OSError):
                        made = entry.stat().st_mtime
                        found.append(Registered(session_id, int(match[1]), None, None, made, None))
        if found:
            self._known.add(session_id)
            return self._program(found)
        return Program(gone=True) if session_id in self._known else UNKNOWN

    def _gone(self, registered: Registered) -> bool | None:
        began = _began(registered.pid)
        if began is not None and began > registered.began + _SLACK:
            return self._not_seen_here()
        return super()._gone(registered)


def _began(pid: int) -> float | None:
    """When a process began, in seconds since the epoch; None where the system does not say."""
    if sys.platform != "linux":
        return None
    try:
        ticks = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
        boot = next(line for line in Path("/proc/stat").read_text("ascii").splitlines() if line.startswith("btime "))
    except (OSError, ValueError, IndexError, StopIteration):
        return None
    return int(boot.split()[1]) + ticks / os.sysconf("SC_CLK_TCK")
