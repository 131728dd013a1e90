"""Runs the demo: a workspace in a scratch directory, a thread that plays the session into it, and a clean end.

One agent has a session store as Claude Code writes it, and a line of it comes when its time has.
"""

from __future__ import annotations

import json
import math
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from agentwatch.demo.script import Player, demo_screenplay
from agentwatch.errors import UsageError, WorkspaceError
from agentwatch.sources.sessions.store import slug
from agentwatch.state import scratch_directory, state_directories

if TYPE_CHECKING:
    from types import TracebackType

    from agentwatch.decisions.service import DecisionService
    from agentwatch.demo.orchestrator import Orchestrator
    from agentwatch.history.acknowledgements import Acknowledgements
    from agentwatch.requests.store import Inbox
    from agentwatch.sources import Source

_INSTRUCTIONS: Final = "# Shop\n\nAgents that hand work on wait for the operator's decision with `agentwatch wait`.\n"

STALE_SECONDS: Final = 60.0
"""The silence that counts as stale in a session of two minutes, at speed 1."""

POLL_SECONDS: Final = 0.2
"""Between two looks for a decision."""

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
"""Signals that would end the process at once, and leave the directory behind. The app has handlers of its own."""


class DemoSession:
    """A workspace in which the demo happens, for as long as the `with` block lasts.

    It is played once. What the operator decides there is signed with a key of the demo's own and carried out by its
    orchestrator. Workspace, ledger and key are removed at the end, however the block ends. Raises UsageError for a
    speed that cannot be played, and WorkspaceError at the end of the block where the player could not write.
    """

    def __init__(self, speed: float = 1.0) -> None:
        if not 0 < speed < math.inf:
            raise UsageError(f"a speed of {speed} cannot be played; give a number above 0, such as 2")
        self.stale_after = STALE_SECONDS / speed
        """Seconds of silence after which a working task should count as stale, at this speed."""
        self._speed = speed
        self._stop = Event()
        self._held = False
        self._orchestrator: Orchestrator | None = None
        self._failure: OSError | None = None

    def __enter__(self) -> Path:
        with ExitStack() as stack:
            for number in _ENDING:
                before = signal.signal(number, lambda number, _frame: sys.exit(128 + number))
                stack.callback(signal.signal, number, before)
            try:
                place = stack.enter_context(scratch_directory())
            except OSError as error:
                why = f"the demo cannot be played: {error}; set XDG_STATE_HOME to another place"
                raise WorkspaceError(why) from error
            self._workspace, self._state, self._configuration = place / "shop", place / "state", place / "configuration"
            self._workspace.mkdir()
            (self._workspace / "AGENTS.md").write_text(_INSTRUCTIONS, "utf-8")
            self._play = demo_screenplay()
            self._player = Player(self._play.steps, self._workspace, self._speed)
            self._store = place / "claude"
            self._child = _Child(self._workspace, self._store, self._player)
            self._thread = Thread(target=self._run, name="agentwatch-demo", daemon=True)
            stack.callback(self._leave)
            self._thread.start()
            self._stack = stack.pop_all()
        return self._workspace

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)
        self._stack.close()
        if self._failure and error is None:
            raise WorkspaceError(
                f"the demo stopped: {self._failure}; give {state_directories()} free space, or set XDG_STATE_HOME"
            ) from self._failure

    def open_desk(self) -> DecisionService:
        """The operator's desk in the demo, and the orchestrator that reads what is decided there.

        Nothing of the operator's own is read or written.
        """
        # Signatures take a while to load.
        from agentwatch.decisions.service import DecisionService
        from agentwatch.demo.orchestrator import Orchestrator

        places = self._workspace, self._state, self._configuration
        self._orchestrator = Orchestrator(*places, self._play, self._player)
        return DecisionService(self._workspace, state=self._state, configuration=self._configuration)

    def sessions(self) -> Source:
        """The sessions of the agents of the demo, and nobody else's."""
        from agentwatch.sources.claude_code.claude_code_reader import ClaudeCodeReader
        from agentwatch.sources.sessions.source import SessionsSource

        return SessionsSource(lambda known, _: () if known else (ClaudeCodeReader(self._workspace, self._store),))

    def open_shelf(self) -> Acknowledgements:
        """The tasks that are put aside in the demo."""
        # A database takes a while to load.
        from agentwatch.history.acknowledgements import Acknowledgements

        return Acknowledgements(self._state)

    def open_inbox(self) -> Inbox:
        """The requests of the agents of the demo."""
        from agentwatch.requests.store import Inbox, RequestStore

        return Inbox(RequestStore(self._workspace, state=self._state))

    def hold(self, held: bool) -> None:
        """Let the play wait, or go on: nothing should change while the operator decides."""
        self._held = held

    def is_over(self) -> bool:
        """Whether nothing more comes by itself."""
        return not self._held and self._player.finished

    def _run(self) -> None:
        try:
            while not self._stop.wait(POLL_SECONDS):
                self._player.run(lambda seconds: self._stop.wait(seconds) or self._held, self._attend, POLL_SECONDS)
        except OSError as failure:
            # An error in a thread would be written over the screen: it is told when the screen has gone.
            self._failure = failure

    def _attend(self) -> None:
        self._child.attend()
        if self._orchestrator is not None:
            self._orchestrator.attend()

    def _leave(self) -> None:
        self._stop.set()
        self._thread.join()
        if self._orchestrator is not None:
            self._orchestrator.leave()


