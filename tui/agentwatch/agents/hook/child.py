"""The child that a hook is called about: its task, what it gave back, and what a decision about that would name."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentwatch.config import Settings
from agentwatch.contracts.shapes import Handoff, Outcome, Reading, Return
from agentwatch.delegation.run import Message
from agentwatch.delegation.task import Task
from agentwatch.sources.claude_code.frames import handed_back
from agentwatch.sources.claude_code.hooks import HookCall
from agentwatch.sources.claude_code.session import NAME
from agentwatch.sources.claude_code.transcript import Transcript
from agentwatch.sources.sessions.fields import text
from agentwatch.sources.sessions.reader import message
from agentwatch.sources.sessions.tail import Line, Tail

if TYPE_CHECKING:
    from agentwatch.deciding.loading import Load

_TRANSCRIPT_SECONDS: Final = 1.0
"""A transcript becomes readable up to half a second after its agent has begun."""

_PAUSE_SECONDS: Final = 0.05
_HEAD: Final = 4 * 1024 * 1024
"""Bytes of a transcript in which its prompt must stand."""

_BAD: Final = frozenset({Outcome.FAILED, Outcome.BLOCKED})
_LAUNCHED: Final = "async_launched"


@dataclass(frozen=True, slots=True)
class Child:
    """`task_id` is that of the packet in its prompt, else the agent's id. Texts are foreign and unsanitised.

    `reading` is what it gave back, None where that follows no contract. `digests` are those of its return that a
    decision may name: the program trims its last message, and the transcript does not; None where there is no return.
    `began` is in seconds since the epoch.
    """

    task_id: str
    session_id: str
    agent_id: str
    packet: Handoff | None
    reading: Reading | None
    digests: tuple[str | None, ...]
    began: float | None = None

    @property
    def returned(self) -> Return | None:
        document = self.reading.document if self.reading is not None else None
        return document if isinstance(document, Return) else None

    @property
    def attempt(self) -> int:
        """As its packet counts."""
        return (self.packet.attempt if self.packet is not None else None) or 1

    def breaks_its_contract(self, *, strict: bool, demands: bool) -> bool:
        """Whether it is non-compliant. A packet asks for a return by itself; with `demands`, every child owes one."""
        returned = self.returned
        if returned is None or self.reading is None:
            return demands or self.packet is not None
        return returned.outcome is None or (strict and self.reading.has_error)

    @property
    def reports_failure(self) -> bool:
        """Whether it says itself that it has failed, or cannot go on."""
        return self.returned is not None and self.returned.outcome in _BAD

    def with_file(self, task: Task | None) -> Child:
        """The same child, with the return that it wrote into a file instead of saying it, if there is one."""
        latest = task.latest.returned if task is not None and task.latest is not None else None
        if latest is None or latest.stored or (self.began is not None and latest.at < self.began):
            return self
        return replace(self, reading=Reading(latest.document, latest.findings), digests=(latest.digest,))


def child_that_stops(call: HookCall) -> Child:
    """The child of a SubagentStop. Waits a moment for its transcript."""
    prompt, began = _beginning(call.agent_transcript)
    said = call.last_message or ""
    child = _child(call, call.agent_id or call.session_id, prompt, (said, f"{said}\n"))
    return replace(child, began=began)


def child_that_returned(call: HookCall) -> Child | None:
    """The child of a PostToolUse, None where it was only launched: then it has not returned."""
    if call.answered.get("status") == _LAUNCHED:
        return None
    prompt = text(call.given, "prompt")
    given = message(prompt, 0.0, key=NAME) if prompt is not None else None
    said = handed_back([], call.answered) or ""
    agent_id = text(call.answered, "agentId") or call.tool_use_id or call.session_id
    return _child(call, agent_id, given, (said, said.removesuffix("\n")))


def task_of_files(child: Child, workspace: Path, settings: Settings, load: Load) -> Task | None:
    """The task of a child as the files of the workspace have it; session stores, which may be large, are not read."""
    return load(workspace, replace(settings, sessions=False), inspects=False).tree.tasks.get(child.task_id)


def _child(call: HookCall, agent_id: str, prompt: Message | None, spellings: tuple[str, ...]) -> Child:
    """`spellings` are those that the last message may have in the transcript; the first is the one at hand."""
    document = prompt.reading.document if prompt is not None and prompt.reading is not None else None
    packet = document if isinstance(document, Handoff) else None
    reading = message(spellings[0], 0.0, key=NAME).reading
    if reading is not None and not isinstance(reading.document, Return):
        reading = None
    digests: tuple[str | None, ...] = tuple(map(_digest, spellings)) if reading is not None else (None,)
    task_id = (packet.task_id if packet is not None else None) or agent_id
    return Child(task_id, call.session_id, agent_id, packet, reading, digests)


def _beginning(path: str | None) -> tuple[Message | None, float | None]:
    """The prompt of an agent, and when it began; both None where its transcript cannot be read."""
    end = time.monotonic() + _TRANSCRIPT_SECONDS
    while path is not None:
        transcript = Transcript(lambda said, at, _offset: message(said, at, key=NAME), is_agent=True)
        for line in _lines(path):
            transcript.fold(line)
            if transcript.main.prompt is not None:
                return transcript.main.prompt, transcript.main.started_at
        if time.monotonic() >= end:
            break
        time.sleep(_PAUSE_SECONDS)
    return None, None


def _lines(path: str) -> Iterator[Line]:
    try:
        yield from Tail(Path(path)).read(_HEAD).lines
    except (OSError, ValueError):
        return


def _digest(said: str) -> str:
    return sha256(said.encode("utf-8", "surrogatepass")).hexdigest()
