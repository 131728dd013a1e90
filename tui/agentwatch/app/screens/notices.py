"""The notices: files that could not be read or belong to no task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.content import Content

from agentwatch.app.screens.page import PageScreen
from agentwatch.delegation.task import PlacedFinding
from agentwatch.text import clean

_SHOWN: Final = 200


class NoticesScreen(PageScreen):
    """Each file with what is wrong with it and what to do."""

    def __init__(self, notices: Sequence[PlacedFinding]) -> None:
        super().__init__("Files with a problem", lambda _width: _text(notices))


def _text(notices: Sequence[PlacedFinding]) -> Content:
    if not notices:
        return Content("Every file that looks like a handoff or a return could be read and belongs to a task.")
    lines: list[Content] = []
    for placed in notices[:_SHOWN]:
        lines += [
            Content.assemble((placed.finding.rule, "bold $accent"), "  ", (clean(placed.path, 300), "bold")),
            Content.assemble("  ", (clean(placed.finding.message, 500), "$text-muted")),
        ]
    if len(notices) > _SHOWN:
        lines.append(Content(f"and {len(notices) - _SHOWN:,} more: `agentwatch check` lists all"))
    return Content("\n").join(lines)
