"""The notices: what is wrong with what agentwatch keeps, and files that could not be read or belong to no task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.content import Content

from agentwatch.app.screens.page import PageScreen
from agentwatch.delegation.task import PlacedFinding
from agentwatch.text import clean

_SHOWN: Final = 200


class NoticesScreen(PageScreen):
    """Each with what is wrong with it and what to do. `own` are sentences about what agentwatch itself keeps."""

    def __init__(self, notices: Sequence[PlacedFinding], own: Sequence[str] = ()) -> None:
        super().__init__("What has a problem", lambda _width: _text(notices, own))


def _text(notices: Sequence[PlacedFinding], own: Sequence[str]) -> Content:
    if not notices and not own:
        return Content("Every file that looks like a handoff or a return could be read and belongs to a task.")
    lines = [Content.assemble(("! ", "bold $text-warning"), clean(sentence, 500)) for sentence in own]
    for placed in notices[:_SHOWN]:
        lines += [
            Content.assemble((placed.finding.rule, "bold $accent"), "  ", (clean(placed.path, 300), "bold")),
            Content.assemble("  ", (clean(placed.finding.message, 500), "$text-muted")),
        ]
    if len(notices) > _SHOWN:
        lines.append(Content(f"and {len(notices) - _SHOWN:,} more: `agentwatch check` lists all"))
    return Content("\n").join(lines)
