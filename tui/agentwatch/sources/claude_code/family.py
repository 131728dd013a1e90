"""Who asked for whom within one session of Claude Code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agentwatch.sources.claude_code.conversation import Conversation
from agentwatch.sources.claude_code.transcript import DELEGATING, ClaudeCall, Transcript
from agentwatch.sources.sessions.fields import Fields, text
from agentwatch.sources.sessions.projects import SESSION


class Bond(NamedTuple):
    """What ties an agent to its parent: an agent's id or SESSION, the calls in their order, and by what it is known.

    `claim` is the id of the call that began the agent, which may not have been read yet; None where none is known.
    """

    parent: str
    calls: tuple[ClaudeCall, ...]
    link: str
    claim: str | None


class Family:
    """Who asked for whom within one session: each agent's parent and calls, and by what they are known.

    `transcripts` are by agent id, the session's own under SESSION.

    Agents written into the session's own file are known by the id of their first record.
    """

    def __init__(self, transcripts: Mapping[str, Transcript], metas: Mapping[str, Fields]) -> None:
        self.conversations: dict[str, Conversation] = {}
        self._metas = metas
        self._calls: dict[str, ClaudeCall] = {}
        self._owners: dict[str, str] = {}
        self._links: dict[str, str] = {}
        self._claims: dict[str, list[str]] = {}
        self._claimed: dict[str, str] = {}
        # The session first: what a forked agent's transcript repeats of it is not the agent's own.
        for agent_id in sorted(transcripts):
            transcript = transcripts[agent_id]
            self.conversations[agent_id] = transcript.main
            self.conversations |= transcript.inline
            for call in transcript.calls.values():
                if call.id not in self._calls:
                    self._calls[call.id] = call
                    self._owners[call.id] = agent_id if call.by is None else call.by
        for agent_id in sorted(metas):
            self._link(agent_id, text(metas[agent_id], "toolUseId"), "meta.json")
        for told_by in sorted(transcripts):
            for agent_id, tool_use_id in transcripts[told_by].progress.items():
                self._link(agent_id, tool_use_id, "progress records")
        for tool_use_id, call in self._calls.items():
            if call.answer is not None and call.answer.agent_id is not None:
                self._link(call.answer.agent_id, tool_use_id, "the parent's tool result")
            if call.resumes is not None:
                self._link(call.resumes, tool_use_id, "the parent's tool call")
        self._link_by_prompt()
        for agent_id in self.conversations:
            self._links.setdefault(agent_id, "the session's directory")

    def bonds(self) -> Iterator[tuple[str, Bond]]:
        """(agent's id, its bond) of all agents of which anything is known, and of calls that none is known of."""
        for agent_id, link in self._links.items():
            if agent_id == SESSION:
                continue
            claims = self._claims.get(agent_id, [])
            known = [self._calls[claim] for claim in claims if claim in self._calls]
            calls = sorted(known, key=lambda call: call.asked_at or 0.0)
            # `meta.json` may be there before the transcript, after it, or never.
            parent = text(self._metas.get(agent_id, {}), "parentAgentId")
            if parent is None:
                parent = self._owners[calls[0].id] if calls else SESSION
            claim = claims[0] if claims and self._claimed[claims[0]] == agent_id else None
            yield agent_id, Bond(parent, tuple(calls), link, claim)
        for name, call in self._unclaimed():
            yield name, Bond(self._owners[name], (call,), "the parent's tool call", name)

    def _unclaimed(self) -> Iterator[tuple[str, ClaudeCall]]:
        """The uses of the delegating tool, by id, where no agent is known that came of it."""
        for tool_use_id, call in self._calls.items():
            if tool_use_id not in self._claimed and call.tool in DELEGATING:
                yield tool_use_id, call

    def _link_by_prompt(self) -> None:
        waiting: dict[str, list[str]] = {}
        for _, call in self._unclaimed():
            if call.prompt is not None:
                waiting.setdefault(call.prompt.digest, []).append(call.id)
        alone = [
            (conversation.started_at or 0.0, agent_id, conversation.prompt.digest)
            for agent_id, conversation in self.conversations.items()
            if agent_id != SESSION and agent_id not in self._claims and conversation.prompt is not None
        ]
        for _, agent_id, digest in sorted(alone):
            if waiting.get(digest):
                self._link(agent_id, waiting[digest].pop(0), "the same prompt")

    def _link(self, agent_id: str, tool_use_id: str | None, link: str) -> None:
        self._links.setdefault(agent_id, link)
        if tool_use_id is None:
            return
        claims = self._claims.setdefault(agent_id, [])
        if tool_use_id not in claims:
            claims.append(tool_use_id)
            self._claimed.setdefault(tool_use_id, agent_id)
