"""Answers the hooks of Claude Code for a child that is about to stop, or that has returned to its parent.

The module `held` handles a child that failed or breaks its contract. That module is separate because it loads slowly.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from agentwatch.agents.hook.journal import LET_GO, JournalEntry, add_entry, latest_sent_back
from agentwatch.config import Settings
from agentwatch.contracts.shapes import Outcome, Return
from agentwatch.delegation import attempts
from agentwatch.delegation.events import Message, Ran, Run, RunState
from agentwatch.delegation.standing import state_of
from agentwatch.delegation.task import Attempt, State
from agentwatch.sources import print_problems
from agentwatch.sources.claude_code import NAME, HookCall
from agentwatch.sources.claude_code.transcript import DELEGATING, NOTHING, Transcript, split_report
from agentwatch.sources.sessions.fields import Tail, digest_of, number, text
from agentwatch.sources.sessions.reader import message

HookAnswer = dict[str, Any]

# In these states a child must not stop before the operator has decided.
BAD = (State.INVALID, State.FAILED, State.BLOCKED)

_LOOKS = 20
_PAUSE_SECONDS = 0.05  # the pause between two attempts to read a transcript, which may appear half a second late

_HEAD = 4 * 1024 * 1024  # the first bytes of a transcript, in which the prompt must be

_LAUNCHED = "async_launched"


def answer_call(call: HookCall, workspace: Path, settings: Settings) -> HookAnswer:
    """Return the answer to the hook of a child that is about to stop, or of a parent whose child has just returned.
    May block for a few seconds more than `hook_wait`."""
    stops, child = call.event == "SubagentStop", child_of(call)
    if not child:
        return {}
    child = child.with_written_return(workspace, settings)
    sent_back = latest_sent_back(workspace, child.session_id, child.agent_id) if stops and call.stop_hook_active else []
    if sent_back or child.state(settings) in BAD:
        from agentwatch.agents.hook.held import hold_child, tell_parent

        if stops:
            return hold_child(call, child, sent_back, workspace, settings)
        return tell_parent(call, child, workspace, settings)
    if stops:
        add_entry(workspace, JournalEntry(call.event, child.session_id, child.agent_id, child.task_id, LET_GO))
    return {}


class Child(NamedTuple):
    """A child agent. `task_id` is from its packet, or is the agent's id if there is no packet. Texts are untrusted.

    `attempt` is the execution that has just ended. `digests` are those of the return with and without a line feed at
    its end. If there is no return, they are (None,). A decision may name any digest. `began` is in epoch seconds.
    """

    task_id: str
    session_id: str
    agent_id: str
    attempt: Attempt
    digests: tuple[str | None, ...]
    began: float | None = None

    def state(self, settings: Settings) -> State:
        """Return the state of the child, judged as in the tree."""
        return state_of(self.attempt, strict=settings.strict, demands=settings.require_contract)

    def with_written_return(self, workspace: Path, settings: Settings) -> Child:
        """If the child wrote a return to a file, use that return instead of the child's last message.

        If it is unknown when the child began, the file may be of an earlier attempt. Then a return in the last message
        is used, not the file. Session stores are not read, because they may be large.
        """
        if not self.attempt.packet:
            return self
        from agentwatch.composition import find_task, scan_workspace

        task, problems = find_task(workspace, settings._replace(sessions=False), self.task_id, scan_workspace)
        print_problems(problems)
        written = task.latest.returned if task else None
        if not written or written.stored or (self.began is not None and written.at < self.began):
            return self
        # A file that says that the work goes on is older than the last message.
        is_early = isinstance(written.document, Return) and written.document.outcome is Outcome.WORKING
        if self.attempt.returned and (self.began is None or is_early):
            return self
        return self._replace(attempt=replace(self.attempt, returned=written), digests=(written.digest,))


def child_of(call: HookCall) -> Child | None:
    """Return the child that stops or has returned. Return None if there is no child, or if it has only started.
    May block for a second until the transcript can be read."""
    if call.event == "SubagentStop":
        transcript = _read_transcript(call.agent_transcript)
        child = _build_child(call, call.agent_id or call.session_id, transcript.prompt, call.last_message or "")
        return child._replace(began=transcript.started_at)
    if call.tool not in DELEGATING or call.answered.get("status") == _LAUNCHED:
        return None
    prompt, took = text(call.given, "prompt"), number(call.answered, "totalDurationMs")
    asked = message(prompt, 0.0) if prompt is not None else None
    said, is_cut_short = split_report([], call.answered)
    state = RunState.FAILED if is_cut_short else RunState.ENDED
    agent_id = text(call.answered, "agentId") or call.tool_use_id or call.session_id
    child = _build_child(call, agent_id, asked, said or "", state)
    return child._replace(began=time.time() - took / 1000) if took is not None else child


def _build_child(
    call: HookCall, agent_id: str, prompt: Message | None, said: str, state: RunState = RunState.ENDED
) -> Child:
    run = Run(
        source=NAME,
        session_id=agent_id,
        parent_session=call.session_id,
        state=state,
        place=call.agent_transcript or "",
        started_at=0.0,
        updated_at=time.time(),
        prompt=prompt,
        said=message(said, 0.0) if said.strip() not in NOTHING else None,
    )
    ran = Ran(0, 0.0, agent_id, run)
    handoff, returned = attempts.handoff_of_run(ran), attempts.return_of_run(ran)
    attempt = Attempt(1, handoff=handoff, returned=returned, run=run)
    number = (attempt.packet and attempt.packet.attempt) or 1
    spellings = (said, f"{said}\n", said.removesuffix("\n"))
    digests = tuple(dict.fromkeys(map(digest_of, spellings))) if returned else (None,)
    return Child(run.task_id, call.session_id, agent_id, replace(attempt, number=number), digests)


def _read_transcript(path: str | None) -> Transcript:
    """Read an agent's transcript up to its prompt. Try again for a second until the prompt is there."""
    transcript = Transcript(message, is_agent=True)
    for _ in range(_LOOKS if path else 0):
        with suppress(OSError, ValueError):
            for line in Tail(Path(path or "")).read(_HEAD).lines:
                transcript.add(line.record or {})
                if transcript.prompt:
                    return transcript
        time.sleep(_PAUSE_SECONDS)
    return transcript
