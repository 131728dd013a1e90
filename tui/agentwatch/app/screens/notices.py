"""The notices: what is wrong with what agentwatch keeps, and files that could not be read or belong to no task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from textual.content import Content

from agentwatch.app.screens.page import PageScreen
from agentwatch.delegation.task import PlacedFinding
from agentwatch.text import clean

_SHOWN: Final = 200


class NoticesScreen(PageScreen):
    """Each with what is wrong with it and what to do. `own` are sentences about what agentwatch itself keeps."""

    def __init__(self, notices: Sequence[PlacedFinding], own: Sequence[str] = ()) -> None:
        super().__init__("Problems", lambda width: _text(notices, own, width))


def _text(notices: Sequence[PlacedFinding], own: Sequence[str], width: int) -> Content:
    if not notices and not own:
        return Content("Every file that looks like a handoff or a return could be read and belongs to a task.")
    lines = [line for sentence in own for line in _hanging(("! ", "bold $text-warning"), clean(sentence, 500), width)]
    for placed in notices[:_SHOWN]:
        rule = placed.finding.rule + "  "
        lines += _hanging((rule, "bold $accent"), clean(placed.path, 300), width, "bold")
        lines += _hanging(("  ", ""), clean(placed.finding.message, 500), width, "$text-muted")
    if len(notices) > _SHOWN:
        lines.append(Content(f"and {len(notices) - _SHOWN:,} more: `agentwatch check` lists all"))
    return Content("\n").join(lines)


def _hanging(first: tuple[str, str], words: str, width: int, style: str = "") -> Iterator[Content]:
    """The words behind what stands in front of their first line."""
    under = " " * len(first[0])
    for number, line in enumerate(Content.styled(words, style).wrap(max(width - len(under), 8))):
        yield Content.assemble(under if number else first, line)
