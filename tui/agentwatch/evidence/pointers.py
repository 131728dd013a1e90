"""Which words of a foreign text are paths: what an evidence bullet points to."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

LONGEST: Final = 4_096
"""Characters of a text that are looked at; no path is longer."""

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}:(?://|\S*@)")
_SUFFIX: Final = re.compile(r"\.(?=[A-Za-z0-9_]*[A-Za-z])[A-Za-z0-9_]{1,12}\Z")
_PATH_CHARACTERS: Final = re.compile(r"[\w.@+~#%=,()\[\]{}$!&'\\/-]+\Z")
_BARE_SUFFIX: Final = re.compile(
    r"\.(?:bash|c|cc|cfg|cpp|cs|css|csv|dart|ex|go|gradle|h|hpp|html|ini|java|json|jsonl|kt|lean|lock|lua|md|mdx|mjs|php"
    r"|png|proto|py|pyi|rb|rs|rst|scala|sh|sql|svg|swift|tex|toml|ts|tsx|txt|vue|xml|yaml|yml|zig)\Z",
    re.IGNORECASE,
)
"""Suffixes by which a name without a directory is surely a file."""
_BARE_NAMES: Final = frozenset({"Makefile", "Dockerfile", "LICENSE", "README", "CHANGELOG", "Justfile", "Procfile"})
_NEVER: Final = re.compile(r"[<>|]")
"""What no path has."""
_BLANK: Final = re.compile(r"\s")
_LETTER: Final = re.compile(r"[^\W_]")
_TICKED: Final = re.compile(r"`([^`\n]{1,4096})`")
_LINK: Final = re.compile(r"\[[^\]\n]{0,400}\]\(([^()\s]{1,4096})\)")
_SEPARATOR: Final = re.compile(r"\s(?:\u2014|\u2013|--?|\u2192|=>|\u00a7)\s|[:;]\s|\s\(")
_LIST: Final = re.compile(r",\s+|\s+and\s+|\s+\+\s+")
_LINES: Final = re.compile(
    r"(?P<path>.+?)(?::(?P<a>\d{1,9})(?:\s?[-\u2013]\s?(?P<b>\d{1,9}))?(?::\d{1,9})?|#L(?P<c>\d{1,9})(?:-L?(?P<d>\d{1,9}))?)\Z"
)
_LINES_BEHIND: Final = re.compile(r":\d{1,9}(?:\s?[-\u2013]\s?\d{1,9})?")
_SPELLED_LINES: Final = re.compile(
    r":\s+lines?\s+(?=\d{1,9}(?:\s?[-\u2013]\s?\d{1,9})?[`*_]*\s*(?:\Z|[;,(\u2014\u2013\u2192]|--?\s))"
)
"""`a.py: line 5` and `a.py: lines 5-9`: as `a.py:5`."""


class Likeness(Enum):
    """How much a word looks like a path."""

    PATH = "path"
    DOUBTFUL = "doubtful"
    NONE = "none"


class Pointer(NamedTuple):
    """A path that a text points to, and the lines of it. `stated`: the text goes on to say something about it, behind
    a colon or around it; what a dash or a bracket adds only describes it."""

    path: str
    lines: tuple[int, int] | None
    doubtful: bool
    stated: bool = False


def likeness(word: str) -> Likeness:
    """Whether a word is a path, judged by its letters."""
    if not word or len(word) > LONGEST or _SCHEME.match(word) or _NEVER.search(word):
        return Likeness.NONE
    name = word.rstrip("/").rpartition("/")[2]
    spaced = _BLANK.search(word) is not None
    has_suffix = _SUFFIX.search(name) is not None
    if "/" in word or "\\" in word:
        if spaced:
            # A command takes paths too, so a path with blanks in it has to end like a file.
            return Likeness.DOUBTFUL if has_suffix and " -" not in word else Likeness.NONE
        if _LETTER.search(word) is None:
            return Likeness.NONE
        if word.startswith(("./", "../", "~/")) or has_suffix or (word.endswith("/") and len(word) > 2):
            return Likeness.PATH
        return Likeness.DOUBTFUL if _PATH_CHARACTERS.match(word) else Likeness.NONE
    if spaced:
        # As a command may end, too.
        is_file = _BARE_SUFFIX.search(name) is not None and " -" not in word and "`" not in word
        return Likeness.DOUBTFUL if is_file else Likeness.NONE
    if name in _BARE_NAMES:
        return Likeness.DOUBTFUL
    if _BARE_SUFFIX.search(name):
        return Likeness.PATH
    return Likeness.DOUBTFUL if has_suffix or (name.startswith(".") and name[1:2].isalpha()) else Likeness.NONE


def pointers(text: str) -> tuple[Pointer, ...]:
    """The paths that a bullet of evidence points to; none where it is a command, a result or a reference."""
    text = text.strip()[:LONGEST]
    if "line" in text:
        text = _SPELLED_LINES.sub(":", text)
    leading = _TICKED.match(text)
    if leading is not None:
        lines = _LINES_BEHIND.match(text, leading.end())
        word, end = (leading[1] + lines[0], lines.end()) if lines else (leading[1], leading.end())
        return _of_words([word], stated=_states(text[end:]))
    if "](" in text and (links := list(_LINK.finditer(text))):
        around = text[: links[0].start()].strip("*_ ") != "" or _states(text[links[-1].end() :])
        return _of_words([link[1] for link in links], stated=around)
    separator = _SEPARATOR.search(text)
    head = (text[: separator.start()] if separator else text).strip().strip("*_").rstrip(".,;:")
    words = [word.strip("`*\"'") for word in _LIST.split(head)]
    named = _of_words(words, stated=separator is not None and _states(separator[0]))
    if len(named) == len(words):
        return named
    ticked = [word for word in _TICKED.findall(text) if likeness(_split_lines(word)[0]) is Likeness.PATH]
    return _of_words(ticked, stated=True)


def _states(rest: str) -> bool:
    """What follows a path is said about it."""
    return rest.lstrip("*_ ").startswith((":", ";"))


def _of_words(words: list[str], *, stated: bool) -> tuple[Pointer, ...]:
    made: list[Pointer] = []
    for word in words:
        path, lines = _split_lines(word.strip())
        like = likeness(path)
        if like is not Likeness.NONE:
            made.append(Pointer(path, lines, like is Likeness.DOUBTFUL, stated))
    return tuple(made)


def _split_lines(word: str) -> tuple[str, tuple[int, int] | None]:
    """A word without its `:12-40` or `#L12`, and those lines."""
    match = _LINES.match(word) if ":" in word or "#L" in word else None
    if match is None:
        return word, None
    first = int(match["a"] or match["c"])
    last = int(match["b"] or match["d"] or first)
    return match["path"], (first, last)
