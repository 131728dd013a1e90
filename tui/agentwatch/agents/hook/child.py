"""The child that a hook is called about: its task, what it gave back, and what a decision about that would name."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.config import Settings
from agentwatch.contracts.shapes import Handoff, Outcome, Return
from agentwatch.delegation.attempts import handed_back, handed_over
from agentwatch.delegation.events import Ran, Seen
from agentwatch.delegation.run import Message, Run, RunState
from agentwatch.delegation.states import state_of
from agentwatch.delegation.task import Attempt, State
from agentwatch.sources import complain_of
from agentwatch.sources.claude_code import NAME
from agentwatch.sources.claude_code.hooks import HookCall
from agentwatch.sources.claude_code.transcript import DELEGATING, NOTHING, Transcript, cut_short
from agentwatch.sources.claude_code.transcript import handed_back as words_handed_back
from agentwatch.sources.sessions.fields import digest_of, number, text
from agentwatch.sources.sessions.reader import message
from agentwatch.sources.sessions.tail import Line, Tail

if TYPE_CHECKING:
    from agentwatch.composition import Load

_TRANSCRIPT_SECONDS: Final = 1.0
"""A transcript becomes readable up to half a second after its agent has begun."""

_PAUSE_SECONDS: Final = 0.05
_HEAD: Final = 4 * 1024 * 1024
"""Bytes of a transcript in which its prompt must stand."""

_LAUNCHED: Final = "async_launched"


class Child(NamedTuple):
    """`task_id` is that of the packet in its prompt, else the agent's id. Texts are foreign and unsanitised.

    `ran` is the execution that has just ended, as the tree will know it. `returned` is what it gave back, None where
    that follows no contract. `digests` are those of its return that a decision may name: the program trims its last
    message, and the transcript does not; None where there is no return. `began` is in seconds since the epoch.
    """

    task_id: str
    session_id: str
    agent_id: str
    ran: Ran
    returned: Seen | None
    digests: tuple[str | None, ...]
    began: float | None = None

    @property
    def packet(self) -> Handoff | None:
        """What it was handed over, None where it was asked in words alone."""
        handed = handed_over(self.ran)
        return handed.document if handed is not None and isinstance(handed.document, Handoff) else None

    @property
    def attempt(self) -> int:
        """As its packet counts."""
        return (self.packet and self.packet.attempt) or 1

    def state(self, settings: Settings) -> State:
        """How it stands, by the judgement of the tree."""
        attempt = Attempt(self.attempt, handoff=handed_over(self.ran), returned=self.returned, run=self.ran.run)
        return state_of(attempt, strict=settings.strict, demands=settings.require_contract)

    def with_file(self, workspace: Path, settings: Settings, load: Load) -> Child:
        """The same child, with the return that it wrote into a file, which stands above its last words; if there is
        one. Where nobody knows when the child began, the file may be of an attempt before: then words stand above it.

        Session stores, which may be large, are not read.
        """
        if self.packet is None:
            return self
        # Most children have no packet.
        from agentwatch.composition import find_task

        task, problems = find_task(workspace, settings._replace(sessions=False), self.task_id, load)
        complain_of(problems)
        latest = task.latest.returned if task is not None and task.latest is not None else None
        if latest is None or latest.stored:
            return self
        document = latest.document
        if self.returned is not None and isinstance(document, Return) and document.outcome is Outcome.WORKING:
            # An early marker, which what it says at its end outdates.
            return self
        is_its_own = self.returned is None if self.began is None else latest.at >= self.began
        return self._replace(returned=latest, digests=(latest.digest,)) if is_its_own else self


def is_bad(state: State) -> bool:
    """Whether a child must not stop like this without a word of the operator."""
    return state in (State.INVALID, State.FAILED, State.BLOCKED)


def child_that_stops(call: HookCall) -> Child:
    """The child of a SubagentStop. Waits a moment for its transcript."""
    prompt, began = _beginning(call.agent_transcript)
    said = call.last_message or ""
    child = _child(call, call.agent_id or call.session_id, prompt, (said, f"{said}\n"))
    return child._replace(began=began)


def child_that_returned(call: HookCall) -> Child | None:
    """The child of a PostToolUse, None where there is none, or it was only launched: then it has not returned."""
    if call.tool not in DELEGATING or call.answered.get("status") == _LAUNCHED:
        return None
    prompt = text(call.given, "prompt")
    given = message(prompt, 0.0) if prompt is not None else None
    said = words_handed_back([], call.answered) or ""
    agent_id = text(call.answered, "agentId") or call.tool_use_id or call.session_id
    state = RunState.FAILED if cut_short([], call.answered) else RunState.ENDED
    child = _child(call, agent_id, given, (said, said.removesuffix("\n")), state)
    took = number(call.answered, "totalDurationMs")
    return child._replace(began=time.time() - took / 1000) if took is not None else child


def _child(
    call: HookCall, agent_id: str, prompt: Message | None, spellings: tuple[str, ...], state: RunState = RunState.ENDED
) -> Child:
    """`spellings` are those that the last message may have in the transcript; the first is the one at hand."""
    said = message(spellings[0], 0.0) if spellings[0].strip() not in NOTHING else None
    place = call.agent_transcript or ""
    run = Run(
        source=NAME,
        session_id=agent_id,
        parent_session=call.session_id,
        state=state,
        place=place,
        started_at=0.0,
        updated_at=time.time(),
        prompt=prompt,
        said=said,
    )
    ran = Ran(0, 0.0, agent_id, run)
    returned = handed_back(ran)
    digests: tuple[str | None, ...] = tuple(map(digest_of, spellings)) if returned is not None else (None,)
    return Child(run.task_id, call.session_id, agent_id, ran, returned, digests)


def _beginning(path: str | None) -> tuple[Message | None, float | None]:
    """The prompt of an agent, and when it began; both None where its transcript cannot be read."""
    end = time.monotonic() + _TRANSCRIPT_SECONDS
    while path is not None:
        transcript = Transcript(message, is_agent=True)
        for line in _lines(path):
            transcript.add(line.record or {})
            if transcript.prompt is not None:
                return transcript.prompt, transcript.started_at
        if time.monotonic() >= end:
            break
        time.sleep(_PAUSE_SECONDS)
    return None, None


def _lines(path: str) -> Sequence[Line]:
    with suppress(OSError, ValueError):
        return Tail(Path(path)).read(_HEAD).lines
    return ()
