"""The reader of Qwen Code, as 0.24 writes it: chats of sessions and agents, in a directory for each working directory.
A record is `{uuid, timestamp, type, subtype?, message: {role, parts}}`. The tool `agent` hands work out. How an agent
stands is in its description at once, while its parent hears of it when all agents of its message have ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from agentwatch.delegation.run import Run, RunState, StartedBy
from agentwatch.sources.sessions.entries import Ended, Entry, EntryKind
from agentwatch.sources.sessions.fields import (
    Fields,
    first_line,
    inner,
    moment,
    objects,
    read_notification,
    string,
    text,
    total,
)
from agentwatch.sources.sessions.runs import (
    CUT_OFF,
    LEFT_BEHIND,
    NO_ACCOUNT,
    NO_CALL,
    Account,
    AgentAnswer,
    AgentCall,
    Standing,
    run_of,
)
from agentwatch.sources.sessions.store import SESSION, FilesReader, Layout, Session
from agentwatch.sources.sessions.tail import Record

NAME: Final = "qwen-code"

# An agent is paused that a program before left behind.
_STATES: Final = {
    "running": RunState.WORKING,
    "completed": RunState.ENDED,
    "failed": RunState.FAILED,
    "error": RunState.FAILED,
    "paused": RunState.FAILED,
    "cancelled": RunState.CANCELED,
}
_BY_HUMAN: Final = "[Operation Cancelled]"
_COMMAND: Final = re.compile(
    r"^Output: (?P<output>.*)^Error: .*^Exit Code: (?:(?P<code>-?\d{1,9})|\(none\))$", re.DOTALL | re.MULTILINE
)  # the output of a command stands between two of the lines about it
_REFUSED: Final = re.compile(
    r"\[Operation Cancelled\] Reason: User did not allow|Qwen Code requires permission to use .{1,200} was declined"
    r"|Tool .{1,200} (?:is blocked in plan mode|is not listed in the active core tools)"
)  # how the results of calls begin that nobody allowed, whatever their status
_STOPPED: Final = f"{_BY_HUMAN} User cancelled tool execution"  # A call that had begun


class Chat(Account):
    """The state of one file after the lines that were folded in. `places` are the spellings of the workspace."""

    def add(self, fields: Record) -> None:
        at = moment(fields)
        if at is None or text(fields, "uuid") is None:
            self.not_understood += 1
            return
        told = list(entries(fields, at))
        for entry in told:
            if entry.kind is EntryKind.RESULT:
                self._returned(entry, inner(fields, "toolCallResult"))
            self.add_entry(entry)
        match fields.get("type"):
            case "user":
                self._prompted(fields, at)
            case "assistant":
                self._answered(fields, told, at)
            case "system":
                # What a signal breaks off stands nowhere else.
                event = inner(fields, "systemPayload", "uiEvent")
                if event.get("status") == "cancelled":
                    self._break_off(string(event, "call_id"), at, "")

    def _prompted(self, fields: Fields, at: float) -> None:
        words, by_program = words_of(fields), "subtype" in fields
        told = read_notification(words) if by_program else None
        if told is not None and (call := self.calls.get(told.tool_use_id or "")) is not None:
            said = self.keep(told.said, at) if told.said is not None else None
            call.answer = AgentAnswer(at, told.status, told.summary, said)
        prompt = self.keep(words, at)
        if self.is_agent:
            if self.state is RunState.WORKING:
                self.state, self.reason = RunState.FAILED, CUT_OFF
            self.ended_at = self.ended_at or self.updated_at
            is_asked = not by_program and bool(words.strip())
            self.begin_round(at, prompt, StartedBy.PARENT if is_asked else StartedBy.PROGRAM)
        self.prompt = self.prompt or prompt
        self.round_at, self.prompted_at = at, self.prompted_at if by_program else at
        self.go_on(at)

    def _answered(self, fields: Fields, told: Sequence[Entry], at: float) -> None:
        self.go_on(at)
        self.tokens += total(inner(fields, "usageMetadata"), "totalTokenCount", without="cachedContentTokenCount")
        self.model = text(fields, "model") or self.model
        calls = [entry for entry in told if entry.kind is EntryKind.CALL]
        for entry in calls:
            if entry.tool == "agent":
                self.calls[entry.call] = self.asked(entry, self.keep(string(entry.given, "prompt"), at))
        words = words_of(fields)
        # A record of an agent's calls may follow; its description says when it is over.
        if not calls and (words.strip() or not self.is_agent):
            self.end(RunState.ENDED, at)
            self.answer = self.later(words, at) if words.strip() else None

    def _returned(self, entry: Entry, result: Fields) -> None:
        self.updated_at = max(self.updated_at, entry.at)
        if result.get("status") == "cancelled":
            self._break_off(entry.call, entry.at, entry.text)
        status = text(inner(result, "resultDisplay"), "status") or string(result, "status")
        call = self.calls.get(entry.call)
        if call is not None and status == "background":
            call.background = True
        elif call is not None and call.answer is None:
            is_said = status == "completed" and bool(entry.text.strip())
            said = self.keep(entry.text, entry.at) if is_said else None
            call.answer = AgentAnswer(entry.at, status, first_line(entry.text), said)

    def _break_off(self, name: str, at: float, words: str) -> None:
        """A human, or a signal, has ended the turn inside a call."""
        if name in self.open:
            self.end(RunState.CANCELED, at)
            if name in self.calls:
                self.calls[name].answer = AgentAnswer(at, "cancelled", first_line(words))


def entries(fields: Fields, at: float = 0.0) -> Iterator[Entry]:
    """The entries of a record, in its order; `at` (epoch seconds) is for one that has no time."""
    at = moment(fields) or at
    match fields.get("type"):
        case "user" if words := words_of(fields):
            told = read_notification(words) if "subtype" in fields else None
            kind = EntryKind.NOTE if "subtype" in fields else EntryKind.PROMPT
            yield Entry(at, kind, told.told if told is not None else words)
        case "assistant":
            for part in _parts_of(fields):
                if (said := text(part, "text")) is not None:
                    yield Entry(at, EntryKind.THOUGHT if part.get("thought") is True else EntryKind.WORDS, said)
                elif call := inner(part, "functionCall"):
                    yield Entry(at, EntryKind.CALL, "", string(call, "id"), string(call, "name"), inner(call, "args"))
        case "tool_result":
            status = inner(fields, "toolCallResult").get("status")
            for part in _parts_of(fields):
                answer = inner(part, "functionResponse")
                response = inner(answer, "response")
                came = text(response, "error") or string(response, "output")
                refused = _REFUSED.match(came) is not None or (status == "cancelled" and not came.startswith(_STOPPED))
                failed = refused or status in ("cancelled", "error") or "error" in response
                ran = None if refused else _COMMAND.search(came)
                ended = Ended(int(ran["code"]) if ran["code"] else None, ran["output"]) if ran else None
                yield Entry(
                    at, EntryKind.RESULT, came, string(answer, "id"), failed=failed, refused=refused, ended=ended
                )


def words_of(fields: Fields) -> str:
    """The words of a message, without thoughts."""
    parts = (part for part in _parts_of(fields) if part.get("thought") is not True)
    return "\n".join(words for part in parts if (words := text(part, "text")))


def _parts_of(fields: Fields) -> Iterator[Fields]:
    return objects(inner(fields, "message"), "parts")


class QwenReader(FilesReader[Chat]):
    """`home` is `$QWEN_RUNTIME_DIR`, else `$QWEN_HOME`, else `~/.qwen`. A description is `agent-<id>.meta.json`."""

    name = NAME
    entries = staticmethod(entries)
    fold = Chat
    layout: ClassVar = Layout(
        r"chats/(?P<own>[0-9a-zA-Z_-]{1,128})\.jsonl"
        r"|subagents/(?P<session>[^/]+)/agent-(?P<agent>.+)(?:\.jsonl|(?P<meta>\.meta\.json))",
        r"chats|subagents(?:/(?P<session>[^/]+))?",
    )

    def runs_of(self, session: Session[Chat]) -> dict[str, Run]:
        folds, metas = session.folds, session.descriptions
        calls: dict[str, tuple[str, AgentCall]] = {}
        # The session first: a later copy of a call is none.
        for asker, talk in sorted(folds.items()):
            for call in talk.calls.values():
                calls.setdefault(call.id, (asker, call))
        rows: list[tuple[str, str, Account, Fields, str, AgentCall]] = []
        # The session last.
        for agent_id in sorted(folds.keys() | metas.keys(), reverse=True):
            meta = metas.get(agent_id, {})
            name = text(meta, "toolUseId") or next((one for one in calls if agent_id.endswith(f"-{one}")), "")
            asker, call = calls.pop(name, (SESSION, NO_CALL))
            key = name or f"{session.id}/{agent_id}".removesuffix("/")
            rows.append((key, agent_id, folds.get(agent_id, NO_ACCOUNT), meta, asker, call))
        rows += [(name, name, NO_ACCOUNT, {}, asker, call) for name, (asker, call) in calls.items()]
        runs: dict[str, Run] = {}
        for key, agent_id, chat, meta, asker, call in rows:
            if (chat.started_at, call.at) == (None, None):
                continue
            written = moment(meta, "lastUpdatedAt")
            run = run_of(
                chat,
                call,
                _standing(chat, meta, call, folds.get(asker, NO_ACCOUNT).prompted_at),
                source=NAME,
                session_id=agent_id or session.id,
                parent=(text(meta, "parentAgentId") or asker or session.id) if agent_id else None,
                place=session.place(agent_id),
                link="the parent's tool call",
                seen_at=written,
                title=text(meta, "description"),
                agent=text(meta, "agentType"),
            )
            runs[key] = replace(run, model=run.model or text(meta, "model"))
        return runs


def _standing(chat: Account, meta: Fields, call: AgentCall, prompted_at: float) -> Standing:
    """By the description first, then by what the parent was told, then by the chat."""
    # The end of an earlier round says nothing of one that began later.
    answer = call.answer if call.answer is not None and call.answer.at >= chat.round_at else None
    written = moment(meta, "lastUpdatedAt")
    status = "running" if written is not None and written < chat.round_at else string(meta, "status")
    state, reason = _STATES.get(status), ""
    is_open = state in (None, RunState.WORKING)
    # An agent that is broken off in a streamed answer calls that a failure.
    by_human = answer is not None and (answer.status == "cancelled" or answer.summary.startswith(_BY_HUMAN))
    if by_human and state is not RunState.ENDED:
        state = RunState.CANCELED
    elif answer is not None and is_open:
        state = _STATES.get(answer.status, RunState.ENDED)
    elif call.at is not None and prompted_at > call.at and not call.background and is_open:
        # A human went on with the session before there was an answer, so the program was killed meanwhile.
        state, reason = RunState.FAILED, LEFT_BEHIND
    elif state is None or (state is RunState.WORKING and chat.started_at is None):
        state = chat.state
    if not reason and state in (RunState.FAILED, RunState.CANCELED):
        reason = status if answer is None else answer.summary or answer.status
    ended = (written, answer.at if answer is not None else None, chat.ended_at, chat.updated_at)
    # The parent's copy has lost its last line break.
    said = chat.said or (answer.said if answer is not None else None)
    return Standing(state, reason, said, next(at for at in ended if at is not None))
