"""Colours for source text, line by line: enough to find one's way in JSON, in a Markdown return and in code.

Why not pygments: its Markdown lexer hands each fenced block to whichever lexer the block names, so a foreign file
would choose among hundreds of regular expressions that run on it; and a text has to be lexed as a whole before its
first line can be drawn. Here each line is looked at once, when it is drawn, in linear time. What a file holds never
chooses how: our own documents are JSON or Markdown, and a claimed file is what the end of its name says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from posixpath import splitext
from typing import Final

from textual.content import Span

from agentwatch.app.markdown_safe import FAINT

KEY: Final = "$text-primary"
STRING: Final = "$text-success"
NUMBER: Final = "$text-warning"
WORD: Final = "$text-accent"
TITLE: Final = "bold"
COLORED: Final = 64 * 1024
"""Characters up to which a text is coloured; a larger one is a dump that is looked through, not read."""

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

# An apostrophe opens a string only where it closes, too: it may be a word's or a lifetime's.
_CODE: Final = (
    r"(?P<string>\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'|`[^`]*`)"
    r"|(?P<comment>{comment}.*)"
    r"|(?P<number>\b\d[\w.]*)"
    r"|(?P<word>[A-Za-z_]\w*)"
)
_SHARED_WORDS: Final = (
    "and as async await break case catch class const continue def default do elif else enum except export extends "
    "finally fn for from func function if impl import in interface is let mod mut new not or package pass private "
    "pub public raise return static struct switch this throw trait try use var while with yield"
)
_QUERY_WORDS: Final = (
    "alter by create delete drop group insert into join key limit on order primary select set table update values where"
)
_KEYWORDS: Final = frozenset(_SHARED_WORDS.split())
_QUERY_KEYWORDS: Final = _KEYWORDS.union(_QUERY_WORDS.split())
_CONSTANTS: Final = frozenset({"true", "false", "null", "none", "nil", "undefined"})


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
    """How a text is coloured; code by what its comments begin with."""

    PLAIN = auto()
    JSON = auto()
    MARKDOWN = auto()
    HASHED = auto()
    SLASHED = auto()
    DASHED = auto()


_COMMENTS: Final = {Language.HASHED: "#", Language.SLASHED: "//", Language.DASHED: "--"}
_PATTERNS: Final = {language: re.compile(_CODE.replace("{comment}", sign)) for language, sign in _COMMENTS.items()}
_SUFFIXES: Final = {
    Language.JSON: ".json .jsonl",
    Language.MARKDOWN: ".md .markdown .mdx",
    Language.HASHED: ".py .pyi .sh .bash .rb .toml .yaml .yml .ini .cfg .ex .exs .r .pl .jl .nix",
    Language.SLASHED: ".c .cc .cpp .cs .css .dart .go .h .hpp .java .js .jsx .kt .mjs .php .proto .rs .scala .scss "
    ".swift .ts .tsx .vue .zig",
    Language.DASHED: ".sql .lua .hs .lean .elm",
}
_LANGUAGES: Final = {suffix: language for language, names in _SUFFIXES.items() for suffix in names.split()}


def language_of(document: str) -> Language:
    """How one of our own documents is coloured."""
    if len(document) > COLORED:
        return Language.PLAIN
    return Language.JSON if document[:1_000].lstrip()[:1] in ("{", "[") else Language.MARKDOWN


def language_of_file(name: str, characters: int) -> Language:
    """How a file is coloured: by the end of its name, and not at all if it is large."""
    return Language.PLAIN if characters > COLORED else _LANGUAGES.get(splitext(name)[1].lower(), Language.PLAIN)


def code_spans(line: str, language: Language) -> list[Span]:
    """The coloured parts of one line of code: strings, comments, numbers, the words that many languages share."""
    keywords = _QUERY_KEYWORDS if language is Language.DASHED else _KEYWORDS
    spans = []
    for token in _PATTERNS[language].finditer(line):
        style = {"string": STRING, "comment": FAINT, "number": NUMBER}.get(token.lastgroup or "")
        if style is None:
            word = token[0].lower()
            style = KEY if word in keywords else WORD if word in _CONSTANTS else None
        if style is not None:
            spans.append(Span(token.start(), token.end(), style))
    return spans


def highlighted(lines: Iterable[str], language: Language) -> Iterator[tuple[str, list[Span]]]:
    """The lines of one cleaned text with their coloured parts."""
    if language is Language.MARKDOWN:
        return _markdown(lines)
    if language is Language.JSON:
        return ((line, json_spans(line)) for line in lines)
    if language in _PATTERNS:
        return ((line, code_spans(line, language)) for line in lines)
    return ((line, []) for line in lines)


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
