"""Runs the app on a terminal."""

from __future__ import annotations

import gc

from agentwatch.app.app import AgentwatchApp
from agentwatch.monitor import Monitor


def run(monitor: Monitor) -> int:
    """Show the monitor until the operator leaves; the exit code. The caller has seen to it that there is a terminal."""
    # What the first scan has made stays: without this, the collector looks at all of it again and again, at 10,000
    # tasks for a tenth of a second in which no key is answered.
    app = AgentwatchApp(monitor, when_settled=gc.freeze)
    app.run()
    return app.return_code or 0
