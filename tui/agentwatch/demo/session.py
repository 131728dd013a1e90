"""Runs the demo: a workspace in a scratch directory, a thread that plays the session into it, and a clean end."""

from __future__ import annotations

import math
import signal
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from agentwatch.demo.child import Child
from agentwatch.demo.script import Player, demo_screenplay
from agentwatch.errors import UsageError, WorkspaceError
from agentwatch.state import scratch_directory, state_directories

if TYPE_CHECKING:
    from types import FrameType, TracebackType

    from agentwatch.decisions.service import LocalService
    from agentwatch.demo.asker import Asker
    from agentwatch.demo.orchestrator import Orchestrator
    from agentwatch.history.acknowledgements import Acknowledgements
    from agentwatch.requests.store import Inbox
    from agentwatch.sources import Source

PAUSE_SECONDS: Final = 60.0
"""How long the last state stays before the session starts over, counted from the last key that is pressed; real
seconds, whatever the speed."""

_INSTRUCTIONS: Final = "# Shop\n\nAgents that hand work on wait for the operator's decision with `agentwatch wait`.\n"

EMPTY_SECONDS: Final = 1.0
"""How long the workspace is empty in between: a file deleted and written at once would look like one amended."""

STALE_SECONDS: Final = 60.0
"""The silence that counts as stale in a session of two minutes, at speed 1."""

POLL_SECONDS: Final = 0.2
"""Between two looks for a decision."""

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
"""What would end the process at once, and leave the directory behind."""


class DemoSession:
    """A workspace in which the demo happens, for as long as the `with` block lasts.

    What the operator decides there is signed with a key of the demo's own and carried out by its orchestrator. `once`
    plays the session once and leaves its last state; otherwise it starts over after a pause, until something is
    decided. Workspace, ledger and key are removed at the end, however the block ends. Raises UsageError for a speed
    that cannot be played, and WorkspaceError at the end of the block where the player could not write.
    """

    def __init__(self, speed: float = 1.0, once: bool = False) -> None:
        if not 0 < speed < math.inf:
            raise UsageError(f"a speed of {speed} cannot be played; give a number above 0, such as 2")
        self.stale_after = STALE_SECONDS / speed
        """Seconds of silence after which a working task should count as stale, at this speed."""
        self._speed = speed
        self._once = once
        self._directory = ExitStack()
        self._stop = Event()
        self._held = False
        self._asked_to_end: int | None = None
        self._orchestrator: Orchestrator | None = None
        self._asker: Asker | None = None
        self._quiet = 0.0
        self._failure: OSError | WorkspaceError | None = None

    def __enter__(self) -> Path:
        # The app has handlers of its own, once it is there.
        self._handlers = {number: signal.signal(number, self._note) for number in _ENDING}
        try:
            place = self._directory.enter_context(scratch_directory())
        except OSError as error:
            raise WorkspaceError(f"the demo cannot be played: {error}; set XDG_STATE_HOME to another place") from error
        self._workspace, self._state, self._configuration = place / "shop", place / "state", place / "configuration"
        self._workspace.mkdir()
        (self._workspace / "AGENTS.md").write_text(_INSTRUCTIONS, "utf-8")
        self._play = demo_screenplay()
        self._player = Player(self._play.steps, self._workspace, self._speed)
        self._store = place / "claude"
        self._child = Child(self._workspace, self._store, self._player)
        self._thread = Thread(target=self._run, name="agentwatch-demo", daemon=True)
        self._thread.start()
        return self._workspace

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)
        self._stop.set()
        self._thread.join()
        if self._asker is not None:
            self._asker.leave()
        self._directory.close()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if self._failure and error is None:
            raise WorkspaceError(
                f"the demo stopped: {self._failure}; give {state_directories()} free space, or set XDG_STATE_HOME"
            ) from self._failure

    def open_desk(self) -> LocalService:
        """The operator's desk in the demo, and the orchestrator that reads what is decided there.

        Nothing of the operator's own is read or written.
        """
        # Signatures take a while to load.
        from agentwatch.decisions.service import LocalService
        from agentwatch.demo.asker import Asker
        from agentwatch.demo.orchestrator import Orchestrator

        places = self._workspace, self._state, self._configuration
        orchestrator = Orchestrator(*places, self._play, self._player)
        self._asker = Asker(*places, self._player, orchestrator.go_on)
        self._orchestrator = orchestrator
        return LocalService(self._workspace, state=self._state, configuration=self._configuration)

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
        """What the agents of the demo ask."""
        from agentwatch.requests.store import Inbox, RequestStore

        return Inbox(RequestStore(self._workspace, state=self._state))

    def hold(self, held: bool) -> None:
        """Let the play wait, or go on: nothing should change while the operator decides.

        The app calls it first when it is there: a signal that came before is sent again, for the app to end.
        """
        self._held = held
        number, self._asked_to_end = self._asked_to_end, None
        if number is not None:
            signal.raise_signal(number)

    def stay(self) -> None:
        """The operator is there: the last state stays for its whole time from now on."""
        self._quiet = 0.0

    @property
    def starts_over_in(self) -> float | None:
        """Seconds until the session starts over, infinite where it will not; None while it is played."""
        if self._held or not self._player.finished:
            return None
        return math.inf if self._once or self._was_decided else max(PAUSE_SECONDS - self._quiet, 0.0)

    @property
    def _was_decided(self) -> bool:
        was_told = self._orchestrator is not None and self._orchestrator.was_told
        return was_told or (self._asker is not None and self._asker.was_answered)

    def wait(self, timeout: float | None = None) -> bool:
        """What the player asks between two steps: whether it has to stop there."""
        return self._stop.wait(timeout) or self._held

    def _run(self) -> None:
        try:
            while True:
                self._player.run(self, self._attend, POLL_SECONDS)
                if self._stop.wait(POLL_SECONDS):
                    return
                self._quiet = 0.0 if self._held else self._quiet + POLL_SECONDS
                if self._quiet >= PAUSE_SECONDS and not (self._once or self._was_decided):
                    self._player.rewind()
                    self._quiet = 0.0
                    if self._stop.wait(EMPTY_SECONDS):
                        return
        except (OSError, WorkspaceError) as failure:
            # An error in a thread would be written over the screen: it is told when the screen has gone.
            self._failure = failure

    def _attend(self) -> None:
        self._child.attend()
        if self._orchestrator is not None and self._asker is not None:
            self._orchestrator.attend()
            self._asker.attend(self._orchestrator.decided)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._asked_to_end = number
