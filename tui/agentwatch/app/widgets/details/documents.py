"""A document of any contract as an outline of its values, as its source with findings, or as changes to another one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from itertools import islice
from typing import Any, Final, NamedTuple

from textual.content import Content

from agentwatch.app.widgets.details.blocks import (
    FAINT,
    MAX_ROWS,
    NOTHING,
    Block,
    Line,
    Table,
    Text,
    caution,
    faint,
    fields,
    heading,
    inline,
    left_out,
    listed,
    markdown,
    paths,
    plain,
)
from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.text import clean, clean_lines
from agentwatch.view import looks, times

MAX_DEPTH: Final = 8
"""Levels of a JSON value that are written out; deeper ones are left to the Raw tab."""
_RENAMED: Final = (
    "reported_state=state error_code=error error_message=message retry_recommended=retry retry_hint=hint task_id=task "
    "agent_name=agent agent_type=agent session_id=session delegation_path=path delegation_depth=depth "
    "duration_seconds=took execution_time_seconds=took confidence_level=confidence token_usage=tokens "
    "verbosity_level=level parent_task_id=parent decision_id=decision handoff_schema=schema phase_count=phases "
    "estimated_hours=hours findings_count=findings requires_user_review=review review_reason=because "
    "phases_completed=phases phases_total=in_all identified_gaps=gaps attestation=runtime_attestation "
    "runtime_model_reported=model runtime_mode_reported=mode files_created=created files_modified=modified "
    "limitations=limits more=more_that_it_says"
)
_LABELS: Final = dict(pair.split("=") for pair in _RENAMED.split())
"""How keys are called here, where they are not called by their own words."""
_MARKS: Final = {"blockers": ("■", "$state-blocked"), "recommendations": ("→", FAINT), "identified_gaps": ("○", FAINT)}
_MUST: Final = {"required": "must read", "must_create": "must create"}
MARKED: Final = "▌"
"""In front of the lines that a claim names."""
_MESSAGES: Final = 3
"""Findings told below one line of source; a hostile line can break any number of rules."""
# A string ends at its quotation mark or, cut off, with the line: each match looks at a character once or twice.
_SOURCE: Final = re.compile(
    r'(?P<title>^#{1,6}\s.*)|(?P<key>"(?:[^"\\]|\\.)*"(?=\s*:)|^[-* ]*\w[\w .-]{0,40}\**(?=:(?:\s|$)))'
    r'|(?P<string>"(?:[^"\\]|\\.)*"?)'
)
_STYLES: Final = {"title": "bold", "key": "$text-primary", "string": "$text-success"}
_HUNK: Final = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@ ?(.*)")
_SIGNS: Final = {"+": "$text-success", "-": "$text-error", " ": ""}


def document(values: dict[str, Any]) -> Iterator[Block]:
    """The blocks of a document, given as the values that it has; those of its head stand at its beginning."""
    values.pop("todos", None)
    for name in ("status", "report_metadata"):
        if isinstance(values.get(name), dict):
            values = {**values.pop(name), **values}
    yield from markdown(values.pop("objective", None) or "")
    if "context_map" in values:
        # As it stands in the findings, it is a list of pairs.
        values["findings"].pop("context_map", None)
    parts = {key: value for key, value in values.items() if isinstance(value, (dict, list, tuple))}
    yield from _values({key: value for key, value in values.items() if key not in parts})
    for key, value in parts.items():
        yield from _part(key, value)


def _part(key: str, value: Any) -> Iterator[Block]:
    is_list = not isinstance(value, dict) and bool(value)
    label = _label(key)
    yield from heading(label[:1].upper() + label[1:], len(value) if is_list else None)
    if key in ("metadata", "attestation") and not is_list:
        yield from _values(value)
    elif is_list and all(isinstance(item, str) for item in value):
        yield from listed(value, *_MARKS.get(key, ("•", FAINT)))
    elif is_list and all(isinstance(item, dict) and ("path" in item or "location" in item) for item in value):
        yield _table(value)
    else:
        yield from _outline(value)


def _label(key: str) -> str:
    return clean(_LABELS.get(key, key).replace("_", " "), 60)


def _values(values: Mapping[str, Any]) -> Iterator[Text]:
    return fields(*((_label(key), _value(key, value)) for key, value in values.items()))


def _value(key: str, value: Any) -> Content | Iterator[Text]:
    if isinstance(value, (list, tuple)):
        return paths(value) if value else faint("none")
    if isinstance(value, str):
        return markdown(value)
    if isinstance(value, bool):
        return Content("yes" if value else "no")
    if key.endswith("_seconds"):
        return Content(times.duration(value))
    return Content(f"{value:,}") if isinstance(value, (int, float)) else plain(json.dumps(value), 400)


def _table(items: Sequence[Mapping[str, Any]]) -> Table:
    """Files, or places, and the words about each; whether one is required comes first."""
    keys = sorted(dict.fromkeys(key for item in items[:MAX_ROWS] for key in item), key=lambda key: key not in _MUST)
    rows = [[_cell(key, item.get(key)) for key in keys] for item in items]
    return Table(["" if key in _MUST else key for key in keys], rows)


def _cell(key: str, value: object) -> Content:
    if key in _MUST:
        return Content(f"● {_MUST[key]}") if value else faint("○ optional")
    return faint("-") if value is None else plain(str(value)) if key == "path" else inline(clean(str(value)))


def _outline(value: object, first: Content = NOTHING, rest: str = "", depth: int = 0) -> Iterator[Text]:
    """Any JSON value as an indented outline: it has whatever shape its agent chose. Strings in it are Markdown."""
    if isinstance(value, str):
        yield from markdown(value, first, rest)
    elif not isinstance(value, (dict, list)) or not value or depth >= MAX_DEPTH:
        is_deep = isinstance(value, (dict, list)) and value
        words = "… deeper than is shown: see Raw" if is_deep else "none" if value in ({}, []) else json.dumps(value)
        yield Text(plain(words, 400), first, rest)
    else:
        deeper = rest + "  "
        pairs = value.items() if isinstance(value, dict) else ((None, inner) for inner in value)
        for key, inner in islice(pairs, MAX_ROWS):
            label = faint("• " if key is None else f"{clean(str(key), 60)}  ")
            is_long = inner if isinstance(inner, (dict, list)) else "\n" in str(inner).strip()
            if key is not None and is_long:
                yield Text(label, first, rest)
                yield from _outline(inner, Content(deeper), deeper, depth + 1)
            else:
                yield from _outline(inner, first + label, deeper, depth + 1)
            first = Content(rest)
        yield from left_out(len(value), indent=rest)


# The source of a document


def _numbered(sign: Content, number: str, source: Content, width: int) -> Iterator[Line]:
    """One line of source behind a sign and its number, as many lines of the screen as it needs."""
    gutter = Content.assemble(sign, (f" {number} │ ", FAINT))
    yield from Text(source, gutter, "│ ".rjust(len(gutter))).lines(width)


class Listing(NamedTuple):
    """Safe lines with their numbers; one with a finding has its mark in the gutter and its message below.

    `marked` is the range of lines that a claim names, both included.
    """

    source: Sequence[str]
    findings: Mapping[int, Sequence[Finding]] = {}
    marked: tuple[int, int] = (0, -1)

    def lines(self, width: int) -> Iterator[Line]:
        """Its lines, coloured one by one in linear time: no content chooses how."""
        digits = len(str(len(self.source)))
        for number, line in enumerate(self.source, 1):
            findings = self.findings.get(number, ())[:_MESSAGES]
            sign = Content.styled(MARKED, "$text-accent")
            if not self.marked[0] <= number <= self.marked[1]:
                worst = min((one.severity for one in findings), key=list(Severity).index, default=None)
                look = looks.SEVERITIES[worst] if worst else looks.Look(" ", "", "text")
                sign = Content.styled(look.glyph, f"${look.color}")
            source = Content(line)
            for found in _SOURCE.finditer(line):
                source = source.stylize(_STYLES[found.lastgroup or ""], *found.span())
            yield from _numbered(sign, f"{number:>{digits}}", source, width)
            for finding in findings:
                color, indent = f"${looks.SEVERITIES[finding.severity].color}", " " * (digits + 3)
                message = Content.assemble(plain(finding.rule, 20), "  ", plain(finding.message, 400)).stylize(color)
                yield from Text(message, Content.styled(f"{indent}╰ ", color), f"{indent}  ").lines(width)


class Change(NamedTuple):
    """A line of a difference. `sign` is `+`, `-`, a blank, or "" for words between two changes.

    `number` is that of the line in the text it is in.
    """

    sign: str
    number: int
    text: str


class Difference(NamedTuple):
    """The changes from one text to another, safe to show. `note` says how much was cut, None if nothing was."""

    rows: Sequence[Change]
    note: str | None = None

    @property
    def counted(self) -> Content:
        """How many lines came and went."""
        added, removed = (sum(row.sign == sign for row in self.rows) for sign in "+-")
        return Content.assemble((f"+{added:,}", _SIGNS["+"]), " ", (f"−{removed:,}", _SIGNS["-"]))

    @property
    def noted(self) -> list[Block]:
        """The changes, and how much was cut."""
        return [self, caution(self.note)] if self.note else [self]

    def lines(self, width: int) -> Iterator[Line]:
        """Its lines, in the colours of git."""
        digits = len(str(max((row.number for row in self.rows), default=0)))
        for sign, number, words in self.rows:
            if sign:
                color = _SIGNS[sign]
                source = Content.styled(words, color)
                yield from _numbered(Content.styled(sign, color), f"{number:>{digits}}", source, width)
            else:
                yield Line(faint(f"  {'⋮':>{digits}}   {words}".rstrip()).truncate(width, ellipsis=True))


def compare(before: str, after: str) -> Difference:
    """The changes from one of our documents to another. Blocks for some milliseconds."""
    old, old_note = clean_lines(before.removesuffix("\n"))
    new, new_note = clean_lines(after.removesuffix("\n"))
    return Difference(list(_changes(unified_diff(old, new, lineterm=""))), new_note or old_note)


def read_git(text: str) -> Difference:
    """The changes that `git diff` tells of one file."""
    lines, note = clean_lines(text.removesuffix("\n"))
    return Difference(list(_changes(lines)), note)


def _changes(lines: Iterable[str]) -> Iterator[Change]:
    """The changes of a unified diff of one file; its head, before the first hunk, tells of none."""
    old = new = 0
    for line in lines:
        sign = line[:1] or " "
        if hunk := _HUNK.match(line):
            if old or new:
                yield Change("", 0, hunk[3])
            old, new = int(hunk[1]), int(hunk[2])
        elif (old or new) and sign in _SIGNS:
            yield Change(sign, old if sign == "-" else new, line[1:])
            old, new = old + (sign != "+"), new + (sign != "-")
        elif sign == "\\" or line.startswith("Binary files "):
            yield Change("", 0, line.removeprefix("\\ "))
