"""One call of a hook: payload from standard input, answer to standard output, an exit code that never blocks.

A child that did its work may stop, and its parent hears nothing. One that failed or breaks its contract is for `held`,
which takes longer to load than all that the others need.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentwatch.arguments import workspace_at
from agentwatch.config import Settings
from agentwatch.config import load as load_settings
from agentwatch.contracts.shapes import Outcome, Return
from agentwatch.delegation import attempts
from agentwatch.delegation.asks import state_of
from agentwatch.delegation.events import Ran
from agentwatch.delegation.run import Message, Run, RunState
from agentwatch.delegation.task import Attempt, State
from agentwatch.disk import UNSYNCED, Directory
from agentwatch.errors import AgentwatchError
from agentwatch.sources import complain_of
from agentwatch.sources.claude_code import NAME
from agentwatch.sources.claude_code.hooks import ASKS, HookCall, read_hook_call
from agentwatch.sources.claude_code.transcript import DELEGATING, NOTHING, Transcript, cut_short, handed_back
from agentwatch.sources.sessions.fields import digest_of, number, text
from agentwatch.sources.sessions.reader import message
from agentwatch.sources.sessions.tail import Tail
from agentwatch.state import is_shown, state_directory
from agentwatch.text import clean, complain, say

if TYPE_CHECKING:
    from agentwatch.composition import Load

HookAnswer = dict[str, Any]

FAILED: Final = 1  # 2 would block the agent, with our complaint as the reason

_PROJECT: Final = "CLAUDE_PROJECT_DIR"
_LARGEST: Final = 16 * 1024 * 1024
_NOTHING_DONE: Final = "nothing was held and nothing approved"
# States in which a child must not stop without a word of the operator.
BAD: Final = (State.INVALID, State.FAILED, State.BLOCKED)

_LOOKS: Final = 20
_PAUSE_SECONDS: Final = 0.05  # A transcript becomes readable up to half a second after its agent has begun

_HEAD: Final = 4 * 1024 * 1024  # Bytes of a transcript in which its prompt must stand

_LAUNCHED: Final = "async_launched"
JOURNAL: Final = "hooks.jsonl"
_FULL: Final = 512 * 1024  # Bytes after which the journal begins anew

_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST: Final = 500
SENT_BACK: Final = "sent back"
LET_GO: Final = "let go"
TOLD: Final = "told the parent"
UNANSWERED: Final = "not answered"


def run(path: str | None, load: Load) -> int:
    """Answer the call on standard input. Returns 0, or FAILED where it could not be understood.

    The workspace is `path`, else where the session was begun.
    """
    call = read_hook_call(sys.stdin.buffer.read(_LARGEST + 1))
    if not call:
        complain(f"agentwatch hook: no payload of a hook on standard input; {_NOTHING_DONE}")
        return FAILED
    answer: HookAnswer = {}
    try:
        if call.event in (ASKS, "SubagentStop", "PostToolUse"):
            workspace = workspace_at(path or os.environ.get(_PROJECT) or call.cwd or ".")
            if call.event == ASKS:
                if is_shown(state_directory(workspace)):
                    # Nothing else needs what it loads.
                    from agentwatch.agents.hook.requests import ask

                    ask(call, workspace, load_settings())
                return 0
            answer = answer_call(call, workspace, load_settings(), load)
    except AgentwatchError as error:
        complain(clean(f"agentwatch hook: {error}; {_NOTHING_DONE}"))
        return 0 if call.event == ASKS else FAILED
    # ASCII only: foreign characters reach the program as escapes.
    say(json.dumps(answer))
    return 0


def answer_call(call: HookCall, workspace: Path, settings: Settings, load: Load) -> HookAnswer:
    """The answer to a child that is about to stop (SubagentStop), for which it may block `hook_wait` seconds and a few,
    or to a parent whose child has just come back (PostToolUse of Task and Agent)."""
    stops, journal, child = call.event == "SubagentStop", Journal(workspace), child_of(call)
    if not child:
        return {}
    child = child.with_file(workspace, settings, load)
    row = journal.row(child.session_id, child.agent_id) if stops and call.stop_hook_active else []
    if row or child.state(settings) in BAD:
        # It takes longer to load than all that the others need.
        from agentwatch.agents.hook.held import hold_child, tell_of_child

        if stops:
            return hold_child(call, child, row, workspace, settings)
        return tell_of_child(call, child, workspace, settings)
    if stops:
        journal.add(JournalEntry(call.event, child.session_id, child.agent_id, child.task_id, LET_GO))
    return {}


# The child that a hook is called about


class Child(NamedTuple):
    """`task_id` is that of the packet in its prompt, else the agent's id. Texts are foreign and unsanitised.

    `attempt` is the execution that has just ended, as the tree will know it. `digests` are those of its return that a
    decision may name: the program trims its last message, and the transcript does not; None where there is no return.
    `began` is in seconds since the epoch.
    """

    task_id: str
    session_id: str
    agent_id: str
    attempt: Attempt
    digests: tuple[str | None, ...]
    began: float | None = None

    def state(self, settings: Settings) -> State:
        """How it stands, by the judgement of the tree."""
        return state_of(self.attempt, strict=settings.strict, demands=settings.require_contract)

    def with_file(self, workspace: Path, settings: Settings, load: Load) -> Child:
        """The same child, with the return that it wrote into a file, which stands above its last words; if there is
        one. Where nobody knows when the child began, the file may be of an attempt before: then words stand above it.

        Session stores, which may be large, are not read.
        """
        if not self.attempt.packet:
            return self
        # Most children have no packet.
        from agentwatch.composition import find_task

        task, problems = find_task(workspace, settings._replace(sessions=False), self.task_id, load)
        complain_of(problems)
        written = task.latest.returned if task else None
        if not written or written.stored or (self.began is not None and written.at < self.began):
            return self
        # An early marker is outdated by what it says at its end.
        is_early = isinstance(written.document, Return) and written.document.outcome is Outcome.WORKING
        if self.attempt.returned and (self.began is None or is_early):
            return self
        return self._replace(attempt=replace(self.attempt, returned=written), digests=(written.digest,))


def child_of(call: HookCall) -> Child | None:
    """The child that stops, which may wait a moment for its transcript, or that has returned: None where there is none,
    or it was only launched."""
    if call.event == "SubagentStop":
        transcript = _transcript_at(call.agent_transcript)
        child = _child(call, call.agent_id or call.session_id, transcript.prompt, call.last_message or "")
        return child._replace(began=transcript.started_at)
    if call.tool not in DELEGATING or call.answered.get("status") == _LAUNCHED:
        return None
    prompt, took = text(call.given, "prompt"), number(call.answered, "totalDurationMs")
    asked = message(prompt, 0.0) if prompt is not None else None
    state = RunState.FAILED if cut_short([], call.answered) else RunState.ENDED
    agent_id = text(call.answered, "agentId") or call.tool_use_id or call.session_id
    child = _child(call, agent_id, asked, handed_back([], call.answered) or "", state)
    return child._replace(began=time.time() - took / 1000) if took is not None else child


def _child(call: HookCall, agent_id: str, prompt: Message | None, said: str, state: RunState = RunState.ENDED) -> Child:
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
    handoff, returned = attempts.handed_over(ran), attempts.handed_back(ran)
    attempt = Attempt(1, handoff=handoff, returned=returned, run=run)
    number = (attempt.packet and attempt.packet.attempt) or 1
    spellings = (said, f"{said}\n", said.removesuffix("\n"))
    digests = tuple(dict.fromkeys(map(digest_of, spellings))) if returned else (None,)
    return Child(run.task_id, call.session_id, agent_id, replace(attempt, number=number), digests)


def _transcript_at(path: str | None) -> Transcript:
    """The transcript of an agent as far as its prompt, as soon as that can be read."""
    transcript = Transcript(message, is_agent=True)
    for _ in range(_LOOKS if path else 0):
        with suppress(OSError, ValueError):
            for line in Tail(Path(path or "")).read(_HEAD).lines:
                transcript.add(line.record or {})
                if transcript.prompt:
                    return transcript
        time.sleep(_PAUSE_SECONDS)
    return transcript


# The calls of hooks, a line each in `<state directory>/hooks.jsonl`: so they know how often a child was sent back


class JournalEntry(NamedTuple):
    """One call. `did` is one of the constants above; `why` is for people, and `kind` says what the child was sent back
    for, or what asked. `digests` are those of the return that it had ended with."""

    event: str
    session_id: str
    agent_id: str
    task_id: str
    did: str
    kind: str = ""
    why: str = ""
    decision_id: str | None = None
    digests: tuple[str | None, ...] = ()
    at: str = ""


class Journal:
    """The journal of one workspace. A line that cannot be read is not there."""

    def __init__(self, workspace: Path) -> None:
        self._state = state_directory(workspace)

    def add(self, entry: JournalEntry) -> None:
        """Write it down, where something can be written."""
        texts = {name: value[:_LONGEST] if isinstance(value, str) else value for name, value in entry._asdict().items()}
        line = json.dumps(texts | {"at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}) + "\n"
        with suppress(OSError), Directory.make(self._state, UNSYNCED) as directory:
            with suppress(FileNotFoundError):
                if directory.status(JOURNAL).st_size > _FULL:
                    directory.remove(JOURNAL)
            descriptor = os.open(JOURNAL, _APPEND, 0o600, dir_fd=directory.descriptor)
            with os.fdopen(descriptor, "ab", buffering=0) as journal:
                journal.write(line.encode("ascii"))

    def add_unanswered(self, event: str, session_id: str, kind: str, why: str) -> None:
        """Write down why an answer of the operator's did not get through."""
        # Under no agent's name: how often one was sent back in a row is counted there.
        self.add(JournalEntry(event, session_id, "", session_id, UNANSWERED, kind, why))

    def unanswered(self) -> str | None:
        """When an answer of the operator's did not get through last, and why; None where none is known."""
        return next((f"{one.at}: {one.why}" for one in self._read() if one.did == UNANSWERED), None)

    def of(self, session_id: str, agent_id: str) -> list[JournalEntry]:
        """The calls about this agent, the last first."""
        agent = session_id[:_LONGEST], agent_id[:_LONGEST]
        return [entry for entry in self._read() if (entry.session_id, entry.agent_id) == agent]

    def row(self, session_id: str, agent_id: str) -> list[JournalEntry]:
        """How often this agent was sent back in a row until now, the last first."""
        return list(takewhile(lambda entry: entry.did == SENT_BACK, self.of(session_id, agent_id)))

    def _read(self) -> Iterator[JournalEntry]:
        """All of it, the last first."""
        lines: list[bytes] = []
        with suppress(OSError), Directory.open(self._state) as directory:
            lines = directory.read(JOURNAL, 2 * _FULL).splitlines()
        for line in reversed(lines):
            with suppress(ValueError, TypeError, RecursionError):
                yield JournalEntry(**json.loads(line))
