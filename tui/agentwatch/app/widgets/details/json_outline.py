"""Any JSON value as an indented outline: what a report puts into its findings has whatever shape its agent chose."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Final

from textual.content import Content

from agentwatch.app.markdown_safe import FAINT, Paragraph
from agentwatch.app.widgets.details.blocks import MAX_ROWS, Block, Rich, Text, faint, plain, rich_line, text
from agentwatch.text import clean

MAX_DEPTH: Final = 8
"""Levels that are written out; deeper ones are left to the Raw tab."""

_STEP: Final = "  "
_DEEPER: Final = Content.styled("… deeper than is shown: see Raw", FAINT)


def outline(value: object, indent: str = "", depth: int = 0, lead: Content | None = None) -> Iterator[Block]:
    """The blocks of a JSON value. Strings in it are Markdown.

    `lead`, as long as `indent`, stands in its place before the first line.
    """
    before = Content(indent) if lead is None else lead
    if isinstance(value, dict):
        for key, inner in islice(value.items(), MAX_ROWS):
            yield from _entry(Content.styled(clean(str(key), 60), FAINT), inner, before, indent, depth)
            before = Content(indent)
        yield from _left(len(value), indent)
    elif isinstance(value, list):
        for inner in islice(value, MAX_ROWS):
            yield from _item(inner, before, indent, depth)
            before = Content(indent)
        yield from _left(len(value), indent)
    elif isinstance(value, str):
        yield Rich(value, before, indent)
    else:
        yield Text(Paragraph(_scalar(value), before, indent))


def _entry(label: Content, value: object, before: Content, indent: str, depth: int) -> Iterator[Block]:
    """A key with its value behind it where that is one line, else below it."""
    if isinstance(value, (dict, list)) and value:
        if depth >= MAX_DEPTH:
            yield Text(Paragraph(_DEEPER, Content.assemble(before, label, "  "), indent + _STEP))
        else:
            yield Text(Paragraph(label, before, indent))
            yield from outline(value, indent + _STEP, depth + 1)
    elif isinstance(value, str) and "\n" in value.strip():
        yield Text(Paragraph(label, before, indent))
        yield Rich(value, Content(indent + _STEP), indent + _STEP)
    else:
        yield Text(Paragraph(_short(value), Content.assemble(before, label, "  "), indent + _STEP))


def _item(value: object, before: Content, indent: str, depth: int) -> Iterator[Block]:
    """An item of a list: its first line stands beside the bullet."""
    lead = Content.assemble(before, ("• ", FAINT))
    if isinstance(value, (dict, list)) and not (value and depth < MAX_DEPTH):
        yield Text(Paragraph(_DEEPER if value else _short(value), lead, indent + _STEP))
    else:
        yield from outline(value, indent + _STEP, depth + 1, lead)


def _short(value: object) -> Content:
    if isinstance(value, str):
        return rich_line(value)
    return faint("none") if isinstance(value, (dict, list)) else _scalar(value)


def _scalar(value: object) -> Content:
    """A number, true, false or null, as JSON writes it."""
    return plain(json.dumps(value), 400)


def _left(count: int, indent: str) -> Iterator[Block]:
    if count > MAX_ROWS:
        yield text(faint(f"{indent}… and {count - MAX_ROWS:,} more"))
