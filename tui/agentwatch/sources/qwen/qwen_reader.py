"""The reader of Qwen Code: where its files lie, and the runs of one session made of what they come to."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from agentwatch.delegation.run import Message, Run, RunState
from agentwatch.sources.qwen.chat import Chat, QwenCall, texts_in
from agentwatch.sources.sessions.fields import Fields, moment, text
from agentwatch.sources.sessions.group import Kind, StoredSession
from agentwatch.sources.sessions.processes import Program
from agentwatch.sources.sessions.projects import SESSION, Layout
from agentwatch.sources.sessions.runs import LEFT_BEHIND, OPEN, WORDLESS, AgentAnswer, settle
from agentwatch.sources.sessions.transcripts import TranscriptsReader

NAME: Final = "qwen-code"

_LAYOUT: Final = Layout(
    r"chats/(?P<own>[0-9a-zA-Z_-]{1,128})\.jsonl"
    r"|subagents/(?P<session>[^/]+)/agent-(?P<agent>.+)(?:\.jsonl|(?P<meta>\.meta\.json))",
    r"chats|subagents(?:/(?P<session>[^/]+))?",
)
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
_NO_CALL: Final = QwenCall("")
_NO_CHAT: Final = Chat(lambda *_: Message(0.0, "", ""), is_agent=True)


class QwenReader(TranscriptsReader[Chat]):
    """`home` is `$QWEN_RUNTIME_DIR`, else `$QWEN_HOME`, else `~/.qwen`."""

    def __init__(self, workspace: Path, home: Path, since: float | None = None) -> None:
        super().__init__(Kind(NAME, _LAYOUT, Chat, QwenSession, texts_in), workspace, home, since)


class QwenSession(StoredSession[Chat]):
    """One session. A description is the object in `agent-<id>.meta.json`."""

    __slots__ = ()

    def runs(self, program: Program) -> dict[str, Run]:
        calls: dict[str, tuple[str, QwenCall]] = {}
        # The session first: a later copy of a call is none.
        for asker in sorted(self.transcripts):
            for call in self.transcripts[asker].calls.values():
                calls.setdefault(call.id, (asker, call))
        found: dict[str, Run | None] = {}
        for agent_id in sorted((self.transcripts.keys() | self.metas.keys()) - {SESSION}):
            meta = self.metas.get(agent_id, {})
            name = text(meta, "toolUseId") or next((one for one in calls if agent_id.endswith(f"-{one}")), None)
            asker, call = calls.get(name or "", (SESSION, _NO_CALL))
            parent = text(meta, "parentAgentId") or asker or self.session_id
            found[name or f"{self.session_id}/{agent_id}"] = self._run(agent_id, parent, meta, call)
        for asker, call in calls.values():
            if call.id not in found:
                found[call.id] = self._run(None, asker or self.session_id, {}, call)
        if SESSION in self.transcripts:
            found[self.session_id] = self._run(SESSION, None, {}, _NO_CALL)
        runs = {key: run for key, run in found.items() if run is not None}
        settle(runs, program)
        return runs

    def _run(self, agent_id: str | None, parent: str | None, meta: Fields, call: QwenCall) -> Run | None:
        """The run of an agent, or of a call of which none is known; None before there is anything but a name."""
        chat = _NO_CHAT if agent_id is None else self.transcripts.get(agent_id, _NO_CHAT)
        written = moment(meta.get("lastUpdatedAt"))
        started_at = next((at for at in (chat.started_at, call.at, written) if at is not None), None)
        if started_at is None:
            return None
        # What ended an earlier round says nothing of one that began later.
        answer = call.answer if call.answer is not None and call.answer.at >= chat.round_at else None
        is_news = written is not None and written < chat.round_at
        status = "running" if is_news else text(meta, "status")
        state, reason = _standing(chat, _STATES.get(status or ""), status or "", call, answer)
        # The parent's copy has lost its last line break.
        said = (chat.said or (answer.said if answer is not None else None)) if state is RunState.ENDED else None
        ended = [at for at in (written, answer.at if answer is not None else None, chat.ended_at) if at is not None]
        ended_at = None if state in OPEN else max(started_at, ended[0] if ended else chat.updated_at)
        prompt = chat.prompt or call.prompt
        typed = prompt.opening if prompt is not None and parent is None else None
        agent = text(meta, "agentType") or call.agent_type
        return Run(
            source=NAME,
            session_id=agent_id or call.id or self.session_id,
            parent_session=parent,
            state=state,
            place=self.place(agent_id or parent or SESSION),
            started_at=started_at,
            updated_at=max(started_at, chat.updated_at, written or 0.0, ended_at or 0.0),
            ended_at=ended_at,
            link="" if parent is None else "meta.json" if "toolUseId" in meta else "the parent's tool call",
            reason=WORDLESS if state is RunState.ENDED and said is None else reason,
            title=text(meta, "description") or call.title or typed,
            agent=agent,
            mode=agent,
            model=chat.model or text(meta, "model"),
            prompt=prompt,
            prompt_missing="" if prompt is not None or parent is None else "not in the transcript",
            said=said,
            rounds=chat.rounds_of_run(),
            todos=chat.todos,
            tokens=chat.tokens or None,
            background=meta.get("isBackgrounded") is True or call.background,
            asked_at=call.asked_at,
        )


def _standing(
    chat: Chat, state: RunState | None, status: str, call: QwenCall, answer: AgentAnswer | None
) -> tuple[RunState, str]:
    """State and reason: by the description first, then by what the parent was told, then by the chat."""
    by_human = answer is not None and (answer.status == "cancelled" or answer.summary.startswith(_BY_HUMAN))
    # An agent that is broken off in a streamed answer calls that a failure.
    if by_human and state is not RunState.ENDED:
        state = RunState.CANCELED
    elif answer is not None and state in (None, RunState.WORKING):
        state = _STATES.get(answer.status, RunState.ENDED)
    elif call.is_left and not call.background and state in (None, RunState.WORKING):
        return RunState.FAILED, LEFT_BEHIND
    elif state is None or (state is RunState.WORKING and chat.started_at is None):
        return chat.state, ""
    if state in (RunState.WORKING, RunState.ENDED):
        return state, ""
    return state, answer.summary or answer.status if answer is not None else status
