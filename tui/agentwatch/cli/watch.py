"""Watch coding agents delegate. agentwatch shows the live tree of handoffs and returns in a workspace,
checks every return against its contract, and points at what needs you. Of several workspaces, each has a row.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Final

from agentwatch import __version__
from agentwatch.cli.command import PLACES, POLL, SESSION, THEME, flag
from agentwatch.errors import UsageError

if TYPE_CHECKING:
    from agentwatch.config import Settings
    from agentwatch.monitor import Monitor

_DAY: Final = 86_400.0

ARGUMENTS: Final = (
    PLACES,
    flag("--version", "print the version", short="-V", action="version", version=f"agentwatch {__version__}"),
    flag("--all", "watch every workspace in which a session was alive in the last day"),
    flag("--hosts", "watch the workspaces on other machines that your settings name, too"),
    flag("--read-only", "write nothing into the workspace"),
    SESSION,
    THEME,
    POLL,
)


def run(options: Namespace) -> int:
    """Watch workspaces until the operator leaves."""
    if options.all and options.paths:
        raise UsageError("give either workspaces or --all\ntry: agentwatch --help")
    # `--help` answers without these.
    from agentwatch.cli.shared import selection_of, targets_of

    settings = settings_of(options)
    if options.hosts and not settings.hosts:
        raise UsageError("your settings name no hosts: `agentwatch help machines` says how, or give an address")
    # Who asks for the hosts means those; who always sees them means the workspace here, too.
    is_for_hosts = options.all or (options.hosts and not options.paths)
    workspaces, addresses = ((), ()) if is_for_hosts else targets_of(options.paths, settings)
    if options.hosts or (settings.remote_always and not options.paths):
        addresses = targets_of([name for name, _ in settings.hosts], settings)[1]
    settings = settings._replace(read_only=options.read_only or settings.read_only)
    everywhere = _DAY if options.all else None
    selection = selection_of(options, is_far=bool(addresses))
    require_terminal()

    from agentwatch.app.opening import Opening
    from agentwatch.app.run import run

    def opened() -> Monitor:
        from agentwatch.composition import watched

        return watched(workspaces, settings, selection, addresses=addresses, everywhere=everywhere)

    if addresses:
        # What is wrong with them is told without a screen.
        return run(opened())
    title = f"{workspaces[0].name or workspaces[0]}/" if len(workspaces) == 1 else ""
    return run(Opening(settings, title, opened))


def settings_of(options: Namespace) -> Settings:
    """The operator's settings, with those of the command line. Raises ConfigError."""
    from agentwatch.config import load

    settings = load()
    poll = getattr(options, "poll", False) or settings.poll
    return settings._replace(theme=options.theme or settings.theme, poll=poll)


def require_terminal() -> None:
    """Raises UsageError where the screen cannot be drawn or nobody can type."""
    # The screen library draws on standard error, so that one counts as well.
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError("the screen needs a terminal, and none is here; `agentwatch tree` prints the tree without one")