# The agent whose session is read: its program keeps a transcript, and so what it claims is held against it

TASK: Final = "checkout.verify.units"
_SESSION: Final = "5d0f7c1e-88a1-4a55-9a53-0d7a3c0b9e42"
_AGENT: Final = "a7c31d90b2e4f6a18"
_PACKET: Final = {
    "handoff_schema": "composability.handoff_packet.v1",
    "task_id": TASK,
    "parent_task_id": "checkout.verify",
    "mode": "tester",
    "objective": "Run the unit tests of the checkout and say what fails.",
    "evidence": [{"path": "src/checkout/api.ts", "purpose": "What is tested", "required": False}],
    "success_criteria": ["All unit tests pass"],
    "risks": [{"risk": "A test fails now and then", "mitigation": "Say which one, and how often"}],
}
_FAILED: Final = (
    "FAIL src/checkout/api.test.ts\n  \u25cf an order is created once\n\n"
    "Test Suites: 1 failed, 17 passed, 18 total\nTests:       3 failed, 211 passed, 214 total\nTime:        9.41 s\n"
)
_RETURNED: Final = """\
## Status
state: SUCCESS
summary: The checkout is ready, all 214 tests pass.

## Deliverables
- (none)

## Evidence
- `npm test` \u2014 214 passed, 0 failed

## Runtime Attestation
runtime_model_reported: claude-demo-1
runtime_mode_reported: tester
files_created:
- (none)
files_modified:
- (none)
"""

_Block = Mapping[str, object]


def _used(call: str, command: str) -> _Block:
    return {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}


def _came(call: str, words: str, *, failed: bool) -> _Block:
    return {"type": "tool_result", "tool_use_id": call, "content": words, "is_error": failed}


_STORY: Final[tuple[tuple[float, str, _Block], ...]] = (
    (
        62.0,
        "user",
        {"type": "text", "text": f"```json\n{json.dumps(_PACKET, indent=2)}\n```\n\nAnswer in that format."},
    ),
    (63.0, "assistant", _used("toolu_units_1", "git log --oneline -3")),
    (63.5, "user", _came("toolu_units_1", "7be41c0 One order for one key\n", failed=False)),
    (64.0, "assistant", _used("toolu_units_2", "npm test")),
    (73.5, "user", _came("toolu_units_2", f"Exit code 1\n{_FAILED}", failed=True)),
    (76.0, "assistant", _used("toolu_units_3", "git push origin checkout")),
    (77.5, "user", _came("toolu_units_3", "To the shop's server\n", failed=False)),
    (79.0, "assistant", {"type": "text", "text": _RETURNED}),
)
"""At which second of the session, who, and what."""


class _Child:
    """Writes the transcript in `home`, as far as the play has got. Only the thread of the play calls it."""

    def __init__(self, workspace: Path, home: Path, player: Player) -> None:
        self._workspace = str(workspace)
        self._place = home / "projects" / slug(self._workspace) / _SESSION / "subagents" / f"agent-{_AGENT}.jsonl"
        self._player = player
        self._written = 0

    def attend(self) -> None:
        """Write what is due."""
        due = [line for line in _STORY if line[0] <= self._player.position]
        if len(due) > self._written:
            self._place.parent.mkdir(parents=True, exist_ok=True)
            described = {"agentType": "tester", "description": "Run the unit tests", "spawnDepth": 1}
            self._place.with_suffix(".meta.json").write_text(json.dumps(described), "utf-8")
            with self._place.open("a", encoding="utf-8") as file:
                for number, (_, role, block) in enumerate(due[self._written :], self._written):
                    file.write(json.dumps(self._record(number, role, block)) + "\n")
            self._written = len(due)

    def _record(self, number: int, role: str, block: _Block) -> dict[str, object]:
        message: dict[str, object] = {"role": role, "content": [block]}
        if role == "assistant":
            stop = "end_turn" if block["type"] == "text" else "tool_use"
            message |= {"id": f"msg_{number}", "type": "message", "model": "claude-demo-1", "stop_reason": stop}
        return {
            "type": role,
            "message": message,
            "uuid": f"demo-{number}",
            "timestamp": datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds"),
            "isSidechain": True,
            "agentId": _AGENT,
            "sessionId": _SESSION,
            "cwd": self._workspace,
            "version": "2.1.329",
        }
