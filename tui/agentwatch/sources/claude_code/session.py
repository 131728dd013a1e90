"""One session and its agents as runs: a pure function of what their files say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.claude_code.asking import asker
from agentwatch.sources.claude_code.calls import Answer, Call
from agentwatch.sources.claude_code.conversation import Conversation
from agentwatch.sources.claude_code.family import Bond, Family
from agentwatch.sources.claude_code.transcript import Transcript
from agentwatch.sources.claude_code.verdict import standing
from agentwatch.sources.sessions import group
from agentwatch.sources.sessions.fields import Fields, text
from agentwatch.sources.sessions.group import SESSION
from agentwatch.sources.sessions.lineage import end_with_parent, know_program, pass_up_life
from agentwatch.sources.sessions.processes import UNKNOWN, Program, Wait

NAME: Final = "claude-code"

_WARMUP: Final = "Warmup"
"""All that the program itself asks two agents of every session for, in versions 2.0."""


class Session(group.Session[Transcript, Fields]):
    """What is known of one session."""

    __slots__ = ()

    def runs(self, program: Program = UNKNOWN) -> dict[str, Run]:
        family = Family(self.transcripts, self.metas)
        ends: dict[str, list[Answer]] = {}
        for told in sorted(self.transcripts):
            for agent_id, end in self.transcripts[told].ends.items():
                ends.setdefault(agent_id, []).append(end)
        found: dict[str, Run] = {}
        talks: dict[str, Conversation] = {}
        bonds = dict(family.bonds())
        # Agents in the session's own file have no id of their own: they go by the call that began them.
        inline = {
            agent_id: bond.claim
            for agent_id, bond in bonds.items()
            if bond.claim is not None and agent_id in family.conversations and agent_id not in self.transcripts
        }
        for agent_id, bond in bonds.items():
            conversation = family.conversations.get(agent_id)
            run = self._agent(agent_id, bond, conversation, ends.get(agent_id, []))
            if run is not None:
                key = bond.claim or f"{self.session_id}/{agent_id}"
                found[key] = run
                if conversation is not None:
                    talks[key] = conversation
        for parent, call in family.unclaimed():
            found[call.tool_use_id] = self._call(parent, call, family.asked_at[call.tool_use_id])
        for key, run in found.items():
            if run.parent_session in inline:
                found[key] = replace(run, parent_session=inline[run.parent_session])
        own = self.transcripts.get(SESSION)
        if own is not None and own.main.started_at is not None and own.main.state is not RunState.SUBMITTED:
            found[self.session_id] = self._root(own)
            talks[self.session_id] = own.main
        end_with_parent(found)
        know_program(found, program)
        if program.wait is not None:
            self._ask(found, talks, program.wait)
        pass_up_life(found)
        return found

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

    def _root(self, own: Transcript) -> Run:
        main = own.main
        started = main.started_at or 0.0
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
            title=_title(own),
            model=main.model,
            prompt=main.prompt,
            said=main.said,
            todos=main.checklist.todos,
            tokens=main.tokens,
            waiting=_waiting(main),
        )

    def _agent(self, agent_id: str, bond: Bond, conversation: Conversation | None, ends: list[Answer]) -> Run | None:
        """The run of an agent. None if it has only a description yet, or if the program wanted it only to warm up."""
        meta = self.metas.get(agent_id, {})
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
        mode = text(meta, "agentType") or (call.agent_type if call is not None else None)
        return Run(
            source=NAME,
            session_id=bond.claim if inline and bond.claim is not None else agent_id,
            parent_session=bond.parent or self.session_id,
            state=stands.state,
            place=self.place(agent_id),
            started_at=started,
            updated_at=updated,
            ended_at=max(started, stands.ended_at) if stands.ended_at is not None else None,
            link="inline in the session" if inline else bond.link,
            reason=stands.reason,
            title=text(meta, "description") or (call.title if call is not None else None),
            agent=text(meta, "name") or mode,
            mode=mode,
            model=conversation.model if conversation is not None else None,
            prompt=prompt,
            prompt_missing="" if prompt is not None else "not in the transcript",
            said=stands.said,
            rounds=conversation.all_rounds() if conversation is not None else (),
            todos=conversation.checklist.todos if conversation is not None else None,
            tokens=conversation.tokens if conversation is not None else None,
            background=meta.get("requestShape") == "background" or any(call.background for call in bond.calls),
            waiting=_waiting(conversation) if conversation is not None and stands.state is RunState.WORKING else "",
            asked_at=bond.asked_at,
        )

    def _call(self, parent: str, call: Call, asked_at: float) -> Run:
        stands = standing(None, [call.answer] if call.answer is not None else [])
        return Run(
            source=NAME,
            session_id=call.tool_use_id,
            parent_session=parent or self.session_id,
            state=stands.state,
            place=self.place(parent),
            started_at=call.at,
            updated_at=max(call.at, stands.ended_at or 0.0),
            ended_at=stands.ended_at,
            link="the parent's tool call",
            reason=stands.reason,
            title=call.title,
            agent=call.agent_type,
            mode=call.agent_type,
            prompt=call.prompt,
            prompt_missing="" if call.prompt is not None else "not in the transcript",
            said=stands.said,
            background=call.background,
            asked_at=asked_at,
        )


def _at(answer: Answer) -> float:
    return answer.at


def _title(own: Transcript) -> str | None:
    kinds = ("custom-title", "ai-title", "summary", "prompt")
    return next((own.titles[kind] for kind in kinds if kind in own.titles), None)


def _waiting(conversation: Conversation) -> str:
    """What it asks by a tool that does nothing else."""
    if conversation.state is not RunState.WORKING:
        return ""
    return next((use.words for use in conversation.uses.values() if use.is_question), "")
