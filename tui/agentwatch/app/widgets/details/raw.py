"""The raw tab: the very text of the return and of the handoff, with line numbers and the findings at their lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from textual.content import Content

from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.details.blocks import Block, Gap, Heading, faint, plain, text
from agentwatch.app.widgets.details.highlighting import language_of
from agentwatch.app.widgets.details.listing import Listing
from agentwatch.app.widgets.details.view import READING, View
from agentwatch.contracts.shapes import Finding
from agentwatch.delegation.task import Version
from agentwatch.text import clean_lines
from agentwatch.view.words import plural

_GONE: Final = "The text of this version is gone: the file was deleted or rewritten since it was read."


def write(view: View) -> Iterator[Block]:
    """The blocks of the tab: the return first, it is what is judged."""
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
    several = Content(f"attempt {attempt}   ") if len(view.task.attempts) > 1 else Content("")
    yield Heading(title, note=Content.assemble(several, plain(version.path), (f"   {total}", FAINT)))
    yield Listing(lines, language_of(source), _by_line(version.findings, len(lines)))
    if note:
        yield text(Content.styled(note, "$text-warning"))
    yield Gap()


def _by_line(findings: Sequence[Finding], lines: int) -> dict[int, list[Finding]]:
    """Findings by line number. What names no line, or one that is not shown, is left to the findings tab."""
    by_line: dict[int, list[Finding]] = {}
    for finding in findings:
        if finding.line and finding.line <= lines:
            by_line.setdefault(finding.line, []).append(finding)
    return by_line
