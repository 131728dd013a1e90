"""The reader of Claude Code: where its files lie, who asked for whom, and the runs of one session. The program writes
that it waits, and not which agent asks: where that cannot be told, the session does."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.claude_code import NAME
from agentwatch.sources.claude_code.transcript import DELEGATING, QUESTIONS, Transcript, entries, words_of_use
from agentwatch.sources.sessions.entries import Entry
from agentwatch.sources.sessions.fields import Fields, first_line, number, string, text
from agentwatch.sources.sessions.processes import Processes, Wait
from agentwatch.sources.sessions.runs import (
    LEFT_BEHIND,
    NO_CALL,
    OPEN,
    UNREAD,
    AgentAnswer,
    AgentCall,
    Standing,
    no_message,
    run_of,
)
from agentwatch.sources.sessions.store import SESSION, FilesReader, Layout, Session

_SLACK: Final = 2.0  # seconds from a use of a tool to the question: longer where hooks or a classifier judge first
_WAITS: Final = {
    "permission prompt": "a permission",
    "worker request": "a permission",
    "sandbox request": "a permission to use the network",
    "goal proposal": "an approval of its goal",
    "input needed": "an answer",
}
_TITLES: Final = ("custom-title", "ai-title", "summary", "prompt")  # the kinds of titles, the best first
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
_UNTOLD: Final = Transcript(no_message)


class ClaudeCodeReader(FilesReader[Transcript]):
    """`home` is `$CLAUDE_CONFIG_DIR`, else `~/.claude`."""

    name = NAME
    entries = staticmethod(entries)
    fold = Transcript
    # Older programs put agents among the sessions. The two that are left out are run by the program for itself.
    layout: ClassVar = Layout(
        r"(?:(?P<session>[^/]+)/(?:subagents/(?:.+/)?)?)?"
        r"agent-(?!acompact-|aprompt_suggestion-)(?P<agent>.+)(?:\.jsonl|(?P<meta>\.meta\.json))"
        r"|(?!agent-)(?P<own>[0-9a-zA-Z_-]{1,128})\.jsonl",
        r"(?P<session>[^/]+)(?:/subagents(?:/[^/]+){0,4})?",
    )

    def __init__(self, workspace: Path, home: Path) -> None:
        super().__init__(workspace, home)
        self.processes = Processes(home / "sessions", wait_in)

    def runs_of(self, session: Session[Transcript]) -> dict[str, Run]:
        folds, metas = session.folds, session.descriptions
        run = partial(run_of, source=NAME)
        runs: dict[str, Run] = {}
        # Before its agents: hundreds of them that are there already would move all at once.
        own = folds.get(SESSION)
        if own is not None and own.started_at is not None and own.state is not RunState.SUBMITTED:
            title = next((own.titles[kind] for kind in _TITLES if kind in own.titles), None)
            place = session.place(SESSION)
            runs[session.id] = run(own, NO_CALL, own, session_id=session.id, parent=None, place=place, title=title)
        for agent_id, bond in link_agents(folds, metas).items():
            talk, meta, calls = folds.get(agent_id, _UNTOLD), metas.get(agent_id, {}), bond.calls
            heard = sorted((call.answer for call in calls if call.answer is not None), key=_AT)
            heard += sorted((one.ends[agent_id] for one in folds.values() if agent_id in one.ends), key=_AT)
            call = calls[0] if calls else NO_CALL
            times = [at for at in (talk.started_at, call.at, *map(_AT, heard)) if at is not None]
            # Without any, it has only a description yet.
            if times:
                background = meta.get("requestShape") == "background" or any(one.background for one in calls)
                runs[bond.claim or f"{session.id}/{agent_id}"] = run(
                    talk,
                    replace(call, background=background),
                    _standing(talk, heard),
                    session_id=agent_id,
                    parent=bond.parent or session.id,
                    place=session.place(agent_id if agent_id in folds else bond.parent),
                    link=bond.link,
                    seen_at=times[0],
                    title=text(meta, "description"),
                    agent=text(meta, "agentType"),
                    name=text(meta, "name"),
                    prompt=call.prompt,
                )
        return runs

    def ask(self, session: Session[Transcript], runs: dict[str, Run], wait: Wait) -> None:
        """One of its agents waits for a human, or it itself where that cannot be told: the program does not say it. A
        use that came long before it began to wait is at work, unless there is no other."""
        folds, key, what = session.folds, session.id, wait.what
        working = {key: run for key, run in runs.items() if run.state is RunState.WORKING and not run.process_gone}
        for earliest in (wait.since - _SLACK, 0.0):
            chosen: dict[str, list[Entry]] = {}
            for one, run in working.items():
                talk = folds.get(run.session_id if run.parent_session is not None else SESSION, _UNTOLD)
                if uses := [use for use in talk.uses if use.at >= earliest]:
                    chosen[one] = uses
            if len(chosen) == 1:
                ((key, (first, *others)),) = chosen.items()
                # Several of one message are asked about in their order, but some of them may be at work.
                what = f"{wait.what}{', it seems' if others else ''}: {words_of_use(first)}"
                what = words_of_use(first) if first.tool in QUESTIONS else what
            elif chosen:
                what = f"{wait.what}; which of its agents asks is not known"
            if chosen:
                break
        if key in runs:
            # A session whose own turn is over is not, as long as somebody has to answer it for its agents.
            runs[key] = replace(
                runs[key], state=RunState.WORKING, reason="", said=None, ended_at=None, process_gone=False, waiting=what
            )


_AT: Final = attrgetter("at")
_BY_DIRECTORY: Final = "the session's directory"


class Bond(NamedTuple):
    """The link of an agent to its parent: an agent's id or SESSION, the calls in their order, and by what it is known.
    `claim` is the id of the call that began the agent, which may not have been read yet; None where none is known."""

    parent: str
    calls: tuple[AgentCall, ...]
    link: str
    claim: str | None


def link_agents(transcripts: Mapping[str, Transcript], metas: Mapping[str, Fields]) -> dict[str, Bond]:
    """The bonds of all agents of which anything is known, by id, and of calls that none is known of. `transcripts` are
    by agent id, the session's own under SESSION."""
    calls: dict[str, AgentCall] = {}
    owners: dict[str, str] = {}
    # The session first: what a forked agent's transcript repeats of it is not the agent's own.
    for agent_id, transcript in sorted(transcripts.items()):
        for call in transcript.calls.values():
            calls.setdefault(call.id, call)
            owners.setdefault(call.id, agent_id)
    links = [(agent_id, text(meta, "toolUseId"), "meta.json") for agent_id, meta in sorted(metas.items())]
    links += [(call.child, call.id, "the parent's tool result") for call in calls.values() if call.child]
    known = {one for agent_id, call_id, _ in links if call_id is not None for one in (agent_id, call_id)}
    waiting: defaultdict[str, list[str]] = defaultdict(list)
    for call in calls.values():
        if call.id not in known and call.tool in DELEGATING and call.prompt is not None:
            waiting[call.prompt.digest].append(call.id)
    for agent_id, one in sorted(transcripts.items(), key=lambda item: (item[1].started_at or 0.0, item[0])):
        if agent_id != SESSION:
            same = waiting[one.prompt.digest] if agent_id not in known and one.prompt is not None else []
            links.append((agent_id, same.pop(0), "the same prompt") if same else (agent_id, None, _BY_DIRECTORY))
    begun: dict[str | None, str] = {}
    claims: defaultdict[str, dict[str, None]] = defaultdict(dict)
    by: dict[str, str] = {}
    for agent_id, call_id, link in links:
        by.setdefault(agent_id, link)
        begun.setdefault(call_id, agent_id)
        claims[agent_id] |= {call_id: None} if call_id is not None else {}
    bonds: dict[str, Bond] = {}
    for agent_id, link in by.items():
        asked = sorted((calls[one] for one in claims[agent_id] if one in calls), key=lambda call: call.asked_at or 0.0)
        # `meta.json` may be there before the transcript, after it, or never.
        parent = text(metas.get(agent_id, {}), "parentAgentId") or (owners[asked[0].id] if asked else SESSION)
        first = next(iter(claims[agent_id]), None)
        bonds[agent_id] = Bond(parent, tuple(asked), link, first if begun.get(first) == agent_id else None)
    lone = [call for call in calls.values() if call.id not in begun and call.tool in DELEGATING]
    return bonds | {call.id: Bond(owners[call.id], (call,), "the parent's tool call", call.id) for call in lone}


