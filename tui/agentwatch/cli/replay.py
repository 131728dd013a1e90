"""Play a recorded session on the screen, with pause, step and speed."""

from __future__ import annotations

import math
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import SESSION, SPEED, THEME, argument
from agentwatch.cli.log import past_of
from agentwatch.cli.shared import selection_of
from agentwatch.cli.watch import require_terminal, settings_of
from agentwatch.delegation.events import Event
from agentwatch.errors import UsageError
from agentwatch.history.log import story
from agentwatch.history.recording import read_recording
from agentwatch.monitor import Monitor
from agentwatch.sources import complain_of
from agentwatch.sources.playback import Playback

ARGUMENTS: Final = (
    argument("file", "FILE", "a recording, written by `agentwatch log --export FILE`", nargs="?"),
    argument(
        "--workspace", "PATH", "play what is kept of this workspace, and the agents' sessions in it, instead of a file"
    ),
    SPEED,
    SESSION,
    THEME,
)


def run(options: Namespace) -> int:
    """Play a recording, or the history of a workspace."""
    if (options.file is None) == (options.workspace is None):
        raise UsageError("give either a recording or --workspace PATH\ntry: agentwatch replay --help")
    selection = selection_of(options)
    if options.file is not None and selection is not None:
        raise UsageError("a recording is played as it is: --session goes with --workspace PATH")
    if not 0 < options.speed < math.inf:
        raise UsageError(f"a speed of {options.speed} cannot be played; give a number above 0, such as 2")
    if options.file is None:
        workspace = workspace_at(options.workspace)
        with past_of(workspace, settings_of(options), selection) as past:
            complain_of(past.problems)
            return _play(workspace, options, past.events, past.text)
    recording = read_recording(Path(options.file))
    return _play(Path(recording.workspace), options, recording.events, recording.texts.get)


def _play(workspace: Path, options: Namespace, events: Sequence[Event], text_of: Callable[[str], str | None]) -> int:
    require_terminal()
    from agentwatch.app.run import replay

    playback = Playback(story(events, time.time()), text_of, options.speed)
    monitor = Monitor(workspace, settings_of(options), playback, clock=playback.clock)
    return replay(monitor, playback)
