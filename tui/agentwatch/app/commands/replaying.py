"""The commands of a replay, in the order of the footer."""

from __future__ import annotations

from typing import Final

from agentwatch.app.commands.command import Command, Group, Home

_REPLAY: Final = (Home.REPLAY,)

COMMANDS: Final[tuple[Command, ...]] = (
    Command(
        "replay.play",
        "space",
        "play",
        _REPLAY,
        Group.REPLAY,
        words="play",
        tooltip="Play or pause, instead of folding; at the end, start over.",
        title="Play or pause",
        priority=True,
    ),
    Command(
        "replay.step",
        ".",
        "step(1)",
        _REPLAY,
        Group.REPLAY,
        words="step",
        tooltip="Pause, and go on by one observation.",
        priority=True,
    ),
    Command(
        "replay.step.back",
        "comma",
        "step(-1)",
        _REPLAY,
        Group.REPLAY,
        words="back",
        tooltip="Pause, and go back by one observation.",
        priority=True,
    ),
    Command(
        "replay.slower",
        "<",
        "change_speed(0.5)",
        _REPLAY,
        Group.REPLAY,
        words="slower",
        tooltip="Play at half the speed.",
        priority=True,
    ),
    Command(
        "replay.faster",
        ">",
        "change_speed(2.0)",
        _REPLAY,
        Group.REPLAY,
        words="faster",
        tooltip="Play at twice the speed.",
        priority=True,
    ),
    Command(
        "replay.start",
        "[",
        "rewind",
        _REPLAY,
        Group.REPLAY,
        words="start",
        tooltip="Go to the first observation.",
        title="Go to the start of the recording",
        priority=True,
    ),
    Command(
        "replay.end",
        "]",
        "wind",
        _REPLAY,
        Group.REPLAY,
        words="end",
        tooltip="Go to the last observation.",
        title="Go to the end of the recording",
        priority=True,
    ),
)
