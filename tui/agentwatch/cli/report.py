"""Write the account of a session, for a pull request or a post-mortem."""

from __future__ import annotations

import time
from argparse import Namespace
from pathlib import Path
from typing import Final

from agentwatch.cli.command import PLACES, SESSION, argument, format_of
from agentwatch.cli.hosts import connected
from agentwatch.cli.shared import selection_of, targets_of
from agentwatch.composition import known_desk, scanned, shown_worktrees
from agentwatch.config import load
from agentwatch.monitor import Monitor
from agentwatch.report.face import Reported, past_of, write_report

ARGUMENTS: Final = (
    PLACES,
    format_of("md", "json", "html", default="by the ending of FILE, else md"),
    argument("--output", "FILE", "default: standard output"),
    SESSION,
)


def run(options: Namespace) -> int:
    """Write one account of all workspaces; of one alone, also of its worktrees."""
    settings = load()
    workspaces, addresses = targets_of(options.paths, settings)

    def look(workspace: Path) -> Monitor:
        return scanned(workspace, settings, selection_of(options), desk=known_desk(workspace), requests=True)

    reported = [Reported(look(one), past_of(one)) for one in workspaces]
    if len(workspaces) == 1 and not addresses:
        found = shown_worktrees(workspaces[0], settings, selection_of(options))
        reported = [reported[0]._replace(worktrees=[look(place.workspace) for place in found.places])]
    with connected(addresses) as far:
        for place in far.places:
            selection_of(options, is_far=True)
            monitor = far.scanned(place, settings)
            reported.append(Reported(monitor, far.fleet.source(place).scan().events))
    return write_report(reported, options.format, options.output, now=time.time())
