"""The tabs about the files of a task: the rules that they break, and their very text with the findings at its lines."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from textual.content import Content

from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.details.blocks import (
    Block,
    Column,
    Gap,
    Heading,
    Table,
    caution,
    faint,
    in_color,
    plain,
    text,
)
from agentwatch.app.widgets.details.highlighting import language_of
from agentwatch.app.widgets.details.listing import Listing
from agentwatch.app.widgets.details.view import READING, View
from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.delegation.task import PlacedFinding, Version
from agentwatch.text import clean_lines
from agentwatch.view import looks
from agentwatch.view.words import plural

_COLUMNS: Final = (Column("severity"), Column("rule"), Column("place", right=True), Column("message", flexible=True))
_GONE: Final = "The text of this version is gone: the file was deleted or rewritten since it was read."


def write(view: View) -> Iterator[Block]:
    """The blocks of the findings tab: one table for each file, the one with the worst first, and as `check` by line."""
    findings = sorted(view.task.findings, key=_is_warning)
    if not findings:
        if any(attempt.handoff or attempt.returned for attempt in view.task.attempts):
            yield text(Content.assemble(("✓ ", "$state-completed"), "no findings: keeps its contract"))
        else:
            yield text(faint("Nothing to check: neither a handoff nor a return of it was seen."))
        return
    counts = Counter(placed.finding.severity for placed in findings)
    faces = [(look, counts[severity]) for severity, look in looks.SEVERITIES.items() if counts[severity]]
    yield text(Content("   ").join([in_color(look, plural(count, look.word)) for look, count in faces]))
    by_path: defaultdict[str, list[PlacedFinding]] = defaultdict(list)
    for placed in findings:
        by_path[placed.path].append(placed)
    for path, there in by_path.items():
        yield Gap()
        yield text(plain(path).stylize("bold"))
        yield Table(_COLUMNS, [_row(placed.finding) for placed in sorted(there, key=_line)])
    yield Gap()
    yield text(faint("agentwatch rules --explain RULE says why a rule is there, with an example that keeps it"))


def _is_warning(placed: PlacedFinding) -> bool:
    return placed.finding.severity is not Severity.ERROR


def _line(placed: PlacedFinding) -> int:
    return placed.finding.line or 0


def _row(finding: Finding) -> tuple[Content, ...]:
    return (
        in_color(looks.SEVERITIES[finding.severity]),
        plain(finding.rule, 20),
        Content(f"line {finding.line}") if finding.line else faint("file"),
        plain(finding.message),
    )


def write_raw(view: View) -> Iterator[Block]:
    """The blocks of the raw tab: the return first, it is what is judged."""
    handed, returned = view.handed, view.returned
    if returned and returned.returned:
        yield from _source(view, "Return", returned.number, returned.returned)
    if handed and handed.handoff:
        yield from _source(view, "Handoff", handed.number, handed.handoff)
    if not (handed or returned):
        yield text(faint("No file speaks of this task."))


def _source(view: View, title: str, attempt: int, version: Version) -> Iterator[Block]:
    opened = view.opened(version)
    source = opened.text if opened else None
    if source is None:
        yield Heading(title, note=plain(version.path))
        yield READING if opened is None else text(faint(_GONE))
        return
    # Findings count lines as editors do: a carriage return alone ends one, too.
    lines, note = clean_lines(source.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n"))
    total = plural(len(lines), "line") if note is None else note
    several = f"attempt {attempt}   " if len(view.task.attempts) > 1 else ""
    yield Heading(title, note=Content.assemble(several, plain(version.path), (f"   {total}", FAINT)))
    yield Listing(lines, language_of(source), _by_line(version.findings))
    if note:
        yield caution(note)
    yield Gap()


def _by_line(findings: Sequence[Finding]) -> dict[int, list[Finding]]:
    """Findings by line number. What names no line is left to the findings tab."""
    by_line: dict[int, list[Finding]] = {}
    for finding in findings:
        if finding.line:
            by_line.setdefault(finding.line, []).append(finding)
    return by_line
