"""The command that writes the account of a session."""

import time
from argparse import Namespace

from agentwatch.cli.command import OF_HOSTS, PLACES, SESSION, argument, command
from agentwatch.cli.shared import require_session, subjects_of, unreached, worktrees_of
from agentwatch.config import load
from agentwatch.report.face import FORMATS, Reported, past_of, write_report


@command(
    PLACES,
    argument("--format", None, "default: by the ending of FILE, else md", choices=tuple(FORMATS)),
    argument("--output", "FILE", "default: standard output"),
    SESSION,
    exit_codes=OF_HOSTS,
)
def report(options: Namespace) -> int:
    """Write the account of a session, for a pull request or a post-mortem."""
    reported = []
    with subjects_of(options.paths or ["."], load(), options.session) as subjects:
        worktrees = [one.scan() for one in worktrees_of(subjects)[0]]
        for one in subjects:
            workspace = one.place.workspace
            past = one.fleet.source(workspace).scan().events if one.fleet else past_of(workspace)
            reported.append(Reported(one.scan(), past, worktrees))
    require_session(options.session, [one.monitor for one in reported])
    code = write_report(reported, options.format, options.output, now=time.time())
    return max(code, *(unreached(one.monitor) for one in reported))
