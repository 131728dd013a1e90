"""The commands of the timeline, in the order of the footer."""

from __future__ import annotations

from typing import Final

from agentwatch.app.commands.command import Command, Group, Home, Place

_TIMELINE: Final = (Home.TIMELINE,)
_CHART: Final = (Home.CHART,)

COMMANDS: Final[tuple[Command, ...]] = (
    Command(
        "timeline.open",
        "enter",
        "open",
        _TIMELINE,
        Group.TIMELINE,
        words="tree",
        tooltip="Go to the selected task in the tree.",
        footer=(Place.TIMELINE,),
    ),
    Command(
        "timeline.in",
        "+ =",
        "zoom(1)",
        _CHART,
        Group.TIMELINE,
        words="zoom in",
        tooltip="Zoom in on the selected bar.",
        footer=(Place.TIMELINE,),
    ),
    Command(
        "timeline.out",
        "- _",
        "zoom(-1)",
        _CHART,
        Group.TIMELINE,
        words="out",
        tooltip="Zoom out.",
        footer=(Place.TIMELINE,),
    ),
    Command(
        "timeline.fit",
        "0",
        "fit",
        _CHART,
        Group.TIMELINE,
        words="all",
        tooltip="Show all of time, and make room for more as it passes.",
        footer=(Place.TIMELINE,),
    ),
    Command(
        "timeline.now",
        "n",
        "now",
        _CHART,
        Group.TIMELINE,
        words="now",
        tooltip="Go to the present and stay with it: new time scrolls in. Moving away ends this.",
        footer=(Place.TIMELINE,),
    ),
    Command(
        "timeline.show",
        "z",
        "show",
        _CHART,
        Group.TIMELINE,
        words="this task",
        tooltip="Zoom so that the selected task, with what is below it, fills the chart.",
        footer=(Place.TIMELINE,),
    ),
    Command(
        "timeline.earlier",
        "left h",
        "pan(-1)",
        _CHART,
        Group.TIMELINE,
        words="earlier",
        tooltip="Go to earlier times.",
        footer=(Place.TIMELINE,),
    ),
    Command(
        "timeline.later",
        "right l",
        "pan(1)",
        _CHART,
        Group.TIMELINE,
        words="later",
        tooltip="Go to later times.",
        footer=(Place.TIMELINE,),
    ),
    Command(
        "timeline.idle",
        "i",
        "fold_idle",
        _CHART,
        Group.TIMELINE,
        words="fold idle time",
        tooltip="Fold stretches of ten minutes and more in which nobody did anything, or show them in full.",
        footer=(Place.TIMELINE,),
    ),
)
