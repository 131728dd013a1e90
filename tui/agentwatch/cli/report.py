"""The command that writes the account of a session."""

import time
from argparse import Namespace

from agentwatch.cli.command import OF_HOSTS, PLACES, SESSION, argument, command
from agentwatch.cli.shared import require_session, subjects_of, unreached, worktrees_of
from agentwatch.config import load
from agentwatch.report.face import FORMATS, account_of_monitor, past_of, write_report


@command(
    PLACES,
    argument("--format", None, "default: by the ending of FILE, else md", choices=tuple(FORMATS)),
    argument("--output", "FILE", "default: standard output"),
    SESSION,
    exit_codes=OF_HOSTS,
)
def report(options: Namespace) -> int:
    """Write the account of a session, for a pull request or a post-mortem."""
    accounts = []
    with subjects_of(options.paths or ["."], load(), options.session) as subjects:
        worktrees = [one.scan() for one in worktrees_of(subjects)[0]]
        monitors = [one.scan() for one in subjects]
        for one, monitor in zip(subjects, monitors, strict=True):
            workspace = one.place.workspace
            past = one.fleet.source(workspace).scan().events if one.fleet else past_of(workspace)
            accounts.append(account_of_monitor(monitor, past, worktrees, time.time()))
    require_session(options.session, monitors)
    return max(write_report(accounts, options.format, options.output), *map(unreached, monitors))
