"""Entries that can be looked at: a claim with its verdict and reason, and a changed file that nobody claims."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from textual.content import Content

from agentwatch.app.markdown_safe import Paragraph
from agentwatch.app.widgets.details import wording
from agentwatch.app.widgets.details.blocks import WIDE, Line, Text, faint, plain
from agentwatch.delegation.claims import Claim
from agentwatch.view import looks

_MARK: Final = "  "
"""In front of every line of an entry; the cursor's mark takes its first cell."""
_VERDICT: Final = 16
"""Cells of the column with the verdicts."""


class Entry(NamedTuple):
    """What the cursor stands on: a claim, or a changed file that no return claims, which has no kind."""

    kind: str
    path: str
    lines: tuple[int, int] | None

    @classmethod
    def of(cls, claim: Claim) -> Entry:
        return cls(claim.kind, claim.path, claim.lines)


def claimed(path: str, lines: tuple[int, int] | None) -> Content:
    """A foreign path, and the lines of it that are meant."""
    if lines is None:
        return plain(path)
    first, last = lines
    return plain(path) + Content(f":{first}" if first == last else f":{first}-{last}")


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A claim: verdict and path, and below them its kind and the reason."""

    claim: Claim

    def lines(self, width: int) -> Iterator[Line]:
        claim = self.claim
        verdict = wording.shown(looks.VERDICTS[claim.verdict])
        kind = faint(claim.kind.replace("_", " "))
        path, reason = claimed(claim.path, claim.lines), plain(claim.detail)
        below = _MARK * 2
        about = Paragraph(Content.assemble(kind, "   ", faint(reason.plain)), Content(below), below)
        if width >= WIDE:
            lead = Content.assemble(_MARK, verdict.pad_right(_VERDICT - verdict.cell_length))
            parts = [Paragraph(path, lead, " " * len(lead)), about]
        else:
            parts = [Paragraph(verdict, Content(_MARK), _MARK), Paragraph(path, Content(below), below), about]
        for part in parts:
            for line in Text(part).lines(width):
                yield line._replace(choice=Entry.of(claim))


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A changed file that no return claims; `color` is that of its sign."""

    path: str
    color: str

    def lines(self, width: int) -> Iterator[Line]:
        lead = Content.assemble(_MARK, ("± ", self.color or "$text-muted"))
        for line in Text(Paragraph(plain(self.path), lead, " " * len(lead))).lines(width):
            yield line._replace(choice=Entry("", self.path, None))
