"""Colours for source text, line by line: enough to find one's way in JSON and in a Markdown return.

Why not pygments: its Markdown lexer hands each fenced block to whichever lexer the block names, so a foreign file
would choose among hundreds of regular expressions that run on it; and a text has to be lexed as a whole before its
first line can be drawn. Here each line is looked at once, when it is drawn, in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import Final

from textual.content import Span

from agentwatch.app.markdown_safe import FAINT

KEY: Final = "$text-primary"
STRING: Final = "$text-success"
NUMBER: Final = "$text-warning"
WORD: Final = "$text-accent"
TITLE: Final = "bold"

# A string ends at its quotation mark or, cut off, with the line: JSON allows no line break in it.
_JSON: Final = re.compile(
    r'(?P<string>"(?:[^"\\]|\\.)*"?)(?P<key>\s*:)?'
    r"|(?P<number>-?\d[\d.eE+-]*)"
    r"|(?P<word>\b(?:true|false|null)\b)"
)
_FENCE: Final = re.compile(r"\s*(?:`{3,}|~{3,})\s*(\w*)")
_HEADING: Final = re.compile(r"#{1,6}\s")
_KEYED: Final = re.compile(r"\s*(?:[-*+]\s+)?(\**\w[\w .-]{0,40}\**):(?:\s|$)")
_ITEM: Final = re.compile(r"\s*([-*+]|\d{1,9}[.)])\s(?:\[[ xX-]\])?")


def json_spans(line: str) -> list[Span]:
    """The coloured parts of one line of JSON: keys, strings, numbers, constants."""
    spans = []
    for token in _JSON.finditer(line):
        if token["string"]:
            spans.append(Span(token.start(), token.end("string"), KEY if token["key"] else STRING))
        else:
            spans.append(Span(token.start(), token.end(), NUMBER if token["number"] else WORD))
    return spans


def markdown_spans(line: str) -> list[Span]:
    """The coloured parts of one line of Markdown: headers, `key:` at the beginning, list markers, quotations."""
    if _HEADING.match(line):
        return [Span(0, len(line), TITLE)]
    if line.lstrip().startswith(">"):
        return [Span(0, len(line), FAINT)]
    spans = []
    if item := _ITEM.match(line):
        spans.append(Span(0, item.end(), FAINT))
    if keyed := _KEYED.match(line):
        spans.append(Span(keyed.start(1), keyed.end(1), KEY))
    return spans


class Language(Enum):
    """How a text is coloured."""

    PLAIN = auto()
    JSON = auto()
    MARKDOWN = auto()


def highlighted(lines: Iterable[str], language: Language) -> Iterator[tuple[str, list[Span]]]:
    """The lines of one cleaned text with their coloured parts."""
    if language is Language.PLAIN:
        return ((line, []) for line in lines)
    if language is Language.JSON:
        return ((line, json_spans(line)) for line in lines)
    return _markdown(lines)


def _markdown(lines: Iterable[str]) -> Iterator[tuple[str, list[Span]]]:
    """Markdown; a fence without a name, or named JSON, is coloured as JSON."""
    fence = named = ""
    for line in lines:
        if fence and not line.lstrip().startswith(fence):
            yield line, json_spans(line) if named in ("json", "") else []
        elif fence:
            fence = ""
            yield line, [Span(0, len(line), FAINT)]
        elif opening := _FENCE.match(line):
            fence = line.lstrip()[:3]
            named = opening[1].lower()
            yield line, [Span(0, len(line), FAINT)]
        else:
            yield line, markdown_spans(line)
