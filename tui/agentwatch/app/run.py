"""Runs the app on a terminal."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from agentwatch.app.app import AgentwatchApp
from agentwatch.monitor import Monitor

if TYPE_CHECKING:
    from agentwatch.sources.playback import Playback


def run(monitor: Monitor) -> int:
    """Show the monitor until the operator leaves; the exit code. The caller has seen to it that there is a terminal."""
    # What the first scan has made stays: without this, the collector looks at all of it again and again, at 10,000
    # tasks for a tenth of a second in which no key is answered.
    return _run(AgentwatchApp(monitor, when_settled=gc.freeze))


def replay(monitor: Monitor, playback: Playback) -> int:
    """The same for a monitor whose source is a playback."""
    from agentwatch.app.replay import ReplayApp  # noqa: PLC0415 - nobody else needs it

    return _run(ReplayApp(monitor, playback, when_settled=gc.freeze))


def _run(app: AgentwatchApp) -> int:
    app.run()
    return app.return_code or 0
