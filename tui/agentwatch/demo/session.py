"""Runs the demo: plays the session from a thread into a workspace in a scratch directory, and cleans up at the end."""

from __future__ import annotations

import math
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from agentwatch.demo.script import Player, demo_screenplay
from agentwatch.errors import UsageError, WorkspaceError
from agentwatch.state import scratch_directory, state_directories

if TYPE_CHECKING:
    from agentwatch.decisions.service import DecisionService
    from agentwatch.demo.orchestrator import Orchestrator
    from agentwatch.history.acknowledgements import Acknowledgements
    from agentwatch.requests.inbox import Inbox

_INSTRUCTIONS = "# Shop\n\nAgents that hand work on wait for the operator's decision with `agentwatch wait`.\n"

STALE_SECONDS = 60.0  # silence that counts as stale at speed 1, for a session of two minutes

POLL_SECONDS = 0.2  # between two looks for a decision

# Signals that would end the process at once and leave the directory behind. The app has handlers of its own.
_ENDING = (signal.SIGTERM, signal.SIGHUP)


class DemoSession:
    """Plays the demo once, in a workspace that exists as long as the `with` block lasts.

    Decisions there are signed with a key of the demo's own and carried out by its orchestrator. Workspace, ledger and
    key are removed however the block ends. Raises UsageError for a speed that cannot be played, and WorkspaceError if
    no directory can be made or, at the end of the block, if the player could not write.
    """

    def __init__(self, speed: float = 1.0):
        if not 0 < speed < math.inf:
            raise UsageError(f"a speed of {speed} cannot be played; give a number above 0, such as 2")
        # Seconds of silence after which a working task should count as stale, at this speed.
        self.stale_after = STALE_SECONDS / speed
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
            self._thread = Thread(target=self._run, name="agentwatch-demo", daemon=True)
            stack.callback(self._leave)
            self._thread.start()
            self._stack = stack.pop_all()
        return self._workspace

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)
        self._stack.close()
        if self._failure and not error:
            raise WorkspaceError(
                f"the demo stopped: {self._failure}; give {state_directories()} free space, or set XDG_STATE_HOME"
            ) from self._failure

    # These modules load slowly, so they are imported late. The operator's own state is neither read nor written.

    def open_desk(self) -> DecisionService:
        """Start the orchestrator, and return the demo's decision service, whose decisions it reads."""
        from agentwatch.decisions.service import DecisionService
        from agentwatch.demo.orchestrator import Orchestrator

        places = self._workspace, self._state, self._configuration
        self._orchestrator = Orchestrator(*places, self._play, self._player)
        return DecisionService(self._workspace, state=self._state, configuration=self._configuration)

    def open_shelf(self) -> Acknowledgements:
        """Return the demo's acknowledged and snoozed tasks."""
        from agentwatch.history.acknowledgements import Acknowledgements

        return Acknowledgements(self._state)

    def open_inbox(self) -> Inbox:
        """Return the requests of the demo's agents."""
        from agentwatch.requests.inbox import Inbox
        from agentwatch.requests.store import RequestStore

        return Inbox(RequestStore(self._workspace, state=self._state))

    def hold(self, held: bool) -> None:
        """Pause the play, or let it go on: nothing should change while the operator decides."""
        self._held = held

    def is_over(self) -> bool:
        """Whether nothing more happens without a decision."""
        return not self._held and self._player.finished

    def _run(self) -> None:
        try:
            while not self._stop.wait(POLL_SECONDS):
                self._player.run(lambda seconds: self._stop.wait(seconds) or self._held, self._attend, POLL_SECONDS)
        except OSError as failure:
            # A traceback from this thread would be written over the screen, so `__exit__` reports the error.
            self._failure = failure

    def _attend(self) -> None:
        if self._orchestrator:
            self._orchestrator.attend()

    def _leave(self) -> None:
        self._stop.set()
        self._thread.join()
        if self._orchestrator:
            self._orchestrator.leave()
