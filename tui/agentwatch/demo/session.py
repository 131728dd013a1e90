"""Runs the demo: a temporary workspace, a thread that plays the session into it, and a clean end."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from agentwatch.demo.screenplay import demo_script
from agentwatch.errors import UsageError, WorkspaceError
from agentwatch.sources.replay import Player

if TYPE_CHECKING:
    from types import TracebackType

PAUSE_SECONDS: Final = 20.0
"""How long the last state stays before the session starts over; real seconds, whatever the speed."""

EMPTY_SECONDS: Final = 1.0
"""How long the workspace is empty in between: a file deleted and written at once would look like one amended."""

STALE_SECONDS: Final = 60.0
"""The silence that counts as stale in a session of two minutes, at speed 1."""


class DemoSession:
    """A workspace in which the demo happens, for as long as the `with` block lasts.

    `once` plays the session once and leaves its last state; otherwise it starts over after a pause. The
    workspace is removed at the end, however the block ends. Raises UsageError for a speed that cannot be
    played, and WorkspaceError at the end of the block where the player could not write.
    """

    def __init__(self, speed: float = 1.0, once: bool = False) -> None:
        if not 0 < speed < math.inf:
            raise UsageError(f"a speed of {speed} cannot be played; give a number above 0, such as 2")
        self.stale_after = STALE_SECONDS / speed
        """Seconds of silence after which a working task should count as stale, at this speed."""
        self._speed = speed
        self._once = once
        self._stop = Event()
        self._failure: OSError | WorkspaceError | None = None

    def __enter__(self) -> Path:
        self._directory = tempfile.TemporaryDirectory(prefix="agentwatch-demo-", ignore_cleanup_errors=True)
        workspace = Path(self._directory.name).resolve() / "shop"
        workspace.mkdir()
        player = Player(demo_script(), workspace, self._speed)
        self._thread = Thread(target=self._play, args=(player,), name="agentwatch-demo", daemon=True)
        self._thread.start()
        return workspace

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._directory.cleanup()
        if self._failure and error is None:
            raise WorkspaceError(
                f"the demo stopped: {self._failure}; give {tempfile.gettempdir()} free space, or set TMPDIR"
            ) from self._failure

    def _play(self, player: Player) -> None:
        try:
            while True:
                player.run(self._stop)
                if self._once or self._stop.wait(PAUSE_SECONDS):
                    return
                player.rewind()
                if self._stop.wait(EMPTY_SECONDS):
                    return
        except (OSError, WorkspaceError) as failure:
            # An error in a thread would be written over the screen: it is told when the screen has gone.
            self._failure = failure
