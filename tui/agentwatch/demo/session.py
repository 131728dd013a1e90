"""Runs the demo in a temporary directory: plays the session from a thread, and cleans up at the end."""

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

STALE_SECONDS = 60.0  # at speed 1, a task is shown as silent after so many seconds without a sign of life

POLL_SECONDS = 0.2  # the seconds after which the orchestrator looks for decisions again

# Without a handler, these signals would leave the temporary directory behind. The app sets its own handlers.
_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class DemoSession:
    """Plays the demo once, in a workspace that exists as long as the `with` block lasts.

    The demo has its own ledger, and its own key to sign decisions. Both are removed at the end, like the workspace.
    Raises UsageError if the speed is impossible, and WorkspaceError if files cannot be written.
    """

    def __init__(self, speed: float = 1.0):
        if not 0 < speed < math.inf:
            raise UsageError(f"a speed of {speed} cannot be played; give a number above 0, such as 2")
        # `STALE_SECONDS`, converted to this speed.
        self.stale_after = STALE_SECONDS / speed
        self._speed = speed
        self._stop = Event()
        self._is_paused = False
        self._orchestrator: Orchestrator | None = None
        self._failure: OSError | None = None

    def __enter__(self) -> Path:
        with ExitStack() as stack:
            for number in _ENDING_SIGNALS:
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
            self._screenplay = demo_screenplay()
            self._player = Player(self._screenplay.steps, self._workspace, self._speed)
            self._thread = Thread(target=self._play_steps, name="agentwatch-demo", daemon=True)
            stack.callback(self._stop_playing)
            self._thread.start()
            self._stack = stack.pop_all()
        return self._workspace

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        for number in _ENDING_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        self._stack.close()
        if self._failure and not error:
            raise WorkspaceError(
                f"the demo stopped: {self._failure}; give {state_directories()} free space, or set XDG_STATE_HOME"
            ) from self._failure

    # These modules load slowly, so import them late. The demo neither reads nor writes the operator's own state.

    def open_desk(self) -> DecisionService:
        """Start the orchestrator, and return the service that records decisions in the demo."""
        from agentwatch.decisions.service import DecisionService
        from agentwatch.demo.orchestrator import Orchestrator

        places = self._workspace, self._state, self._configuration
        self._orchestrator = Orchestrator(*places, self._screenplay, self._player)
        return DecisionService(self._workspace, state=self._state, configuration=self._configuration)

    def open_shelf(self) -> Acknowledgements:
        """Return the store of the demo's acknowledged and snoozed tasks."""
        from agentwatch.history.acknowledgements import Acknowledgements

        return Acknowledgements(self._state)

    def open_inbox(self) -> Inbox:
        """Return the store of the requests that the demo's agents make."""
        from agentwatch.requests.inbox import Inbox
        from agentwatch.requests.store import RequestStore

        return Inbox(RequestStore(self._workspace, state=self._state))

    def set_paused(self, paused: bool) -> None:
        """Pause the session or continue it. While the operator decides, nothing should change."""
        self._is_paused = paused

    def is_over(self) -> bool:
        """Tell whether all steps are played and the session is not paused."""
        return not self._is_paused and self._player.is_finished

    def _play_steps(self) -> None:
        try:
            while not self._stop.wait(POLL_SECONDS):
                self._player.run(lambda wait: self._stop.wait(wait) or self._is_paused, self._handle_news, POLL_SECONDS)
        except OSError as failure:
            # A traceback from this thread would be written over the screen, so `__exit__` reports the error.
            self._failure = failure

    def _handle_news(self) -> None:
        if self._orchestrator:
            self._orchestrator.handle_news()

    def _stop_playing(self) -> None:
        self._stop.set()
        self._thread.join()
        if self._orchestrator:
            self._orchestrator.end_request()
