"""The reader of Claude Code: where its files lie, and the runs of one session made of what they come to."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.delegation.run import Message, Run, RunState
from agentwatch.sources.claude_code import NAME
from agentwatch.sources.claude_code.conversation import Conversation
from agentwatch.sources.claude_code.entries import entries
from agentwatch.sources.claude_code.family import Bond, Family
from agentwatch.sources.claude_code.frames import handed_back, texts
from agentwatch.sources.claude_code.tools import asker
from agentwatch.sources.claude_code.transcript import Transcript
from agentwatch.sources.sessions.fields import (
    Fields,
    first_line,
    inner,
    listed,
    mapping,
    number,
    read_notification,
    text,
)
from agentwatch.sources.sessions.group import Kind, StoredSession
from agentwatch.sources.sessions.processes import Processes, Program, Wait
from agentwatch.sources.sessions.projects import SESSION, Layout, Projects
from agentwatch.sources.sessions.reader import spellings
from agentwatch.sources.sessions.runs import LEFT_BEHIND, OPEN, UNREAD, WORDLESS, AgentAnswer, settle
from agentwatch.sources.sessions.transcripts import TranscriptsReader

# Older programs put agents among the sessions. The two that are left out are run by the program for itself.
_LAYOUT: Final = Layout(
    r"(?:(?P<session>[^/]+)/(?:subagents/(?:.+/)?)?)?"
    r"agent-(?!acompact-|aprompt_suggestion-)(?P<agent>.+)(?:\.jsonl|(?P<meta>\.meta\.json))"
    r"|(?!agent-)(?P<own>[0-9a-zA-Z_-]{1,128})\.jsonl",
    r"(?P<session>[^/]+)(?:/subagents(?:/[^/]+){0,4})?",
)

_WAITS: Final = {
    "permission prompt": "a permission",
    "worker request": "a permission",
    "sandbox request": "a permission to use the network",
    "goal proposal": "an approval of its goal",
    "input needed": "an answer",
}

_WARMUP: Final = "Warmup"
"""All that the program itself asks two agents of every session for, in versions 2.0."""

_TITLES: Final = ("custom-title", "ai-title", "summary", "prompt")
"""The kinds of titles, the best first."""

_BY_HUMAN: Final = ("[request interrupted", "interrupted by user", "the user doesn't want", "user rejected")
_LIMIT: Final = re.compile(r'(?:this agent|Agent ".*") stopped at its \d{1,9}-turn limit')
_LOST: Final = ("[tool call did not complete", "no completion record")
_STATES: Final = {
    "failed": RunState.FAILED,
    "killed": RunState.CANCELED,
    "stopped": RunState.CANCELED,
    "canceled": RunState.CANCELED,
    "cancelled": RunState.CANCELED,
}
_UNTOLD: Final = Conversation(lambda *_: Message(0.0, "", ""), is_agent=True)
"""That of an agent without a transcript."""


class ClaudeCodeReader(TranscriptsReader[Transcript]):
    """`home` is `$CLAUDE_CONFIG_DIR`, else `~/.claude`."""

    def __init__(self, workspace: Path, home: Path, since: float | None = None) -> None:
        transcript = partial(Transcript, places=spellings(workspace))

        def processes(projects: Projects) -> Processes:
            return Processes(projects.home, wait_in)

        kind = Kind(NAME, _LAYOUT, transcript, ClaudeSession, _texts_in, entries, processes)
        super().__init__(kind, workspace, home, since)


def wait_in(process: Fields) -> Wait | None:
    """What `sessions/<pid>.json` says that its program waits for."""
    what = text(process, "waitingFor") or ""
    # Somebody who sits there has opened a dialog; no work waits for it.
    if process.get("status") != "waiting" or what == "dialog open":
        return None
    since = (number(process, "statusUpdatedAt") or 0.0) / 1000
    return Wait(_WAITS.get(what) or first_line(what, 100) or "an answer", since)


def _texts_in(line: Fields) -> Iterator[str]:
    message = inner(line, "message")
    content = message.get("content")
    yield "\n".join(texts(content))
    for block in map(mapping, listed(message, "content")):
        prompt = inner(block, "input").get("prompt")
        yield prompt if isinstance(prompt, str) else ""
        if block.get("type") == "tool_result":
            yield handed_back(texts(block.get("content")), inner(line, "toolUseResult")) or ""
    for words in (line.get("content"), inner(line, "attachment").get("prompt"), content):
        told = read_notification(words) if isinstance(words, str) else None
        yield (told.said if told is not None else None) or ""


class ClaudeSession(StoredSession[Transcript]):
    """What is known of one session."""

    __slots__ = ()

    def runs(self, program: Program) -> dict[str, Run]:
        family = Family(self.transcripts, self.metas)
        bonds = dict(family.bonds())
        ends: defaultdict[str, list[AgentAnswer]] = defaultdict(list)
        for _, transcript in sorted(self.transcripts.items()):
            for agent_id, end in transcript.ends.items():
                ends[agent_id].append(end)
        # Agents in the session's own file have no id of their own: they go by the call that began them.
        inline = {
            agent_id: bond.claim
            for agent_id, bond in bonds.items()
            if bond.claim is not None and agent_id in family.conversations and agent_id not in self.transcripts
        }
        names = {**inline, SESSION: self.session_id}
        runs: dict[str, Run] = {}
        talks: dict[str, Conversation] = {}
        # Before its agents: hundreds of them that are there already would move all at once.
        own = self.transcripts.get(SESSION)
        if own is not None and own.main.started_at is not None and own.main.state is not RunState.SUBMITTED:
            runs[self.session_id], talks[self.session_id] = self._root(own, own.main.started_at), own.main
        for agent_id, bond in bonds.items():
            conversation = family.conversations.get(agent_id, _UNTOLD)
            run = self._agent(agent_id, bond, conversation, ends[agent_id], names)
            if run is not None:
                key = bond.claim or f"{self.session_id}/{agent_id}"
                runs[key], talks[key] = run, conversation
        settle(runs, program, partial(self._ask, runs, talks))
        return runs

    def _ask(self, runs: dict[str, Run], talks: Mapping[str, Conversation], wait: Wait) -> None:
        """The program waits for a human: so does one of its agents, or it itself where that cannot be told."""
        working = (key for key in talks if runs[key].state is RunState.WORKING and not runs[key].process_gone)
        agent, what = asker({key: list(talks[key].uses.values()) for key in working}, wait)
        key = agent or self.session_id
        if key in runs:
            # A session whose own turn is over is not, as long as somebody has to answer it for its agents.
            runs[key] = replace(
                runs[key], state=RunState.WORKING, reason="", said=None, ended_at=None, process_gone=False, waiting=what
            )

    def _root(self, own: Transcript, started: float) -> Run:
        main = own.main
        return Run(
            source=NAME,
            session_id=self.session_id,
            parent_session=None,
            state=main.state,
            place=self.places[SESSION],
            started_at=started,
            updated_at=max(started, main.updated_at),
            ended_at=max(started, main.ended_at) if main.ended_at is not None else None,
            reason=main.reason,
            title=next((own.titles[kind] for kind in _TITLES if kind in own.titles), None),
            model=main.model,
            prompt=main.prompt,
            said=main.said,
            todos=main.checklist.todos,
            tokens=main.tokens,
            doing=main.pulse.doing,
            waiting=_waiting(main),
            permits=tuple(main.permits.told),
        )

    def _agent(
        self,
        agent_id: str,
        bond: Bond,
        conversation: Conversation,
        ends: Sequence[AgentAnswer],
        names: Mapping[str, str],
    ) -> Run | None:
        """The run of an agent, or of a call of which no agent is known. `names` are ids of sessions where they differ.

        None if it has only a description yet, or if the program wanted it only to warm up.
        """
        meta = self.metas.get(agent_id, {})
        answers = sorted((call.answer for call in bond.calls if call.answer is not None), key=attrgetter("at"))
        heard = answers + sorted(ends, key=attrgetter("at"))
        stands = _standing(conversation, heard)
        call = bond.calls[0] if bond.calls else None
        prompt = (call.prompt if call is not None else None) or conversation.prompt
        if call is None and prompt is not None and prompt.opening == _WARMUP:
            return None
        times = [conversation.started_at, call.at if call is not None else None, *(answer.at for answer in heard)]
        started = next((at for at in times if at is not None), None)
        if started is None:
            return None
        mode = text(meta, "agentType") or (call.agent_type if call is not None else None)
        is_inline = conversation is not _UNTOLD and agent_id not in self.transcripts
        return Run(
            source=NAME,
            session_id=names.get(agent_id, agent_id),
            parent_session=names.get(bond.parent, bond.parent),
            state=stands.state,
            place=self.place(agent_id if agent_id in self.places else bond.parent),
            started_at=started,
            updated_at=max(started, conversation.updated_at, stands.ended_at or 0.0),
            ended_at=max(started, stands.ended_at) if stands.ended_at is not None else None,
            link="inline in the session" if is_inline else bond.link,
            reason=stands.reason,
            title=text(meta, "description") or (call.title if call is not None else None),
            agent=text(meta, "name") or mode,
            mode=mode,
            model=conversation.model,
            prompt=prompt,
            prompt_missing="" if prompt is not None else "not in the transcript",
            said=stands.said,
            rounds=conversation.rounds_of_run(),
            todos=conversation.checklist.todos,
            tokens=conversation.tokens,
            doing=conversation.pulse.doing,
            background=meta.get("requestShape") == "background" or any(call.background for call in bond.calls),
            waiting=_waiting(conversation) if stands.state is RunState.WORKING else "",
            asked_at=call.asked_at if call is not None else None,
            permits=tuple(conversation.permits.told),
        )


class _Standing(NamedTuple):
    """State, the words of the program for it, the return, and when it ended."""

    state: RunState
    reason: str = ""
    said: Message | None = None
    ended_at: float | None = None


def _standing(conversation: Conversation, heard: Sequence[AgentAnswer]) -> _Standing:
    """By its own transcript first, then by what its parents heard, oldest first."""
    if conversation.is_unread:
        # What cannot be read may say that it failed, so it is not said to be over.
        copies = [answer.said for answer in heard if answer.said is not None and answer.at >= conversation.round_at]
        ended_at = conversation.ended_at
        return _Standing(RunState.ENDED, "", copies[-1], ended_at) if copies else _Standing(RunState.SUBMITTED, UNREAD)
    if conversation.state not in OPEN:
        return _Standing(conversation.state, conversation.reason, conversation.said, conversation.ended_at)
    begun = conversation.started_at is not None
    # What ended an earlier round says nothing of one that began later.
    since = conversation.round_at if conversation.rounds > 1 else float("-inf")
    told = [answer for answer in heard if not answer.launched and answer.at >= since]
    if not told:
        return _Standing(RunState.WORKING if begun else RunState.SUBMITTED)
    last = told[-1]
    words = (last.error or last.summary).lower()
    if any(lost in words for lost in _LOST):
        return _Standing(RunState.FAILED, LEFT_BEHIND, None, last.at)
    if last.error is not None:
        if any(stopped in words for stopped in _BY_HUMAN):
            return _Standing(RunState.CANCELED, last.error, None, last.at)
        reason = LEFT_BEHIND if begun and "api error" not in words else last.error
        return _Standing(RunState.FAILED, reason, None, last.at)
    state = RunState.FAILED if _LIMIT.match(last.summary) else _STATES.get(last.status, RunState.ENDED)
    if state is not RunState.ENDED:
        return _Standing(state, last.summary or last.status, None, last.at)
    said = conversation.last_text() or last.said
    return _Standing(RunState.ENDED, WORDLESS if said is None else "", said, last.at)


def _waiting(conversation: Conversation) -> str:
    """What it asks by a tool that does nothing else."""
    if conversation.state is not RunState.WORKING:
        return ""
    return next((use.words for use in conversation.uses.values() if use.is_question), "")
