"""The command that writes the account of a session."""

from __future__ import annotations

import time
from argparse import Namespace
from pathlib import Path

from agentwatch.cli.command import PLACES, SESSION, argument, command
from agentwatch.cli.shared import connected, places_in, scanned_in, targets_of
from agentwatch.composition import known_desk, scanned, shown_worktrees
from agentwatch.config import load
from agentwatch.monitor import Monitor
from agentwatch.report.face import FORMATS, Reported, past_of, write_report


@command(
    PLACES,
    argument("--format", None, "default: by the ending of FILE, else md", choices=tuple(FORMATS)),
    argument("--output", "FILE", "default: standard output"),
    SESSION,
)
def report(options: Namespace) -> int:
    """Write the account of a session, for a pull request or a post-mortem."""
    settings, session = load(), options.session
    workspaces, addresses = targets_of(options.paths or ["."], settings, session)

    def look(workspace: Path) -> Monitor:
        return scanned(workspace, settings, session, desk=known_desk(workspace), requests=True)

    reported = [Reported(look(one), past_of(one)) for one in workspaces]
    if len(workspaces) == 1 and not addresses:
        found = shown_worktrees(workspaces[0], settings, session)
        reported = [reported[0]._replace(worktrees=[look(place.workspace) for place in found.places])]
    with connected(addresses) as fleet:
        if fleet is not None:
            for place in places_in(fleet):
                events = fleet.source(place.workspace).scan().events
                reported.append(Reported(scanned_in(fleet, place, settings), events))
    return write_report(reported, options.format, options.output, now=time.time())
