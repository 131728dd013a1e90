"""The findings tab: the rules that the files of a task break, worst first, each with its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from textual.content import Content

from agentwatch.app.widgets.details import wording
from agentwatch.app.widgets.details.blocks import Block, Column, Gap, Table, faint, plain, text
from agentwatch.app.widgets.details.view import View
from agentwatch.contracts.shapes import Severity
from agentwatch.delegation.task import PlacedFinding
from agentwatch.view import looks
from agentwatch.view.words import plural

_COLUMNS = (
    Column("severity"),
    Column("rule"),
    Column("place", right=True),
    Column("message", flexible=True),
)


def write(view: View) -> Iterator[Block]:
    """The blocks of the tab: one table for each file."""
    found = view.task.findings
    if not found:
        said = "no findings: keeps its contract" if view.task.attempts else "no findings"
        yield text(Content.assemble(("✓ ", "$state-completed"), said))
        return
    errors = sum(1 for placed in found if placed.finding.severity is Severity.ERROR)
    yield text(_counted(errors, len(found) - errors))
    for path, placed in _by_path(found).items():
        yield Gap()
        yield text(plain(path).stylize("bold"))
        yield Table(_COLUMNS, [_row(one) for one in placed])
    yield Gap()
    yield text(faint("agentwatch rules --explain RULE says why a rule is there, with an example that keeps it"))


def _counted(errors: int, warnings: int) -> Content:
    parts = []
    for severity, count in ((Severity.ERROR, errors), (Severity.WARNING, warnings)):
        if count:
            look = looks.SEVERITIES[severity]
            parts.append(Content.styled(f"{look.glyph} {plural(count, look.word)}", f"${look.color}"))
    return Content("   ").join(parts)


def _by_path(found: Sequence[PlacedFinding]) -> dict[str, list[PlacedFinding]]:
    """Findings by file: the file with the worst first, in it errors before warnings, then by line."""
    by_path: dict[str, list[PlacedFinding]] = {}
    for placed in sorted(found, key=_rank):
        by_path.setdefault(placed.path, []).append(placed)
    return by_path


def _rank(placed: PlacedFinding) -> tuple[bool, int, str]:
    finding = placed.finding
    return finding.severity is not Severity.ERROR, finding.line or 0, finding.rule


def _row(placed: PlacedFinding) -> tuple[Content, ...]:
    finding = placed.finding
    return (
        wording.shown(looks.SEVERITIES[finding.severity]),
        plain(finding.rule, 20),
        Content(f"line {finding.line}") if finding.line else faint("file"),
        plain(finding.message),
    )
