"""The commands that open the screen: watch workspaces, play a demo, and replay a recording."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from agentwatch import __version__
from agentwatch.cli.command import PLACES, SESSION, argument, command, flag
from agentwatch.errors import UsageError
from agentwatch.text import quote_text

if TYPE_CHECKING:
    from agentwatch.config import Settings
    from agentwatch.monitor import Monitor

_SPEED = argument("--speed", "X", "play X times as fast (default: 1)", type=float, default=1.0)
_THEME = argument("--theme", "NAME", "the colours; the palette (ctrl+p) lists them")


@command(
    PLACES,
    flag("--version -V", "print the version", action="version", version=f"agentwatch {__version__}"),
    flag("--all", "watch every workspace in which a session was alive in the last day"),
    argument(
        "--hosts",
        "GLOB",
        "watch the hosts that your settings name, too: all, or those whose name fits, such as 'build*'",
        nargs="?",
        const="*",
    ),
    flag("--read-only", "write nothing into the workspace"),
    SESSION,
    _THEME,
)
def watch(options: Namespace) -> int:
    """Watch coding agents delegate. agentwatch shows the live tree of handoffs and returns in a workspace,
    checks every return against its contract, and points at what needs you. Each of several workspaces has a row.
    """
    if options.all and options.paths:
        raise UsageError("give either workspaces or --all\ntry: agentwatch --help")
    # Imported late, because `--help` does not need it.
    from agentwatch.cli.shared import resolve_targets

    settings = _load_settings(options)
    settings = settings._replace(read_only=options.read_only or settings.read_only)
    if options.hosts and not settings.hosts:
        raise UsageError("your settings name no hosts: `agentwatch help machines` says how, or give an address")
    names = [name for name, _ in settings.hosts if fnmatchcase(name, options.hosts or "*")]
    if options.hosts and not names:
        if not os.path.isdir(options.hosts):
            known = ", ".join(name for name, _ in settings.hosts)
            raise UsageError(f"no host of your settings is called {quote_text(options.hosts)}; there are {known}")
        # The user wrote `--hosts PATH`: watch all hosts, and the workspace PATH.
        names, options.paths = [name for name, _ in settings.hosts], [options.hosts, *options.paths]
    # With `--hosts` and no path, show only hosts. With the setting `remote.always`, show also this directory.
    is_for_hosts = options.all or (options.hosts and not options.paths)
    words = [] if is_for_hosts else options.paths or ["."]
    if options.hosts or (settings.remote_always and not options.paths):
        words = [*words, *names]
    workspaces, addresses = resolve_targets(words, settings, options.session)
    _require_terminal("; `agentwatch tree` prints the tree without one")

    from agentwatch.app.app import AgentwatchApp, Opening
    from agentwatch.app.terminal import run_app

    def open_monitor() -> Monitor:
        from agentwatch.composition import build_workspaces

        return build_workspaces(workspaces, settings, options.session, addresses=addresses, everywhere=options.all)

    if addresses:
        # Connect to hosts before the screen starts, so that errors are printed on the plain terminal.
        return run_app(AgentwatchApp(open_monitor()))
    title = f"{workspaces[0].name or workspaces[0]}/" if len(workspaces) == 1 else ""
    return run_app(AgentwatchApp(Opening(settings, title, open_monitor)))


@command(_SPEED)
def demo(options: Namespace) -> int:
    """Watch a demo session of about two minutes. It is played in a temporary workspace."""
    _require_terminal()
    import time

    from agentwatch.app.played import DemoApp
    from agentwatch.app.terminal import run_app
    from agentwatch.composition import build_source
    from agentwatch.config import load
    from agentwatch.demo.session import DemoSession
    from agentwatch.monitor import Monitor

    session = DemoSession(options.speed)
    with session as workspace:
        # A demo must not notify anybody. Only the window's title counts the tasks that need the operator.
        silent = load()._replace(notify_bell=False, notify_terminal=False, notify_desktop=False)
        settings = silent._replace(stale_after=session.stale_after, read_only=False, sessions=False)
        monitor = Monitor(
            workspace,
            settings,
            build_source(workspace, settings),
            time.time,
            inspects=True,
            open_desk=session.open_desk,
            open_acknowledgements=session.open_shelf,
            open_inbox=session.open_inbox,
        )
        return run_app(DemoApp(monitor, session.set_paused, session.is_over))


@command(argument("file", "FILE", "a recording, written by `agentwatch log --export FILE`"), _SPEED, _THEME)
def replay(options: Namespace) -> int:
    """Play a recorded session on the screen, with pause, step and speed."""
    import time
    from pathlib import Path

    from agentwatch.history.log import order_events
    from agentwatch.history.recording import read_recording

    if not 0 < options.speed < float("inf"):
        raise UsageError(f"a speed of {options.speed} cannot be played; give a number above 0, such as 2")
    settings, recording = _load_settings(options), read_recording(Path(options.file))
    _require_terminal()

    from agentwatch.app.played import ReplayApp
    from agentwatch.app.terminal import run_app
    from agentwatch.monitor import Monitor
    from agentwatch.sources.playback import Playback

    playback = Playback(order_events(recording.events, time.time()), recording.texts.get, options.speed)
    workspace, line = Path(recording.workspace), recording.history_before
    monitor = Monitor(workspace, settings, playback, clock=playback.clock, history_before=line)
    return run_app(ReplayApp(monitor, playback))


def _load_settings(options: Namespace) -> Settings:
    """Load the operator's settings, with the theme of the command line. May raise ConfigError."""
    from agentwatch.config import load

    settings = load()
    return settings._replace(theme=options.theme or settings.theme)


def _require_terminal(instead: str = "") -> None:
    """Raise UsageError if the screen cannot be drawn or nobody can type."""
    # Textual draws on standard error, so standard error must be a terminal as well.
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError(f"the screen needs a terminal, and none is here{instead}")
