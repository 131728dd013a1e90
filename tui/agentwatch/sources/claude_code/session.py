"""One session and its agents as runs: a pure function of what their files say."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.claude_code.calls import Answer, Call
from agentwatch.sources.claude_code.conversation import Conversation
from agentwatch.sources.claude_code.family import SESSION, Bond, Family
from agentwatch.sources.claude_code.meta import Meta
from agentwatch.sources.claude_code.transcript import Transcript
from agentwatch.sources.claude_code.verdict import LEFT_BEHIND, standing

NAME: Final = "claude-code"

_WARMUP: Final = "Warmup"
"""All that the program itself asks two agents of every session for, in versions 2.0."""


@dataclass(slots=True)
class Session:
    """What is known of one session. `transcripts` and `places` are by agent id, those of the session under ``""``."""

    session_id: str
    transcripts: dict[str, Transcript] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    metas: dict[str, Meta] = field(default_factory=dict)

    @property
    def cwd(self) -> str | None:
        """The directory in which it began, None where no record says it yet."""
        own = self.transcripts.get(SESSION)
        if own is not None:
            return own.cwd
        return next((found.cwd for _, found in sorted(self.transcripts.items()) if found.cwd is not None), None)

    def runs(self, gone: bool | None) -> dict[str, Run]:
        """All runs by key. `gone` is whether the program that ran the session is known to be gone."""
        family = Family(self.transcripts, self.metas)
        ends: dict[str, list[Answer]] = {}
        for told in sorted(self.transcripts):
            for agent_id, end in self.transcripts[told].ends.items():
                ends.setdefault(agent_id, []).append(end)
        found: dict[str, Run] = {}
        bonds = dict(family.bonds())
        # Agents in the session's own file have no id of their own: they go by the call that began them.
        inline = {
            agent_id: bond.claim
            for agent_id, bond in bonds.items()
            if bond.claim is not None and agent_id in family.conversations and agent_id not in self.transcripts
        }
        for agent_id, bond in bonds.items():
            run = self._agent(agent_id, bond, family.conversations.get(agent_id), ends.get(agent_id, []), gone)
            if run is not None:
                found[bond.claim or f"{self.session_id}/{agent_id}"] = run
        for parent, call in family.unclaimed():
            found[call.tool_use_id] = self._call(parent, call, gone)
        for key, run in found.items():
            if run.parent_session in inline:
                found[key] = replace(run, parent_session=inline[run.parent_session])
        own = self.transcripts.get(SESSION)
        if own is not None and own.main.started_at is not None and own.main.state is not RunState.SUBMITTED:
            found[self.session_id] = self._root(own, gone)
        _end_with_parent(found)
        _pass_up_life(found)
        return found

    def _root(self, own: Transcript, gone: bool | None) -> Run:
        main = own.main
        started = main.started_at or 0.0
        return Run(
            NAME,
            self.session_id,
            None,
            main.state,
            self.places[SESSION],
            started,
            max(started, main.updated_at),
            max(started, main.ended_at) if main.ended_at is not None else None,
            reason=main.reason,
            title=_title(own),
            model=main.model,
            prompt=main.prompt,
            said=main.said,
            todos=main.checklist.todos,
            tokens=main.tokens,
            process_gone=gone if main.state is RunState.WORKING else None,
            waiting=_waiting(main),
        )

    def _agent(
        self, agent_id: str, bond: Bond, conversation: Conversation | None, ends: list[Answer], gone: bool | None
    ) -> Run | None:
        """None where nothing is known but that the agent will be: its description comes first, by milliseconds.

        None as well where nobody asked for it but the program, to warm up.
        """
        meta = self.metas.get(agent_id) or Meta()
        answers = [call.answer for call in bond.calls if call.answer is not None]
        heard = sorted(answers, key=_at) + sorted(ends, key=_at)
        stands = standing(conversation, heard)
        call = bond.calls[0] if bond.calls else None
        inline = conversation is not None and agent_id not in self.transcripts
        prompt = call.prompt if call is not None and call.prompt is not None else None
        if prompt is None and conversation is not None:
            prompt = conversation.prompt
        if call is None and prompt is not None and prompt.opening == _WARMUP:
            return None
        times = [conversation.started_at] if conversation is not None else []
        times += [call.at] if call is not None else []
        times += [answer.at for answer in heard]
        started = next((at for at in times if at is not None), None)
        if started is None:
            return None
        updated = max(started, conversation.updated_at if conversation is not None else 0.0, stands.ended_at or 0.0)
        mode = meta.agent_type or (call.agent_type if call is not None else None)
        return Run(
            NAME,
            bond.claim if inline and bond.claim is not None else agent_id,
            bond.parent or self.session_id,
            stands.state,
            self._place(agent_id),
            started,
            updated,
            max(started, stands.ended_at) if stands.ended_at is not None else None,
            "inline in the session" if inline else bond.link,
            stands.reason,
            meta.title or (call.title if call is not None else None),
            meta.name or mode,
            mode,
            conversation.model if conversation is not None else None,
            prompt,
            "" if prompt is not None else "not in the transcript",
            stands.said,
            tuple(conversation.earlier) if conversation is not None else (),
            conversation.checklist.todos if conversation is not None else None,
            conversation.tokens if conversation is not None else None,
            meta.background or any(call.background for call in bond.calls),
            gone if stands.state in (RunState.WORKING, RunState.SUBMITTED) else None,
            _waiting(conversation) if conversation is not None and stands.state is RunState.WORKING else "",
        )

    def _call(self, parent: str, call: Call, gone: bool | None) -> Run:
        stands = standing(None, [call.answer] if call.answer is not None else [])
        return Run(
            NAME,
            call.tool_use_id,
            parent or self.session_id,
            stands.state,
            self._place(parent),
            call.at,
            max(call.at, stands.ended_at or 0.0),
            stands.ended_at,
            "the parent's tool call",
            stands.reason,
            call.title,
            call.agent_type,
            call.agent_type,
            prompt=call.prompt,
            prompt_missing="" if call.prompt is not None else "not in the transcript",
            said=stands.said,
            background=call.background,
            process_gone=gone if stands.state is RunState.SUBMITTED else None,
        )

    def _place(self, agent_id: str) -> str:
        return self.places.get(agent_id) or self.places.get(SESSION) or min(self.places.values(), default="")


def _at(answer: Answer) -> float:
    return answer.at


def _title(own: Transcript) -> str | None:
    kinds = ("custom-title", "ai-title", "summary", "prompt")
    return next((own.titles[kind] for kind in kinds if kind in own.titles), None)


def _waiting(conversation: Conversation) -> str:
    if conversation.state is not RunState.WORKING:
        return ""
    return next(iter(conversation.asks.values()), "")


def _end_with_parent(runs: dict[str, Run]) -> None:
    """An agent in the foreground ends with the one that waits for it; a killed program takes all of them along."""
    open_states = (RunState.SUBMITTED, RunState.WORKING)
    keys = {run.session_id: key for key, run in runs.items()}
    waiting = [key for key, run in runs.items() if run.state in open_states and run.parent_session in keys]
    ended = True
    while ended:
        ended = False
        for key in waiting:
            run = runs[key]
            above = runs[keys[run.parent_session or ""]]
            killed = above.reason == LEFT_BEHIND
            cut_off = above.state in (RunState.FAILED, RunState.CANCELED) and not run.background
            if run.state in open_states and (killed or cut_off):
                at = max(run.started_at, above.ended_at or above.updated_at)
                runs[key] = replace(run, state=above.state, reason=above.reason, ended_at=at, process_gone=None)
                ended = True


def _pass_up_life(runs: dict[str, Run]) -> None:
    """Whoever waits for an agent writes nothing meanwhile: the agent's signs of life are its own as well."""
    keys = {run.session_id: key for key, run in runs.items()}
    for run in list(runs.values()):
        at, parent = run.updated_at, run.parent_session
        while parent in keys:
            above = runs[keys[parent]]
            if above.state is not RunState.WORKING or above.updated_at >= at:
                break
            runs[keys[parent]] = replace(above, updated_at=at)
            parent = above.parent_session
