"""The reader of Qwen Code: where its files lie, what the lines of one come to, and the runs of one session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from agentwatch.delegation.run import Run, RunState, StartedBy, Turn
from agentwatch.sources.qwen.entries import entries, words_of
from agentwatch.sources.sessions.doing import Entry, EntryKind
from agentwatch.sources.sessions.fields import (
    Fields,
    first_line,
    inner,
    listed,
    moment,
    read_notification,
    text,
    todos_in,
    whole,
)
from agentwatch.sources.sessions.runs import (
    CUT_OFF,
    LEFT_BEHIND,
    Account,
    AgentAnswer,
    AgentCall,
    Keep,
    Rising,
    Standing,
    no_message,
    run_of,
    settle,
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


@dataclass(slots=True)
class QwenCall(AgentCall):
    """`is_left`: a human went on with the session before there was an answer, so the program was killed meanwhile."""

    is_left: bool = False


class Chat(Account):
    """The state of one file after the lines that were folded in. `places` are the spellings of the workspace."""

    def __init__(self, keep: Keep, is_agent: bool, places: Sequence[str] = ()) -> None:
        super().__init__(keep, places)
        self.cwd: str | None = None
        self.not_understood = 0
        self.calls: dict[str, QwenCall] = {}
        self.round_at = 0.0
        self._is_agent = is_agent
        self._rising = Rising()

    def add(self, fields: Record, offset: int) -> None:
        at = moment(fields.get("timestamp"))
        if at is None or text(fields, "uuid") is None:
            self.not_understood += 1
            return
        self.cwd = self.cwd or text(fields, "cwd")
        told = list(entries(fields, at))
        for entry in told:
            if entry.kind is EntryKind.RESULT:
                self._returned(entry, inner(fields, "toolCallResult"), offset)
            self.activity.add(entry)
        match fields.get("type"):
            case "user":
                self._prompted(fields, at, offset)
            case "assistant":
                self._answered(fields, told, at, offset)
            case "system":
                # What a signal breaks off stands nowhere else.
                event = inner(fields, "systemPayload", "uiEvent")
                if event.get("status") == "cancelled":
                    self._broken_off(text(event, "call_id") or "", at, "")

    def _prompted(self, fields: Fields, at: float, offset: int) -> None:
        words = words_of(fields)
        by_program = "subtype" in fields
        told = read_notification(words) if by_program else None
        if told is not None and (call := self.calls.get(told.tool_use_id or "")) is not None:
            said = self.keep(told.said, at, offset) if told.said is not None else None
            call.answer = AgentAnswer(at, told.status, told.summary, said)
        for call in self.calls.values():
            call.is_left = call.is_left or (not by_program and call.answer is None)
        if self._is_agent:
            is_asked = not by_program and bool(words.strip())
            if self.state is RunState.WORKING:
                self.state, self.reason = RunState.FAILED, CUT_OFF
            self.ended_at = self.ended_at or self.updated_at
            asker = StartedBy.PARENT if is_asked else StartedBy.PROGRAM
            self.begin_round(Turn(at, self.keep(words, at, offset), asker))
        if self.prompt is None:
            self.prompt = self.keep(words, at, offset)
        self.round_at = at
        self.go_on(at)

    def _answered(self, fields: Fields, told: Sequence[Entry], at: float, offset: int) -> None:
        self.go_on(at)
        used = inner(fields, "usageMetadata")
        self.tokens += (whole(used, "totalTokenCount") or 0) - (whole(used, "cachedContentTokenCount") or 0)
        self.model = text(fields, "model") or self.model
        calls = [entry for entry in told if entry.kind is EntryKind.CALL]
        for entry in calls:
            given = entry.given
            if entry.tool == "todo_write":
                self.list(todos_in(listed(given, "todos"), "content"), at)
            elif entry.tool == "agent":
                asked = text(given, "prompt")
                prompt = self.keep(asked, at, offset) if asked is not None else None
                kind, title = text(given, "subagent_type"), text(given, "description")
                background = given.get("run_in_background") is True
                self.calls[entry.call] = QwenCall(entry.call, at, self._rising(at), prompt, kind, title, background)
        words = words_of(fields)
        # A record of an agent's calls may follow; its description says when it is over.
        if not calls and (words.strip() or not self._is_agent):
            self.end(RunState.ENDED, at)
            self.answer = self.later(words, at, offset) if words.strip() else None

    def _returned(self, entry: Entry, result: Fields, offset: int) -> None:
        self.updated_at = max(self.updated_at, entry.at)
        status = text(inner(result, "resultDisplay"), "status") or text(result, "status") or ""
        if result.get("status") == "cancelled":
            self._broken_off(entry.call, entry.at, entry.text)
        call = self.calls.get(entry.call)
        if call is not None and status == "background":
            call.background = True
        elif call is not None and call.answer is None:
            is_said = status == "completed" and bool(entry.text.strip())
            said = self.keep(entry.text, entry.at, offset) if is_said else None
            call.answer = AgentAnswer(entry.at, status, first_line(entry.text), said)

    def _broken_off(self, name: str, at: float, words: str) -> None:
        """A human, or a signal, has ended the turn inside a call."""
        if name in self.activity.open:
            self.end(RunState.CANCELED, at)
            if name in self.calls:
                self.calls[name].answer = AgentAnswer(at, "cancelled", first_line(words))


_NO_CALL: Final = QwenCall("")
_NO_CHAT: Final = Chat(no_message, is_agent=True)


class QwenReader(FilesReader[Chat]):
    """`home` is `$QWEN_RUNTIME_DIR`, else `$QWEN_HOME`, else `~/.qwen`. A description is `agent-<id>.meta.json`."""

    name = NAME
    layout: ClassVar = Layout(
        r"chats/(?P<own>[0-9a-zA-Z_-]{1,128})\.jsonl"
        r"|subagents/(?P<session>[^/]+)/agent-(?P<agent>.+)(?:\.jsonl|(?P<meta>\.meta\.json))",
        r"chats|subagents(?:/(?P<session>[^/]+))?",
    )

    def begin(self, keep: Keep, agent: str, path: str) -> Chat:  # noqa: ARG002
        return Chat(keep, agent != SESSION, self.places)

    def entries(self, fields: Fields) -> Iterable[Entry]:
        return entries(fields)

    def runs_of(self, session: Session[Chat], about: object) -> dict[str, Run]:
        folds, metas, places = session.folds, session.descriptions, session.places
        calls: dict[str, tuple[str, QwenCall]] = {}
        # The session first: a later copy of a call is none.
        for asker, chat in sorted(folds.items()):
            for call in chat.calls.values():
                calls.setdefault(call.id, (asker, call))
        runs: dict[str, Run] = {}
        for agent_id in sorted(folds.keys() | metas.keys()):
            meta = metas.get(agent_id, {})
            name = text(meta, "toolUseId") or next((one for one in calls if agent_id.endswith(f"-{one}")), None)
            asker, call = calls.pop(name or "", (SESSION, _NO_CALL))
            parent = None if agent_id == SESSION else text(meta, "parentAgentId") or asker or session.id
            key = session.id if agent_id == SESSION else name or f"{session.id}/{agent_id}"
            place = session.place(places, agent_id)
            chat = folds.get(agent_id, _NO_CHAT)
            if (run := _run(chat, agent_id or session.id, parent, meta, call=call, place=place)) is not None:
                runs[key] = run
        for asker, call in calls.values():
            place = session.place(places, asker)
            if (run := _run(_NO_CHAT, call.id, asker or session.id, {}, call=call, place=place)) is not None:
                runs[call.id] = run
        if session.id in runs:
            runs[session.id] = runs.pop(session.id)
        settle(runs, about)
        return runs


def _run(chat: Chat, name: str, parent: str | None, meta: Fields, *, call: QwenCall, place: str) -> Run | None:
    """The run of an agent, or of a call of which none is known; None before there is anything but a name."""
    written = moment(meta.get("lastUpdatedAt"))
    if (chat.started_at, call.at, written) == (None, None, None):
        return None
    # What ended an earlier round says nothing of one that began later.
    answer = call.answer if call.answer is not None and call.answer.at >= chat.round_at else None
    is_news = written is not None and written < chat.round_at
    status = "running" if is_news else text(meta, "status") or ""
    state, reason = _standing(chat, status, call, answer)
    ended = [at for at in (written, answer.at if answer is not None else None, chat.ended_at) if at is not None]
    # The parent's copy has lost its last line break.
    said = chat.said or (answer.said if answer is not None else None)
    run = run_of(
        chat,
        call,
        Standing(state, reason, said, ended[0] if ended else chat.updated_at),
        source=NAME,
        session_id=name,
        parent=parent,
        place=place,
        link="meta.json" if "toolUseId" in meta else "the parent's tool call",
        seen_at=written,
        title=text(meta, "description"),
        agent=text(meta, "agentType"),
        background=meta.get("isBackgrounded") is True,
    )
    return run if run.model is not None else replace(run, model=text(meta, "model"))


def _standing(chat: Chat, status: str, call: QwenCall, answer: AgentAnswer | None) -> tuple[RunState, str]:
    """State and reason: by the description first, then by what the parent was told, then by the chat."""
    state = _STATES.get(status)
    is_open = state in (None, RunState.WORKING)
    # An agent that is broken off in a streamed answer calls that a failure.
    by_human = answer is not None and (answer.status == "cancelled" or answer.summary.startswith(_BY_HUMAN))
    if by_human and state is not RunState.ENDED:
        state = RunState.CANCELED
    elif answer is not None and is_open:
        state = _STATES.get(answer.status, RunState.ENDED)
    elif call.is_left and not call.background and is_open:
        return RunState.FAILED, LEFT_BEHIND
    elif state is None or (state is RunState.WORKING and chat.started_at is None):
        return chat.state, ""
    if state in (RunState.WORKING, RunState.ENDED):
        return state, ""
    return state, answer.summary or answer.status if answer is not None else status
