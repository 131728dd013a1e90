"""The reader of Claude Code: where its files lie, who asked for whom, and the runs of one session.

The program writes that it waits, and not which agent asks. So that is inferred: the agent whose use of a tool came
just before, or the only one without a result. If there are several, the session asks: a wrong name would be worse than
none.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.claude_code import NAME
from agentwatch.sources.claude_code.entries import entries, handed_back, texts
from agentwatch.sources.claude_code.transcript import (
    DELEGATING,
    QUESTIONS,
    ClaudeCall,
    Transcript,
    words_of_use,
)
from agentwatch.sources.sessions.doing import Entry
from agentwatch.sources.sessions.fields import (
    Fields,
    first_line,
    inner,
    listed,
    mapping,
    number,
    text,
)
from agentwatch.sources.sessions.processes import Processes, Wait
from agentwatch.sources.sessions.reader import texts_in
from agentwatch.sources.sessions.runs import (
    LEFT_BEHIND,
    NO_CALL,
    OPEN,
    UNREAD,
    WORDLESS,
    AgentAnswer,
    Keep,
    Standing,
    no_message,
    run_of,
    settle,
)
from agentwatch.sources.sessions.store import SESSION, FilesReader, Layout, Session

_SLACK: Final = 2.0
"""Seconds from the use of a tool to the question about it. It is longer where hooks or a classifier judge first, and
for the later ones of several in one message."""
_WAITS: Final = {
    "permission prompt": "a permission",
    "worker request": "a permission",
    "sandbox request": "a permission to use the network",
    "goal proposal": "an approval of its goal",
    "input needed": "an answer",
}
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
_UNTOLD: Final = Transcript(no_message, is_agent=True)
"""That of an agent without a transcript."""


class ClaudeCodeReader(FilesReader[Transcript]):
    """`home` is `$CLAUDE_CONFIG_DIR`, else `~/.claude`."""

    name = NAME
    # Older programs put agents among the sessions. The two that are left out are run by the program for itself.
    layout: ClassVar = Layout(
        r"(?:(?P<session>[^/]+)/(?:subagents/(?:.+/)?)?)?"
        r"agent-(?!acompact-|aprompt_suggestion-)(?P<agent>.+)(?:\.jsonl|(?P<meta>\.meta\.json))"
        r"|(?!agent-)(?P<own>[0-9a-zA-Z_-]{1,128})\.jsonl",
        r"(?P<session>[^/]+)(?:/subagents(?:/[^/]+){0,4})?",
    )

    def __init__(self, workspace: Path, home: Path) -> None:
        super().__init__(workspace, home)
        self.processes = Processes(home, wait_in)

    def begin(self, keep: Keep, agent: str, path: str) -> Transcript:  # noqa: ARG002
        return Transcript(keep, agent != SESSION, self.places)

    def entries(self, fields: Fields) -> Iterable[Entry]:
        return entries(fields)

    def texts_in(self, fields: Fields) -> Iterator[str]:
        yield from texts_in(fields)
        for block in map(mapping, listed(inner(fields, "message"), "content")):
            yield handed_back(texts(block.get("content")), inner(fields, "toolUseResult")) or ""

    def runs_of(self, session: Session[Transcript], about: object) -> dict[str, Run]:
        folds, metas, places = session.folds, session.descriptions, session.places
        ends: defaultdict[str, list[AgentAnswer]] = defaultdict(list)
        for _, transcript in sorted(folds.items()):
            for agent_id, end in transcript.ends.items():
                ends[agent_id].append(end)
        runs: dict[str, Run] = {}
        talks: dict[str, Transcript] = {}
        # Before its agents: hundreds of them that are there already would move all at once.
        own = folds.get(SESSION)
        if own is not None and own.started_at is not None and own.state is not RunState.SUBMITTED:
            title = next((own.titles[kind] for kind in _TITLES if kind in own.titles), None)
            place = places[SESSION]
            runs[session.id] = run_of(
                own, NO_CALL, own, source=NAME, session_id=session.id, parent=None, place=place, title=title
            )
            talks[session.id] = own
        for agent_id, bond in link_agents(folds, metas).items():
            talk, meta = folds.get(agent_id, _UNTOLD), metas.get(agent_id, {})
            answers = sorted((call.answer for call in bond.calls if call.answer is not None), key=attrgetter("at"))
            heard = answers + sorted(ends[agent_id], key=attrgetter("at"))
            call = bond.calls[0] if bond.calls else NO_CALL
            times = [at for at in (talk.started_at, call.at, *(answer.at for answer in heard)) if at is not None]
            if not times:
                # It has only a description yet.
                continue
            key = bond.claim or f"{session.id}/{agent_id}"
            runs[key] = run_of(
                talk,
                call,
                _standing(talk, heard),
                source=NAME,
                session_id=agent_id,
                parent=bond.parent or session.id,
                place=session.place(places, agent_id if agent_id in places else bond.parent),
                link=bond.link,
                seen_at=times[0],
                title=text(meta, "description"),
                agent=text(meta, "agentType"),
                name=text(meta, "name"),
                prompt=call.prompt or talk.prompt,
                background=meta.get("requestShape") == "background" or any(call.background for call in bond.calls),
            )
            talks[key] = talk
        settle(runs, about, partial(_ask, session.id, runs, talks))
        return runs


class Bond(NamedTuple):
    """The link of an agent to its parent: an agent's id or SESSION, the calls in their order, and by what it is known.

    `claim` is the id of the call that began the agent, which may not have been read yet; None where none is known.
    """

    parent: str
    calls: tuple[ClaudeCall, ...]
    link: str
    claim: str | None


def link_agents(transcripts: Mapping[str, Transcript], metas: Mapping[str, Fields]) -> dict[str, Bond]:
    """The bonds of all agents of which anything is known, by id, and of calls that none is known of.

    `transcripts` are by agent id, the session's own under SESSION.
    """
    calls: dict[str, ClaudeCall] = {}
    owners: dict[str, str] = {}
    links: dict[str, str] = {}
    claims: defaultdict[str, list[str]] = defaultdict(list)
    claimed: dict[str, str] = {}

    def link(agent_id: str, call_id: str | None, by: str) -> None:
        links.setdefault(agent_id, by)
        if call_id is not None and call_id not in claims[agent_id]:
            claims[agent_id].append(call_id)
            claimed.setdefault(call_id, agent_id)

    # The session first: what a forked agent's transcript repeats of it is not the agent's own.
    for agent_id, transcript in sorted(transcripts.items()):
        for call in transcript.calls.values():
            if call.id not in calls:
                calls[call.id], owners[call.id] = call, agent_id
    for agent_id in sorted(metas):
        link(agent_id, text(metas[agent_id], "toolUseId"), "meta.json")
    for call in calls.values():
        if call.answer is not None and call.answer.agent_id is not None:
            link(call.answer.agent_id, call.id, "the parent's tool result")
        if call.resumes is not None:
            link(call.resumes, call.id, "the parent's tool call")
    waiting: defaultdict[str, list[str]] = defaultdict(list)
    for call in calls.values():
        if call.id not in claimed and call.tool in DELEGATING and call.prompt is not None:
            waiting[call.prompt.digest].append(call.id)
    for agent_id, one in sorted(transcripts.items(), key=lambda item: (item[1].started_at or 0.0, item[0])):
        if agent_id != SESSION:
            if agent_id not in claims and one.prompt is not None and waiting[one.prompt.digest]:
                link(agent_id, waiting[one.prompt.digest].pop(0), "the same prompt")
            links.setdefault(agent_id, "the session's directory")
    bonds: dict[str, Bond] = {}
    for agent_id, by in links.items():
        mine = claims[agent_id]
        asked = sorted((calls[one] for one in mine if one in calls), key=lambda call: call.asked_at or 0.0)
        # `meta.json` may be there before the transcript, after it, or never.
        parent = text(metas.get(agent_id, {}), "parentAgentId")
        if parent is None:
            parent = owners[asked[0].id] if asked else SESSION
        claim = mine[0] if mine and claimed[mine[0]] == agent_id else None
        bonds[agent_id] = Bond(parent, tuple(asked), by, claim)
    for call in calls.values():
        if call.id not in claimed and call.tool in DELEGATING:
            bonds[call.id] = Bond(owners[call.id], (call,), "the parent's tool call", call.id)
    return bonds


def _standing(talk: Transcript, heard: Sequence[AgentAnswer]) -> Standing:
    """By its own transcript first, then by what its parents heard, oldest first."""
    if talk.state is RunState.ENDED and talk.reason == UNREAD:
        # What cannot be read may say that it failed, so it is not said to be over.
        copies = [answer.said for answer in heard if answer.said is not None and answer.at >= talk.round_at]
        return (
            Standing(RunState.ENDED, "", copies[-1], talk.ended_at) if copies else Standing(RunState.SUBMITTED, UNREAD)
        )
    if talk.state not in OPEN:
        return Standing(talk.state, talk.reason, talk.said, talk.ended_at)
    begun = talk.started_at is not None
    # What ended an earlier round says nothing of one that began later.
    since = talk.round_at if talk.rounds > 1 else float("-inf")
    told = [answer for answer in heard if not answer.launched and answer.at >= since]
    if not told:
        return Standing(RunState.WORKING if begun else RunState.SUBMITTED)
    last = told[-1]
    words = (last.error or last.summary).lower()
    if any(lost in words for lost in _LOST):
        return Standing(RunState.FAILED, LEFT_BEHIND, None, last.at)
    if last.error is not None:
        if any(stopped in words for stopped in _BY_HUMAN):
            return Standing(RunState.CANCELED, last.error, None, last.at)
        return Standing(
            RunState.FAILED, LEFT_BEHIND if begun and "api error" not in words else last.error, None, last.at
        )
    state = RunState.FAILED if _LIMIT.match(last.summary) else _STATES.get(last.status, RunState.ENDED)
    if state is not RunState.ENDED:
        return Standing(state, last.summary or last.status, None, last.at)
    said = talk.last_text() or last.said
    return Standing(RunState.ENDED, WORDLESS if said is None else "", said, last.at)


def wait_in(process: Fields) -> Wait | None:
    """The wait that `sessions/<pid>.json` names."""
    what = text(process, "waitingFor") or ""
    # Somebody who sits there has opened a dialog; no work waits for it.
    if process.get("status") != "waiting" or what == "dialog open":
        return None
    since = (number(process, "statusUpdatedAt") or 0.0) / 1000
    return Wait(_WAITS.get(what) or first_line(what, 100) or "an answer", since)


def _ask(session_id: str, runs: dict[str, Run], talks: Mapping[str, Transcript], wait: Wait) -> None:
    """The program waits for a human: so does one of its agents, or it itself where that cannot be told."""
    working = (key for key in talks if runs[key].state is RunState.WORKING and not runs[key].process_gone)
    agent, what = find_asker({key: list(talks[key].uses.values()) for key in working}, wait)
    key = agent or session_id
    if key in runs:
        # A session whose own turn is over is not, as long as somebody has to answer it for its agents.
        runs[key] = replace(
            runs[key], state=RunState.WORKING, reason="", said=None, ended_at=None, process_gone=False, waiting=what
        )


def find_asker(open_uses: Mapping[str, Sequence[Entry]], wait: Wait) -> tuple[str | None, str]:
    """The waiting ones of the agents that work, and their requests. None where it cannot be told.

    The program does not say it. A use that came long before it began to wait is at work, unless there is no other.
    """
    for earliest in (wait.since - _SLACK, 0.0):
        recent = {agent: [use for use in uses if use.at >= earliest] for agent, uses in open_uses.items()}
        chosen = {agent: uses for agent, uses in recent.items() if uses}
        if len(chosen) == 1:
            ((agent, (first, *others)),) = chosen.items()
            if first.tool in QUESTIONS:
                return agent, words_of_use(first)
            # Several of one message are asked about in their order, but some of them may be at work.
            return agent, f"{wait.what}{', it seems' if others else ''}: {words_of_use(first)}"
        if chosen:
            return None, f"{wait.what}; which of its agents asks is not known"
    return None, wait.what
