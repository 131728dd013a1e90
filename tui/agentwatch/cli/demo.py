"""Play a believable session of about two minutes into a temporary workspace and watch it."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from agentwatch.cli.command import POLL, SPEED, THEME
from agentwatch.cli.watch import require_terminal, settings_of

ARGUMENTS: Final = (SPEED, THEME, POLL)


def run(options: Namespace) -> int:
    """Play it until the operator leaves."""
    require_terminal()
    settings = settings_of(options)
    from agentwatch.app.run import demo
    from agentwatch.composition import monitor_of
    from agentwatch.demo.session import DemoSession

    session = DemoSession(options.speed)
    with session as workspace:
        # The window's title counts; nobody is to be called because of a play.
        silent = settings._replace(notify_bell=False, notify_terminal=False, notify_desktop=False)
        played = silent._replace(stale_after=session.stale_after, read_only=False)
        monitor = monitor_of(
            workspace,
            played,
            open_desk=session.open_desk,
            open_shelf=session.open_shelf,
            open_inbox=session.open_inbox,
            sessions=session.sessions(),
        )
        return demo(monitor, session.hold, session.is_over)
