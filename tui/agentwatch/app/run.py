"""Runs the app on a terminal."""

from __future__ import annotations

from agentwatch.app.app import AgentwatchApp
from agentwatch.monitor import Monitor


def run(monitor: Monitor) -> int:
    """Show the monitor until the operator leaves; the exit code. The caller has seen to it that there is a terminal."""
    app = AgentwatchApp(monitor)
    app.run()
    return app.return_code or 0
