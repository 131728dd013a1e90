"""The commands that watch and play. A face is imported only when it runs.

Whatever `--help` does not need is imported where it is used: that answer should cost little more than an interpreter.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from agentwatch import __version__
from agentwatch.arguments import workspace_at
from agentwatch.cli.command import (
    PLACES,
    SESSIONS,
    Command,
    Targets,
    argument,
    flag,
    load,
    selection_of,
    targets_of,
)
from agentwatch.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from agentwatch.config import Settings
    from agentwatch.delegation.events import Event
    from agentwatch.monitor import Monitor

_WATCH: Final = partial(Command, "watch")

_DAY: Final = 86_400.0
_MOST_PROBLEMS: Final = 20
"""Lines of a recording whose problem is told."""


_SPEED: Final = argument("--speed", "X", "play X times as fast (default: 1)", type=float, default=1.0)
_THEME: Final = argument("--theme", "NAME", "the colours; the palette (ctrl+p) lists them", offers="themes")
_POLL: Final = flag("--poll", "look again regularly instead of asking the system for events")


@_WATCH(
    "[PATH ...]", "watch workspaces (default: this directory)", PLACES,
    flag("--version", "print the version", short="-V", action="version", version=f"agentwatch {__version__}"),
    flag("--all", "watch every workspace in which a session was alive in the last day, or --since"),
    flag("--hosts", "watch the workspaces on other machines that your settings name, too"),
    flag("--read-only", "write nothing into the workspace"), *SESSIONS, _THEME, _POLL,
)  # fmt: skip
def _watch(options: argparse.Namespace) -> int:
    """Watch coding agents delegate. agentwatch shows the live tree of handoffs and returns in a workspace,
    checks every return against its contract, and points at what needs you. Of several workspaces, each has a row."""
    if options.all and options.paths:
        raise UsageError("give either workspaces or --all\ntry: agentwatch --help")
    settings = _settings(options)
    if options.hosts and not settings.hosts:
        raise UsageError("your settings name no hosts: `agentwatch help machines` says how, or give an address")
    # Who asks for the hosts means those; who always sees them means the workspace here, too.
    is_for_hosts = options.all or (options.hosts and not options.paths)
    workspaces, addresses = Targets(()) if is_for_hosts else targets_of(options.paths, settings)
    if options.hosts or (settings.remote_always and not options.paths):
        addresses = targets_of([name for name, _ in settings.hosts], settings).addresses
    settings = settings._replace(read_only=options.read_only or settings.read_only)
    everywhere = (options.since or _DAY) if options.all else None
    selection = selection_of(options, addresses)
    _require_terminal()

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


@_WATCH(
    "demo", "watch a demo session, to see what it looks like", _SPEED,
    flag("--once", "play once and stay at the end, instead of starting over"), _THEME, _POLL,
)  # fmt: skip
def _demo(options: argparse.Namespace) -> int:
    """Play a believable session of about two minutes into a temporary workspace and watch it."""
    _require_terminal()
    settings = _settings(options)
    from agentwatch.app.run import demo
    from agentwatch.composition import monitor_of
    from agentwatch.demo.session import DemoSession

    session = DemoSession(options.speed, options.once)
    with session as workspace:
        # The window's title counts; nobody is to be called because of a play.
        silent = settings._replace(notify_bell=False, notify_terminal=False, notify_desktop=False)
        played = silent._replace(stale_after=session.stale_after, read_only=False)
        sessions = session.sessions()
        monitor = monitor_of(
            workspace, played, open_desk=session.open_desk, open_inbox=session.open_inbox, sessions=sessions
        )
        return demo(monitor, session.hold, session.stay, lambda: session.starts_over_in)


@_WATCH(
    "replay FILE", "play a recorded session, with pause, step and speed",
    argument("file", "FILE", "a recording, written by `agentwatch log --export FILE`", nargs="?"),
    argument("--workspace", "PATH",
             "play what is kept of this workspace, and the agents' sessions in it, instead of a file"),
    _SPEED, *SESSIONS, _THEME,
)  # fmt: skip
def _replay(options: argparse.Namespace) -> int:
    """Play a recorded session on the screen, with pause, step and speed."""
    if (options.file is None) == (options.workspace is None):
        raise UsageError("give either a recording or --workspace PATH\ntry: agentwatch replay --help")
    if options.file is not None and selection_of(options) is not None:
        raise UsageError("a recording is played as it is: --since and --session go with --workspace PATH")
    if not 0 < options.speed < math.inf:
        raise UsageError(f"a speed of {options.speed} cannot be played; give a number above 0, such as 2")
    if options.file is not None:
        return _play_file(options)
    workspace = workspace_at(options.workspace)
    from agentwatch.commands.log import past_of
    from agentwatch.sources import complain_of

    with past_of(workspace, load(), selection_of(options)) as past:
        complain_of(past.problems)
        return _play(workspace, options, past.events, past.text)


def _play_file(options: argparse.Namespace) -> int:
    from pathlib import Path

    from agentwatch.history.recording import read_recording
    from agentwatch.text import clean, complain

    recording = read_recording(Path(options.file))
    for problem in recording.problems[:_MOST_PROBLEMS]:
        complain(clean(problem))
    if len(recording.problems) > _MOST_PROBLEMS:
        complain(f"{len(recording.problems) - _MOST_PROBLEMS} more lines were left out")
    return _play(Path(recording.workspace), options, recording.events, recording.text)


def _play(
    workspace: Path,
    options: argparse.Namespace,
    events: Sequence[Event],
    text_of: Callable[[str], str | None],
) -> int:
    _require_terminal()
    from agentwatch.app.run import replay
    from agentwatch.history.log import story
    from agentwatch.monitor import Monitor
    from agentwatch.sources.playback import Playback

    playback = Playback(story(events, time.time()), text_of, options.speed)
    monitor = Monitor(workspace, _settings(options), playback, clock=playback.clock, keeps_deleted=True)
    return replay(monitor, playback)


def _settings(options: argparse.Namespace) -> Settings:
    settings = load()
    poll = getattr(options, "poll", False) or settings.poll
    return settings._replace(theme=options.theme or settings.theme, poll=poll)


def _require_terminal() -> None:
    # The screen library draws on standard error, so that one counts as well.
    streams = {"input": sys.stdin, "output": sys.stdout, "error": sys.stderr}
    others = [f"standard {name}" for name, stream in streams.items() if stream is None or not stream.isatty()]
    if others:
        said = (
            "none is here"
            if len(others) == len(streams)
            else f"{' and '.join(others)} {'is' if len(others) == 1 else 'are'} none"
        )
        raise UsageError(f"the screen needs a terminal, and {said}; `agentwatch tree` prints the tree without one")