def _standing(talk: Transcript, heard: Sequence[AgentAnswer]) -> Standing | Transcript:
    """By its own transcript first, then by what its parents heard, oldest first."""
    # The end of an earlier round says nothing of one that began later.
    told = [answer for answer in heard if not answer.launched and answer.at >= talk.round_at]
    if talk.state not in OPEN:
        if talk.reason == UNREAD:
            # An unreadable answer may say that it failed, so it is not said to be over.
            copy = next((answer.said for answer in reversed(told) if answer.said is not None), None)
            return Standing(RunState.ENDED, "", copy, talk.ended_at) if copy else Standing(RunState.SUBMITTED, UNREAD)
        return talk
    has_begun = talk.started_at is not None
    if not told:
        return Standing(RunState.WORKING if has_begun else RunState.SUBMITTED)
    last = told[-1]
    reason = last.error or last.summary
    words = reason.lower()
    is_left = any(lost in words for lost in _LOST)
    if last.error is None and not is_left:
        state = RunState.FAILED if _LIMIT.match(last.summary) else _STATES.get(last.status, RunState.ENDED)
        said = talk.last_text() or last.said if state is RunState.ENDED else None
        return Standing(state, "" if said is not None else reason or last.status, said, last.at)
    if last.error is not None and any(stopped in words for stopped in _BY_HUMAN):
        return Standing(RunState.CANCELED, reason, None, last.at)
    is_left = is_left or (has_begun and "api error" not in words)
    return Standing(RunState.FAILED, LEFT_BEHIND if is_left else reason, None, last.at)


def wait_in(process: Fields) -> Wait | None:
    """The wait that `sessions/<pid>.json` names."""
    what = string(process, "waitingFor")
    # Somebody who sits there has opened a dialog; no work waits for it.
    if process.get("status") != "waiting" or what == "dialog open":
        return None
    since = (number(process, "statusUpdatedAt") or 0.0) / 1000
    return Wait(_WAITS.get(what) or first_line(what, 100) or "an answer", since)
